"""Services whose pods are functions of this process: what `services/NAME/proxy/PATH` leads to.

A real API server opens a connection to a pod of the Service. Here no container runs for real, so only what was mounted
answers; every other Service has no endpoints.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Mapping

from kruise.local.apicore import errors
from kruise.machinery.client.requests import Query
from kruise.machinery.client.transport import Response

Site = Callable[[str, Mapping[str, str]], Awaitable[Response]]
"""From a path behind `proxy`, with a slash in front, and its query to an answer."""


@dataclasses.dataclass(frozen=True, slots=True)
class Address:
    namespace: str
    service: str
    port: str


class MountedServices:
    def __init__(self) -> None:
        self._sites: dict[Address, Site] = {}

    def mount(self, address: Address, site: Site) -> None:
        """Whoever comes last answers."""
        self._sites[address] = site

    def unmount(self, address: Address, site: Site) -> None:
        if self._sites.get(address) == site:
            del self._sites[address]

    async def answer(self, address: Address, path: str, query: Query) -> Response:
        """Raises `StatusError` where nobody answers."""
        site = self._sites.get(address)
        if site is None:
            text = f'no endpoints available for service "{address.service}"'
            raise errors.failure(503, "ServiceUnavailable", text)
        return await site(path, dict(reversed(query)))

    def __contains__(self, address: Address) -> bool:
        return address in self._sites


def address_of(namespace: str, name: str) -> Address:
    """`name` is as paths have it: `NAME`, `NAME:PORT` or `SCHEME:NAME:PORT`."""
    parts = name.split(":")
    if len(parts) == 3:
        parts = parts[1:]
    return Address(namespace, parts[0], ":".join(parts[1:]))
