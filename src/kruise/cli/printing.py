"""What a change prints: kubectl's line, or the object."""

from __future__ import annotations

import json
import sys

import click

from kruise.cli import terminal
from kruise.cli.flags import Writing
from kruise.faces.face import Face
from kruise.machinery.documents import Json, name_of

DRY_RUNS = {"client": " (dry run)", "server": " (server dry run)"}


def report(kind: Face, document: Json, operation: str, writing: Writing, *, follows: bool = False) -> None:
    """`cloneset.apps.kruise.io/web image updated`, or what `-o` asks for."""
    if writing.output:
        if follows and writing.output == "yaml":
            click.echo("---")
        show(kind, document, writing)
    else:
        click.echo(f"{kind.named(name_of(document))} {operation}{DRY_RUNS.get(writing.dry_run, '')}")


def show(kind: Face, document: Json, writing: Writing) -> None:
    if writing.output == "name":
        click.echo(kind.named(name_of(document)))
        return
    shown = document if writing.show_managed_fields else _without_managed_fields(document)
    if writing.output == "json":
        click.echo(json.dumps(shown, indent=4))
    else:
        click.echo(yaml_text(shown), nl=False)


def yaml_text(document: Json) -> str:
    import yaml  # it takes as long as the rest of a short command

    text = yaml.dump(document, sort_keys=True, default_flow_style=False, allow_unicode=True)
    if terminal.shows(text):
        return text
    # Plain characters would be other data: what cannot be shown is escaped.
    return yaml.dump(document, sort_keys=True, default_flow_style=False, allow_unicode=False)


def _without_managed_fields(document: Json) -> Json:
    metadata = {name: value for name, value in document.get("metadata", {}).items() if name != "managedFields"}
    return {**document, "metadata": metadata}


def note(text: str) -> None:
    click.echo(f"note: {text}", err=True)


def is_terminal() -> bool:
    return sys.stdout.isatty()
