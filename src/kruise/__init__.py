"""PyKruise: advanced Kubernetes workloads and in-place update."""

__version__ = "0.1.0.dev0"
