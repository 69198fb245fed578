"""A decision of a manager, read from its journal: who was held, what was about to happen, which pods were seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, TypeVar

from kruise.api.native.pod import Pod
from kruise.machinery.causes import Catalogue, Cause, Meaning
from kruise.machinery.codec import DecodeError, Raw, Struct, decode, field
from kruise.machinery.memo import RolloutMemo
from kruise.reasons.decision import WRITES, About, Decision, Step
from kruise.workloads.shared.causes import SHARED

_T = TypeVar("_T", bound=Struct)

QUERY = (("causes", "once"),)
"""How a manager is asked for the form that is read here. One that does not know it answers at length."""


class Dumped(Struct):
    decision: Decision
    time: datetime | None
    pods: tuple[Pod, ...] | None
    """As the manager saw them: as new as the last change of any of them, and reading thousands of pods a second time
    would take longer than all the rest. None: it looks at none, or they do not fit this version."""
    generations: Mapping[str, int]
    """By uid, of the single objects that it saw."""


class _Cause(Struct):
    code: str = ""
    message: str = ""
    details: dict[str, Any] = field(default_factory=dict)
    remedy: str = ""


class _Target(Struct):
    group: str = ""
    plural: str = ""
    namespace: str = ""
    name: str = ""


class _Held(Struct):
    target: _Target = _Target()
    causes: tuple[int | _Cause, ...] = ()


class _Action(Struct):
    verb: str = ""
    target: _Target = _Target()
    reason: str = ""
    uid: str = ""


class _Phase(Struct):
    chains: tuple[tuple[_Action, ...], ...] = ()


class _Plan(Struct):
    causes: tuple[_Cause, ...] = ()
    held: tuple[_Held, ...] = ()
    phases: tuple[_Phase, ...] = ()
    memo: RolloutMemo | None = None


class _Document(Struct):
    time: datetime | None = None
    plan: _Plan = _Plan()
    fault: str = ""
    snapshot: dict[str, Raw] = field(default_factory=dict)


class _Metadata(Struct):
    uid: str = ""
    resource_version: str = ""
    generation: int = 0


class _Object(Struct):
    metadata: _Metadata = _Metadata()


def read(body: bytes, causes: Iterable[Meaning] = ()) -> Dumped:
    """`causes` are those of the kind; where others hold its pods, theirs are found. Raises `DecodeError`. What a
    manager of another version does not tell is left out."""
    document = decode(body, _Document)
    pods = _objects(document.snapshot.get("pods"), Pod)
    singles = [decode(value, _Object).metadata for value in document.snapshot.values() if _begins(value, b"{")]
    return Dumped(
        decision=_decision(document, pods, Catalogue((*SHARED, *causes), _of_other_kinds)),
        time=document.time,
        pods=pods,
        generations={one.uid: one.generation for one in singles if one.uid},
    )


def _of_other_kinds() -> Iterator[Meaning]:
    from kruise import kinds  # every face is loaded then, which few questions need

    for face in kinds.REGISTRY.built_in:
        yield from face.causes


def _decision(document: _Document, pods: tuple[Pod, ...] | None, catalogue: Catalogue) -> Decision:
    plan = document.plan
    memo = plan.memo or RolloutMemo()
    return Decision(
        held=tuple(_held(plan, catalogue)),
        steps=tuple(
            Step(action.verb, about, action.reason, action.uid)
            for phase in plan.phases
            for chain in phase.chains
            for action in chain
            if (about := _about(action.target)).is_pod and action.verb in WRITES
        ),
        revision=memo.update_revision,
        told_error=memo.update_error,
        fault=document.fault,
        seen=dict(_versions(document.snapshot, pods)),
    )


def _held(plan: _Plan, catalogue: Catalogue) -> Iterator[tuple[About, tuple[Cause, ...]]]:
    causes = tuple(_cause(one, catalogue) for one in plan.causes)
    try:
        for held in plan.held:
            found = tuple(causes[one] if isinstance(one, int) else _cause(one, catalogue) for one in held.causes)
            yield _about(held.target), found
    except IndexError as error:
        raise DecodeError(f"it names a cause beyond the {len(causes)} that it tells") from error


def _cause(told: _Cause, catalogue: Catalogue) -> Cause:
    meaning = catalogue.meaning(told.code, told.remedy)
    return meaning.cause(told.message, details=told.details, remedy=told.remedy)


def _about(target: _Target) -> About:
    return About(target.group, target.plural, target.name, target.namespace)


def _versions(snapshot: Mapping[str, Raw], pods: tuple[Pod, ...] | None) -> Iterator[tuple[str, str]]:
    for name, value in snapshot.items():
        found = pods if name == "pods" and pods is not None else _objects(value, _Object)
        for one in found or ():
            if one.metadata.uid:
                yield one.metadata.uid, one.metadata.resource_version


def _objects(value: Raw | None, kind: type[_T]) -> tuple[_T, ...] | None:
    """The objects of a list; None for anything else."""
    if value is None or not _begins(value, b"["):
        return None
    try:
        return decode(value, tuple[kind, ...])  # type: ignore[valid-type]
    except DecodeError:
        return None


def _begins(value: Raw, sign: bytes) -> bool:
    return bytes(memoryview(value)[:1]) == sign
