"""The ways to a manager's journal, and what is said where none leads there."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web

from kruise.admission.certificates import encode_bundle, issue
from kruise.admission.tls import ServingCertificate
from kruise.api.meta import Key
from kruise.cli.journal_access import (
    ENVIRONMENT,
    JournalUnavailable,
    NoControllerError,
    NotKeptError,
    entries,
    latest_decision,
    latest_dump,
)
from kruise.cli.session import Session
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import TransportError
from kruise.machinery.client.retry import NEVER
from kruise.machinery.journal import AUDIENCE, NO_CONTROLLER, NOT_ALLOWED, NOT_KEPT, NOT_KNOWN, TOKEN_HEADER
from kruise.manager.endpoints import Endpoints
from kruise.verbs.errors import UsageError
from tests.support.scripted_transport import ScriptedTransport, Step, answer, failure
from tests.support.world import LocalWorld, run_local

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
KEY = Key("default", "web")
CONTROLLER = "cloneset-controller"
TOKEN = answer({"status": {"token": "for-the-journal", "expirationTimestamp": "2030-01-01T00:00:00Z"}}, 201)
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
    asking, transport = session(answer(lease("kruise-manager-7c9_0123456789abcdef")), TOKEN, answer([{"digest": "d"}]))
    found = await entries(asking, controller=CONTROLLER, key=KEY, limit=7)
    assert (found.items, found.source) == (({"digest": "d"},), "the manager in pod kruise-system/kruise-manager-7c9")
    _, asked, sent = transport.requests
    assert asked.url == "/api/v1/namespaces/kruise-system/serviceaccounts/kruise-journal/token"
    assert json.loads(asked.body or b"")["spec"] == {"audiences": [AUDIENCE], "expirationSeconds": 600}
    assert sent.url == (
        "/api/v1/namespaces/kruise-system/pods/https:kruise-manager-7c9:8443/proxy/journal"
        "?limit=7&controller=cloneset-controller&key=default%2Fweb"
    )
    assert sent.headers == ((TOKEN_HEADER, "for-the-journal"),)
    assert "for-the-journal" not in repr(sent)


async def test_a_dump_of_a_manager_in_another_namespace() -> None:
    told = {"time": "2026-01-01T00:00:00Z", "plan": {}}
    asking, transport = session(NO_LEASE, leases("manager-1_00", "pykruise"), TOKEN, answer(told))
    dump = await latest_dump(asking, CONTROLLER, KEY)
    assert (dump.time, json.loads(dump.body)) == ("2026-01-01T00:00:00Z", told)
    assert dump.source == "the manager in pod pykruise/manager-1"
    path = "/api/v1/namespaces/pykruise/pods/https:manager-1:8443/proxy/journal/cloneset-controller/default/web"
    assert transport.requests[-1].url == path


async def test_a_decision_is_asked_for_in_the_short_form() -> None:
    plan = {"causes": [{"code": "x"}], "held": [{"target": {"plural": "pods", "name": "a"}, "causes": [0]}]}
    asking, transport = session(answer(lease("m_0")), TOKEN, answer({"time": "2026-01-01T00:00:00Z", "plan": plan}))
    found, source = await latest_decision(asking, CONTROLLER, KEY)
    assert source == "the manager in pod kruise-system/m"
    assert [(about.name, causes[0].code) for about, causes in found.decision.held] == [("a", "x")]
    assert transport.requests[-1].url.endswith("/journal/cloneset-controller/default/web?causes=once")
    asking, _ = session(answer(lease("m_0")), TOKEN, answer({"plan": 7}))
    with pytest.raises(JournalUnavailable, match="is it a manager of this version"):
        await latest_decision(asking, CONTROLLER, KEY)


NOWHERE = failure(404, "NotFound", 'services "kruise-manager" not found')
REFUSED = failure(403, "Forbidden", 'User "eve" cannot get resource "pods/proxy"')


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        pytest.param(
            (failure(403, "Forbidden", "no leases for eve"),),
            "takes the role kruise-journal-reader in namespace kruise-system",
            id="no rights to leases",
        ),
        pytest.param((answer(lease("m_0")), REFUSED), "--role=kruise-journal-reader", id="no rights to a token"),
        pytest.param((answer(lease("m_0")), TOKEN, REFUSED), "--role=kruise-journal-reader", id="none to the proxy"),
        pytest.param(
            (answer(lease("m_0")), failure(404, "NotFound", "no account")), "kruise install brings it", id="no account"
        ),
        pytest.param((answer(lease("m_0")), answer({})), "gives no token", id="no token"),
        pytest.param(
            (answer(lease("m_0")), TOKEN, failure(401, NOT_KNOWN, "who?")), "does not take a token", id="unknown token"
        ),
        pytest.param(
            (answer(lease("m_0")), TOKEN, failure(403, NOT_ALLOWED, "no")),
            "takes that of its own namespace",
            id="account of no use",
        ),
        pytest.param((answer(lease("")),), "no manager leads at the moment", id="nobody leads"),
        pytest.param(
            (answer(lease("laptop_0")), TOKEN, failure(404, "NotFound", "x")), "runs outside the cluster", id="outside"
        ),
        pytest.param(
            (
                answer(lease("m_0")),
                TOKEN,
                failure(503, "ServiceUnavailable", "dial tcp 10.0.0.7:8443: connection refused"),
            ),
            "It must listen on port 8443.* its log says why",
            id="another port",
        ),
        pytest.param((answer(lease("m_0")), TOKEN, TransportError("torn", sent=True)), "cannot be reached", id="torn"),
        pytest.param((answer(lease("m_0")), TOKEN, answer(b"<html>")), "is it a manager", id="somebody else"),
        pytest.param((NO_LEASE, NO_LEASES, NOWHERE), "no manager has ever led", id="no manager"),
        pytest.param((NO_LEASE, REFUSED, REFUSED), "takes the role kruise-journal-reader", id="no rights to services"),
        pytest.param((TransportError("refused", sent=False),), "the cluster does not answer", id="no cluster"),
        pytest.param((NO_LEASE, NO_LEASES, TransportError("x", sent=True)), "does not answer", id="gone meanwhile"),
    ],
)
async def test_what_is_in_the_way_is_said_with_a_remedy(steps: tuple[Step, ...], said: str) -> None:
    asking, _ = session(*steps)
    with pytest.raises(JournalUnavailable, match=said):
        await entries(asking)


async def test_a_manager_that_keeps_nothing_about_the_object() -> None:
    asking, _ = session(answer(lease("m_0")), TOKEN, failure(404, NOT_KEPT, "no snapshot of default/web is kept"))
    with pytest.raises(NotKeptError, match=r"no snapshot of default/web is kept.*last 256 passes.*32 objects"):
        await latest_dump(asking, CONTROLLER, KEY)


async def test_a_manager_that_does_not_run_the_controller() -> None:
    asking, _ = session(answer(lease("m_0")), TOKEN, failure(404, NO_CONTROLLER, "no controller is called 'a'"))
    with pytest.raises(NoControllerError, match=r"no controller is called 'a'$"):
        await latest_dump(asking, CONTROLLER, KEY)


async def test_one_token_serves_a_command_until_it_ends() -> None:
    fresh = answer({"status": {"token": "another"}}, 201)
    asking, transport = session(
        *(answer(lease("m_0")), TOKEN, answer([])),
        *(answer(lease("m_0")), answer([])),
        *(answer(lease("m_0")), failure(401, NOT_KNOWN, "who?"), answer(lease("m_0")), fresh, answer([{"a": 1}])),
    )
    for _ in range(3):
        found = await entries(asking)
    assert found.items == ({"a": 1},)
    shown = [request.headers[0][1] for request in transport.requests if request.headers]
    assert shown == ["for-the-journal", "for-the-journal", "for-the-journal", "another"]


@contextlib.asynccontextmanager
async def manager_over_https(answers: Handler) -> AsyncIterator[tuple[str, str]]:
    """Its address, and the CA as webhook configurations have it."""
    certificate, material = ServingCertificate(), issue("kruise-webhook-service.kruise-system.svc", datetime.now(UTC))
    certificate.use(material)
    app = web.Application()
    app.router.add_get("/{path:.*}", answers)
    endpoints = Endpoints()
    port = await endpoints.serve(app, "127.0.0.1:0", certificate.context)
    yield f"https://127.0.0.1:{port}", encode_bundle(material.bundle)
    await endpoints.close()


def configuration(bundle: str) -> Step:
    return answer(
        {"metadata": {"name": "x"}, "webhooks": [{"clientConfig": {}}, {"clientConfig": {"caBundle": bundle}}]}
    )


async def test_an_address_is_asked_with_a_token_and_trusted_by_the_installation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def manager(request: web.Request) -> web.StreamResponse:
        assert request.headers["Authorization"] == "Bearer for-the-journal"
        if request.path == "/journal":
            return web.json_response([dict(request.query)])
        return web.json_response({"kind": "Status", "code": 404, "reason": NOT_KEPT, "message": "gone"}, status=404)

    async with manager_over_https(manager) as (url, bundle):
        ways = (answer(lease("m_0", "ops")), TOKEN, configuration(bundle))
        asking, transport = session(*ways)
        found = await entries(asking, key=KEY, manager_url=f"{url}/")
        assert found.items == ({"limit": "50", "key": "default/web"},)
        assert found.source == f"the manager at {url}/"
        assert transport.requests[1].url == "/api/v1/namespaces/ops/serviceaccounts/kruise-journal/token"
        monkeypatch.setenv(ENVIRONMENT, url)
        asking, _ = session(failure(403, "Forbidden", "no leases"), TOKEN, configuration(bundle))
        assert (await entries(asking, limit=1, namespace="shop")).items == ({"limit": "1", "namespace": "shop"},)
        asking, _ = session(*ways)
        with pytest.raises(NotKeptError, match="gone"):
            await latest_dump(asking, CONTROLLER, KEY)
    asking, _ = session(*ways)
    with pytest.raises(JournalUnavailable, match="does not answer"):
        await entries(asking)


async def test_nobody_else_gets_the_token() -> None:
    """Neither over plain HTTP nor from somebody whom the installation does not vouch for."""

    async def nobody(request: web.Request) -> web.StreamResponse:
        raise AssertionError("a request came through")

    asking, transport = session(failure(500))
    for url in ("http://127.0.0.1:8080", "localhost:8443"):
        with pytest.raises(UsageError, match="write it as https://HOST:PORT"):
            await entries(asking, manager_url=url)
    assert transport.requests == []
    async with manager_over_https(nobody) as (url, _), manager_over_https(nobody) as (_, of_another):
        for trusted in (configuration(of_another), failure(403, "Forbidden", "no"), configuration("???")):
            asking, _ = session(answer(lease("m_0")), TOKEN, trusted)
            with pytest.raises(JournalUnavailable, match="none that this cluster vouches for"):
                await entries(asking, manager_url=url)


async def test_an_address_of_something_else() -> None:
    async def nothing(request: web.Request) -> web.StreamResponse:
        return web.Response(status=404, text="nothing here")

    async with manager_over_https(nothing) as (url, bundle):
        asking, _ = session(answer(lease("m_0")), TOKEN, configuration(bundle))
        with pytest.raises(JournalUnavailable, match="has no journal"):
            await entries(asking, manager_url=url)


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
