"""`kruise completion`: the scripts for bash, zsh and fish. Live names are in `kruise.cli.work.names`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

_KUBECTL = "kubectl"
_KUBECTL_SCRIPT = """#!/bin/sh
# Asked by kubectl's own completion for what may follow `kubectl kruise`.
COMP_WORDS="kruise $*" COMP_CWORD="$#" _KRUISE_COMPLETE=bash_complete kruise | sed 's/^[^,]*,//'
echo ":4"
"""


@click.command()
@click.argument("shell", type=click.Choice(["bash", "fish", _KUBECTL, "zsh"]))
def completion(shell: str) -> None:
    """Print the script that lets SHELL complete kruise's commands, flags and names of objects.

    \b
    bash:  source <(kruise completion bash)
    zsh:   source <(kruise completion zsh)
    fish:  kruise completion fish | source

    For `kubectl kruise`, beside the completion of kubectl itself, an executable file on the PATH:

    \b
    kruise completion kubectl > ~/.local/bin/kubectl_complete-kruise
    chmod +x ~/.local/bin/kubectl_complete-kruise
    """
    from kruise.cli.main import cli

    if shell == _KUBECTL:
        click.echo(_KUBECTL_SCRIPT, nl=False)
        return

    made = get_completion_class(shell)
    assert made is not None
    source = made(cli, {}, "kruise", "_KRUISE_COMPLETE").source()
    # Descriptions have commas, too: click's own script for fish ends them there.
    click.echo(source.replace('string split ","', 'string split --max 1 ","'))
