"""Annotations, labels, environment variables and conditions of SidecarSets (SCS section 15)."""

from __future__ import annotations

HASH = "kruise.io/sidecarset-hash"
HASH_WITHOUT_IMAGE = "kruise.io/sidecarset-hash-without-image"
INJECTED_LIST = "kruise.io/sidecarset-injected-list"
UPDATE_STATE = "kruise.io/sidecarset-inplace-update-state"
WORKING = "kruise.io/sidecarset-working-hotupgrade-container"
VERSION_PREFIX = "version.sidecarset.kruise.io/"
VERSION_ALT_PREFIX = "versionalt.sidecarset.kruise.io/"

NAME_LABEL = "kruise.io/sidecarset-name"
"""On a ControllerRevision: the SidecarSet that it belongs to."""
CUSTOM_VERSION = "apps.kruise.io/sidecarset-custom-version"
CANARY = "apps.kruise.io/sidecarset-canary"
BASE = "apps.kruise.io/sidecarset-base"

IS_INJECTED = "IS_INJECTED"
VERSION_ENV = "SIDECARSET_VERSION"
VERSION_ALT_ENV = "SIDECARSET_VERSION_ALT"

UPGRADABLE = "SidecarSetUpgradable"
"""A condition of pods."""
ALL_UPGRADABLE = "AllSidecarsetUpgradable"
IMMUTABLE_FIELD = "UpdateImmutableField"

NAMESPACE_NAME = "kubernetes.io/metadata.name"
CONFIGURATION = "kruise-configuration"
WHITELIST = "SidecarSet_PatchPodMetadata_WhiteList"
