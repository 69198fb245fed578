"""The network of real nodes: one namespace per node, a bridge in a namespace of its own, one link to the host.

    host --veth--> hub: bridge --veth--> node-1 --veth--> its pods
                              `--veth--> node-2 ...

The host gets nothing but its end of one link, with routes over it; it needs no forwarding and no firewall rules, and
all of it ends with the namespaces. Every cluster has a /16 of its own:

    10.B.0.0/24      host .1, nodes .11, .12, ...        10.B.64.0/18    services
    10.B.128+n.0/24  pods of node n                      10.B.128.0/17   all pods
"""

from __future__ import annotations

import fcntl
import ipaddress
import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

MAX_NODES = 100

_BLOCKS = range(200, 250)


class NetworkError(RuntimeError):
    """The nodes' network cannot be made; the text has the command and what it said."""


@dataclass(frozen=True)
class Layout:
    """The addresses of one cluster."""

    block: int

    @property
    def whole(self) -> ipaddress.IPv4Network:
        return ipaddress.IPv4Network(f"10.{self.block}.0.0/16")

    @property
    def host(self) -> str:
        return f"10.{self.block}.0.1"

    @property
    def services(self) -> str:
        return f"10.{self.block}.64.0/18"

    @property
    def api_service(self) -> str:
        """The ClusterIP of service `kubernetes`: always the first of the range."""
        return f"10.{self.block}.64.1"

    @property
    def dns_service(self) -> str:
        return f"10.{self.block}.64.10"

    @property
    def pods(self) -> str:
        return f"10.{self.block}.128.0/17"

    def node(self, number: int) -> str:
        """The address of the node with this number; the first is 1."""
        return f"10.{self.block}.0.{10 + number}"

    def node_pods(self, number: int) -> str:
        return f"10.{self.block}.{128 + number}.0/24"


@contextmanager
def claim_layout() -> Iterator[Layout]:
    """A layout that no link or route of this machine has; no other cluster gets it before this context ends."""
    # A lock on a directory leaves no file behind, and this one is the same for all users and instance roots.
    lock = os.open("/run", os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = _known_networks()
        free = (layout for layout in map(Layout, _BLOCKS) if not any(layout.whole.overlaps(each) for each in known))
        layout = next(free, None)
        if layout is None:
            first, last = Layout(_BLOCKS[0]), Layout(_BLOCKS[-1])
            raise NetworkError(f"all networks from {first.whole} to {last.whole} are in use on this machine")
        yield layout
    finally:
        os.close(lock)


def connect_host(layout: Layout, link: str, hub: int) -> None:
    """Makes the bridge in the hub's namespace and the host's link to it. `hub` is a process in that namespace."""
    _ip_in(hub, ["link set lo up", "link add nodes type bridge", "link set nodes up"])
    _ip(
        [
            f"link add {link} type veth peer name host netns {hub}",
            f"address add {layout.host}/24 dev {link}",
            f"link set {link} up",
        ]
    )
    _ip_in(hub, ["link set host master nodes up"])


def connect_nodes(layout: Layout, link: str, hub: int, nodes: Sequence[int]) -> None:
    """Plugs each node into the bridge and gives it routes to all pods. `nodes` are processes, node 1 first."""
    numbered = list(enumerate(nodes, start=1))
    for number, node in numbered:
        _ip([f"link add node-{number} netns {hub} type veth peer name eth0 netns {node}"])
        others = [each for each, _ in numbered if each != number]
        _ip_in(
            node,
            [
                "link set lo up",
                f"address add {layout.node(number)}/24 dev eth0",
                "link set eth0 up",
                *(f"route add {layout.node_pods(each)} via {layout.node(each)}" for each in others),
                # kube-proxy changes the destination, but only of packets that have a way at all.
                f"route add {layout.services} via {layout.host}",
            ],
        )
    _ip_in(hub, [f"link set node-{number} master nodes up" for number, _ in numbered])
    routes = [f"route add {layout.node_pods(number)} via {layout.node(number)} dev {link}" for number, _ in numbered]
    # The host has no kube-proxy; the first node takes the host's calls to services, such as those to webhooks.
    _ip([*routes, f"route add {layout.services} via {layout.node(1)} dev {link}"])


def plug(hub: int, number: int, *, is_in: bool) -> None:
    """Takes a node's cable out, so that nothing answers there any more, not even that nobody is in; or puts it back."""
    _ip_in(hub, [f"link set node-{number} {'up' if is_in else 'down'}"])


def _known_networks() -> list[ipaddress.IPv4Network]:
    shown = _run(["ip", "-json", "-4", "route", "show", "table", "all"])
    destinations = [route["dst"] for route in json.loads(shown or "[]")]
    return [ipaddress.IPv4Network(each, strict=False) for each in destinations if each != "default"]


def _ip(lines: Sequence[str]) -> None:
    _run(["ip", "-batch", "-"], "\n".join(lines))


def _ip_in(process: int, lines: Sequence[str]) -> None:
    _run(["nsenter", f"--net=/proc/{process}/ns/net", "ip", "-batch", "-"], "\n".join(lines))


def _run(command: Sequence[str], stdin: str = "") -> str:
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NetworkError(f"`{' '.join(command)}` failed: {done.stderr.strip()}; its input was:\n{stdin}")
    return done.stdout
