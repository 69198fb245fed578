"""Requests as values: what is asked for, before anything moves.

A `Request` says everything that a transport needs, in terms of resources, so that an in-process transport can answer
it without parsing paths, and a fault injector or an audit can tell what it is about.
"""

from __future__ import annotations

import dataclasses
import enum
from typing import Any
from urllib.parse import urlencode

from kruise.api.resource import Resource


class Verb(enum.StrEnum):
    """The verbs of Kubernetes' authorisation, as audit logs and RBAC name them."""

    GET = "get"
    LIST = "list"
    WATCH = "watch"
    CREATE = "create"
    UPDATE = "update"
    PATCH = "patch"
    DELETE = "delete"
    DELETE_COLLECTION = "deletecollection"

    @property
    def writes(self) -> bool:
        return self not in _READS


_READS = frozenset({Verb.GET, Verb.LIST, Verb.WATCH})
_METHODS = {
    Verb.GET: "GET",
    Verb.LIST: "GET",
    Verb.WATCH: "GET",
    Verb.CREATE: "POST",
    Verb.UPDATE: "PUT",
    Verb.PATCH: "PATCH",
    Verb.DELETE: "DELETE",
    Verb.DELETE_COLLECTION: "DELETE",
}


class PatchType(enum.StrEnum):
    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


Query = tuple[tuple[str, str], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """One call of the API.

    `resource` is None for paths outside the resource tree (`/version`, `/apis`, `/openapi/v3`), which then stand in
    `raw_path`. `timeout` is the time after which the caller gives up; a write's outcome is unknown then.
    """

    verb: Verb
    resource: Resource[Any] | None
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    query: Query = ()
    body: bytes | None = None
    content_type: str = "application/json"
    accept: str = "application/json"
    timeout: float | None = None
    raw_path: str = ""
    impersonate: str = ""
    headers: tuple[tuple[str, str], ...] = dataclasses.field(default=(), repr=False)
    """More of them, for what stands behind the API server. They may be secret."""
    user_agent: str = ""
    """What the client calls itself; empty: as the transport does."""

    @property
    def method(self) -> str:
        return _METHODS[self.verb]

    @property
    def path(self) -> str:
        if self.resource is None:
            return self.raw_path
        return self.resource.path(self.namespace, self.name, self.subresource)

    @property
    def url(self) -> str:
        """Path and query."""
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path

    def parameter(self, name: str, default: str = "") -> str:
        for key, value in self.query:
            if key == name:
                return value
        return default

    def __str__(self) -> str:
        return f"{self.verb} {self.url}"
