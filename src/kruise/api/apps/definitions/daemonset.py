"""The CustomResourceDefinition of DaemonSet."""

from __future__ import annotations

from kruise.api.apps import daemonset, daemonset_v1alpha1
from kruise.api.apps.definitions.columns import AGE, CONTAINERS
from kruise.api.apps.shared import GROUP
from kruise.api.definitions import Column, Definition, Version, definition

_COLUMNS = (
    Column("DESIRED", "integer", ".status.desiredNumberScheduled", description="Nodes that should have a pod."),
    Column("CURRENT", "integer", ".status.currentNumberScheduled", description="Nodes of those that have one."),
    Column("READY", "integer", ".status.numberReady", description="Nodes whose pod is ready."),
    Column(
        "UP-TO-DATE", "integer", ".status.updatedNumberScheduled", description="Nodes whose pod is at the template."
    ),
    Column("AVAILABLE", "integer", ".status.numberAvailable", description="Nodes whose pod is available."),
    AGE,
    *CONTAINERS,
)

DEFINITION: Definition = definition(
    group=GROUP,
    kind="DaemonSet",
    plural="daemonsets",
    short_names=("daemon", "ads"),
    versions=(
        Version(name="v1alpha1", type=daemonset_v1alpha1.DaemonSet, columns=_COLUMNS),
        Version(name="v1beta1", type=daemonset.DaemonSet, is_stored=True, columns=_COLUMNS),
    ),
    is_converted=True,
)
"""DS-1 to DS-4."""
