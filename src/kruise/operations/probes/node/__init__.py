"""NodePodProbe: what the daemon of a node is told, and what its results do to pods."""
