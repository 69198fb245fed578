"""PodProbeMarker: which pods are probed, and how."""
