"""OpenAPI v3: an index at `/openapi/v3` and one document for each group and version.

Native kinds are published as a real API server publishes them: `native.json.xz` holds its documents (written by
`hack/kubernetes/openapi_documents.py`); only the paths of kinds that are served here are shown. Documents of custom
kinds are made from their definitions.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.resources
import lzma
import operator
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kruise.local.apicore.kinds import KindDescription, Registry
from kruise.local.openapi import custom, version2
from kruise.machinery import codec

ROOT = "/openapi/v3"
_JSON = "application/json"
_INFO = {"title": "Kubernetes", "version": "1.34"}


class Published(NamedTuple):
    status: int
    content_type: str
    body: bytes
    etag: str


def serve(registry: Registry, path: str, accept: str) -> Published | None:
    """The answer to a path below `/openapi`; None: there is nothing at this path."""
    if path == version2.PATH:
        if version2.is_binary(accept):
            return _published(version2.binary(), version2.BINARY)
        return _published(version2.document())
    if not path.startswith(ROOT):
        return None
    wanted = path.removeprefix(ROOT).strip("/")
    groups = _by_group_version(registry)
    if not wanted:
        paths = {
            name: {"serverRelativeURL": f"{ROOT}/{name}?hash={_digest(_document(name, kinds))}"}
            for name, kinds in sorted(groups.items())
        }
        return _published(codec.encode({"paths": paths}))
    kinds = groups.get(wanted)
    return None if kinds is None else _published(_document(wanted, kinds))


def _published(body: bytes, content_type: str = _JSON) -> Published:
    return Published(200, content_type, body, f'"{_digest(body)}"')


def _digest(body: bytes) -> str:
    return hashlib.blake2b(body, digest_size=32).hexdigest().upper()


def _by_group_version(registry: Registry) -> dict[str, tuple[KindDescription, ...]]:
    groups: dict[str, list[KindDescription]] = {}
    for kind in registry:
        for version in kind.versions:
            name = f"apis/{kind.group}/{version}" if kind.group else f"api/{version}"
            groups.setdefault(name, []).append(kind)
    return {name: tuple(sorted(kinds, key=lambda kind: kind.plural)) for name, kinds in groups.items()}


_made: dict[str, tuple[tuple[KindDescription, ...], bytes]] = {}
"""The last document of each name, and the descriptions that it was made from. A definition that changes is registered
with another description, so the same ones mean the same document."""


def _document(name: str, kinds: tuple[KindDescription, ...]) -> bytes:
    known = _made.get(name)
    if known is not None and len(known[0]) == len(kinds) and all(map(operator.is_, known[0], kinds)):
        return known[1]
    body = _make(name, kinds)
    _made[name] = (kinds, body)
    return body


def _make(name: str, kinds: tuple[KindDescription, ...]) -> bytes:
    version = name.rpartition("/")[2]
    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {}
    security: Mapping[str, Any] = {}
    native = _native()["documents"].get(name)
    if native is not None:
        served = {kind.plural for kind in kinds if not kind.custom}
        paths |= {path: operations for path, operations in native["paths"].items() if _is_served(path, name, served)}
        schemas |= {schema: _native()["schemas"][schema] for schema in native["schemas"]}
        security = native["securitySchemes"]
    for kind in kinds:
        if kind.custom:
            served_as = kind.as_of(version)
            paths |= custom.paths(served_as, version)
            schemas |= custom.schemas(served_as, version)
    missing = _referenced(schemas.values(), schemas) | _referenced(paths.values(), schemas)
    while missing:
        schemas |= {name: _native()["schemas"].get(name, {"type": "object"}) for name in missing}
        missing = _referenced((schemas[name] for name in missing), schemas)
    components = {"schemas": dict(sorted(schemas.items()))}
    if security:
        components["securitySchemes"] = dict(security)
    document = {"openapi": "3.0.0", "info": _INFO, "paths": dict(sorted(paths.items())), "components": components}
    return codec.encode(document)


@functools.cache
def _native() -> Mapping[str, Any]:
    packed = importlib.resources.files(__package__).joinpath("native.json.xz").read_bytes()
    found: Mapping[str, Any] = codec.decode(lzma.decompress(packed), dict)
    return found


def _is_served(path: str, group_version: str, served: set[str]) -> bool:
    parts = path.removeprefix(f"/{group_version}/").split("/")
    if parts == [""]:
        return True
    if parts[0] == "watch":
        return False
    if parts[0] == "namespaces" and len(parts) > 2 and parts[2] not in ("status", "finalize"):
        return parts[2] in served
    return parts[0] in served


def _referenced(values: Iterable[Any], known: Mapping[str, Any]) -> set[str]:
    """Names of schemas that are referred to and not known yet."""
    found: set[str] = set()
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            reference = value.get("$ref")
            if isinstance(reference, str):
                found.add(reference.removeprefix("#/components/schemas/"))
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
    return found - known.keys()
