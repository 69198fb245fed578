"""What the import linter cannot see: connections that are opened with asyncio alone, and whether documents know all
rooms."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

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
    for node in ast.walk(ast.parse(source)):
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        if name in OPENS:
            yield name


def test_only_the_client_opens_connections() -> None:
    assert list(opened("async def f():\n    await asyncio.open_connection('host', 1)"))
    found = {str(path.relative_to(SOURCES)) for path in SOURCES.rglob("*.py") if any(opened(path.read_text()))}
    # Probes and hooks of pods are carried out by the node daemon.
    assert {path for path in found if not path.startswith("machinery/client/")} == {"daemon/network.py"}


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
