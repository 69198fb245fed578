"""Warnings that go with an answer. Whoever works on a request may give one; the server writes them as headers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from contextvars import ContextVar

_collected: ContextVar[list[str] | None] = ContextVar("warnings", default=None)


def warn(text: str) -> None:
    """Give a warning to the client of the request that is being answered, once. Lost where nobody collects them."""
    collected = _collected.get()
    if collected is not None and text not in collected:
        collected.append(text)


@contextlib.contextmanager
def collect() -> Iterator[list[str]]:
    """The warnings that are given inside."""
    collected: list[str] = []
    token = _collected.set(collected)
    try:
        yield collected
    finally:
        _collected.reset(token)


def header_values(texts: Iterable[str]) -> list[str]:
    """As values of `Warning` headers, one each. Line ends cannot stand in a header."""
    return [f'299 - "{_quoted(text)}"' for text in texts]


def _quoted(text: str) -> str:
    printable = "".join(character if character.isprintable() else " " for character in text)
    return printable.replace("\\", "\\\\").replace('"', '\\"')
