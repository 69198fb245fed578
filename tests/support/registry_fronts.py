"""A registry with a name of its own before the registry of a cluster with real nodes: it asks for a password, and
takes as long as a test wants it to.

    with Front(nodes, "slow.example") as front:
        front.hold()                  # image `slow.example/team/app:1`: nodes get no layer until `front.release()`
"""

from __future__ import annotations

import base64
import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from tests.support.realnodes import RealNodes

LONGEST_HOLD = 120.0
_PASSED_ON = ("Content-Type", "Content-Length", "Docker-Content-Digest", "Docker-Distribution-Api-Version")


class Front:
    def __init__(self, nodes: RealNodes, name: str, *, login: str = "") -> None:
        self.name = name
        self._nodes = nodes
        self._open = threading.Event()
        self._open.set()
        self._lock = threading.Lock()
        self._held: list[str] = []
        upstream = nodes.registry.address
        expected = f"Basic {base64.b64encode(login.encode()).decode()}" if login else ""
        front = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                if expected and self.headers.get("Authorization") != expected:
                    self.send_response(401)
                    self.send_header("WWW-Authenticate", 'Basic realm="front"')
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                if "/blobs/" in self.path:
                    front.wait(self.path)
                connection = http.client.HTTPConnection(upstream, timeout=30)
                try:
                    accept = {"Accept": self.headers.get("Accept", "*/*")}
                    connection.request(self.command, self.path, headers=accept)
                    answer = connection.getresponse()
                    body = answer.read()
                    self.send_response(answer.status)
                    for header in _PASSED_ON:
                        if (value := answer.getheader(header)) is not None:
                            self.send_header(header, value)
                    self.end_headers()
                    self.wfile.write(body)
                finally:
                    connection.close()

            do_HEAD = do_GET  # noqa: N815

            def log_message(self, format: str, *arguments: Any) -> None:
                """Quiet."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                """Who gives a pull up leaves in the middle of an answer."""

        self._server = Server((upstream.rpartition(":")[0], 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def wait(self, path: str) -> None:
        with self._lock:
            self._held.append(path)
        self._open.wait(LONGEST_HOLD)

    def hold(self) -> None:
        with self._lock:
            self._held.clear()
        self._open.clear()

    def release(self) -> None:
        self._open.set()

    @property
    def repositories(self) -> set[str]:
        """Whose blobs somebody waits for, or has waited for since `hold`."""
        with self._lock:
            return {path.removeprefix("/v2/").partition("/blobs/")[0] for path in self._held}

    def __enter__(self) -> Self:
        self._thread.start()
        host, port = self._server.server_address[:2]
        server = f"http://{host!s}:{port}"
        for node in self._nodes.nodes:
            hosts = self._nodes.directory / "nodes" / node / "registries" / self.name / "hosts.toml"
            hosts.parent.mkdir(parents=True, exist_ok=True)
            hosts.write_text(f'server = "{server}"\n[host."{server}"]\n  capabilities = ["pull", "resolve"]\n')
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
