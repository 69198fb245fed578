"""What a query of Prometheus asks for: metrics, and the labels by which it chooses among their series."""

from __future__ import annotations

import re
from typing import NamedTuple

_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_LABELS = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
_RANGE = re.compile(r"\[[^\]]*\]")
_METRIC = re.compile(r"\b([a-zA-Z_:][\w:]*)\b(?!\s*\()\s*(?:\{([^}]*)\})?")
_WORDS = {"and", "or", "unless", "by", "without", "on", "ignoring", "bool", "offset", "inf", "nan"}


class Asked(NamedTuple):
    metric: str
    labels: frozenset[str]


class Query(NamedTuple):
    metrics: tuple[Asked, ...]
    grouped: frozenset[str]
    """Labels that lines are put together, or matched, by."""


def parse(query: str) -> Query:
    plain = _TEXT.sub('""', query)
    grouped = {label.strip() for found in _LABELS.findall(plain) for label in found.split(",") if label.strip()}
    rest = _RANGE.sub("", _LABELS.sub("", plain))
    asked = tuple(
        Asked(name, frozenset(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", chosen or "")))
        for name, chosen in _METRIC.findall(rest)
        if name not in _WORDS
    )
    return Query(asked, frozenset(grouped))
