"""What `kruise expose` does."""

from __future__ import annotations

import json
from typing import Any

import click

from kruise.cli import printing
from kruise.cli.flags import Connection, Where, Writing
from kruise.cli.session import Session, run
from kruise.faces.native import SERVICE
from kruise.machinery.documents import value_at, with_value
from kruise.verbs import exposing


def expose(
    words: tuple[str, ...],
    where: Where,
    port: str,
    target_port: str,
    protocol: str | None,
    name: str,
    service_type: str | None,
    selector: str,
    labels: str,
    external_ip: str,
    cluster_ip: str,
    load_balancer_ip: str,
    session_affinity: str | None,
    overrides: str,
    writing: Writing,
    connection: Connection,
) -> None:
    async def work(session: Session) -> None:
        wishes = exposing.Wishes(
            ports=exposing.parse_ports(port),
            target_port=target_port,
            protocol=protocol or "",
            name=name,
            type=service_type or "",
            selector=selector,
            labels=labels,
            external_ip=external_ip,
            cluster_ip=cluster_ip,
            load_balancer_ip=load_balancer_ip,
            session_affinity=session_affinity or "",
            overrides=_overrides(overrides),
        )
        target, document = await session.one(words, where, "expose")
        service = exposing.service_for(target.kind, document, wishes)
        namespace = value_at(document, ("metadata", "namespace"), session.namespace)
        service = with_value(service, ("metadata", "namespace"), namespace)
        if writing.dry_run != "client":
            service = await session.create(SERVICE.resource, service, writing)
        printing.report(SERVICE, service, "exposed", writing)

    run(connection, work)


def _overrides(text: str) -> dict[str, Any]:
    if not text:
        return {}
    import yaml  # few say more than flags can

    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise click.BadParameter(f"is no JSON: {' '.join(str(error).split())}", param_hint="--overrides") from error
    if not isinstance(found, dict):
        raise click.BadParameter(f"must be an object, not {json.dumps(found)}", param_hint="--overrides")
    return found
