"""What is told to a person with rights in one namespace: what may be seen, and what may not be known."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import pytest

from kruise.cli.deciding import Asking, explain
from kruise.cli.flags import Where
from kruise.cli.following import follow
from kruise.cli.session import NotFinishedError, Session
from kruise.cli.work.why import _about_all
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import ForbiddenError
from kruise.machinery.client.requests import Request
from kruise.machinery.client.transport import Response, Transport
from kruise.machinery.codec import encode
from kruise.reasons.data import as_data
from kruise.reasons.words import answer_lines
from kruise.verbs.targets import Target
from kruise.workloads.cloneset.face import FACE as CLONE_SET
from tests.cli.test_following import Recorded, manifest
from tests.support.world import LocalWorld, run_local

WEB = Target(CLONE_SET, "web")
RIGHTS = frozenset({"clonesets", "pods", "controllerrevisions", "persistentvolumeclaims", "events"})
UNSEEN = "whether a manager is at work cannot be seen with your rights"


class Limited:
    """A transport of somebody who may only see some kinds."""

    def __init__(self, inner: Transport, rights: frozenset[str]) -> None:
        self._inner = inner
        self._rights = rights

    async def send(self, request: Request) -> Response:
        if request.resource is not None and request.resource.plural not in self._rights:
            message = f"{request.resource.group_resource} is forbidden"
            body = {"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403, "message": message}
            return Response(403, encode(body), {"content-type": "application/json"})
        return await self._inner.send(request)

    def stream(self, request: Request) -> contextlib.AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._inner.stream(request)

    async def close(self) -> None:
        await self._inner.close()


def limited(world: LocalWorld, rights: frozenset[str] = RIGHTS) -> Session:
    client = Client(Limited(world.client.transport, rights), clock=world.clock)
    return Session(client, namespace="default", clock=world.clock)


def test_nobody_is_told_that_it_goes_on_by_itself_who_cannot_see_the_manager() -> None:
    async def scenario(world: LocalWorld) -> None:
        await world.create(manifest())  # there is no manager
        session = limited(world)
        document = await session.get(WEB)
        document["status"] = {"observedGeneration": document["metadata"]["generation"]}
        answer = await explain(session, WEB, document, Asking())
        text = "\n".join(answer_lines(answer))
        assert f"→ {UNSEEN}" in text
        assert f"note: {UNSEEN}; ask who may: kubectl get pods -n kruise-system" in text
        assert "by itself" not in text
        assert "on its way" not in text
        assert as_data(answer)["remarks"][-1]["code"] == "manager-hidden"

    run_local(scenario, start=False)


def test_who_follows_a_rollout_is_not_told_so_either() -> None:
    async def scenario(world: LocalWorld) -> None:
        await world.create(manifest())
        session = limited(world)
        with pytest.raises(NotFinishedError, match=f"cloneset/web waits: .*; {UNSEEN}; see: kruise why cloneset/web"):
            await follow(session, WEB, await session.get(WEB), Recorded(), watch=False)

    run_local(scenario, start=False)


def test_all_is_what_may_be_listed(capsys: pytest.CaptureFixture[str]) -> None:
    async def scenario(world: LocalWorld) -> None:
        await world.create(manifest())
        act = await _about_all(limited(world), ("all",), Where(everything=True), Asking(), None)
        told = capsys.readouterr()
        assert "cloneset/web waits: " in told.out
        assert "1 of 1 workload in namespace default" in told.out
        assert told.err.startswith("note: not looked at, as you may not list them in namespace default: ")
        assert "deployments.apps" in told.err
        assert "clonesets" not in told.err
        assert act is not None

    run_local(scenario, start=False)


def test_who_may_list_nothing_is_refused() -> None:
    async def scenario(world: LocalWorld) -> None:
        with pytest.raises(ForbiddenError, match="is forbidden"):
            await _about_all(limited(world, frozenset()), ("all",), Where(everything=True), Asking(), None)

    run_local(scenario, start=False)
