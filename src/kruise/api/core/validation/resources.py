"""Resource requests and limits of containers and pods, and claims for devices."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from kruise.api.core import formats, pod_resources, quantities
from kruise.api.core.field_errors import (
    FieldError,
    Path,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
)
from kruise.api.core.pod_resources import amounts, is_huge_pages, is_native, is_overcommit_allowed
from kruise.api.core.validation import common
from kruise.api.core.validation.common import Errors, Struct

_CONTAINER_RESOURCES = ("cpu", "memory", "ephemeral-storage")
_STANDARD_RESOURCES = frozenset(
    {
        *_CONTAINER_RESOURCES,
        "requests.ephemeral-storage",
        "limits.ephemeral-storage",
        "requests.cpu",
        "requests.memory",
        "limits.cpu",
        "limits.memory",
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "storage",
        "requests.storage",
        "services.nodeports",
        "services.loadbalancers",
    }
)
_COUNTED_RESOURCES = frozenset(
    {
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    }
)


def container_requirements(path: Path, requirements: Struct, claim_names: Collection[str]) -> Errors:
    yield from _requirements(path, requirements, claim_names, of_pod=False)


def overhead(path: Path, given: Mapping[str, str]) -> Errors:
    yield from _requirements(path, {"limits": given}, (), of_pod=False)


def _requirements(path: Path, given: Struct, claim_names: Collection[str], *, of_pod: bool) -> Errors:
    limits, requests = given.get("limits") or {}, given.get("requests") or {}
    for member, listed in (("limits", limits), ("requests", requests)):
        for name, amount in listed.items():
            where = path.child(member).key(name)
            yield from _pod_resource_name(where, name) if of_pod else _container_resource_name(where, name)
            yield from amount_of(where, name, amount)
            if member == "requests":
                yield from _within_limit(path, name, amount, limits.get(name))
            if is_huge_pages(name) and not _whole_pages(name, amount):
                yield invalid(where, amount, f"{amount} is not positive integer multiple of {name}")
    named = {*limits, *requests}
    if any(is_huge_pages(name) for name in named) and not named & {"cpu", "memory"}:
        yield forbidden(path, "HugePages require cpu or memory")
    yield from _claim_references(path.child("claims"), given.get("claims") or (), claim_names)


def _within_limit(path: Path, name: str, amount: str, limit: str | None) -> Errors:
    if limit is None:
        if not is_overcommit_allowed(name):
            yield required(path.child("limits"), "Limit must be set for non overcommitable resources")
        return
    difference = quantities.compare(amount, limit)
    if difference and not is_overcommit_allowed(name):
        yield invalid(path.child("requests"), amount, f"must be equal to {name} limit of {limit}")
    elif difference > 0:
        yield invalid(path.child("requests"), amount, f"must be less than or equal to {name} limit of {limit}")


def _resource_name(path: Path, name: str) -> Errors:
    found = formats.qualified_name(name)
    yield from common.complaints(path, name, found)
    is_standard = name in _STANDARD_RESOURCES or is_huge_pages(name.removeprefix("requests."))
    if not found and "/" not in name and not is_standard:
        yield invalid(path, name, "must be a standard resource type or fully qualified")


def _container_resource_name(path: Path, name: str) -> Errors:
    yield from _resource_name(path, name)
    if "/" not in name:
        if name not in _CONTAINER_RESOURCES and not is_huge_pages(name):
            yield invalid(path, name, "must be a standard resource for containers")
    elif not is_native(name) and not _is_extended(name):
        yield invalid(path, name, "doesn't follow extended resource name standard")


def _is_extended(name: str) -> bool:
    """A vendor's resource. Quotas put `requests.` before it, and the result must be a name as well."""
    return not is_native(name) and not name.startswith("requests.") and not formats.qualified_name(f"requests.{name}")


def _pod_resource_name(path: Path, name: str) -> Errors:
    found = tuple(_resource_name(path, name))
    yield from found
    if not found and not pod_resources.is_pod_level(name):
        yield not_supported(path, name, ("cpu", "hugepages-", "memory"))


def amount_of(path: Path, name: str, amount: str) -> Errors:
    """An amount of a resource: not negative, and whole where things are counted."""
    if quantities.sign(amount) < 0:
        yield invalid(path, amount, common.NEGATIVE)
    if (name in _COUNTED_RESOURCES or _is_extended(name)) and not quantities.is_whole(amount):
        yield invalid(path, amount, "must be an integer")


def _whole_pages(name: str, amount: str) -> bool:
    try:
        page = quantities.canonical(name.removeprefix(pod_resources.HUGE_PAGES_PREFIX))
    except ValueError:
        return False
    if quantities.sign(page) <= 0 or not quantities.is_whole(page):
        return False
    return quantities.whole(amount) % quantities.whole(page) == 0


def _claim_references(path: Path, claims: Sequence[Struct], known: Collection[str]) -> Errors:
    seen: list[str] = []
    for position, claim in enumerate(claims):
        where, name, request = path.at(position), claim["name"], claim.get("request", "")
        if not name:
            yield required(where)
            continue
        if name in seen:
            yield duplicate(where, name)
        else:
            key = name
            if request:
                yield from common.complaints(where.child("request"), request, formats.dns_label(request))
                key = f"{name}/{request}"
            if key in seen:
                yield duplicate(where, key)
            elif not request and any(other.startswith(f"{name}/") for other in seen):
                yield duplicate(where, name)
            seen.append(key)
        if name not in known:
            yield _unknown_claim(where, name, known)


def _unknown_claim(path: Path, name: str, known: Collection[str]) -> FieldError:
    listed = f": {', '.join(sorted(known))}" if known else " which is empty"
    return not_found(path, name, f"must be one of the names in pod.spec.resourceClaims{listed}")


def pod_claims(path: Path, claims: Sequence[Struct]) -> Errors:
    """`resourceClaims` of a pod spec."""
    seen: set[str] = set()
    for position, claim in enumerate(claims):
        where, name = path.at(position), claim["name"]
        if not name:
            yield required(where.child("name"))
        elif name in seen:
            yield duplicate(where.child("name"), name)
        else:
            yield from common.complaints(where.child("name"), name, formats.dns_label(name))
            seen.add(name)
        used = [field for field in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(field) is not None]
        shown = common.as_go_shows(claim, "core.PodResourceClaim")
        if len(used) == 2:
            yield invalid(
                where, shown, "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            )
        if not used:
            yield invalid(where, shown, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
        for field in used:
            yield from common.complaints(where.child(field), claim[field], formats.dns_subdomain(claim[field]))


def pod_requirements(path: Path, spec: Struct, claim_names: Collection[str]) -> Errors:
    """Resources of a pod as a whole: they must leave room for what its containers ask for."""
    given = spec.get("resources")
    if given is None:
        return
    if (spec.get("os") or {}).get("name") == "windows":
        yield forbidden(path, "may not be set for a windows pod")
        return
    if given.get("claims"):
        yield forbidden(path.child("claims"), "claims may not be set for Resources at pod-level")
    yield from _requirements(path, given, claim_names, of_pod=True)
    requests, limits = given.get("requests") or {}, given.get("limits") or {}
    for name, needed in pod_resources.aggregate(spec, "requests").items():
        if name in requests and quantities.compare(needed, requests[name]) > 0:
            words = f"must be greater than or equal to aggregate container requests of {needed}"
            yield invalid(path.child("requests").key(name), requests[name], words)
    for name, needed in pod_resources.aggregate(spec, "limits").items():
        if is_huge_pages(name) and name in limits and quantities.compare(needed, limits[name]) > 0:
            words = f"must be greater than or equal to aggregate container limits of {needed}"
            yield invalid(path.child("limits").key(name), limits[name], words)
    for position, container in enumerate(spec.get("containers") or ()):
        for name, amount in amounts(container, "limits").items():
            if name in limits and quantities.compare(amount, limits[name]) > 0:
                where = path.child("containers").at(position).key(name).child("limits")
                yield invalid(where, amount, f"must be less than or equal to pod limits of {limits[name]}")


def resize_policies(path: Path, policies: Sequence[Struct], pod_restart_policy: str) -> Errors:
    seen: set[str] = set()
    for position, policy in enumerate(policies):
        name, restart = policy["resourceName"], policy["restartPolicy"]
        if name in seen:
            yield duplicate(path.at(position), name)
        seen.add(name)
        yield from common.choice(path, name, ("cpu", "memory"))
        yield from common.choice(path, restart, ("NotRequired", "RestartContainer"))
        if pod_restart_policy == "Never" and restart != "NotRequired":
            yield invalid(path, restart, "must be 'NotRequired' when `restartPolicy` is 'Never'")
