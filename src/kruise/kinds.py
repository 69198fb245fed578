"""Every kind that this build of PyKruise knows. A new kind is one line here; nothing else outside its folder names it.

Packages are named, not imported: a command loads the faces it needs, and the code of a kind only where it decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kruise.faces import native
from kruise.registry import Entry, Registry

if TYPE_CHECKING:
    from kruise.faces.face import Face
    from kruise.feature import Feature

REGISTRY = Registry(
    (
        Entry("apps.kruise.io", "CloneSet", "kruise.workloads.cloneset"),
        Entry("apps.kruise.io", "StatefulSet", "kruise.workloads.statefulset"),
        Entry("apps.kruise.io", "DaemonSet", "kruise.workloads.daemonset"),
        Entry("apps.kruise.io", "EphemeralJob", "kruise.workloads.ephemeraljob"),
        Entry("apps.kruise.io", "UnitedDeployment", "kruise.spread.uniteddeployment"),
        Entry("apps.kruise.io", "PodProbeMarker", "kruise.operations.probes.marker"),
        Entry("apps.kruise.io", "NodePodProbe", "kruise.operations.probes.node"),
        Entry("apps.kruise.io", "ResourceDistribution", "kruise.operations.resourcedistribution"),
        Entry("apps.kruise.io", "BroadcastJob", "kruise.workloads.broadcastjob"),
        Entry("apps.kruise.io", "WorkloadSpread", "kruise.spread.workloadspread"),
        Entry("apps.kruise.io", "SidecarSet", "kruise.sidecars.sidecarset"),
        Entry("apps.kruise.io", "ImagePullJob", "kruise.operations.images.pulljob"),
        Entry("apps.kruise.io", "ImageListPullJob", "kruise.operations.images.listjob"),
        Entry("apps.kruise.io", "NodeImage", "kruise.operations.images.nodeimage"),
        Entry("apps.kruise.io", "ContainerRecreateRequest", "kruise.operations.recreate"),
        Entry("apps.kruise.io", "PersistentPodState", "kruise.spread.persistentpodstate"),
        Entry("policy.kruise.io", "PodUnavailableBudget", "kruise.protection.podunavailablebudget"),
        Entry("apps.kruise.io", "AdvancedCronJob", "kruise.workloads.advancedcronjob"),
    ),
    without_kind=(
        "kruise.readiness",
        "kruise.protection.deletion",
        "kruise.sidecars.launch_priority",
        "kruise.sidecars.terminator",
    ),
    natives=native.FACES,
)


def faces() -> tuple[Face, ...]:
    """Of every kind: ours, Kubernetes' own, those of installed packages."""
    return REGISTRY.faces


def packages() -> tuple[tuple[Face, str], ...]:
    """Of every kind but Kubernetes' own: its face, and the package that is about it."""
    return REGISTRY.packages


def face_of(group: str, kind: str) -> Face | None:
    return REGISTRY.face_of(group, kind)


def features() -> tuple[Feature, ...]:
    """What every kind brings to the manager."""
    return REGISTRY.features


def feature_of(group: str, kind: str) -> Feature | None:
    return REGISTRY.feature_of(group, kind)


def problems() -> tuple[str, ...]:
    """What is wrong with kinds of installed packages, as far as it was noticed."""
    return REGISTRY.problems
