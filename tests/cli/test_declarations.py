"""Commands are declared apart from what carries them out: both have to fit, and a declaration loads next to nothing."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import click
import pytest

from kruise.cli import flags
from kruise.cli.main import cli


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


DECLARED = {name: command for name, command in commands(cli) if hasattr(command.callback, "work")}


def test_most_commands_are_declared_apart() -> None:
    assert {"plan", "why", "journal", "rollout status", "set image", "doctor"} <= DECLARED.keys()


@pytest.mark.parametrize("name", sorted(DECLARED))
def test_the_work_takes_what_the_flags_say(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    command, load = DECLARED[name], flags.work_of
    called = []

    def work_of(module: str, function: str) -> Any:
        signature = inspect.signature(load(module, function))
        return lambda *args, **given: called.append(signature.bind(*args, **given))

    monkeypatch.setattr(flags, "work_of", work_of)
    assert command.callback is not None
    command.callback(**{str(param.name): None for param in command.params if param.expose_value})
    [bound] = called
    assert set(bound.arguments) == set(bound.signature.parameters)
