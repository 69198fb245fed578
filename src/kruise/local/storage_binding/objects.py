"""Claims, volumes and storage classes with every field that binding reads.

The slim structs of `kruise.api.native.storage` name only what features touch; see `kruise.local.workloads.objects`.
"""

from __future__ import annotations

from kruise.api.meta import Condition, LabelSelector, ObjectMeta
from kruise.api.native.pod import NodeSelector
from kruise.api.resource import Resource
from kruise.machinery.codec import Struct, field


class ClaimResources(Struct):
    requests: dict[str, str | int | float] = field(default_factory=dict)


class ClaimSpec(Struct):
    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: ClaimResources = ClaimResources()
    storage_class_name: str | None = None
    volume_name: str = ""
    volume_mode: str = ""


class ClaimStatus(Struct):
    phase: str = ""
    access_modes: tuple[str, ...] = ()
    capacity: dict[str, str] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()


class Claim(Struct):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()


class ClaimReference(Struct):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class VolumeNodeAffinity(Struct):
    required: NodeSelector | None = None


class VolumeSpec(Struct):
    capacity: dict[str, str] = field(default_factory=dict)
    access_modes: tuple[str, ...] = ()
    claim_ref: ClaimReference | None = None
    storage_class_name: str = ""
    volume_mode: str = ""
    persistent_volume_reclaim_policy: str = ""
    node_affinity: VolumeNodeAffinity | None = None


class VolumeStatus(Struct):
    phase: str = ""


class Volume(Struct):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: VolumeSpec = VolumeSpec()
    status: VolumeStatus = VolumeStatus()


class StorageClass(Struct):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    provisioner: str = ""
    reclaim_policy: str = "Delete"
    volume_binding_mode: str = "Immediate"


CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", True, Claim)
VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", False, Volume)
STORAGE_CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", False, StorageClass)

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
PROVISIONER = "volume.kubernetes.io/storage-provisioner"
PROVISIONER_BETA = "volume.beta.kubernetes.io/storage-provisioner"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
CLAIM_PROTECTION = "kubernetes.io/pvc-protection"
VOLUME_PROTECTION = "kubernetes.io/pv-protection"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
"""The class of volumes that somebody else makes beforehand."""
LOCAL_PROVISIONER = "kruise.io/local"
"""The provisioner of the local cluster."""


def is_bound(claim: Claim) -> bool:
    return claim.spec.volume_name != "" and BIND_COMPLETED in claim.metadata.annotations


def waits_for_consumer(storage_class: StorageClass | None) -> bool:
    return storage_class is not None and storage_class.volume_binding_mode == "WaitForFirstConsumer"


def refers_to_claim(volume: Volume, claim: Claim) -> bool:
    """The volume is the claim's, or promised to it by its name."""
    reference = volume.spec.claim_ref
    if reference is None or (reference.namespace, reference.name) != (claim.metadata.namespace, claim.metadata.name):
        return False
    return reference.uid in ("", claim.metadata.uid)
