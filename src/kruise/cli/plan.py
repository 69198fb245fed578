"""`kruise plan`: what a change will do, before it is made."""

from __future__ import annotations

import click

from kruise.cli import flags


@click.command(cls=flags.Command)
@flags.words
@flags.where(several=False, kustomize=True)
@click.option(
    "--image", "images", multiple=True, metavar="CONTAINER=IMAGE", help="Another image; * for all containers."
)
@click.option("--replicas", type=click.IntRange(min=0), default=None, help="Another number of replicas.")
@click.option("--set", "assignments", multiple=True, metavar="PATH=VALUE", help="Another value of any field, as JSON.")
@click.option(
    "-o", "--output", type=click.Choice(["json", "yaml", "markdown"]), default=None, help="For programs, for comments."
)
@click.option("-v", "--all-pods", "everything", is_flag=True, help="List every wave and every pod.")
@click.option("--plain", is_flag=True, help="Lines instead of a drawing on a terminal.")
@click.option(
    "--stop-at-hooks", is_flag=True, help="End at a lifecycle hook, instead of going on as if it were answered."
)
@click.option("--thorough", is_flag=True, help="Look to the very end, however long that takes.")
@click.option("--feature-gates", default="", metavar="NAME=BOOL,...", help="Gates that the manager runs with.")
@click.option("--exit-code", is_flag=True, help="Exit with 5 where pods would change.")
@click.option(
    "--lose-nodes", default="", metavar="SELECTOR", help="What if the nodes with these labels are lost, such as a zone."
)
@flags.connection
@flags.carried_out_by("kruise.cli.work.plan")
def plan() -> None:
    """Show what a change will do, before it is made: which pods, in which order, how, and where it stops.

    The change is what a file (-f) says, or what --image, --replicas and --set say of an object that is there, or both.
    Without any change: how the rollout that is under way goes on. Nothing is changed in the cluster.

    Of a BroadcastJob or an ImagePullJob it shows the nodes in their order, of an AdvancedCronJob the next runs, of an
    EphemeralJob the pods that it serves.

    Every workload of the files is planned, or with KIND/NAME the one of that name; other kinds are not looked at.

    \b
    kruise plan -f web.yaml
    kruise plan -f deploy/ -R
    kruise plan cloneset/web -k overlays/production
    kruise plan cloneset/web --image main=nginx:1.27
    kruise plan cloneset/web --replicas 20 --set spec.updateStrategy.rollingUpdate.maxUnavailable=25%

    What would go, what would refuse it and what stays, of a deletion and of the drain of a node:

    \b
    kruise plan delete cloneset/web
    kruise plan drain node-1

    What is left when nodes are lost, where the other pods come up again, and which budgets that breaks:

    \b
    kruise plan uniteddeployment/web --lose-nodes topology.kubernetes.io/zone=a
    """
