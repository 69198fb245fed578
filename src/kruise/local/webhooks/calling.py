"""What it takes to call a webhook: where it is, and what is said when no proper answer comes."""

from __future__ import annotations

import base64
import binascii
import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import urlsplit

from kruise.api.core.field_errors import go_quote
from kruise.machinery.codec import DecodeError, decode


@dataclasses.dataclass(frozen=True, slots=True)
class Service:
    namespace: str
    name: str
    port: int = 443

    @property
    def host(self) -> str:
        """The name that its certificate must be for."""
        return f"{self.name}.{self.namespace}.svc"

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    """A webhook as a `clientConfig` names it."""

    base: str
    """Scheme, host and port."""
    path: str
    bundle: bytes = b""
    """The certificates to trust, PEM; empty: those that the system trusts."""
    service: Service | None = None

    def url(self, timeout: float | None = None) -> str:
        """As the webhook sees it and as error texts show it."""
        return f"{self.base}{self.path}" + (f"?timeout={whole_seconds(timeout)}s" if timeout is not None else "")


def whole_seconds(timeout: float) -> int:
    return max(1, math.ceil(timeout))


def target_of(config: Mapping[str, Any]) -> Target:
    """From a `clientConfig`; raises `CallError` for one that names nothing."""
    text = config.get("caBundle") or ""
    try:
        bundle = base64.b64decode(text, validate=True).strip()
    except (binascii.Error, ValueError) as error:
        raise CallError(f"could not get REST client: unable to load root certificates: {error}") from error
    service = config.get("service")
    if service:
        named = Service(service.get("namespace", ""), service.get("name", ""), int(service.get("port") or 443))
        path = service.get("path") or "/"
        return Target(f"https://{named.host}:{named.port}", _rooted(path), bundle, named)
    url = config.get("url")
    if not url:
        raise CallError("could not get REST client: webhook configuration must have either service or URL")
    parts = urlsplit(url)
    return Target(f"{parts.scheme}://{parts.netloc}", _rooted(parts.path), bundle)


def _rooted(path: str) -> str:
    return path if path.startswith("/") else f"/{path}"


class CallError(Exception):
    """No proper answer. The text goes on after `failed calling webhook "name": `."""


class Caller(Protocol):
    async def post(self, target: Target, body: bytes, timeout: float | None) -> bytes:
        """Send a review, bring back the body of the answer. Raises `CallError` with `failed_to_call` texts."""


def failed_to_call(target: Target, timeout: float | None, why: str) -> CallError:
    """The request itself went wrong, in the words of Go's HTTP client."""
    return CallError(f"failed to call webhook: Post {go_quote(target.url(timeout))}: {why}")


DEADLINE = "context deadline exceeded"

_MEANINGS: Mapping[int, str] = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    406: "the server was unable to respond with a content type that the client supports",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}


def refused(code: int, body: bytes) -> CallError:
    """The webhook answered with an HTTP error: the words of a Status where it sent one, or of its code."""
    try:
        said = decode(body, object)
    except DecodeError:
        said = None
    if isinstance(said, dict) and said.get("kind") == "Status" and said.get("status") == "Failure":
        return CallError(f"failed to call webhook: {said.get('message', '')}")
    text = body.decode("utf-8", "replace").strip()
    if code in (403, 415):
        why = text or "unknown"
    elif code in _MEANINGS:
        why = _MEANINGS[code]
    elif code >= 500:
        why = f"an error on the server ({go_quote(text or 'unknown')}) has prevented the request from succeeding"
    else:
        why = f"the server responded with the status code {code} but did not return more information"
    return CallError(f"failed to call webhook: {why}")
