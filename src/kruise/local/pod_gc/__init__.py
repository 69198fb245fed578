"""Pods that nobody looks after any more, and nodes in trouble."""

from kruise.local.pod_gc.controller import specs

__all__ = ["specs"]
