"""Causes that only SidecarSet knows."""

from __future__ import annotations

from kruise.machinery.causes import Act, Meaning

NOT_UPGRADABLE = Meaning(
    code="not-upgradable",
    says="more than images changed, and that cannot be changed in a pod that runs",
    act=Act.SOMEBODY,
    field="spec.containers",
    patience=0,
    is_before_turn=True,
)
NOT_SELECTED = Meaning(
    code="not-selected",
    says="the update is only for other pods",
    act=Act.INTENDED,
    field="spec.updateStrategy.selector",
    is_wanted=True,
    is_before_turn=True,
)
NOT_UPDATE = Meaning(
    code="not-update",
    says="sidecars of pods that run are not updated",
    act=Act.INTENDED,
    field="spec.updateStrategy.type",
    is_wanted=True,
    is_before_turn=True,
)
SIDECAR_STARTING = Meaning(
    code="sidecar-starting",
    says="its sidecar restarts with the new image",
    act=Act.NOBODY,
    patience=60.0,
    is_own_step=True,
)
SIDECAR_FAILED = Meaning(
    code="sidecar-failed",
    says="its sidecar does not start",
    act=Act.SOMEBODY,
    field="spec.containers",
    patience=0,
    is_own_step=True,
)
HOT_UPGRADE = Meaning(
    code="hot-upgrade",
    says="the new container of a hot upgrade takes over from the old one",
    act=Act.NOBODY,
    patience=60.0,
    is_own_step=True,
)
IMAGE_SPELLING = Meaning(
    code="image-spelling",
    says="its node calls the image of a sidecar by another name, so it never counts as the one asked for",
    act=Act.SOMEBODY,
    field="spec.containers",
    patience=0,
    is_own_step=True,
)
REVISION_MISSING = Meaning(
    code="revision-missing",
    says="new pods are to get a revision that does not exist, and cannot be made",
    act=Act.SOMEBODY,
    field="spec.injectionStrategy.revision",
    patience=0,
)

CAUSES = (
    NOT_UPGRADABLE,
    NOT_SELECTED,
    NOT_UPDATE,
    SIDECAR_STARTING,
    SIDECAR_FAILED,
    HOT_UPGRADE,
    IMAGE_SPELLING,
    REVISION_MISSING,
)
