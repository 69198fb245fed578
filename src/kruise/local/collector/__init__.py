"""The garbage collector, a client of the API."""

from kruise.local.collector.collector import GarbageCollector
from kruise.local.collector.served import Discover, of_registry

__all__ = ["Discover", "GarbageCollector", "of_registry"]
