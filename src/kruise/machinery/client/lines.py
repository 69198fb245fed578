"""Cutting a byte stream into lines, whatever the chunks look like. Pure.

`StreamReader.readline` refuses lines above its buffer, and one object can be megabytes long. Splitting whole chunks
also costs less per line, because most chunks of a busy watch hold several.
"""

from __future__ import annotations


class LineSplitter:
    """Feed chunks, get the lines that became complete, without their ends; empty lines are left out."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        # Parts of one unfinished line, joined once: adding each chunk to a growing text would copy it every time.
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        lines = chunk.split(b"\n")
        rest = lines.pop()
        parts = self._parts
        if lines:
            if parts:
                parts.append(lines[0])
                lines[0] = b"".join(parts)
                parts.clear()
            if b"" in lines:
                lines = [line for line in lines if line]
        if rest:
            parts.append(rest)
        return lines

    @property
    def rest(self) -> int:
        """How many bytes of an unfinished line are there."""
        return sum(map(len, self._parts))
