"""`kruise expose`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click
import yaml

from kruise.cli import flags
from kruise.cli.flags import Connection, Where, Writing

if TYPE_CHECKING:
    from kruise.cli.session import Session


@click.command(cls=flags.Command)
@flags.words
@flags.where(several=False)
@click.option("--port", default="", help="Port of the Service; those of the containers if not given.")
@click.option(
    "--target-port", "--container-port", "target_port", default="", help="Port of the pods, by number or name."
)
@click.option(
    "--protocol", type=click.Choice(["TCP", "UDP", "SCTP"]), default=None, help="TCP if nothing else is said."
)
@click.option("--name", default="", help="Name of the Service; that of the workload if not given.")
@click.option(
    "--type",
    "service_type",
    type=click.Choice(["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"]),
    default=None,
    help="Type of the Service.",
)
@click.option("--selector", default="", help="Labels of the pods, such as app=web; those of the workload's selector.")
@click.option("-l", "--labels", default="", help="Labels of the Service; those of the workload if not given.")
@click.option("--external-ip", default="", help="An address outside the cluster that it answers on, too.")
@click.option("--cluster-ip", default="", help="Its address; None makes it headless.")
@click.option("--load-balancer-ip", default="", help="Address for the load balancer.")
@click.option("--session-affinity", type=click.Choice(["None", "ClientIP"]), default=None, help="Stick to a pod.")
@click.option("--overrides", default="", help="JSON that is merged into the Service.")
@flags.writing()
@flags.connection
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
    """Make a Service for the pods of a workload, of a pod, or of another Service."""
    from kruise.cli import printing
    from kruise.cli.session import run
    from kruise.faces.native import SERVICE
    from kruise.machinery.documents import value_at, with_value
    from kruise.verbs import exposing

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
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise click.BadParameter(f"is no JSON: {' '.join(str(error).split())}", param_hint="--overrides") from error
    if not isinstance(found, dict):
        raise click.BadParameter(f"must be an object, not {json.dumps(found)}", param_hint="--overrides")
    return found
