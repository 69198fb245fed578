"""Pods on their way in and out (WS sections 5 and 6)."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest

from kruise.admission.chain import PodChain
from kruise.admission.decisions import (
    Allow,
    Change,
    Deny,
    Failure,
    HandlerView,
    Mutation,
    NeedsBooking,
    NeedsReads,
    Verdict,
)
from kruise.admission.validating_chain import PodValidationChain
from kruise.api.apps.cloneset import CLONE_SETS, CloneSet
from kruise.api.apps.workloadspread import WORKLOAD_SPREADS, SubsetStatus, WorkloadSpread
from kruise.api.native.apps import REPLICA_SETS, Workload
from kruise.api.native.pod import PODS
from kruise.machinery import codec
from kruise.machinery.plan import Target
from kruise.machinery.store import Store
from kruise.machinery.watched import watched
from kruise.manager.options import Options
from kruise.spread.workloadspread.controller import FEATURE
from kruise.spread.workloadspread.pod_admission import NEEDS
from tests.admission.helpers import request_of
from tests.spread.workloadspread.objects import NOW, pod_of, spread_of, with_list
from tests.spread.workloadspread.stories import MATCHED, subset, zone_term

Json = dict[str, Any]
CLONE_SET = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web", "uid": "u", "controller": True}
RS = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-abc", "uid": "rs", "controller": True}


class Cluster:
    """Stores, and what an answerer does for the handlers."""

    def __init__(self, *spreads: WorkloadSpread, replica_sets: tuple[Workload, ...] = ()) -> None:
        self.stores: dict[Any, Store[Any]] = {}
        for kind in NEEDS:
            store = Store(watched(kind))
            store.replace((), 1)
            self.stores[watched(kind).resource] = store
        for position, spread in enumerate(spreads):
            self._add(WORKLOAD_SPREADS, spread, position)
        for position, replica_set in enumerate(replica_sets):
            self._add(REPLICA_SETS, replica_set, position)
        self.live: dict[Any, Any] = {}
        self.others: list[Callable[[], None]] = []
        """What others do before a booking is made."""
        self.reads: list[Any] = []
        self.writes = 0
        self.view = HandlerView(now=NOW, seed=1, stores=lambda resource: self.stores[resource])
        self.chain, self.checks = PodChain(), PodValidationChain()
        for step, mutate, needs in FEATURE.pod_mutations(Options()):
            self.chain.register(step, mutate, needs=needs)
        for check, judge, needs, operations in FEATURE.pod_validations(Options()):
            self.checks.register(check, judge, needs=needs, operations=operations)

    def _add(self, resource: Any, obj: Any, position: int) -> None:
        version = str(10 + position)
        self.stores[resource].event(
            "ADDED", codec.evolve(obj, metadata=codec.evolve(obj.metadata, resource_version=version))
        )

    @property
    def spread(self) -> WorkloadSpread:
        found: WorkloadSpread = self.stores[WORKLOAD_SPREADS].list()[0]
        return found

    def admit(self, pod: Json, **options: Any) -> Mutation:
        request = request_of(pod, kind="Pod", resource="pods", namespace="default", **options)
        before = copy.deepcopy(pod)
        answer: Mutation = self._asked(lambda view: self.chain.decide(request, view))
        assert pod == before
        return answer

    def delete(self, pod: Any, **options: Any) -> Verdict:
        body = {"apiVersion": "v1", "kind": "Pod", **codec.to_builtins(pod)}
        request = request_of(
            None, old=body, operation="DELETE", kind="Pod", resource="pods", namespace="default", **options
        )
        answer: Verdict = self._asked(lambda view: self.checks.decide(request, view))
        return answer

    def _asked(self, ask: Any) -> Any:
        view = self.view
        for _ in range(8):
            said = ask(view)
            if isinstance(said, NeedsReads):
                self.reads += said.targets
                found = {target: self.live.get(target) for target in said.targets}
                view = dataclasses.replace(view, reads={**view.reads, **found})
            elif isinstance(said, NeedsBooking):
                store = self.stores[WORKLOAD_SPREADS]
                if self.others:
                    self.others.pop(0)()
                known: Any = store.get(said.target.namespace, said.target.name)
                booking = said.book(known, NOW)
                if booking.object is not known:
                    self.writes += 1
                    action = said.write(known, booking.object)
                    assert (action.uid, action.resource_version) == ("ws-uid", known.metadata.resource_version)
                    version = str(int(known.metadata.resource_version) + 100)
                    written = codec.evolve(
                        booking.object, metadata=codec.evolve(booking.object.metadata, resource_version=version)
                    )
                    store.event("MODIFIED", written)
                view = dataclasses.replace(view, bookings={**view.bookings, said.target: booking.result})
            else:
                return said
        raise AssertionError("no answer")


def body(owner: Json | None = CLONE_SET, *, name: str = "web-1", labels: Json | None = None, **spec: Any) -> Json:
    metadata: Json = {"labels": {"app": "web", **(labels or {})}}
    metadata.update({"name": name} if name else {"generateName": "web-"})
    if owner is not None:
        metadata["ownerReferences"] = [owner]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [{"name": "main", "image": "nginx", "futureField": 1}], **spec},
    }


def changed(answer: Mutation) -> Json:
    assert isinstance(answer, Change), answer
    return dict(answer.object)


def test_a_pod_that_nobody_spreads_costs_nothing() -> None:  # WS-17, WS-18, PW-15
    cluster = Cluster(spread_of(subset("a", size=1)))
    for pod in (
        body(None),
        body({**CLONE_SET, "name": "other"}),
        body({**CLONE_SET, "controller": False}),
        body({**CLONE_SET, "kind": "Thing", "apiVersion": "x.io/v1"}),
        body(RS),
    ):
        assert isinstance(cluster.admit(pod), Allow)
    assert isinstance(cluster.admit(body(), dry_run=True), Allow)
    finished = {**body(), "status": {"phase": "Succeeded"}}
    assert isinstance(cluster.admit(finished), Allow)
    assert (cluster.reads, cluster.writes) == ([], 0)


def test_what_a_pod_gets() -> None:  # WS-24 to WS-26, WS-64
    patch = {"metadata": {"labels": {"s": "a"}}, "spec": {"priorityClassName": "high"}}
    preferred = [{"weight": 5, "preference": zone_term("b")}]
    found = subset("a", "a", 1, patch=patch, tolerations=[{"key": "k"}], preferredNodeSelector=preferred)
    own = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "x", "operator": "Exists"}]}, {"matchFields": []}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": own}, "podAffinity": {"kept": 1}}
    pod = changed(
        Cluster(spread_of(found)).admit(body(affinity=affinity, tolerations=[{"key": "own"}], priority=7, odd=1))
    )
    spec = pod["spec"]
    assert spec["tolerations"] == [{"key": "own"}, {"key": "k"}]
    node = spec["affinity"]["nodeAffinity"]
    assert node["preferredDuringSchedulingIgnoredDuringExecution"] == preferred
    expression = zone_term("a")["matchExpressions"][0]
    assert node["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] == [
        {"matchExpressions": [{"key": "x", "operator": "Exists"}, expression]},
        {"matchFields": [], "matchExpressions": [expression]},
    ]
    assert spec["affinity"]["podAffinity"] == {"kept": 1}
    assert (spec["priorityClassName"], "priority" in spec, spec["odd"]) == ("high", False, 1)
    assert spec["containers"][0]["futureField"] == 1
    assert pod["metadata"]["labels"] == {"app": "web", "s": "a"}
    assert pod["metadata"]["annotations"] == {MATCHED: '{"name":"ws","subset":"a"}'}


def test_a_subset_without_selectors_leaves_an_empty_affinity() -> None:  # WS-24.2, PW-18
    pod = changed(Cluster(spread_of(subset("a"))).admit(body()))
    assert pod["spec"]["affinity"] == {"nodeAffinity": {}}


def test_one_unlimited_subset_needs_no_ledger() -> None:  # WS-20
    cluster = Cluster(spread_of(subset("a")))
    assert changed(cluster.admit(body()))
    assert cluster.writes == 0


def test_names_that_are_not_known_get_a_uid() -> None:  # WS-22.6, WS-25
    cluster = Cluster(spread_of(subset("a", size=1), subset("b")))
    mark = changed(cluster.admit(body(name="")))["metadata"]["annotations"][MATCHED]
    assert mark == '{"name":"ws","subset":"a","uid":"u-1"}'
    element = cluster.spread.status.versioned_subset_statuses["versionIgnored"][0]
    assert list(element.creating_pods) == ["u-1"]
    later = changed(cluster.admit(body(name=""), uid="u-2"))["metadata"]["annotations"][MATCHED]
    assert later == '{"name":"ws","subset":"b"}'
    assert cluster.writes == 1


DEPLOYMENT: Json = {"target": ("apps/v1", "Deployment")}


def owned(name: str = "web-abc", owner: str = "web") -> Workload:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": owner, "uid": "d", "controller": True}
    metadata = {"name": name, "namespace": "default", "uid": "rs", "ownerReferences": [reference]}
    return codec.convert({"metadata": metadata}, Workload)


def test_pods_of_a_deployment_are_found_through_their_replica_set() -> None:  # WS-18, WS-6
    spread = spread_of(subset("a", size=1), **DEPLOYMENT)
    cluster = Cluster(spread, replica_sets=(owned(), owned("other-x", "other")))
    assert changed(cluster.admit(body(RS, labels={"pod-template-hash": "abc"})))
    assert list(cluster.spread.status.versioned_subset_statuses) == ["abc"]
    assert isinstance(cluster.admit(body({**RS, "name": "other-x"})), Allow)
    assert cluster.reads == []


def test_a_replica_set_that_is_not_known_is_read() -> None:  # WS-18, PW-16
    cluster = Cluster(spread_of(subset("a", size=1), **DEPLOYMENT))
    target = Target(REPLICA_SETS, "default", "web-abc")
    cluster.live[target] = owned()
    assert changed(cluster.admit(body(RS)))
    cluster.live[target] = Failure(503, "ServiceUnavailable", "away")
    assert isinstance(cluster.admit(body(RS)), Allow)  # nobody is refused for a lookup that failed
    cluster.live[target] = None
    answer = cluster.admit(body(RS))
    assert isinstance(answer, Deny)
    assert answer.code == 500


def test_filters() -> None:  # WS-18, WS-19
    selector = {"matchLabels": {"role": "worker"}}
    cluster = Cluster(spread_of(subset("a"), targetFilter={"selector": selector}))
    assert isinstance(cluster.admit(body()), Allow)
    assert changed(cluster.admit(body(labels={"role": "worker"})))
    assert changed(Cluster(spread_of(subset("a"), targetFilter={"replicasPathList": ["x"]})).admit(body()))


def test_one_that_goes_takes_no_pods() -> None:  # WS-18, WS section 13
    spread = spread_of(subset("a"))
    going = codec.evolve(spread, metadata=codec.evolve(spread.metadata, deletion_timestamp=NOW))
    assert isinstance(Cluster(going).admit(body()), Allow)


def test_a_patch_that_does_not_fit_is_named() -> None:
    answer = Cluster(spread_of(subset("a", patch="foo"))).admit(body())
    assert isinstance(answer, Deny)
    assert "WorkloadSpread ws, subset a: spec.subsets[].patch" in answer.message


def test_deletions_are_noted_once() -> None:  # WS-31 to WS-33
    cluster = Cluster(spread_of(subset("a", size=1), subset("b")))
    cluster.admit(body(name="p"))
    store = cluster.stores[WORKLOAD_SPREADS]
    counted = codec.evolve(cluster.spread.status.versioned_subset_statuses["versionIgnored"][0], creating_pods={})
    counted = codec.evolve(counted, replicas=1)
    status = codec.evolve(cluster.spread.status, versioned_subset_statuses={"versionIgnored": (counted,)})
    store.event(
        "MODIFIED",
        codec.evolve(
            cluster.spread, status=status, metadata=codec.evolve(cluster.spread.metadata, resource_version="500")
        ),
    )
    for pod, options in (
        (pod_of("p"), {}),
        (pod_of("p", "b"), {}),
        (pod_of("p", "gone"), {}),
        (pod_of("p", "a", terminating=True), {}),
        (pod_of("p", "a", phase="Failed"), {}),
        (pod_of("p", "a"), {"dry_run": True}),
        (pod_of("p", annotations={MATCHED: '{"name":"nobody","subset":"a"}'}), {}),
    ):
        assert isinstance(cluster.delete(pod, **options), Allow)
    assert cluster.writes == 1
    for _ in range(2):
        assert isinstance(cluster.delete(pod_of("p", "a")), Allow)
    assert cluster.writes == 2
    element = cluster.spread.status.versioned_subset_statuses["versionIgnored"][0]
    assert element.deleting_pods == {"p": NOW}
    # Whoever comes now asks whether it is gone.
    target = Target(PODS, "default", "p")
    cluster.live[target] = pod_of("p", "a")
    assert MATCHED in changed(cluster.admit(body(name="q")))["metadata"]["annotations"]
    assert '"subset":"b"' in changed(cluster.admit(body(name="q")))["metadata"]["annotations"][MATCHED]
    cluster.live[target] = None
    assert '"subset":"a"' in changed(cluster.admit(body(name="r")))["metadata"]["annotations"][MATCHED]
    assert target in cluster.reads


@pytest.mark.parametrize(("live", "wanted"), [(2, "a"), (None, "")])
def test_percentages_are_of_the_live_target(live: int | None, wanted: str) -> None:  # WS-29
    cluster = Cluster(spread_of(subset("a", size="100%")))
    if live is not None:
        cluster.live[Target(CLONE_SETS, "default", "web")] = codec.convert({"spec": {"replicas": live}}, CloneSet)
    answer = cluster.admit(body())
    assert isinstance(answer, Change if wanted else Allow)


def test_a_pod_that_cannot_be_read_keeps_its_place() -> None:
    going = SubsetStatus(name="a", replicas=1, deleting_pods={"old": NOW})
    cluster = Cluster(with_list(spread_of(subset("a", size=1), subset("b")), going))
    cluster.live[Target(PODS, "default", "old")] = Failure(500, "InternalError", "not now")
    pod = changed(cluster.admit(body(name="new")))
    assert '"subset":"b"' in pod["metadata"]["annotations"][MATCHED].replace(" ", "")
    assert cluster.reads == [Target(PODS, "default", "old")]


def test_a_failed_pod_of_a_stateful_set_is_followed_into_its_subset() -> None:  # WS-21
    """Its successor has its name, and may come before anybody has counted that it failed."""
    counted = (
        SubsetStatus(name="a", replicas=2),
        SubsetStatus(name="b", replicas=1, missing_replicas=1),
    )
    spread = spread_of(subset("a", size=2), subset("b", size=2), target=("apps/v1", "StatefulSet"))
    cluster = Cluster(with_list(spread, *counted))
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "s", "controller": True}
    failed = pod_of("web-1", "a", phase="Failed", owner=("apps/v1", "StatefulSet"))
    assert isinstance(cluster.delete(failed), Allow)
    given = changed(cluster.admit(body(owner, name="web-1")))["metadata"]["annotations"][MATCHED]
    mark = json.loads(given)
    assert mark["subset"] == "a"
    first = cluster.spread.status.versioned_subset_statuses["versionIgnored"][0]
    assert (first.replicas, list(first.creating_pods), first.deleting_pods) == (1, [f"web-1/{mark['uid']}"], {})


def test_of_two_who_delete_a_pod_the_slower_one_gives_no_place_away() -> None:  # WS-33
    """The faster one has noted it, the pod has gone, and its place is another's by now."""
    counted = (SubsetStatus(name="a", replicas=2),)
    cluster = Cluster(with_list(spread_of(subset("a", size=2), subset("b")), *counted))
    pod = pod_of("p", "a")

    def faster() -> None:
        assert isinstance(cluster.delete(pod), Allow)
        cluster.live[Target.of(PODS, pod)] = None
        changed(cluster.admit(body(CLONE_SET, name="q")))

    cluster.others = [faster]
    assert isinstance(cluster.delete(pod), Allow)
    first = cluster.spread.status.versioned_subset_statuses["versionIgnored"][0]
    assert (first.replicas, list(first.creating_pods), first.deleting_pods) == (1, ["q"], {})


def test_a_pod_that_is_there_is_noted_however_many_write() -> None:  # WS-33
    cluster = Cluster(with_list(spread_of(subset("a", size=3), subset("b")), SubsetStatus(name="a", replicas=1)))
    pod = pod_of("p", "a")
    cluster.live[Target.of(PODS, pod)] = pod

    def other() -> None:
        changed(cluster.admit(body(CLONE_SET, name="q")))

    cluster.others = [other]
    assert isinstance(cluster.delete(pod), Allow)
    first = cluster.spread.status.versioned_subset_statuses["versionIgnored"][0]
    assert (list(first.creating_pods), list(first.deleting_pods)) == (["q"], ["p"])
    assert cluster.reads == [Target.of(PODS, pod)]


def test_an_entry_is_believed_only_in_the_newest_ledger() -> None:  # WS-22.3, WS-27
    """In an older copy it may be that of a pod that has come and gone since."""
    cluster = Cluster(spread_of(subset("a", size=2), subset("b")))
    request = request_of(body(CLONE_SET, name="p"), kind="Pod", resource="pods", namespace="default")
    needs = cluster.chain.decide(request, cluster.view)
    assert isinstance(needs, NeedsBooking)
    entered = needs.book(cluster.spread, NOW)
    assert entered.is_sure  # the write shows it
    again = needs.book(entered.object, NOW)
    assert (again.object is entered.object, again.is_sure) == (True, False)
