"""The addresses and ports that services get."""

from __future__ import annotations

import ipaddress
from typing import Any

from kruise.local.inprocess import InProcessTransport
from kruise.local.kinds.services import NETWORK
from kruise.machinery.client.requests import PatchType, Verb
from kruise.machinery.clock import ManualClock
from tests.local.kinds.cases import service
from tests.local.kinds.playing import local_transport, send


async def _create(ours: InProcessTransport, name: str, body: Any) -> tuple[int, Any]:
    return await send(ours, Verb.CREATE, "services", "n", body={**body, "metadata": {"name": name}})


async def test_addresses_differ_and_come_from_the_seed() -> None:
    runs = []
    for _ in range(2):
        ours = await local_transport(ManualClock(), "n")
        made = [(await _create(ours, f"s{number}", service()))[1]["spec"]["clusterIP"] for number in range(20)]
        assert len(set(made)) == 20
        assert all(ipaddress.ip_address(address) in NETWORK for address in made)
        runs.append(made)
    assert runs[0] == runs[1]


async def test_what_is_taken_is_refused() -> None:
    ours = await local_transport(ManualClock(), "n")
    wanted = service({"port": 80, "nodePort": 30080}, type="NodePort", clusterIP="10.96.1.1")
    assert (await _create(ours, "a", wanted))[0] == 201
    code, refused = await _create(ours, "b", service(clusterIP="10.96.1.1"))
    assert code == 422
    assert "failed to allocate IP 10.96.1.1: provided IP is already allocated" in refused["message"]
    code, refused = await _create(ours, "b", service({"port": 80, "nodePort": 30080}, type="NodePort"))
    assert code == 422
    assert refused["details"]["causes"][0]["field"] == "spec.ports[0].nodePort"
    udp = service({"port": 80, "nodePort": 30080, "protocol": "UDP"}, type="NodePort")
    assert (await _create(ours, "b", udp))[0] == 201


async def test_an_update_that_says_nothing_keeps_address_and_ports() -> None:
    """As `kubectl replace` with the first manifest does."""
    ours = await local_transport(ManualClock(), "n")
    body = service(type="NodePort")
    _, made = await _create(ours, "a", body)
    _, kept = await send(ours, Verb.UPDATE, "services", "n", "a", {**body, "metadata": {"name": "a"}})
    assert kept["spec"] == made["spec"]


async def test_a_port_that_is_added_gets_a_node_port() -> None:
    ours = await local_transport(ManualClock(), "n")
    _, made = await _create(ours, "a", service({"port": 80, "name": "x"}, type="NodePort"))
    patch = {"spec": {"ports": [{"port": 81, "name": "y"}]}}
    code, changed = await send(ours, Verb.PATCH, "services", "n", "a", patch, content_type=PatchType.STRATEGIC)
    assert code == 200
    ports = {port["port"]: port["nodePort"] for port in changed["spec"]["ports"]}
    assert ports[80] == made["spec"]["ports"][0]["nodePort"]
    assert ports[81] not in (0, ports[80])
