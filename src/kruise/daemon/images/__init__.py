"""The image puller: what the NodeImage of a node asks for, pulled by its container runtime (DMN-30 to DMN-50)."""
