"""What the containers of a pod need together, and the quality of service that follows from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kruise.api.core import quantities
from kruise.api.core.quantities import Amounts

GUARANTEED = "Guaranteed"
BURSTABLE = "Burstable"
BEST_EFFORT = "BestEffort"

_COMPUTE = ("cpu", "memory")
HUGE_PAGES_PREFIX = "hugepages-"


def is_huge_pages(name: str) -> bool:
    return name.startswith(HUGE_PAGES_PREFIX)


def is_native(name: str) -> bool:
    """Names without a prefix count as being in the kubernetes.io namespace."""
    return "/" not in name or "kubernetes.io/" in name


def is_overcommit_allowed(name: str) -> bool:
    return is_native(name) and not is_huge_pages(name)


def is_pod_level(name: str) -> bool:
    """Whether the resource can be set for a pod as a whole."""
    return name in _COMPUTE or is_huge_pages(name)


def is_sidecar(init_container: Mapping[str, Any]) -> bool:
    return init_container.get("restartPolicy") == "Always"


def amounts(container: Mapping[str, Any], member: str) -> Amounts:
    """`requests` or `limits` of a container."""
    found: Amounts | None = (container.get("resources") or {}).get(member)
    return found or {}


def aggregate(spec: Mapping[str, Any], member: str) -> dict[str, str]:
    """What all need at the worst moment: init containers run one by one, each beside the sidecars before it."""
    running: dict[str, str] = {}
    for container in spec.get("containers") or ():
        running = quantities.total(running, amounts(container, member))
    sidecars: dict[str, str] = {}
    starting: dict[str, str] = {}
    for container in spec.get("initContainers") or ():
        own = amounts(container, member)
        if is_sidecar(container):
            running = quantities.total(running, own)
            sidecars = quantities.total(sidecars, own)
            needed = sidecars
        else:
            needed = quantities.total(own, sidecars)
        starting = quantities.highest(starting, needed)
    return quantities.highest(running, starting)


def qos_class(spec: Mapping[str, Any]) -> str:
    """The class of a pod with this spec. The spec must have its defaults, since requests follow from limits."""
    pod_level = spec.get("resources")
    if pod_level is not None:
        requests, limits = _positive(pod_level.get("requests")), _positive(pod_level.get("limits"))
        complete = not pod_level.get("limits") or set(_COMPUTE) <= limits.keys()
    else:
        requests, limits, complete = _container_totals(
            (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
        )
    if not requests and not limits:
        return BEST_EFFORT
    matching = requests.keys() == limits.keys() and all(
        quantities.compare(requests[name], limits[name]) == 0 for name in requests
    )
    return GUARANTEED if complete and matching else BURSTABLE


def _container_totals(containers: Sequence[Mapping[str, Any]]) -> tuple[dict[str, str], dict[str, str], bool]:
    requests: dict[str, str] = {}
    limits: dict[str, str] = {}
    complete = True
    for container in containers:
        own_limits = _positive(amounts(container, "limits"))
        requests = quantities.total(requests, _positive(amounts(container, "requests")))
        limits = quantities.total(limits, own_limits)
        complete = complete and set(_COMPUTE) <= own_limits.keys()
    return requests, limits, complete


def _positive(given: Amounts | None) -> dict[str, str]:
    return {name: amount for name, amount in (given or {}).items() if name in _COMPUTE and quantities.sign(amount) > 0}
