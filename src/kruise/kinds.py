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
    ),
    without_kind=("kruise.readiness",),
    natives=native.FACES,
)


def faces() -> tuple[Face, ...]:
    """Of every kind: ours, Kubernetes' own, those of installed packages."""
    return REGISTRY.faces


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
