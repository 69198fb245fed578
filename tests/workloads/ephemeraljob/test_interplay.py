"""EphemeralJobs beside other kinds, on the local cluster and virtual time."""

from __future__ import annotations

import pytest

from kruise.api.apps.containerrecreaterequest import REQUESTS
from kruise.api.apps.ephemeraljob import EPHEMERAL_JOBS
from kruise.api.native.pod import PODS
from kruise.kinds import feature_of
from kruise.local.inprocess import InProcessTransport
from kruise.machinery.client.errors import InvalidError
from kruise.machinery.client.requests import PatchType, Verb
from kruise.manager.installation.manifests import manifests
from tests.operations.recreate.scenes import request
from tests.scenarios.ephemeral import ENDLESS, EphemeralStage
from tests.support.faults import Delay, FaultyTransport, Rule
from tests.support.world import Json, LocalWorld, run_local
from tests.workloads.ephemeraljob.model import job, plan_of, pod


def test_a_container_is_recreated_beside_one_of_a_job() -> None:
    """EJ-65: the request succeeds, and the ephemeral container is not touched."""

    async def story(world: LocalWorld) -> None:
        stage = EphemeralStage(world, gates=world.options.gates)
        [pod] = await stage.start(replicas=1)
        await stage.begin(command=ENDLESS)
        await stage.counts(running=1)
        [before] = await stage.served()
        await world.create(request("main", pod=pod["metadata"]["name"]))

        async def done() -> Json:
            found = await world.get(REQUESTS, "r")
            states = found.get("status", {}).get("containerRecreateStates", [])
            assert [one["phase"] for one in states] == ["Succeeded"], found.get("status")
            return found

        await world.until(done, within=120)
        [after] = await stage.served()
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert after["status"]["containerStatuses"][0]["restartCount"] == 1
        assert after["status"]["ephemeralContainerStatuses"] == before["status"]["ephemeralContainerStatuses"]
        assert (await stage.status())["running"] == 1

    run_local(story, nodes=1)


def test_a_name_that_is_taken_meanwhile_is_left_to_who_has_it() -> None:
    """EJ-42: the server refuses to change a container of somebody else; EJ-5: fields that do not exist are pruned."""

    async def story(world: LocalWorld) -> None:
        stage = EphemeralStage(world, gates=world.options.gates)
        [target] = await stage.start(replicas=1)
        name = target["metadata"]["name"]
        made = await stage.begin("other", command=ENDLESS, ttlSecondsAfterCreated=5)
        assert "ttlSecondsAfterCreated" not in made["spec"]
        await stage.counts("other", running=1)
        # Decided before the other one came.
        late = next(action for action in plan_of(job(), pod(1)).actions() if action.subresource)
        assert late.body["spec"]["ephemeralContainers"][0]["name"] == "dbg"
        late.body["spec"]["ephemeralContainers"][0]["name"] = "other"
        [before] = await stage.served("other")
        with pytest.raises(InvalidError):
            await world.patch(
                PODS,
                name,
                {"spec": late.body["spec"]},
                subresource="ephemeralcontainers",
                patch_type=PatchType.STRATEGIC,
            )
        [after] = await stage.served("other")
        assert after["spec"]["ephemeralContainers"] == before["spec"]["ephemeralContainers"]

    run_local(story, nodes=1)


def test_its_own_injections_are_seen_at_once_so_nobody_is_served_twice() -> None:
    """EJ-36, EJ-39, EJ-54: the watch on pods lags, and there is nothing that expects what was written."""

    async def story(world: LocalWorld) -> None:
        inner = InProcessTransport(world.cluster.core)
        lagging = FaultyTransport(inner, seed=1, clock=world.clock)
        injections = Rule(Delay(0), verbs={Verb.PATCH}, resource="pods", subresource="ephemeralcontainers")
        lagging.add(injections, Rule(Delay(20), verbs={Verb.WATCH}, resource="pods"))
        world.start_manager(lagging)
        stage = EphemeralStage(world, gates=world.options.gates)
        await stage.start(replicas=3)
        await world.sleep(25)
        inner.cut_watches()
        await stage.begin(command=ENDLESS, parallelism=2)
        for look in range(10):
            await world.sleep(1)
            await world.patch(EPHEMERAL_JOBS, "dbg", {"spec": {"activeDeadlineSeconds": 100 + look}})
        served = [entry.request.name for entry in lagging.injected(Delay) if entry.request.verb is Verb.PATCH]
        assert len(served) == len(set(served)) == 2

    run_local(story, nodes=1, start=False)


def test_its_controller_may_do_what_it_needs() -> None:
    """EJ-61."""
    feature = feature_of("apps.kruise.io", "EphemeralJob")
    assert feature is not None
    may: dict[str, set[str]] = {}
    for role in (found for found in manifests([feature]) if found["kind"] == "ClusterRole"):
        for rule in role["rules"]:
            for one in rule["resources"]:
                may.setdefault(one, set()).update(rule["verbs"])
    assert {"get", "list", "watch", "update", "patch", "delete"} <= may["ephemeraljobs"]
    assert {"get", "update", "patch"} <= may["ephemeraljobs/status"] & may["pods/ephemeralcontainers"]
    assert {"get", "list", "watch"} <= may["pods"]
