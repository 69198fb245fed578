"""docs/cli.md is made from the code, and is up to date."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from hack import cli as maker
from kruise.cli.main import cli


def test_it_is_up_to_date() -> None:
    assert maker.PAGE.read_text() == maker.page(), f"run {maker.COMMAND}"


def commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        if not command.hidden:
            yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")


def test_it_has_every_command_with_all_its_flags() -> None:
    sections = {part.partition("\n")[0].lstrip("# "): part for part in maker.PAGE.read_text().split("\n##")[1:]}
    found = dict(commands(cli, "kruise"))
    assert found.keys() == sections.keys() - {"Flags of the connection"}
    shared = sections["Flags of the connection"]
    for name, command in found.items():
        text = sections[name] + (shared if "#flags-of-the-connection" in sections[name] else "")
        options = [one for one in command.params if isinstance(one, click.Option) and not one.hidden]
        missing = [flag for one in options for flag in one.opts if f"{flag}" not in text]
        assert missing == [], name
    assert "--leader-election-lease-duration" in sections["kruise manager"]
    assert "--max-workers-for-pull-image" in sections["kruise daemon"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a *b* <c> [x>=0]", r"a \*b\* \<c> \[x>=0\]"), ("`*` and KIND_OF", r"`*` and KIND\_OF")],
)
def test_help_is_no_markup(text: str, shown: str) -> None:
    assert maker._plain(text) == shown


def test_lines_that_belong_as_they_are_become_code() -> None:
    text = "One\nparagraph.\n\n\b\nkruise x\nkruise y\n\nEnd.\fnot for anybody"
    assert list(maker._paragraphs(text)) == ["One\nparagraph.", "```text\nkruise x\nkruise y\n```", "End."]
