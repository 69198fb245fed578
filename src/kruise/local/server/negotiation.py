"""In which form an answer is wanted, and in which form a body came: JSON or YAML, whole or as a table.

Kubernetes' binary form is read but not written: a client that also accepts JSON, as kubectl does, gets JSON; one that
insists gets 406.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping
from typing import Any, Final

import yaml

from kruise.local.apicore import errors
from kruise.local.apicore.errors import Json, StatusError
from kruise.local.apicore.listing import parse_bool
from kruise.local.server import protobuf
from kruise.machinery.codec import decode, encode

JSON: Final = "application/json"
YAML: Final = "application/yaml"
TABLE: Final = "Table"
PARTIAL: Final = "PartialObjectMetadata"
PARTIAL_LIST: Final = "PartialObjectMetadataList"
DISCOVERY: Final = "APIGroupDiscoveryList"
META_GROUP: Final = "meta.k8s.io"

REPRESENTATIONS: Final = (JSON, YAML)
WATCH_REPRESENTATIONS: Final = (f"{JSON};stream=watch",)

# Programs behind which a person reads the answer.
_READ_BY_PEOPLE: Final = ("curl", "Wget", "Mozilla/5.0")


@dataclasses.dataclass(frozen=True, slots=True)
class Form:
    """How an answer is written. `shape` is empty for the object itself."""

    media_type: str = JSON
    shape: str = ""
    version: str = ""
    """Of the shape."""

    @property
    def content_type(self) -> str:
        if self.shape == DISCOVERY:
            return f"{self.media_type};g=apidiscovery.k8s.io;v={self.version};as={DISCOVERY}"
        return self.media_type


PLAIN: Final = Form()
PLAIN_YAML: Final = Form(YAML)


@dataclasses.dataclass(frozen=True, slots=True)
class _Clause:
    media_type: str
    parameters: Mapping[str, str]


@functools.lru_cache(maxsize=256)
def _clauses(accept: str) -> tuple[_Clause, ...]:
    """The alternatives of an Accept header, best first."""
    found: list[tuple[float, _Clause]] = []
    for part in accept.split(","):
        media_type, *more = (piece.strip() for piece in part.split(";"))
        parameters = dict(piece.partition("=")[::2] for piece in more)
        try:
            quality = float(parameters.pop("q", "1"))
        except ValueError:
            quality = 0.0
        if media_type:
            found.append((quality, _Clause(media_type.lower(), parameters)))
    found.sort(key=lambda item: -item[0])
    return tuple(clause for _, clause in found)


@functools.lru_cache(maxsize=256)
def form_of_object(accept: str) -> Form:
    """For get, list, watch and writes; raises `StatusError` (406)."""
    return _choose(accept, (TABLE, PARTIAL, PARTIAL_LIST))


@functools.lru_cache(maxsize=64)
def form_of_discovery(accept: str) -> Form:
    """For `/api` and `/apis`."""
    return _choose(accept, (DISCOVERY,))


@functools.lru_cache(maxsize=64)
def plain_form(accept: str) -> Form:
    """For everything that has one shape only."""
    return _choose(accept, ())


def _choose(accept: str, shapes: tuple[str, ...]) -> Form:
    clauses = _clauses(accept)
    if not clauses:
        return PLAIN
    for clause in clauses:
        media_type = JSON if clause.media_type == "*/*" else clause.media_type
        if media_type not in REPRESENTATIONS:
            continue
        shape = clause.parameters.get("as", "")
        if not shape:
            return PLAIN if media_type == JSON else PLAIN_YAML
        form = _shaped(media_type, clause.parameters, shapes)
        if form is not None:
            return form
    raise _nothing_fits(clauses)


def _shaped(media_type: str, parameters: Mapping[str, str], shapes: tuple[str, ...]) -> Form | None:
    shape, group, version = parameters["as"], parameters.get("g", ""), parameters.get("v", "")
    if shape not in shapes:
        return None
    if shape == DISCOVERY:
        fits = group == "apidiscovery.k8s.io" and version == "v2"
    else:
        fits = group == META_GROUP and version in ("v1", "v1beta1")
    return Form(media_type, shape, version) if fits else None


def _nothing_fits(clauses: tuple[_Clause, ...]) -> StatusError:
    if any(clause.media_type in (*REPRESENTATIONS, "*/*") for clause in clauses):
        return not_acceptable(f"only the following media types are accepted: {', '.join(REPRESENTATIONS)}")
    known = ", ".join((*REPRESENTATIONS, *WATCH_REPRESENTATIONS))
    return errors.failure(406, "NotAcceptable", f"406: Not Acceptable\n\nAvailable representations: {known}", {})


def not_acceptable(text: str) -> StatusError:
    return errors.failure(406, "NotAcceptable", text)


def watch_form(accept: str) -> Form:
    """Watches are lines of JSON."""
    form = form_of_object(accept)
    if form.media_type != JSON:
        raise not_acceptable(f"only the following media types are accepted: {', '.join(WATCH_REPRESENTATIONS)}")
    return form


def is_pretty(asked: str | None, user_agent: str) -> bool:
    """Whether JSON is written for people: as asked, else by who asks."""
    if asked is not None:
        return parse_bool(asked)
    return user_agent.startswith(_READ_BY_PEOPLE)


def write(answer: Json, form: Form, *, pretty: bool = False) -> bytes:
    if form.media_type == YAML:
        plain = decode(encode(answer), object)
        text: str = yaml.dump(plain, Dumper=_DUMPER, sort_keys=True, allow_unicode=True, default_flow_style=False)
        return text.encode()
    if pretty:
        return json.dumps(decode(encode(answer), object), indent=2, ensure_ascii=False).encode()
    return encode(answer) + b"\n"


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads what JSON can hold: a date stays text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()
}
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def _with_text_keys(value: Any) -> Any:
    """JSON knows no other keys: what YAML takes for a number or a switch is written out."""
    if isinstance(value, dict):
        return {_text_key(key): _with_text_keys(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_text_keys(item) for item in value]
    return value


def _text_key(key: Any) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bool | int | float):
        return json.dumps(key)
    raise ValueError(f"unsupported map key of type {type(key).__name__}")


def json_body(body: bytes, content_type: str, kind: str, *, custom: bool = False) -> bytes:
    """The body of a write as JSON. Raises `StatusError` for other forms (415) and for what cannot be read (400)."""
    if not content_type or not body:
        return body
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type == JSON:
        return body
    # Custom kinds have no binary form, but a real server names it all the same.
    if media_type != YAML and (custom or media_type != protobuf.MEDIA_TYPE):
        raise errors.unsupported_media_type((*REPRESENTATIONS, protobuf.MEDIA_TYPE))
    try:
        return (
            protobuf.to_json(body)
            if media_type == protobuf.MEDIA_TYPE
            else encode(_with_text_keys(yaml.load(body, Loader=_Loader)))
        )
    except (yaml.YAMLError, TypeError, ValueError, RecursionError) as error:
        words = " ".join(str(error).split())
        if media_type == YAML:
            words = f"yaml: {words}"
        text = f"the object provided is unrecognized (must be of type {kind}): {words} ({body[:100].hex()})"
        raise errors.bad_request(text) from error
