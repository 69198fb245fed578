"""Printer columns of a definition as columns of a kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

from kruise.api.core.go_json import go_json
from kruise.local.apicore.errors import Json
from kruise.local.apicore.kinds import CREATED_DESCRIPTION, Column
from kruise.local.crds import jsonpath
from kruise.local.crds.numbers import go_number
from kruise.machinery.ages import human_duration
from kruise.machinery.times import parse_time

Cell = Callable[[Json, datetime], Any]

AGE = {
    "name": "Age",
    "type": "date",
    "description": CREATED_DESCRIPTION,
    "jsonPath": ".metadata.creationTimestamp",
}


def columns(definitions: Sequence[Json]) -> tuple[Column, ...]:
    """The columns after the name. From one whose path cannot be read on there are none, as on a real server."""
    return tuple(_columns(definitions or (AGE,)))


def _columns(definitions: Sequence[Json]) -> Iterator[Column]:
    for definition in definitions:
        path = definition["jsonPath"]
        try:
            find = jsonpath.parse(path)
        except jsonpath.PathError:
            return
        yield Column(
            name=definition["name"],
            type=definition["type"],
            format=definition.get("format", ""),
            description=definition.get("description")
            or f"Custom resource definition column (in JSONPath format): {path}",
            priority=definition.get("priority", 0),
            cell=_cell(find, definition["type"]),
        )


def _cell(find: Callable[[Any], list[Any]], kind: str) -> Cell:
    show = _SHOWN[kind]

    def cell(obj: Json, now: datetime) -> Any:
        try:
            found = find(obj)
        except jsonpath.PathError:
            return None
        return show(found[0], now) if found else None

    return cell


def _text(value: Any, now: datetime) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return "<no value>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return go_number(value)
    return go_json(value).decode()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _integer(value: Any, now: datetime) -> int | None:
    return int(value) if _is_number(value) else None


def _number(value: Any, now: datetime) -> float | None:
    return value if _is_number(value) else None


def _boolean(value: Any, now: datetime) -> bool | None:
    return value if isinstance(value, bool) else None


def _date(value: Any, now: datetime) -> str | None:
    if not isinstance(value, str):
        return None
    if not value:
        return "<unknown>"
    try:
        moment = parse_time(value)
    except ValueError:
        return "<invalid>"
    return human_duration((now - moment).total_seconds())


_SHOWN: dict[str, Callable[[Any, datetime], Any]] = {
    "string": _text,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "date": _date,
}
