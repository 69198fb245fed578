"""Whether a forecast came true.

What was seen is a sequence of signs: pods change in place, go, and come. What was foreseen are waves of moves. The
sequence, cut into pieces as long as the waves, must give the waves: the same pods changing in the same way in each. So
the order within a wave is free, and so is whether a cluster's pods, each with a pace of its own, really began together.

Pods that are yet to come have no name in common, so they are counted. A pod that comes is a move of its own, or the
successor of one that was rebuilt: both together must be as many as were seen to come.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kruise.foresight.forecast import Forecast, How
from tests.foresight_reality.cases import Case
from tests.foresight_reality.reality import Outcome, Reality
from tests.support.rollout_log import Act

_TO_COME = "(a pod to come)"
_OWN_CODES = ("not-available", "old-revision", "unscheduled")
"""Of pods that no plan holds."""
Begins = tuple[Act, str]


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """`about`: `waves`, `creations`, `survivors`, `revisions`, `staying`, `availability`, `available in the end`,
    `pods`, or `refusal`."""

    about: str
    foreseen: Any
    seen: Any

    def __str__(self) -> str:
        return f"{self.about}: foreseen {self.foreseen}, seen {self.seen}"


def differences(outcome: Outcome) -> list[Difference]:
    """Empty: it came true."""
    forecast, reality = outcome.forecast, outcome.reality
    if isinstance(forecast, str) or isinstance(reality, str):
        return list(_of_refusals(forecast, reality))
    return [
        *_of_waves(forecast, reality),
        *_unequal("creations", _creations(forecast), _count(reality, Act.CREATE)),
        *_unequal("revisions", _short(forecast.by_revision), dict(reality.by_revision)),
        *_of_survivors(forecast, reality),
        *_of_staying(forecast, reality),
        *_unequal("availability", forecast.fewest_available, reality.fewest_available),
        *_unequal("available in the end", forecast.available_after, reality.available_after),
        *_unequal("pods", forecast.most_pods, reality.most_pods),
    ]


def _unequal(about: str, foreseen: Any, seen: Any) -> Iterator[Difference]:
    if foreseen != seen:
        yield Difference(about, foreseen, seen)


def _of_refusals(forecast: Forecast | str, reality: Reality | str) -> Iterator[Difference]:
    """Both or neither; the server puts words of its own before those of the webhook."""
    if not isinstance(forecast, str) or not isinstance(reality, str):
        yield Difference("refusal", _refusal(forecast), _refusal(reality))
    elif forecast not in reality and reality not in forecast:
        yield Difference("refusal", forecast, reality)


def _refusal(told: object) -> str:
    return told if isinstance(told, str) else "accepted"


def _of_waves(forecast: Forecast, reality: Reality) -> Iterator[Difference]:
    there = set(reality.start)
    seen = [
        (sign.act, sign.pod if sign.pod in there else _TO_COME) for sign in reality.signs if sign.act is not Act.CREATE
    ]
    place = 0
    for wave in forecast.waves:
        wanted = [begins for move in wave.moves if (begins := _begins(move.how, move.pod, there)) is not None]
        piece, place = seen[place : place + len(wanted)], place + len(wanted)
        yield from _unequal(f"wave {wave.number}", _sorted(wanted), _sorted(piece))
    yield from _unequal("after the last wave", [], _sorted(seen[place:]))


def _sorted(begins: Sequence[Begins]) -> list[str]:
    return sorted(f"{act} {pod}" for act, pod in begins)


def _begins(how: How, pod: str, there: set[str]) -> Begins | None:
    """The sign by which a move begins; None for one that begins with a pod's coming."""
    if how is How.CREATE:
        return None
    name = pod if pod in there else _TO_COME
    return (Act.IN_PLACE if how is How.IN_PLACE else Act.DELETE), name


def _creations(forecast: Forecast) -> int:
    return sum(move.how in (How.CREATE, How.RECREATE) for move in forecast.moves)


def _count(reality: Reality, act: Act) -> int:
    return sum(sign.act is act for sign in reality.signs)


def _of_survivors(forecast: Forecast, reality: Reality) -> Iterator[Difference]:
    gone = {move.pod for move in forecast.moves if move.how in (How.DELETE, How.RECREATE)}
    foreseen = sorted(set(reality.start) - gone)
    yield from _unequal("survivors", foreseen, sorted(set(reality.start) & set(reality.survivors)))


def _of_staying(forecast: Forecast, reality: Reality) -> Iterator[Difference]:
    """Every pod that the forecast leaves where it should not be is there, at the revision that was foreseen."""
    known = [pod for pod in forecast.staying if pod.pod in reality.start]
    foreseen = {pod.pod: pod.revision.rpartition("-")[2] for pod in known}
    yield from _unequal("staying", foreseen, {name: reality.pods.get(name) for name in foreseen})
    if reality.causes is not None:
        held = [pod for pod in known if pod.code not in _OWN_CODES]
        codes = {pod.pod: pod.code for pod in held if pod.code not in reality.causes.get(pod.pod, ())}
        yield from _unequal("causes", codes, {name: reality.causes.get(name, ()) for name in codes})


def _short(by_revision: Mapping[str, int]) -> dict[str, int]:
    counted: Counter[str] = Counter()
    for revision, count in by_revision.items():
        counted[revision.rpartition("-")[2]] += count
    return {revision: count for revision, count in counted.items() if count}


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """A case and in what it differed."""

    case: Case
    differences: tuple[Difference, ...]


def report(verdicts: list[Verdict]) -> str:
    """The share that came true, and every case that did not."""
    wrong = [verdict for verdict in verdicts if verdict.differences]
    true = len(verdicts) - len(wrong)
    share = 100 * true / len(verdicts) if verdicts else 100.0
    lines = [f"plan = reality: {true} of {len(verdicts)} cases ({share:.1f} %)"]
    for verdict in wrong:
        lines.append(verdict.case.text())
        lines += [f"  ! {difference}" for difference in verdict.differences]
    return "\n".join(lines)


def told(outcome: Outcome) -> str:
    """Everything about one case."""
    lines = [outcome.case.text(), "foreseen:"]
    forecast, reality = outcome.forecast, outcome.reality
    if isinstance(forecast, Forecast):
        for wave in forecast.waves:
            moves = ", ".join(f"{move.how} {move.pod} at {move.at:.1f}" for move in wave.moves)
            lines.append(f"  wave {wave.number} at {wave.begins:.1f} s, fewest {wave.fewest_available}: {moves}")
        lines += [f"  stop {stop}" for stop in forecast.stops]
        lines += [f"  staying {pod}" for pod in forecast.staying]
        lines.append(f"  fewest {forecast.fewest_available}, most {forecast.most_pods}, {forecast.by_revision}")
    else:
        lines.append(f"  refused: {forecast}")
    lines.append("seen:")
    if isinstance(reality, Reality):
        lines += [f"  {sign}" for sign in reality.signs]
        lines.append(f"  fewest {reality.fewest_available}, most {reality.most_pods}, {dict(reality.by_revision)}")
        lines.append(f"  causes {reality.causes}")
    else:
        lines.append(f"  refused: {reality}")
    lines += [f"! {difference}" for difference in differences(outcome)] or ["it came true"]
    return "\n".join(lines)
