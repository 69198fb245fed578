"""What a SidecarSet promises over a whole rollout, whatever happens in which order; and when its manager dies."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.machinery.codec import evolve
from kruise.machinery.plan import Outcome
from kruise.sidecars.sidecarset.amounts import partition_of, pods_of
from tests.sidecars.sidecarset.modelled import ModelledSidecarSet
from tests.support.examples import story_settings
from tests.support.killed import Killed
from tests.support.modelled import BROKEN
from tests.support.sidecarsets import SIDE, sidecar_set

Json = dict[str, Any]
HOT = {**SIDE, "name": "hot", "upgradeStrategy": {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "nginx:empty"}}
NEW = "nginx:1.26"


def manifest(image: str = "nginx:1.25", hot: str = "", **strategy: Any) -> Json:
    containers = [{**SIDE, "image": image}, *([{**HOT, "image": hot}] if hot else [])]
    return sidecar_set(containers=containers, updateStrategy=strategy)


# The manager killed at every write in turn

STORIES: dict[str, tuple[Json, Json, int]] = {
    "cold": (manifest(), manifest(NEW), 1),
    "hot": (manifest(hot="nginx:1"), manifest(hot="nginx:2"), 1),
    "both, two at a time": (
        manifest(hot="nginx:1", maxUnavailable=2),
        manifest(NEW, "nginx:2", maxUnavailable=2),
        2,
    ),
    "some are kept": (manifest(), manifest(NEW, partition=1), 1),
    "cannot": (
        manifest(),
        sidecar_set(containers=[{**SIDE, "image": NEW, "env": [{"name": "A", "value": "b"}]}]),
        1,
    ),
}


def play(story: str, dies_at: int | None) -> Killed:
    old, new, most = STORIES[story]
    model = ModelledSidecarSet(old)
    model.settle()
    model.apply(new)

    def wrote(outcome: Outcome) -> None:
        down = [fact.name for fact in model.facts if fact.is_updated and not fact.serves]
        assert len(down) <= most, f"{down} are down"

    killed = Killed(model, dies_at, wrote=wrote)
    killed.run(40)
    return killed


def state(killed: Killed) -> tuple[Any, ...]:
    model = killed.model
    assert isinstance(model, ModelledSidecarSet)
    status = model.subject.status
    # Whoever is killed takes longer.
    told = tuple(evolve(one, last_transition_time=None) for one in status.conditions)
    status = evolve(status, conditions=told)
    conditions = {
        pod.metadata.name: [(one.type, one.status, one.message) for one in pod.status.conditions] for pod in model.pods
    }
    return model.images(), model.restarts(), model.revisions, status, conditions


@pytest.mark.parametrize("story", STORIES)
def test_a_manager_may_die_at_every_write(story: str) -> None:
    """SCS-64, SCS-110, SCS-120: nothing is lost, nothing is done twice, and no container restarts once more."""
    undisturbed = play(story, None)
    assert undisturbed.writes > 3
    for place in range(undisturbed.writes):
        killed = play(story, place)
        assert killed.died
        assert state(killed) == state(undisturbed), f"killed at write {place}"


# Whole rollouts

STEPS = st.lists(
    st.one_of(
        st.just("pass"),
        st.tuples(st.just("kubelet"), st.integers(0, 3)),
        st.tuples(st.just("crash"), st.integers(0, 3)),
        st.tuples(st.just("image"), st.sampled_from(["nginx:1", "nginx:2", BROKEN])),
    ),
    max_size=40,
)


@story_settings(40)
@given(
    steps=STEPS,
    unavailable=st.sampled_from([1, 2, "50%"]),
    partition=st.sampled_from([0, 1, "50%"]),
    is_hot=st.booleans(),
)
def test_limits_hold_and_every_rollout_arrives(
    steps: list[Any], unavailable: int | str, partition: int | str, is_hot: bool
) -> None:
    """SCS-93, SCS-94, SCS-114: no pod that serves is taken beyond the limit, the partition is kept, and whatever was
    tried before, the last good image arrives; the containers of the app are never touched."""
    count = 4

    def wanted(image: str) -> Json:
        return manifest(image, image if is_hot else "", maxUnavailable=unavailable, partition=partition)

    model = ModelledSidecarSet(wanted("nginx:0"), count)
    model.settle()
    limit, kept = pods_of(unavailable, count, default=1), partition_of(partition, count)

    def look() -> None:
        before = {fact.name: fact for fact in model.facts}
        down = sum(fact.is_updated and not fact.serves for fact in before.values())
        model.reconcile()
        taken = [
            fact.name
            for fact in model.facts
            if fact.is_updated and not before[fact.name].is_updated and before[fact.name].is_ready
        ]
        assert not taken or len(taken) + down <= limit
        newly = sum(fact.is_updated and not before[fact.name].is_updated for fact in model.facts)
        old = sum(not fact.is_updated for fact in before.values())
        assert old - newly >= min(kept, old)

    for step in steps:
        match step:
            case "pass":
                look()
            case ("kubelet", number):
                model.kubelet(f"web-{number}")
            case ("crash", number) if (pod := model.pod(f"web-{number}")) is not None:
                model.kubelets.crash(pod)
            case ("image", image):
                model.apply(wanted(image))
    model.apply(wanted("nginx:9"))
    for _ in range(60):
        look()
        for pod in model.pods:
            model.kubelet(pod.metadata.name)
        model.pass_time(1)
    status = model.subject.status
    assert (status.matched_pods, status.updated_pods) == (count, count - kept)
    assert status.updated_ready_pods == count - kept
    for images in model.images().values():
        assert images["main"] == "nginx:1.24"
    writes = model.writes
    model.settle()
    assert model.writes == writes, "what has come to rest is left alone"
