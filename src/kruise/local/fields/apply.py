"""Server-side apply: a manager states what it wants, in YAML or JSON, and the server works out what to change."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

import yaml

from kruise.local.apicore import errors
from kruise.local.apicore.conversions import ConversionFailedError, Convert
from kruise.local.apicore.core import Apply, Call
from kruise.local.apicore.errors import Json, StatusError
from kruise.local.apicore.metadata import timestamp
from kruise.local.fields import managers, merge, sets, typed
from kruise.local.fields.managers import Managed
from kruise.local.fields.merge import Applied, ConflictsError, Rules
from kruise.local.fields.sets import FieldSet
from kruise.local.fields.tracking import Ownership, Tracker, owners_of
from kruise.local.fields.typed import TypedError
from kruise.machinery.codec import DecodeError, decode, encode

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_KUBECTL: Final = "kubectl"
_LARGEST_ANNOTATIONS: Final = 256 * 1024


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Takes dates for text, as Kubernetes does."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def parse(body: bytes) -> Json:
    """The configuration of an apply; raises `StatusError`."""
    try:
        document: Any = decode(body, object)
    except DecodeError:
        try:
            document = yaml.load(body, Loader=_Loader)
        except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
            raise errors.bad_request(f"error decoding YAML: error converting YAML to JSON: {error}") from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        found = {list: "array", str: "string", bool: "bool"}.get(type(document), "number")
        text = f"json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
        raise errors.bad_request(f"error decoding YAML: error unmarshaling JSON: while decoding JSON: {text}")
    return document


class ApplyReader:
    """Reads the body of an apply, for `ApiCore.apply_reader`."""

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker

    def __call__(self, call: Call, body: bytes) -> Apply:
        config = parse(body)
        known = self._tracker.book.rules(call.kind, call.version, call.subresource)
        moment = timestamp(self._tracker.clock.now())
        empty = self._tracker.empty(call.kind, call.version)

        def apply(current: Json | None, held: Any, convert: Convert) -> tuple[Json, Ownership]:
            rules = dataclasses.replace(known, convert=convert)
            live = empty if current is None else current
            owners = owners_of(held)
            _check(call, rules, config)
            try:
                managed = owners.managed
                applied = _applied(rules, empty, live, config, managed, call.manager, moment, force=bool(call.force))
            except ConflictsError as error:
                raise refused(error) from error
            except (TypedError, ConversionFailedError) as error:
                raise errors.plain_failure(str(error)) from error
            made = live if applied.object is None else applied.object
            if call.manager == _KUBECTL:
                made = _with_last_applied(made, config)
            return made, Ownership(managers.packed(applied.managed))

        return apply


def _check(call: Call, rules: Rules, config: Json) -> None:
    version, kind = str(config.get("apiVersion", "")), str(config.get("kind", ""))
    if version != rules.api_version or kind != call.kind.kind:
        raise errors.bad_request(f"invalid object type: {_named_type(version, kind)}")
    about = config.get("metadata")
    if isinstance(about, dict) and about.get("managedFields") is not None:
        raise errors.bad_request("metadata.managedFields must be nil")
    try:
        typed.check(config, rules.type, allow_repeats=False)
    except TypedError as error:
        names = about if isinstance(about, dict) else {}
        place = f"{names.get('namespace', '')}/{names.get('name', '')}; {_named_type(version, kind)}"
        raise errors.plain_failure(f"failed to create typed patch object ({place}): {error}") from error


def _named_type(api_version: str, kind: str) -> str:
    group, _, version = api_version.rpartition("/")
    return f"{group}/{version}, Kind={kind}"


def refused(error: ConflictsError) -> StatusError:
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {merge.described(conflict.owner)}",
            "field": sets.path_text(conflict.path),
        }
        for conflict in error.conflicts
    ]
    return errors.failure(409, "Conflict", str(error), {"causes": causes})


# Those who come from `kubectl apply` without the server's help


def _applied(
    rules: Rules, empty: Json, live: Json, config: Json, managed: Managed, manager: str, moment: str, *, force: bool
) -> Applied:
    """What kubectl applied itself, and noted in an annotation, is no conflict with kubectl."""
    try:
        return merge.apply(rules, empty, live, config, managed, manager, moment, force=force)
    except ConflictsError as error:
        allowed = _from_last_applied(rules, live) if manager == _KUBECTL else None
        if allowed is None:
            raise
        rest = [conflict for conflict in error.conflicts if not sets.has(allowed, conflict.path)]
        if rest:
            raise ConflictsError(rest) from error
    return merge.apply(rules, empty, live, config, managed, manager, moment, force=True)


def _from_last_applied(rules: Rules, live: Json) -> FieldSet | None:
    """The fields that the annotation speaks of and that still are as it says."""
    text = ((live.get("metadata") or {}).get("annotations") or {}).get(LAST_APPLIED)
    if not text:
        return None
    try:
        last = decode(text.encode(), dict)
        if last.get("apiVersion") != rules.api_version:
            return None
        typed.check(last, rules.type, allow_repeats=False)
        fields = typed.field_set(last, rules.type)
        change = typed.compare(last, live, rules.type)
    except (DecodeError, TypedError):
        # An annotation that cannot be read allows nothing.
        return None
    for part in change:
        fields = sets.difference(fields, part)
    return fields


def _with_last_applied(made: Json, config: Json) -> Json:
    """Keeps the annotation in step, so that `kubectl apply` without the server's help still works."""
    about = made.get("metadata") or {}
    annotations = about.get("annotations") or {}
    if not annotations.get(LAST_APPLIED):
        return made
    noted = dict(config.get("metadata") or {})
    if "annotations" in noted:
        rest = {name: value for name, value in (noted["annotations"] or {}).items() if name != LAST_APPLIED}
        noted["annotations"] = rest
        if not rest:
            del noted["annotations"]
    text = _go_json({**config, "metadata": noted})
    annotations = {**annotations, LAST_APPLIED: text}
    if sum(len(name.encode()) + len(value.encode()) for name, value in annotations.items()) > _LARGEST_ANNOTATIONS:
        del annotations[LAST_APPLIED]
    return {**made, "metadata": {**about, "annotations": annotations}}


def _go_json(config: Json) -> str:
    """As Go writes a document: sorted, HTML's own characters escaped, a line end after it."""
    text = encode(_sorted(config)).decode()
    for sign, code in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
        text = text.replace(sign, code)
    return text + "\n"


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return [_sorted(item) for item in value]
    return value
