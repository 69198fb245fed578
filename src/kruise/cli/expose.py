"""`kruise expose`."""

from __future__ import annotations

import click

from kruise.cli import flags


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
@flags.carried_out_by("kruise.cli.work.expose")
def expose() -> None:
    """Make a Service for the pods of a workload, of a pod, or of another Service."""
