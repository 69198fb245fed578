"""Objects in other shapes: tables as `kubectl get` prints them, and metadata alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from kruise.api.core import field_errors
from kruise.local.apicore import errors
from kruise.local.apicore.errors import Json
from kruise.local.apicore.kinds import CREATED_DESCRIPTION, NAME_COLUMN, Column, KindDescription
from kruise.local.kinds.columns.durations import age
from kruise.local.server.negotiation import META_GROUP, PARTIAL, PARTIAL_LIST, TABLE, Form, not_acceptable

_INCLUDE: Final = ("", "Metadata", "Object", "None")
_ENDED_PODS: Final = {
    "Succeeded": ("Succeeded", "The pod has completed successfully."),
    "Failed": ("Failed", "The pod failed."),
}


AGE_COLUMN: Final = Column(name="Age", description=CREATED_DESCRIPTION, cell=age)
SCALE_COLUMNS: Final = (
    NAME_COLUMN,
    Column(
        name="Desired",
        type="integer",
        description="replicas is the desired number of instances for the scaled object.",
        cell=lambda obj, now: (obj.get("spec") or {}).get("replicas", 0),
    ),
    Column(
        name="Available",
        type="integer",
        description="replicas is the actual number of observed instances of the scaled object.",
        cell=lambda obj, now: (obj.get("status") or {}).get("replicas", 0),
    ),
    AGE_COLUMN,
)


def check_include(asked: str) -> None:
    if asked not in _INCLUDE:
        problem = field_errors.invalid("includeObject", asked, "must be 'Metadata', 'Object', 'None', or empty")
        raise errors.bad_request(f"Unable to convert to Table as requested: {problem}")


class Shaper:
    """Turns the answers of one request into the shape that it asks for."""

    def __init__(
        self, kind: KindDescription, version: str, subresource: str, form: Form, include: str, now: datetime
    ) -> None:
        self._kind = kind
        self._type = {"kind": kind.kind, "apiVersion": kind.api_version(version)}
        self._shape = form.shape
        self._api_version = f"{META_GROUP}/{form.version}"
        self._include = include
        self.now = now
        self._columns = SCALE_COLUMNS if subresource == "scale" else kind.table_columns
        self._heads_sent = False
        if form.shape == TABLE:
            check_include(include)

    def answer(self, found: Json) -> Json:
        """An object or a list. A Status stays as it is."""
        if found.get("kind") == "Status":
            return found
        if "items" in found and found.get("kind") == self._kind.listed_as:
            return self._listed(found)
        if self._shape == PARTIAL_LIST:
            raise not_acceptable(
                f"you requested {PARTIAL_LIST}, but the requested object is not a list ({_go_type(self._kind, '')})"
            )
        return (
            self._partial(found) if self._shape == PARTIAL else self._table({"metadata": _version_of(found)}, [found])
        )

    def _listed(self, found: Json) -> Json:
        if self._shape == PARTIAL:
            raise not_acceptable(
                f"you requested {PARTIAL}, but the requested object is a list ({_go_type(self._kind, 'List')})"
            )
        items = found["items"]
        about = {name: value for name, value in found["metadata"].items() if value != ""}
        if self._shape == TABLE:
            return self._table({"metadata": about}, items)
        return {
            "kind": PARTIAL_LIST,
            "apiVersion": self._api_version,
            "metadata": about,
            "items": [self._partial(item) for item in items],
        }

    def event(self, event: Json) -> Json:
        """A line of a watch. Only the first table has headings."""
        obj = event["object"]
        if event["type"] == "ERROR":
            return event
        if self._shape == PARTIAL:
            return {"type": event["type"], "object": self._partial(obj)}
        table = self._table({"metadata": _version_of(obj)}, [obj])
        if self._heads_sent:
            table["columnDefinitions"] = None
        self._heads_sent = True
        return {"type": event["type"], "object": table}

    def _table(self, about: Json, objects: Sequence[Json]) -> Json:
        return {
            "kind": TABLE,
            "apiVersion": self._api_version,
            **about,
            "columnDefinitions": [_heading(column) for column in self._columns],
            "rows": [self._row(obj) for obj in objects],
        }

    def _row(self, obj: Json) -> Json:
        row: Json = {"cells": [column.cell(obj, self.now) for column in self._columns]}
        if self._kind.plural == "pods" and not self._kind.group:
            phase = (obj.get("status") or {}).get("phase", "")
            if phase in _ENDED_PODS:
                reason, message = _ENDED_PODS[phase]
                condition = {"type": "Completed", "status": "True", "reason": reason, "message": message}
                row["conditions"] = [condition]
        row["object"] = self._shown(obj)
        return row

    def _shown(self, obj: Json) -> Any:
        if self._include == "None":
            return None
        return {**self._type, **obj} if self._include == "Object" else self._partial(obj)

    def _partial(self, obj: Json) -> Json:
        return {"kind": PARTIAL, "apiVersion": self._api_version, "metadata": obj["metadata"]}


def _heading(column: Column) -> Json:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    }


def _version_of(obj: Json) -> Json:
    version = obj["metadata"].get("resourceVersion")
    return {"resourceVersion": version} if version else {}


def _go_type(kind: KindDescription, suffix: str) -> str:
    if kind.custom:
        return f"*unstructured.Unstructured{suffix}"
    return f"*{kind.group.partition('.')[0] or 'core'}.{kind.kind}{suffix}"
