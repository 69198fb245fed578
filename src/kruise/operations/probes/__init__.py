"""Custom probes: what markers want of pods, what nodes are told, and what the results do to pods."""
