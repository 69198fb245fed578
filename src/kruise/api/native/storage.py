"""Claims and volumes, with every field that binding and scheduling read."""

from __future__ import annotations

from kruise.api.meta import Condition, LabelSelector, ObjectMeta
from kruise.api.native.pod import NodeSelector, Pod
from kruise.api.resource import Resource
from kruise.machinery.codec import Struct, field


class VolumeResourceRequirements(Struct):
    requests: dict[str, str | int | float] = field(default_factory=dict)
    limits: dict[str, str | int | float] = field(default_factory=dict)


class PersistentVolumeClaimSpec(Struct):
    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: VolumeResourceRequirements = VolumeResourceRequirements()
    storage_class_name: str | None = None
    volume_name: str = ""
    volume_mode: str = ""


class PersistentVolumeClaimStatus(Struct):
    phase: str = ""
    access_modes: tuple[str, ...] = ()
    capacity: dict[str, str] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()


class PersistentVolumeClaim(Struct):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class ClaimReference(Struct):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class VolumeNodeAffinity(Struct):
    required: NodeSelector | None = None


class PersistentVolumeSpec(Struct):
    capacity: dict[str, str] = field(default_factory=dict)
    access_modes: tuple[str, ...] = ()
    claim_ref: ClaimReference | None = None
    storage_class_name: str = ""
    volume_mode: str = ""
    persistent_volume_reclaim_policy: str = ""
    node_affinity: VolumeNodeAffinity | None = None


class PersistentVolumeStatus(Struct):
    phase: str = ""


class PersistentVolume(Struct):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class StorageClass(Struct):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    provisioner: str = ""
    reclaim_policy: str = "Delete"
    allow_volume_expansion: bool | None = None
    volume_binding_mode: str = "Immediate"


PERSISTENT_VOLUME_CLAIMS = Resource(
    "", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", True, PersistentVolumeClaim
)
PERSISTENT_VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", False, PersistentVolume)
STORAGE_CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", False, StorageClass)

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
"""The class of volumes that somebody else makes beforehand."""


def is_bound(claim: PersistentVolumeClaim) -> bool:
    return claim.spec.volume_name != "" and BIND_COMPLETED in claim.metadata.annotations


def waits_for_consumer(storage_class: StorageClass | None) -> bool:
    return storage_class is not None and storage_class.volume_binding_mode == "WaitForFirstConsumer"


def provisions(storage_class: StorageClass | None) -> bool:
    """Whether somebody makes volumes for claims of this class."""
    return storage_class is not None and storage_class.provisioner != NO_PROVISIONER


def refers_to_claim(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """The volume is the claim's, or promised to it by its name."""
    reference = volume.spec.claim_ref
    if reference is None or (reference.namespace, reference.name) != (claim.metadata.namespace, claim.metadata.name):
        return False
    return reference.uid in ("", claim.metadata.uid)


def claim_names(pod: Pod) -> list[str]:
    """The names of the claims that a pod mounts."""
    sources = (volume.persistent_volume_claim for volume in pod.spec.volumes)
    return [source.claim_name for source in sources if source is not None]
