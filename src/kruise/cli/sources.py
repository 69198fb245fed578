"""ConfigMaps and Secrets that variables are taken from."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable

from kruise.api.meta import PartialObject
from kruise.api.resource import Resource
from kruise.cli.session import Session
from kruise.machinery import codec
from kruise.machinery.client.errors import NotFoundError
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.documents import Json
from kruise.verbs.errors import UsageError, VerbError

_RESOURCES = {
    "ConfigMap": Resource("", "v1", "configmaps", "ConfigMap", True, PartialObject),
    "Secret": Resource("", "v1", "secrets", "Secret", True, PartialObject),
}
_WORDS = {
    "configmap": "ConfigMap",
    "configmaps": "ConfigMap",
    "cm": "ConfigMap",
    "secret": "Secret",
    "secrets": "Secret",
}


async def read_source(session: Session, word: str) -> Json:
    """The object behind `configmap/NAME` or `secret/NAME`."""
    kind, slash, name = word.partition("/")
    if not slash or not name or kind.lower() not in _WORDS:
        raise UsageError(f'--from: "{word}" is neither configmap/NAME nor secret/NAME')
    return await _read(session, _WORDS[kind.lower()], name)


async def _read(session: Session, kind: str, name: str) -> Json:
    request = Request(Verb.GET, _RESOURCES[kind], session.namespace, name)
    try:
        return codec.decode((await session.client.send(request)).body, dict)
    except NotFoundError as error:
        raise VerbError(f'{kind} "{name}" not found in namespace "{session.namespace}"') from error


async def resolved_values(session: Session, sources: Iterable[tuple[str, str, str]]) -> dict[tuple[str, str, str], str]:
    """Values by kind, name and key."""
    objects: dict[tuple[str, str], Json] = {}
    values: dict[tuple[str, str, str], str] = {}
    for kind, name, key in sorted(sources):
        if (kind, name) not in objects:
            objects[kind, name] = await _read(session, kind, name)
        data = objects[kind, name].get("data") or {}
        if key not in data:
            raise VerbError(f"{kind} {name} has no key {key}; its keys are {', '.join(sorted(data)) or 'none'}")
        values[kind, name, key] = _decoded(data[key]) if kind == "Secret" else data[key]
    return values


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text).decode()
    except (binascii.Error, UnicodeDecodeError):
        return "(binary)"
