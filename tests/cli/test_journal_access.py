"""The ways to a manager's journal, and what is said where none leads there."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aiohttp import web

from kruise.api.meta import Key
from kruise.cli.journal_access import (
    ENVIRONMENT,
    JournalUnavailable,
    NotKeptError,
    entries,
    latest_decision,
    latest_dump,
)
from kruise.cli.session import Session
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import TransportError
from kruise.machinery.client.retry import NEVER
from kruise.machinery.journal import NOT_KEPT
from kruise.verbs.errors import UsageError
from tests.support.scripted_transport import ScriptedTransport, Step, answer, failure
from tests.support.stub_api import stub_api
from tests.support.world import LocalWorld, run_local

KEY = Key("default", "web")
CONTROLLER = "cloneset-controller"
NO_LEASE = failure(404, "NotFound", 'leases.coordination.k8s.io "kruise-manager" not found')
NO_LEASES = answer({"kind": "LeaseList", "apiVersion": "coordination.k8s.io/v1", "metadata": {}, "items": []})


def lease(holder: str, namespace: str = "kruise-system") -> dict[str, Any]:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "kruise-manager", "namespace": namespace},
        "spec": {"holderIdentity": holder},
    }


def leases(holder: str, namespace: str) -> Step:
    head = {"kind": "LeaseList", "apiVersion": "coordination.k8s.io/v1", "metadata": {}}
    return answer({**head, "items": [lease(holder, namespace)]})


def session(*steps: Step) -> tuple[Session, ScriptedTransport]:
    transport = ScriptedTransport(*steps)
    return Session(Client(transport, retry=NEVER), namespace="default"), transport


async def test_the_pod_of_the_leader_is_asked_through_the_api_server() -> None:
    asking, transport = session(answer(lease("kruise-manager-7c9_0123456789abcdef")), answer([{"digest": "d"}]))
    found = await entries(asking, controller=CONTROLLER, key=KEY, limit=7)
    assert (found.items, found.source) == (({"digest": "d"},), "the manager in pod kruise-system/kruise-manager-7c9")
    assert transport.requests[1].url == (
        "/api/v1/namespaces/kruise-system/pods/http:kruise-manager-7c9:8080/proxy/journal"
        "?limit=7&controller=cloneset-controller&key=default%2Fweb"
    )


async def test_a_dump_of_a_manager_in_another_namespace() -> None:
    told = {"time": "2026-01-01T00:00:00Z", "plan": {}}
    asking, transport = session(NO_LEASE, leases("manager-1_00", "pykruise"), answer(told))
    dump = await latest_dump(asking, CONTROLLER, KEY)
    assert (dump.time, json.loads(dump.body)) == ("2026-01-01T00:00:00Z", told)
    assert dump.source == "the manager in pod pykruise/manager-1"
    path = "/api/v1/namespaces/pykruise/pods/http:manager-1:8080/proxy/journal/cloneset-controller/default/web"
    assert transport.requests[-1].url == path


async def test_a_decision_is_asked_for_in_the_short_form() -> None:
    plan = {"causes": [{"code": "x"}], "held": [{"target": {"plural": "pods", "name": "a"}, "causes": [0]}]}
    asking, transport = session(answer(lease("m_0")), answer({"time": "2026-01-01T00:00:00Z", "plan": plan}))
    found, source = await latest_decision(asking, CONTROLLER, KEY)
    assert source == "the manager in pod kruise-system/m"
    assert [(about.name, causes[0].code) for about, causes in found.decision.held] == [("a", "x")]
    assert transport.requests[-1].url.endswith("/journal/cloneset-controller/default/web?causes=once")
    asking, _ = session(answer(lease("m_0")), answer({"plan": 7}))
    with pytest.raises(JournalUnavailable, match="is it a manager of this version"):
        await latest_decision(asking, CONTROLLER, KEY)


NOWHERE = failure(404, "NotFound", 'services "kruise-manager" not found')
REFUSED = failure(403, "Forbidden", 'User "eve" cannot get resource "pods/proxy"')


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        pytest.param(
            (failure(403, "Forbidden", "no leases for eve"),),
            "the right to get leases and pods/proxy",
            id="no rights to leases",
        ),
        pytest.param((answer(lease("m_0")), REFUSED), "create role kruise-journal", id="no rights to the proxy"),
        pytest.param((answer(lease("")),), "no manager leads at the moment", id="nobody leads"),
        pytest.param(
            (answer(lease("laptop_0")), failure(404, "NotFound", "x")), "runs outside the cluster", id="outside"
        ),
        pytest.param(
            (answer(lease("m_0")), failure(503, "ServiceUnavailable", "dial tcp 10.0.0.7:8080: connection refused")),
            "It must listen on port 8080",
            id="another port",
        ),
        pytest.param((answer(lease("m_0")), TransportError("torn", sent=True)), "cannot be reached", id="torn"),
        pytest.param((answer(lease("m_0")), answer(b"<html>")), "is it a manager", id="somebody else"),
        pytest.param((NO_LEASE, NO_LEASES, NOWHERE), "no manager has ever led", id="no manager"),
        pytest.param((NO_LEASE, REFUSED, REFUSED), "the right to get leases", id="no rights to services"),
        pytest.param((TransportError("refused", sent=False),), "the cluster does not answer", id="no cluster"),
        pytest.param((NO_LEASE, NO_LEASES, TransportError("x", sent=True)), "does not answer", id="gone meanwhile"),
    ],
)
async def test_what_is_in_the_way_is_said_with_a_remedy(steps: tuple[Step, ...], said: str) -> None:
    asking, _ = session(*steps)
    with pytest.raises(JournalUnavailable, match=said):
        await entries(asking)


async def test_a_manager_that_keeps_nothing_about_the_object() -> None:
    asking, _ = session(answer(lease("m_0")), failure(404, NOT_KEPT, "no snapshot of default/web is kept"))
    with pytest.raises(NotKeptError, match=r"no snapshot of default/web is kept.*last 256 passes.*32 objects"):
        await latest_dump(asking, CONTROLLER, KEY)


async def test_an_address_is_asked_before_anything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    async def manager(request: web.Request) -> web.StreamResponse:
        if request.path == "/journal":
            return web.json_response([dict(request.query)])
        return web.json_response({"kind": "Status", "code": 404, "reason": NOT_KEPT, "message": "gone"}, status=404)

    asking, transport = session(failure(500))
    async with stub_api(manager) as api:
        found = await entries(asking, key=KEY, manager_url=f"{api.url}/")
        assert found.items == ({"limit": "50", "key": "default/web"},)
        assert found.source == f"the manager at {api.url}/"
        monkeypatch.setenv(ENVIRONMENT, api.url)
        assert (await entries(asking, limit=1)).items == ({"limit": "1"},)
        with pytest.raises(NotKeptError, match="gone"):
            await latest_dump(asking, CONTROLLER, KEY)
    with pytest.raises(JournalUnavailable, match="does not answer"):
        await entries(asking)
    with pytest.raises(UsageError, match="write it as http://HOST:PORT"):
        await entries(asking, manager_url="localhost:8080")
    assert transport.requests == []


async def test_an_address_of_something_else() -> None:
    async def nothing(request: web.Request) -> web.StreamResponse:
        return web.Response(status=404, text="nothing here")

    asking, _ = session(failure(500))
    async with stub_api(nothing) as api:
        with pytest.raises(JournalUnavailable, match="has no journal"):
            await entries(asking, manager_url=api.url)


def test_the_manager_of_a_local_cluster_without_sockets() -> None:
    """Previews and tests read the journal of an embedded manager the same way."""

    async def scene(world: LocalWorld) -> None:
        labels = {"app": "web"}
        containers = [{"name": "main", "image": "nginx:1"}]
        await world.create(
            {
                "apiVersion": "apps.kruise.io/v1beta1",
                "kind": "CloneSet",
                "metadata": {"name": "web"},
                "spec": {
                    "replicas": 1,
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
                },
            }
        )
        await world.sleep(10)
        asking = Session(world.client, namespace="default", clock=world.clock)
        found = await entries(asking, controller=CONTROLLER, key=KEY)
        assert found.source == "the manager of the local cluster"
        assert found.items[-1]["plan"]["counts"]["create pods"] == 1
        dump = await latest_dump(asking, CONTROLLER, KEY)
        assert json.loads(dump.body)["digest"] == found.items[0]["digest"]
        await world.stop_manager()
        with pytest.raises(JournalUnavailable, match="Is PyKruise installed and running"):
            await entries(asking)

    run_local(scene)
