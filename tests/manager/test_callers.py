"""Reviews of the API server: what is asked, how long answers are remembered, and how many."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kruise.api.native.pod import PODS
from kruise.machinery.client.client import Client
from kruise.machinery.client.retry import NEVER
from kruise.machinery.clock import VirtualClock, run_virtual
from kruise.machinery.journal import AUDIENCE
from kruise.manager import callers
from kruise.manager.callers import REMEMBERED_SECONDS, CrowdError, Reviewer
from tests.support.reviews import Reviews


def made(api: Reviews) -> Reviewer:
    return Reviewer(Client(api, retry=NEVER), clock=VirtualClock(asyncio.get_running_loop()), namespace="ops")


def test_answers_are_remembered_for_a_short_while() -> None:
    async def scene() -> None:
        api = Reviews({"journal-t": "eve"}, {"eve": {("get", "pods", "show")}})
        reviewer = made(api)
        for _ in range(3):
            rights = await reviewer.rights_of("journal-t")
            assert rights is not None
            assert rights.name == "eve"
            assert await rights.may("get", PODS, "show")
            assert not await rights.may("get", PODS, "bar")
        assert [body["kind"] for body in api.asked] == ["TokenReview", "SubjectAccessReview", "SubjectAccessReview"]
        assert api.asked[0]["spec"] == {"token": "journal-t", "audiences": [AUDIENCE]}
        # Rights that are taken away, and tokens that end, count soon.
        api.rights.clear()
        api.tokens.clear()
        await asyncio.sleep(REMEMBERED_SECONDS)
        assert not await rights.may("get", PODS, "show")
        assert await reviewer.rights_of("journal-t") is None

    run_virtual(scene())


def test_a_token_for_the_api_server_is_not_taken() -> None:
    """And never reviewed as one: the manager is to be of no use to who collects them."""

    async def scene() -> None:
        api = Reviews({"own": "eve"}, {})
        assert await made(api).rights_of("own") is None
        assert [body["spec"] for body in api.asked] == [{"token": "own", "audiences": [AUDIENCE]}]

    run_virtual(scene())


def test_a_server_that_does_not_look_at_audiences_vouches_for_nobody() -> None:
    class Unaware(Reviews):
        def _token(self, spec: dict[str, Any]) -> dict[str, Any]:
            return {**super()._token(spec), "audiences": []}

    async def scene() -> None:
        assert await made(Unaware({"journal-t": "eve"}, {})).rights_of("journal-t") is None

    run_virtual(scene())


def test_one_account_reads_everything_and_has_no_rights_of_its_own() -> None:
    async def scene() -> None:
        account = "system:serviceaccount:{}:kruise-journal"
        api = Reviews({"journal-t": account.format("ops"), "journal-other": account.format("team")}, {})
        reviewer = made(api)
        rights = await reviewer.rights_of("journal-t")
        assert rights is not None
        assert await rights.may("get", PODS, "")
        assert {body["kind"] for body in api.asked} == {"TokenReview"}
        other = await reviewer.rights_of("journal-other")
        assert other is not None
        assert not await other.may("get", PODS, "")

    run_virtual(scene())


def test_what_cannot_be_a_token_costs_no_question() -> None:
    async def scene() -> None:
        api = Reviews({}, {})
        reviewer = made(api)
        assert await reviewer.rights_of("") is None
        assert await reviewer.rights_of("x" * (callers.LONGEST_TOKEN + 1)) is None
        assert api.asked == []

    run_virtual(scene())


def test_guesses_do_not_fill_the_memory_nor_flood_the_api_server(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        monkeypatch.setattr(callers, "REMEMBERED", 10)
        api = Reviews({}, {})
        reviewer = made(api)
        for number in range(50):
            assert await reviewer.rights_of(f"guess-{number}") is None
        assert len(reviewer._callers) == 10
        api.seconds = 0.1
        told = await asyncio.gather(*(reviewer.rights_of(f"more-{n}") for n in range(1000)), return_exceptions=True)
        crowded = [one for one in told if isinstance(one, CrowdError)]
        assert len(crowded) == 1000 - callers._WAITING
        assert all(one is None for one in told if not isinstance(one, CrowdError))

    run_virtual(scene())
