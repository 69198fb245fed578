"""Carrying out plans against an API core in process, with faults, on virtual time."""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.api.native.pod import PODS
from kruise.machinery.apply import Patience
from kruise.machinery.client.errors import ForbiddenError, Status
from kruise.machinery.client.requests import PatchType, Verb
from kruise.machinery.clock import ManualClock, run_virtual
from kruise.machinery.lacking import AGAIN_SECONDS, LackingRights
from kruise.machinery.limiter import WriteLimiter
from kruise.machinery.metrics import Metrics
from kruise.machinery.plan import (
    Action,
    OnError,
    Outcome,
    Phase,
    Plan,
    Result,
    Target,
    apply_object,
    create,
    delete,
    evict,
    patch,
    single,
    status_patch,
)
from tests.machinery.applying import applier, at, label, new_pod, results, run
from tests.support.examples import EXAMPLES
from tests.support.faults import Answer, Delay, DropAfter, DropBefore, Duplicate, Rule
from tests.support.inprocess import OWNER_UID, TOYS, InProcess, pod_body

OTHER_UID = "00000000-0000-4000-8000-00000000ffff"
FINALIZERS = (
    "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>"
)


# Guards


@pytest.mark.parametrize("patch_type", [PatchType.MERGE, PatchType.STRATEGIC])
@pytest.mark.parametrize("subresource", ["", "status"])
def test_a_patch_of_another_object_under_the_same_name_is_moved(patch_type: PatchType, subresource: str) -> None:
    async def scene(env: InProcess) -> None:
        pod = await env.add_pod("a")
        action = label("a", OTHER_UID, patch_type=patch_type, subresource=subresource)
        outcome = await applier(env).carry_out(action)
        assert outcome.result is Result.MOVED
        assert (await env.direct.get(PODS, "a", "default")).metadata.resource_version == pod.metadata.resource_version
        fitting = label("a", pod.metadata.uid, patch_type=patch_type, subresource=subresource)
        outcome = await applier(env).carry_out(fitting)
        assert outcome.result is Result.DONE
        assert outcome.object.metadata.labels == {"x": "new"}

    run(scene)


def test_a_json_patch_tests_uid_and_version_first() -> None:
    async def scene(env: InProcess) -> None:
        pod = await env.add_pod("a", labels={"rev": "1"})
        metadata = pod.metadata
        change = [
            {"op": "test", "path": "/metadata/labels/rev", "value": "1"},
            {"op": "replace", "path": "/metadata/labels/rev", "value": "2"},
        ]

        def act(**guards: str) -> Action:
            return patch(at("a"), change, reason="update", patch_type=PatchType.JSON, **guards)

        carry_out = applier(env).carry_out
        assert (await carry_out(act(uid=OTHER_UID))).result is Result.MOVED
        assert (await carry_out(act(uid=metadata.uid, resource_version="77"))).result is Result.MOVED
        outcome = await carry_out(act(uid=metadata.uid, resource_version=metadata.resource_version))
        assert outcome.result is Result.DONE
        assert (await carry_out(act(uid=metadata.uid))).result is Result.MOVED  # its own test fails: done already
        lost = [{"op": "test", "path": "/metadata/annotations/x", "value": "1"}]
        action = patch(at("a"), lost, uid=metadata.uid, reason="x", patch_type=PatchType.JSON)
        assert (await carry_out(action)).result is Result.MOVED

    run(scene)


def test_a_json_patch_that_does_not_fit_is_moved_and_one_that_makes_nonsense_fails() -> None:
    """The server answers a failed test and a missing path with the same words; a refused result names causes."""
    causes = b'{"causes":[{"reason":"FieldValueInvalid","field":"metadata.labels"}]}'
    invalid = b'{"kind":"Status","code":422,"reason":"Invalid","message":"Pod a is invalid","details":' + causes + b"}"

    async def scene(env: InProcess) -> None:
        pod = await env.add_pod("a")
        change = [{"op": "remove", "path": "/metadata/annotations/none"}]
        action = patch(at("a"), change, uid=pod.metadata.uid, reason="x", patch_type=PatchType.JSON)
        assert (await applier(env).carry_out(action)).result is Result.MOVED
        env.faults.add(Rule(Answer(422, body=invalid), verbs={Verb.PATCH}))
        assert (await applier(env).carry_out(action)).result is Result.FAILED

    run(scene)


def test_a_resource_version_guard_that_fails_is_moved() -> None:
    async def scene(env: InProcess) -> None:
        pod = await env.add_pod("a")
        old = pod.metadata.resource_version
        await applier(env).carry_out(label("a", pod.metadata.uid))
        outcome = await applier(env).carry_out(label("a", pod.metadata.uid, "newer", resource_version=old))
        assert outcome.result is Result.MOVED
        assert outcome.error_code == 409

    run(scene)


def test_deletes_are_guarded_and_a_missing_object_is_done() -> None:
    async def scene(env: InProcess) -> None:
        pod = await env.add_pod("a")
        carry_out = applier(env).carry_out
        assert (await carry_out(delete(at("a"), uid=OTHER_UID, reason="scale"))).result is Result.MOVED
        stale = delete(at("a"), uid=pod.metadata.uid, reason="scale", resource_version="77")
        assert (await carry_out(stale)).result is Result.MOVED
        assert await env.pods() == ["a"]
        assert (await carry_out(delete(at("a"), uid=pod.metadata.uid, reason="scale"))).result is Result.DONE
        assert (await carry_out(delete(at("a"), uid=pod.metadata.uid, reason="scale"))).result is Result.DONE
        assert await env.pods() == []

    run(scene)


def test_a_patch_of_a_missing_object_is_gone() -> None:
    async def scene(env: InProcess) -> None:
        assert (await applier(env).carry_out(label("a", OTHER_UID))).result is Result.GONE

    run(scene)


def test_the_status_of_a_custom_resource_is_guarded() -> None:
    """The API server drops the metadata of a status merge patch before it compares uids."""

    async def scene(env: InProcess) -> None:
        body = {"apiVersion": "example.com/v1", "kind": "Toy", "metadata": {"name": "toy", "namespace": "default"}}
        toy = await env.direct.create(TOYS, body, "default")
        target = Target(TOYS, "default", "toy")
        carry_out = applier(env).carry_out
        wrong = status_patch(target, {"replicas": 3}, uid=OTHER_UID, reason="status")
        assert (await carry_out(wrong)).result is Result.MOVED
        assert (await env.direct.get(TOYS, "toy", "default")).status.replicas == 0
        right = status_patch(target, {"replicas": 3}, uid=toy.metadata.uid, reason="status")
        assert (await carry_out(right)).object.status.replicas == 3
        merged = patch(target, {"status": {"replicas": 4}}, uid=OTHER_UID, reason="status", subresource="status")
        assert (await carry_out(merged)).result is Result.MOVED  # found out by the answer at the latest

    run(scene)


def test_a_genuine_refusal_is_a_failure_with_the_servers_words() -> None:
    async def scene(env: InProcess) -> None:
        pod = await env.add_pod("a")
        outcome = await applier(env).carry_out(label("a", pod.metadata.uid))
        assert outcome.result is Result.FAILED
        assert (outcome.error, outcome.error_code, outcome.error_reason) == ("spec.x: bad", 422, "Invalid")

    run(scene, Rule(Answer(422, "Invalid", "spec.x: bad"), verbs={Verb.PATCH}))


def test_evictions_are_guarded_and_a_budget_is_an_answer() -> None:
    budget = (
        b'{"kind":"Status","status":"Failure","code":429,"reason":"TooManyRequests","message":"budget",'
        b'"details":{"causes":[{"reason":"DisruptionBudget","message":"x"}]}}'
    )

    async def scene(env: InProcess) -> None:
        pod = await env.add_pod("a")
        carry_out = applier(env).carry_out
        refused = await carry_out(evict(at("a"), uid=pod.metadata.uid, reason="drain"))
        assert (refused.result, refused.error_code) == (Result.FAILED, 429)
        assert env.clock.monotonic() < 0.01  # not tried again
        assert (await carry_out(evict(at("a"), uid=OTHER_UID, reason="drain"))).result is Result.MOVED
        assert (await carry_out(evict(at("a"), uid=pod.metadata.uid, reason="drain"))).result is Result.DONE
        assert (await carry_out(evict(at("a"), uid=pod.metadata.uid, reason="drain"))).result is Result.DONE

    run(scene, Rule(Answer(429, body=budget), subresource="eviction", times=1))


# Creates and unknown outcomes


def test_a_create_whose_answer_is_lost_is_settled_under_the_same_name() -> None:  # IPU-142
    async def scene(env: InProcess) -> None:
        outcome = await applier(env).carry_out(new_pod("a"))
        assert outcome.result is Result.DONE
        assert outcome.object.metadata.name == "a"
        assert await env.pods() == ["a"]

    for fault in (DropAfter(), DropAfter(timeout=10), DropBefore(sent=True), Duplicate(), Answer(504, "Timeout")):
        run(scene, Rule(fault, verbs={Verb.CREATE}, times=1))


@pytest.mark.parametrize(
    "fault",
    [
        DropBefore(),
        Answer(429, "TooManyRequests", retry_after=2),
        Answer(503, "ServiceUnavailable"),
        Answer(500, "InternalError", "etcdserver: request timed out"),
        Answer(200, body=b"<html>hello</html>"),
        Answer(502, body=b"<html>bad gateway</html>"),
    ],
)
def test_what_passes_is_waited_for(fault: Any) -> None:
    async def scene(env: InProcess) -> None:
        metrics = Metrics()
        outcome = await applier(env, metrics=metrics).carry_out(new_pod("a"))
        assert outcome.result is Result.DONE
        assert env.clock.monotonic() >= (2 if getattr(fault, "retry_after", 0) else 0.1)
        samples = [s for family in metrics.registry.collect() for s in family.samples]
        assert sum(s.value for s in samples if s.name == "kruise_write_retries_total") == 2
        assert sum(s.value for s in samples if s.name == "kruise_writes_total") == 1

    run(scene, Rule(fault, verbs={Verb.CREATE}, times=2))


def test_what_stays_unknown_is_said_to_be_unknown_and_what_was_never_sent_failed() -> None:
    async def unknown(env: InProcess) -> None:
        outcome = await applier(env).carry_out(new_pod("a"))
        assert outcome.result is Result.UNKNOWN
        assert len(env.faults.log) == Patience().attempts

    run(unknown, Rule(DropBefore(sent=True), verbs={Verb.CREATE}))

    async def failed(env: InProcess) -> None:
        assert (await applier(env).carry_out(new_pod("a"))).result is Result.FAILED

    run(failed, Rule(DropBefore(), verbs={Verb.CREATE}))


def test_a_quota_that_refuses_the_second_try_leaves_the_outcome_unknown() -> None:
    """The first try may be the one that used the quota up."""

    async def scene(env: InProcess) -> None:
        assert (await applier(env).carry_out(new_pod("a"))).result is Result.UNKNOWN
        assert await env.pods() == ["a"]

    run(
        scene,
        Rule(DropAfter(), verbs={Verb.CREATE}, calls={1}),
        Rule(Answer(403, "Forbidden", "exceeded quota"), verbs={Verb.CREATE}, calls={2}),
    )


def test_a_right_that_is_missing_is_told_of_in_the_log_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    """Not each time: a controller tries again and again. What a quota or a webhook refuses is about the object."""

    def told() -> list[tuple[str, str]]:
        return [(one.verb, one.resource) for one in caplog.records if "lacks a right" in one.getMessage()]  # type: ignore[attr-defined]

    async def scene(env: InProcess) -> None:
        one = applier(env)
        for name in ("a", "b", "c"):
            assert (await one.carry_out(new_pod(name))).result is Result.FAILED
        assert told() == [("create", "pods")]
        await asyncio.sleep(AGAIN_SECONDS)
        await one.carry_out(new_pod("a"))
        assert told() == [("create", "pods")] * 2

    words = 'pods is forbidden: User "x" cannot create resource "pods" in API group "" in the namespace "default"'
    run(scene, Rule(Answer(403, "Forbidden", words), verbs={Verb.CREATE}))
    caplog.clear()

    async def refused(env: InProcess) -> None:
        assert (await applier(env).carry_out(new_pod("a"))).result is Result.FAILED
        assert told() == []

    for other in (
        'pods "a" is forbidden: exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1',
        f'admission webhook "guard.example" denied the request: {words}',
        f"ValidatingAdmissionPolicy 'guard' with binding 'all' denied request: {words}",
    ):
        run(refused, Rule(Answer(403, "Forbidden", other), verbs={Verb.CREATE}))


@pytest.mark.parametrize(
    ("action", "words", "verb", "resource"),
    [
        (
            apply_object(at("a"), pod_body("a"), field_manager="m", reason="open"),
            'User "x" cannot create resource "pods" in API group "" in the namespace "default"',
            "create",
            "pods",
        ),
        (
            status_patch(at("a"), {}, uid=OTHER_UID, reason="count"),
            'User "x" cannot patch resource "toys/status" in API group "example.com" in the namespace "default"',
            "patch",
            "toys.example.com/status",
        ),
        (
            create(PODS, pod_body("a", ownerReferences=[{"kind": "Toy", "blockOwnerDeletion": True}]), reason="scale"),
            FINALIZERS,
            "update",
            "Toy/finalizers",
        ),
        (
            status_patch(at("a"), {}, uid=OTHER_UID, reason="count"),
            FINALIZERS,
            "update",
            "owners/finalizers",
        ),
    ],
)
def test_the_right_that_lacks_is_told_and_not_that_of_the_write(
    caplog: pytest.LogCaptureFixture, action: Action, words: str, verb: str, resource: str
) -> None:
    """Who applies what is not there yet has to create it; who names an owner has to be allowed to hold it up."""
    told = LackingRights(ManualClock())
    told.tell(action, ForbiddenError(Status(code=403, reason="Forbidden", message=f'pods "a" is forbidden: {words}')))
    assert [(one.verb, one.resource) for one in caplog.records] == [(verb, resource)]  # type: ignore[attr-defined]


def test_a_server_that_asks_for_a_very_long_pause_is_not_waited_for() -> None:
    async def scene(env: InProcess) -> None:
        assert (await applier(env).carry_out(new_pod("a"))).result is Result.FAILED
        assert env.clock.monotonic() < 1

    run(scene, Rule(Answer(429, "TooManyRequests", retry_after=600), verbs={Verb.CREATE}))


def test_a_name_that_belongs_to_somebody_else_fails() -> None:
    async def scene(env: InProcess) -> None:
        await env.add_pod("a", owner_uid=OTHER_UID)
        await env.add_pod("b")
        for name in ("a", "b"):
            outcome = await applier(env).carry_out(new_pod(name))
            assert (outcome.result, outcome.error_reason) == (Result.FAILED, "AlreadyExists")
        plain = create(PODS, pod_body("a"), reason="x")
        assert (await applier(env).carry_out(plain)).result is Result.FAILED

    run(scene)


def test_a_name_that_is_ours_already_is_done_from_the_store_or_by_a_live_read() -> None:
    async def scene(env: InProcess) -> None:
        await env.add_pod("a", owner_uid=OWNER_UID)
        outcome = await applier(env).carry_out(new_pod("a"))
        assert outcome.result is Result.DONE
        assert outcome.object.metadata.name == "a"
        env.cache.add(PODS)
        async with env.running():
            env.faults.add(Rule(DropBefore(), verbs={Verb.GET}))
            assert (await applier(env).carry_out(new_pod("a"))).result is Result.DONE
            assert env.faults.log == []

    run(scene)


def test_our_own_object_that_is_on_its_way_out_means_decide_again() -> None:
    async def scene(env: InProcess) -> None:
        pod = await env.add_pod("a", owner_uid=OWNER_UID, finalizers=["example.com/hold"])
        await env.direct.delete(PODS, "a", "default", uid=pod.metadata.uid)
        assert (await applier(env).carry_out(new_pod("a"))).result is Result.MOVED

    run(scene)


def test_a_lost_answer_of_a_patch_or_delete_is_settled_by_sending_it_again() -> None:
    async def scene(env: InProcess) -> None:
        pod = await env.add_pod("a")
        carry_out = applier(env).carry_out
        assert (await carry_out(label("a", pod.metadata.uid))).result is Result.DONE
        change = [{"op": "test", "path": "/metadata/labels/x", "value": "new"}]
        change += [{"op": "replace", "path": "/metadata/labels/x", "value": "newest"}]
        action = patch(at("a"), change, uid=pod.metadata.uid, reason="x", patch_type=PatchType.JSON)
        assert (await carry_out(action)).result is Result.MOVED  # done, but only a new look can tell
        assert (await env.direct.get(PODS, "a", "default")).metadata.labels == {"x": "newest"}
        assert (await carry_out(delete(at("a"), uid=pod.metadata.uid, reason="x"))).result is Result.DONE
        assert len(env.faults.log) == 3

    run(scene, Rule(DropAfter(), verbs={Verb.PATCH, Verb.DELETE}, calls={1, 3, 5}))


def test_a_body_that_cannot_be_sent_fails_alone() -> None:
    async def scene(env: InProcess) -> None:
        bad = create(PODS, {**pod_body("a"), "spec": object()}, reason="x")
        homeless = create(PODS, {"metadata": {"name": "b"}}, reason="x")
        scalar = patch(at("a"), "text", uid=OTHER_UID, reason="x")
        plan = Plan(phases=(single("p", bad, homeless, scalar, new_pod("c"), on_error=OnError.CONTINUE),))
        assert results(await applier(env).apply(plan)) == ["failed", "failed", "failed", "done"]

    run(scene)


def test_server_side_apply_goes_through() -> None:
    """Without a uid it carries no guard; the field manager is its own."""

    async def scene(env: InProcess) -> None:
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "default"}}
        action = apply_object(at("a"), body, field_manager="kruise", reason="x", force=True)
        sent = []
        inner = env.inner.send

        async def send(request: Any) -> Any:
            sent.append(request)
            return await inner(request)

        env.inner.send = send  # type: ignore[method-assign]
        await applier(env).carry_out(action)
        assert sent[0].content_type == PatchType.APPLY
        assert dict(sent[0].query) == {"fieldManager": "kruise", "force": "true"}

    run(scene)


# Write-through


def test_every_answer_is_in_the_store_before_the_outcome() -> None:  # IPU-43, IPU-140
    async def scene(env: InProcess) -> None:
        store = env.cache.add(PODS)
        async with env.running():
            env.faults.add(Rule(Delay(5.0), verbs={Verb.WATCH}))
            env.inner.cut_watches()
            carry_out = applier(env).carry_out
            pod = (await carry_out(new_pod("a", node="n1"))).object
            assert store.get("default", "a") == pod
            await carry_out(label("a", pod.metadata.uid))
            seen = store.get("default", "a")
            assert seen is not None
            assert seen.metadata.labels == {"x": "new"}
            await carry_out(delete(at("a"), uid=pod.metadata.uid, reason="x"))
            seen = store.get("default", "a")
            assert seen is not None
            assert store.is_terminating(seen)

    run(scene)


# Plans


def phase(name: str, *chains: tuple[Action, ...], on_error: OnError = OnError.STOP_PLAN) -> Phase:
    return Phase(name=name, chains=chains, on_error=on_error)


@pytest.mark.parametrize(
    ("on_error", "expected"),
    [
        (OnError.CONTINUE, ["failed", "skipped", "done", "done"]),
        (OnError.STOP_PHASE, ["failed", "skipped", "skipped", "done"]),
        (OnError.STOP_PLAN, ["failed", "skipped", "skipped", "skipped"]),
    ],
)
@pytest.mark.parametrize("maximum", [1, 4])
def test_what_a_failure_means_for_the_others(on_error: OnError, expected: list[str], maximum: int) -> None:
    async def scene(env: InProcess) -> None:
        plan = Plan(
            phases=(
                phase("one", (new_pod("refused"), new_pod("after")), (new_pod("other"),), on_error=on_error),
                phase("two", (new_pod("later"),)),
            )
        )
        # With room for more the others have begun to wait for their turn when the first one fails.
        one_at_a_time = WriteLimiter(clock=env.clock, initial=1, maximum=maximum)
        assert results(await applier(env, limiter=one_at_a_time).apply(plan)) == expected

    run(scene, Rule(Delay(1.0)), Rule(Answer(403, "Forbidden"), verbs={Verb.CREATE}, calls={1}))


def test_a_guard_that_failed_stops_neither_the_other_chains_nor_shows_but_no_later_phase_begins() -> None:
    async def scene(env: InProcess) -> None:
        await env.add_pod("a")
        plan = Plan(phases=(phase("one", (label("a", OTHER_UID),), (new_pod("b"),)), phase("two", (new_pod("c"),))))
        one_at_a_time = WriteLimiter(clock=env.clock, initial=1, maximum=1)
        outcomes = await applier(env, limiter=one_at_a_time).apply(plan)
        assert results(outcomes) == ["moved", "done", "skipped"]
        assert outcomes.must_decide_again
        assert outcomes.failed == ()

    run(scene)


def test_chains_run_in_parallel_and_actions_of_a_chain_in_order() -> None:
    async def scene(env: InProcess) -> None:
        chains = tuple((new_pod(f"a{i}"), new_pod(f"b{i}")) for i in range(8))
        outcomes = await applier(env).apply(Plan(phases=(phase("p", *chains),)))
        assert [outcome.action.target.name for outcome in outcomes] == [a.target.name for c in chains for a in c]
        assert results(outcomes) == ["done"] * 16
        assert env.clock.monotonic() == pytest.approx(2.0)  # two round trips
        created = {pod.metadata.name: int(pod.metadata.resource_version) for pod in (await env.direct.list(PODS)).items}
        assert all(created[f"a{i}"] < created[f"b{i}"] for i in range(8))

    run(scene, Rule(Delay(1.0), verbs={Verb.CREATE}))


def test_slow_start_tries_a_refused_create_once() -> None:
    """DESIGN section 4: creates stop early when the first ones fail."""

    async def scene(env: InProcess) -> None:
        plan = Plan(phases=(single("scale", *(new_pod(f"p{i}") for i in range(100)), slow_start=True),))
        assert Counter(results(await applier(env).apply(plan))) == {"failed": 1, "skipped": 99}

    run(scene, Rule(Answer(403, "Forbidden", "exceeded quota"), verbs={Verb.CREATE}))


def test_slow_start_ends_its_phase_whatever_the_rule_for_errors() -> None:
    async def scene(env: InProcess) -> None:
        await env.add_pod("p1")
        creates = [new_pod(f"p{i}") for i in range(20)]
        plan = Plan(
            phases=(
                single("scale", *creates, slow_start=True, on_error=OnError.CONTINUE),
                single("more", new_pod("later")),
            )
        )
        outcomes = await applier(env).apply(plan)
        assert results(outcomes)[:3] == ["done", "failed", "done"]
        assert Counter(results(outcomes)) == {"done": 3, "failed": 1, "skipped": 17}
        assert results(outcomes)[-1] == "done"

    run(scene)


def test_slow_start_of_many_that_succeed_takes_few_round_trips() -> None:
    async def scene(env: InProcess) -> None:
        plan = Plan(phases=(single("scale", *(new_pod(f"p{i}") for i in range(63)), slow_start=True),))
        limiter = WriteLimiter(clock=env.clock, initial=64)
        assert set(results(await applier(env, limiter=limiter).apply(plan))) == {"done"}
        assert env.clock.monotonic() == pytest.approx(6.0)  # 1, 2, 4, 8, 16, 32

    run(scene, Rule(Delay(1.0), verbs={Verb.CREATE}))


def test_overload_lowers_the_limit() -> None:
    async def scene(env: InProcess) -> None:
        limiter = WriteLimiter(clock=env.clock, initial=16)
        plan = Plan(phases=(single("scale", *(new_pod(f"p{i}") for i in range(16))),))
        outcomes = await applier(env, limiter=limiter).apply(plan)
        assert set(results(outcomes)) == {"done"}
        assert limiter.limit < 16

    run(scene, Rule(Answer(429, "TooManyRequests", retry_after=1), verbs={Verb.CREATE}, times=10))


def test_once_stopping_nothing_is_begun_and_what_is_under_way_ends() -> None:
    async def scene(env: InProcess) -> None:
        stopping = False
        limiter = WriteLimiter(clock=env.clock, initial=4, maximum=4)
        plan = Plan(phases=(phase("p", *((new_pod(f"p{i}"), new_pod(f"q{i}")) for i in range(8))),))
        task = asyncio.create_task(applier(env, limiter=limiter).apply(plan, stopping=lambda: stopping))
        await asyncio.sleep(0.5)
        stopping = True
        outcomes = await task
        assert Counter(results(outcomes)) == {"done": 4, "skipped": 12}
        assert await env.pods() == ["p0", "p1", "p2", "p3"]

    run(scene, Rule(Delay(1.0), verbs={Verb.CREATE}))


def test_an_abandoned_write_leaves_a_word(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(env: InProcess) -> None:
        limiter = WriteLimiter(clock=env.clock)
        task = asyncio.create_task(applier(env, limiter=limiter).carry_out(new_pod("a")))
        await asyncio.sleep(0.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert "write abandoned" in caplog.text
        assert limiter.in_flight == 0

    run(scene, Rule(Delay(1.0), verbs={Verb.CREATE}))


def test_writes_are_counted_by_verb_resource_and_result() -> None:
    async def scene(env: InProcess) -> None:
        metrics = Metrics()
        pod = await env.add_pod("taken")
        plan = Plan(
            phases=(
                single(
                    "p",
                    new_pod("a"),
                    new_pod("taken"),
                    label("taken", pod.metadata.uid, subresource="status"),
                    on_error=OnError.CONTINUE,
                ),
            )
        )
        await applier(env, metrics=metrics).apply(plan)

        def count(verb: str, resource: str, result: str) -> float | None:
            labels = {"verb": verb, "resource": resource, "result": result}
            return metrics.registry.get_sample_value("kruise_writes_total", labels)

        assert count("create", "pods", "done") == 1
        assert count("create", "pods", "failed") == 1
        assert count("patch", "pods/status", "done") == 1
        assert metrics.registry.get_sample_value("kruise_write_limit") == 8
        assert metrics.registry.get_sample_value("kruise_writes_in_flight") == 0

    run(scene)


def test_a_phase_is_skipped_when_an_earlier_one_changed_what_it_was_decided_about() -> None:
    async def scene(env: InProcess) -> None:
        scale = single("scale", new_pod("a"), on_error=OnError.STOP_PHASE)
        update = dataclasses.replace(single("update", new_pod("b")), unless_done=("scale",))
        refused = single("scale", new_pod("refused"), on_error=OnError.STOP_PHASE)
        lost = single("scale", new_pod("lost"), on_error=OnError.STOP_PHASE)
        after_a_change = await applier(env).apply(Plan(phases=(scale, update)))
        after_a_failure = await applier(env).apply(Plan(phases=(refused, update)))
        assert [outcome.result for outcome in after_a_change] == [Result.DONE, Result.SKIPPED]
        assert [outcome.result for outcome in after_a_failure] == [Result.FAILED, Result.DONE]
        env.faults.add(Rule(DropAfter(), verbs={Verb.CREATE}))
        after_no_answer = await applier(env, patience=Patience(attempts=1)).apply(Plan(phases=(lost, update)))
        assert [outcome.result for outcome in after_no_answer] == [Result.UNKNOWN, Result.SKIPPED]

    run(scene, Rule(Answer(403, "Forbidden"), verbs={Verb.CREATE}, calls={2}))


def test_a_phase_that_has_taken_its_time_begins_no_further_chain() -> None:
    """Chains that are under way come to their end; the rest is left to the next decision."""

    async def scene(env: InProcess) -> None:
        chains = tuple((new_pod(f"p{i}"), new_pod(f"q{i}")) for i in range(6))
        plan = Plan(phases=(Phase(name="long", chains=chains, pause_after=2.5),))
        limiter = WriteLimiter(clock=env.clock, initial=2, maximum=2)
        outcomes = await applier(env, limiter=limiter).apply(plan)
        results = [outcome.result for outcome in outcomes]
        assert results[:8] == [Result.DONE] * 8
        assert results[8::2] == [Result.DEFERRED] * 2
        assert results[9::2] == [Result.SKIPPED] * 2

    run(scene, Rule(Delay(1.0), verbs={Verb.CREATE}))


@pytest.mark.parametrize(
    ("fault", "expected"), [(DropBefore(), Result.DEFERRED), (DropAfter(), Result.UNKNOWN), (None, Result.DONE)]
)
def test_what_was_permitted_for_a_while_is_not_sent_later_not_even_again(
    fault: DropBefore | DropAfter | None, expected: Result
) -> None:
    """A chain that waits in line for longer, and a write that has to be tried again, are decided anew."""

    async def scene(env: InProcess) -> None:
        soon = env.clock.now() + timedelta(seconds=1.5)
        chains = ((new_pod("first"), new_pod("second")), (new_pod("late"),))
        limiter = WriteLimiter(clock=env.clock, initial=1, maximum=1)
        plan = Plan(phases=(Phase(name="permitted", chains=chains, on_error=OnError.CONTINUE, not_after=soon),))
        outcomes = await applier(env, limiter=limiter, patience=Patience(first_delay=2.0)).apply(plan)
        results = {outcome.action.target.name: outcome.result for outcome in outcomes}
        assert results["first"] is expected
        assert results["late"] is Result.DEFERRED

    rules = [Rule(Delay(1.0), verbs={Verb.CREATE})]
    run(scene, *rules, *([Rule(fault, verbs={Verb.CREATE}, calls={1})] if fault is not None else []))


# Properties

FAULTS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                DropBefore(),
                DropBefore(sent=True),
                DropAfter(),
                DropAfter(timeout=3),
                Duplicate(),
                Delay(0.5),
                Answer(409, "Conflict"),
                Answer(422, "Invalid"),
                Answer(429, "TooManyRequests", retry_after=1),
                Answer(500, "InternalError"),
                Answer(504, "Timeout"),
            ]
        ),
        st.sets(st.integers(1, 30), max_size=6),
    ),
    max_size=4,
)
PLANS = st.lists(
    st.tuples(
        st.lists(st.integers(1, 3), max_size=8),
        st.sampled_from(OnError),
        st.booleans(),
    ),
    max_size=3,
)


@settings(max_examples=40 * EXAMPLES, deadline=None)
@given(shape=PLANS, faults=FAULTS, limit=st.integers(1, 8))
def test_rules_of_chains_and_phases_hold_under_any_faults(
    shape: list[tuple[list[int], OnError, bool]], faults: list[tuple[Any, set[int]]], limit: int
) -> None:
    """No action after one of its chain that did not succeed; stop rules; slow start tries at most 2n + 1; what is
    said to be done exists, what is said to have failed or was skipped does not."""

    async def main() -> None:
        env = InProcess([Rule(fault, verbs={Verb.CREATE}, calls=calls) for fault, calls in faults])
        phases = tuple(
            Phase(
                name=str(p),
                chains=tuple(tuple(new_pod(f"p{p}c{c}a{a}") for a in range(n)) for c, n in enumerate(chains)),
                on_error=on_error,
                slow_start=slow,
            )
            for p, (chains, on_error, slow) in enumerate(shape)
        )
        plan = Plan(phases=phases)
        limiter = WriteLimiter(clock=env.clock, initial=limit, maximum=8)
        outcomes = await applier(env, limiter=limiter).apply(plan)
        assert [outcome.action for outcome in outcomes] == list(plan.actions())
        assert limiter.in_flight == 0
        by_action: dict[int, Outcome] = {id(outcome.action): outcome for outcome in outcomes}
        exist = set(await env.pods())
        for outcome in outcomes:
            name = outcome.action.target.name
            if outcome.result is Result.DONE:
                assert name in exist
            elif outcome.result in (Result.SKIPPED, Result.FAILED):
                assert name not in exist
        stopped = False
        for one in phases:
            said = [[by_action[id(action)].result for action in chain] for chain in one.chains]
            begun = [chain for chain in said if chain[0] is not Result.SKIPPED]
            succeeded = [chain for chain in begun if all(result is Result.DONE for result in chain)]
            for chain in said:
                after_the_end = chain[[*(result is Result.DONE for result in chain), False].index(False) + 1 :]
                assert all(result is Result.SKIPPED for result in after_the_end)
            if stopped:
                assert begun == []
            if one.slow_start:
                assert len(begun) <= 2 * len(succeeded) + 1
            trouble = any(result in (Result.FAILED, Result.UNKNOWN) for chain in said for result in chain)
            if not trouble and not one.slow_start and not stopped:
                assert len(begun) == len(said)
            if one.on_error is OnError.STOP_PLAN and len(succeeded) < len(said):
                stopped = True

    run_virtual(main())
