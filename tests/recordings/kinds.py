"""What the player must know of a kind: a kind brings this, its recordings and its listed differences, and no code."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Protocol

from kruise.api.resource import Resource
from kruise.machinery.clock import Clock
from tests.recordings.parsing import Json


class Promises(Protocol):
    """Watches what happens, and notes every broken promise."""

    broken: list[str]
    checked: int

    def touched(self, name: str) -> None:
        """A user is about to change the pod."""
        ...

    def deleted(self, name: str) -> None:
        """A user is about to delete the pod."""
        ...

    def see_workload(self, kind: str, workload: Json) -> None: ...

    def see_pod(self, kind: str, pod: Json) -> None: ...


def unchanged(document: Json) -> Json:
    return document


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RecordedKind:
    resource: Resource[Any]
    """In the version that the recordings have."""
    promises: Callable[[Clock], Promises]
    names_pods: bool = False
    """Its pods have names of their own, also in the recordings. Otherwise they are numbered there."""
    is_per_node: bool = False
    """What tells its pods apart is their node; every node of the recordings has one."""
    has_states: bool = True
    """New pods carry a lifecycle state."""
    manifest_in_other: Callable[[Json], Json] = unchanged
    patch_in_other: Callable[[Json], Json] = unchanged
    """What the recordings wrote, in the version that they are not in."""

    @property
    def kind(self) -> str:
        return self.resource.kind

    @property
    def component(self) -> str:
        return f"{self.kind.lower()}-controller"
