"""Sizes of ReplicaSets in a rollout, by property: rollouts driven to their end with every kind of luck."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.api.meta import ObjectMeta
from kruise.local.workloads import deployment, rollout
from kruise.local.workloads.objects import (
    Deployment,
    DeploymentSpec,
    ReplicaSet,
    ReplicaSetSpec,
    ReplicaSetStatus,
    RollingUpdate,
    Strategy,
)
from kruise.local.workloads.rollout import DESIRED_REPLICAS, MAX_REPLICAS, Group, Limits
from kruise.machinery.client.requests import Verb
from kruise.machinery.codec import convert
from kruise.machinery.plan import Outcomes
from tests.local.workloads import bodies
from tests.support.examples import EXAMPLES

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def group(number: int, size: int, available: int, **annotations: str) -> Group:
    return Group.of(
        ReplicaSet(
            metadata=ObjectMeta(
                name=f"rs-{number}",
                uid=str(number),
                creation_timestamp=NOW + timedelta(seconds=number),
                annotations=annotations,
            ),
            spec=ReplicaSetSpec(replicas=size),
            status=ReplicaSetStatus(replicas=size, ready_replicas=available, available_replicas=available),
        )
    )


amounts = st.one_of(st.integers(0, 12), st.integers(0, 100).map(lambda number: f"{number}%"))


@st.composite
def limits(draw: st.DrawFn) -> Limits:
    strategy = Strategy(rolling_update=RollingUpdate(max_surge=draw(amounts), max_unavailable=draw(amounts)))
    return Limits.of(Deployment(spec=DeploymentSpec(replicas=draw(st.integers(1, 30)), strategy=strategy)))


@given(limits())
@settings(max_examples=50 * EXAMPLES, deadline=None)
def test_something_can_always_move(limits: Limits) -> None:
    assert limits.surge + limits.unavailable > 0
    assert 0 <= limits.fewest <= limits.replicas <= limits.most


@given(limits(), st.integers(1, 3), st.integers(0, 2**32), st.booleans())
@settings(max_examples=50 * EXAMPLES, deadline=None)
def test_a_rollout_ends_and_keeps_its_bounds(limits: Limits, olds: int, seed: int, stale: bool) -> None:
    """From any number of old groups: pods get available in random order, some old ones break, counts may be stale."""
    random = Random(seed)
    sizes = dict.fromkeys(range(olds + 1), 0)
    for _ in range(limits.replicas):
        sizes[random.randrange(olds)] += 1
    available = dict(sizes)
    shown = dict(available)
    new = olds
    for _ in range(40 * limits.replicas + 100):
        groups = [group(number, sizes[number], shown[number]) for number in sizes]
        rollout.roll(groups[new], groups[:new], limits)
        before = sum(available.values())
        for number, item in enumerate(groups):
            shrinks = sizes[number] - item.size
            sizes[number] = item.size
            if shrinks > 0:
                # Pods that are not available go first.
                available[number] = min(available[number], item.size)
        assert sum(sizes.values()) <= max(limits.most, limits.replicas)
        after = sum(available.values())
        assert after >= min(before, limits.fewest)
        for number in sizes:
            if available[number] < sizes[number] and random.random() < 0.6:
                available[number] += 1
        shown = {number: shown[number] if stale and random.random() < 0.3 else available[number] for number in sizes}
        if sizes[new] == limits.replicas and sum(sizes.values()) == limits.replicas:
            break
    else:
        raise AssertionError(f"the rollout did not end: {sizes} of {limits}")


@given(st.lists(st.integers(0, 20), min_size=1, max_size=5), st.integers(0, 40), st.integers(0, 10), st.integers(0, 10))
@settings(max_examples=50 * EXAMPLES, deadline=None)
def test_scaling_gives_the_size_that_was_asked_for(
    sizes: list[int], replicas: int, surge: int, unavailable: int
) -> None:
    limits = Limits(replicas, surge, min(unavailable, replicas))
    most = str(sum(sizes))
    groups = [
        group(number, size, size, **{DESIRED_REPLICAS: "1000", MAX_REPLICAS: most}) for number, size in enumerate(sizes)
    ]
    active = sum(size > 0 for size in sizes)
    rollout.scale(groups[-1], groups[:-1], limits, rolling=True, actual=sum(sizes))
    assert all(item.size >= 0 for item in groups)
    wanted = replicas if active <= 1 else (limits.most if replicas else 0)
    assert sum(item.size for item in groups) == wanted


def test_the_history_keeps_what_is_not_empty() -> None:
    groups = [group(number, size, 0) for number, size in enumerate((0, 2, 0, 0))]
    for number, item in enumerate(groups):
        item.annotations[rollout.REVISION] = str(number)
    assert [item.name for item in rollout.superfluous(groups, 1)] == ["rs-0", "rs-2"]
    assert rollout.superfluous(groups, None) == []


# A whole decision


@st.composite
def snapshots(draw: st.DrawFn) -> deployment.Snapshot:
    strategy = draw(
        st.one_of(
            st.just({"type": "Recreate"}),
            st.fixed_dictionaries(
                {"rollingUpdate": st.fixed_dictionaries({"maxSurge": amounts, "maxUnavailable": amounts})}
            ),
        )
    )
    body = bodies.deployment("web", draw(st.integers(0, 12)), strategy=strategy, paused=draw(st.booleans()))
    body["metadata"] |= {"namespace": "ns", "uid": "d", "generation": 1}
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": True}
    sets = []
    for number in range(draw(st.integers(0, 4))):
        size = draw(st.integers(0, 12))
        item = bodies.replica_set(f"web-{number}", size, labels={"app": "web"})
        item["spec"]["template"] = bodies.template({"app": "web"}, f"app:{number}")
        item["metadata"] |= {
            "namespace": "ns",
            "uid": f"rs-{number}",
            "labels": {"app": "web"},
            "ownerReferences": [owner],
            "creationTimestamp": f"2030-01-01T00:00:0{number}Z",
            "annotations": {rollout.REVISION: str(number), DESIRED_REPLICAS: str(draw(st.integers(0, 12)))},
        }
        available = draw(st.integers(0, size))
        item["status"] = {"replicas": size, "availableReplicas": available, "readyReplicas": available}
        sets.append(convert(item, ReplicaSet))
    return deployment.Snapshot(
        deployment=convert(body, Deployment),
        replica_sets=tuple(sets),
        orphans=(),
        busy=tuple(item.metadata.uid for item in sets if draw(st.booleans())),
        now=NOW,
    )


@given(snapshots())
@settings(max_examples=50 * EXAMPLES, deadline=None)
def test_a_decision_creates_at_most_one_and_stays_below_the_most(snapshot: deployment.Snapshot) -> None:
    plan = deployment.decide(snapshot)
    assert plan == deployment.decide(snapshot)
    found, before = snapshot.deployment, sum(item.spec.replicas or 0 for item in snapshot.replica_sets)
    creates = [action for action in plan.actions() if action.verb is Verb.CREATE]
    known = {bytes(item.spec.template) for item in snapshot.replica_sets}
    assert len(creates) <= (0 if found.spec.paused or bytes(found.spec.template) in known else 1)
    result = deployment.plan_rollout(snapshot)
    assert all(item.size >= 0 for item in result.groups)
    after = rollout.total(result.groups)
    assert after <= max(before, result.limits.most)
    assert all(action.uid for action in plan.actions() if action.verb is not Verb.CREATE)
    conclusion = deployment.conclude(snapshot, plan, Outcomes())
    assert conclusion.status is not None
    status = conclusion.status.body[-1]["value"]
    assert status.get("availableReplicas", 0) <= status.get("replicas", 0)
    assert status["observedGeneration"] == 1
