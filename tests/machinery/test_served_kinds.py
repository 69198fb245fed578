"""Kinds that nobody watches, looked up when somebody needs them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kruise.api.meta import PartialObject
from kruise.machinery.client.client import Client
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.client.retry import NEVER
from kruise.machinery.client.transport import Response
from kruise.machinery.clock import VirtualClock, run_virtual
from kruise.machinery.controller import OutsideError
from kruise.machinery.served_kinds import ServedKinds
from tests.support.scripted_transport import ScriptedTransport, answer, failure


class _Server(ScriptedTransport):
    def __init__(self) -> None:
        super().__init__()
        self.freshness = "Current"
        self.kinds: tuple[str, ...] = ("Widget",)
        self.objects: dict[Verb, Response] = {}

    async def send(self, request: Request) -> Response:
        self.requests.append(request)
        if request.resource is not None:
            return self.objects[request.verb]
        resources: list[dict[str, Any]] = [
            {"resource": f"{kind.lower()}s", "responseKind": {"kind": kind}, "scope": "Namespaced", "verbs": ["get"]}
            for kind in (self.kinds if self.freshness == "Current" else ())
        ]
        version = {"version": "v1", "freshness": self.freshness, "resources": resources}
        groups = [{"metadata": {"name": "example.com"}, "versions": [version]}] if request.path == "/apis" else []
        return answer({"kind": "APIGroupDiscoveryList", "items": groups})


def test_a_kind_is_asked_for_once() -> None:
    async def story() -> None:
        server = _Server()
        kinds = ServedKinds(Client(server, retry=NEVER), VirtualClock(asyncio.get_running_loop()), PartialObject)
        found = await kinds.find("example.com", "Widget")
        assert found is not None
        assert (found.group, found.version, found.plural) == ("example.com", "v1", "widgets")
        asked = len(server.requests)
        assert await kinds.find("example.com", "Widget") is found
        assert await kinds.find("example.com", "Gadget") is None
        assert len(server.requests) == asked

    run_virtual(story())


def test_a_kind_that_comes_later_is_found_within_a_minute() -> None:
    async def story() -> None:
        server = _Server()
        kinds = ServedKinds(Client(server, retry=NEVER), VirtualClock(asyncio.get_running_loop()), PartialObject)
        assert await kinds.find("example.com", "Gadget") is None
        server.kinds = ("Gadget",)
        await asyncio.sleep(60)
        assert await kinds.find("example.com", "Gadget") is not None
        assert await kinds.find("example.com", "Widget") is not None
        asked = len(server.requests)
        kinds.forget("example.com", "Widget")
        assert await kinds.find("example.com", "Widget") is None
        assert len(server.requests) > asked  # it may have come back by another name

    run_virtual(story())


def test_what_cannot_be_seen_is_not_gone() -> None:
    async def story() -> None:
        server = _Server()
        server.freshness = "Stale"
        kinds = ServedKinds(Client(server, retry=NEVER), VirtualClock(asyncio.get_running_loop()), PartialObject)
        with pytest.raises(OutsideError, match=r"the server of example\.com does not answer"):
            await kinds.find("example.com", "Widget")
        assert await kinds.find("other.example.com", "Widget") is None
        with pytest.raises(OutsideError):  # whoever has looked for something else in between
            await kinds.find("example.com", "Widget")
        server.freshness = "Current"
        assert await kinds.find("example.com", "Widget") is not None

    run_virtual(story())


def test_an_object_is_read_by_whatever_right_there_is() -> None:
    async def story() -> None:
        server = _Server()
        kinds = ServedKinds(Client(server, retry=NEVER), VirtualClock(asyncio.get_running_loop()), PartialObject)
        widget = {"metadata": {"name": "one", "namespace": "default", "uid": "u"}}
        server.objects = {Verb.GET: answer(widget), Verb.LIST: answer({"items": [widget]})}
        for _ in range(2):
            found = await kinds.read("example.com", "Widget", "one", "default")
            assert found is not None
            assert found.metadata.uid == "u"
            server.objects[Verb.GET] = failure(403, "Forbidden")
        server.objects[Verb.LIST] = answer({"items": []})
        assert await kinds.read("example.com", "Widget", "one", "default") is None
        assert await kinds.read("example.com", "Gadget", "one", "default") is None

    run_virtual(story())


def test_an_object_is_gone_only_where_its_kind_is_there() -> None:
    async def story() -> None:
        server = _Server()
        kinds = ServedKinds(Client(server, retry=NEVER), VirtualClock(asyncio.get_running_loop()), PartialObject)
        gone = {"kind": "Status", "code": 404, "reason": "NotFound", "details": {"name": "one", "kind": "widgets"}}
        server.objects[Verb.GET] = answer(gone, 404)
        assert await kinds.read("example.com", "Widget", "one", "default") is None
        # The server has another version of it, and says 404 for all of this one.
        server.objects[Verb.GET] = failure(404, "NotFound")
        with pytest.raises(OutsideError, match="not served as it was"):
            await kinds.read("example.com", "Widget", "one", "default")
        server.kinds = ()
        assert await kinds.read("example.com", "Widget", "one", "default") is None, "now it is clear"

    run_virtual(story())
