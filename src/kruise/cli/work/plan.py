"""What `kruise plan` does."""

from __future__ import annotations

import json
import sys

import click

from kruise.cli.flags import Connection, Where
from kruise.cli.plan_edits import Assignment, parse_assignment, with_assignment
from kruise.cli.plan_fields import Fields
from kruise.cli.plan_looking import Look
from kruise.cli.plan_objects import choose
from kruise.cli.plan_reading import Edit
from kruise.cli.printing import is_terminal, yaml_text
from kruise.cli.session import Session, run
from kruise.cli.work.plan_codes import REFUSED, WOULD_CHANGE, WOULD_GET_STUCK, WOULD_NOT_FINISH
from kruise.foresight.rendering import several
from kruise.foresight.rendering.report import Prospect, Report
from kruise.foresight.rendering.several import Plans
from kruise.foresight.rendering.verdict import Verdict, verdict_of
from kruise.machinery.documents import Json
from kruise.manager import gates
from kruise.manager.options import Options
from kruise.verbs import images as image_words
from kruise.verbs.scaling import scaled
from kruise.verbs.targets import Target

_REMOVALS = ("delete", "drain")

_BY_BADNESS = (REFUSED, WOULD_GET_STUCK, WOULD_NOT_FINISH, WOULD_CHANGE, 0)


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
    options = _options(feature_gates)
    is_removal = bool(words) and words[0] in _REMOVALS
    if lose_nodes and not is_removal and (where.has_files or images or replicas is not None or assignments):
        raise click.UsageError("--lose-nodes looks at an object as it is: name it, and leave changes out")
    if is_removal or lose_nodes:
        from kruise.cli.work import plan_losses  # controllers of Kubernetes' own kinds come with it

        if is_removal:
            plan_losses.of_removal(words, options, output, connection)
        else:
            plan_losses.of_nodes(words, lose_nodes, options, output, everything, connection)
        return

    async def work(session: Session) -> tuple[Plans, bool]:
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


def _options(feature_gates: str) -> Options:
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
    if images:
        document = image_words.change(target.kind, document, images)
    if replicas is not None:
        document = scaled(target.kind, document, replicas)
    for assignment in assignments:
        document = with_assignment(document, fields.read(assignment))
    return document


def _show(plans: Plans, output: str | None, *, is_one: bool, everything: bool, plain: bool) -> None:
    one = plans.results[0] if is_one else None
    if output in ("json", "yaml"):
        text = json.dumps(several.as_data(plans) if one is None else several.data_of(one), indent=2)
        click.echo(text if output == "json" else yaml_text(json.loads(text)).rstrip())
    elif output == "markdown":
        if one is not None:
            click.echo(several.markdown_of(one, everything=everything), nl=False)
        else:
            click.echo(several.as_markdown(plans, everything=everything), nl=False)
    elif is_terminal() and not plain:
        from kruise.cli.plan_view import draw, draw_prospect, draw_several  # what draws is large

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
    match verdict_of(report.forecast):
        case Verdict.STUCK:
            return WOULD_GET_STUCK
        case Verdict.UNFINISHED:
            return WOULD_NOT_FINISH
    return WOULD_CHANGE if says_change and report.forecast.moves else 0
