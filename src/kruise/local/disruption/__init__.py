"""PodDisruptionBudgets of Kubernetes: what evictions they allow right now."""

from kruise.local.disruption.controller import specs

__all__ = ["specs"]
