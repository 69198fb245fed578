"""The schema of a version of a custom kind: what it makes of an object, and what it finds wrong with one.

A schema is read once and becomes functions. Shaping (`shape`) happens when an object comes in or is converted, checking
(`problems`) before it is stored.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kruise.api.core import field_errors
from kruise.api.core.field_errors import FieldError, go_quote
from kruise.local.apicore import errors
from kruise.local.apicore.errors import Json
from kruise.local.crds import embedded, lists, nodes, validating
from kruise.local.crds.checking import compile_check
from kruise.local.crds.nodes import MISSING
from kruise.local.crds.shaping import compile_shape
from kruise.machinery.codec import decode, encode

_NOT_CHECKED: Final = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)
_METADATA_FIELDS: Final = frozenset(
    {
        "name",
        "generateName",
        "namespace",
        "selfLink",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "labels",
        "annotations",
        "ownerReferences",
        "finalizers",
        "managedFields",
    }
)


def schema_of(source: Mapping[str, Any]) -> Schema:
    """A schema, ready for use. It does not change, so equal ones are made ready once: a program that starts many
    clusters, as tests do, spends most of the time of a start here."""
    return _made_ready(encode(source))


class Schema:
    """One version's schema, ready for use."""

    def __init__(self, source: Mapping[str, Any]) -> None:
        """`source` is an `openAPIV3Schema` that a definition may have."""
        self.source = source
        self._has_rules = has_rules(source)
        root = nodes.read(source)
        self._node = root
        # The server looks after these itself; a schema may only say more about the name.
        self._checked = dataclasses.replace(root, embedded=False)
        self._shape = compile_shape(root, root=True)
        self._prune = compile_shape(root, root=True, defaults=False)
        self._is_valid = compile_check(self._checked)
        status = root.properties.get("status")
        self._status = status
        self._status_is_valid = None if status is None else compile_check(status)

    def shape(self, obj: Json) -> Json:
        """The object pruned and with defaults; raises `StatusError` where it cannot be read."""
        return self._shaped(obj, defaults=True)

    def prune(self, obj: Json) -> Json:
        """The object without what this version does not know."""
        return self._shaped(obj, defaults=False)

    def _shaped(self, obj: Json, *, defaults: bool) -> Json:
        about = obj.get("metadata")
        if isinstance(about, dict) and not about.keys() <= _METADATA_FIELDS:
            known = {name: value for name, value in about.items() if name in _METADATA_FIELDS}
            obj = {**obj, "metadata": known}
        try:
            shaped: Json = self._shape(obj) if defaults else self._prune(obj)
        except embedded.MalformedError as error:
            raise self._unreadable(obj, error) from error
        return shaped

    def _unreadable(self, obj: Json, error: embedded.MalformedError) -> errors.StatusError:
        found = embedded.locate(self._checked, obj)
        kind, version = obj.get("kind", ""), str(obj.get("apiVersion", "")).rpartition("/")[2]
        text = f"{kind} in version {go_quote(version)} cannot be handled as a {kind}: {found or error}"
        return errors.bad_request(text)

    def problems(self, new: Json, old: Json | None) -> Sequence[FieldError]:
        """What is wrong with an object. What was wrong before an update and did not change is forgiven."""
        if self._is_valid(new):
            return ()
        former = MISSING if old is None else old
        found = validating.problems(self._checked, new, old=former)
        found.extend(embedded.problems(self._checked, new))
        if old is None or not lists.problems(self._checked, old):
            found.extend(lists.problems(self._checked, new))
        return self._with_note(found)

    def status_problems(self, new: Json, old: Json) -> Sequence[FieldError]:
        """What is wrong with an object after a write of its status; the rest is not looked at."""
        found: list[FieldError] = []
        if self._status is not None and self._status_is_valid is not None and "status" in new:
            if self._status_is_valid(new["status"]):
                return ()
            former = old.get("status", MISSING)
            found.extend(validating.problems(self._status, new["status"], old=former, field="status"))
        repeated = lists.problems(self._checked, new)
        if repeated and not lists.problems(self._checked, old):
            found.extend(repeated)
        return self._with_note(found)

    def _with_note(self, found: list[FieldError]) -> list[FieldError]:
        """Where a schema has rules (CEL) they are not looked at for an object that is wrong otherwise."""
        if self._has_rules and any(item.type in _BLOCKING for item in found):
            found.append(field_errors.invalid(validating.NO_FIELD, None, _NOT_CHECKED))
        return found


_BLOCKING: Final = frozenset(
    {
        field_errors.NOT_SUPPORTED,
        field_errors.REQUIRED,
        field_errors.TOO_LONG,
        field_errors.TOO_MANY,
        field_errors.TYPE_INVALID,
    }
)


def has_rules(schema: Any) -> bool:
    """Whether any part of a schema has `x-kubernetes-validations`."""
    if isinstance(schema, Mapping):
        if schema.get("x-kubernetes-validations"):
            return True
        return any(has_rules(part) for name, part in schema.items() if name not in ("default", "enum", "example"))
    return isinstance(schema, list) and any(has_rules(part) for part in schema)


@functools.lru_cache(maxsize=128)
def _made_ready(source: bytes) -> Schema:
    return Schema(decode(source, dict))
