"""`kruise version`."""

from __future__ import annotations

import json

import click

from kruise import release


@click.command()
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How to answer.")
def version(output: str) -> None:
    """Print the version of this command."""
    click.echo(json.dumps({"version": release()}) if output == "json" else f"kruise {release()}")
