"""What `kruise inject` does."""

from __future__ import annotations

import json

import click

from kruise.cli.flags import Connection, Where
from kruise.cli.injecting import Asked, asked, pod_of
from kruise.cli.printing import yaml_text
from kruise.cli.session import Session, run
from kruise.manager import gates
from kruise.verbs.errors import UsageError


def inject(
    words: tuple[str, ...], where: Where, output: str | None, feature_gates: str, connection: Connection
) -> None:
    try:
        chosen = gates.resolve(gates.parse(feature_gates))
    except gates.FeatureGateError as error:
        raise click.UsageError(str(error)) from error

    async def work(session: Session) -> list[Asked]:
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
        click.echo(yaml_text(json.loads(json.dumps(data))), nl=False)
