"""`kruise plan`: what a change will do, before it is made."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from kruise.cli import flags
from kruise.cli.flags import Connection, Where

if TYPE_CHECKING:
    from kruise.cli.plan_edits import Assignment
    from kruise.cli.plan_fields import Fields
    from kruise.cli.plan_reading import Edit
    from kruise.cli.session import Session
    from kruise.foresight.rendering.report import Report
    from kruise.foresight.rendering.several import Plans
    from kruise.machinery.documents import Json
    from kruise.manager.options import Options
    from kruise.verbs.targets import Target

REFUSED, WOULD_NOT_FINISH, WOULD_GET_STUCK, WOULD_CHANGE = 1, 3, 4, 5
_REMOVALS = ("delete", "drain")
_BY_BADNESS = (REFUSED, WOULD_GET_STUCK, WOULD_NOT_FINISH, WOULD_CHANGE, 0)


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
def plan(
    words: tuple[str, ...],
    where: Where,
    images: tuple[str, ...],
    replicas: int | None,
    assignments: tuple[str, ...],
    output: str | None,
    everything: bool,
    plain: bool,
    stop_at_hooks: bool,
    thorough: bool,
    feature_gates: str,
    exit_code: bool,
    lose_nodes: str,
    connection: Connection,
) -> None:
    """Show what a change will do, before it is made: which pods, in which order, how, and where it stops.

    The change is what a file (-f) says, or what --image, --replicas and --set say of an object that is there, or both.
    Without any change: how the rollout that is under way goes on. Nothing is changed in the cluster.

    Of a BroadcastJob it shows the nodes in their order, of an AdvancedCronJob the next runs, of an EphemeralJob the
    pods that it serves.

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
    from kruise.cli.session import run

    options = _options(feature_gates)
    if words and words[0] in _REMOVALS:
        _plan_removal(words, options, output, connection)
        return
    if lose_nodes:
        if where.has_files or images or replicas is not None or assignments:
            raise click.UsageError("--lose-nodes looks at an object as it is: name it, and leave changes out")
        _plan_loss(words, lose_nodes, options, output, everything, connection)
        return

    async def work(session: Session) -> tuple[Plans, bool]:
        from kruise.cli.plan_edits import parse_assignment
        from kruise.cli.plan_looking import Look
        from kruise.cli.plan_objects import choose
        from kruise.verbs import images as image_words

        chosen = await choose(session, words, where)
        parsed = image_words.parse(images) if images else {}
        wanted = [parse_assignment(text) for text in assignments]

        def edit_of(target: Target) -> Edit:
            return lambda fields, document: _edited(target, document, parsed, replicas, wanted, fields)

        has_edits = bool(images or replicas is not None or assignments)
        look = Look(session, options, answer_hooks=not stop_at_hooks, thorough=thorough, has_edits=has_edits)
        return await look.at_all(chosen, edit_of), chosen.is_one

    plans, is_one = run(connection, work)
    _show(plans, output, is_one=is_one, everything=everything, plain=plain)
    sys.exit(_exit_code(plans, says_change=exit_code))


def _plan_loss(
    words: tuple[str, ...],
    selector: str,
    options: Options,
    output: str | None,
    everything: bool,
    connection: Connection,
) -> None:
    from kruise.cli import plan_losing
    from kruise.cli.session import run
    from kruise.foresight.removal import telling

    found = run(connection, lambda session: plan_losing.plan(session, words, selector, options))
    if output in ("json", "yaml"):
        _print_data(telling.as_data(found), output)
    else:
        click.echo("\n".join(telling.loss_lines(found, everything=everything)))
    sys.exit(0 if found.recovers else WOULD_GET_STUCK)


def _print_data(data: dict[str, Any], output: str) -> None:
    import json

    from kruise.cli.printing import yaml_text

    text = json.dumps(data, indent=2)
    click.echo(text if output == "json" else yaml_text(json.loads(text)).rstrip())


def _plan_removal(words: tuple[str, ...], options: Options, output: str | None, connection: Connection) -> None:
    from kruise.cli.plan_removal import Removal
    from kruise.cli.session import run
    from kruise.foresight.removal import telling
    from kruise.foresight.removal.draining import Drain

    found = run(connection, lambda session: Removal(session, options.gates).plan(words))
    if output in ("json", "yaml"):
        _print_data(telling.as_data(found), output)
    else:
        lines = telling.drain_lines(found) if isinstance(found, Drain) else telling.deletion_lines(found)
        click.echo("\n".join(lines))
    if isinstance(found, Drain):
        sys.exit(0 if found.ends else WOULD_GET_STUCK)
    sys.exit(REFUSED if found.is_refused else 0)


def _options(feature_gates: str) -> Options:
    from kruise.manager import gates
    from kruise.manager.options import Options

    try:
        return Options(gates=gates.resolve(gates.parse(feature_gates)))
    except gates.FeatureGateError as error:
        raise click.UsageError(f"--feature-gates: {error}") from error


def _edited(
    target: Target,
    document: Json,
    images: dict[str, str],
    replicas: int | None,
    assignments: list[Assignment],
    fields: Fields,
) -> Json:
    from kruise.cli.plan_edits import with_assignment
    from kruise.verbs import images as image_words
    from kruise.verbs.scaling import scaled

    if images:
        document = image_words.change(target.kind, document, images)
    if replicas is not None:
        document = scaled(target.kind, document, replicas)
    for assignment in assignments:
        document = with_assignment(document, fields.read(assignment))
    return document


def _show(plans: Plans, output: str | None, *, is_one: bool, everything: bool, plain: bool) -> None:
    from kruise.cli.printing import is_terminal, yaml_text
    from kruise.foresight.rendering import several
    from kruise.foresight.rendering.report import Prospect, Report

    one = plans.results[0] if is_one else None
    if output in ("json", "yaml"):
        import json

        text = json.dumps(several.as_data(plans) if one is None else several.data_of(one), indent=2)
        click.echo(text if output == "json" else yaml_text(json.loads(text)).rstrip())
    elif output == "markdown":
        if one is not None:
            click.echo(several.markdown_of(one, everything=everything), nl=False)
        else:
            click.echo(several.as_markdown(plans, everything=everything), nl=False)
    elif is_terminal() and not plain:
        from kruise.cli.plan_view import draw, draw_prospect, draw_several

        if isinstance(one, Report):
            draw(one, everything=everything)
        elif isinstance(one, Prospect):
            draw_prospect(one)
        else:
            draw_several(plans, everything=everything)
    else:
        found = (
            several.texts(plans, everything=everything) if one is None else several.text_of(one, everything=everything)
        )
        click.echo("\n".join(found))


def _exit_code(plans: Plans, *, says_change: bool) -> int:
    """The worst of them."""
    codes = [_code_of(report, says_change=says_change) for report in plans.reports]
    return min([*codes, *([REFUSED] if plans.is_refused else [])], key=_BY_BADNESS.index, default=0)


def _code_of(report: Report, *, says_change: bool) -> int:
    from kruise.foresight.rendering.verdict import Verdict, verdict_of

    match verdict_of(report.forecast):
        case Verdict.STUCK:
            return WOULD_GET_STUCK
        case Verdict.UNFINISHED:
            return WOULD_NOT_FINISH
    return WOULD_CHANGE if says_change and report.forecast.moves else 0
