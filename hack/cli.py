"""Makes docs/cli.md: every command and flag, from the code that reads them.

python hack/cli.py            write docs/cli.md
python hack/cli.py --check    only say whether it is up to date
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from kruise import flags
from kruise.cli.flags import CONNECTION_FLAGS
from kruise.cli.main import cli
from kruise.daemon import options as daemon_options
from kruise.kinds import features
from kruise.manager import options as manager_options

PAGE = Path(__file__).resolve().parent.parent / "docs" / "cli.md"
COMMAND = "python hack/cli.py"

_HEAD = """\
# Every command and flag

This page is made from the code by `{command}` and is checked to be up to date; `kruise COMMAND --help` says the
same. How the everyday ones belong together is told in [verbs.md](verbs.md). The program is also there as
`kubectl-kruise`, so `kubectl kruise` takes the same commands. Each has `-h, --help`.
"""
_OF_THE_CONNECTION = "Flags of the connection"
_CONNECTION_HEAD = """\
Which cluster, and as whom. They may stand before the command, too: `kruise -n demo rollout status cloneset/web`.
"""
_ELSEWHERE = "and those of the [connection](#flags-of-the-connection)"
_OWN_FLAGS = {
    # Not click's: these two take the flags of the original's processes.
    "manager": lambda: flags.usage(manager_options.table_of(features())),
    "daemon": lambda: flags.usage(daemon_options.FLAGS),
}


def page() -> str:
    return "\n".join([_HEAD.format(command=COMMAND), *_connection(), *_of_commands(cli, ("kruise",))])


def _connection() -> Iterator[str]:
    yield f"## {_OF_THE_CONNECTION}\n"
    yield _CONNECTION_HEAD
    group = cli.get_command(click.Context(cli), "rollout")
    assert isinstance(group, click.Group)
    status = group.commands["status"]
    yield "\n".join(_flag(option, click.Context(status)) for option in _options(status) if _is_of_connection(option))
    yield ""


def _of_commands(group: click.Group, path: tuple[str, ...]) -> Iterator[str]:
    context = click.Context(group, info_name=path[-1])
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if not command.hidden:
            yield from _command(command, (*path, name))


def _command(command: click.Command, path: tuple[str, ...]) -> Iterator[str]:
    context = click.Context(command, info_name=" ".join(path))
    own = _OWN_FLAGS.get(" ".join(path[1:]))
    usage = ["[FLAGS]"] if own else command.collect_usage_pieces(context)
    yield f"{'#' * len(path)} {context.command_path}\n"
    yield f"```text\n{' '.join([context.command_path, *usage])}\n```\n"
    if command.help:
        yield "\n\n".join(_paragraphs(inspect.cleandoc(command.help))) + "\n"
    if own is not None:
        yield f"```text\n{own()}\n```\n"
    options = list(_options(command))
    lines = [_flag(option, context) for option in options if not _is_of_connection(option)]
    if len(lines) < len(options):
        lines.append(f"- {_ELSEWHERE}")
    if lines:
        yield "\n".join(lines) + "\n"
    if isinstance(command, click.Group):
        yield from _of_commands(command, path)


def _paragraphs(text: str) -> Iterator[str]:
    """A `\\b` in front keeps a paragraph's lines: those are commands."""
    for part in text.partition("\f")[0].split("\n\n"):
        lines = part.splitlines()
        yield "```text\n" + "\n".join(lines[1:]) + "\n```" if lines[0] == "\b" else _plain(part)


def _options(command: click.Command) -> Iterator[click.Option]:
    return (one for one in command.params if isinstance(one, click.Option) and not one.hidden)


def _is_of_connection(option: click.Option) -> bool:
    return set(option.opts) <= set(CONNECTION_FLAGS)


def _flag(option: click.Option, context: click.Context) -> str:
    names, meaning = option.get_help_record(context) or ("", "")
    return f"- `{names}`: {_plain(' '.join(meaning.split()))}"


def _plain(text: str) -> str:
    """Nothing in it is markup, but for what stands between backticks."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([*_<\[\]])", r"\\\1", part) for part in parts)


def main(arguments: list[str]) -> int:
    made = page()
    if "--check" not in arguments:
        PAGE.write_text(made)
    elif not PAGE.exists() or PAGE.read_text() != made:
        sys.stderr.write(f"docs/cli.md is not up to date: run {COMMAND}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
