"""How to reach a cluster and who we are there, as a value.

`kubeconfig` and `in_cluster` make a `ClusterConfig`; `tls`, `credentials` and `http` use it. Nothing here reads a file.
"""

from __future__ import annotations

import dataclasses
import enum
import ipaddress
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from kruise.machinery.client.errors import ClientError, TransportError


class KubeconfigError(ClientError, ValueError):
    """The configuration cannot be used; the text names the file, the entry and what to do about it."""


class NothingConfiguredError(KubeconfigError):
    """Nobody has chosen a cluster: there is no kubeconfig, or it names no current context."""


class CertificateError(TransportError):
    """A certificate of ours or of the server is expired or not trusted. The server did not act on the request."""

    def __init__(self, message: str) -> None:
        super().__init__(message, sent=False)


class CredentialError(TransportError):
    """No credentials could be had: a plugin failed, a token file is gone. Nothing was sent."""

    def __init__(self, message: str) -> None:
        super().__init__(message, sent=False)


class InteractiveMode(enum.StrEnum):
    """Whether a credential plugin may talk to the person at the terminal."""

    NEVER = "Never"
    IF_AVAILABLE = "IfAvailable"
    ALWAYS = "Always"


@dataclasses.dataclass(frozen=True, slots=True)
class Pem:
    """A certificate or key: inline, or in a file that may be replaced while we run."""

    data: bytes = b""
    path: str = ""

    def __bool__(self) -> bool:
        return bool(self.data or self.path)

    def __str__(self) -> str:
        return self.path if self.path and not self.data else "(inline data)"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ExecPlugin:
    """A program that prints credentials (`users[].user.exec`)."""

    api_version: str
    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: InteractiveMode = InteractiveMode.IF_AVAILABLE
    cluster_extension: Any = None
    """Handed to the plugin as `spec.cluster.config`; from the cluster's extension of the same purpose."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Impersonation:
    user: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    """Everything that a connection needs. Secrets are kept out of `repr`, so that a log line cannot show them."""

    server: str
    namespace: str = "default"
    ca: Pem = dataclasses.field(default=Pem(), repr=False)
    insecure: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    disable_compression: bool = False
    client_certificate: Pem = dataclasses.field(default=Pem(), repr=False)
    client_key: Pem = dataclasses.field(default=Pem(), repr=False)
    token: str = dataclasses.field(default="", repr=False)
    token_file: str = ""
    username: str = ""
    password: str = dataclasses.field(default="", repr=False)
    exec_plugin: ExecPlugin | None = dataclasses.field(default=None, repr=False)
    impersonation: Impersonation = Impersonation()
    context: str = ""
    origin: str = ""
    """Where it came from, for error texts: `user "admin" in /home/a/.kube/config`."""
    is_local_cluster: bool = False
    """Made by `kruise up`: where nobody listens any more, that is the remedy."""

    @property
    def url(self) -> str:
        """The server's address with a scheme and without a slash at the end. As in kubectl, a bare `host:port` is
        https where TLS settings are given, and http otherwise."""
        if "://" in self.server:
            return self.server.rstrip("/")
        secured = self.ca or self.insecure or self.client_certificate
        return f"{'https' if secured else 'http'}://{self.server.rstrip('/')}"

    @property
    def uses_tls(self) -> bool:
        return self.url.startswith("https:")

    @property
    def unix_socket(self) -> str:
        """Path of the socket where the address is `unix:///path`, else empty."""
        return self.server.removeprefix("unix://") if self.server.startswith("unix://") else ""


def proxy_from_environment(url: str, env: Mapping[str, str]) -> str:
    """The proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY ask for, by Go's rules: kubectl obeys the same ones."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme not in ("http", "https") or _bypasses_proxy(host, parts.port, env):
        return ""
    name = f"{parts.scheme}_proxy"
    proxy = env.get(name.upper()) or env.get(name) or ""
    return proxy if "://" in proxy or not proxy else f"http://{proxy}"


def _bypasses_proxy(host: str, port: int | None, env: Mapping[str, str]) -> bool:
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    entries = (env.get("NO_PROXY") or env.get("no_proxy") or "").split(",")
    return any(_covers(entry.strip().lower(), host.lower(), port, address) for entry in entries)


def _covers(
    entry: str, host: str, port: int | None, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None
) -> bool:
    if not entry:
        return False
    if entry == "*":
        return True
    if "/" in entry and address is not None:
        try:
            return address in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    name, _, wanted_port = entry.rpartition(":") if entry.count(":") == 1 else (entry, "", "")
    if wanted_port and wanted_port != str(port):
        return False
    if address is not None:
        return _address(name) == address
    suffix = name.removeprefix("*")
    if suffix.startswith("."):
        return host.endswith(suffix)
    return host == suffix or host.endswith(f".{suffix}")


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return None
