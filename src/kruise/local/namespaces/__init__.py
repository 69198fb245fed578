"""The life cycle of namespaces, a client of the API."""

from kruise.local.namespaces.lifecycle import Namespaces, create_initial

__all__ = ["Namespaces", "create_initial"]
