"""Workloads whose pods are remembered: which kinds, and how they are found (PPS-3, PPS-4, PPS-16)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kruise.api.apps.persistentpodstate import PERSISTENT_POD_STATES, PersistentPodState
from kruise.api.apps.shared import GROUP
from kruise.api.meta import Object, controller_of
from kruise.machinery import codec
from kruise.machinery.watched import Watched
from kruise.spread.persistentpodstate import keys

TARGET = "target"
"""Index of the PersistentPodStates by their workload."""
_GROUPS = ("apps", GROUP)


class Workload(NamedTuple):
    """In whatever version."""

    namespace: str
    group: str
    kind: str
    name: str

    @property
    def value(self) -> str:
        """For the index."""
        return "/".join(self)


def is_supported(group: str, kind: str) -> bool:
    return kind == "StatefulSet" and group in _GROUPS


def target_of(state: PersistentPodState) -> Workload:
    reference = state.spec.target_ref
    return Workload(state.metadata.namespace, reference.group, reference.kind, reference.name)


def owner_of(obj: Object) -> Workload | None:
    """The workload that a pod belongs to."""
    reference = controller_of(obj)
    if reference is None:
        return None
    group = reference.api_version.rpartition("/")[0]
    return Workload(obj.metadata.namespace, group, reference.kind, reference.name)


WATCHED_STATES = Watched(PERSISTENT_POD_STATES, indexes={TARGET: lambda state: (target_of(state).value,)})


class WhitelistError(ValueError):
    """The list of further kinds cannot be read."""


def whitelisted(data: Mapping[str, str] | None) -> frozenset[tuple[str, str]]:
    """Groups and kinds that the ConfigMap lists; None: there is none. Raises WhitelistError."""
    text = (data or {}).get(keys.WHITELIST, "")
    if not text.strip():
        return frozenset()
    try:
        found = codec.decode(text.encode(), object)
    except codec.DecodeError as error:
        raise WhitelistError(f"ConfigMap {keys.CONFIGURATION}, {keys.WHITELIST}: {error}") from error
    workloads = _folded(found).get("workloads")
    entries = [_folded(item) for item in workloads] if isinstance(workloads, list) else []
    return frozenset((str(one.get("group", "")), str(one.get("kind", ""))) for one in entries)


def _folded(value: Any) -> dict[str, Any]:
    """Names come in any case."""
    return {str(key).lower(): item for key, item in value.items()} if isinstance(value, dict) else {}
