"""The CustomResourceDefinitions of PodProbeMarker and NodePodProbe."""

from __future__ import annotations

from kruise.api.apps.probes import NodePodProbe, PodProbeMarker
from kruise.api.apps.shared import GROUP
from kruise.api.definitions import Definition, Version, definition

POD_PROBE_MARKER: Definition = definition(
    group=GROUP,
    kind="PodProbeMarker",
    plural="podprobemarkers",
    versions=(Version(name="v1alpha1", type=PodProbeMarker, is_stored=True),),
)
"""PPM 2.1."""
NODE_POD_PROBE: Definition = definition(
    group=GROUP,
    kind="NodePodProbe",
    plural="nodepodprobes",
    is_namespaced=False,
    is_derived=True,
    versions=(Version(name="v1alpha1", type=NodePodProbe, is_stored=True),),
)
"""NPP 3.1."""
