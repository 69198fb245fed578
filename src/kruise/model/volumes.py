"""Claims and their volumes: what binds them, and what that means for the places of pods.

Where volumes were read, claims are bound as in a cluster: each gets the volume that fits it, at once or when its first
pod has a node; or a new one, which every node is taken to reach. Where they were not read, every claim is served, and
ties no pod to any node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

from kruise.api.meta import Key, Object, ObjectMeta, key_of
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import Pod
from kruise.api.native.storage import (
    BIND_COMPLETED,
    DEFAULT_CLASS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    ClaimReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    StorageClass,
    claim_names,
    is_bound,
    provisions,
    waits_for_consumer,
)
from kruise.machinery.codec import evolve
from kruise.machinery.store import Store
from kruise.model.world import World
from kruise.scheduling.claims import Needs, Storage
from kruise.scheduling.matching import best_volume

K = TypeVar("K")
T = TypeVar("T", bound=Object)


class Volumes:
    def __init__(self, world: World, *, are_known: bool) -> None:
        """`are_known`: all volumes, their classes, and all claims that pods may mount are in the world."""
        self._world = world
        self._are_known = are_known
        self._storage = Storage(
            claims=_Stored(world.store(PERSISTENT_VOLUME_CLAIMS), key_of, lambda key: key),
            volumes=_Stored(world.store(PERSISTENT_VOLUMES), _name, lambda name: Key("", name)),
            classes=_Stored(world.store(STORAGE_CLASSES), _name, lambda name: Key("", name)),
            are_all=False,  # whoever looks ahead may be about to make it, too
        )

    def claims_of(self, pod: Pod) -> Needs | None:
        """What its claims mean for the place of a pod; None: nothing, as far as anybody knows."""
        return self._storage.claims_of(pod) if self._are_known else None

    def serve(self, claim: PersistentVolumeClaim) -> None:
        """A claim that is new, or was let to ask for more than it has."""
        if is_bound(claim) or not self._are_known:
            self._put(claim, dict(claim.spec.resources.requests))
            return
        claim = self._with_class(claim)
        if not waits_for_consumer(self._class_of(claim)):
            self._bind(claim, best_volume(claim, self._storage.volumes.values()))

    def placed(self, pod: Pod, node: str) -> None:
        """A pod has got a node: those of its claims that waited for that are bound."""
        there = self._world.store(NODES).get("", node)
        for name in claim_names(pod) if self._are_known else ():
            claim = self._storage.claims.get(Key(pod.metadata.namespace, name))
            if claim is not None and not is_bound(claim):
                self._bind(claim, best_volume(claim, self._storage.volumes.values(), there))

    def _bind(self, claim: PersistentVolumeClaim, volume: PersistentVolume | None) -> None:
        if volume is None:
            if not provisions(self._class_of(claim)):
                return  # it waits until somebody makes one
            metadata = ObjectMeta(name=f"pvc-{claim.metadata.uid}", uid=f"{claim.metadata.uid}-volume")
            spec = PersistentVolumeSpec(
                capacity={name: str(amount) for name, amount in claim.spec.resources.requests.items()},
                access_modes=claim.spec.access_modes,
                storage_class_name=claim.spec.storage_class_name or "",
                volume_mode=claim.spec.volume_mode,
            )
            volume = PersistentVolume(metadata=metadata, spec=spec)
        about = claim.metadata
        reference = ClaimReference(namespace=about.namespace, name=about.name, uid=about.uid)
        volume = evolve(
            volume,
            spec=evolve(volume.spec, claim_ref=reference),
            status=evolve(volume.status, phase="Bound"),
        )
        self._world.put(PERSISTENT_VOLUMES, volume)
        bound = evolve(
            claim,
            metadata=evolve(about, annotations={**about.annotations, BIND_COMPLETED: "yes"}),
            spec=evolve(claim.spec, volume_name=volume.metadata.name),
        )
        self._put(bound, dict(volume.spec.capacity))

    def _put(self, claim: PersistentVolumeClaim, capacity: Mapping[str, str | int | float]) -> None:
        has = {name: str(amount) for name, amount in capacity.items()}
        after = evolve(claim, status=evolve(claim.status, phase="Bound", capacity=has))
        if after != self._storage.claims.get(key_of(claim)):
            self._world.put(PERSISTENT_VOLUME_CLAIMS, after)

    def _class_of(self, claim: PersistentVolumeClaim) -> StorageClass | None:
        return self._storage.classes.get(claim.spec.storage_class_name or "")

    def _with_class(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """An API server gives the default class to claims that name none: the newest of several."""
        if claim.spec.storage_class_name is not None:
            return claim
        classes = self._storage.classes.values()
        chosen = [one for one in classes if one.metadata.annotations.get(DEFAULT_CLASS) == "true"]
        if not chosen:
            return claim
        newest = max(chosen, key=lambda one: (str(one.metadata.creation_timestamp or ""), one.metadata.name))
        spec = evolve(claim.spec, storage_class_name=newest.metadata.name)
        return self._world.put(PERSISTENT_VOLUME_CLAIMS, evolve(claim, spec=spec))


class _Stored(Mapping[K, T], Generic[K, T]):
    """The objects of a store, as they are at each moment."""

    def __init__(self, store: Store[T], named: Callable[[T], K], at: Callable[[K], Key]) -> None:
        self._store = store
        self._named = named
        self._at = at

    def __getitem__(self, key: K) -> T:
        found = self._store.get(*self._at(key))
        if found is None:
            raise KeyError(key)
        return found

    def __iter__(self) -> Iterator[K]:
        return map(self._named, self._store.list())

    def __len__(self) -> int:
        return len(self._store)


def _name(obj: Object) -> str:
    return obj.metadata.name
