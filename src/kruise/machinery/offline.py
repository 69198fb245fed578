"""A kind's decision over objects that were read once: no watch, no manager, no writes. Pure.

view = view_of(spec, {CLONE_SETS: (cloneset,), PODS: pods, ...}, now=now, gates=gates)
snapshot = spec.snapshot(view, key)
plan = spec.decide(snapshot) if snapshot is not None else Plan()
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar, cast

from kruise.api.meta import Object
from kruise.api.resource import Resource
from kruise.machinery.spec import ControllerSpec, View
from kruise.machinery.store import Store, parse_version
from kruise.machinery.watched import Watched, watched

T = TypeVar("T", bound=Object)

Objects = Mapping[Resource[Any], Sequence[Any]]
"""Decoded objects by kind. A kind that is not there at all counts as one that the cluster does not serve."""


class ReadStores:
    """The stores that the sources of a controller ask for, filled with what was read. Without a controller those of the
    kinds that were read, without indexes."""

    def __init__(self, spec: ControllerSpec[Any] | None, objects: Objects) -> None:
        self._stores: dict[Resource[Any], Store[Any]] = {}
        kinds = [watched(kind) for kind in objects] if spec is None else [one.watched for one in spec.all_sources]
        for kind in kinds:
            self._add(kind, objects)

    def _add(self, kind: Watched[Any], objects: Objects) -> None:
        resource = kind.resource
        known = self._stores.get(resource)
        if known is not None:
            known.add_indexes(kind)
            return
        store = self._stores[resource] = Store(kind)
        found = objects.get(resource)
        if found is not None:
            # Only their order among each other matters, and nothing comes after them.
            newest = max((parse_version(obj.metadata.resource_version, resource) for obj in found), default=0)
            store.replace(found, newest)

    def store(self, resource: Resource[T]) -> Store[T]:
        try:
            return cast(Store[T], self._stores[resource])
        except KeyError:
            raise LookupError(f"{resource.api_version} {resource} is no source of this controller") from None


def view_of(
    spec: ControllerSpec[Any],
    objects: Objects,
    *,
    now: datetime,
    gates: Mapping[str, bool],
    server_version: Any = None,
    seed: int = 0,
) -> View:
    """What a controller's snapshot sees of these objects at a moment."""
    stores = ReadStores(spec, objects)
    # Nothing is written, so nobody has to wait for the writes of others.
    return View(stores, now=now, seed=seed, gates=gates, server_version=server_version, capacity=sys.maxsize)
