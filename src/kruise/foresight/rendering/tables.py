"""The parts of a report as titles and cells, the same for every way to show them.

A plan of thousands of pods stays readable: waves and pods beyond a bound are counted, not listed, unless all are asked
for. Names of pods that are yet to come are not shown, since the real ones will be others.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence

from kruise.foresight.forecast import FieldChange, How, Move, Wave
from kruise.foresight.rendering.report import Report
from kruise.foresight.rendering.verdict import about, counts_text, last_stops
from kruise.foresight.rendering.words import NAMES_SHOWN, duration, names_text
from kruise.machinery.wording import plural, shortened

NEW_POD = "(new)"
MOVES_LISTED = 30
"""Up to so many pods are listed one by one without being asked for."""
_FIRST_WAVES, _LAST_WAVES = 12, 3
_CHANGES_SHOWN = 20
_STAYING_SHOWN = 10
_WORKLOADS_SHOWN = 5
_VALUE_LENGTH = 60

WAVE_TITLES = ("WAVE", "BEGINS", "TAKES", "AVAILABLE", "HOW", "PODS")
REASON_TITLES = ("HOW", "PODS", "WHY")
POD_TITLES = ("POD", "WAVE", "HOW", "AT", "SERVES AFTER", "WHY")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Something that is said in a sentence."""

    title: str
    """`Warning`, `Stops`, `Waits`, `Stays`, `Assumed`, `Note`, `Meanwhile`."""
    code: str
    text: str
    remedy: str = ""

    def __str__(self) -> str:
        head = f"{self.title} ({self.code})" if self.code else self.title
        return f"{head}: {self.text}" + (f" -> {self.remedy}" if self.remedy else "")


def facts(report: Report) -> list[tuple[str, str]]:
    """The figures, each with a title."""
    forecast = report.forecast
    found = [
        ("Revision", _revisions(report)),
        ("Available", _available(report)),
        ("Pods", _pods(report)),
        ("At the end", _at_the_end(report)),
        ("Workloads", _workloads(report)),
        ("Time", about(forecast.seconds) if forecast.moves else ""),
    ]
    return [(title, text) for title, text in found if text]


def _revisions(report: Report) -> str:
    before, after = report.forecast.from_revision, report.forecast.to_revision
    if not before or before == after:
        return after or before
    return f"{before} -> {after}"


def _available(report: Report) -> str:
    forecast = report.forecast
    promised = "" if forecast.fewest_allowed is None else f" (at least {max(forecast.fewest_allowed, 0)} promised)"
    return (
        f"{forecast.available_before} before, {forecast.fewest_available} at worst{promised}, "
        f"{forecast.available_after} after"
    )


def _pods(report: Report) -> str:
    forecast = report.forecast
    allowed = "" if forecast.most_allowed is None else f" ({forecast.most_allowed} allowed)"
    return f"{forecast.replicas} wanted, {forecast.most_pods} at most{allowed}"


def _workloads(report: Report) -> str:
    """Whose pods change, those with the most first."""
    ordered = sorted(report.shares, key=lambda one: -(one.changing + one.staying))
    texts = []
    for one in ordered[:_WORKLOADS_SHOWN]:
        said = [f"{one.changing} {'changes' if one.changing == 1 else 'change'}"] if one.changing else []
        said += [f"{one.staying} {'stays' if one.staying == 1 else 'stay'}"] if one.staying else []
        texts.append(f"{one.workload} in {one.namespace} ({', '.join(said)})")
    if hidden := len(ordered) - len(texts):
        texts.append(plural(hidden, "more workload"))
    return ", ".join(texts)


def _at_the_end(report: Report) -> str:
    """Pods by revision, the new one first."""
    forecast = report.forecast
    ordered = sorted(forecast.by_revision.items(), key=lambda item: (item[0] != forecast.to_revision, item[0]))
    return ", ".join(f"{count} at {name or '(no revision)'}" for name, count in ordered)


def is_short_of_promise(report: Report, available: int) -> bool:
    allowed = report.forecast.fewest_allowed
    return allowed is not None and available < allowed


# What the change sets


def change_texts(report: Report, *, everything: bool = False) -> list[str]:
    """None for an object that is to be created: all of it is new."""
    changes = report.forecast.changes if not report.is_new else ()
    shown = changes if everything else changes[:_CHANGES_SHOWN]
    texts = [_change_text(change) for change in shown]
    if len(changes) > len(shown):
        texts.append(f"and {plural(len(changes) - len(shown), 'more field')}")
    return texts


def _change_text(change: FieldChange) -> str:
    before, after = shortened(change.before, _VALUE_LENGTH), shortened(change.after, _VALUE_LENGTH)
    if not before:
        return f"{change.path}: {after} is new"
    if not after:
        return f"{change.path}: {before} is removed"
    return f"{change.path}: {before} -> {after}"


# Waves


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WaveRow:
    cells: tuple[str, ...]
    """As `WAVE_TITLES` names them."""
    available: int | None
    """None: the row stands for waves that are left out."""


def wave_rows(report: Report, *, everything: bool = False) -> list[WaveRow]:
    waves = report.forecast.waves
    if everything or len(waves) <= _FIRST_WAVES + _LAST_WAVES + 1:
        return [_wave_row(report, wave, everything) for wave in waves]
    hidden = waves[_FIRST_WAVES:-_LAST_WAVES]
    worst = min(wave.fewest_available for wave in hidden)
    gap = WaveRow(
        cells=(
            "...",
            duration(hidden[0].begins),
            "",
            str(worst),
            counts_text(move for wave in hidden for move in wave.moves),
            plural(len(hidden), "more wave"),
        ),
        available=None,
    )
    return [
        *(_wave_row(report, wave, False) for wave in waves[:_FIRST_WAVES]),
        gap,
        *(_wave_row(report, wave, False) for wave in waves[-_LAST_WAVES:]),
    ]


def _wave_row(report: Report, wave: Wave, everything: bool) -> WaveRow:
    return WaveRow(
        cells=(
            str(wave.number),
            duration(wave.begins),
            _takes(wave),
            str(wave.fewest_available),
            counts_text(wave.moves),
            _names(report, wave.moves, None if everything else NAMES_SHOWN),
        ),
        available=wave.fewest_available,
    )


def _takes(wave: Wave) -> str:
    """Until all of its pods serve, but for those that go for good."""
    staying = [move for move in wave.moves if move.how is not How.DELETE]
    if not staying:
        return "-"
    ends = [None if move.until_available is None else move.at + move.until_available for move in staying]
    known = [end for end in ends if end is not None]
    if len(known) < len(ends):
        return "never" if not known else f"{duration(max(known) - wave.begins)}, some never"
    return duration(max(known) - wave.begins)


def _names(report: Report, moves: Sequence[Move], shown: int | None) -> str:
    known = [move.pod for move in moves if report.exists(move)]
    fresh = len(moves) - len(known)
    parts = [names_text(known, shown=shown)] if known else []
    if fresh:
        parts.append(plural(fresh, "new pod"))
    return ", ".join(parts)


def reason_rows(report: Report) -> list[tuple[str, str, str]]:
    """Why pods go in place or not: each reason once, with its pods counted."""
    counted = Counter((move.how.value, move.why) for move in report.forecast.moves)
    return [(how, str(count), why or "-") for (how, why), count in counted.items()]


def pod_rows(report: Report, *, everything: bool = False) -> list[tuple[str, ...]]:
    """The pods that change, in the order in which they begin. Pods that are yet to come have no name
    that counts: they stand here only where everything is asked for."""
    return [
        _pod_row(report, wave, move)
        for wave in report.forecast.waves
        for move in wave.moves
        if everything or report.exists(move)
    ]


def _pod_row(report: Report, wave: Wave, move: Move) -> tuple[str, ...]:
    serves = "-" if move.until_available is None else duration(move.until_available)
    name = move.pod if report.exists(move) else NEW_POD
    return (name, str(wave.number), move.how.value, duration(move.at), serves, _short_reason(move.why) or "-")


def _short_reason(why: str) -> str:
    """What stands before the explanation; the table of reasons has all of it."""
    if len(why) <= _VALUE_LENGTH:
        return why
    first, colon, _ = why.partition(": ")
    return first if colon and len(first) <= _VALUE_LENGTH else shortened(why, _VALUE_LENGTH)


# Sentences


def stops(report: Report) -> list[Message]:
    return [
        Message(
            title="Stops" if stop.is_last else "Waits",
            code=stop.code,
            text=f"after {duration(stop.at)}: {stop.message}" + _concerned(report, stop.pods),
            remedy=stop.remedy,
        )
        for stop in (*(one for one in report.forecast.stops if not one.is_last), *last_stops(report.forecast))
    ]


def _concerned(report: Report, pods: Sequence[str]) -> str:
    known = [pod for pod in pods if pod in report.pods]
    return f" [{names_text(known)}]" if known else ""


def staying(report: Report, *, everything: bool = False) -> list[Message]:
    """Pods that are not where they should be in the end. Those with the same cause are told of together, and those
    that a stop names already are not told of again."""
    told = {(stop.code, pod) for stop in report.forecast.stops for pod in stop.pods}
    groups: dict[tuple[str, str, str], list[str]] = {}
    for pod in report.forecast.staying:
        if (pod.code, pod.pod) in told:
            continue
        groups.setdefault((pod.code, pod.message, pod.remedy), []).append(
            f"{pod.pod if pod.pod in report.pods else NEW_POD} at {pod.revision}" if pod.revision else pod.pod
        )
    shown = None if everything else NAMES_SHOWN
    found = [
        Message(title="Stays", code=code, text=f"{names_text(pods, shown=shown)}: {message}", remedy=remedy)
        for (code, message, remedy), pods in groups.items()
    ]
    if everything or len(found) <= _STAYING_SHOWN:
        return found
    hidden = Message(
        title="Stays", code="", text=f"{plural(len(found) - _STAYING_SHOWN, 'more group')} of pods; -v shows all"
    )
    return [*found[:_STAYING_SHOWN], hidden]


def warnings(report: Report) -> list[Message]:
    return [
        Message(title="Warning", code=warning.code, text=warning.message, remedy=warning.remedy)
        for warning in report.forecast.warnings
    ]


def remarks(report: Report) -> list[Message]:
    """What the forecast rests on."""
    forecast = report.forecast
    found = [Message(title=forecast.part, code="", text=text) for text in forecast.parts]
    found += [Message(title="Assumed", code="", text=text) for text in forecast.assumptions if forecast.moves]
    found += [Message(title="Note", code="", text=text) for text in report.notes]
    if forecast.is_cut:
        remedy = "--thorough looks to the end"
        found.append(Message(title="Note", code="", text="there is more to come than was looked at", remedy=remedy))
    return found


def drift(report: Report) -> list[Message]:
    """What changed in the cluster while the forecast was made."""
    by_how: dict[str, list[str]] = {}
    for one in report.drifted:
        by_how.setdefault(one.how.value, []).append(one.object)
    if not by_how:
        return []
    text = "; ".join(f"{names_text(objects)} {how}" for how, objects in by_how.items())
    return [
        Message(
            title="Meanwhile",
            code="",
            text=f"the cluster changed while planning: {text}",
            remedy="plan again for what the cluster is now",
        )
    ]
