"""What a pass sees: the distribution, the namespaces, and the objects that have the name of a copy.

Only whether a copy is as it should be gets into the snapshot, never what it holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from kruise.api.apps.resourcedistribution import RESOURCE_DISTRIBUTIONS, ResourceDistribution
from kruise.api.meta import Key, controller_of
from kruise.api.native.nodes import NAMESPACES
from kruise.machinery.codec import Struct, evolve, field
from kruise.machinery.spec import View
from kruise.operations.resourcedistribution import content

FROM = "kruise.io/resourcedistribution.resource.from"
HASH = "kruise.io/resourcedistribution.resource.hashcode"


class Place(Struct):
    """A namespace."""

    name: str
    labels: dict[str, str] = field(default_factory=dict)
    is_going: bool = False


class Copy(Struct):
    """An object that has the kind and the name of a copy."""

    namespace: str
    uid: str
    resource_version: str = ""
    owner_uid: str = ""
    owner: str = ""
    """Kind and name of its controller."""
    differs: bool = False
    fields: tuple[str, ...] = ()
    """What it holds beside its metadata."""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    finalizers: tuple[str, ...] = ()


class Snapshot(Struct):
    distribution: ResourceDistribution
    places: tuple[Place, ...]
    copies: tuple[Copy, ...]
    now: datetime


class Reader:
    """What passes see. A copy that has not changed since the last pass is not read again: of a thousand namespaces, a
    change in one costs a look at one."""

    def __init__(self) -> None:
        self._known: dict[Key, _Known] = {}

    def snapshot(self, view: View, key: Key) -> Snapshot | None:
        distribution = view.store(RESOURCE_DISTRIBUTIONS).get(*key)
        if distribution is None:
            self._known.pop(key, None)
            return None
        places = [
            Place(
                name=namespace.metadata.name,
                labels=namespace.metadata.labels,
                is_going=namespace.metadata.deletion_timestamp is not None,
            )
            for namespace in view.store(NAMESPACES).list()
        ]
        return Snapshot(
            distribution=distribution,
            places=tuple(sorted(places, key=lambda place: place.name)),
            copies=tuple(self._copies(view, key, distribution, places)),
            now=view.now,
        )

    def _copies(self, view: View, key: Key, distribution: ResourceDistribution, places: list[Place]) -> list[Copy]:
        template = content.read(distribution.spec.resource)
        kind, name = content.kind_of(template), content.name_of(template)
        if kind is None or content.problem_of(template):
            return []
        store, wanted = view.store(kind), content.content_of(template)
        before = self._known.get(key)
        known = before.copies if before is not None and before.wanted == wanted else {}
        now: dict[str, tuple[Any, Copy]] = {}
        for place in places:
            obj = store.get(place.name, name)
            if obj is None:
                continue
            seen = known.get(place.name)
            now[place.name] = seen if seen is not None and seen[0] is obj else (obj, _copy(obj, wanted))
        self._known[key] = _Known(wanted, now)
        return [copy for _, copy in now.values()]


class _Known(NamedTuple):
    """Of one distribution, as the last pass saw it."""

    wanted: Mapping[str, Any]
    copies: Mapping[str, tuple[Any, Copy]]
    """By namespace: the object, which never changes itself, and what was read of it."""


def _copy(obj: Any, wanted: Mapping[str, Any]) -> Copy:
    owner, held = controller_of(obj), content.content_of_copy(obj)
    return Copy(
        namespace=obj.metadata.namespace,
        uid=obj.metadata.uid,
        resource_version=obj.metadata.resource_version,
        owner_uid=owner.uid if owner is not None else "",
        owner=f"{owner.kind} {owner.name}" if owner is not None else "",
        differs=held != wanted,
        fields=tuple(held),
        labels=obj.metadata.labels,
        annotations=obj.metadata.annotations,
        finalizers=obj.metadata.finalizers,
    )


def conceal(snapshot: Snapshot) -> Snapshot:
    """For the journal: without what people keep in a Secret, or in annotations that quote one."""
    distribution = snapshot.distribution
    spec = evolve(distribution.spec, resource=content.concealed(distribution.spec.resource))
    metadata = evolve(distribution.metadata, annotations=_hidden(distribution.metadata.annotations))
    copies = tuple(evolve(copy, annotations=_hidden(copy.annotations)) for copy in snapshot.copies)
    return evolve(snapshot, distribution=evolve(distribution, spec=spec, metadata=metadata), copies=copies)


def _hidden(annotations: Mapping[str, str]) -> dict[str, str]:
    return {key: value if key in (FROM, HASH) else content.HIDDEN for key, value in annotations.items()}
