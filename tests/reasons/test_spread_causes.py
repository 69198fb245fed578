"""What `kruise why` says of pods that WorkloadSpreads and UnitedDeployments look at: these are not woken by everything
that happens to a pod, so what the journal has of it is soon old."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.api.apps.persistentpodstate import PERSISTENT_POD_STATES
from kruise.api.apps.workloadspread import WORKLOAD_SPREADS
from kruise.api.meta import Key
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS
from kruise.machinery.client.errors import ForbiddenError, Status
from kruise.reasons.links import Answer
from kruise.reasons.words import answer_lines
from tests.reasons.asking import ask, ask_both, ask_journal, codes
from tests.scenarios.podstate import HOST, PodStateStage
from tests.scenarios.stage import Stage
from tests.scenarios.united import UnitedStage
from tests.spread.workloadspread.stories import ZONE, create, spread, subset, workload, zones
from tests.support.world import LocalWorld, run_local


class SpreadStage(Stage):
    resource = WORKLOAD_SPREADS


async def all_run(world: LocalWorld, count: int) -> None:
    async def ready() -> None:
        pods = await world.pods()
        shown = [one["status"] for pod in pods for one in pod["status"].get("conditions", ()) if one["type"] == "Ready"]
        assert shown == ["True"] * count

    await world.until(ready)


@pytest.mark.parametrize("count", [3, 12])
def test_pods_of_a_spread_that_run_by_now_do_not_wait(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Few are read by their names, many by a list."""

    async def play(world: LocalWorld) -> None:
        stage = SpreadStage(world, gates=world.options.gates)
        await zones(world, "a", "b")
        await create(world, spread(subset("a", "a", 2), subset("b", "b")), workload(count))
        await all_run(world, count)
        await world.sleep(20)
        answer = await ask_both(stage, monkeypatch, "ws")
        assert (dict(answer.waiting), answer.available) == ({}, count)

    run_local(play)


def test_a_pod_that_is_gone_since_is_none_of_a_spread_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(world: LocalWorld) -> None:
        stage = SpreadStage(world, gates=world.options.gates)
        await zones(world, "a", "b")
        await create(world, spread(subset("a", "a", 2), subset("b", "b")), workload(2))
        await all_run(world, 2)
        kept = world.journal.dump("workloadspread-controller", Key(world.namespace, "ws"), causes_once=True)
        [first, second] = [pod["metadata"]["name"] for pod in await world.pods()]
        await world.client.delete(PODS, first, world.namespace, grace_period_seconds=0)
        monkeypatch.setattr(world.journal, "dump", lambda *_, **__: kept)
        answer = await ask_journal(stage, monkeypatch, "ws")
        assert list(answer.pods) == [second]

    run_local(play)


def test_who_may_read_no_pods_is_told_what_the_manager_saw(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(world: LocalWorld) -> None:
        stage = SpreadStage(world, gates=world.options.gates)
        await zones(world, "a", "b")
        await create(world, spread(subset("a", "a", 2), subset("b", "b")), workload(2))
        await all_run(world, 2)

        async def refused(*_: Any, **__: Any) -> Any:
            raise ForbiddenError(Status(code=403, message="pods are not for you"))

        monkeypatch.setattr("kruise.cli.deciding._as_they_are", refused)
        assert len((await ask_journal(stage, monkeypatch, "ws")).pods) == 2

    run_local(play)


def test_that_no_node_takes_a_pod_of_a_subset_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(world: LocalWorld) -> None:
        stage = SpreadStage(world, gates=world.options.gates)
        await zones(world, "a", "b")
        await create(world, spread(subset("c", "nowhere", 1), subset("a", "a")), workload(2))
        await world.sleep(20)
        answer = await ask_both(stage, monkeypatch, "ws")
        assert codes(answer) == {"subset-nodes"}
        [(name, _)] = answer.waiting.items()
        # A node of its zone appears: the WorkloadSpread, which moves no pods, does not look again.
        [node, *_] = sorted(one.metadata.name for one in (await world.client.list(NODES)).items)
        await world.client.patch(NODES, node, {"metadata": {"labels": {ZONE: "nowhere"}}})
        await all_run(world, 2)
        answer = await ask_journal(stage, monkeypatch, "ws")
        assert name not in answer.waiting

    run_local(play)


def test_an_image_that_nobody_has_under_a_uniteddeployment(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(world: LocalWorld) -> None:
        stage = UnitedStage(world, gates=world.options.gates)
        await stage.label_nodes()
        await world.create(stage.manifest(subsets=[stage.subset("a"), stage.subset("b")], replicas=4))
        await stage.settles({"a": 2, "b": 2})
        await world.sleep(60)
        assert not (await ask_both(stage, monkeypatch)).waiting
        await stage.image("nginx:missing")
        await world.sleep(60)
        answer = await ask_journal(stage, monkeypatch)
        assert "image-pull" in codes(answer)
        assert answer.act == "somebody"

    run_local(play)


def test_a_persistentpodstate_tells_that_its_workload_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(world: LocalWorld) -> None:
        stage = PodStateStage(world, gates=world.options.gates)
        reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"}
        keys = {"keys": ["kubernetes.io/hostname"]}
        await world.create(
            {
                "apiVersion": PERSISTENT_POD_STATES.api_version,
                "kind": PERSISTENT_POD_STATES.kind,
                "metadata": {"name": "db"},
                "spec": {"targetRef": reference, "requiredPersistentTopology": keys},
            }
        )
        await world.sleep(5)
        answer = await ask_both(stage, monkeypatch, "db")
        assert codes(answer) == {"nothing-to-remember"}
        assert "there is no StatefulSet web (apps/v1) in this namespace [nothing-to-remember]" in text_of(answer)
        await world.client.create(stage.workload, stage.workload_manifest(replicas=2), world.namespace)
        await all_run(world, 2)
        await world.sleep(5)
        answer = await ask_both(stage, monkeypatch, "db")
        assert not answer.waiting
        assert "it remembers the nodes of 2 pods of StatefulSet web" in text_of(answer)

    run_local(play)


def test_a_pod_whose_remembered_node_is_cordoned_waits_with_a_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(world: LocalWorld) -> None:
        stage = PodStateStage(world, gates=world.options.gates)
        await stage.make(replicas=2)
        places = await stage.are_ready(2)
        await stage.create("db", requiredPersistentTopology={"keys": [HOST]})
        await stage.records("db", 2, {HOST})
        node = places["web-0"]
        await world.client.patch(NODES, node, {"spec": {"unschedulable": True}})
        await stage.delete_pod("web-0")
        await world.sleep(20)
        answer = await ask_both(stage, monkeypatch, "db")
        assert codes(answer) == {"remembered-place"}
        assert answer.act == "somebody"
        assert f"pod web-0 has to come back to {HOST}={node} (it was on node {node})" in text_of(answer)
        assert f"kubectl uncordon {node}" in text_of(answer)
        pod = await ask(stage, "web", kind="statefulset")
        assert "kruise why persistentpodstate/db" in text_of(pod)
        await world.client.patch(NODES, node, {"spec": {"unschedulable": None}})
        assert await stage.are_ready(2) == places
        await world.sleep(5)
        assert not (await ask_both(stage, monkeypatch, "db")).waiting

    run_local(play)


def test_a_place_that_is_only_preferred_keeps_no_pod_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(world: LocalWorld) -> None:
        stage = PodStateStage(world, gates=world.options.gates)
        await stage.make(replicas=1)
        await stage.are_ready(1)
        preferred = [{"weight": 10, "preference": {"keys": [HOST]}}]
        await stage.create("db", preferredPersistentTopology=preferred)
        await stage.records("db", 1, {HOST})
        for node in (await world.client.list(NODES)).items:
            await world.client.patch(NODES, node.metadata.name, {"spec": {"unschedulable": True}})
        await stage.delete_pod("web-0")
        await world.sleep(20)
        assert not (await ask_both(stage, monkeypatch, "db")).waiting
        assert "unscheduled" in codes(await ask(stage, "web", kind="statefulset"))

    run_local(play)


def text_of(answer: Answer) -> str:
    return "\n".join(answer_lines(answer))
