"""Container launch priority: containers of a pod start one after the other, the next when those before are ready."""
