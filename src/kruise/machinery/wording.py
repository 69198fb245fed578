"""Texts for people that stay short however much there is to say."""

from __future__ import annotations

from collections.abc import Sequence


def listed(names: Sequence[str], most: int = 5) -> str:
    """`a, b, c and 7 more`."""
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest


def shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 3]}..."
