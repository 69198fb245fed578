"""Which credentials a registry gets, out of pull secrets: by the rules of the kubelet (DMN-45, DMN-46). Pure."""

from __future__ import annotations

import base64
import binascii
import fnmatch
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from kruise.api.native.config import Secret
from kruise.daemon.runtime import Auth
from kruise.machinery.codec import DecodeError, decode

JSON_TYPE, JSON_KEY = "kubernetes.io/dockerconfigjson", ".dockerconfigjson"
LEGACY_TYPE, LEGACY_KEY = "kubernetes.io/dockercfg", ".dockercfg"
_HUB, _HUB_KEY = "docker.io", "index.docker.io"


class CredentialsError(ValueError):
    """A pull secret cannot be read; the text names it, and never what is in it."""


class _Place(NamedTuple):
    host: str
    port: str
    path: str


def credentials_for(repository: str, secrets: Iterable[Secret]) -> tuple[Auth, ...]:
    """The credentials to try for a repository such as `docker.io/library/nginx`, in order. Raises CredentialsError."""
    return matching(repository, [entry for secret in secrets for entry in entries_of(secret)])


def matching(repository: str, entries: Iterable[tuple[str, Auth]]) -> tuple[Auth, ...]:
    """Of what registries are called, those that name this one: the more specific first."""
    known = list(entries)
    ordered = sorted(known, key=lambda entry: entry[0], reverse=True)
    found = [auth for key, auth in ordered if matches(key, repository)]
    if not found and repository.partition("/")[0] == _HUB:
        found = [auth for key, auth in ordered if key == _HUB_KEY]
    return tuple(found)


def entries_of(secret: Secret) -> Iterator[tuple[str, Auth]]:
    name = f"{secret.metadata.namespace}/{secret.metadata.name}"
    if secret.type == JSON_TYPE and JSON_KEY in secret.data:
        found = _object(secret.data[JSON_KEY], name).get("auths")
    elif secret.type == LEGACY_TYPE and LEGACY_KEY in secret.data:
        found = _object(secret.data[LEGACY_KEY], name)
    else:
        return
    for registry, entry in found.items() if isinstance(found, dict) else ():
        try:
            auth = _auth(entry)
        except ValueError as error:
            raise CredentialsError(f"pull secret {name}: the entry for {registry} {error}") from None
        if auth is not None:
            yield normalised(str(registry)), auth


def _object(data: bytes, name: str) -> dict[str, Any]:
    try:
        return decode(data, dict)
    except DecodeError:
        raise CredentialsError(f"pull secret {name} holds no JSON object") from None


def _auth(entry: Any) -> Auth | None:
    """Unknown fields do not matter; an entry that says nothing is none. One that cannot be read is an error: to pull
    without it would only show that the registry refuses strangers (DMN-45). Raises ValueError."""
    if not isinstance(entry, Mapping):
        return None
    username, password, token = entry.get("username"), entry.get("password"), entry.get("auth")
    if isinstance(token, str) and token:
        try:
            token = "".join(token.split())
            text = base64.b64decode(token + "=" * (-len(token) % 4), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            raise ValueError("has an auth that is not base64") from None
        username, separator, password = text.partition(":")
        if not separator:
            raise ValueError("has an auth that is not user:password")
    if not isinstance(username, str) or not isinstance(password, str):
        return None
    return Auth(username=username, password=password)


def normalised(key: str) -> str:
    """As it is compared: without scheme, and without the version that some clients write behind the host."""
    place = key.partition("://")[2] if "://" in key else key
    host, _, path = place.partition("/")
    first, _, rest = path.partition("/")
    if first in ("v1", "v2"):
        path = rest
    path = path.strip("/")
    return f"{host}/{path}" if path else host


def matches(key: str, repository: str) -> bool:
    """Whether an entry is for a repository: the same port, as many labels in the host, each of which may be a glob, and
    a path that begins likewise."""
    wanted, given = _place(key), _place(repository)
    labels, parts = wanted.host.split("."), given.host.split(".")
    if wanted.port != given.port or len(labels) != len(parts):
        return False
    if not all(fnmatch.fnmatchcase(part, label) for label, part in zip(labels, parts, strict=True)):
        return False
    return given.path.startswith(wanted.path)


def _place(text: str) -> _Place:
    host, slash, path = text.partition("/")
    name, _, port = host.partition(":")
    return _Place(name, port, f"{slash}{path}")
