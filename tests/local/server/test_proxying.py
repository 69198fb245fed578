"""`services/NAME/proxy/PATH`: what is mounted in process answers, over HTTPS and without a socket."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from kruise.api.native.config import SERVICES
from kruise.local.apicore.proxying import Address, MountedServices, address_of
from kruise.local.cluster import ClusterOptions, LocalCluster
from kruise.local.kinds.bootstrap import create_system_objects
from kruise.local.server import LocalServer, kubeconfig, make_identity
from kruise.machinery.client import kubeconfig as client_config
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import ApiError, NotFoundError, UnavailableError
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.client.retry import NEVER
from kruise.machinery.client.transport import Response, Transport
from kruise.machinery.clock import RealClock

ADDRESS = Address("shop", "till", "8080")


async def site(path: str, query: Mapping[str, str]) -> Response:
    if path == "/teapot":
        return Response(418, b"short and stout", {"content-type": "text/plain"})
    return Response(200, f"{path} {dict(query)}".encode(), {"content-type": "text/plain"})


async def ask(transport: Transport, name: str, path: str = "", namespace: str = "shop") -> str:
    client = Client(transport, retry=NEVER)
    request = Request(Verb.GET, SERVICES, namespace, name, f"proxy{path}", (("a", "1"), ("b", "x/y")))
    return (await client.send(request)).body.decode()


async def check(cluster: LocalCluster, transport: Transport) -> None:
    cluster.core.services.mount(ADDRESS, site)
    for name in ("till:8080", "http:till:8080"):
        assert await ask(transport, name, "/journal/a/b") == "/journal/a/b {'b': 'x/y', 'a': '1'}"
    assert await ask(transport, "till:8080") == "/ {'b': 'x/y', 'a': '1'}"
    with pytest.raises(ApiError, match="short and stout") as teapot:
        await ask(transport, "till:8080", "/teapot")
    assert teapot.value.code == 418
    with pytest.raises(NotFoundError, match='services "till" not found'):
        await ask(transport, "till:8081")
    with pytest.raises(NotFoundError):
        await ask(transport, "till:8080", namespace="default")
    cluster.core.services.unmount(ADDRESS, site)
    # The Service of the cluster itself is there, but nothing answers behind it.
    with pytest.raises(UnavailableError, match='no endpoints available for service "kubernetes"'):
        await ask(transport, "https:kubernetes:443", namespace="default")
    request = Request(Verb.CREATE, SERVICES, "shop", "till:8080", "proxy", body=b"{}")
    with pytest.raises(ApiError, match="does not allow this method"):
        await Client(transport, retry=NEVER).send(request)


async def test_in_process_and_over_https(tmp_path: Path) -> None:
    cluster = LocalCluster(ClusterOptions(nodes=0, seed=1), clock=RealClock())
    await create_system_objects(cluster.core, port=6443)
    await check(cluster, cluster.transport)
    identity = make_identity(cluster.clock.now())
    server = LocalServer(cluster.core, certificates=identity)
    await server.start()
    path = tmp_path / "kubeconfig"
    path.write_text(kubeconfig(identity, server.url))
    transport = HttpTransport(client_config.load(path))
    try:
        await check(cluster, transport)
    finally:
        await transport.close()
        await server.stop()


def test_addresses() -> None:
    assert address_of("n", "a") == Address("n", "a", "")
    assert address_of("n", "a:80") == address_of("n", "http:a:80") == Address("n", "a", "80")


async def _other(path: str, query: Mapping[str, str]) -> Response:
    return Response(200, b"")


def test_only_the_one_that_is_mounted_can_be_unmounted() -> None:
    """A manager that ends late must not take away what its successor has mounted."""
    services = MountedServices()
    services.mount(ADDRESS, site)
    services.unmount(ADDRESS, _other)
    assert ADDRESS in services
    services.unmount(ADDRESS, site)
    assert ADDRESS not in services
