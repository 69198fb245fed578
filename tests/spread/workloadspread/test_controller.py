"""What makes a WorkloadSpread be looked at, and what does not (WS-34, WS-34a)."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.api.apps.cloneset import CLONE_SETS, CloneSet
from kruise.api.apps.workloadspread import WORKLOAD_SPREADS, SubsetStatus, WorkloadSpread
from kruise.api.meta import Key
from kruise.api.native.apps import DEPLOYMENTS, REPLICA_SETS, Workload
from kruise.api.native.pod import PODS, Pod
from kruise.api.resource import Resource
from kruise.machinery import codec
from kruise.machinery.codec import evolve
from kruise.machinery.offline import ReadStores, view_of
from kruise.manager.options import Options
from kruise.spread.workloadspread.controller import FEATURE
from tests.spread.workloadspread.objects import NOW, pod_of, spread_of
from tests.spread.workloadspread.stories import adaptive, subset

SPEC = FEATURE.controllers(Options())[0]
SPREAD = spread_of(subset("a", size=1), subset("b"))
UNSCHEDULABLE = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]


def keys(resource: Resource[Any], old: Any, new: Any, spread: WorkloadSpread = SPREAD) -> list[str]:
    source = next(item for item in SPEC.all_sources if item.resource == resource)
    stores = ReadStores(SPEC, {WORKLOAD_SPREADS: (spread,)})
    return [key.name for key in source.keys(old, new, stores)]


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        (None, pod_of("p", "a"), True),
        (pod_of("p", "a"), None, True),
        (pod_of("p", "a"), pod_of("p", "a", terminating=True), True),
        (pod_of("p", "a"), pod_of("p", "a", phase="Succeeded"), True),
        (pod_of("p"), pod_of("p", "a"), True),
        (None, pod_of("p"), False),
        (pod_of("p", ready=False), pod_of("p"), False),
        (pod_of("p", "a", ready=False), pod_of("p", "a"), False),
        (pod_of("p", "a", node=""), pod_of("p", "a"), False),
    ],
)
def test_pods(old: Pod | None, new: Pod | None, wanted: bool) -> None:
    assert keys(PODS, old, new) == (["ws"] if wanted else [])


def test_a_pod_that_came_before_its_spread_was_known_is_looked_at_when_it_has_a_node() -> None:  # WS-43
    assert keys(PODS, pod_of("p", node=""), pod_of("p")) == ["ws"]
    others = spread_of(subset("b"), targetFilter={"selector": {"matchLabels": {"app": "other"}}})
    assert keys(PODS, pod_of("p", node=""), pod_of("p"), others) == []


def test_a_pod_that_was_let_in_because_all_is_full_makes_nobody_look() -> None:  # WS-34a, WS-60
    spread = spread_of(subset("a", size=1))
    counted = SubsetStatus(name="a", replicas=1, missing_replicas=0)
    full = evolve(spread, status=evolve(spread.status, subset_statuses=(counted,)))
    assert keys(PODS, pod_of("p", node=""), pod_of("p"), full) == []


def test_readiness_counts_where_there_is_surplus() -> None:  # WS-45
    surplus = evolve(SPREAD, status=evolve(SPREAD.status, subset_statuses=(SubsetStatus(name="a", replicas=2),)))
    assert keys(PODS, pod_of("p", "a", ready=False), pod_of("p", "a"), surplus) == ["ws"]
    assert keys(PODS, pod_of("p", "b", ready=False), pod_of("p", "b"), surplus) == []


def test_pods_that_another_workload_takes_over_are_looked_at() -> None:  # WS-34, WS-43
    former = pod_of("p", "a")
    orphan = evolve(former, metadata=evolve(former.metadata, owner_references=()))
    assert keys(PODS, former, orphan) == ["ws"]
    assert keys(PODS, orphan, former) == ["ws"]
    unmarked = pod_of("q")
    assert keys(PODS, evolve(unmarked, metadata=evolve(unmarked.metadata, owner_references=())), unmarked) == ["ws"]


def test_the_pods_of_another_spread_stay_there() -> None:  # WS-43
    """Both are about the same workload, which can be where two were created at the same moment (WS-10)."""
    other = evolve(SPREAD, metadata=evolve(SPREAD.metadata, name="other", uid="other-uid", resource_version="8"))
    clones = codec.convert(
        {"metadata": {"name": "web", "namespace": "default", "uid": "web-uid", "resourceVersion": "9"}}, CloneSet
    )
    pods = tuple(
        evolve(pod, metadata=evolve(pod.metadata, resource_version=str(10 + number)))
        for number, pod in enumerate([pod_of("p", "a"), pod_of("q", "b")])
    )
    objects: dict[Resource[Any], Any] = {WORKLOAD_SPREADS: (SPREAD, other), PODS: pods, CLONE_SETS: (clones,)}
    snapshot = SPEC.snapshot(view_of(SPEC, objects, now=NOW, gates={}), Key("default", "other"))
    assert snapshot is not None
    assert (snapshot.pods, snapshot.rivals) == ((), {"p": "ws", "q": "ws"})
    plan = SPEC.decide(snapshot)
    assert {action.target.resource for action in plan.actions()} == {WORKLOAD_SPREADS}
    [held] = plan.held
    assert held.causes[0].code == "two-spreads"
    assert "2 pods of CloneSet web are spread by WorkloadSpread ws already" in held.causes[0].message
    going = {**objects, WORKLOAD_SPREADS: (other,)}
    snapshot = SPEC.snapshot(view_of(SPEC, going, now=NOW, gates={}), Key("default", "other"))
    assert snapshot is not None
    assert len(snapshot.pods) == 2


def test_whoever_is_no_more_about_its_pods_leaves_them_to_the_others() -> None:  # WS-43
    """One of a Deployment and one of its ReplicaSet: only the pods tell that they have to do with each other."""
    spread = spread_of(subset("a", size=1), subset("b"), target=("apps/v1", "Deployment"))
    other = evolve(SPREAD, metadata=evolve(SPREAD.metadata, name="other", uid="other-uid", resource_version="8"))
    reference = evolve(other.spec.target_ref, api_version="apps/v1", kind="ReplicaSet")
    other = evolve(other, spec=evolve(other.spec, target_ref=reference))
    replica_set = workload(owner="web")
    pod = pod_of("p", "a", owner=("apps/v1", "ReplicaSet"))
    objects: dict[Resource[Any], Any] = {
        WORKLOAD_SPREADS: (spread, other),
        PODS: (evolve(pod, metadata=evolve(pod.metadata, resource_version="9")),),
        REPLICA_SETS: (evolve(replica_set, metadata=evolve(replica_set.metadata, name="web", resource_version="10")),),
    }
    leaving = evolve(spread, metadata=evolve(spread.metadata, deletion_timestamp=NOW))
    filtered = {"selector": {"matchLabels": {"app": "x"}}}
    narrower = spread_of(subset("a", size=1), subset("b"), target=("apps/v1", "Deployment"), targetFilter=filtered)
    larger = spread_of(subset("a", size=2), subset("b"), target=("apps/v1", "Deployment"))
    source = next(item for item in SPEC.all_sources if item.resource == WORKLOAD_SPREADS)
    stores = ReadStores(SPEC, objects)
    for new in (None, leaving, narrower):
        assert {key.name for key in source.keys(spread, new, stores)} == {"ws", "other"}, new
    assert [key.name for key in source.keys(spread, larger, stores)] == ["ws"]
    assert [key.name for key in source.keys(leaving, leaving, stores)] == ["ws"]


def test_the_word_of_the_scheduler_counts_where_pods_are_rescheduled() -> None:  # WS-50
    adapts = spread_of(subset("a", size=1), subset("b"), scheduleStrategy=adaptive())
    before, after = pod_of("p", "a", node=""), pod_of("p", "a", node="", conditions=UNSCHEDULABLE)
    assert keys(PODS, before, after, adapts) == ["ws"]
    assert keys(PODS, before, after) == []


def workload(replicas: int = 1, revision: str = "1", owner: str = "") -> Workload:
    metadata: dict[str, Any] = {
        "name": "web-abc" if owner else "web",
        "namespace": "default",
        "uid": "u",
        "annotations": {"deployment.kubernetes.io/revision": revision},
    }
    if owner:
        reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": owner, "controller": True}
        metadata["ownerReferences"] = [reference]
    return codec.convert({"metadata": metadata, "spec": {"replicas": replicas}}, Workload)


def test_pods_of_a_workload_of_somebody_else_are_found_by_their_mark() -> None:  # WS-56
    spread = spread_of(subset("a", size=2), subset("b", size=5), target=("x.io/v1", "Thing"))
    owner = ("x.io/v1", "Thing")
    pods = tuple(
        evolve(pod, metadata=evolve(pod.metadata, resource_version=str(10 + number)))
        for number, pod in enumerate([pod_of("p", "a", owner=owner), pod_of("q", "a", owner=owner), pod_of("other")])
    )
    view = view_of(SPEC, {WORKLOAD_SPREADS: (spread,), PODS: pods}, now=NOW, gates={})
    snapshot = SPEC.snapshot(view, Key("default", "ws"))
    assert snapshot is not None
    assert [pod.metadata.name for pod in snapshot.pods] == ["p", "q"]
    action = next(iter(SPEC.decide(snapshot).actions()))
    counts = [(one["replicas"], one["missingReplicas"]) for one in action.body[0]["value"]["subsetStatuses"]]
    assert counts == [(2, 0), (0, 5)]


def test_workloads() -> None:
    spread = spread_of(subset("a", size=1), target=("apps/v1", "Deployment"))
    assert keys(DEPLOYMENTS, None, workload(), spread) == ["ws"]
    assert keys(DEPLOYMENTS, workload(), None, spread) == ["ws"]
    assert keys(DEPLOYMENTS, workload(), workload(2), spread) == ["ws"]
    assert keys(DEPLOYMENTS, workload(), workload(revision="2"), spread) == ["ws"]
    assert keys(DEPLOYMENTS, workload(), workload(), spread) == []
    assert keys(DEPLOYMENTS, None, workload(), SPREAD) == []
    assert keys(REPLICA_SETS, workload(1, owner="web"), workload(2, owner="web"), spread) == ["ws"]
    assert keys(REPLICA_SETS, None, workload(1, owner="other"), spread) == []
