"""Terminals with few characters or few columns: plain signs instead of errors, lists instead of letters in a column."""

from __future__ import annotations

import ast
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from rich.console import Console
from rich.text import Text

import kruise as package
from kruise.api.apps.cloneset import CLONE_SETS
from kruise.cli.drawn_tables import fitted, fitting_columns
from kruise.cli.terminal import PLAIN, charset
from kruise.machinery.wording import table
from tests.support.commandline import COMMAND, Kruise, local_cluster, plain
from tests.support.manifests import cloneset_manifest

ASCII = {"PYTHONIOENCODING": "ascii"}
NOTE = "é → ü"
CHANGE = ("plan", "cloneset/web", "--image", "main=nginx:1.27")


@pytest.fixture(scope="module")
def kruise(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kruise]:
    """With a rollout that hangs."""
    with local_cluster(tmp_path_factory.mktemp("state")) as kubeconfig:
        command = Kruise(kubeconfig)
        manifest = cloneset_manifest("web")
        manifest["metadata"]["annotations"] = {"note": NOTE}
        command.create(CLONE_SETS, manifest)
        command.ok("rollout", "status", "cloneset/web", "--timeout=60s")
        command.ok("set", "image", "cloneset/web", "main=nginx:missing")
        assert command("rollout", "status", "cloneset/web", "--timeout=5s").code == 3
        yield command


def run(kruise: Kruise, *arguments: str, stdin: bytes = b"", **variables: str) -> bytes:
    """What a command that may find that something waits writes into a pipe, in a process of its own."""
    usual = {name: value for name, value in os.environ.items() if name != "LANG" and not name.startswith("LC_")}
    environment = {**usual, "KUBECONFIG": str(kruise.kubeconfig), **variables}
    done = subprocess.run([*COMMAND, *arguments], env=environment, input=stdin, capture_output=True, timeout=60)
    assert done.stderr == b""
    assert done.returncode in (0, 3)
    return done.stdout


@pytest.mark.parametrize(
    "variables",
    [
        {"LANG": "C"},
        {"LC_ALL": "C"},
        {"LC_ALL": "C", "PYTHONUTF8": "0"},
        {"LC_ALL": "C.ISO-8859-1"},
        {"PYTHONIOENCODING": "latin-1"},
        ASCII,
    ],
    ids=lambda variables: ",".join(f"{name}={value}" for name, value in variables.items()),
)
def test_plain_characters_for_plain_terminals(kruise: Kruise, variables: dict[str, str]) -> None:
    told = run(kruise, "why", "cloneset/web", **variables).decode("ascii")
    assert re.search(r"^  `- web-", told, re.MULTILINE)
    assert "      -> correct the image" in told


def test_all_characters_for_other_terminals(kruise: Kruise) -> None:
    for variables in ({"LANG": "C.UTF-8"}, {"LANG": "C", "PYTHONIOENCODING": "utf-8"}, {}):
        assert "  └ web-" in run(kruise, "why", "cloneset/web", **variables).decode()


@pytest.mark.parametrize(
    "words", [("describe", "rollout", "cloneset/web"), CHANGE, (*CHANGE, "-o", "markdown")], ids=str
)
def test_other_commands_in_pipes(kruise: Kruise, words: tuple[str, ...]) -> None:
    assert run(kruise, *words, **ASCII).isascii()


@pytest.mark.parametrize("words", [("journal", "cloneset/web"), CHANGE, ("why", "--help")], ids=str)
def test_commands_that_draw(kruise: Kruise, words: tuple[str, ...]) -> None:
    assert kruise.drawn(*words, **ASCII).isascii()


def test_data_is_escaped_and_not_made_plain(kruise: Kruise, tmp_path: Path) -> None:
    """What is read again must be what was written. Manifests are UTF-8, whatever the terminal is."""
    patch = ("set", "image", "cloneset/web", "main=nginx:1.28", "--dry-run=client", "-o", "yaml")
    for variables in (ASCII, {"PYTHONIOENCODING": "latin-1"}, {"LANG": "C.UTF-8"}):
        printed = run(kruise, *patch, **variables).decode(variables.get("PYTHONIOENCODING", "utf-8"))
        assert yaml.safe_load(printed)["metadata"]["annotations"]["note"] == NOTE
    noted = cloneset_manifest("x") | {"metadata": {"name": "x", "annotations": {"note": NOTE}}}
    manifest = yaml.safe_dump(noted, allow_unicode=True)
    file = tmp_path / "x.yaml"
    file.write_text(manifest, encoding="utf-8")
    local = ("set", "image", "main=nginx:1.28", "--local", "-o", "yaml", "-f")
    for source, stdin in ((str(file), b""), ("-", manifest.encode())):
        printed = run(kruise, *local, source, stdin=stdin, LC_ALL="C", PYTHONUTF8="0")
        assert yaml.safe_load(printed)["metadata"]["annotations"]["note"] == NOTE


def test_every_sign_that_we_print_has_a_plain_one() -> None:
    """So that a new one is not forgotten and comes out as a question mark."""
    printed: set[str] = set()
    for room in ("cli", "verbs", "reasons", "foresight", "faces", "workloads", "local/cluster.py"):
        place = Path(package.__file__).parent / room
        for file in [place] if place.is_file() else place.rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    printed |= {sign for sign in node.value if not sign.isascii()}
    assert printed
    assert printed <= set(PLAIN)
    assert "".join(PLAIN.values()).isascii()


@pytest.mark.parametrize(
    ("encoding", "environ", "expected"),
    [
        ("utf-8", {}, "utf-8"),
        ("utf-8", {"LANG": "C"}, "ascii"),
        ("utf-8", {"LANG": "POSIX", "LC_CTYPE": "C.UTF-8"}, "ascii"),
        ("utf-8", {"LANG": "C", "LC_ALL": "de_DE.UTF-8"}, "utf-8"),
        ("utf-8", {"LC_ALL": "de_DE.ISO-8859-15@euro"}, "iso8859-15"),
        ("utf-8", {"LANG": "de_DE"}, "utf-8"),
        ("utf-8", {"LANG": "de_DE.nonsense"}, "utf-8"),
        ("utf-8", {"LANG": "C", "PYTHONUTF8": "1"}, "utf-8"),
        ("latin-1", {"LANG": "C"}, "iso8859-1"),
    ],
)
def test_which_characters_a_terminal_has(encoding: str, environ: dict[str, str], expected: str) -> None:
    assert charset(encoding, environ, is_utf8_assumed=True) == expected


def test_a_locale_that_is_in_use_is_taken_at_its_word() -> None:
    assert charset("utf-8", {"LANG": "C", "LC_CTYPE": "C.UTF-8"}, is_utf8_assumed=False) == "utf-8"


# Columns


def columns(kruise: Kruise, *arguments: str) -> list[str]:
    lines = plain(kruise.drawn(*arguments, COLUMNS="40")).replace("\r", "").splitlines()
    return [line.rstrip() for line in lines]


def test_a_plan_in_40_columns(kruise: Kruise) -> None:
    shown = columns(kruise, *CHANGE)
    assert "WAVE:      1" in shown
    assert "HOW:       1 updated in place" in shown
    assert re.search(r"^POD: +web-\w+$", "\n".join(shown), re.MULTILINE)
    assert max(map(len, shown)) <= 40
    assert "spec.template.spec.containers[main].image" in "".join("".join(shown).split())


def test_a_journal_in_40_columns(kruise: Kruise) -> None:
    shown = columns(kruise, "journal", "cloneset/web", "--limit=2")
    assert [line.split(":")[0] for line in shown if line.startswith(("TIME:", "TOOK:"))] == ["TIME", "TOOK"] * 2
    assert max(map(len, shown)) <= 40


def test_describe_in_40_columns(kruise: Kruise) -> None:
    shown = columns(kruise, "describe", "rollout", "cloneset/web")
    assert [line for line in shown if line.startswith("STATE:")].count("STATE:    Ready") == 2
    assert "NODE:     node-1" in shown


def test_a_rollout_in_40_columns_has_a_line_for_each_pod(kruise: Kruise) -> None:
    kruise.create(CLONE_SETS, cloneset_manifest("narrow"))
    drawn = plain(kruise.drawn("rollout", "status", "cloneset/narrow", "--timeout=60s", COLUMNS="40", LANG="C.UTF-8"))
    last = drawn[drawn.rindex("cloneset.apps.kruise.io/narrow") :].replace("\r", "").splitlines()
    assert len([line for line in last if re.match(r"●  narrow-\w{5}  Ready", line)]) == 3, "\n".join(last)
    assert f"updated {'━' * 10} 3/3" in last
    assert max(map(len, last)) <= 40


def console(width: int) -> Console:
    return Console(width=width, height=25, color_system=None)


def drawn(width: int, *rows: tuple[str, ...]) -> str:
    screen = console(width)
    with screen.capture() as capture:
        screen.print(fitted(("NAME", "WHY"), [list(map(Text, row)) for row in rows], screen, breaking=("WHY",)))
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def test_a_table_becomes_a_list_where_it_does_not_fit() -> None:
    row = ("a" * 20, "b " * 20)
    assert drawn(40, row).splitlines()[0] == "NAME                  WHY"
    assert drawn(39, row, row).splitlines()[:2] == [f"NAME: {'a' * 20}", f"WHY:  {'b ' * 17}".rstrip()]
    assert "".join(drawn(20, row).split()).count("a") == 20, "nothing is cut off"


def test_columns_that_fit_by_importance() -> None:
    rows = [["1" * 10, "2" * 10, "3" * 10]]
    assert fitting_columns(("A", "B", "C"), rows, console(36), first="C") == [0, 1, 2]
    assert fitting_columns(("A", "B", "C"), rows, console(35), first="C") == [0, 2]
    assert fitting_columns(("A", "B", "C"), rows, console(5), first="C") == [2]


def test_lines_of_a_table_that_does_not_fit() -> None:
    header, rows = ("A", "LONG"), [("1", "x" * 30), ("2", "y")]
    assert table(header, rows, width=20) == table(header, rows), "the last column may run over the edge"
    assert table(header, rows, width=19) == ["A:    1", f"LONG: {'x' * 30}", "", "A:    2", "LONG: y"]
    assert table(header, [], width=5) == []
