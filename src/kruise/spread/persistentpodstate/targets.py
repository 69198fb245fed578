"""Workloads whose pods are remembered: which kinds, and how they are found (PPS-3, PPS-4, PPS-16)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from kruise.api.apps.persistentpodstate import PERSISTENT_POD_STATES, PersistentPodState
from kruise.api.apps.shared import GROUP
from kruise.api.meta import Object, controller_of
from kruise.api.native.config import listed_workloads
from kruise.machinery.watched import Watched
from kruise.spread.persistentpodstate import keys

TARGET = "target"
"""Index of the PersistentPodStates by their workload."""
_GROUPS = ("apps", GROUP)
CUSTOM_OWNER = "custom-owner"
"""Index of the pods by their workload, if it is of a kind of others."""
_KNOWN_GROUPS = ("", "batch", *_GROUPS)
"""Of workloads of Kubernetes and our own: but for StatefulSets, their pods have no names to come back under."""


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

    @property
    def is_custom(self) -> bool:
        return self.group not in _KNOWN_GROUPS


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


def _custom_owner(obj: Object) -> Iterable[str]:
    owner = owner_of(obj)
    return (owner.value,) if owner is not None and owner.is_custom else ()


CUSTOM_OWNER_INDEX: Mapping[str, Callable[[Object], Iterable[str]]] = {CUSTOM_OWNER: _custom_owner}
WATCHED_STATES = Watched(PERSISTENT_POD_STATES, indexes={TARGET: lambda state: (target_of(state).value,)})


def whitelisted(data: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    """Groups and kinds that the ConfigMap lists; None: there is none. Raises WhitelistError."""
    entries = listed_workloads(data, keys.WHITELIST)
    return tuple(dict.fromkeys((str(one.get("group", "")), str(one.get("kind", ""))) for one in entries))
