"""ReplicaSets on virtual time, with a kubelet that only moves the status of pods."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.api.meta import Condition, ObjectMeta, OwnerReference
from kruise.api.native.deletion_cost import DELETION_COST
from kruise.api.native.pod import PODS, ContainerStatus, Pod, PodSpec, PodStatus
from kruise.local.apicore import errors
from kruise.local.apicore.core import Call
from kruise.local.apicore.errors import Json
from kruise.local.workloads import replicaset, specs
from kruise.local.workloads.objects import REPLICA_SETS, ReplicaSet
from kruise.local.workloads.pods import first_to_go
from kruise.machinery.client.requests import Verb
from kruise.machinery.clock import run_virtual
from kruise.machinery.codec import convert
from kruise.machinery.plan import Outcomes
from tests.local.workloads import bodies
from tests.local.workloads.world import World
from tests.support.examples import EXAMPLES

NOW = datetime(2030, 1, 1, tzinfo=UTC)
Scenario = Callable[[World], Awaitable[None]]


def play(scenario: Scenario) -> None:
    async def main() -> None:
        world = World(specs)
        async with world.running():
            await scenario(world)

    run_virtual(main())


def test_pods_are_made_counted_and_told_of() -> None:
    async def scenario(world: World) -> None:
        await world.create(REPLICA_SETS, bodies.replica_set("web", 3))
        await asyncio.sleep(5)
        pods = await world.pods()
        assert len(pods) == 3
        for name, pod in pods.items():
            assert name.startswith("web-")
            assert len(name) == len("web-") + 5
            assert pod.metadata.generate_name == "web-"
            (owner,) = pod.metadata.owner_references
            assert (owner.kind, owner.name, owner.controller, owner.block_owner_deletion) == (
                "ReplicaSet",
                "web",
                True,
                True,
            )
        found = await world.get(REPLICA_SETS, "web")
        status = found.status
        assert (status.replicas, status.fully_labeled_replicas, status.ready_replicas, status.available_replicas) == (
            3,
            3,
            3,
            3,
        )
        assert status.observed_generation == found.metadata.generation
        expected = sorted(("SuccessfulCreate", f"Created pod: {name}") for name in pods)
        assert sorted(await world.messages("replicaset-controller")) == expected

    play(scenario)


def test_a_smaller_size_removes_pods_and_a_larger_one_adds() -> None:
    async def scenario(world: World) -> None:
        await world.create(REPLICA_SETS, bodies.replica_set("web", 4))
        await asyncio.sleep(5)
        before = set(await world.pods())
        await world.patch(REPLICA_SETS, "web", {"spec": {"replicas": 1}})
        await asyncio.sleep(5)
        left = set(await world.pods())
        assert len(left) == 1
        assert left < before
        deleted = [message for reason, message in await world.messages() if reason == "SuccessfulDelete"]
        assert sorted(deleted) == sorted(f"Deleted pod: {name}" for name in before - left)
        await world.patch(REPLICA_SETS, "web", {"spec": {"replicas": 2}})
        await asyncio.sleep(5)
        assert len(await world.pods()) == 2

    play(scenario)


def test_a_pod_that_ends_or_goes_is_replaced() -> None:
    async def scenario(world: World) -> None:
        await world.create(REPLICA_SETS, bodies.replica_set("web", 2))
        await asyncio.sleep(5)
        first, second = await world.pods()
        await world.delete(PODS, first)
        await world.patch(PODS, second, {"status": {"phase": "Failed"}}, subresource="status")
        await asyncio.sleep(5)
        pods = await world.pods()
        running = [name for name, pod in pods.items() if pod.status.phase == "Running"]
        assert first not in pods
        assert len(running) == 2
        assert second in pods
        assert second not in running

    play(scenario)


def test_pods_count_as_available_after_min_ready_seconds() -> None:
    async def scenario(world: World) -> None:
        await world.create(REPLICA_SETS, bodies.replica_set("web", 2, minReadySeconds=30))
        await asyncio.sleep(10)
        status = (await world.get(REPLICA_SETS, "web")).status
        assert (status.ready_replicas, status.available_replicas) == (2, 0)
        await asyncio.sleep(25)
        assert (await world.get(REPLICA_SETS, "web")).status.available_replicas == 2

    play(scenario)


def test_orphans_are_adopted_and_strangers_released() -> None:
    async def scenario(world: World) -> None:
        await world.create(PODS, bodies.pod("lone", labels={"app": "web"}))
        await world.create(REPLICA_SETS, bodies.replica_set("web", 2))
        await asyncio.sleep(5)
        pods = await world.pods()
        assert len(pods) == 2
        assert pods["lone"].metadata.owner_references[0].name == "web"
        await world.create(PODS, bodies.pod("late", labels={"app": "web"}))
        await asyncio.sleep(5)
        assert len(await world.pods()) == 2
        (kept,) = [name for name in await world.pods() if name != "lone"][:1]
        await world.patch(PODS, kept, {"metadata": {"labels": {"app": "other"}}})
        await asyncio.sleep(5)
        pods = await world.pods()
        assert pods[kept].metadata.owner_references == ()
        assert len([pod for pod in pods.values() if pod.metadata.owner_references]) == 2

    play(scenario)


def test_a_refused_pod_is_shown_and_tried_again() -> None:
    """A pod that the server refuses costs one try at a time, an event and a condition; all is well once it is not."""

    async def scenario(world: World) -> None:
        tries: list[float] = []
        create = world.core.create

        async def refuse_five(call: Call, body: Json) -> Json:
            if call.kind.plural == "pods" and len(tries) < 5:
                tries.append(world.clock.monotonic())
                raise errors.forbidden("", "pods", "web", "no more pods")
            return await create(call, body)

        world.core.create = refuse_five  # type: ignore[method-assign]
        body = bodies.replica_set("web", 3)
        await world.create(REPLICA_SETS, body)
        await asyncio.sleep(0.1)
        found = await world.get(REPLICA_SETS, "web")
        (shown,) = found.status.conditions
        assert (shown.type, shown.status, shown.reason) == ("ReplicaFailure", "True", "FailedCreate")
        await asyncio.sleep(30)
        found = await world.get(REPLICA_SETS, "web")
        assert found.status.conditions == ()
        assert found.status.ready_replicas == 3
        failures = [message for reason, message in await world.messages() if reason == "FailedCreate"]
        assert failures
        assert all(message.startswith("Error creating: pods ") for message in failures)
        assert tries == sorted(set(tries))

    play(scenario)


def test_nothing_is_written_while_nothing_changes() -> None:
    async def scenario(world: World) -> None:
        await world.create(REPLICA_SETS, bodies.replica_set("web", 3, minReadySeconds=5))
        await asyncio.sleep(60)
        before = world.core.storage.version
        await asyncio.sleep(3600)
        assert world.core.storage.version == before

    play(scenario)


# Order of removal


def _pod(name: str, **more: object) -> Pod:
    node, phase, ready = more.get("node", "n"), more.get("phase", "Running"), more.get("ready", NOW)
    conditions = (Condition(type="Ready", status="True", last_transition_time=ready),) if ready else ()  # type: ignore[arg-type]
    return Pod(
        metadata=ObjectMeta(
            name=name,
            uid=name,
            creation_timestamp=more.get("made", NOW),  # type: ignore[arg-type]
            annotations={DELETION_COST: str(more["cost"])} if "cost" in more else {},
        ),
        spec=PodSpec(node_name=node),  # type: ignore[arg-type]
        status=PodStatus(
            phase=phase,  # type: ignore[arg-type]
            conditions=conditions,
            container_statuses=(ContainerStatus(restart_count=more.get("restarts", 0)),),  # type: ignore[arg-type]
        ),
    )


@pytest.mark.parametrize(
    ("first", "second", "beside"),
    [
        ({"node": ""}, {}, {}),
        ({"phase": "Pending"}, {"phase": "Running"}, {}),
        ({"ready": None}, {}, {}),
        ({"cost": -5}, {"cost": 3}, {}),
        ({"node": "crowded"}, {"node": "lonely"}, {"crowded": 3, "lonely": 1}),
        ({"ready": NOW - timedelta(seconds=2)}, {"ready": NOW - timedelta(hours=9)}, {}),
        ({"restarts": 4}, {"restarts": 1}, {}),
        ({"ready": None, "made": NOW - timedelta(seconds=2)}, {"ready": None, "made": NOW - timedelta(days=1)}, {}),
    ],
)
def test_order_of_removal(first: dict[str, object], second: dict[str, object], beside: dict[str, int]) -> None:
    """Each rule alone decides, whatever the names."""
    for names in (("a", "b"), ("b", "a")):
        pods = [_pod(names[0], **first), _pod(names[1], **second)]
        (gone,) = first_to_go(pods, 1, now=NOW, beside=beside)
        assert gone.metadata.name == names[0]


# Properties of a decision


@st.composite
def snapshots(draw: st.DrawFn) -> replicaset.Snapshot:
    body = bodies.replica_set("web", draw(st.integers(0, 8)))
    body["metadata"] |= {"namespace": "ns", "uid": "u", "generation": 1}
    replica_set = convert(body, ReplicaSet)
    owner = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="web", uid="u", controller=True)

    def pod(name: str, *, owned: bool) -> Pod:
        labels = draw(st.sampled_from([{"app": "web"}, {"app": "web", "x": "y"}, {"app": "other"}]))
        ready = draw(st.one_of(st.none(), st.integers(0, 100)))
        since = NOW - timedelta(seconds=ready) if ready is not None else None
        shown = (Condition(type="Ready", status="True", last_transition_time=since),) if since else ()
        return Pod(
            metadata=ObjectMeta(
                name=name,
                namespace="ns",
                uid=name,
                labels=labels,
                creation_timestamp=NOW,
                owner_references=(owner,) if owned else (),
            ),
            spec=PodSpec(node_name=draw(st.sampled_from(["", "n1", "n2"]))),
            status=PodStatus(phase="Running", conditions=shown),
        )

    owned = tuple(pod(f"web-{number}", owned=True) for number in range(draw(st.integers(0, 10))))
    orphans = tuple(pod(f"lone-{number}", owned=False) for number in range(draw(st.integers(0, 3))))
    return replicaset.Snapshot(replica_set=replica_set, pods=owned, orphans=orphans, now=NOW, seed=draw(st.integers(0)))


@given(snapshots())
@settings(max_examples=50 * EXAMPLES, deadline=None)
def test_a_decision_leads_to_the_wanted_size(snapshot: replicaset.Snapshot) -> None:
    """Creates and deletes make up the difference exactly, no pod twice, never both, and the same each time."""
    plan = replicaset.decide(snapshot)
    assert plan == replicaset.decide(snapshot)
    matching = {pod.metadata.uid for pod in (*snapshot.pods, *snapshot.orphans) if pod.metadata.labels["app"] == "web"}
    strangers = {pod.metadata.uid for pod in snapshot.pods} - matching
    creates = [action for action in plan.actions() if action.verb is Verb.CREATE]
    deletes = {action.uid for action in plan.actions() if action.verb is Verb.DELETE}
    released = {action.uid for action in plan.actions() if action.verb is Verb.PATCH and "$patch" in str(action.body)}
    assert not (creates and deletes)
    assert deletes <= matching
    assert released == strangers
    assert len(matching) + len(creates) - len(deletes) == replicaset.size(snapshot.replica_set)
    assert len({action.target.name for action in creates}) == len(creates)


@given(snapshots())
@settings(max_examples=100, deadline=None)
def test_counts_are_consistent(snapshot: replicaset.Snapshot) -> None:
    conclusion = replicaset.conclude(snapshot, replicaset.decide(snapshot), Outcomes())
    assert conclusion.status is not None
    status = conclusion.status.body[0]["value"]
    counts = [status.get(key, 0) for key in ("replicas", "readyReplicas", "availableReplicas")]
    assert counts == sorted(counts, reverse=True)
    assert status.get("fullyLabeledReplicas", 0) == status["replicas"]
