"""The command line from outside."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys

import click
import pytest
import yaml
from click.testing import CliRunner

from kruise import release
from kruise.cli import terminal
from kruise.cli.main import cli
from kruise.kinds import features
from kruise.manager.installation.manifests import manifests


def kruise(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kruise.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_version() -> None:
    assert kruise("--version").stdout == f"kruise, version {release()}\n"


def test_the_version_is_a_command_too() -> None:
    assert kruise("version").stdout == f"kruise {release()}\n"
    assert json.loads(kruise("version", "-o", "json").stdout) == {"version": release()}


def test_sources_that_are_not_installed_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", unknown)
    release.cache_clear()
    assert CliRunner().invoke(cli, ["--version"]).output == "kruise, version 0\n"
    release.cache_clear()


def test_help_lists_the_commands() -> None:
    done = kruise("--help")
    assert done.returncode == 0
    assert all(f"  {name}" in done.stdout for name in ("install", "manager", "uninstall"))


def test_help_of_rollout_names_what_it_can_do() -> None:
    [line] = [line for line in kruise("--help").stdout.splitlines() if line.startswith("  rollout ")]
    assert all(word in line for word in ("promote", "abort", "undo", "pause", "resume", "restart"))


@pytest.mark.parametrize(
    "raised",
    [
        "raise click.ClickException(str(error)) from error",
        "raise ExceptionGroup('two tasks', [error]) from None",
        "raise",
    ],
)
def test_a_closed_pipe_ends_a_command_quietly(raised: str) -> None:
    """Whatever a command makes of it on its way out."""
    code = f"""
import click
from kruise.cli import main, version
def many():
    try:
        while True:
            click.echo("line")
    except OSError as error:
        {raised}
version.version.callback = many
version.version.params = []
main.main()
"""
    command = f"exec 3>&1; {{ '{sys.executable}' -c \"$CODE\" version; echo $? >&3; }} | head -1 >/dev/null"
    done = subprocess.run(["bash", "-c", command], env={**os.environ, "CODE": code}, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_a_broken_connection_is_told_where_somebody_reads() -> None:
    error = click.ClickException("the server hung up")
    error.__cause__ = BrokenPipeError()
    assert not terminal.has_lost_reader(error)


def test_help_imports_no_machinery() -> None:
    """Help must come at once: neither the client nor anything else heavy is loaded for it."""
    code = """
import sys
from kruise.cli import main
sys.argv = ["kruise", "--help"]
try:
    main.main()
finally:
    print(sorted({name.split(".")[0] for name in sys.modules} & {"aiohttp", "msgspec", "rich", "cryptography"}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_an_unknown_command_is_named() -> None:
    done = kruise("instal")
    assert done.returncode == 2
    assert "No such command 'instal'; did you mean 'install'?" in done.stderr
    assert "did you mean 'status'?" in kruise("rollout", "statsu").stderr


def test_manager_help_shows_every_flag() -> None:
    done = kruise("manager", "--help")
    assert done.returncode == 0
    assert "--leader-election-lease-duration" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rol=all"], "kruise manager: unknown flag --rol; did you mean --role?"),
        (["--feature-gates=Nope=true"], "kruise manager: unknown feature gate 'Nope'; known gates: AllAlpha"),
        (["--kubeconfig=/nowhere/config"], "kruise manager: /nowhere/config"),
    ],
)
def test_the_manager_names_mistakes_and_ends_with_2(arguments: list[str], message: str) -> None:
    done = kruise("manager", *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith(message)
    assert "Traceback" not in done.stderr


def test_install_prints_manifests_without_a_cluster() -> None:
    done = kruise("install", "--print", "--namespace=elsewhere")
    assert done.returncode == 0
    assert list(yaml.safe_load_all(done.stdout)) == manifests(features(), namespace="elsewhere")
