"""`kruise plan` of kinds that do not roll out: what they will do next."""

from __future__ import annotations

import json
from typing import Any

import click

from kruise.api.meta import controller_of
from kruise.cli.plan_edits import applied
from kruise.cli.session import Session
from kruise.faces.outlook import Outlook, Seen
from kruise.machinery.documents import Json, namespace_of, uid_of
from kruise.machinery.wording import table
from kruise.machinery.zones import local_zone
from kruise.verbs.errors import UsageError, VerbError
from kruise.verbs.targets import Target


async def look(session: Session, target: Target, manifest: Json | None) -> Outlook:
    """Of an object of a file, or of one that is there."""
    facts = target.kind.outlook_facts()
    assert facts is not None
    document = manifest if manifest is not None else await session.get(target)
    if manifest is not None and facts.is_selecting:
        document = applied(await session.find(target), manifest, namespace=target.namespace or session.namespace)
    uid = uid_of(document) if manifest is None else ""
    namespace = namespace_of(document) or session.namespace
    objects: dict[Any, Any] = {}
    for resource in facts.reads(document):
        found = (await session.client.list(resource, namespace if resource.namespaced else "")).items
        if resource.namespaced and not facts.is_selecting:
            found = tuple(one for one in found if (owner := controller_of(one)) is not None and owner.uid == uid)
        objects[resource] = found
    try:
        return facts.tell(document, Seen(now=session.clock.now(), zone=local_zone(), objects=objects))
    except ValueError as error:
        raise VerbError(f"{target}: {error}") from error


def refuse_edits(target: Target) -> None:
    raise UsageError(f"{target} does not roll out: give a file (-f) instead of --image, --replicas and --set")


def show(target: Target, namespace: str, found: Outlook, output: str | None) -> None:
    if output is not None and output != "markdown":
        from kruise.cli.printing import yaml_text

        rows = [dict(zip(found.header, row, strict=True)) for row in found.rows]
        data = {"subject": str(target), "namespace": namespace, **dict(found.facts)}
        data |= {"rows": rows, "notes": list(found.notes)}  # type: ignore[dict-item]
        click.echo(json.dumps(data, indent=2) if output == "json" else yaml_text(data).rstrip())
        return
    lines = [f"{'Plan:':<18}{target} in namespace {namespace}"]
    lines += [f"{f'{title}:':<18}{text}" for title, text in found.facts]
    if found.rows:
        lines += ["", *table(found.header, found.rows)]
    if found.notes:
        lines += ["", *(f"note: {note}" for note in found.notes)]
    click.echo("\n".join(lines))
