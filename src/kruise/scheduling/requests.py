"""What a pod asks of a node, in whole numbers (pure).

CPU counts in thousandths, everything else in units. Containers run together; init containers one by one, each beside
the sidecars that started before it; the overhead of the runtime comes on top. Requests of the pod as a whole win over
those of its containers.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping

from kruise.api.native.pod import Container, Pod
from kruise.machinery.quantity import parse_quantity

CPU, MEMORY, STORAGE, PODS = "cpu", "memory", "ephemeral-storage", "pods"

Amounts = dict[str, int]
Written = Mapping[str, str | int | float]

UNSTATED_CPU = 100
UNSTATED_MEMORY = 200 * 1024 * 1024
"""What a container counts for in scores that says nothing: otherwise all such pods would land on one node."""


@functools.lru_cache(maxsize=8192)
def _number(name: str, text: str | int | float) -> int:
    quantity = parse_quantity(text)
    return quantity.milli_value() if name == CPU else quantity.value()


def amounts(written: Written) -> Amounts:
    return {name: _number(name, text) for name, text in written.items()}


def _add(total: Amounts, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: Amounts, level: Mapping[str, int]) -> None:
    for name, amount in level.items():
        if amount > total.get(name, 0):
            total[name] = amount


def _aggregate(containers: Iterable[Container], init_containers: Iterable[Container], *, fill: bool) -> Amounts:
    running: Amounts = {}
    for container in containers:
        _add(running, _of(container, fill))
    sidecars: Amounts = {}
    highest: Amounts = {}
    for container in init_containers:
        own = _of(container, fill)
        if container.restart_policy == "Always":
            _add(running, own)
            _add(sidecars, own)
            _raise_to(highest, sidecars)
        else:
            together = dict(sidecars)
            _add(together, own)
            _raise_to(highest, together)
    _raise_to(running, highest)
    return running


def _of(container: Container, fill: bool) -> Amounts:
    stated = amounts(container.resources.requests)
    if fill:
        stated.setdefault(CPU, UNSTATED_CPU)
        stated.setdefault(MEMORY, UNSTATED_MEMORY)
    return stated


def requests(pod: Pod) -> Amounts:
    """What must be free on a node."""
    return _requests(pod, fill=False)


def weight(pod: Pod) -> tuple[int, int]:
    """CPU and memory as they count in scores."""
    total = _requests(pod, fill=True)
    return total.get(CPU, 0), total.get(MEMORY, 0)


def _requests(pod: Pod, *, fill: bool) -> Amounts:
    spec = pod.spec
    total = _aggregate(spec.containers, spec.init_containers, fill=fill)
    if spec.resources is not None:
        total.update(amounts(spec.resources.requests))
    if spec.overhead:
        _add(total, amounts(spec.overhead))
    return total


HostPort = tuple[str, str, int]
"""Address, protocol, port."""
_ANY_ADDRESS = "0.0.0.0"


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    spec = pod.spec
    sidecars = (item for item in spec.init_containers if item.restart_policy == "Always")
    return tuple(
        (port.host_ip or _ANY_ADDRESS, port.protocol or "TCP", port.host_port)
        for container in (*spec.containers, *sidecars)
        for port in container.ports
        if port.host_port > 0
    )


def ports_conflict(wanted: Iterable[HostPort], used: Iterable[HostPort]) -> bool:
    """A port on all addresses takes it on each."""
    used = tuple(used)
    return any(
        protocol == its_protocol and port == its_port and (address == its or _ANY_ADDRESS in (address, its))
        for address, protocol, port in wanted
        for its, its_protocol, its_port in used
    )
