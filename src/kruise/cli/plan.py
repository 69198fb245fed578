"""`kruise plan`: what a change will do, before it is made."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from kruise.cli import flags
from kruise.cli.flags import Connection, Where

if TYPE_CHECKING:
    from kruise.cli.plan_fields import Fields
    from kruise.cli.plan_reading import Edit
    from kruise.cli.session import Session
    from kruise.foresight.rendering.report import Report
    from kruise.machinery.documents import Json
    from kruise.manager.options import Options
    from kruise.verbs.targets import Target

WOULD_NOT_FINISH, WOULD_GET_STUCK, WOULD_CHANGE = 3, 4, 5
_OBJECTS_SHOWN = 8


@click.command(cls=flags.Command)
@flags.words
@flags.where(several=False)
@click.option(
    "--image", "images", multiple=True, metavar="CONTAINER=IMAGE", help="Another image; * for all containers."
)
@click.option("--replicas", type=click.IntRange(min=0), default=None, help="Another number of replicas.")
@click.option("--set", "assignments", multiple=True, metavar="PATH=VALUE", help="Another value of any field, as JSON.")
@click.option(
    "-o", "--output", type=click.Choice(["json", "markdown"]), default=None, help="For programs, for comments."
)
@click.option("-v", "--all-pods", "everything", is_flag=True, help="List every wave and every pod.")
@click.option("--plain", is_flag=True, help="Lines instead of a drawing on a terminal.")
@click.option(
    "--stop-at-hooks", is_flag=True, help="End at a lifecycle hook, instead of going on as if it were answered."
)
@click.option("--thorough", is_flag=True, help="Look to the very end, however long that takes.")
@click.option("--feature-gates", default="", metavar="NAME=BOOL,...", help="Gates that the manager runs with.")
@click.option("--exit-code", is_flag=True, help="Exit with 5 where pods would change.")
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
    connection: Connection,
) -> None:
    """Show what a change will do, before it is made: which pods, in which order, how, and where it stops.

    The change is what a file (-f) says, or what --image, --replicas and --set say of an object that is there, or both.
    Without any change: how the rollout that is under way goes on. Nothing is changed in the cluster.

    \b
    kruise plan -f web.yaml
    kruise plan cloneset/web --image main=nginx:1.27
    kruise plan cloneset/web --replicas 20 --set spec.updateStrategy.rollingUpdate.maxUnavailable=25%
    """
    from kruise.cli.session import run

    options = _options(feature_gates)

    async def work(session: Session) -> Report:
        from kruise.verbs import images as image_words

        chosen = image_words.parse(images) if images else {}
        target, manifest = _named(session, words, where)

        def edit(fields: Fields, document: Json) -> Json:
            return _edited(target, document, chosen, replicas, assignments, fields)

        return await _report(
            session, target, manifest, edit, options, answer_hooks=not stop_at_hooks, thorough=thorough
        )

    report = run(connection, work)
    _show(report, output, everything=everything, plain=plain)
    sys.exit(_exit_code(report, says_change=exit_code))


def _options(feature_gates: str) -> Options:
    from kruise.manager import gates
    from kruise.manager.options import Options

    try:
        return Options(gates=gates.resolve(gates.parse(feature_gates)))
    except gates.FeatureGateError as error:
        raise click.UsageError(f"--feature-gates: {error}") from error


def _named(session: Session, words: tuple[str, ...], where: Where) -> tuple[Target, Json | None]:
    """The object that the command line is about, and its manifest if it comes from a file."""
    from kruise.foresight.rendering.words import names_text
    from kruise.machinery.documents import name_of
    from kruise.verbs import targets
    from kruise.verbs.errors import UsageError

    if not where.filenames:
        return targets.only(targets.parse(words).targets, "plan"), None
    if words:
        raise UsageError("name an object or give a file with -f, not both")
    found = list(session.manifests(where))
    if len(found) != 1:
        held = [f"{document.get('kind', '?')} {name_of(document) or '?'}" for _, document in found]
        raise UsageError(
            f"a plan is about one object, but {' and '.join(where.filenames)} holds {len(found)}: "
            f"{names_text(held, shown=_OBJECTS_SHOWN) or 'none'}. "
            "Put the one that you want to plan into a file of its own, or give it as -f -"
        )
    [(origin, document)] = found
    return session.target_of(origin, document), document


def _edited(
    target: Target,
    document: Json,
    images: dict[str, str],
    replicas: int | None,
    assignments: tuple[str, ...],
    fields: Fields,
) -> Json:
    from kruise.cli.plan_edits import parse_assignment, with_assignment
    from kruise.verbs import images as image_words
    from kruise.verbs.scaling import scaled

    if images:
        document = image_words.change(target.kind, document, images)
    if replicas is not None:
        document = scaled(target.kind, document, replicas)
    for text in assignments:
        document = with_assignment(document, fields.read(parse_assignment(text)))
    return document


async def _report(
    session: Session,
    target: Target,
    manifest: Json | None,
    edit: Edit,
    options: Options,
    *,
    answer_hooks: bool,
    thorough: bool,
) -> Report:
    from kruise.admission.inventory import MUTATING
    from kruise.cli import plan_reading
    from kruise.foresight import Bounds, foresee
    from kruise.foresight.errors import ForesightError
    from kruise.foresight.rendering.report import Report
    from kruise.kinds import features
    from kruise.verbs.errors import VerbError

    question = plan_reading.question_of(session, target, manifest, edit, features())
    situation = await plan_reading.read(session, question, features=features(), settings=options)
    refused = question.fields.refusal(target.name, situation.changed, situation.live)
    try:
        forecast = foresee(
            question.subject,
            situation.key,
            situation.changed,
            situation.objects,
            features=features(),
            settings=options,
            now=session.clock.now(),
            answer_hooks=answer_hooks,
            server_version=situation.server_version,
            bounds=Bounds(looks=sys.maxsize, passes=sys.maxsize) if thorough else Bounds(),
        )
    except ForesightError as error:
        # An API server asks the webhooks that change objects, then checks the object itself, then asks the others.
        is_first = any(f'"{entry.name}"' in str(error) for entry in MUTATING)
        raise VerbError(str(error) if is_first or not refused else refused) from error
    if refused:
        raise VerbError(refused)
    return Report(
        subject=str(target),
        forecast=forecast,
        pods=frozenset(pod.metadata.name for pod in situation.pods),
        is_new=situation.live is None,
        notes=situation.notes,
        drifted=await plan_reading.drifted(session, situation),
    )


def _show(report: Report, output: str | None, *, everything: bool, plain: bool) -> None:
    from kruise.cli.printing import is_terminal
    from kruise.foresight.rendering import data, lines, markdown

    if output == "json":
        import json

        click.echo(json.dumps(data.as_data(report), indent=2))
    elif output == "markdown":
        click.echo(markdown.markdown(report, everything=everything), nl=False)
    elif is_terminal() and not plain:
        from kruise.cli.plan_view import draw

        draw(report, everything=everything)
    else:
        click.echo("\n".join(lines.lines(report, everything=everything)))


def _exit_code(report: Report, *, says_change: bool) -> int:
    from kruise.foresight.rendering.verdict import Verdict, verdict_of

    match verdict_of(report.forecast):
        case Verdict.STUCK:
            return WOULD_GET_STUCK
        case Verdict.UNFINISHED:
            return WOULD_NOT_FINISH
    return WOULD_CHANGE if says_change and report.forecast.moves else 0
