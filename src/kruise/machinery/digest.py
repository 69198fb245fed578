"""Fingerprints of snapshots, and plans as plain data. Pure.

A snapshot holds objects of the store, which are immutable: uid and resourceVersion stand for the whole object. That
makes a digest cheap enough to be taken at every pass (well under a microsecond per pod). Everything else in a snapshot
is small and goes in whole.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, cast

from kruise.api.meta import ObjectMeta
from kruise.machinery.codec import Struct, canonical, decode, encode
from kruise.machinery.plan import Action, Cause, Chain, Plan, Target
from kruise.machinery.times import format_time

_PLAIN = (str, int, bool, type(None))


def digest(snapshot: object) -> str:
    """The same text for equal snapshots, in any process."""
    parts: list[str] = []
    _collect(snapshot, parts)
    return hashlib.blake2b("\n".join(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _collect(value: Any, parts: list[str]) -> None:
    if type(value) in _PLAIN:
        parts.append(canonical(value).decode())
        return
    metadata = getattr(value, "metadata", None)
    if type(metadata) is ObjectMeta and metadata.uid and metadata.resource_version:
        parts.append(f"{metadata.uid} {metadata.resource_version}")
    elif isinstance(value, tuple | list):
        parts.append(f"{len(value)}[")
        if not _collect_objects(value, parts):
            for item in value:
                _collect(item, parts)
    elif isinstance(value, Mapping):
        parts.append(f"{len(value)}{{")
        for key in sorted(value, key=str):
            parts.append(str(key))
            item = value[key]
            if item is True or item is False:  # dozens of feature gates
                parts.append("true" if item else "false")
            else:
                _collect(item, parts)
    elif (names := _field_names(cast(Hashable, type(value)))) is not None:
        parts.append(type(value).__name__)
        for name in names:
            parts.append(name)
            _collect(getattr(value, name), parts)
    elif isinstance(value, frozenset | set):
        parts.append(f"{len(value)}<")
        parts.extend(sorted(canonical(item).decode() for item in value))
    else:
        parts.append(canonical(value).decode())


def _collect_objects(values: Iterable[Any], parts: list[str]) -> bool:
    """The usual case, thousands of pods, in one go. False: they are not all objects of a server."""
    try:
        texts = [f"{meta.uid} {meta.resource_version}" if meta.uid else "" for meta in [v.metadata for v in values]]
    except AttributeError:
        return False
    if not all(texts):
        return False
    parts.extend(texts)
    return True


@functools.cache
def _field_names(kind: type[Any]) -> tuple[str, ...] | None:
    if issubclass(kind, Struct):
        names: tuple[str, ...] = kind.__struct_fields__
        return names
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    return None


def plan_to_data(plan: Plan, *, causes_once: bool = False) -> dict[str, Any]:
    """A plan as builtins: equal plans give equal data, and every part of a plan shows in it.

    One cause may hold thousands of pods and name hundreds. `causes_once`: each cause stands in a list of its own, and
    whoever it holds names its number there. That is what programs take; people read a dump from where they are.
    """
    shared = {id(cause): cause for held in plan.held for cause in held.causes}
    causes: dict[int, Any] = {key: _cause_to_data(cause) for key, cause in shared.items()}
    apart: dict[str, Any] = {}
    if causes_once:
        apart["causes"] = list(causes.values())
        causes = {key: number for number, key in enumerate(causes)}
    return {
        "phases": [
            {
                "name": phase.name,
                "onError": phase.on_error.value,
                "slowStart": phase.slow_start,
                "unlessDone": list(phase.unless_done),
                "alongside": phase.alongside,
                "pauseAfter": phase.pause_after,
                "detaches": phase.detaches,
                "mark": phase.mark,
                "urgency": phase.urgency.name,
                **({"notAfter": format_time(phase.not_after)} if phase.not_after is not None else {}),
                "chains": [_chain_to_data(chain) for chain in phase.chains],
            }
            for phase in plan.phases
        ],
        **apart,
        "held": [
            {"target": target_to_data(held.target), "causes": [causes[id(cause)] for cause in held.causes]}
            for held in plan.held
        ],
        "wakes": [{"after": wake.after, "reason": wake.reason} for wake in plan.wakes],
        "memo": plain(plan.memo),
        **_jobs_to_data(plan),
    }


def _jobs_to_data(plan: Plan) -> dict[str, Any]:
    """Only the plans of a node have any."""
    jobs = [
        {"name": job.name, "call": plain(job.call), "seconds": job.seconds, "toTheEnd": job.to_the_end}
        for job in plan.jobs
    ]
    return {**({"jobs": jobs} if jobs else {}), **({"drops": list(plan.drops)} if plan.drops else {})}


def _cause_to_data(cause: Cause) -> dict[str, Any]:
    return {
        "code": cause.code,
        "message": cause.message,
        "details": plain(cause.details),
        "remedy": cause.remedy,
    }


def _chain_to_data(chain: Chain) -> list[dict[str, Any]]:
    return [action_to_data(action) for action in chain]


def action_to_data(action: Action) -> dict[str, Any]:
    fields = {
        field.name: plain(getattr(action, field.name))
        for field in dataclasses.fields(action)
        if field.name not in ("verb", "target", "reason")
    }
    given = {name: value for name, value in fields.items() if value not in (None, "", False)}
    return {"verb": action.verb.value, "target": target_to_data(action.target), "reason": action.reason, **given}


def target_to_data(target: Target) -> dict[str, str]:
    resource = target.resource
    return {
        "group": resource.group,
        "version": resource.version,
        "plural": resource.plural,
        "namespace": target.namespace,
        "name": target.name,
    }


def plain(value: Any) -> Any:
    """Builtins of whatever a plan may hold."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, frozenset | set):
        return sorted((plain(item) for item in value), key=canonical)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Target):
        return target_to_data(value)
    # By way of JSON, since raw templates are known there only.
    return decode(encode(value), cast(Any, Any))
