"""From one row of the table of native kinds to what the core needs to know about the kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kruise.api.core import field_errors
from kruise.api.core.schema import merge_schema
from kruise.api.core.validation.common import NEGATIVE
from kruise.local.apicore import errors
from kruise.local.apicore.errors import Json
from kruise.local.apicore.kinds import KindDescription, ObjectSubresource, Subresource, ViewSubresource
from kruise.local.apicore.subresources import read_scale, write_scale
from kruise.local.kinds import checks
from kruise.local.kinds.columns import TABLES
from kruise.local.kinds.typed import Reader


def field(path: str, default: str = "") -> Callable[[Json], str]:
    """Reads a field that lists and watches can select by."""
    names = path.split(".")

    def read(obj: Json) -> str:
        value: Any = obj
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        if type(value) is str:  # mostly; and lists look through thousands
            return value
        if isinstance(value, bool):
            return "true" if value else "false"
        return default if value is None else str(value)

    return read


def fields(*paths: str, **defaults: str) -> Mapping[str, Callable[[Json], str]]:
    return {path: field(path) for path in paths} | {path: field(path, text) for path, text in defaults.items()}


def native(
    api_version: str,
    plural: str,
    kind: str,
    check: checks.Check | None = None,
    *,
    template: Sequence[str] = (),
    status: checks.Check | None = None,
    status_keeps: tuple[str, ...] = (),
    subresources: Mapping[str, Subresource] | None = None,
    new: Callable[[Json], Json] | None = None,
    **more: Any,
) -> KindDescription:
    """A native kind.

    `check` is its validation, `template` the way to its pod template, `status` the validation of a status write, `new`
    what the server writes into a new object.
    """
    group, _, version = api_version.rpartition("/")
    reader = Reader(api_version, kind, template)
    parts: dict[str, Subresource] = dict(subresources or {})
    has_status = more.get("has_status", False)
    if status is not None:
        parts["status"] = ObjectSubresource(prepare=_status_write(status_keeps), validate=checks.check(status))
    described: dict[str, Any] = {
        "singular": kind.lower(),
        "default": reader.read,
        "prepare_create": new or (_with_empty_status(reader) if has_status else _as_it_is),
        "merge_schema": lambda asked: merge_schema(f"{group}/{asked}" if group else asked, kind),
        "columns": TABLES.get(plural, ()),
        "status_keeps": status_keeps,
        "subresources": parts,
    }
    if check is not None:
        described["validate"] = checks.check_changes(check) if template else checks.check(check)
    return KindDescription(group=group, versions=(version,), plural=plural, kind=kind, **{**described, **more})


def _as_it_is(obj: Json) -> Json:
    return obj


def _with_empty_status(reader: Reader) -> Callable[[Json], Json]:
    def prepare(obj: Json) -> Json:
        return obj if "status" in obj else {**obj, "status": reader.empty("status")}

    return prepare


def _status_write(keeps: tuple[str, ...]) -> Callable[[Json, Json], Json]:
    def prepare(new: Json, old: Json) -> Json:
        about = {name: value for name, value in new["metadata"].items() if name not in keeps}
        about.update((name, old["metadata"][name]) for name in keeps if name in old["metadata"])
        return {**old, "metadata": about, "status": new.get("status") or {}}

    return prepare


def and_status(prepare: Callable[[Json], Json], reader: tuple[str, str]) -> Callable[[Json], Json]:
    """What the server writes into a new object, and the empty status."""
    complete = _with_empty_status(Reader(*reader))
    return lambda obj: complete(prepare(obj))


def _write_scale(obj: Json, scale: Json) -> Json:
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if isinstance(replicas, int) and replicas < 0:
        problem = field_errors.invalid("spec.replicas", replicas, NEGATIVE)
        raise errors.invalid_object("autoscaling", "Scale", obj["metadata"]["name"], [problem])
    return write_scale(obj, scale)


SCALE = ViewSubresource(read=read_scale, write=_write_scale)
