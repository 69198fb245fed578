"""StatefulSets on virtual time, with a kubelet that only moves the status of pods."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.api.meta import Condition, ObjectMeta, OwnerReference
from kruise.api.native.apps import CONTROLLER_REVISIONS
from kruise.api.native.pod import PODS, Pod, PodSpec, PodStatus, is_ready
from kruise.local.collector import GarbageCollector, of_registry
from kruise.local.storage_binding.objects import CLAIMS, Claim
from kruise.local.workloads import specs, statefulset
from kruise.local.workloads.objects import STATEFUL_SETS, StatefulSet
from kruise.machinery.client.errors import ApiError
from kruise.machinery.client.requests import PatchType, Verb
from kruise.machinery.clock import run_virtual
from kruise.machinery.codec import convert, evolve
from tests.local.workloads import bodies
from tests.local.workloads.world import Habits, World
from tests.support.background import in_background
from tests.support.examples import EXAMPLES

NOW = datetime(2030, 1, 1, tzinfo=UTC)
Scenario = Callable[[World], Awaitable[None]]
PARALLEL = {"podManagementPolicy": "Parallel"}


def play(scenario: Scenario, habits: Habits | None = None, *, collects: bool = False) -> None:
    async def main() -> None:
        world = World(specs, habits=habits)
        async with world.running():
            if not collects:
                await scenario(world)
                return
            collector = GarbageCollector(world.client, clock=world.clock, discover=of_registry(world.core.registry))
            async with in_background(collector.run()):
                await asyncio.sleep(1)
                await scenario(world)

    run_virtual(main())


async def make(world: World, replicas: int, **spec: Any) -> None:
    await world.create(STATEFUL_SETS, bodies.stateful_set("web", replicas, **spec))


async def change(world: World, spec: dict[str, Any]) -> None:
    await world.patch(STATEFUL_SETS, "web", {"spec": spec})


async def set_image(world: World, image: str) -> None:
    await world.patch(STATEFUL_SETS, "web", bodies.image(image), patch_type=PatchType.STRATEGIC)


async def images(world: World) -> dict[str, str]:
    return {name: pod.spec.containers[0].image for name, pod in (await world.pods()).items()}


async def status_of(world: World) -> Any:
    return (await world.get(STATEFUL_SETS, "web")).status


class Births:
    """The order in which pods are started, and how many were down when each was."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def start(self, pod: Pod) -> float:
        self.names.append(pod.metadata.name)
        return 1.0


def test_pods_come_one_after_the_other_with_their_identity() -> None:
    births = Births()

    async def scenario(world: World) -> None:
        await make(world, 3)
        await asyncio.sleep(0.5)
        assert list(await world.pods()) == ["web-0"]
        await asyncio.sleep(10)
        pods = await world.pods()
        assert births.names == ["web-0", "web-1", "web-2"]
        status = await status_of(world)
        pod = pods["web-2"]
        assert pod.metadata.labels == {
            "app": "web",
            "statefulset.kubernetes.io/pod-name": "web-2",
            "apps.kubernetes.io/pod-index": "2",
            "controller-revision-hash": status.current_revision,
        }
        assert pod.metadata.generate_name == "web-"
        raw = world.core.storage.get(PODS.group_resource, ("default", "web-2"))
        assert (raw["spec"]["hostname"], raw["spec"]["subdomain"]) == ("web-2", "web")
        (owner,) = pod.metadata.owner_references
        assert (owner.kind, owner.name, owner.controller, owner.block_owner_deletion) == (
            "StatefulSet",
            "web",
            True,
            True,
        )
        assert (status.replicas, status.ready_replicas, status.available_replicas) == (3, 3, 3)
        assert (status.current_replicas, status.updated_replicas) == (3, 3)
        assert status.current_revision == status.update_revision
        assert status.collision_count == 0
        assert await world.messages("statefulset-controller") == [
            ("SuccessfulCreate", f"create Pod web-{ordinal} in StatefulSet web successful") for ordinal in range(3)
        ]

    play(scenario, Habits(start=births.start))


def test_a_pod_that_is_not_ready_holds_up_the_next() -> None:
    async def scenario(world: World) -> None:
        await make(world, 3)
        await asyncio.sleep(20)
        assert list(await world.pods()) == ["web-0", "web-1"]
        assert (await status_of(world)).ready_replicas == 1

    play(scenario, Habits(ready=lambda pod: pod.metadata.name != "web-1"))


def test_parallel_pods_come_and_go_together() -> None:
    async def scenario(world: World) -> None:
        await make(world, 5, **PARALLEL)
        await asyncio.sleep(0.5)
        assert len(await world.pods()) == 5
        await asyncio.sleep(5)
        await change(world, {"replicas": 1})
        await asyncio.sleep(0.2)
        pods = await world.pods()
        assert sorted(name for name, pod in pods.items() if pod.metadata.deletion_timestamp) == [
            "web-1",
            "web-2",
            "web-3",
            "web-4",
        ]

    play(scenario)


def test_a_smaller_size_takes_the_highest_ordinal_first_and_one_at_a_time() -> None:
    async def scenario(world: World) -> None:
        await make(world, 4)
        await asyncio.sleep(10)
        await change(world, {"replicas": 1})
        await asyncio.sleep(0.2)
        pods = await world.pods()
        assert [name for name, pod in pods.items() if pod.metadata.deletion_timestamp] == ["web-3"]
        await asyncio.sleep(10)
        assert list(await world.pods()) == ["web-0"]
        deleted = [text for reason, text in await world.messages() if reason == "SuccessfulDelete"]
        assert deleted == [f"delete Pod web-{ordinal} in StatefulSet web successful" for ordinal in (3, 2, 1)]

    play(scenario)


def test_ordinals_may_start_anywhere_and_move() -> None:
    async def scenario(world: World) -> None:
        await make(world, 2, ordinals={"start": 5}, **PARALLEL)
        await asyncio.sleep(5)
        assert list(await world.pods()) == ["web-5", "web-6"]
        await change(world, {"ordinals": {"start": 6}})
        await asyncio.sleep(5)
        assert list(await world.pods()) == ["web-6", "web-7"]
        assert (await status_of(world)).replicas == 2

    play(scenario)


def test_a_new_revision_goes_from_the_highest_ordinal_down_one_pod_at_a_time() -> None:
    births = Births()

    async def scenario(world: World) -> None:
        await make(world, 3)
        await asyncio.sleep(10)
        before = await status_of(world)
        await set_image(world, "app:2")
        await asyncio.sleep(1.2)
        middle = await status_of(world)
        assert middle.current_revision == before.current_revision != middle.update_revision
        assert (middle.current_replicas, middle.updated_replicas) == (2, 1)
        await asyncio.sleep(15)
        assert set((await images(world)).values()) == {"app:2"}
        assert births.names[3:] == ["web-2", "web-1", "web-0"]
        after = await status_of(world)
        assert after.current_revision == after.update_revision == middle.update_revision
        assert (after.current_replicas, after.updated_replicas) == (3, 3)

    play(scenario, Habits(start=births.start))


def test_a_partition_keeps_lower_ordinals_and_their_revision() -> None:
    async def scenario(world: World) -> None:
        await make(world, 4, updateStrategy={"rollingUpdate": {"partition": 2}})
        await asyncio.sleep(10)
        await set_image(world, "app:2")
        await asyncio.sleep(15)
        assert await images(world) == {"web-0": "app:1", "web-1": "app:1", "web-2": "app:2", "web-3": "app:2"}
        await world.delete(PODS, "web-1")
        await asyncio.sleep(5)
        assert (await images(world))["web-1"] == "app:1"
        status = await status_of(world)
        assert (status.current_replicas, status.updated_replicas) == (2, 2)
        await change(world, {"updateStrategy": {"rollingUpdate": {"partition": 0}}})
        await asyncio.sleep(15)
        assert set((await images(world)).values()) == {"app:2"}

    play(scenario)


def test_on_delete_waits_for_somebody_to_delete() -> None:
    async def scenario(world: World) -> None:
        await make(world, 2, updateStrategy={"type": "OnDelete"})
        await asyncio.sleep(10)
        await set_image(world, "app:2")
        await asyncio.sleep(10)
        assert set((await images(world)).values()) == {"app:1"}
        await world.delete(PODS, "web-0")
        await asyncio.sleep(10)
        assert await images(world) == {"web-0": "app:2", "web-1": "app:1"}
        status = await status_of(world)
        assert status.current_revision != status.update_revision

    play(scenario)


def test_min_ready_seconds_hold_up_the_next_pod() -> None:
    async def scenario(world: World) -> None:
        await make(world, 2, minReadySeconds=20)
        await asyncio.sleep(15)
        status = await status_of(world)
        assert (status.ready_replicas, status.available_replicas) == (1, 0)
        assert list(await world.pods()) == ["web-0"]
        await asyncio.sleep(10)
        assert list(await world.pods()) == ["web-0", "web-1"]
        await asyncio.sleep(25)
        assert (await status_of(world)).available_replicas == 2

    play(scenario)


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_pod_that_ends_is_made_again(phase: str) -> None:
    async def scenario(world: World) -> None:
        await make(world, 2)
        await asyncio.sleep(10)
        before = await world.pods()
        await world.patch(PODS, "web-0", {"status": {"phase": phase}}, subresource="status")
        await asyncio.sleep(10)
        after = await world.pods()
        assert after["web-0"].metadata.uid != before["web-0"].metadata.uid
        assert is_ready(after["web-0"])
        assert after["web-1"].metadata.uid == before["web-1"].metadata.uid

    play(scenario)


def test_a_broken_revision_holds_up_its_own_repair_when_pods_are_in_order() -> None:
    """The best-known trap of this kind: somebody has to delete the broken pod."""

    async def scenario(world: World) -> None:
        await make(world, 2)
        await asyncio.sleep(10)
        await set_image(world, "broken")
        await asyncio.sleep(10)
        await set_image(world, "app:2")
        await asyncio.sleep(30)
        assert await images(world) == {"web-0": "app:1", "web-1": "broken"}
        await world.delete(PODS, "web-1")
        await asyncio.sleep(10)
        assert set((await images(world)).values()) == {"app:2"}

    play(scenario, Habits(ready=lambda pod: pod.spec.containers[0].image != "broken"))


def test_parallel_pods_are_repaired_by_the_next_revision() -> None:
    async def scenario(world: World) -> None:
        await make(world, 2, **PARALLEL)
        await asyncio.sleep(10)
        await set_image(world, "broken")
        await asyncio.sleep(10)
        assert await images(world) == {"web-0": "app:1", "web-1": "broken"}
        await set_image(world, "app:2")
        await asyncio.sleep(10)
        assert set((await images(world)).values()) == {"app:2"}

    play(scenario, Habits(ready=lambda pod: pod.spec.containers[0].image != "broken"))


# Claims


def test_claims_come_before_their_pods_and_stay() -> None:
    async def scenario(world: World) -> None:
        template = bodies.claim_template(labels={"tier": "db"}, annotations={"note": "x"})
        await make(world, 2, volumeClaimTemplates=[template])
        await asyncio.sleep(10)
        claims = {claim.metadata.name: claim for claim in await world.list(CLAIMS)}
        assert list(claims) == ["data-web-0", "data-web-1"]
        first = claims["data-web-0"].metadata
        assert (first.labels, first.annotations) == ({"tier": "db", "app": "web"}, {"note": "x"})
        assert first.owner_references == ()
        pod = (await world.pods())["web-0"]
        (volume,) = [item for item in pod.spec.volumes if item.name == "data"]
        assert volume.persistent_volume_claim is not None
        assert volume.persistent_volume_claim.claim_name == "data-web-0"
        messages = await world.messages("statefulset-controller")
        assert messages[:2] == [
            ("SuccessfulCreate", "create Claim data-web-0 Pod web-0 in StatefulSet web success"),
            ("SuccessfulCreate", "create Pod web-0 in StatefulSet web successful"),
        ]
        await change(world, {"replicas": 1})
        await asyncio.sleep(5)
        await change(world, {"replicas": 2})
        await asyncio.sleep(5)
        again = {claim.metadata.name: claim.metadata.uid for claim in await world.list(CLAIMS)}
        assert again == {name: claim.metadata.uid for name, claim in claims.items()}

    play(scenario, collects=True)


def owners(claim: Any) -> list[tuple[str, str, bool]]:
    return [(item.kind, item.name, item.controller) for item in claim.metadata.owner_references]


def test_claims_go_with_the_set_or_with_the_size() -> None:
    async def scenario(world: World) -> None:
        policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
        claims = [bodies.claim_template()]
        await make(world, 2, volumeClaimTemplates=claims, persistentVolumeClaimRetentionPolicy=policy)
        await asyncio.sleep(10)
        before = {claim.metadata.name: claim for claim in await world.list(CLAIMS)}
        assert {name: owners(claim) for name, claim in before.items()} == {
            "data-web-0": [("StatefulSet", "web", True)],
            "data-web-1": [("StatefulSet", "web", True)],
        }
        await change(world, {"replicas": 1})
        await asyncio.sleep(0.2)
        assert owners(await world.get(CLAIMS, "data-web-1")) == [("Pod", "web-1", True)]
        await asyncio.sleep(10)
        assert [claim.metadata.name for claim in await world.list(CLAIMS)] == ["data-web-0"]
        await change(world, {"replicas": 2})
        await asyncio.sleep(10)
        assert (await world.get(CLAIMS, "data-web-1")).metadata.uid != before["data-web-1"].metadata.uid
        await world.delete(STATEFUL_SETS, "web", propagation="Background")
        await asyncio.sleep(10)
        assert await world.list(CLAIMS) == ()

    play(scenario, collects=True)


def test_a_size_that_comes_back_at_once_gets_a_new_claim() -> None:
    """The claim is lost already when the pod is on its way out, so the next pod waits until it is gone."""

    async def scenario(world: World) -> None:
        policy = {"whenScaled": "Delete"}
        claims = [bodies.claim_template()]
        await make(world, 2, volumeClaimTemplates=claims, persistentVolumeClaimRetentionPolicy=policy)
        await asyncio.sleep(10)
        before = (await world.get(CLAIMS, "data-web-1")).metadata.uid
        await change(world, {"replicas": 1})
        await asyncio.sleep(0.2)
        await change(world, {"replicas": 2})
        await asyncio.sleep(10)
        assert is_ready((await world.pods())["web-1"])
        claim = await world.get(CLAIMS, "data-web-1")
        assert (claim.metadata.uid != before, owners(claim)) == (True, [])

    play(scenario, collects=True)


def test_a_changed_policy_changes_the_owners() -> None:
    async def scenario(world: World) -> None:
        await make(world, 1, volumeClaimTemplates=[bodies.claim_template()])
        await asyncio.sleep(5)
        await change(world, {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"}})
        await asyncio.sleep(5)
        assert owners(await world.get(CLAIMS, "data-web-0")) == [("StatefulSet", "web", True)]
        assert ("SuccessfulUpdate", "update Pod web-0 in StatefulSet web successful") in await world.messages()
        await change(world, {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain"}})
        await asyncio.sleep(5)
        assert owners(await world.get(CLAIMS, "data-web-0")) == []

    play(scenario)


def test_a_pod_is_not_written_where_only_the_owners_of_its_claims_are_wrong() -> None:
    stateful_set = _set(
        replicas=1,
        volumeClaimTemplates=[bodies.claim_template()],
        persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete"},
    )
    claim = convert({"metadata": {"name": "data-web-0", "namespace": "default", "uid": "claim-0"}}, Claim)
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}}
    pod = evolve(_pod(0, "old"), spec=convert({"volumes": [volume]}, PodSpec))
    snapshot = statefulset.Snapshot(
        now=NOW, stateful_set=stateful_set, pods=(pod,), orphans=(), revisions=(), claims=(claim,), deleted=()
    )
    [phase] = [phase for phase in statefulset.decide(snapshot).phases if phase.name == "replicas"]
    assert [[action.target.resource for action in chain] for chain in phase.chains] == [[CLAIMS]]


def test_a_claim_that_somebody_else_manages_is_left_alone() -> None:
    async def scenario(world: World) -> None:
        other = {"apiVersion": "v1", "kind": "Other", "name": "boss", "uid": "u-1", "controller": True}
        body = bodies.claim_template("data-web-0", ownerReferences=[other])
        await world.create(CLAIMS, body)
        policy = {"whenDeleted": "Delete"}
        claims = [bodies.claim_template()]
        await make(world, 1, volumeClaimTemplates=claims, persistentVolumeClaimRetentionPolicy=policy)
        await asyncio.sleep(5)
        assert owners(await world.get(CLAIMS, "data-web-0")) == [("Other", "boss", True)]
        assert "ConflictingController" in {reason for reason, _ in await world.messages()}

    play(scenario)


def test_a_pod_waits_for_a_claim_that_is_being_deleted() -> None:
    async def scenario(world: World) -> None:
        await world.create(CLAIMS, bodies.claim_template("data-web-0", finalizers=["example.com/hold"]))
        await world.delete(CLAIMS, "data-web-0")
        await make(world, 1, volumeClaimTemplates=[bodies.claim_template()])
        await asyncio.sleep(5)
        assert await world.pods() == {}
        message = "create Pod web-0 in StatefulSet web failed error: pvc data-web-0 is being deleted"
        assert ("FailedCreate", message) in await world.messages()
        await world.patch(CLAIMS, "data-web-0", {"metadata": {"finalizers": None}})
        await asyncio.sleep(5)
        assert list(await world.pods()) == ["web-0"]

    play(scenario)


# Revisions, adoption, the API


def test_going_back_takes_the_old_revision_and_history_is_limited() -> None:
    async def scenario(world: World) -> None:
        await make(world, 1, revisionHistoryLimit=1)
        await asyncio.sleep(5)
        first = (await status_of(world)).current_revision
        for image in ("app:2", "app:3"):
            await set_image(world, image)
            await asyncio.sleep(5)
        known = {item.metadata.name for item in await world.list(CONTROLLER_REVISIONS)}
        assert len(known) == 2
        assert first not in known
        await set_image(world, "app:2")
        await asyncio.sleep(5)
        after = {item.metadata.name: item.revision for item in await world.list(CONTROLLER_REVISIONS)}
        assert set(after) == known
        assert after[(await status_of(world)).current_revision] == 4

    play(scenario)


def test_a_name_that_is_taken_counts_as_a_collision() -> None:
    async def scenario(world: World) -> None:
        await make(world, 0)
        await asyncio.sleep(2)
        (revision,) = await world.list(CONTROLLER_REVISIONS)
        await world.delete(STATEFUL_SETS, "web", propagation="Background")
        await world.delete(CONTROLLER_REVISIONS, revision.metadata.name)
        other = {"metadata": {"name": revision.metadata.name}, "revision": 1, "data": {"other": "thing"}}
        await world.create(CONTROLLER_REVISIONS, other)
        await make(world, 1)
        await asyncio.sleep(5)
        status = await status_of(world)
        assert status.collision_count == 1
        assert status.current_revision != revision.metadata.name

    play(scenario)


def test_orphans_with_a_fitting_name_are_adopted_and_labelled_strangers_released() -> None:
    async def scenario(world: World) -> None:
        for name in ("web-0", "web-00", "other-1"):
            await world.create(PODS, bodies.pod(name, labels={"app": "web"}))
        await make(world, 2)
        await asyncio.sleep(10)
        pods = await world.pods()
        assert pods["web-0"].metadata.owner_references[0].name == "web"
        assert pods["web-0"].metadata.labels["statefulset.kubernetes.io/pod-name"] == "web-0"
        assert pods["other-1"].metadata.owner_references == ()
        uid = pods["web-1"].metadata.uid
        await world.patch(PODS, "web-1", {"metadata": {"labels": {"app": "else"}}})
        await asyncio.sleep(5)
        released = (await world.pods())["web-1"]
        assert (released.metadata.uid, released.metadata.owner_references) == (uid, ())

    play(scenario)


def test_the_scale_subresource_and_what_may_not_change() -> None:
    async def scenario(world: World) -> None:
        await make(world, 1, updateStrategy={"rollingUpdate": {"maxUnavailable": 2}})
        found = await world.get(STATEFUL_SETS, "web")
        assert found.spec.update_strategy.rolling_update.max_unavailable is None  # a feature of later versions
        await world.patch(STATEFUL_SETS, "web", {"spec": {"replicas": 2}}, subresource="scale")
        await asyncio.sleep(5)
        assert len(await world.pods()) == 2
        with pytest.raises(ApiError, match="updates to statefulset spec for fields other than"):
            await change(world, {"serviceName": "other"})

    play(scenario)


# Pure


def _set(**spec: Any) -> StatefulSet:
    body = bodies.stateful_set("web", spec.pop("replicas", 4), **spec)
    body["metadata"] |= {"namespace": "default", "uid": "set-1", "generation": 1}
    return convert(body, StatefulSet)


def _pod(ordinal: int, revision: str, *, ready: bool = True, phase: str = "Running") -> Pod:
    name = f"web-{ordinal}"
    labels = {"app": "web", "statefulset.kubernetes.io/pod-name": name, "controller-revision-hash": revision}
    owner = OwnerReference(api_version="apps/v1", kind="StatefulSet", name="web", uid="set-1", controller=True)
    metadata = ObjectMeta(
        name=name, namespace="default", uid=f"pod-{ordinal}", labels=labels, owner_references=(owner,)
    )
    status = PodStatus(phase=phase, conditions=(Condition(type="Ready", status="True" if ready else "False"),))
    return Pod(metadata=metadata, status=status)


def _decide(stateful_set: StatefulSet, pods: tuple[Pod, ...], deleted: tuple[str, ...] = ()) -> dict[str, list[str]]:
    """The names of the pods that are made and deleted, by phase."""
    snapshot = statefulset.Snapshot(
        now=NOW, stateful_set=stateful_set, pods=pods, orphans=(), revisions=(), claims=(), deleted=deleted
    )
    plan = statefulset.decide(snapshot)
    named = {
        phase.name: [action.target.name for chain in phase.chains for action in chain if action.target.resource is PODS]
        for phase in plan.phases
    }
    return {name: pods for name, pods in named.items() if pods}


def test_max_unavailable_lets_several_pods_go_where_a_set_has_it() -> None:
    """Sets of newer clusters bring the field along; here the API server drops it."""
    stateful_set = _set(replicas=5, updateStrategy={"rollingUpdate": {"maxUnavailable": "60%", "partition": 1}})
    pods = tuple(_pod(ordinal, "old") for ordinal in range(5))
    assert _decide(stateful_set, pods)["update"] == ["web-4", "web-3", "web-2"]
    broken = (_pod(0, "old", ready=False), *pods[1:])
    parallel = _set(replicas=5, updateStrategy={"rollingUpdate": {"maxUnavailable": 3}}, **PARALLEL)
    assert _decide(parallel, broken)["update"] == ["web-4", "web-3"]


@settings(max_examples=EXAMPLES)
@given(
    replicas=st.integers(0, 5),
    start=st.integers(0, 3),
    policy=st.sampled_from(["OrderedReady", "Parallel"]),
    partition=st.integers(0, 4),
    pods=st.dictionaries(
        st.integers(0, 8), st.tuples(st.booleans(), st.sampled_from(["Running", "Failed"])), max_size=7
    ),
    gone=st.sets(st.integers(0, 8), max_size=3),
)
def test_what_a_pass_may_do(
    replicas: int,
    start: int,
    policy: str,
    partition: int,
    pods: dict[int, tuple[bool, str]],
    gone: set[int],
) -> None:
    stateful_set = _set(
        replicas=replicas,
        podManagementPolicy=policy,
        ordinals={"start": start},
        updateStrategy={"rollingUpdate": {"partition": partition}},
    )
    made = tuple(_pod(ordinal, "old", ready=ready, phase=phase) for ordinal, (ready, phase) in pods.items())
    deleted = tuple(f"pod-{ordinal}" for ordinal in gone)
    snapshot = statefulset.Snapshot(
        now=NOW, stateful_set=stateful_set, pods=made, orphans=(), revisions=(), claims=(), deleted=deleted
    )
    plan = statefulset.decide(snapshot)
    assert plan == statefulset.decide(snapshot)
    actions = [action for action in plan.actions() if action.target.resource is PODS]
    created = [action.target.name for action in actions if action.verb is Verb.CREATE]
    removed = [action.target.name for action in actions if action.verb is Verb.DELETE]
    wanted = {f"web-{ordinal}" for ordinal in range(start, start + replicas)}
    there = {f"web-{ordinal}" for ordinal in pods}
    # One pod per ordinal: nothing is made where one still is, however much it is on its way out.
    assert set(created) <= wanted - there
    assert set(removed) <= there - {f"web-{ordinal}" for ordinal in gone}
    assert len(actions) == len({action.target.name for action in actions})
    updated = _decide(stateful_set, made, deleted).get("update", [])
    assert all(int(name[4:]) >= start + partition for name in updated)
    assert len(updated) <= 1
    if policy == "OrderedReady":
        assert len(actions) <= 1
