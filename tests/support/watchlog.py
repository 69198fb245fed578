"""Everything that happens to some kinds of objects, written down in the order of the API server.

    with WatchLog(plane, "/api/v1/namespaces/demo/pods") as log:
        log.changes()        # all of them so far, each with the whole object

Versions of different kinds come from one counter, so they tell what came first also across kinds.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from tests.support.realcluster import ControlPlane

Json = dict[str, Any]

_RETRY_SECONDS = 0.1


@dataclass(frozen=True)
class Change:
    """An object as it was from this version on; `seen` is when we heard of it, on the monotonic clock."""

    version: int
    seen: float
    is_gone: bool
    object: Json

    @property
    def name(self) -> str:
        return str(self.object["metadata"]["name"])

    @property
    def uid(self) -> str:
        return str(self.object["metadata"]["uid"])


class WatchLog:
    """One watch per path, each in a thread; it goes on after the API server was away."""

    def __init__(self, plane: ControlPlane, *paths: str) -> None:
        self._plane = plane
        self._paths = paths
        self._lock = threading.Lock()
        self._changes: dict[str, dict[tuple[int, str], Change]] = {path: {} for path in paths}
        self._connections: dict[str, http.client.HTTPSConnection] = {}
        self._threads: list[threading.Thread] = []
        self._is_over = threading.Event()

    def __enter__(self) -> Self:
        for path in self._paths:
            version = self._list(path)
            thread = threading.Thread(target=self._follow, args=(path, version), name=f"watch {path}")
            self._threads.append(thread)
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        with self._lock:
            for connection in self._connections.values():
                if connection.sock is not None:
                    # Below TLS, so that the reader sees an end and nothing half torn down.
                    socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()

    def changes(self, path: str = "", *, since: int = 0) -> list[Change]:
        """What happened after version `since`, by version; of the first path unless told otherwise."""
        with self._lock:
            found = list(self._changes[path or self._paths[0]].values())
        return sorted((each for each in found if each.version > since), key=lambda change: change.version)

    def mark(self) -> int:
        """The version that the API server has now; what is written later is above it."""
        return int(self._plane.request("GET", f"{self._paths[0]}?limit=1").ok()["metadata"]["resourceVersion"])

    def _list(self, path: str) -> int:
        found = self._plane.request("GET", path).ok()
        for item in found["items"]:
            self._note(path, item, is_gone=False)
        return int(found["metadata"]["resourceVersion"])

    def _note(self, path: str, item: Json, *, is_gone: bool) -> None:
        version = int(item["metadata"]["resourceVersion"])
        change = Change(version, time.monotonic(), is_gone, item)
        with self._lock:
            self._changes[path].setdefault((version, change.uid), change)

    def _follow(self, path: str, version: int) -> None:
        while not self._is_over.is_set():
            try:
                version = self._watch(path, version)
            except (OSError, http.client.HTTPException):
                # The API server is away, or this is the end.
                self._is_over.wait(_RETRY_SECONDS)

    def _watch(self, path: str, version: int) -> int:
        """One watch until it ends; the version to go on from."""
        address = urlsplit(self._plane.url)
        tls: ssl.SSLContext = self._plane.ssl_context()
        connection = http.client.HTTPSConnection(address.hostname or "", address.port, context=tls)
        try:
            connection.request("GET", f"{path}?watch=true&allowWatchBookmarks=true&resourceVersion={version}")
            with self._lock:
                self._connections[path] = connection
            if self._is_over.is_set():
                return version
            for line in connection.getresponse():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    # Too old after a restart of the API server: what was missed meanwhile shows in the list.
                    return self._list(path)
                version = int(event["object"]["metadata"]["resourceVersion"])
                if event["type"] != "BOOKMARK":
                    self._note(path, event["object"], is_gone=event["type"] == "DELETED")
            return version
        finally:
            with self._lock:
                self._connections.pop(path, None)
            connection.close()
