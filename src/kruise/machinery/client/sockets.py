"""The sockets of a transport: made in one place, so that all of them can be closed at its end.

TLS ends a connection with words in both directions, and aiohttp does not wait for them after a watch was left or a
request was given up: its session is closed while the connection is not.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import weakref
from typing import Any

Address = tuple[int, int, int, str, tuple[Any, ...]]
"""As `socket.getaddrinfo` gives it."""

# Closing takes a few turns of the loop: it has to see that the socket ended, then tell the protocols above.
_TURNS = 50


class Sockets:
    """Makes sockets, and knows those that are open."""

    def __init__(self) -> None:
        self._made: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def make(self, address: Address) -> socket.socket:
        """A socket that finds out within a minute that the other side is gone: a quiet watch would wait for ever."""
        family, kind, protocol, _, _ = address
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
            if hasattr(socket, option):
                made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
        self._made.add(made)
        return made

    def open(self) -> list[socket.socket]:
        return [made for made in self._made if made.fileno() != -1]

    async def close(self) -> None:
        """End the connections that are still open, and let the loop see it."""
        for made in self.open():
            # One that never got a connection has none to end.
            with contextlib.suppress(OSError):
                made.shutdown(socket.SHUT_RDWR)
        for _ in range(_TURNS):
            if not self.open():
                return
            await asyncio.sleep(0)
