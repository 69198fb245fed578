"""Services: what the API server refuses, and the addresses and ports that it hands out.

Addresses and ports come from the uid, which is random or comes from a seed: the same seed gives the same addresses.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Iterator, Sequence
from typing import Any, Final

from kruise.api.core import formats
from kruise.api.core.field_errors import Path, duplicate, forbidden, invalid, not_supported, required
from kruise.api.core.validation import common
from kruise.api.core.validation.common import Errors, Struct
from kruise.local.apicore import errors
from kruise.local.apicore.errors import Json
from kruise.local.apicore.storage import Storage
from kruise.local.kinds import checks
from kruise.local.kinds.checks import SPEC
from kruise.local.kinds.default_values import is_reached_from_outside

NETWORK: Final = ipaddress.IPv4Network("10.96.0.0/12")
NODE_PORTS: Final = range(30_000, 32_768)
NONE: Final = "None"

_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_FAMILIES: Final = ("IPv4", "IPv6")
_POLICIES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")
_OUTSIDE: Final = ("LoadBalancer", "NodePort")
_DISTRIBUTIONS: Final = ("PreferClose",)
_FOR_EXTERNAL: Final = "may not be set for ExternalName services"
_DAY: Final = 86_400


def _is_headless(spec: Struct) -> bool:
    return list(spec.get("clusterIPs") or ()) == [NONE]


def service(new: Struct, old: Struct | None) -> Errors:
    spec = new["spec"]
    if old is not None:
        yield from _address_changes(spec, old["spec"])
    kind, ports = spec["type"], spec.get("ports") or ()
    if not ports and not _is_headless(spec) and kind != "ExternalName":
        yield required(SPEC.child("ports"))
    if kind in _OUTSIDE and _is_headless(spec):
        yield invalid(SPEC.child("clusterIPs").at(0), NONE, f"may not be set to 'None' for {kind} services")
    if kind == "ExternalName":
        yield from _external_name(spec)
    yield from _ports(SPEC.child("ports"), ports)
    yield from common.label_set(SPEC.child("selector"), spec.get("selector"))
    yield from _affinity(spec)
    if kind != "ExternalName":
        yield from _addresses(spec)
    for position, address in enumerate(spec.get("externalIPs") or ()):
        where = SPEC.child("externalIPs").at(position)
        yield from common.complaints(where, address, formats.ip_address(address))
        yield from checks.endpoint_address(where, address)
    yield from common.choice(SPEC.child("type"), kind, _TYPES)
    yield from _repeats(SPEC.child("ports"), ports, kind)
    yield from _balancing(spec)
    yield from _traffic(spec)


def _external_name(spec: Struct) -> Errors:
    for name in ("clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if spec.get(name):
            yield forbidden(SPEC.child(name), _FOR_EXTERNAL)
    name = spec.get("externalName", "").removesuffix(".")
    yield from common.required_and(SPEC.child("externalName"), name, formats.dns_subdomain)


def _ports(path: Path, ports: Sequence[Struct]) -> Errors:
    seen: set[str] = set()
    for position, port in enumerate(ports):
        where, name = path.at(position), port.get("name", "")
        if not name and len(ports) > 1:
            yield required(where.child("name"))
        elif name:
            yield from checks.dns_label(where.child("name"), name)
            if name in seen:
                yield duplicate(where.child("name"), name)
            seen.add(name)
        yield from common.complaints(where.child("port"), port["port"], formats.port_number(port["port"]))
        yield from common.choice(where.child("protocol"), port["protocol"], _PROTOCOLS)
        target = port["targetPort"]
        known = formats.port_number(target) if isinstance(target, int) else formats.port_name(target)
        yield from common.complaints(where.child("targetPort"), target, known)
        if port.get("appProtocol") is not None:
            found = formats.qualified_name(port["appProtocol"])
            yield from common.complaints(where.child("appProtocol"), port["appProtocol"], found)


def _repeats(path: Path, ports: Sequence[Struct], kind: str) -> Errors:
    on_nodes: set[tuple[str, int]] = set()
    numbers: set[tuple[str, int]] = set()
    if kind == "ClusterIP":
        for position, port in enumerate(ports):
            if port.get("nodePort"):
                text = "may not be used when `type` is 'ClusterIP'"
                yield forbidden(path.at(position).child("nodePort"), text)
    for position, port in enumerate(ports):
        if port.get("nodePort"):
            key = (port["protocol"], port["nodePort"])
            if key in on_nodes:
                yield duplicate(path.at(position).child("nodePort"), port["nodePort"])
            on_nodes.add(key)
    for position, port in enumerate(ports):
        key = (port["protocol"], port["port"])
        if key in numbers:
            shown = {
                "Name": "",
                "Protocol": key[0],
                "AppProtocol": None,
                "Port": key[1],
                "TargetPort": 0,
                "NodePort": 0,
            }
            yield duplicate(path.at(position), shown)
        numbers.add(key)


def _affinity(spec: Struct) -> Errors:
    affinity = spec["sessionAffinity"]
    yield from common.choice(SPEC.child("sessionAffinity"), affinity, ("ClientIP", "None"))
    if affinity != "ClientIP":
        return
    seconds = ((spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}).get("timeoutSeconds") or 0
    if not 0 < seconds <= _DAY:
        where = SPEC.child("sessionAffinityConfig", "clientIP", "timeoutSeconds")
        yield invalid(where, seconds, f"must be greater than 0 and less than {_DAY}")


def _addresses(spec: Struct) -> Errors:
    path, given = SPEC.child("clusterIPs"), list(spec.get("clusterIPs") or ())
    address = spec.get("clusterIP", "")
    if address and not given:
        yield required(path)
    elif address and given[0] != address:
        yield invalid(path, given, "first value must match `clusterIP`")
    elif given and not address:
        yield invalid(path, given, "must be empty when `clusterIP` is not specified")
    seen: set[str] = set()
    for position, family in enumerate(spec.get("ipFamilies") or ()):
        where = SPEC.child("ipFamilies").at(position)
        yield from checks.one_of(where, family, _FAMILIES)
        if family in seen:
            yield duplicate(where, family)
        seen.add(family)
    yield from checks.one_of(SPEC.child("ipFamilyPolicy"), spec.get("ipFamilyPolicy"), _POLICIES)
    if given[:1] == [NONE] and len(given) > 1:
        yield invalid(path, given, "'None' must be the first and only value")
    for position, value in enumerate(given):
        if not (position == 0 and value == NONE):
            yield from common.complaints(path.at(position), value, formats.ip_address(value))
    if len(given) > 2:
        yield invalid(path, given, "may only hold up to 2 values")


def _address_changes(spec: Struct, before: Struct) -> Errors:
    if "ExternalName" in (spec["type"], before["type"]) or (_is_headless(spec) and _is_headless(before)):
        return
    path = SPEC.child("clusterIPs").at(0)
    new, old = list(spec.get("clusterIPs") or ()), list(before.get("clusterIPs") or ())
    if old and not new:
        yield invalid(path, new, "primary clusterIP can not be unset")
    elif old and new[0] != old[0]:
        yield invalid(path, new, "may not change once set")


def _balancing(spec: Struct) -> Errors:
    if spec["type"] == "LoadBalancer":
        return
    only = "may only be used when `type` is 'LoadBalancer'"
    if spec.get("loadBalancerSourceRanges"):
        yield forbidden(SPEC.child("LoadBalancerSourceRanges"), only)
    if spec.get("allocateLoadBalancerNodePorts") is not None:
        yield forbidden(SPEC.child("allocateLoadBalancerNodePorts"), only)
    if spec.get("loadBalancerClass") is not None:
        yield forbidden(SPEC.child("loadBalancerClass"), "may only be used when `type` is 'LoadBalancer'")


def _traffic(spec: Struct) -> Errors:
    outside = is_reached_from_outside(spec)
    policy = spec.get("externalTrafficPolicy", "")
    where = SPEC.child("externalTrafficPolicy")
    if not outside:
        if policy:
            yield invalid(where, policy, "may only be set for externally-accessible services")
    else:
        yield from common.choice(where, policy, ("Cluster", "Local"))
    if spec.get("healthCheckNodePort") and not (spec["type"] == "LoadBalancer" and policy == "Local"):
        text = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        yield invalid(SPEC.child("healthCheckNodePort"), spec["healthCheckNodePort"], text)
    yield from checks.one_of(
        SPEC.child("internalTrafficPolicy"), spec.get("internalTrafficPolicy"), ("Cluster", "Local")
    )
    distribution = spec.get("trafficDistribution")
    if distribution is not None and distribution not in _DISTRIBUTIONS:
        yield not_supported(SPEC.child("trafficDistribution"), distribution, _DISTRIBUTIONS)


# What the server writes itself


def new_service(obj: Json) -> Json:
    """One address and the list of addresses say the same."""
    spec = obj["spec"]
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec = {**spec, "clusterIPs": [spec["clusterIP"]]}
    return {**obj, "spec": spec, "status": {"loadBalancer": {}}}


def changed_service(new: Json, old: Json) -> Json:
    """Addresses and ports that the server gave out are kept where the update does not speak of them."""
    spec, before = dict(new["spec"]), old["spec"]
    address, addresses = spec.get("clusterIP", ""), spec.get("clusterIPs")
    was, were = before.get("clusterIP", ""), before.get("clusterIPs")
    keeps = spec["type"] != "ExternalName" and before["type"] != "ExternalName"
    if keeps and not address and not addresses and was:
        spec["clusterIP"], spec["clusterIPs"] = was, were
    elif address != was and addresses == were:
        _put(spec, "clusterIPs", [address] if address else None)
    elif address == was and addresses != were:
        _put(spec, "clusterIP", addresses[0] if addresses else None)
    _drop_what_no_longer_applies(spec, before)
    if keeps:
        for name in ("ipFamilies", "ipFamilyPolicy"):
            if not spec.get(name) and name in before:
                spec[name] = before[name]
    spec["ports"] = _kept_node_ports(spec, before)
    if not spec["ports"]:
        del spec["ports"]
    if spec["type"] != "LoadBalancer":
        new = {**new, "status": {**(new.get("status") or {}), "loadBalancer": {}}}
    return {**new, "spec": spec}


def _drop_what_no_longer_applies(spec: Json, before: Json) -> None:
    """A service that changes its type loses the fields of the old one, unless the user changed them too."""
    gone: list[str] = []
    if spec["type"] == "ExternalName" != before["type"]:
        gone += ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"]
    if spec["type"] != "LoadBalancer" == before["type"]:
        gone += ["allocateLoadBalancerNodePorts", "loadBalancerClass", "healthCheckNodePort"]
    if is_reached_from_outside(before) and not is_reached_from_outside(spec):
        gone.append("externalTrafficPolicy")
    for name in gone:
        if spec.get(name) == before.get(name):
            spec.pop(name, None)


def _put(spec: Json, name: str, value: Any) -> None:
    if value is None:
        spec.pop(name, None)
    else:
        spec[name] = value


def _kept_node_ports(spec: Json, before: Json) -> list[Json]:
    ports = list(spec.get("ports") or ())
    known = {(port["protocol"], port["port"]): port.get("nodePort") for port in before.get("ports") or ()}
    if spec["type"] in _OUTSIDE and before["type"] in _OUTSIDE:
        used = {port.get("nodePort") for port in ports}
        return [
            {**port, "nodePort": kept}
            if not port.get("nodePort") and (kept := known.get((port["protocol"], port["port"]))) and kept not in used
            else port
            for port in ports
        ]
    if before["type"] in _OUTSIDE:
        return [
            {name: value for name, value in port.items() if name != "nodePort"}
            if port.get("nodePort") == known.get((port["protocol"], port["port"]))
            else port
            for port in ports
        ]
    return ports


def allocate(storage: Storage, new: Json, old: Json | None, dry_run: bool) -> Json:
    """Give a service the families, the address and the node ports that it needs and lacks.

    Whether those that it asks for are free is not looked at in a dry run.
    """
    spec = dict(new["spec"])
    if spec["type"] == "ExternalName":
        return new
    others = [other["spec"] for other in _others(storage, new)]
    if not spec.get("clusterIP"):
        taken = {address for other in others for address in other.get("clusterIPs") or ()}
        spec["clusterIP"] = _free_address(new["metadata"]["uid"], taken)
        spec["clusterIPs"] = [spec["clusterIP"]]
    elif not dry_run and spec["clusterIP"] not in (NONE, ((old or {}).get("spec") or {}).get("clusterIP")):
        _check_address(new, spec["clusterIP"], others)
    alone = not spec.get("selector") and spec["clusterIP"] == NONE
    families = ["IPv4", "IPv6"] if alone else ["IPv4"]
    spec["ipFamilies"] = spec.get("ipFamilies") or families
    policy = "RequireDualStack" if alone and len(spec["ipFamilies"]) > 1 else "SingleStack"
    spec["ipFamilyPolicy"] = spec.get("ipFamilyPolicy") or policy
    if spec["type"] in _OUTSIDE and spec.get("allocateLoadBalancerNodePorts") is not False:
        spec["ports"] = _with_node_ports(new, spec, others, old, dry_run)
    return {**new, "spec": spec}


def _others(storage: Storage, obj: Json) -> Iterator[Json]:
    for _, other in storage.scan("services", "", "", storage.version):
        if other["metadata"]["uid"] != obj["metadata"]["uid"]:
            yield other


def _numbers(seed: str, size: int) -> Iterator[int]:
    """Every number below `size`, beginning somewhere that depends on the seed."""
    start = int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=8).digest()) % size
    return ((start + step) % size for step in range(size))


def _free_address(seed: str, taken: set[str]) -> str:
    # The first addresses of a range are for the cluster's own services, such as the API server's.
    reserved = 16
    for number in _numbers(seed, NETWORK.num_addresses - 2 - reserved):
        address = str(NETWORK[number + 1 + reserved])
        if address not in taken:
            return address
    raise errors.plain_failure("range is full")


def _check_address(obj: Json, address: str, others: Sequence[Json]) -> None:
    problem = ""
    try:
        inside = ipaddress.ip_address(address) in NETWORK
    except ValueError:
        inside = False
    if not inside:
        problem = "the provided network does not match the current range"
    elif any(address in (other.get("clusterIPs") or ()) for other in others):
        problem = "provided IP is already allocated"
    if problem:
        text = f"failed to allocate IP {address}: {problem}"
        raise _refused(obj, [invalid(SPEC.child("clusterIPs"), [address], text)])


def _with_node_ports(obj: Json, spec: Json, others: Sequence[Json], old: Json | None, dry_run: bool) -> list[Json]:
    taken = {
        (port["protocol"], port["nodePort"])
        for other in others
        for port in other.get("ports") or ()
        if port.get("nodePort")
    }
    mine = {port.get("nodePort") for port in ((old or {}).get("spec") or {}).get("ports") or ()}
    result: list[Json] = []
    given = {(port["protocol"], port["nodePort"]) for port in spec.get("ports") or () if port.get("nodePort")}
    for position, port in enumerate(spec.get("ports") or ()):
        number = port.get("nodePort")
        if not number:
            number = _free_port(f"{obj['metadata']['uid']}/{position}", port["protocol"], taken | given)
        elif number not in mine and not dry_run:
            _check_port(obj, SPEC.child("ports").at(position).child("nodePort"), port["protocol"], number, taken)
        taken.add((port["protocol"], number))
        result.append({**port, "nodePort": number})
    return result


def _free_port(seed: str, protocol: str, taken: set[tuple[str, int]]) -> int:
    for number in _numbers(seed, len(NODE_PORTS)):
        if (protocol, NODE_PORTS[number]) not in taken:
            return NODE_PORTS[number]
    raise errors.plain_failure("range is full")


def _check_port(obj: Json, path: str, protocol: str, number: int, taken: set[tuple[str, int]]) -> None:
    if number not in NODE_PORTS:
        first, last = NODE_PORTS[0], NODE_PORTS[-1]
        text = f"provided port is not in the valid range. The range of valid ports is {first}-{last}"
        raise _refused(obj, [invalid(path, number, text)])
    if (protocol, number) in taken:
        raise _refused(obj, [invalid(path, number, "provided port is already allocated")])


def _refused(obj: Json, problems: Sequence[Any]) -> errors.StatusError:
    return errors.invalid_object("", "Service", obj["metadata"]["name"], problems)
