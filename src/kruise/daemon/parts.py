"""A part of the daemon as a value: the image puller, the restarter of containers, the prober, the reporter.

A part is a controller like those of the manager, with eyes and hands on its node:

    look (the node) -> snapshot -> decide -> plan (writes, and jobs on the node) -> conclude

`spec` is a `ControllerSpec` over the kinds of the part; its `decide` and `conclude` are pure. `look` reads what the
snapshot needs of the node, into `View.outside`. Calls that take their time are jobs of the plan: `perform` carries one
out in the background, its state is in `View.jobs` of every pass until the plan drops it.

A new part is one line in `PARTS`. It is named, not imported: parts themselves import this module.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, TypeVar

from kruise.api.meta import Key, Object
from kruise.api.resource import Resource
from kruise.daemon.pods import PODS, Pod
from kruise.daemon.runtime import Node, Nodes
from kruise.machinery.client.client import Client
from kruise.machinery.clock import Clock
from kruise.machinery.codec import Struct
from kruise.machinery.spec import ControllerSpec, Stores
from kruise.machinery.watched import Watched

S = TypeVar("S")
T = TypeVar("T", bound=Object)

PARTS: tuple[str, ...] = (
    "kruise.daemon.containers.part",
    "kruise.daemon.images.part",
    "kruise.daemon.recreate.part",
    "kruise.daemon.probes.part",
    "kruise.daemon.probes.liveness_part",
)
"""Modules that have a `PART`."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How the daemon was told to work."""

    gates: Mapping[str, bool] = dataclasses.field(default_factory=dict)
    max_pulls: int = 0
    """Pulls at a time on a node; 0: no limit."""
    plugin_config_file: str = ""
    plugin_bin_dir: str = ""
    """Credential provider plugins, where there are any."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the daemon works, and what of the cluster it watches (DMN-20)."""

    node: str = ""
    """The name of its node; empty in the local cluster, where one daemon serves all simulated nodes."""
    settings: Settings
    pods: Watched[Pod]
    """The pods of the node. All parts share them."""

    @classmethod
    def of(cls, node: str, settings: Settings) -> Place:
        """A real node."""
        return cls(node=node, settings=settings, pods=Watched(PODS, fields=f"spec.nodeName={node}"))

    def own(self, kind: Watched[T] | Resource[T]) -> Watched[T]:
        """The one object that is named like the node."""
        return self._narrowed(kind, fields=f"metadata.name={self.node}")

    def labelled(self, kind: Watched[T] | Resource[T], label: str, also: str = "") -> Watched[T]:
        """The objects whose label names the node; `also` is a selector that holds in any case."""
        return self._narrowed(kind, labels=f"{label}={self.node}", also=also)

    def _narrowed(
        self, kind: Watched[T] | Resource[T], *, labels: str = "", fields: str = "", also: str = ""
    ) -> Watched[T]:
        whole: Watched[T] = kind if isinstance(kind, Watched) else Watched(kind)
        chosen = ",".join(part for part in (labels if self.node else "", also) if part)
        return dataclasses.replace(whole, labels=chosen, fields=fields if self.node else "")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What a look and a job have at hand."""

    place: Place
    nodes: Nodes
    stores: Stores
    client: Client
    """For what is read by name and not watched, such as secrets. Writes belong into plans."""
    clock: Clock

    def node(self, name: str) -> Node | None:
        return self.nodes.find(name)


Look = Callable[[Scene, Key], Awaitable[Any]]
Perform = Callable[[Scene, Struct], Awaitable[Struct | None]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Part(Generic[S]):
    name: str
    """Of its queue and its metrics (DMN-91)."""
    component: str
    """In events and as user agent: `kruise-daemon-...` (DMN-9)."""
    gates: tuple[str, ...] = ()
    """All of them must be on."""
    spec: Callable[[Place], ControllerSpec[S]]
    look: Look
    """None: the node is not here, or there is nothing to do. `CallError` and `OSError` mean: try again later."""
    perform: Perform | None = None
    """Carry out a job. What it raises is the job's error."""
    node_of: Callable[[Stores, Key], str]
    """The node that a key is about; empty: not known any more."""
    backoff: tuple[float, float] = (0.5, 50.0)
    """Of retries: the first delay and the longest (DMN-2)."""
    window: float = 0.02
    """Seconds for which news of a key are gathered before it is looked at."""


def parts(gates: Mapping[str, bool], modules: tuple[str, ...] = PARTS) -> tuple[Part[Any], ...]:
    """The parts that work under these gates. A gate that is not named counts as on."""
    found = (_part(module) for module in modules)
    return tuple(part for part in found if all(gates.get(gate, True) for gate in part.gates))


def _part(module: str) -> Part[Any]:
    part: Part[Any] = importlib.import_module(module).PART
    return part
