"""What was let pass a moment ago counts at once, however late the watch is."""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import timedelta
from typing import Any

import pytest

from kruise.admission.answering import Answerer
from kruise.admission.coming import LONGEST
from kruise.admission.decisions import Allow, Change, Deny, HandlerView, Mutation, NeedsReads, Verdict
from kruise.admission.registry import MutatingHandler, ValidatingHandler
from kruise.admission.review import AdmissionRequest
from kruise.api.native.config import CONFIG_MAPS, ConfigMap
from kruise.api.resource import Resource
from kruise.machinery import codec
from kruise.machinery.clock import ManualClock
from kruise.machinery.plan import Action, Outcome, Target
from kruise.machinery.store import Store
from tests.admission.helpers import V1, config_map, patch_of, request_of, response_of

Json = dict[str, Any]
BASKET = Target(CONFIG_MAPS, "shop", "basket")


class Behind:
    """Stores whose watch tells nothing, and hands that read what the API server has."""

    def __init__(self) -> None:
        self.known: Store[ConfigMap] = Store(CONFIG_MAPS)
        self.known.replace([], 5)
        self.server: ConfigMap | None = None
        self.reads = 0

    def store(self, resource: Resource[Any]) -> Store[Any]:
        return self.known

    def written(self, resource: Resource[Any], obj: Any) -> None:
        self.known.written(obj)

    async def wait_synced(self, timeout: float | None, resources: Collection[Resource[Any]] | None) -> None: ...

    async def carry_out(self, action: Action) -> Outcome:
        raise AssertionError(action)

    async def read(self, target: Any) -> Any:
        assert target == BASKET
        self.reads += 1
        if self.server is not None:
            self.written(CONFIG_MAPS, self.server)
        return self.server

    def has(self, version: int, **metadata: str) -> None:
        self.server = codec.decode(json.dumps(stored(version, **metadata)).encode(), ConfigMap)


def stored(version: int, **metadata: str) -> Json:
    whole = config_map()
    return {**whole, "metadata": {**whole["metadata"], "resourceVersion": str(version), **metadata}}


class Site:
    """A server with a handler that lets config maps pass, and one that asks what is coming."""

    def __init__(self, verdict: Verdict | None = None) -> None:
        self.behind, self.clock = Behind(), ManualClock()
        self.answerer = Answerer(self.clock, stores=self.behind, hands=self.behind)
        said = verdict or Allow()
        self.lets_pass = ValidatingHandler("/validate", lambda request, view: said, awaited=CONFIG_MAPS)
        self.asks = MutatingHandler("/mutate", self._decide, (CONFIG_MAPS,))

    def _decide(self, request: AdmissionRequest, view: HandlerView) -> Mutation:
        late = tuple(one.target for one in view.coming(CONFIG_MAPS) if not view.was_read(one.target))
        if late:
            return NeedsReads(targets=late, may_fail=True)
        return Change(object={**request.body(), "seen": len(view.store(CONFIG_MAPS))})

    async def passes(self, body: Json, **more: Any) -> None:
        await self.answerer.answer(self.lets_pass, V1, request_of(body, **more), 10.0)

    async def seen(self) -> bool:
        """Whether the object counts for somebody who comes now."""
        answer = response_of(await self.answerer.answer(self.asks, V1, request_of(config_map()), 10.0))
        assert answer["allowed"]
        return patch_of(answer) == [{"op": "add", "path": "/seen", "value": 1}]


async def test_it_is_read_until_the_store_shows_it() -> None:
    """SCS-66."""
    site = Site()
    assert not await site.seen()
    assert site.behind.reads == 0, "nothing is coming"
    await site.passes(config_map())
    assert not await site.seen(), "it is not stored yet"
    site.behind.has(9)
    assert await site.seen()
    assert site.behind.reads == 2
    assert await site.seen()
    assert site.behind.reads == 2, "the store has it now"


async def test_a_change_is_read_too() -> None:
    site = Site()
    site.behind.has(6)
    site.behind.written(CONFIG_MAPS, site.behind.server)
    await site.passes(config_map(spec={"a": 1}), old=stored(6), operation="UPDATE")
    assert await site.seen()
    assert site.behind.reads == 1
    site.behind.has(9)
    assert await site.seen()
    assert await site.seen()
    assert (site.behind.reads, site.behind.known.list()[0].metadata.resource_version) == (2, "9")


async def test_one_that_is_made_again_is_another_one() -> None:
    """The store still shows the one of that name that was deleted."""
    site = Site()
    site.behind.has(6, uid="first")
    site.behind.written(CONFIG_MAPS, site.behind.server)
    body = config_map()
    await site.passes({**body, "metadata": {**body["metadata"], "uid": "second"}})
    site.behind.has(9, uid="second")
    assert await site.seen()
    assert (site.behind.reads, site.behind.known.list()[0].metadata.uid) == (1, "second")
    assert await site.seen()
    assert site.behind.reads == 1, "the store has it now"


async def test_what_is_coming_is_told() -> None:
    """So whoever it does not concern has nothing read."""
    site = Site()
    await site.passes(config_map(data={"a": "b"}))
    told = list[Any]()

    def tell(request: AdmissionRequest, view: HandlerView) -> Mutation:
        told.extend(one.body["data"] for one in view.coming(CONFIG_MAPS))
        return Allow()

    await site.answerer.answer(MutatingHandler("/tell", tell, (CONFIG_MAPS,)), V1, request_of(config_map()), 10.0)
    assert (told, site.behind.reads) == ([{"a": "b"}], 0)


@pytest.mark.parametrize(
    ("more", "verdict"),
    [
        ({"old": stored(6), "operation": "UPDATE"}, None),
        ({"dry_run": True}, None),
        ({"subresource": "status"}, None),
        ({}, Deny(message="no")),
    ],
)
async def test_what_will_not_come_is_not_waited_for(more: Json, verdict: Verdict | None) -> None:
    """An update that changes nothing gets no new version."""
    site = Site(verdict)
    await site.passes(config_map(), **more)
    await site.seen()
    assert site.behind.reads == 0


async def test_nobody_waits_for_ever() -> None:
    site = Site()
    await site.passes(config_map())
    site.clock.advance(LONGEST / timedelta(seconds=1))
    await site.seen()
    assert site.behind.reads == 0
