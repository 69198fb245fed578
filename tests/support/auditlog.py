"""Reads the API server's audit log: who asked for what, with which answer. Tests count writes by client with it."""

from __future__ import annotations

import contextlib
import datetime
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

# Bodies are left out: they make the server slow and the log large. Only the finished request is told, once.
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [
        {"level": "None", "nonResourceURLs": ["/readyz*", "/livez*", "/healthz*"]},
        {"level": "Metadata"},
    ],
}
_LONGEST_LINE = 1 << 20
WRITE_VERBS = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One finished request. `received` and `completed` are the API server's own times."""

    user: str
    user_agent: str
    verb: str
    group: str
    resource: str
    subresource: str
    namespace: str
    name: str
    code: int
    uri: str
    received: datetime.datetime
    completed: datetime.datetime

    @property
    def is_write(self) -> bool:
        """Whether the request could change something; a refused one and a dry run count too."""
        return self.verb in WRITE_VERBS


class _User(msgspec.Struct):
    username: str = ""


class _ObjectReference(msgspec.Struct, rename="camel"):
    api_group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class _Status(msgspec.Struct):
    code: int = 0


class _Event(msgspec.Struct, rename="camel"):
    verb: str
    request_received_timestamp: datetime.datetime
    stage_timestamp: datetime.datetime
    request_uri: str = msgspec.field(name="requestURI", default="")
    user_agent: str = ""
    user: _User = msgspec.field(default_factory=_User)
    object_ref: _ObjectReference = msgspec.field(default_factory=_ObjectReference)
    response_status: _Status = msgspec.field(default_factory=_Status)


_decoder = msgspec.json.Decoder(_Event)


def parse_lines(lines: Iterable[bytes]) -> list[AuditEntry]:
    """Entries of finished requests, in the order of the log.

    A server that is killed may leave half a line, which the next one goes on writing behind: nothing can be read there.
    """
    entries = []
    for line in lines:
        with contextlib.suppress(msgspec.DecodeError):
            entries.append(_entry(_decoder.decode(line)))
    return entries


def end(path: Path) -> int:
    """The byte after the last whole line: a mark for `read(since=...)`."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            # A line may be half written at this moment; no line is longer than this window.
            start = file.seek(max(0, size - _LONGEST_LINE))
            return start + file.read(size - start).rfind(b"\n") + 1
    except FileNotFoundError:
        return 0


def read(path: Path, since: int = 0) -> list[AuditEntry]:
    """Entries from byte `since` on. A line that the server is still writing is left for the next call."""
    try:
        with path.open("rb") as file:
            file.seek(since)
            content = file.read()
    except FileNotFoundError:
        # The server makes the file with the first entry.
        return []
    return parse_lines(content[: content.rfind(b"\n") + 1].splitlines())


def _entry(event: _Event) -> AuditEntry:
    reference = event.object_ref
    return AuditEntry(
        user=event.user.username,
        user_agent=event.user_agent,
        verb=event.verb,
        group=reference.api_group,
        resource=reference.resource,
        subresource=reference.subresource,
        namespace=reference.namespace,
        name=reference.name,
        code=event.response_status.code,
        uri=event.request_uri,
        received=event.request_received_timestamp,
        completed=event.stage_timestamp,
    )
