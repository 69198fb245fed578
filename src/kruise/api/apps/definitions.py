"""The CustomResourceDefinitions of the group `apps.kruise.io`."""

from __future__ import annotations

from kruise.api.apps import (
    cloneset,
    cloneset_v1alpha1,
    daemonset,
    daemonset_v1alpha1,
    statefulset,
    statefulset_v1alpha1,
)
from kruise.api.apps.shared import GROUP
from kruise.api.definitions import Column, Definition, Scale, Version, definition

_AGE = Column("AGE", "date", ".metadata.creationTimestamp", description="Time since the object was created.")
_CONTAINERS = (
    Column(
        "CONTAINERS",
        "string",
        ".spec.template.spec.containers[*].name",
        priority=1,
        description="The first container of the template.",
    ),
    Column(
        "IMAGES",
        "string",
        ".spec.template.spec.containers[*].image",
        priority=1,
        description="The image of the first container of the template.",
    ),
)
_DESIRED = Column("DESIRED", "integer", ".spec.replicas", description="Number of pods that are wanted.")
_UPDATED = Column("UPDATED", "integer", ".status.updatedReplicas", description="Pods at the update revision.")
_READY = Column("READY", "integer", ".status.readyReplicas", description="Pods that are ready.")
_SCALE = Scale(label_selector=".status.labelSelector")

_CLONE_SET_COLUMNS = (
    _DESIRED,
    _UPDATED,
    Column(
        "UPDATED_READY", "integer", ".status.updatedReadyReplicas", description="Pods at the update revision, ready."
    ),
    Column(
        "UPDATED_AVAILABLE",
        "integer",
        ".status.updatedAvailableReplicas",
        description="Pods at the update revision, available.",
    ),
    _READY,
    Column("TOTAL", "integer", ".status.replicas", description="Pods that exist."),
    _AGE,
    *_CONTAINERS,
    Column("SELECTOR", "string", ".status.labelSelector", priority=1, description="The selector in text form."),
)

CLONE_SET_DEFINITION: Definition = definition(
    group=GROUP,
    kind="CloneSet",
    plural="clonesets",
    short_names=("clone",),
    versions=(
        Version(name="v1alpha1", type=cloneset_v1alpha1.CloneSet, scale=_SCALE, columns=_CLONE_SET_COLUMNS),
        Version(
            name="v1beta1",
            type=cloneset.CloneSet,
            is_stored=True,
            scale=_SCALE,
            columns=_CLONE_SET_COLUMNS,
        ),
    ),
    is_converted=True,
)
"""CS-1 to CS-5."""

_STATEFUL_SET_COLUMNS = (
    _DESIRED,
    Column("CURRENT", "integer", ".status.replicas", description="Pods that exist."),
    _UPDATED,
    _READY,
    _AGE,
    *_CONTAINERS,
)

STATEFUL_SET_DEFINITION: Definition = definition(
    group=GROUP,
    kind="StatefulSet",
    plural="statefulsets",
    short_names=("sts", "asts"),
    versions=(
        Version(name="v1alpha1", type=statefulset_v1alpha1.StatefulSet, scale=_SCALE, columns=_STATEFUL_SET_COLUMNS),
        Version(
            name="v1beta1",
            type=statefulset.StatefulSet,
            is_stored=True,
            scale=_SCALE,
            columns=_STATEFUL_SET_COLUMNS,
            # A well-known manifest has `exec` in a hook (ST-144). Admission says that it has no effect.
            open_objects=tuple(f"spec.lifecycle.{hook}" for hook in ("preNormal", "inPlaceUpdate", "preDelete")),
        ),
    ),
    is_converted=True,
)
"""ST-1 to ST-5."""

_DAEMON_SET_COLUMNS = (
    Column("DESIRED", "integer", ".status.desiredNumberScheduled", description="Nodes that should have a pod."),
    Column("CURRENT", "integer", ".status.currentNumberScheduled", description="Nodes of those that have one."),
    Column("READY", "integer", ".status.numberReady", description="Nodes whose pod is ready."),
    Column(
        "UP-TO-DATE", "integer", ".status.updatedNumberScheduled", description="Nodes whose pod is at the template."
    ),
    Column("AVAILABLE", "integer", ".status.numberAvailable", description="Nodes whose pod is available."),
    _AGE,
    *_CONTAINERS,
)

DAEMON_SET_DEFINITION: Definition = definition(
    group=GROUP,
    kind="DaemonSet",
    plural="daemonsets",
    short_names=("daemon", "ads"),
    versions=(
        Version(name="v1alpha1", type=daemonset_v1alpha1.DaemonSet, columns=_DAEMON_SET_COLUMNS),
        Version(name="v1beta1", type=daemonset.DaemonSet, is_stored=True, columns=_DAEMON_SET_COLUMNS),
    ),
    is_converted=True,
)
"""DS-1 to DS-4."""

DEFINITIONS = (CLONE_SET_DEFINITION, STATEFUL_SET_DEFINITION, DAEMON_SET_DEFINITION)
