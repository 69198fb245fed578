"""Labels, annotations, conditions and environment variables of the engine (IPU section 2)."""

from __future__ import annotations

REVISION_LABEL = "controller-revision-hash"
TEMPLATE_HASH_LABEL = "pod-template-hash"
SPECIFIED_DELETE_LABEL = "apps.kruise.io/specified-delete"

STATE_LABEL = "lifecycle.apps.kruise.io/state"
STATE_TIME_ANNOTATION = "lifecycle.apps.kruise.io/timestamp"

UPDATE_STATE_ANNOTATION = "apps.kruise.io/inplace-update-state"
UPDATE_GRACE_ANNOTATION = "apps.kruise.io/inplace-update-grace"
OLD_UPDATE_STATE_ANNOTATION = "inplace-update-state"
OLD_UPDATE_GRACE_ANNOTATION = "inplace-update-grace"
CONTAINERS_META_ANNOTATION = "apps.kruise.io/runtime-containers-meta"

IN_PLACE_READY = "InPlaceUpdateReady"
KRUISE_POD_READY = "KruisePodReady"

PREDOWNLOAD_CREATED_LABEL = "apps.kruise.io/pre-predownload-created"
PREDOWNLOAD_IGNORED_LABEL = "apps.kruise.io/image-predownload-ignored"

CLAIM_TEMPLATES_HASH = "kruise.io/cloneset-volumeclaimtemplate-hash"

BARRIER_ENV = "KRUISE_CONTAINER_BARRIER"
SIDECAR_SET_ENVS = frozenset({"SIDECARSET_VERSION", "SIDECARSET_VERSION_ALT"})
