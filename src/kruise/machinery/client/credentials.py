"""Who we are on each request: static, from a token file that is re-read, or from a plugin that is run again.

`Credentials.ready()` is on the path of every request and costs a comparison or two. An `Identity` is a
value; `renew(identity)` is called with the one that the server refused, so that of many requests refused at once only
the first causes a re-read or a new run of the plugin.
"""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

from kruise.machinery.client import exec_plugin, tls
from kruise.machinery.client.config import ClusterConfig, CredentialError, ExecPlugin, Pem
from kruise.machinery.client.exec_plugin import PluginResult
from kruise.machinery.clock import Clock

TOKEN_FILE_INTERVAL = 5.0

RunPlugin = Callable[[ExecPlugin, ClusterConfig], Awaitable[PluginResult]]


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Identity:
    """What one request carries."""

    authorization: str = dataclasses.field(default="", repr=False)
    tls: ssl.SSLContext | None = None
    certificate: Pem = dataclasses.field(default=Pem(), repr=False)


class Credentials:
    """The identity of a connection, kept fresh."""

    def __init__(self, config: ClusterConfig, *, clock: Clock, run_plugin: RunPlugin = exec_plugin.run) -> None:
        self._config = config
        self._clock = clock
        self._run_plugin = run_plugin
        self._lock = asyncio.Lock()
        self._identity: Identity | None = None
        self._plugin_result: PluginResult | None = None
        self._token = config.token
        self._token_stamp = -1
        self._context: ssl.SSLContext | None = None
        self._context_made_of: object = None
        self._check_at = float("-inf")
        pems = (config.ca, config.client_certificate, config.client_key)
        self._can_change = bool(config.token_file or config.exec_plugin or any(pem.path for pem in pems))

    def ready(self) -> Identity | None:
        """The identity, where it needs no look at a file or a plugin."""
        if self._can_change and self._clock.monotonic() >= self._check_at:
            return None
        if self._plugin_result is not None and self._is_over(self._plugin_result):
            return None
        return self._identity

    async def current(self) -> Identity:
        async with self._lock:
            return self.ready() or await self._refresh(force=False)

    async def renew(self, refused: Identity) -> Identity | None:
        """Another identity than the one that the server refused, or None where there is no other to be had."""
        async with self._lock:
            if self._identity is not None and self._identity is not refused:
                return self._identity
            if not self._can_change:
                return None
            fresh = await self._refresh(force=True)
            return None if fresh is refused else fresh

    async def _refresh(self, *, force: bool) -> Identity:
        await self._refresh_plugin(force=force)
        self._refresh_token()
        try:
            fresh = self._build()
        except CredentialError:
            if self._identity is None or force:
                raise
            fresh = self._identity  # files in the middle of being replaced: what we have is good until refused
        self._check_at = self._clock.monotonic() + TOKEN_FILE_INTERVAL
        self._identity = fresh
        return fresh

    async def _refresh_plugin(self, *, force: bool) -> None:
        plugin, known = self._config.exec_plugin, self._plugin_result
        if plugin is not None and (known is None or force or self._is_over(known)):
            self._plugin_result = await self._run_plugin(plugin, self._config)

    def _is_over(self, result: PluginResult) -> bool:
        return result.expires is not None and self._clock.now() >= result.expires

    def _refresh_token(self) -> None:
        file = self._config.token_file
        if not file:
            return
        try:
            stamp = Path(file).stat().st_mtime_ns
            if stamp == self._token_stamp:
                return
            token = Path(file).read_text().strip()
        except OSError as error:
            if self._token:
                return  # the file is being replaced: the token that we have is good until the server says no
            raise CredentialError(f"{self._config.origin}: token file {file}: {error.strerror}.") from error
        if token:
            self._token, self._token_stamp = token, stamp
        elif not self._token:
            raise CredentialError(f"{self._config.origin}: token file {file} is empty.")

    def _build(self) -> Identity:
        """The identity as it should be now; the same object as before when nothing changed."""
        config, result = self._config, self._plugin_result or PluginResult()
        certificate = result.certificate or config.client_certificate
        key = result.key or config.client_key
        if config.uses_tls:
            made_of = (certificate, key, tls.stamp(config.ca, certificate, key))
            if made_of != self._context_made_of:
                # A new context means new connections, so a new token alone must not make one.
                self._context = tls.context_for(config, certificate, key)
                self._context_made_of = made_of
        authorization = self._authorization(result.token or self._token)
        before = self._identity
        if before is not None and before.authorization == authorization and before.tls is self._context:
            return before
        return Identity(authorization, self._context, certificate)

    def _authorization(self, token: str) -> str:
        if token:
            if not token.isascii() or not token.isprintable() or " " in token:
                raise CredentialError(f"{self._config.origin}: the token holds blanks or control characters.")
            return f"Bearer {token}"
        if self._config.username:
            pair = f"{self._config.username}:{self._config.password}".encode()
            return f"Basic {base64.b64encode(pair).decode()}"
        return ""
