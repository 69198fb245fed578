"""OpenAPI v2, as far as clients of today ask for it.

kubectl asks for it when version 3 does not know a kind, to be sure. A document without kinds is the honest answer then:
kubectl goes on, and says that there are no matches for the kind. Kinds themselves are described in version 3 alone.
"""

from __future__ import annotations

from kruise.machinery import codec

PATH = "/openapi/v2"
BINARY = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_ASKED_AS = (BINARY, BINARY.replace("v2.v1", "v2@v1"))
"""The older name is no valid media type, so it is understood but not answered with."""
_TITLE, _VERSION = "Kubernetes", "v1.34.4"


def is_binary(accept: str) -> bool:
    return any(name in accept for name in _ASKED_AS)


def document() -> bytes:
    return codec.encode(
        {"swagger": "2.0", "info": {"title": _TITLE, "version": _VERSION}, "paths": {}, "definitions": {}}
    )


def binary() -> bytes:
    """The same as a message of `openapi.v2.Document`: swagger is field 1, info 2 (title 1, version 2), paths 8."""
    info = _text(1, _TITLE) + _text(2, _VERSION)
    return _text(1, "2.0") + _part(2, info) + _part(8, b"")


def _text(field: int, value: str) -> bytes:
    return _part(field, value.encode())


def _part(field: int, content: bytes) -> bytes:
    """All that is written here is shorter than 128 bytes, so one byte holds each length."""
    return bytes((field << 3 | 2, len(content))) + content
