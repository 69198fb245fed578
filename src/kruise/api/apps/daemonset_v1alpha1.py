"""Advanced DaemonSet in `v1alpha1`: with update type Surging, and an annotation in place of the scale strategy.

No controller reads this version; the structs are the source of its schema. `conversion.daemonset` maps it to the stored
version.
"""

from __future__ import annotations

from typing import Annotated

from kruise.api.apps.daemonset import STANDARD, DaemonSetBase, DaemonSetCounts, DaemonSetRollout
from kruise.api.apps.shared import IN_PLACE_IF_POSSIBLE, UpdateType
from kruise.api.meta import ObjectMeta
from kruise.api.schema import About
from kruise.machinery.codec import Struct

SURGING = "Surging"
ROLLING_UPDATE_TYPES = (STANDARD, SURGING, IN_PLACE_IF_POSSIBLE)


class RollingUpdateDaemonSet(DaemonSetRollout):
    """How pods go over to a new template."""

    rolling_update_type: Annotated[
        str,
        About(
            "How a pod is updated. Standard: it is deleted and a new one is made, or made first, with maxSurge. "
            "InPlaceIfPossible: its containers are changed where that suffices, else it is recreated. Surging: as "
            "Standard, with a maxSurge of 1 if absent. Standard if absent."
        ),
    ] = ""


class DaemonSetUpdateStrategy(Struct):
    """When and how pods go over to a new template."""

    type: UpdateType = ""
    rolling_update: Annotated[RollingUpdateDaemonSet | None, About("How a rolling update proceeds.")] = None


class DaemonSetSpec(DaemonSetBase):
    """What is wanted."""

    update_strategy: Annotated[DaemonSetUpdateStrategy, About("When and how pods go over to a new template.")] = (
        DaemonSetUpdateStrategy()
    )


class DaemonSetStatus(DaemonSetCounts):
    """What was last seen."""

    daemon_set_hash: Annotated[
        str, About("Hash of the present template, as pods at it have it in label controller-revision-hash.")
    ] = ""


class DaemonSet(Struct):
    """An advanced DaemonSet keeps a pod on each node that suits it, and updates them, in place where possible."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[DaemonSetSpec, About("What is wanted.")] = DaemonSetSpec()
    status: Annotated[DaemonSetStatus, About("What was last seen. Written by the controller.")] = DaemonSetStatus()
