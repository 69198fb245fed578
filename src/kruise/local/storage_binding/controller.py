"""How claims and volumes are watched, and the storage class that a local cluster begins with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kruise.api.meta import Key, key_of
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS, Pod
from kruise.api.native.storage import DEFAULT_CLASS, SELECTED_NODE, STORAGE_CLASSES, is_bound
from kruise.local.storage_binding import claims, volumes
from kruise.local.storage_binding.objects import CLAIMS, LOCAL_PROVISIONER, VOLUMES, Claim, Volume
from kruise.machinery.spec import ControllerSpec, Source, Stores, View, no_keys, own_key
from kruise.machinery.watched import Watched

CLAIM_CONTROLLER = "persistentvolume-controller"
VOLUME_CONTROLLER = "persistentvolume-reclaimer"
USERS = "storage/claims"
BY_CLAIM = "storage/claim"
UNBOUND = "storage/unbound"

DEFAULT_STORAGE_CLASS: Mapping[str, Any] = {
    "apiVersion": STORAGE_CLASSES.api_version,
    "kind": STORAGE_CLASSES.kind,
    "metadata": {"name": "standard", "annotations": {DEFAULT_CLASS: "true"}},
    "provisioner": LOCAL_PROVISIONER,
    "reclaimPolicy": "Delete",
    "volumeBindingMode": "Immediate",
    "allowVolumeExpansion": True,
}
"""Binds at once and on any node, and lets claims grow: claims of a local cluster are there to be used, not to be waited
for."""


def specs() -> tuple[ControllerSpec[Any], ...]:
    return (claim_spec(), volume_spec())


def _claims_of(pod: Pod) -> list[Key]:
    sources = (volume.persistent_volume_claim for volume in pod.spec.volumes)
    return [Key(pod.metadata.namespace, source.claim_name) for source in sources if source is not None]


def _by_used_claim(pod: Pod) -> tuple[str, ...]:
    if not pod.spec.volumes or pod.status.phase in ("Succeeded", "Failed"):
        return ()
    return tuple(str(key) for key in _claims_of(pod))


def _claim_of(volume: Volume) -> Key | None:
    reference = volume.spec.claim_ref
    return Key(reference.namespace, reference.name) if reference is not None else None


def _by_claim(volume: Volume) -> tuple[str, ...]:
    key = _claim_of(volume)
    return (str(key),) if key is not None else ()


def _unbound(claim: Claim) -> tuple[str, ...]:
    return () if is_bound(claim) else ("all",)


def claim_spec() -> ControllerSpec[claims.Snapshot]:
    def unbound_keys(old: object, new: object, stores: Stores) -> Iterable[Key]:
        return [key_of(claim) for claim in stores.store(CLAIMS).by_index(UNBOUND, "all")]

    def volume_keys(old: Volume | None, new: Volume | None, stores: Stores) -> Iterable[Key]:
        for volume in (old, new):
            key = _claim_of(volume) if volume is not None else None
            if key is not None:
                yield key
        if new is not None and new.spec.claim_ref is None and (old is None or old.status.phase != new.status.phase):
            yield from unbound_keys(old, new, stores)

    def pod_keys(old: Pod | None, new: Pod | None, stores: Stores) -> Iterable[Key]:
        """A claim may go when its last pod has ended, and one that waits wants to know its first."""
        pod = new if new is not None else old
        if pod is None or not pod.spec.volumes:
            return ()
        ended = new is None or new.status.phase in ("Succeeded", "Failed")
        return _claims_of(pod) if ended or old is None else ()

    return ControllerSpec(
        name=CLAIM_CONTROLLER,
        subject=CLAIMS,
        sources=(
            Source(Watched(CLAIMS, indexes={UNBOUND: _unbound}), own_key),
            Source(Watched(VOLUMES, indexes={BY_CLAIM: _by_claim}), volume_keys),
            Source(STORAGE_CLASSES, unbound_keys),
            Source(Watched(PODS, indexes={USERS: _by_used_claim}), pod_keys),
            Source(NODES, no_keys),
        ),
        snapshot=_claim_snapshot,
        decide=claims.decide,
        conclude=claims.conclude,
        snapshot_type=claims.Snapshot,
        # One at a time: two claims must not choose the same volume.
        workers=1,
    )


def _claim_snapshot(view: View, key: Key) -> claims.Snapshot | None:
    claim = view.store(CLAIMS).get(*key)
    if claim is None:
        return None
    store = view.store(VOLUMES)
    own = store.get("", claim.spec.volume_name) if is_bound(claim) else None
    candidates = store.list() if not is_bound(claim) else (own,) if own is not None else ()
    users = view.store(PODS).by_index(USERS, str(key))
    unplaced = next((pod.metadata.name for pod in users if not pod.spec.node_name), "")
    node = claim.metadata.annotations.get(SELECTED_NODE, "")
    return claims.Snapshot(
        now=view.now,
        claim=claim,
        volumes=candidates,
        storage_classes=view.store(STORAGE_CLASSES).list(),
        users=tuple(pod.metadata.name for pod in users),
        unplaced_user=unplaced,
        node=view.store(NODES).get("", node) if node else None,
    )


def volume_spec() -> ControllerSpec[volumes.Snapshot]:
    def claim_keys(old: Claim | None, new: Claim | None, stores: Stores) -> Iterable[Key]:
        return {Key("", claim.spec.volume_name) for claim in (old, new) if claim is not None and claim.spec.volume_name}

    return ControllerSpec(
        name=VOLUME_CONTROLLER,
        subject=VOLUMES,
        sources=(Source(VOLUMES, own_key), Source(CLAIMS, claim_keys)),
        snapshot=_volume_snapshot,
        decide=volumes.decide,
        conclude=volumes.conclude,
        snapshot_type=volumes.Snapshot,
    )


def _volume_snapshot(view: View, key: Key) -> volumes.Snapshot | None:
    volume = view.store(VOLUMES).get(*key)
    if volume is None:
        return None
    claim = _claim_of(volume)
    return volumes.Snapshot(
        now=view.now, volume=volume, claim=view.store(CLAIMS).get(*claim) if claim is not None else None
    )
