"""What a play came to, in the words of a `Forecast`: moves with their reasons, stops, pods that stay behind."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from kruise.api.native.apps import ControllerRevision
from kruise.api.native.pod import PODS, Pod, is_active
from kruise.faces.forecast import ForecastFacts
from kruise.foresight.causes import IMAGE_NAME, NOT_AVAILABLE, OLD_REVISION, REFUSED
from kruise.foresight.forecast import How, Move, Staying, Stop
from kruise.foresight.playing import AnsweredHook
from kruise.foresight.watching import Moved
from kruise.inplace.difference import InPlaceOptions, Refusal, compare
from kruise.inplace.state import UpdateSpec
from kruise.machinery.causes import Meaning
from kruise.machinery.plan import Held, Plan
from kruise.machinery.revision_names import short_hash
from kruise.machinery.wording import plural
from kruise.model import podstates
from kruise.workloads.shared.causes import UNSCHEDULED

_MAKE_ROOM = (
    "make room on the nodes, or change what the template asks of them: requests, nodeSelector, affinity, tolerations"
)

RevisionOf = Callable[[Pod], str]
Called = Callable[[str, str], str]
"""What a pod is called: by its namespace and its name."""
_CORRECT_IMAGE = "correct the image in the template"


class Words:
    """Why a pod goes one way or the other. Worked out once for each pair of revisions."""

    def __init__(
        self, kind: ForecastFacts, subject: Any, revisions: Mapping[str, ControllerRevision], gates: Mapping[str, bool]
    ) -> None:
        self._policy = kind.policy(subject)
        self._may_be_in_place = self._policy in kind.in_place_policies
        self._revisions = revisions
        self._has_templates = kind.contributed is None
        """Its revisions hold templates of whole pods."""
        self._options = InPlaceOptions.of(gates)
        self._known: dict[tuple[str, str], UpdateSpec | Refusal] = {}
        self.refusals: set[str] = set()
        """Why pods could not be changed in place, so far."""

    def move_of(self, moved: Moved) -> Move:
        move = moved.move
        before, after = short_hash(moved.before), short_hash(move.revision)
        if not self._revisions or not self._has_templates:
            why = moved.reason  # there is nothing to compare
        elif move.how is How.IN_PLACE:
            why = in_words(self.difference(before, after))
        elif move.how is How.RECREATE and before != after:
            why = self.why_not(before, after) or f"{moved.reason}; its successor has the new revision"
        else:
            why = moved.reason
        revision = self._revisions.get(after)
        name = revision.metadata.name if revision is not None else move.revision
        return dataclasses.replace(move, why=why, revision=name)

    def difference(self, before: str, after: str) -> UpdateSpec | Refusal:
        pair = (before, after)
        if pair not in self._known:
            found = compare(self._revisions.get(before), self._revisions.get(after), self._options)
            self._known[pair] = found
        return self._known[pair]

    def why_not(self, before: str, after: str) -> str:
        """Why a pod is rebuilt; empty where its revisions are not the reason."""
        if not self._may_be_in_place:
            return f"the update policy is {self._policy}"
        found = self.difference(before, after)
        if not isinstance(found, Refusal):
            return ""
        self.refusals.add(found.message)
        return found.message


def in_words(found: UpdateSpec | Refusal) -> str:
    """What an update in place changes."""
    if isinstance(found, Refusal):
        return found.message
    parts = [
        *(f"image of {name} changes" for name in sorted(found.container_images)),
        *(f"environment of {name} changes" for name in sorted(found.container_ref_metadata)),
        *(f"resources of {name} change" for name in sorted(found.container_resources)),
    ]
    if found.meta_data_patch and not found.container_ref_metadata:
        parts.append("labels or annotations change")
    return ", ".join(parts) or "nothing of the pod itself changes"


def hook_stops(hooks: Mapping[str, AnsweredHook]) -> tuple[Stop, ...]:
    """Points at which somebody else had to act, and was taken to."""
    return tuple(
        Stop(
            meaning=waiting.cause.meaning,
            at=waiting.at,
            message=waiting.cause.message,
            remedy=waiting.cause.remedy,
            pods=tuple(waiting.pods),
            is_last=False,
        )
        for waiting in hooks.values()
    )


def last_stops(
    plan: Plan, pods: Iterable[Pod], at: float, failures: Mapping[str, str], called: Called
) -> tuple[Stop, ...]:
    """What holds whom in the end, by cause."""
    down = _down(pods, called)
    groups: dict[Meaning, list[Held]] = {}
    for held in plan.held:
        if held.target.resource != PODS or called(*held.target.key) not in down:
            groups.setdefault(held.causes[0].meaning, []).append(held)
    stops = [
        Stop(
            meaning=meaning,
            at=at,
            message=members[0].causes[0].message,
            remedy=members[0].causes[0].remedy,
            pods=tuple(called(*held.target.key) for held in members if held.target.resource == PODS),
        )
        for meaning, members in groups.items()
    ]
    stops += _of_down(down, at)
    stops += (
        Stop(meaning=REFUSED, at=at, message=f"{what} is refused: {error}", remedy="see who refuses it, and why")
        for what, error in failures.items()
    )
    return tuple(stops)


@dataclasses.dataclass(frozen=True, slots=True)
class _Down:
    """Why a pod never runs: the scheduler or a kubelet says so, and no plan."""

    meaning: Meaning
    why: str

    @property
    def remedy(self) -> str:
        return _MAKE_ROOM if self.meaning == UNSCHEDULED else _CORRECT_IMAGE

    @property
    def of_one(self) -> str:
        return f"no node takes it: {self.why}" if self.meaning == UNSCHEDULED else self.why

    def of(self, count: int) -> str:
        if self.meaning == UNSCHEDULED:
            return f"{plural(count, 'pod', 'finds', 'find')} no node: {self.why}"
        return f"{plural(count, 'pod', 'does', 'do')} not start: {self.why}"


def _down(pods: Iterable[Pod], called: Called) -> dict[str, _Down]:
    """By what the pods are called."""
    found = {}
    for pod in pods:
        if not is_active(pod):
            continue
        name = called(pod.metadata.namespace, pod.metadata.name)
        if why := podstates.homeless(pod):
            found[name] = _Down(UNSCHEDULED, why)
        elif why := podstates.nameless(pod):
            found[name] = _Down(IMAGE_NAME, why)
    return found


def _of_down(down: Mapping[str, _Down], at: float) -> Iterator[Stop]:
    """Pods that are down for the same reason together."""
    groups: dict[_Down, list[str]] = {}
    for name, why in down.items():
        groups.setdefault(why, []).append(name)
    for why, names in groups.items():
        yield Stop(meaning=why.meaning, at=at, message=why.of(len(names)), remedy=why.remedy, pods=tuple(names))


def staying(
    plan: Plan,
    pods: Iterable[Pod],
    unavailable: frozenset[str],
    target: str,
    revision_of: RevisionOf,
    called: Called,
) -> tuple[Staying, ...]:
    """Pods that are not where they should be in the end: held by something, or not serving.

    `unavailable` are those that do not serve, as they are called; `target` is the revision that all pods are to have.
    """
    pods = list(pods)
    down = _down(pods, called)
    causes = {called(*held.target.key): held.causes[0] for held in plan.held if held.target.resource == PODS}
    found = []
    for pod in pods:
        name, revision = called(pod.metadata.namespace, pod.metadata.name), revision_of(pod)
        cause = causes.get(name)
        if why := down.get(name):
            found.append(
                Staying(pod=name, revision=revision, meaning=why.meaning, message=why.of_one, remedy=why.remedy)
            )
        elif cause is not None:
            found.append(
                Staying(
                    pod=name,
                    revision=revision,
                    meaning=cause.meaning,
                    message=cause.message,
                    remedy=cause.remedy,
                )
            )
        elif name in unavailable:
            message = podstates.trouble(pod) or "the pod is not ready"
            remedy = "see the pod's events and logs; a change of it is the only thing that this forecast believes in"
            found.append(Staying(pod=name, revision=revision, meaning=NOT_AVAILABLE, message=message, remedy=remedy))
        elif is_active(pod) and short_hash(revision) != short_hash(target):
            message = f"the pod keeps revision {revision or 'none'}"
            found.append(Staying(pod=name, revision=revision, meaning=OLD_REVISION, message=message))
    return tuple(found)


def by_revision(
    pods: Iterable[Pod], revisions: Mapping[str, ControllerRevision], revision_of: RevisionOf
) -> dict[str, int]:
    """Pods at each revision, by the revision's full name where it is known."""
    counts: dict[str, int] = {}
    for pod in pods:
        label = revision_of(pod)
        revision = revisions.get(short_hash(label))
        name = revision.metadata.name if revision is not None else label
        counts[name] = counts.get(name, 0) + 1
    return dict(sorted(counts.items()))
