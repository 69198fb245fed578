"""What a kind brings to the system, as one value that the manager, the installer and tests read.

A kind's folder ends in one `Feature`; nothing else has to know the kind.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from kruise.admission.chain import Mutate, PodStep
from kruise.admission.conversion import Convert
from kruise.admission.inventory import Entry
from kruise.admission.registry import Handler
from kruise.api.resource import Resource
from kruise.machinery.spec import ControllerSpec


class Settings(Protocol):
    """What a feature may ask about how it is run."""

    @property
    def gates(self) -> Mapping[str, bool]: ...

    @property
    def allow_privileged(self) -> bool: ...

    @property
    def own_namespace(self) -> str: ...

    @property
    def cloneset_exclude_preparing_delete(self) -> bool: ...

    def workers_of(self, name: str) -> int: ...


class PodMutation(NamedTuple):
    """A step of the pod admission chain."""

    step: PodStep
    mutate: Mutate
    needs: tuple[Resource[Any], ...] = ()


class Conversion(NamedTuple):
    """How objects of a kind go from one version to another."""

    group: str
    kind: str
    convert: Convert


def _nothing(settings: Settings) -> tuple[()]:
    return ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    name: str
    definitions: Sequence[Mapping[str, Any]] = ()
    """CustomResourceDefinitions, as they are installed."""
    controllers: Callable[[Settings], Sequence[ControllerSpec[Any]]] = _nothing
    """Controllers that run under these settings; a gate that is off leaves them out."""
    mutating_entries: Sequence[Entry] = ()
    validating_entries: Sequence[Entry] = ()
    """Registrations of kinds that the inventory of PyKruise's own kinds does not list."""
    webhooks: Callable[[Settings], Sequence[Handler]] = _nothing
    """Admission handlers that are active under these settings."""
    pod_mutations: Callable[[Settings], Sequence[PodMutation]] = _nothing
    """Steps of the pod admission chain that are active under these settings."""
    conversions: Sequence[Conversion] = ()
