"""A claim: find or make its volume, bind both, keep it while it is used (decisions).

Binding takes three writes in an order that may break off anywhere: the volume names the claim, the claim names the
volume, the status of both follows. The phase of the volume is `volumes`' business.
"""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import Any

from kruise.api.native.nodes import Node
from kruise.api.native.storage import (
    BIND_COMPLETED,
    DEFAULT_CLASS,
    NO_PROVISIONER,
    SELECTED_NODE,
    StorageClass,
    is_bound,
    refers_to_claim,
    waits_for_consumer,
)
from kruise.local.storage_binding.objects import (
    BOUND_BY_CONTROLLER,
    CLAIM_PROTECTION,
    CLAIMS,
    LOCAL_PROVISIONER,
    PROVISIONED_BY,
    PROVISIONER,
    PROVISIONER_BETA,
    VOLUME_PROTECTION,
    VOLUMES,
    Claim,
    Volume,
)
from kruise.machinery import plan as plans
from kruise.machinery.client.requests import PatchType
from kruise.machinery.codec import Struct
from kruise.machinery.plan import (
    Action,
    Conclusion,
    EventNote,
    EventType,
    Outcomes,
    Phase,
    Plan,
    Result,
    Target,
)
from kruise.scheduling.matching import best_volume, capacity, mismatch, requested

HOSTNAME = "kubernetes.io/hostname"
_DIRECTORY = "/var/lib/kruise/volumes"


class Snapshot(Struct):
    now: datetime
    claim: Claim
    volumes: tuple[Volume, ...]
    """All of them while the claim is not bound, then its own."""
    storage_classes: tuple[StorageClass, ...]
    users: tuple[str, ...]
    """Names of the pods that use the claim and have not ended."""
    unplaced_user: str = ""
    """One of them that has no node yet."""
    node: Node | None = None
    """The node that the scheduler has chosen for the first consumer."""


@dataclasses.dataclass(slots=True)
class _Course:
    """What a pass does about a claim."""

    phase: str = ""
    """What the status should say; empty: nothing is decided."""
    volume: Volume | None = None
    """The volume that the claim is bound to, once everything is written."""
    chain: list[Action] = dataclasses.field(default_factory=list)
    events: list[EventNote] = dataclasses.field(default_factory=list)
    provisioned: str = ""
    is_grown: bool = False
    capacity: dict[str, Any] = dataclasses.field(default_factory=dict)
    access_modes: tuple[str, ...] = ()


def decide(snapshot: Snapshot) -> Plan:
    chain = _course(snapshot).chain
    return Plan(phases=(Phase(name="bind", chains=(tuple(chain),)),) if chain else ())


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    claim, course = snapshot.claim, _course(snapshot)
    events = list(course.events)
    if course.provisioned and any(_is_made(item.action.target) and item.result is Result.DONE for item in outcomes):
        message = f"Successfully provisioned volume {course.provisioned}"
        events.append(EventNote(reason="ProvisioningSucceeded", message=message))
    if course.is_grown and any(_is_made(item.action.target) and item.result is Result.DONE for item in outcomes):
        events.append(EventNote(reason="VolumeResizeSuccessful", message="Resize volume succeeded"))
    if any(item.result is not Result.DONE for item in outcomes) or not course.phase:
        return Conclusion(events=tuple(events))
    status: dict[str, Any] = {"phase": course.phase}
    if course.phase == "Bound":
        status |= {"accessModes": list(course.access_modes), "capacity": course.capacity}
    current: dict[str, Any] = {"phase": claim.status.phase}
    if course.phase == "Bound":
        current |= {"accessModes": list(claim.status.access_modes), "capacity": dict(claim.status.capacity)}
    write = None
    if status != current:
        write = plans.patch(
            Target.of(CLAIMS, claim),
            {"status": status},
            uid=claim.metadata.uid,
            reason="the phase of the claim",
            subresource="status",
        )
    return Conclusion(status=write, events=tuple(events))


def _is_made(target: Target) -> bool:
    return target.resource is VOLUMES


def _course(snapshot: Snapshot) -> _Course:
    claim, course = snapshot.claim, _Course()
    protected = CLAIM_PROTECTION in claim.metadata.finalizers
    if claim.metadata.deletion_timestamp is not None:
        if protected and not snapshot.users:
            change = {"metadata": {"$deleteFromPrimitiveList/finalizers": [CLAIM_PROTECTION]}}
            course.chain.append(_patch(claim, change, "nothing uses the claim any more", PatchType.STRATEGIC))
        return course
    if not protected:
        change = {"metadata": {"finalizers": [CLAIM_PROTECTION]}}
        course.chain.append(_patch(claim, change, "a claim in use must not go", PatchType.STRATEGIC))
    if is_bound(claim) or (claim.status.phase == "Bound" and BIND_COMPLETED in claim.metadata.annotations):
        _check_bound(snapshot, course)
    elif claim.spec.volume_name:
        _bind_requested(snapshot, course)
    else:
        _find(snapshot, course)
    return course


def _patch(claim: Claim, body: dict[str, Any], reason: str, kind: PatchType = PatchType.MERGE) -> Action:
    return plans.patch(Target.of(CLAIMS, claim), body, uid=claim.metadata.uid, reason=reason, patch_type=kind)


def _warn(course: _Course, reason: str, message: str) -> None:
    course.events.append(EventNote(reason=reason, message=message, type=EventType.WARNING))


def _check_bound(snapshot: Snapshot, course: _Course) -> None:
    claim = snapshot.claim
    volume = _named(snapshot, claim.spec.volume_name)
    if volume is not None and (volume.spec.claim_ref is None or refers_to_claim(volume, claim)):
        _bind(course, claim, volume)
        _grow(course, claim, volume)
        return
    course.phase = "Lost"
    if claim.status.phase == "Lost":
        return
    if volume is None:
        _warn(course, "ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!")
    else:
        words = "Two claims are bound to the same volume, this one is bound incorrectly"
        _warn(course, "ClaimMisbound", words)


def _named(snapshot: Snapshot, name: str) -> Volume | None:
    return next((volume for volume in snapshot.volumes if volume.metadata.name == name), None)


def _bind_requested(snapshot: Snapshot, course: _Course) -> None:
    """The claim asks for one certain volume."""
    claim = snapshot.claim
    course.phase = "Pending"
    volume = _named(snapshot, claim.spec.volume_name)
    if volume is None:
        return
    if volume.spec.claim_ref is not None and not refers_to_claim(volume, claim):
        _warn(course, "FailedBinding", f'volume "{volume.metadata.name}" already bound to a different claim.')
        return
    problem = mismatch(volume, claim) if volume.spec.claim_ref is None else ""
    if problem:
        _warn(course, "VolumeMismatch", f'Cannot bind to requested volume "{volume.metadata.name}": {problem}')
        return
    _bind(course, claim, volume)


def _find(snapshot: Snapshot, course: _Course) -> None:
    """Any volume will do that fits; where there is none, one is made."""
    claim = snapshot.claim
    storage_class = _class(snapshot)
    waits = waits_for_consumer(storage_class)
    volumes = snapshot.volumes
    if waits and snapshot.node is None:
        volumes = tuple(volume for volume in volumes if refers_to_claim(volume, claim))
    volume = best_volume(claim, volumes, snapshot.node if waits else None)
    if volume is not None:
        _bind(course, claim, volume)
        return
    course.phase = "Pending"
    if claim.spec.storage_class_name is None:
        chosen = _default_class(snapshot)
        if chosen is not None:
            change = {"spec": {"storageClassName": chosen.metadata.name}}
            course.chain.append(_patch(claim, change, "the default storage class"))
            return
    if waits and SELECTED_NODE not in claim.metadata.annotations:
        _report_waiting(snapshot, course)
    elif not claim.spec.storage_class_name:
        words = "no persistent volumes available for this claim and no storage class is set"
        course.events.append(EventNote(reason="FailedBinding", message=words))
    elif storage_class is None:
        name = claim.spec.storage_class_name
        _warn(course, "ProvisioningFailed", f'storageclass.storage.k8s.io "{name}" not found')
    elif storage_class.provisioner == LOCAL_PROVISIONER:
        if not waits or snapshot.node is not None:
            _provision(snapshot, course, storage_class)
    elif storage_class.provisioner != NO_PROVISIONER:
        _ask_provisioner(course, claim, storage_class.provisioner)


def _class(snapshot: Snapshot) -> StorageClass | None:
    name = snapshot.claim.spec.storage_class_name
    return next((item for item in snapshot.storage_classes if item.metadata.name == name), None)


def _default_class(snapshot: Snapshot) -> StorageClass | None:
    """The newest of the classes that are marked as default."""
    marked = [item for item in snapshot.storage_classes if item.metadata.annotations.get(DEFAULT_CLASS) == "true"]
    marked.sort(key=lambda item: item.metadata.name)
    marked.sort(key=lambda item: item.metadata.creation_timestamp or snapshot.now, reverse=True)
    return marked[0] if marked else None


def _report_waiting(snapshot: Snapshot, course: _Course) -> None:
    if snapshot.unplaced_user:
        words = f"waiting for pod {snapshot.unplaced_user} to be scheduled"
        course.events.append(EventNote(reason="WaitForPodScheduled", message=words))
    else:
        words = "waiting for first consumer to be created before binding"
        course.events.append(EventNote(reason="WaitForFirstConsumer", message=words))


def _ask_provisioner(course: _Course, claim: Claim, provisioner: str) -> None:
    known = claim.metadata.annotations
    wanted = {PROVISIONER: provisioner, PROVISIONER_BETA: provisioner}
    if any(known.get(key) != text for key, text in wanted.items()):
        course.chain.append(_patch(claim, {"metadata": {"annotations": wanted}}, "its provisioner looks for it"))
    words = (
        f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the "
        "system administrator. If volume creation is delayed, please verify that the provisioner is running and "
        "correctly registered."
    )
    course.events.append(EventNote(reason="ExternalProvisioning", message=words))


# Writes


def _bind(course: _Course, claim: Claim, volume: Volume) -> None:
    reference = volume.spec.claim_ref
    if reference is None or reference.uid != claim.metadata.uid:
        change: dict[str, Any] = {"spec": {"claimRef": _reference(claim)}}
        if reference is None:
            change["metadata"] = {"annotations": {BOUND_BY_CONTROLLER: "yes"}}
        course.chain.append(
            plans.patch(
                Target.of(VOLUMES, volume),
                change,
                uid=volume.metadata.uid,
                # Two claims may want the same volume at the same time.
                resource_version=volume.metadata.resource_version,
                reason="the volume is the claim's",
            )
        )
    _name_volume(course, claim, volume.metadata.name)
    course.phase, course.volume = "Bound", volume
    course.capacity, course.access_modes = dict(volume.spec.capacity), volume.spec.access_modes


def _grow(course: _Course, claim: Claim, volume: Volume) -> None:
    """A volume of our own is a directory, so it has room for whatever the API server let the claim ask for."""
    wanted = requested(claim)
    if volume.metadata.annotations.get(PROVISIONED_BY) != LOCAL_PROVISIONER or wanted <= capacity(volume):
        return
    size = {"storage": str(wanted)}
    course.chain.append(
        plans.patch(
            Target.of(VOLUMES, volume),
            {"spec": {"capacity": size}},
            uid=volume.metadata.uid,
            reason="its claim has grown",
        )
    )
    course.is_grown, course.capacity = True, {**course.capacity, **size}


def _name_volume(course: _Course, claim: Claim, name: str, provisioner: str = "") -> None:
    annotations = {PROVISIONER: provisioner} if provisioner else {}
    change: dict[str, Any] = {}
    if claim.spec.volume_name != name:
        change["spec"] = {"volumeName": name}
        annotations[BOUND_BY_CONTROLLER] = "yes"
    if BIND_COMPLETED not in claim.metadata.annotations:
        annotations[BIND_COMPLETED] = "yes"
    if annotations:
        change["metadata"] = {"annotations": annotations}
    if change:
        course.chain.append(_patch(claim, change, f"volume {name} fits"))


def _reference(claim: Claim) -> dict[str, str]:
    metadata = claim.metadata
    return {
        "apiVersion": CLAIMS.api_version,
        "kind": CLAIMS.kind,
        "namespace": metadata.namespace,
        "name": metadata.name,
        "uid": metadata.uid,
        "resourceVersion": metadata.resource_version,
    }


def _provision(snapshot: Snapshot, course: _Course, storage_class: StorageClass) -> None:
    """Make a volume for the claim, and bind it."""
    claim = snapshot.claim
    name = f"pvc-{claim.metadata.uid}"
    size = {"storage": str(requested(claim))}
    spec: dict[str, Any] = {
        "capacity": size,
        "accessModes": list(claim.spec.access_modes),
        "volumeMode": claim.spec.volume_mode or "Filesystem",
        "persistentVolumeReclaimPolicy": storage_class.reclaim_policy or "Delete",
        "storageClassName": storage_class.metadata.name,
        "claimRef": _reference(claim),
        "hostPath": {
            "path": f"{_DIRECTORY}/{name}_{claim.metadata.namespace}_{claim.metadata.name}",
            "type": "DirectoryOrCreate",
        },
    }
    if snapshot.node is not None:
        host = snapshot.node.metadata.labels.get(HOSTNAME, snapshot.node.metadata.name)
        here = {"key": HOSTNAME, "operator": "In", "values": [host]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}
    body = {
        "apiVersion": VOLUMES.api_version,
        "kind": VOLUMES.kind,
        "metadata": {
            "name": name,
            "annotations": {PROVISIONED_BY: storage_class.provisioner},
            "finalizers": [VOLUME_PROTECTION],
        },
        "spec": spec,
    }
    course.chain.append(plans.create(VOLUMES, body, reason="no volume fits the claim"))
    _name_volume(course, claim, name, storage_class.provisioner)
    course.provisioned = name
    course.phase = "Bound"
    course.capacity, course.access_modes = dict(size), claim.spec.access_modes
