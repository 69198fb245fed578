"""What `kruise why` does."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Sequence
from typing import Any

import click

from kruise.cli.attending import missing_controller, stored_only
from kruise.cli.deciding import Asking, explain, explain_all, lone_pod, owner_of
from kruise.cli.flags import Connection, Where
from kruise.cli.printing import yaml_text
from kruise.cli.session import Session, explained, run
from kruise.machinery import collection
from kruise.machinery.causes import Act
from kruise.machinery.documents import Json, name_of, namespace_of
from kruise.manager import gates
from kruise.reasons import data, words
from kruise.reasons.assembling import lacks_controller
from kruise.reasons.data import as_data
from kruise.reasons.links import first_act
from kruise.reasons.summary import list_lines
from kruise.reasons.words import answer_lines
from kruise.verbs.errors import UsageError
from kruise.verbs.lookup import UnknownKindError
from kruise.verbs.targets import Target

WAITS = 3
"""Exit code where something waits that nobody asked to wait."""


def why(
    words: tuple[str, ...],
    where: Where,
    output: str | None,
    manager_url: str,
    anew: bool,
    feature_gates: str,
    connection: Connection,
) -> None:
    asking = Asking(manager_url=manager_url, journal=not anew, gates=_gates(feature_gates))

    async def work(session: Session) -> Act | None:
        if where.everything or where.selector:
            if where.filenames:
                raise UsageError("--all and -l choose among what the cluster has: leave out -f")
            return await _about_all(session, words or ("all",), where, asking, output)
        if not words and not where.filenames:
            raise UsageError("name a workload or a pod as KIND/NAME, such as cloneset/web, or look at all with --all")
        try:
            target, document = await session.one(words, where, "why")
        except UnknownKindError:
            stored = await stored_only(session, words)
            if stored is None:
                raise
            return _about_stored(session, *stored, output)
        if target.kind.resource.kind == "Pod":
            return await _about_pod(session, document, asking, output)
        if target.kind.progress is None and (reason := await missing_controller(session, target.kind)):
            return _about_stored(session, target, reason, output)
        answer = await explain(session, target, document, asking)
        if output:
            _show(as_data(answer), output)
        else:
            click.echo("\n".join(answer_lines(answer)))
        return answer.act

    with collection.at_rest():
        act = run(connection, work)
    if act is not None and act.value != "intended":
        sys.exit(WAITS)


async def _about_all(
    session: Session, words: Sequence[str], where: Where, asking: Asking, output: str | None
) -> Act | None:
    """One line for each workload that waits, those that somebody must act upon first."""

    found, refused = await session.present(words, where)
    answers, failures = await explain_all(session, found, asking)
    if output:
        _show([as_data(answer) for answer in answers], output)
    else:
        click.echo("\n".join(list_lines(answers, len(found) - len(failures), session.namespace)))
    if refused:
        kinds = ", ".join(kind.resource.group_resource for kind in refused)
        click.echo(f"note: not looked at, as you may not list them in namespace {session.namespace}: {kinds}", err=True)
    for target, error in failures:
        click.echo(f"error: {target}: {explained(error)}", err=True)
    if failures:
        raise click.ClickException(f"{len(failures)} of {len(found)} workloads cannot be told about")
    acts = [answer.act for answer in answers if answer.act is not None]
    return first_act(acts) if acts else None


async def _about_pod(session: Session, document: Json, asking: Asking, output: str | None) -> Act | None:
    name = name_of(document)
    owner = await owner_of(session, document)
    if owner is None:
        links = await lone_pod(session, document)
        if output:
            _show(data.lone_pod(name, namespace_of(document), links), output)
        else:
            click.echo("\n".join(words.lone_pod_lines(name, namespace_of(document), links)))
        return links[0].act if links else None
    answer = await explain(session, *owner, asking)
    if name not in answer.pods and name not in answer.waiting:
        # Newer than what the manager has decided about.
        answer = await explain(session, *owner, dataclasses.replace(asking, journal=False))
    if output:
        _show(data.as_data(answer, pod=name), output)
    else:
        click.echo("\n".join(words.pod_lines(answer, name)))
    return answer.act_of(name) if name in answer.waiting else None


def _about_stored(session: Session, target: Target, reason: str, output: str | None) -> Act:
    """An object that the cluster keeps, and nobody acts on."""

    link = lacks_controller(reason)
    namespace = (target.namespace or session.namespace) if target.kind.resource.namespaced else ""
    if output:
        _show(data.stored(target.kind.singular, namespace, target.name, link), output)
    else:
        click.echo("\n".join(words.stored_lines(f"{target.kind.word}/{target.name}", namespace, link)))
    return link.act


def _show(data: Any, output: str) -> None:
    if output == "json":
        click.echo(json.dumps(data, indent=4))
    else:
        click.echo(yaml_text(json.loads(json.dumps(data))), nl=False)


def _gates(text: str) -> dict[str, bool] | None:
    if not text:
        return None

    try:
        return gates.resolve(gates.parse(text))
    except gates.FeatureGateError as error:
        raise click.UsageError(str(error)) from error
