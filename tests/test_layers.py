"""What the import linter cannot see: connections that are opened with asyncio alone, modules that say they are pure,
and whether documents know all rooms."""

from __future__ import annotations

import ast
import configparser
import re
from collections.abc import Iterator
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "kruise"
OPENS = {
    "open_connection",
    "open_unix_connection",
    "create_connection",
    "create_unix_connection",
    "create_datagram_endpoint",
}


def opened(source: str) -> Iterator[str]:
    if not any(name in source for name in OPENS):
        return
    for node in ast.walk(ast.parse(source)):
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        if name in OPENS:
            yield name


def test_only_the_client_opens_connections() -> None:
    assert list(opened("async def f():\n    await asyncio.open_connection('host', 1)"))
    found = {str(path.relative_to(SOURCES)) for path in SOURCES.rglob("*.py") if any(opened(path.read_text()))}
    # Probes and hooks of pods are carried out by the node daemon.
    assert {path for path in found if not path.startswith("machinery/client/")} == {"daemon/network.py"}


SAYS_IT_IS_PURE = re.compile(r'"""(?:(?!""").)*\bPure[.:]', re.DOTALL)
"""In the words at the head of a module."""
DRAW_FROM_WHAT_THEY_ARE_GIVEN = ("kruise.machinery.names", "kruise.machinery.client.retry")
"""They import `random` for the type of a generator that its caller has seeded."""
WITH_TYPES_OF_A_SERVER = ("kruise.local.", "kruise.cli.")
"""Pure modules there use types that stand beside code which is not."""


def test_what_says_it_is_pure_is() -> None:
    """Decisions are known to the linter by the names of their modules. What they are made of says it in its first
    words, and is held to the same."""
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter")
    impure = set(contracts["importlinter:contract:pure"]["forbidden_modules"].split())
    assert {"asyncio", "logging", "time"} <= impure
    graph = grimp.build_graph("kruise", include_external_packages=True, cache_dir=None)
    for importer in DRAW_FROM_WHAT_THEY_ARE_GIVEN:
        graph.remove_import(importer=importer, imported="random")
    wrong, found = {}, 0
    for path in SOURCES.rglob("*.py"):
        module = ".".join(path.relative_to(SOURCES.parent).with_suffix("").parts).removesuffix(".__init__")
        if SAYS_IT_IS_PURE.match(path.read_text()) and not module.startswith(WITH_TYPES_OF_A_SERVER):
            found += 1
            if reached := graph.find_upstream_modules(module) & impure:
                wrong[module] = graph.find_shortest_chain(module, min(reached))
    assert wrong == {}
    assert found > 100, "modules say otherwise by now what they are"


def test_kinds_are_kept_apart_in_every_room_that_has_some() -> None:
    """The linter refuses to speak of rooms that do not exist yet, so this says when one is forgotten."""
    contracts = (ROOT / ".importlinter").read_text()
    rooms = [
        name for name in ("workloads", "sidecars", "spread", "protection", "operations") if (SOURCES / name).exists()
    ]
    assert "workloads" in rooms
    assert [name for name in rooms if f"kruise.{name}.*" not in contracts] == []


def test_documents_know_every_room() -> None:
    rooms = {path.stem for path in SOURCES.iterdir() if not path.name.startswith("_")}
    assert {"api", "cli", "kinds"} <= rooms
    architecture = (ROOT / "docs" / "architecture.md").read_text()
    assert {room for room in rooms if f"`kruise.{room}`" not in architecture} == set()
    way, _, _ = (ROOT / "CONTRIBUTING.md").read_text().partition("    hack/")
    named = {word.strip("/;:,").removesuffix(".py") for word in way.split()}
    assert rooms - named == set()
