"""The prober: runs the probes that the NodePodProbe of its node lists, and reports what they find."""
