"""Flags are read as kubectl reads them."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from kruise.cli import flags
from kruise.cli.flags import Connection, Where, Writing, flags_behind_command


@click.group(cls=flags.Group)
def root() -> None:
    """A command with a sub-command."""


@root.command(cls=flags.Command)
@flags.words
@click.option("-w", "--watch/--no-watch", default=True)
@click.option("--selector", "own", default="")
@flags.where(several=False)
@flags.writing(wait=True)
@flags.connection
def go(words: tuple[str, ...], watch: bool, own: str, where: Where, writing: Writing, connection: Connection) -> None:
    click.echo(
        f"{','.join(words)} watch={watch} own={own} file={','.join(where.filenames)} R={where.recursive} "
        f"dry={writing.dry_run} o={writing.output} wait={writing.wait} n={connection.namespace} "
        f"t={connection.request_timeout}"
    )


def said(*arguments: str) -> str:
    done = CliRunner().invoke(root, list(arguments))
    assert done.exit_code == 0, done.output
    return done.stdout.strip()


def test_defaults() -> None:
    assert said("go", "a") == "a watch=True own= file= R=False dry=none o= wait=False n= t=0"


@pytest.mark.parametrize(
    "arguments",
    [
        ("go", "a", "-n", "demo"),
        ("-n", "demo", "go", "a"),
        ("-ndemo", "go", "a"),
        ("-n=demo", "go", "a"),
        ("--namespace=demo", "go", "a"),
        ("--namespace", "demo", "go", "a"),
    ],
)
def test_flags_of_the_connection_may_stand_in_front(arguments: tuple[str, ...]) -> None:
    assert " n=demo " in said(*arguments)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("--watch=false", "watch=False"),
        ("--watch=true", "watch=True"),
        ("-w=false", "watch=False"),
        ("-w", "watch=True"),
        ("--no-watch", "watch=False"),
        ("--dry-run", "dry=client"),
        ("--dry-run=server", "dry=server"),
        ("-o=json", "o=json"),
        ("-ojson", "o=json"),
        ("--wait=false", "wait=False"),
        ("--wait=true", "wait=True"),
        ("-R", "R=True"),
    ],
)
def test_kubectls_ways_to_write_flags(word: str, expected: str) -> None:
    assert expected in said("go", word, "a")


def test_a_flag_of_the_command_is_not_taken_for_a_shared_one() -> None:
    assert "own=x" in said("go", "a", "--selector", "x")


def test_words_behind_two_dashes_are_left_alone() -> None:
    assert said("go", "--", "--watch=false").startswith("--watch=false watch=True")


def test_only_flags_in_front_of_a_command_move() -> None:
    assert flags_behind_command(["-n", "demo", "rollout", "status"]) == ["rollout", "-n", "demo", "status"]
    assert flags_behind_command(["rollout", "-n", "demo"]) == ["rollout", "-n", "demo"]
    assert flags_behind_command(["-n", "demo"]) == ["-n", "demo"]
    assert flags_behind_command(["--help"]) == ["--help"]
    assert flags_behind_command([]) == []
