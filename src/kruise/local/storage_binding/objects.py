"""Short names for what binding is about, and the annotations and provisioners that only it knows."""

from __future__ import annotations

from kruise.api.native.storage import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PersistentVolume,
    PersistentVolumeClaim,
)

Claim = PersistentVolumeClaim
Volume = PersistentVolume
CLAIMS = PERSISTENT_VOLUME_CLAIMS
VOLUMES = PERSISTENT_VOLUMES

BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
PROVISIONER = "volume.kubernetes.io/storage-provisioner"
PROVISIONER_BETA = "volume.beta.kubernetes.io/storage-provisioner"
CLAIM_PROTECTION = "kubernetes.io/pvc-protection"
VOLUME_PROTECTION = "kubernetes.io/pv-protection"
LOCAL_PROVISIONER = "kruise.io/local"
"""The provisioner of the local cluster."""
