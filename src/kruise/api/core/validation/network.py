"""Ports, host names, DNS settings and what depends on the host's network."""

from __future__ import annotations

from collections.abc import Sequence

from kruise.api.core import formats
from kruise.api.core.field_errors import Path, duplicate, forbidden, invalid, required, too_long
from kruise.api.core.validation import common
from kruise.api.core.validation.common import Errors, Rules, Struct

_PROTOCOLS = ("SCTP", "TCP", "UDP")
_NAMESERVERS = 3
_SEARCH_PATHS = 32
_SEARCH_CHARACTERS = 2048


def ports(path: Path, given: Sequence[Struct]) -> Errors:
    seen: set[str] = set()
    for position, port in enumerate(given):
        where, name = path.at(position), port.get("name", "")
        if name:
            found = formats.port_name(name)
            yield from common.complaints(where.child("name"), name, found)
            if not found and name in seen:
                yield duplicate(where.child("name"), name)
            elif not found:
                seen.add(name)
        number, host_port = port["containerPort"], port.get("hostPort", 0)
        if number == 0:
            yield required(where.child("containerPort"))
        else:
            yield from common.complaints(where.child("containerPort"), number, formats.port_number(number))
        if host_port:
            yield from common.complaints(where.child("hostPort"), host_port, formats.port_number(host_port))
        yield from common.choice(where.child("protocol"), port.get("protocol", ""), _PROTOCOLS)


def host_port_conflicts(path: Path, containers: Sequence[Struct]) -> Errors:
    seen: set[str] = set()
    for position, container in enumerate(containers):
        for number, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            key = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if key in seen:
                yield duplicate(path.at(position).child("ports").at(number).child("hostPort"), key)
            seen.add(key)


def host_network(path: Path, spec: Struct, rules: Rules) -> Errors:
    """On the host's network a port is the host's. In templates 0 is allowed: it is filled in when the pod is made."""
    if not spec.get("hostNetwork"):
        return
    for position, container in enumerate(spec.get("containers") or ()):
        for number, port in enumerate(container.get("ports") or ()):
            host_port = port.get("hostPort", 0)
            if (rules.is_pod or host_port) and host_port != port["containerPort"]:
                where = path.child("containers").at(position).child("ports").at(number).child("hostPort")
                yield invalid(where, host_port, "must match `containerPort` when `hostNetwork` is true")


def dns_policy(path: Path, policy: str) -> Errors:
    yield from common.choice(path, policy, ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"))


def dns_config(path: Path, config: Struct | None, policy: str) -> Errors:
    nameservers = (config or {}).get("nameservers") or []
    if policy == "None" and config is None:
        yield required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
        return
    if policy == "None" and not nameservers:
        words = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        yield required(path.child("nameservers"), words)
        return
    if config is None:
        return
    if len(nameservers) > _NAMESERVERS:
        yield invalid(path.child("nameservers"), nameservers, f"must not have more than {_NAMESERVERS} nameservers")
    for position, address in enumerate(nameservers):
        yield from common.complaints(path.child("nameservers").at(position), address, formats.ip_address(address))
    yield from _searches(path.child("searches"), config.get("searches") or [])
    for position, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            yield required(path.child("options").at(position), "must not be empty")


def _searches(path: Path, searches: Sequence[str]) -> Errors:
    if len(searches) > _SEARCH_PATHS:
        yield invalid(path, searches, f"must not have more than {_SEARCH_PATHS} search paths")
    if formats.byte_length(" ".join(searches)) > _SEARCH_CHARACTERS:
        words = f"must not have more than {_SEARCH_CHARACTERS} characters (including spaces) in the search list"
        yield invalid(path, searches, words)
    for position, search in enumerate(searches):
        if search != ".":
            name = search.removesuffix(".")
            yield from common.complaints(path.at(position), name, formats.dns_subdomain_underscore(name))


def host_aliases(path: Path, aliases: Sequence[Struct]) -> Errors:
    for position, alias in enumerate(aliases):
        where = path.at(position)
        yield from common.complaints(where.child("ip"), alias["ip"], formats.ip_address(alias["ip"]))
        for number, name in enumerate(alias.get("hostnames") or ()):
            yield from common.complaints(where.child("hostnames").at(number), name, formats.dns_subdomain(name))


def host_names(path: Path, spec: Struct) -> Errors:
    for field in ("hostname", "subdomain"):
        name = spec.get(field, "")
        if name:
            yield from common.complaints(path.child(field), name, formats.dns_label(name))


def hostname_override(path: Path, spec: Struct) -> Errors:
    name = spec.get("hostnameOverride")
    if name is None:
        return
    where = path.child("hostnameOverride")
    if spec.get("setHostnameAsFQDN"):
        yield forbidden(where, "may not be specified when setHostnameAsFQDN is true")
    if spec.get("hostNetwork"):
        yield forbidden(where, "may not be specified when hostNetwork is true")
    if formats.byte_length(name) > 64:
        yield too_long(where, 64)
    yield from common.complaints(where, name, formats.dns_subdomain(name))


def host_users(path: Path, spec: Struct) -> Errors:
    """A pod with users of its own shares no other namespace with the host. The paths' spelling is the API server's."""
    if spec.get("hostUsers") is not False:
        return
    words = "when `hostUsers` is false"
    for field, shown in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
        if spec.get(field):
            yield forbidden(path.child(shown), words)
    for where, container in common.containers_of(spec, path):
        if container.get("volumeDevices"):
            yield forbidden(where.child("volumeDevices"), words)
