"""`kruise inject`: which sidecars a pod would get, from which SidecarSet, and why not from the others."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from kruise.cli import flags
from kruise.cli.flags import Connection, Where

if TYPE_CHECKING:
    from kruise.cli.injecting import Asked
    from kruise.cli.session import Session


@click.command(cls=flags.Command)
@flags.words
@flags.where(several=False)
@click.option(
    "-o", "--output", type=click.Choice(["json", "yaml"]), default=None, help="The same as data, with the whole pod."
)
@click.option("--feature-gates", default="", help="The manager's gates, where they are not the defaults.")
@flags.connection
def inject(
    words: tuple[str, ...], where: Where, output: str | None, feature_gates: str, connection: Connection
) -> None:
    """Show which sidecars a new pod would get, from which SidecarSet, and why not from the others. Nothing is made.

    -f names manifests of pods, or of workloads: then it is about the pods of their templates. KIND/NAME is a workload
    that is there. Exit code 1: the pod would be refused.
    """
    from kruise.cli.session import run
    from kruise.manager import gates
    from kruise.verbs.errors import UsageError

    try:
        chosen = gates.resolve(gates.parse(feature_gates))
    except gates.FeatureGateError as error:
        raise click.UsageError(str(error)) from error

    async def work(session: Session) -> list[Asked]:
        from kruise.cli.injecting import asked, pod_of

        if where.filenames:
            if words:
                raise UsageError("name a workload or give files with -f, not both")
            given = [document for _, document in session.manifests(where)]
        elif words:
            given = [document for _, document in await session.select(words, where)]
        else:
            raise UsageError("name manifests with -f, or a workload as KIND/NAME, such as deployment/web")
        pods = [found for document in given if (found := pod_of(document, session.namespace)) is not None]
        if not pods:
            named = where.files_text or " ".join(words)
            raise UsageError(f"{named} is neither a pod nor a workload with a template of pods")
        return await asked(session, pods, chosen)

    answers = run(connection, work)
    if output:
        data = [answer.as_data() for answer in answers]
        _show(data[0] if len(data) == 1 else {"pods": data}, output)
    else:
        click.echo("\n\n".join("\n".join(answer.lines()) for answer in answers))
    if refused := [answer for answer in answers if answer.refusal]:
        raise click.ClickException(f"{refused[0].title}: {refused[0].refusal}")


def _show(data: object, output: str) -> None:
    if output == "json":
        click.echo(json.dumps(data, indent=4))
    else:
        from kruise.cli.printing import yaml_text

        click.echo(yaml_text(json.loads(json.dumps(data))), nl=False)
