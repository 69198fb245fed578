"""Claims and volumes."""

from __future__ import annotations

from kruise.api.meta import Condition, ObjectMeta
from kruise.api.resource import Resource
from kruise.machinery.codec import Struct, field


class VolumeResourceRequirements(Struct):
    requests: dict[str, str] = field(default_factory=dict)
    limits: dict[str, str] = field(default_factory=dict)


class PersistentVolumeClaimSpec(Struct):
    access_modes: tuple[str, ...] = ()
    resources: VolumeResourceRequirements = VolumeResourceRequirements()
    storage_class_name: str | None = None
    volume_name: str = ""
    volume_mode: str = ""


class PersistentVolumeClaimStatus(Struct):
    phase: str = ""
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


class PersistentVolumeSpec(Struct):
    capacity: dict[str, str] = field(default_factory=dict)
    claim_ref: ClaimReference | None = None
    storage_class_name: str = ""
    persistent_volume_reclaim_policy: str = ""


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
    allow_volume_expansion: bool | None = None
    volume_binding_mode: str = ""


PERSISTENT_VOLUME_CLAIMS = Resource(
    "", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", True, PersistentVolumeClaim
)
PERSISTENT_VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", False, PersistentVolume)
STORAGE_CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", False, StorageClass)
