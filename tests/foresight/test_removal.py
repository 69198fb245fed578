"""What drains and deletions would do: pure, over a few pods."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kruise.admission.decisions import HandlerView, NeedsReads
from kruise.api.native.daemon_pods import bound_for
from kruise.api.native.nodes import Node
from kruise.api.native.pod import PODS, ContainerStatus, Pod, PodSpec
from kruise.api.native.policy import PodDisruptionBudget
from kruise.api.policy.podunavailablebudget import PodUnavailableBudget
from kruise.foresight.removal import deleting, telling
from kruise.foresight.removal.draining import Drain, Scene, drain
from kruise.foresight.removal.guards import Guards
from kruise.machinery.codec import convert, evolve
from kruise.protection.deletion.rules import GATE
from kruise.protection.podunavailablebudget import keys

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def node(name: str) -> Node:
    amounts = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    return convert({"metadata": {"name": name}, "status": {"allocatable": amounts, "capacity": amounts}}, Node)


def pod(name: str, where: str, *, kind: str = "CloneSet", is_ready: bool = True, **labels: str) -> Pod:
    owner = [{"apiVersion": "apps/v1", "kind": kind, "name": "web", "uid": "1", "controller": True}] if kind else []
    document = {
        "metadata": {
            "name": name,
            "namespace": "demo",
            "uid": name,
            "labels": {"app": "web", **labels},
            "annotations": {keys.RELATED: "web"},
            "ownerReferences": owner,
        },
        "spec": {"nodeName": where, "containers": [{"name": "main", "image": "nginx"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True" if is_ready else "False"}]},
    }
    return convert(document, Pod)


def ours(allowed: int, **spec: Any) -> PodUnavailableBudget:
    status = {"unavailableAllowed": allowed, "currentAvailable": 3, "desiredAvailable": 2, "totalReplicas": 3}
    return convert(
        {"metadata": {"name": "web", "namespace": "demo"}, "spec": spec, "status": status}, PodUnavailableBudget
    )


def native(name: str, allowed: int) -> PodDisruptionBudget:
    status = {"disruptionsAllowed": allowed, "currentHealthy": 3, "desiredHealthy": 2, "expectedPods": 3}
    spec = {"selector": {"matchLabels": {"app": "web"}}}
    document = {"metadata": {"name": name, "namespace": "demo"}, "spec": spec, "status": status}
    return convert(document, PodDisruptionBudget)


def played(pods: list[Pod], *, nodes: int = 2, unavailable: Any = (), disruption: Any = ()) -> Drain:
    guards = Guards(unavailable, disruption, gates={}, now=NOW)
    return drain(Scene(node="a", nodes=[node(name) for name in "abc"[:nodes]], pods=pods, guards=guards))


def test_pods_go_as_budgets_let_them() -> None:
    """One at a time, and the next when the successor of the one before is ready."""
    found = played([pod("one", "a"), pod("two", "a"), pod("three", "b")], unavailable=[ours(1)])
    assert [[gone.pod for gone in wave] for wave in found.waves] == [["one"], ["two"]]
    assert [wave[0].at for wave in found.waves] == [0.0, 5.0]
    assert {gone.to for wave in found.waves for gone in wave} == {"b"}
    assert found.ends
    assert "ends after about 7s" in telling.drain_lines(found)[1]


def test_without_a_budget_all_go_at_once() -> None:
    found = played([pod("one", "a"), pod("two", "a")])
    assert [[gone.pod for gone in wave] for wave in found.waves] == [["one", "two"]]


def test_where_no_budget_of_ours_is_asked() -> None:
    """In kube-system."""
    closed = ours(0)
    there = evolve(closed, metadata=evolve(closed.metadata, namespace="kube-system"))
    one = pod("one", "a")
    moved = evolve(one, metadata=evolve(one.metadata, namespace="kube-system"))
    assert not played([one], unavailable=[closed]).ends
    assert played([moved], unavailable=[there]).ends


def test_both_kinds_of_budgets_have_to_agree() -> None:
    found = played([pod("one", "a"), pod("two", "a")], unavailable=[ours(2)], disruption=[native("native", 0)])
    assert not found.ends
    assert found.stuck[0].budgets == ("poddisruptionbudget/native",)
    lines = telling.drain_lines(found)
    assert lines[1] == "Result:      does not end: 2 pods stay"
    assert telling.as_data(found)["ends"] is False


def test_two_native_budgets_over_a_pod_stop_it() -> None:
    found = played([pod("one", "a")], disruption=[native("x", 1), native("y", 1)])
    assert "more than one" in found.stuck[0].why


def test_a_successor_without_a_place_gives_nothing_back() -> None:
    """The first goes, and nobody comes: the second is refused for ever."""
    found = played([pod("one", "a"), pod("two", "a")], nodes=1, unavailable=[ours(1)])
    assert [[gone.pod for gone in wave] for wave in found.waves] == [["one"]]
    assert [stay.pod for stay in found.stuck] == ["two"]
    assert any("no node takes its successor" in note for note in found.notes)


def starting(name: str, where: str, *, age: float = 5, **status: Any) -> Pod:
    found = pod(name, where, is_ready=False)
    made = evolve(found.metadata, creation_timestamp=NOW - timedelta(seconds=age))
    return evolve(found, metadata=made, status=evolve(found.status, **status))


def short(allowed: int, current: int, desired: int) -> PodUnavailableBudget:
    budget = ours(allowed)
    return evolve(budget, status=evolve(budget.status, current_available=current, desired_available=desired))


def test_a_budget_whose_pods_are_merely_starting_is_waited_for() -> None:
    """It has nothing left now, and it will in a moment."""
    for budgets in ({"unavailable": [ours(0)]}, {"disruption": [native("native", 0)]}):
        found = played([pod("one", "a"), starting("new", "b")], **budgets)
        assert found.ends
        assert [[(gone.pod, gone.at) for gone in wave] for wave in found.waves] == [[("one", 5.0)]]
        assert any("starting now to become ready: new" in note for note in found.notes)


def test_as_many_as_are_missing_have_to_start() -> None:
    """Two are wanting before there is one to give."""
    going = [pod("one", "a"), starting("new", "b")]
    assert not played(going, unavailable=[short(0, 1, 2)]).ends
    assert played([*going, starting("newer", "b")], unavailable=[short(0, 1, 2)]).ends


@pytest.mark.parametrize(
    "down",
    [
        starting("new", "b", age=600),
        starting("new", ""),
        starting("new", "b", container_statuses=(ContainerStatus(name="main", restart_count=2),)),
        starting("new", "b", container_statuses=(convert({"state": {"waiting": {"reason": "X"}}}, ContainerStatus),)),
    ],
)
def test_pods_that_are_down_for_another_reason_are_not_counted_on(down: Pod) -> None:
    assert not played([pod("one", "a"), down], unavailable=[ours(0)]).ends


def test_the_successor_of_a_pod_that_was_down_is_one_more() -> None:
    found = played([pod("one", "a"), starting("bad", "a", age=600)], unavailable=[ours(0)])
    assert [[gone.pod for gone in wave] for wave in found.waves] == [["bad"], ["one"]]


def test_who_is_left_alone_and_which_flags_it_takes() -> None:
    found = played([pod("agent", "a", kind="DaemonSet"), pod("bare", "a", kind="")])
    assert [stay.pod for stay in found.untouched] == ["agent"]
    assert found.flags == ("--ignore-daemonsets", "--force")
    assert [[gone.to for gone in wave] for wave in found.waves] == [[""]]


def test_pods_that_are_down_ask_nobody_of_ours() -> None:
    found = played([pod("one", "a", is_ready=False)], unavailable=[ours(0)])
    assert found.ends


def document(kind: str, name: str, *owners: str, **spec: Any) -> dict[str, Any]:
    references = [{"uid": owner} for owner in owners]
    return {"kind": kind, "metadata": {"name": name, "uid": name, "ownerReferences": references}, "spec": spec}


def test_what_goes_with_an_object_and_what_stays() -> None:
    pods = [document("Pod", "p", "rs", volumes=[{"persistentVolumeClaim": {"claimName": "data"}}])]
    objects = {
        "replicaset": [document("ReplicaSet", "rs", "web"), document("ReplicaSet", "other", "api")],
        "pod": [*pods, document("Pod", "shared", "rs", "api")],
    }
    goes = deleting.dependents("web", objects)
    assert {(group.kind, group.names) for group in goes} == {("replicaset", ("rs",)), ("pod", ("p",))}
    left = deleting.claims_left(pods, [document("PersistentVolumeClaim", "data")], ())
    assert left is not None
    assert left.names == ("data",)


ON = HandlerView(now=NOW, seed=0, gates={GATE: True})


def protected(kind: str, value: str, *, api_version: str = "apps/v1", replicas: int = 2, **more: Any) -> dict[str, Any]:
    labels = {"policy.kruise.io/delete-protection": value}
    metadata = {"name": "web", "namespace": "demo", "labels": labels, **more}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": {"replicas": replicas}}


@pytest.mark.parametrize(
    ("document", "is_refused"),
    [
        (protected("Deployment", "Cascading"), True),
        (protected("Deployment", "Cascading", replicas=0), False),
        (protected("CloneSet", "Always", api_version="apps.kruise.io/v1alpha1", replicas=0), True),
        (protected("Service", "Always", api_version="v1"), True),
        (protected("Service", "Cascading", api_version="v1"), False),
        (protected("Ingress", "Always", api_version="networking.k8s.io/v1"), True),
        (protected("Pod", "Always", api_version="v1"), False),
        (protected("DaemonSet", "Always"), False),
        (protected("Deployment", "Always", deletionTimestamp="2030-01-01T00:00:00Z"), False),
    ],
)
def test_protection_is_told_by_its_own_rules(document: dict[str, Any], is_refused: bool) -> None:
    """DP-12 to DP-17, and the kinds that it does not cover."""
    said = deleting.protection_of(document, ON)
    assert (said is not None) is is_refused
    if isinstance(said, deleting.Refusal):
        assert "kubectl label" in said.remedy
        doubt = deleting.doubtful(said)
        assert not doubt.is_certain
        assert GATE in doubt.message


def test_what_is_inside_a_namespace_is_asked_for() -> None:  # DP-15
    shop = protected("Namespace", "Cascading", api_version="v1")
    said = deleting.protection_of(shop, ON)
    assert isinstance(said, NeedsReads)
    reads = {target: (pod("one", "a"),) if target.resource == PODS else () for target in said.targets}  # type: ignore[union-attr]
    refused = deleting.protection_of(shop, dataclasses.replace(ON, reads=reads))
    assert isinstance(refused, deleting.Refusal)
    assert refused.message.endswith("active pods 1>0")


def test_copies_are_called_by_their_namespaces() -> None:
    copy = {"kind": "Secret", "metadata": {"name": "token", "namespace": "front", "uid": "c"}}
    copy["metadata"]["ownerReferences"] = [{"uid": "rd"}]  # type: ignore[index]
    (group,) = deleting.dependents("rd", {"secret": [copy]}, with_namespaces=True)
    assert group.names == ("front/token",)


def test_a_daemon_set_of_another_group_is_evicted_and_comes_back() -> None:
    """As kubectl 1.34 does it: only DaemonSets of Kubernetes' own group are special."""
    agent = pod("agent", "a", kind="DaemonSet")
    (reference,) = agent.metadata.owner_references
    ours_one = evolve(reference, api_version="apps.kruise.io/v1beta1")
    strange = evolve(agent, metadata=evolve(agent.metadata, owner_references=(ours_one,)))
    guards = Guards((), (), gates={}, now=NOW)
    scene = Scene(node="a", nodes=[node("a"), node("b")], pods=[strange], guards=guards, daemon_sets=frozenset())
    found = drain(scene)
    assert found.flags == ()
    assert [[(gone.pod, gone.to) for gone in wave] for wave in found.waves] == [[("agent", "a")]]
    assert "is evicted like any other, and the next one comes to the node at once" in found.notes[0]


def test_a_pod_whose_daemon_set_is_gone_goes_by_force() -> None:
    agent = pod("agent", "a", kind="DaemonSet")
    guards = Guards((), (), gates={}, now=NOW)
    scene = Scene(node="a", nodes=[node("a"), node("b")], pods=[agent], guards=guards, daemon_sets=frozenset())
    found = drain(scene)
    assert found.flags == ("--force",)
    assert [[(gone.pod, gone.to) for gone in wave] for wave in found.waves] == [[("agent", "")]]
    native_one = dataclasses.replace(scene, daemon_sets=frozenset({("demo", "web")}))
    assert drain(native_one).flags == ("--ignore-daemonsets",)


def test_a_pod_that_is_made_for_its_node_comes_to_no_other() -> None:
    """As those of a BroadcastJob: nobody is to look for room elsewhere."""
    tied = pod("tied", "a", kind="BroadcastJob")
    tied = evolve(tied, spec=convert(bound_for({"nodeName": "a"}, "a"), PodSpec))
    found = played([tied], nodes=1)
    assert [[(gone.pod, gone.to) for gone in wave] for wave in found.waves] == [[("tied", "")]]
    assert found.notes == ("the pod of BroadcastJob/web is made for this node, and comes to no other",)


def test_what_waits_for_the_owners_of_finalizers() -> None:
    def named(name: str, *finalizers: str) -> dict[str, Any]:
        return {"metadata": {"name": name, "namespace": "demo", "finalizers": list(finalizers)}}

    claim = named("data", "kubernetes.io/pvc-protection", "batch.kubernetes.io/job-tracking", "orphan")
    objects = {"persistentvolumeclaim": [claim], "configmap": [named("x", "foo/bar", "apps.kruise.io/y"), named("y")]}
    assert deleting.with_finalizers(objects) == ("configmap/demo/x (foo/bar)",)


def test_finished_pods_go_and_need_nothing() -> None:
    ended = pod("ended", "a", kind="Job", is_ready=False)
    ended = evolve(ended, status=evolve(ended.status, phase="Succeeded"))
    leaving = pod("leaving", "a")
    leaving = evolve(leaving, metadata=evolve(leaving.metadata, deletion_timestamp=NOW))
    bare = evolve(pod("bare", "a", kind="", is_ready=False), status=evolve(ended.status, phase="Failed"))
    found = played([ended, leaving, bare], unavailable=[ours(0)])
    assert [[(gone.pod, gone.to) for gone in wave] for wave in found.waves] == [[("bare", ""), ("ended", "")]]
    assert found.flags == ()
    assert found.notes == ("on the way out already, and waited for: leaving",)
