"""What the API server refuses about ConfigMaps and Secrets."""

from __future__ import annotations

import base64
import json
from typing import Final

from kruise.api.core import formats
from kruise.api.core.field_errors import Path, forbidden, invalid, required, too_long
from kruise.api.core.validation import common
from kruise.api.core.validation.common import Errors, Struct
from kruise.local.kinds import checks

_LIMIT: Final = 1024 * 1024
_FROZEN: Final = "field is immutable when `immutable` is set"
_DATA: Final = Path("data")
_ACCOUNT: Final = "kubernetes.io/service-account.name"
_DOCKER_KEYS: Final = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}


def _frozen(new: Struct, old: Struct | None, names: tuple[str, ...]) -> Errors:
    if old is None or not old.get("immutable"):
        return
    if not new.get("immutable"):
        yield forbidden("immutable", _FROZEN)
    for name in names:
        if (new.get(name) or {}) != (old.get(name) or {}):
            yield forbidden(name, _FROZEN)


def config_map(new: Struct, old: Struct | None) -> Errors:
    yield from _frozen(new, old, ("data", "binaryData"))
    data, binary = new.get("data") or {}, new.get("binaryData") or {}
    size = sum(formats.byte_length(value) for value in data.values()) + sum(
        _decoded(value) for value in binary.values()
    )
    for key in data:
        yield from common.complaints(_DATA.key(key), key, formats.config_key(key))
        if key in binary:
            yield invalid(_DATA.key(key), key, "duplicate of key present in binaryData")
    for key in binary:
        yield from common.complaints(Path("binaryData").key(key), key, formats.config_key(key))
    if size > _LIMIT:
        yield too_long("", _LIMIT)


def _decoded(value: str) -> int:
    """How many bytes base64 text stands for."""
    return len(value) * 3 // 4 - value.count("=")


def secret(new: Struct, old: Struct | None) -> Errors:
    if old is not None:
        yield from checks.immutable("type", new["type"], old["type"])
    yield from _frozen(new, old, ("data",))
    data, kind = new.get("data") or {}, new["type"]
    for key in data:
        yield from common.complaints(_DATA.key(key), key, formats.config_key(key))
    if sum(_decoded(value) for value in data.values()) > _LIMIT:
        yield too_long("data", _LIMIT)
    if kind == "kubernetes.io/service-account-token":
        if not (new["metadata"].get("annotations") or {}).get(_ACCOUNT):
            yield required(checks.METADATA.child("annotations").key(_ACCOUNT))
    elif kind in _DOCKER_KEYS:
        yield from _docker(data, _DOCKER_KEYS[kind])
    elif kind == "kubernetes.io/basic-auth":
        if "username" not in data and "password" not in data:
            yield required(_DATA.key("username"))
            yield required(_DATA.key("password"))
    elif kind == "kubernetes.io/ssh-auth":
        if not data.get("ssh-privatekey"):
            yield required(_DATA.key("ssh-privatekey"))
    elif kind == "kubernetes.io/tls":
        for key in ("tls.crt", "tls.key"):
            if key not in data:
                yield required(_DATA.key(key))


def _docker(data: Struct, key: str) -> Errors:
    if key not in data:
        yield required(_DATA.key(key))
        return
    try:
        is_object = isinstance(json.loads(base64.b64decode(data[key])), dict)
    except ValueError:
        is_object = False
    if not is_object:
        yield invalid(_DATA.key(key), "<secret contents redacted>", "must be a JSON object")
