"""`expose`: the Service for the pods of a workload."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from kruise.faces.face import Face
from kruise.faces.native import POD, REPLICATION_CONTROLLER, SERVICE
from kruise.machinery.documents import Json, name_of, value_at
from kruise.machinery.patches import merge
from kruise.machinery.wording import with_article
from kruise.verbs.errors import UsageError, VerbError
from kruise.verbs.identity import parse_selector
from kruise.verbs.lookup import pod_spec

_LONGEST_NAME = 63
PROTOCOLS = ("TCP", "UDP", "SCTP")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the command line says. Empty: what the workload says, or Kubernetes' default."""

    ports: tuple[int, ...] = ()
    target_port: str = ""
    protocol: str = ""
    name: str = ""
    type: str = ""
    selector: str = ""
    labels: str = ""
    external_ip: str = ""
    cluster_ip: str = ""
    load_balancer_ip: str = ""
    session_affinity: str = ""
    overrides: Json = dataclasses.field(default_factory=dict)


def parse_ports(text: str) -> tuple[int, ...]:
    ports = []
    for part in filter(None, text.split(",")):
        if not part.isdecimal() or not 0 < int(part) < 65536:
            raise UsageError(f'"{part}" is no port: write a number from 1 to 65535')
        ports.append(int(part))
    return tuple(ports)


def service_for(kind: Face, document: Json, wishes: Wishes) -> Json:
    """The Service to create."""
    if not kind.is_exposable:
        raise VerbError(f"cannot expose {with_article(str(kind))}")
    selector = parse_selector(wishes.selector) if wishes.selector else _selector(kind, document)
    labels = parse_selector(wishes.labels) if wishes.labels else value_at(document, ("metadata", "labels"), {})
    spec: Json = {"selector": selector}
    ports = _ports(kind, document, wishes)
    if ports:
        spec["ports"] = ports
    fields = {
        "type": wishes.type,
        "clusterIP": wishes.cluster_ip,
        "loadBalancerIP": wishes.load_balancer_ip if wishes.type == "LoadBalancer" else "",
        "sessionAffinity": wishes.session_affinity,
    }
    spec |= {name: value for name, value in fields.items() if value}
    if wishes.external_ip:
        spec["externalIPs"] = [wishes.external_ip]
    metadata: Json = {"name": wishes.name or name_of(document)[:_LONGEST_NAME]}
    if labels:
        metadata["labels"] = dict(labels)
    service = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}
    made: Json = merge.apply(service, wishes.overrides) if wishes.overrides else service
    return made


def _selector(kind: Face, document: Json) -> dict[str, str]:
    if kind is POD:
        labels = value_at(document, ("metadata", "labels"), {})
        if not labels:
            raise VerbError(f"{kind.named(name_of(document))} has no labels and cannot be exposed: use --selector")
        return dict(labels)
    found = value_at(document, kind.selector or (), {})
    if kind in (SERVICE, REPLICATION_CONTROLLER):
        labels = found
    else:
        if found.get("matchExpressions"):
            raise VerbError(
                f"{kind.named(name_of(document))} selects its pods by expressions, which a Service cannot: "
                "give the labels with --selector"
            )
        labels = found.get("matchLabels") or {}
    if not labels:
        raise VerbError(f"{kind.named(name_of(document))} has no selector: give the labels with --selector")
    return dict(labels)


def _ports(kind: Face, document: Json, wishes: Wishes) -> list[Json]:
    found = _declared(kind, document)
    protocols: dict[int, list[str]] = {}
    for number, protocol in found:
        protocols.setdefault(number, []).append(protocol)
    numbers = wishes.ports or tuple(protocols)
    if not numbers:
        if wishes.cluster_ip == "None":
            return []
        raise VerbError(
            f"couldn't find port via --port flag or introspection: {kind.named(name_of(document))} declares none"
        )
    entries: list[Json] = []
    for number in numbers:
        for protocol in [wishes.protocol] if wishes.protocol else protocols.get(number, ["TCP"]):
            entries.append({"port": number, "targetPort": _target(wishes.target_port, number), "protocol": protocol})
    if len(entries) > 1:
        for index, entry in enumerate(entries, start=1):
            entry["name"] = f"port-{index}"
    return entries


def _target(wanted: str, number: int) -> int | str:
    return (int(wanted) if wanted.isdecimal() else wanted) if wanted else number


def _declared(kind: Face, document: Json) -> list[tuple[int, str]]:
    """Number and protocol of the ports that the object declares, each once, in their order."""
    if kind is SERVICE:
        listed: Iterable[Any] = value_at(document, ("spec", "ports"), ())
        return _pairs(listed, "port")
    containers = value_at(document, (*pod_spec(kind, document), "containers"), ())
    return _pairs((port for one in containers for port in one.get("ports") or ()), "containerPort")


def _pairs(ports: Iterable[Json], field: str) -> list[tuple[int, str]]:
    return list(dict.fromkeys((int(port[field]), str(port.get("protocol", "TCP"))) for port in ports if field in port))
