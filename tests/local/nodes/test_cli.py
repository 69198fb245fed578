"""`kruise nodes` reads its options and says what is wrong with them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from click.testing import CliRunner

from kruise.cli import nodes as command
from kruise.local.nodes import NodeSpec


def test_options_become_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[NodeSpec] = []

    async def run(specs: Sequence[NodeSpec], seed: int, daemon: bool, kubeconfig: str, context: str) -> None:
        seen.extend(specs)
        assert (seed, daemon, kubeconfig, context) == (5, True, "/k", "")

    monkeypatch.setattr(command, "_run", run)
    arguments = ["--count=4", "--zones=a, b", "--cpu=2", "--bandwidth=50", "--seed=5", "--kubeconfig=/k"]
    result = CliRunner().invoke(command.nodes, arguments)
    assert result.exit_code == 0, result.output
    assert [(node.name, node.zone) for node in seen] == [
        ("node-1", "a"),
        ("node-2", "b"),
        ("node-3", "a"),
        ("node-4", "b"),
    ]
    assert {node.cpu for node in seen} == {"2"}
    assert {node.bandwidth for node in seen} == {50e6}


@pytest.mark.parametrize("arguments", [["--count=0"], ["--count=9999"], ["--bandwidth=0"]])
def test_bad_numbers_are_refused(arguments: list[str]) -> None:
    result = CliRunner().invoke(command.nodes, arguments)
    assert result.exit_code == 2


def test_a_kubeconfig_that_is_not_there_is_said_in_one_line() -> None:
    result = CliRunner().invoke(command.nodes, ["--kubeconfig=/nowhere/at/all"])
    assert result.exit_code == 1
    assert "/nowhere/at/all" in result.output
    assert "Traceback" not in result.output
