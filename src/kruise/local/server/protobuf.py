"""Kubernetes' binary form, read only: kubectl sends it for what it makes itself (`kubectl create deployment ...`).

Such clients also accept JSON, and that is what they are answered in. The layout of native kinds is a table
(`messages.json`, made by `hack/kubernetes/proto_messages.py`); custom kinds have no binary form.
"""

from __future__ import annotations

import base64
import functools
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from importlib import resources
from typing import Any, Final

from kruise.local.apicore.errors import Json
from kruise.machinery.codec import DecodeError, Raw, Struct, decode, encode
from kruise.machinery.protobuf import WireError, pairs, signed, varint
from kruise.machinery.times import format_go_duration, format_micro_time, format_time

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"
MAGIC: Final = b"k8s\0"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_DEPTH: Final = 64


class _Table(Struct):
    kinds: dict[str, str]
    messages: dict[str, dict[str, str]]


class _Field(Struct):
    name: str
    """Empty: the fields of the message stand inline."""
    type: str
    many: str = ""
    """`[]` for a list, `{}` for a map."""
    zero_counts: bool = False


@functools.cache
def _table() -> _Table:
    return decode(resources.files(__package__).joinpath("messages.json").read_bytes(), _Table)


@functools.cache
def _layout(message: str) -> Mapping[int, _Field]:
    fields = {}
    for number, text in _table().messages[message].items():
        name, _, kind = text.partition(" ")
        many = kind[:2] if kind[:2] in ("[]", "{}") else ""
        kind = kind.removeprefix(many)
        fields[int(number)] = _Field(name=name, type=kind.rstrip("?"), many=many, zero_counts=kind.endswith("?"))
    return fields


def to_json(body: bytes) -> bytes:
    """An object in binary form as JSON; raises `WireError`."""
    return encode(read(body))


def read(body: bytes) -> Json:
    if not body.startswith(MAGIC):
        prefix = " ".join(str(byte) for byte in MAGIC)
        raise WireError(f"provided data does not appear to be a protobuf message, expected prefix [{prefix}]")
    api_version, kind, content = _envelope(body[len(MAGIC) :])
    message = "meta.v1.DeleteOptions" if kind == "DeleteOptions" else _table().kinds.get(f"{api_version}/{kind}")
    if message is None:
        raise WireError(f"no kind {kind!r} is registered for version {api_version!r}")
    return {"kind": kind, "apiVersion": api_version, **_message(message, content, 0)}


def _envelope(data: bytes) -> tuple[str, str, bytes]:
    api_version = kind = ""
    content = b""
    for number, value in pairs(data):
        if number == 1:
            for inner, text in pairs(_bytes(value)):
                if inner == 1:
                    api_version = _bytes(text).decode()
                elif inner == 2:
                    kind = _bytes(text).decode()
        elif number == 2:
            content = _bytes(value)
    return api_version, kind, content


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise WireError("a number stands where a text or message belongs")
    return value


def _message(name: str, data: bytes, depth: int) -> Json:
    if depth > _MAX_DEPTH:
        raise WireError("nested too deeply")
    layout = _layout(name)
    result: Json = {}
    for number, value in pairs(data):
        field = layout.get(number)
        if field is None:
            continue
        if field.many == "{}":
            key, item = _entry(field, _bytes(value), depth)
            result.setdefault(field.name, {})[key] = item
        elif field.many == "[]":
            items = result.setdefault(field.name, [])
            if field.type in ("i", "b") and isinstance(value, bytes):
                items.extend(_packed(field, value))
            else:
                items.append(_value(field.type, value, depth))
        elif not field.name:
            result.update(_message(field.type[1:], _bytes(value), depth + 1))
        else:
            found = _value(field.type, value, depth)
            # Structs that are no pointers are written with all their fields: a zero says no more than no field.
            if found is not None and (found or field.zero_counts or field.type.startswith("@")):
                result[field.name] = found
    return result


def _entry(field: _Field, data: bytes, depth: int) -> tuple[str, Any]:
    key, item = "", _value(field.type, b"" if field.type not in ("i", "b") else 0, depth)
    for number, value in pairs(data):
        if number == 1:
            key = _bytes(value).decode()
        elif number == 2:
            item = _value(field.type, value, depth)
    return key, item


def _packed(field: _Field, data: bytes) -> Iterator[Any]:
    position = 0
    while position < len(data):
        value, position = varint(data, position)
        yield _value(field.type, value, 0)


def _value(kind: str, value: int | bytes, depth: int) -> Any:
    if kind == "s":
        try:
            return _bytes(value).decode()
        except UnicodeDecodeError as error:
            raise WireError(f"a text is not UTF-8: {error}") from error
    if kind == "y":
        return base64.b64encode(_bytes(value)).decode("ascii")
    if kind in ("i", "b"):
        if not isinstance(value, int):
            raise WireError("a text or message stands where a number belongs")
        return bool(value) if kind == "b" else signed(value)
    special = _SPECIAL.get(kind[1:])
    if special is not None:
        return special(dict(pairs(_bytes(value))), _bytes(value))
    return _message(kind[1:], _bytes(value), depth + 1)


Parts = dict[int, int | bytes]


def _time(parts: Parts, data: bytes) -> str | None:
    return None if not data else format_time(_moment(parts))


def _micro_time(parts: Parts, data: bytes) -> str | None:
    return None if not data else format_micro_time(_moment(parts))


def _moment(parts: Parts) -> datetime:
    seconds, nanos = parts.get(1, 0), parts.get(2, 0)
    if not isinstance(seconds, int) or not isinstance(nanos, int):
        raise WireError("a time has no number")
    try:
        return _EPOCH + timedelta(seconds=signed(seconds), microseconds=signed(nanos) // 1000)
    except OverflowError as error:
        raise WireError(f"a time is out of range: {error}") from error


def _duration(parts: Parts, data: bytes) -> str:
    nanos = parts.get(1, 0)
    return format_go_duration((signed(nanos) if isinstance(nanos, int) else 0) / 1e9)


def _quantity(parts: Parts, data: bytes) -> str:
    return _bytes(parts.get(1, b"0")).decode() or "0"


def _int_or_string(parts: Parts, data: bytes) -> int | str:
    if parts.get(1, 0) == 1:
        return _bytes(parts.get(3, b"")).decode()
    number = parts.get(2, 0)
    return signed(number) if isinstance(number, int) else 0


def _raw(parts: Parts, data: bytes) -> Any:
    content = _bytes(parts.get(1, b""))
    if not content:
        return None
    try:
        return decode(content, Raw)
    except DecodeError as error:
        raise WireError(f"an embedded object is no JSON: {error}") from error


def _texts(parts: Parts, data: bytes) -> list[str]:
    return [_bytes(value).decode() for number, value in pairs(data) if number == 1]


_SPECIAL: Final = {
    "meta.v1.Time": _time,
    "meta.v1.MicroTime": _micro_time,
    "meta.v1.Duration": _duration,
    "meta.v1.FieldsV1": _raw,
    "meta.v1.Verbs": _texts,
    "api.resource.Quantity": _quantity,
    "util.intstr.IntOrString": _int_or_string,
    "runtime.RawExtension": _raw,
    "authentication.v1.ExtraValue": _texts,
    "authorization.v1.ExtraValue": _texts,
    "certificates.v1.ExtraValue": _texts,
}
