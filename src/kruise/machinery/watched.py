"""What is looked at: a kind, and by what its objects are found. Pure.

A kind's folder declares it once, as a constant. Its controllers name it in their sources, its webhooks and pod steps in
`needs`; so the same indexes are there with every `--role`, offline and in forecasts:

    SIDECAR_SETS_BY_POD = Watched(SIDECAR_SETS, selectors={PODS_OF: _selectors})
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from kruise.api.meta import Object
from kruise.api.resource import Resource
from kruise.machinery.indexes import IndexFunction
from kruise.machinery.selector_index import SelectorFunction

T = TypeVar("T", bound=Object)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Watched(Generic[T]):
    """A kind that is watched. All who watch a kind share its objects: their indexes are merged, and they must agree on
    `trim`."""

    resource: Resource[T] = dataclasses.field(kw_only=False)
    indexes: Mapping[str, IndexFunction[T]] = dataclasses.field(default_factory=dict)
    """For `Store.by_index`."""
    selectors: Mapping[str, SelectorFunction[T]] = dataclasses.field(default_factory=dict)
    """For `Store.selecting`."""
    trim: Callable[[T], T] | None = None
    """Makes an object smaller before it is kept; it must keep name, namespace, uid and resourceVersion."""
    labels: str = ""
    fields: str = ""
    """Selectors: the part of the kind that is watched at all. The server sends nothing else."""
    optional: bool = False
    """The cluster may not serve this kind, and nobody waits for it. Ask its store whether it is `synced`."""


Kinds = tuple[Resource[Any] | Watched[Any], ...]


def watched(kind: Resource[T] | Watched[T]) -> Watched[T]:
    """A kind without more is one without indexes."""
    return kind if isinstance(kind, Watched) else Watched(kind)
