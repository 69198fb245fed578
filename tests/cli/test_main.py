"""The command line from outside."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import yaml

from kruise import __version__
from kruise.kinds import features
from kruise.manager.installation.manifests import manifests


def kruise(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kruise.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_version() -> None:
    assert kruise("--version").stdout == f"kruise, version {__version__}\n"


def test_the_version_is_a_command_too() -> None:
    assert kruise("version").stdout == f"kruise {__version__}\n"
    assert json.loads(kruise("version", "-o", "json").stdout) == {"version": __version__}


def test_help_lists_the_commands() -> None:
    done = kruise("--help")
    assert done.returncode == 0
    assert all(f"  {name}" in done.stdout for name in ("install", "manager", "uninstall"))


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
