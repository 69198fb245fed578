"""From a request to its answer: patches, refusals, reads and writes for the handler, deadlines."""

from __future__ import annotations

import asyncio
from typing import Any

import jsonpatch
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.admission.answering import MAX_ROUNDS, Answerer, LiveHands, deadline_of
from kruise.admission.decisions import (
    Allow,
    Booking,
    Change,
    Deny,
    Failure,
    HandlerView,
    Invalid,
    Listing,
    Mutation,
    NeedsBooking,
    NeedsReads,
    NeedsWrites,
    Protected,
    Trial,
    Verdict,
    verdict_of,
)
from kruise.admission.registry import Handler, MutatingHandler, ValidatingHandler
from kruise.admission.review import AdmissionRequest
from kruise.api.native.config import CONFIG_MAPS
from kruise.machinery import codec, plan
from kruise.machinery.apply import Applier
from kruise.machinery.cache import Cache
from kruise.machinery.client.errors import StatusCause
from kruise.machinery.clock import ManualClock, VirtualClock, run_virtual
from kruise.machinery.plan import Action, Outcome, Result, Target
from kruise.machinery.watched import Watched
from tests.admission.helpers import V1, config_map, local_client, local_core, patch_of, request_of, response_of

COUNTER = Target(CONFIG_MAPS, "shop", "counter")


async def ask(handler: Handler, request: AdmissionRequest, answerer: Answerer | None = None) -> dict[str, Any]:
    answerer = answerer or Answerer(ManualClock())
    return response_of(await answerer.answer(handler, V1, request, 10.0))


def mutating(decide: Any, *needs: Any) -> MutatingHandler:
    return MutatingHandler("/mutate", decide, needs)


def validating(decide: Any, *needs: Any) -> ValidatingHandler:
    return ValidatingHandler("/validate", decide, needs)


class FakeHands:
    """Answers writes from a script and remembers everything that was asked of it."""

    def __init__(self, *results: Result, objects: dict[Target, Any] | None = None, delay: float = 0.0) -> None:
        self.results = list(results)
        self.objects = objects or {}
        self.delay = delay
        self.written: list[Action] = []
        self.read_targets: list[Target] = []

    async def carry_out(self, action: Action) -> Outcome:
        await asyncio.sleep(self.delay)
        self.written.append(action)
        return Outcome(action=action, result=self.results.pop(0), object="answer")

    async def read(self, target: Target) -> Any:
        self.read_targets.append(target)
        return self.objects.get(target)


def book(reason: str = "book a slot") -> Action:
    return plan.patch(COUNTER, {"data": {"n": "1"}}, uid="u", reason=reason)


# Answers


async def test_a_change_is_sent_as_the_smallest_patch_and_unknown_fields_survive() -> None:  # PW-3
    pod = config_map(futureField={"x": [1, None, {"y": 1.5}]}, data={"a/b": "1"})

    def decide(request: AdmissionRequest, view: HandlerView) -> Mutation:
        body = request.body()
        body["metadata"]["labels"] = {"seen": "yes"}
        return Change(object=body)

    response = await ask(mutating(decide), request_of(pod))
    assert response["allowed"] is True
    assert response["patchType"] == "JSONPatch"
    assert patch_of(response) == [{"op": "add", "path": "/metadata/labels", "value": {"seen": "yes"}}]


async def test_no_change_is_a_plain_allow() -> None:  # PW-9
    for decide in (lambda request, view: Allow(), lambda request, view: Change(object=request.body())):
        assert await ask(mutating(decide), request_of(config_map())) == {"uid": "u-1", "allowed": True}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(max_size=5), JSON, max_size=5)


@settings(max_examples=60, deadline=None)
@given(before=OBJECTS, after=OBJECTS)
def test_the_patch_leads_from_the_object_as_received_to_the_decision(before: Any, after: Any) -> None:  # PW-3
    request = request_of(before)
    response = asyncio.run(ask(mutating(lambda request, view: Change(object=after)), request))
    patched = jsonpatch.apply_patch(before, patch_of(response)) if "patch" in response else before
    assert patched == after


async def test_a_policy_refusal_is_403_forbidden() -> None:  # PW-4
    response = await ask(validating(lambda r, v: Deny(message="budget is used up")), request_of(config_map()))
    assert response["allowed"] is False
    assert response["status"] == {
        "status": "Failure",
        "code": 403,
        "reason": "Forbidden",
        "message": "budget is used up",
    }


async def test_a_refusal_may_say_when_to_try_again() -> None:
    """What `kubectl drain` understands: 429 with a pause."""
    answer = Deny(message="budget", code=429, reason="TooManyRequests", retry_after_seconds=10)
    response = await ask(validating(lambda r, v: answer), request_of(config_map()))
    assert response["status"]["code"] == 429
    assert response["status"]["details"] == {"retryAfterSeconds": 10}


async def test_warnings_and_audit_annotations_reach_the_answer() -> None:
    answer = Allow(warnings=("old field",), audit_annotations={"why": "because"})
    response = await ask(validating(lambda r, v: answer), request_of(config_map()))
    assert response["warnings"] == ["old field"]
    assert response["auditAnnotations"] == {"why": "because"}


async def test_field_errors_are_422_with_causes() -> None:
    cause = StatusCause(reason="FieldValueRequired", message="Required value", field="spec.x")
    response = await ask(validating(lambda r, v: verdict_of([cause])), request_of(config_map()))
    assert (response["status"]["code"], response["status"]["reason"]) == (422, "Invalid")
    assert response["status"]["details"]["causes"][0]["field"] == "spec.x"
    assert verdict_of([]) == Allow()
    with pytest.raises(ValueError, match="at least one cause"):
        Invalid(causes=())


async def test_an_undecodable_object_is_400() -> None:  # PW-4
    for handler in (
        mutating(lambda r, v: Change(object=r.body())),
        validating(lambda r, v: Allow() if r.body() else 0),
    ):
        response = await ask(handler, request_of([1, 2]))
        assert response["allowed"] is False
        assert response["status"]["code"] == 400
        assert "cannot decode object" in response["status"]["message"]


async def test_an_error_in_a_step_denies_with_its_text(caplog: pytest.LogCaptureFixture) -> None:  # PW-4
    def broken(request: AdmissionRequest, view: HandlerView) -> Verdict:
        raise RuntimeError("the list is empty")

    for handler, code in ((mutating(broken), 500), (validating(broken), 400)):
        response = await ask(handler, request_of(config_map()))
        assert response["allowed"] is False
        assert response["status"]["code"] == code
        assert response["status"]["message"] == "RuntimeError: the list is empty"
    assert "admission handler failed" in caplog.text


# Reads and writes


async def test_writes_are_carried_out_and_the_handler_is_asked_again() -> None:
    def decide(request: AdmissionRequest, view: HandlerView) -> Mutation:
        if not view.outcomes:
            return NeedsWrites(actions=(book(), book("second")))
        assert [outcome.result for outcome in view.outcomes] == [Result.DONE, Result.DONE]
        return Change(object={**request.body(), "slot": 1})

    hands = FakeHands(Result.DONE, Result.DONE)
    response = await ask(mutating(decide), request_of(config_map()), Answerer(ManualClock(), hands=hands))
    assert patch_of(response) == [{"op": "add", "path": "/slot", "value": 1}]
    assert [action.reason for action in hands.written] == ["book a slot", "second"]


async def test_a_moved_write_ends_the_round_and_the_handler_sees_fresh_data() -> None:
    rounds: list[tuple[list[Result], Any]] = []

    def decide(request: AdmissionRequest, view: HandlerView) -> Mutation:
        rounds.append(([outcome.result for outcome in view.outcomes], view.reads.get(COUNTER)))
        if Result.DONE in rounds[-1][0]:
            return Allow()
        return NeedsWrites(actions=(book(), book("later")) if len(rounds) == 1 else (book(),))

    hands = FakeHands(Result.MOVED, Result.DONE, objects={COUNTER: "fresh"})
    response = await ask(mutating(decide), request_of(config_map()), Answerer(ManualClock(), hands=hands))
    assert response["allowed"] is True
    assert rounds == [
        ([], None),
        ([Result.MOVED, Result.SKIPPED], "fresh"),
        ([Result.MOVED, Result.SKIPPED, Result.DONE], "answer"),
    ]


async def test_tries_are_bounded_and_the_last_one_is_announced() -> None:
    announced: list[bool] = []

    def decide(request: AdmissionRequest, view: HandlerView) -> Mutation:
        announced.append(view.last_try)
        return NeedsWrites(actions=(book(),))

    hands = FakeHands(*[Result.MOVED] * MAX_ROUNDS)
    response = await ask(mutating(decide), request_of(config_map()), Answerer(ManualClock(), hands=hands))
    assert response["status"]["code"] == 500
    assert "other writers were faster" in response["status"]["message"]
    assert announced == [False] * (MAX_ROUNDS - 1) + [True]


async def test_a_handler_can_refuse_in_its_own_words_on_the_last_try() -> None:  # PW-40
    def decide(request: AdmissionRequest, view: HandlerView) -> Verdict:
        return Deny(message="timed out on budget b") if view.last_try else NeedsWrites(actions=(book(),))

    hands = FakeHands(*[Result.MOVED] * MAX_ROUNDS)
    response = await ask(validating(decide), request_of(config_map()), Answerer(ManualClock(), hands=hands))
    assert (response["status"]["code"], response["status"]["message"]) == (403, "timed out on budget b")


async def test_a_dry_run_never_writes() -> None:
    def decide(request: AdmissionRequest, view: HandlerView) -> Mutation:
        if not view.outcomes:
            return NeedsWrites(actions=(book(),))
        assert view.outcomes[0].result is Result.SKIPPED
        return Change(object={**request.body(), "slot": 1})

    hands = FakeHands()
    request = request_of(config_map(), dry_run=True)
    response = await ask(mutating(decide), request, Answerer(ManualClock(), hands=hands))
    assert patch_of(response) == [{"op": "add", "path": "/slot", "value": 1}]
    assert hands.written == []


async def test_objects_can_be_read_live() -> None:  # PW-34
    missing = Target(CONFIG_MAPS, "shop", "missing")

    def decide(request: AdmissionRequest, view: HandlerView) -> Verdict:
        if not view.was_read(COUNTER):
            return NeedsReads(targets=(COUNTER, missing))
        assert view.live(missing) is None
        return Deny(message=str(view.live(COUNTER)))

    hands = FakeHands(objects={COUNTER: "the counter"})
    response = await ask(validating(decide), request_of(config_map()), Answerer(ManualClock(), hands=hands))
    assert response["status"]["message"] == "the counter"


async def test_a_server_without_hands_refuses_instead_of_passing(caplog: pytest.LogCaptureFixture) -> None:
    response = await ask(mutating(lambda r, v: NeedsWrites(actions=(book(),))), request_of(config_map()))
    assert response["status"]["code"] == 500
    assert "can neither read nor write" in response["status"]["message"]


def test_the_deadline_ends_a_slow_write_with_a_refusal() -> None:
    async def main() -> tuple[dict[str, Any], float]:
        clock = VirtualClock(asyncio.get_running_loop())
        answerer = Answerer(clock, hands=FakeHands(Result.DONE, delay=60.0))
        handler = validating(lambda r, v: NeedsWrites(actions=(book(),)))
        return await ask(handler, request_of(config_map()), answerer), clock.monotonic()

    response, took = run_virtual(main())
    assert response["allowed"] is False
    assert response["status"]["code"] == 500
    assert "no decision within 8.8 s, while writing configmaps shop/counter" in response["status"]["message"]
    assert took == pytest.approx(8.8)


@pytest.mark.parametrize(
    ("given_timeout", "expected"), [(None, 8.8), (10.0, 8.8), (30.0, 28.8), (1.0, 0.75), (900.0, 28.8), (-1.0, 8.8)]
)
def test_the_deadline_leaves_time_for_the_answer(given_timeout: float | None, expected: float) -> None:
    assert deadline_of(given_timeout) == pytest.approx(expected)


# With a real store


async def test_a_store_that_was_not_waited_for_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    """A store that is not filled yet looks like an empty cluster: a decision on it would let everything pass."""
    clock = ManualClock()
    cache = Cache(local_client(local_core(clock), clock), clock=clock)
    cache.add(CONFIG_MAPS)
    answerer = Answerer(clock, stores=cache)
    careless = validating(lambda r, v: Deny(message="busy") if v.store(CONFIG_MAPS).list() else Allow())
    response = await ask(careless, request_of(config_map()), answerer)
    assert response["allowed"] is False
    assert "/validate asked for the store of configmaps but does not name it" in response["status"]["message"]


async def test_a_validating_handler_cannot_change_the_object(caplog: pytest.LogCaptureFixture) -> None:
    response = await ask(validating(lambda r, v: Change(object={})), request_of(config_map()))
    assert response["allowed"] is False
    assert "it cannot change the object" in response["status"]["message"]


def test_handlers_wait_for_their_stores_then_fail_closed() -> None:
    async def main() -> tuple[dict[str, Any], dict[str, Any]]:
        clock = VirtualClock(asyncio.get_running_loop())
        core = local_core(clock)
        client = local_client(core, clock)
        await client.create(CONFIG_MAPS, config_map(data={"n": "7"}), "shop")
        cache = Cache(client, clock=clock)
        cache.add(CONFIG_MAPS)

        def decide(request: AdmissionRequest, view: HandlerView) -> Verdict:
            found = view.latest(CONFIG_MAPS, "shop", "basket")
            return Deny(message=found.data["n"] if found else "nothing")

        handler = validating(decide, CONFIG_MAPS)
        answerer = Answerer(clock, stores=cache)
        closed = await ask(handler, request_of(config_map()), answerer)
        question = asyncio.create_task(ask(handler, request_of(config_map()), answerer))
        await asyncio.sleep(1)
        running = asyncio.create_task(cache.run())
        answered = await question
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return closed, answered

    closed, answered = run_virtual(main())
    assert closed["status"]["code"] == 500
    assert "waiting for the first list of configmaps" in closed["status"]["message"]
    assert answered["status"]["message"] == "7"


def test_two_bookings_of_the_last_slot_one_gets_it() -> None:
    """Guarded writes through a real applier: the loser of the race decides again on the winner's data."""

    def decide(request: AdmissionRequest, view: HandlerView) -> Verdict:
        if any(outcome.result is Result.DONE for outcome in view.outcomes):
            return Allow()
        counter = view.latest(CONFIG_MAPS, "shop", "counter")
        assert counter is not None
        left = int(counter.data["left"])
        if left == 0:
            return Deny(message="no slot left")
        write = plan.patch(
            COUNTER,
            {"data": {"left": str(left - 1)}},
            uid=counter.metadata.uid,
            resource_version=counter.metadata.resource_version,
            reason="book",
        )
        return NeedsWrites(actions=(write,))

    async def main() -> list[bool]:
        clock = VirtualClock(asyncio.get_running_loop())
        client = local_client(local_core(clock), clock)
        counter = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "counter"}, "data": {"left": "1"}}
        await client.create(CONFIG_MAPS, counter, "shop")
        cache = Cache(client, clock=clock)
        cache.add(CONFIG_MAPS)
        running = asyncio.create_task(cache.run())
        await cache.wait_synced(5)
        answerer = Answerer(clock, stores=cache, hands=LiveHands(Applier(client, cache, clock=clock), client, cache))
        handler = validating(decide, CONFIG_MAPS)
        answers = await asyncio.gather(
            *(ask(handler, request_of(config_map(), uid=f"u-{n}"), answerer) for n in range(3))
        )
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return sorted(answer["allowed"] for answer in answers)

    assert run_virtual(main()) == [False, False, True]


async def test_the_seed_is_the_same_for_all_rounds_of_a_request_and_differs_between_requests() -> None:
    seeds: list[int] = []

    def decide(request: AdmissionRequest, view: HandlerView) -> Mutation:
        seeds.append(view.seed)
        return Allow() if view.outcomes else NeedsWrites(actions=(book(),))

    answerer = Answerer(ManualClock(), hands=FakeHands(Result.DONE, Result.DONE))
    await ask(mutating(decide), request_of(config_map(), uid="a"), answerer)
    await ask(mutating(decide), request_of(config_map(), uid="b"), answerer)
    assert seeds[0] == seeds[1] != seeds[2] == seeds[3]


def test_a_handler_does_not_wait_for_an_optional_kind_but_may_ask_whether_it_is_there() -> None:
    async def main() -> dict[str, Any]:
        clock = VirtualClock(asyncio.get_running_loop())
        cache = Cache(local_client(local_core(clock), clock), clock=clock)
        kind = Watched(CONFIG_MAPS, optional=True)
        cache.add(kind)  # and never filled

        def decide(request: AdmissionRequest, view: HandlerView) -> Verdict:
            return Deny(message=f"synced: {view.store(CONFIG_MAPS).synced}")

        return await ask(validating(decide, kind), request_of(config_map()), Answerer(clock, stores=cache))

    assert run_virtual(main())["status"]["message"] == "synced: False"


# Lists, trials, what cannot be read


def named(name: str) -> dict[str, Any]:
    return config_map(metadata={"name": name, "namespace": "shop"})


async def test_lists_and_trials_are_read_live() -> None:
    clock = ManualClock()
    core = local_core(clock)
    client = local_client(core, clock)
    there = await client.create(CONFIG_MAPS, named("one"), "shop")
    listing = Listing(CONFIG_MAPS, "shop")
    good = Trial(CONFIG_MAPS, "shop", codec.encode(named("two")))
    bad = Trial(CONFIG_MAPS, "shop", codec.encode(named("No!")))
    seen: list[Any] = []

    def decide(request: AdmissionRequest, view: HandlerView) -> Verdict:
        if not view.was_read(listing):
            return NeedsReads(targets=(listing, good, bad), may_fail=True)
        seen.extend(view.live(item) for item in (listing, good, bad))
        return Allow()

    hands = LiveHands(Applier(client, Cache(client, clock=clock), clock=clock), client)
    await ask(validating(decide), request_of(config_map()), Answerer(clock, hands=hands))
    names, made, refused = seen
    assert [one.metadata.name for one in names] == [there.metadata.name]
    assert made is None
    assert isinstance(refused, Failure)
    assert (refused.code, refused.reason) == (422, "Invalid")
    assert [one.metadata.name for one in (await client.list(CONFIG_MAPS, "shop")).items] == ["one"]


async def test_refusals_that_are_kept_are_told_with_the_user() -> None:  # DP-30
    refusal = Protected(event="E", kind="K", namespace="n", name="x", counter="c", labels={"name": "x"})
    told: list[tuple[Protected, str]] = []
    answerer = Answerer(ManualClock(), record=lambda said, user: told.append((said, user)))
    response = await ask(validating(lambda request, view: Deny(message="no", record=refusal)), request_of(), answerer)
    assert response["allowed"] is False
    assert told == [(refusal, "alice")]


async def test_a_dry_run_books_nothing() -> None:
    def decide(request: AdmissionRequest, view: HandlerView) -> Mutation:
        place = view.booked(COUNTER)
        if place is None:
            return NeedsBooking(target=COUNTER, book=lambda found, now: Booking("next", 1), write=lambda *_: book())
        return Change(object={**request.body(), "slot": place})

    hands = FakeHands()
    request = request_of(config_map(), dry_run=True)
    response = await ask(mutating(decide), request, Answerer(ManualClock(), hands=hands))
    assert patch_of(response) == [{"op": "add", "path": "/slot", "value": 1}]
    assert hands.written == []


@pytest.mark.parametrize("is_slow", [False, True])
def test_a_booking_that_may_fail_is_the_handlers_to_answer(is_slow: bool) -> None:
    """Neither a write that is refused nor one that takes too long ends the request with an error."""

    class BadHands(FakeHands):
        async def carry_out(self, action: plan.Action) -> Outcome:
            await asyncio.sleep(100 if is_slow else 0)
            return Outcome(action=action, result=Result.FAILED, error="not today")

    def decide(request: AdmissionRequest, view: HandlerView) -> Verdict:
        said = view.booked(COUNTER)
        if said is None:
            return NeedsBooking(
                target=COUNTER, book=lambda found, now: Booking("next", 1), write=lambda *_: book(), may_fail=True
            )
        assert isinstance(said, Failure)
        return Deny(message=said.message, code=429, reason="TooManyRequests")

    async def main() -> dict[str, Any]:
        clock = VirtualClock(asyncio.get_running_loop())
        return await ask(validating(decide), request_of(config_map()), Answerer(clock, hands=BadHands()))

    status = run_virtual(main())["status"]
    assert status["code"] == 429
    assert ("in time" if is_slow else "not today") in status["message"]


def test_several_objects_are_read_at_once() -> None:
    class SlowHands(FakeHands):
        async def read(self, target: Target) -> Any:
            await asyncio.sleep(3)
            return target.name

    targets = tuple(Target(CONFIG_MAPS, "shop", f"c{number}") for number in range(4))

    def decide(request: AdmissionRequest, view: HandlerView) -> Verdict:
        if not view.was_read(targets[0]):
            return NeedsReads(targets=targets)
        return Deny(message=",".join(str(view.live(target)) for target in targets))

    async def main() -> tuple[dict[str, Any], float]:
        clock = VirtualClock(asyncio.get_running_loop())
        return await ask(validating(decide), request_of(config_map()), Answerer(clock, hands=SlowHands())), (
            clock.monotonic()
        )

    response, took = run_virtual(main())
    assert response["status"]["message"] == "c0,c1,c2,c3"
    assert took == pytest.approx(3)
