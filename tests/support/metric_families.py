"""Every metric that manager and daemon serve: name, type, labels and meaning, as their registries have them."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry

from kruise.kinds import features
from kruise.local.apicore.core import ApiCore
from kruise.local.inprocess import InProcessTransport
from kruise.local.kinds import native_registry
from kruise.machinery.clock import RealClock
from kruise.machinery.metrics import Metrics
from kruise.manager.options import Options
from kruise.manager.process import Manager
from kruise.manager.refusals import COUNTERS


class Family(NamedTuple):
    name: str
    type: str
    labels: tuple[str, ...]
    meaning: str

    @property
    def series(self) -> tuple[str, ...]:
        """Names that can be asked for."""
        if self.type != "histogram":
            return (self.name,)
        return (f"{self.name}_bucket", f"{self.name}_sum", f"{self.name}_count")


@functools.cache
def of_manager() -> dict[str, Family]:
    async def registry() -> CollectorRegistry:
        clock = RealClock()
        transport = InProcessTransport(ApiCore(native_registry(), clock=clock, seed=1))
        manager = Manager(Options(), features(), transport, clock=clock, random=Random(1))
        await transport.close()
        return manager.registry

    return {family.name: family for family in _families(asyncio.run(registry()))}


@functools.cache
def of_daemon() -> dict[str, Family]:
    return {family.name: family for family in _families(Metrics().registry)}


def _families(registry: CollectorRegistry) -> Iterator[Family]:
    labels = _labels(registry)
    for metric in registry.collect():
        counts = metric.type == "counter"
        name = f"{metric.name}_total" if counts else metric.name
        known = labels.get(metric.name, getattr(metric, "_labelnames", ()))
        kind = "counter" if metric.name in COUNTERS else metric.type
        yield Family(name, kind, tuple(COUNTERS.get(metric.name, known)), metric.documentation)


def _labels(registry: CollectorRegistry) -> dict[str, tuple[str, ...]]:
    """Labels are no part of what a family without samples tells; whoever makes it knows them."""
    collectors: list[Any] = list(registry._collector_to_names)
    return {one._name: tuple(one._labelnames) for one in collectors if hasattr(one, "_labelnames")}
