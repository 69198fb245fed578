"""Which pods count for a budget, and how many there should be: over stores that change."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.meta import key_of
from kruise.api.native.apps import DAEMON_SETS, DEPLOYMENTS, REPLICA_SETS
from kruise.api.native.pod import PODS
from kruise.api.policy.podunavailablebudget import POD_UNAVAILABLE_BUDGETS
from kruise.api.resource import Resource
from kruise.machinery import codec
from kruise.machinery.store import Store
from kruise.machinery.watched import Watched
from kruise.manager import gates
from kruise.manager.options import Options
from kruise.protection.podunavailablebudget.booking import records_over
from kruise.protection.podunavailablebudget.controller import controllers
from kruise.protection.podunavailablebudget.counts import Looked
from kruise.protection.podunavailablebudget.decide import Memo, Snapshot, decide
from kruise.protection.podunavailablebudget.indexes import WATCHED_BUDGETS, WATCHED_PODS, WATCHED_REPLICA_SETS
from kruise.protection.podunavailablebudget.members import Members, Selected, behind, members_of, owners_to_ask
from kruise.protection.podunavailablebudget.workloads import NATIVE, OPTIONAL, Asked, NotKnownYetError, Owner
from tests.protection.podunavailablebudget.objects import GATES, NOW, budget, pod


class Stores:
    def __init__(self, *, unlisted: tuple[Resource[Any], ...] = ()) -> None:
        watched = (WATCHED_BUDGETS, WATCHED_PODS, WATCHED_REPLICA_SETS)
        kinds = {kind.resource: kind for kind in watched}
        self._stores = {
            resource: Store(kinds.get(resource, Watched(resource)))
            for resource in (POD_UNAVAILABLE_BUDGETS, PODS, *NATIVE, *OPTIONAL)
        }
        for resource, store in self._stores.items():
            if resource not in unlisted:
                store.replace((), 1)
        self._version = 1

    def store(self, resource: Resource[Any]) -> Store[Any]:
        return self._stores[resource]

    def put(self, resource: Resource[Any], obj: Any) -> Any:
        self._version += 1
        changed = codec.evolve(obj, metadata=codec.evolve(obj.metadata, resource_version=str(self._version)))
        self.store(resource).event("MODIFIED", changed)
        return changed


def workload(resource: Resource[Any], name: str, *, replicas: int | None = 3, owner: Any = None, **status: Any) -> Any:
    metadata: dict[str, Any] = {"name": name, "namespace": "demo", "uid": f"uid-of-{name}", "labels": {"app": "web"}}
    if owner is not None:
        reference = {"apiVersion": "apps/v1", "kind": owner.kind, "name": owner.metadata.name}
        metadata["ownerReferences"] = [{**reference, "uid": owner.metadata.uid, "controller": True}]
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": {}}
    document = {"kind": resource.kind, "metadata": metadata, "spec": spec, "status": status}
    return codec.convert(document, resource.type)


def owned(name: str, owner: Any, kind: str, api_version: str = "apps/v1", **options: Any) -> Any:
    reference = {"apiVersion": api_version, "kind": kind, "name": owner.metadata.name, "uid": owner.metadata.uid}
    return pod(name, ownerReferences=[{**reference, "controller": True}], **options)


def target(kind: str, api_version: str = "apps/v1", **status: Any) -> Any:
    spec = {"targetRef": {"apiVersion": api_version, "kind": kind, "name": "web"}, "maxUnavailable": 1}
    return budget(spec=spec, **status)


def names(members: Members) -> list[str]:
    return [one.metadata.name for one in members.pods]


def test_a_deployment_counts_the_pods_of_all_its_replica_sets() -> None:
    """PUB-30: old ones without replicas, too."""
    stores = Stores()
    deployment = stores.put(DEPLOYMENTS, workload(DEPLOYMENTS, "web", replicas=5))
    for name, replicas in (("web-1", 0), ("web-2", 5)):
        replica_set = stores.put(REPLICA_SETS, workload(REPLICA_SETS, name, replicas=replicas, owner=deployment))
        stores.put(PODS, owned(f"{name}-pod", replica_set, "ReplicaSet"))
    found = members_of(target("Deployment", "apps/v1beta9"), stores, Selected())
    assert (names(found), found.total) == (["web-1-pod", "web-2-pod"], 5)


def test_a_missing_target_has_nothing() -> None:
    """PUB-30, PUB-125."""
    found = members_of(target("Deployment"), Stores(), Selected())
    assert (found.is_target_missing, found.total, found.pods) == (True, 0, ())


@pytest.mark.parametrize("number", [{"minAvailable": 2}, {"minAvailable": "80%"}, {"maxUnavailable": 0}])
def test_what_a_deleted_workload_leaves_may_go(number: dict[str, Any]) -> None:
    """PUB-125: whatever number must be available, and however the budget finds its pods."""
    for spec in (target("Deployment").spec, budget().spec):
        stores = Stores()
        of_web = codec.convert({**number}, type(spec))
        whose = {"target_ref": spec.target_ref, "selector": spec.selector}
        over = codec.evolve(budget(), spec=codec.evolve(of_web, **whose))
        stores.put(POD_UNAVAILABLE_BUDGETS, over)
        gone = workload(REPLICA_SETS, "web-1")
        for name in ("web-a", "web-b"):
            stores.put(PODS, owned(name, gone, "ReplicaSet"))
        found = members_of(over, stores, Selected())
        plan = decide(Snapshot(budget=over, members=found, now=NOW, gates=dict(GATES)))
        memo = plan.memo_as(Memo)
        assert memo.status is not None
        assert memo.status.desired_available == 0
        (cause,) = (cause for held in plan.held for cause in held.causes)
        assert cause.code == "target-missing"


def test_a_workload_without_replicas_is_kept_by_a_number_and_that_is_said() -> None:
    """PUB-30, PUB-35, PUB-126: minAvailable may ask for more than there should be."""
    about = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    stores, over = Stores(), budget(spec={"targetRef": about, "minAvailable": 2})
    stores.put(DEPLOYMENTS, workload(DEPLOYMENTS, "web", replicas=0))
    found = members_of(over, stores, Selected())
    plan = decide(Snapshot(budget=over, members=found, now=NOW, gates=dict(GATES)))
    status = plan.memo_as(Memo).status
    assert status is not None
    assert (status.desired_available, status.unavailable_allowed) == (2, 0)
    (cause,) = (cause for held in plan.held for cause in held.causes)
    assert cause.code == "budget-never-free"
    assert "should have no pods" in cause.message


def test_pods_of_nobody_are_kept_as_a_number_says() -> None:
    """PUB-123: they have lost no workload, they never had one."""
    stores, over = Stores(), budget(spec={"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 2})
    stores.put(POD_UNAVAILABLE_BUDGETS, over)
    gone = workload(REPLICA_SETS, "web-1")
    stores.put(PODS, owned("web-a", gone, "ReplicaSet"))
    stores.put(PODS, pod("web-b"))
    found = members_of(over, stores, Selected())
    memo = decide(Snapshot(budget=over, members=found, now=NOW, gates=dict(GATES))).memo_as(Memo)
    assert memo.status is not None
    assert (memo.status.desired_available, memo.status.unavailable_allowed) == (2, 0)


def test_a_daemon_set_counts_its_nodes() -> None:
    stores = Stores()
    agent = stores.put(DAEMON_SETS, workload(DAEMON_SETS, "web", replicas=None, desiredNumberScheduled=4))
    stores.put(PODS, owned("web-a", agent, "DaemonSet"))
    found = members_of(target("DaemonSet"), stores, Selected())
    assert (found.total, names(found)) == (4, ["web-a"])


GAME = Owner("example.com", "Game", "web")


def game_pods(stores: Stores) -> None:
    reference = {"apiVersion": "example.com/v1", "kind": "Game", "name": "web", "uid": "game-uid", "controller": True}
    for name in ("web-a", "web-b", "web-c"):
        stores.put(PODS, pod(name, ownerReferences=[reference]))


def test_a_kind_that_nobody_watches_is_asked() -> None:
    """PUB-30: its pods are those that it owns, else those that its scale selects."""
    stores = Stores()
    game_pods(stores)
    about = target("Game", "example.com/v2")
    assert owners_to_ask(about, stores, Selected(), {}) == (GAME,)
    owned_pods = members_of(about, stores, Selected(), {GAME: Asked(uid="game-uid", replicas=5)})
    assert (names(owned_pods), owned_pods.total, owned_pods.uncounted) == (["web-a", "web-b", "web-c"], 5, ())
    selected_pods = members_of(
        about, stores, Selected(), {GAME: Asked(uid="other-uid", replicas=5, selector="app=web")}
    )
    assert names(selected_pods) == ["web-a", "web-b", "web-c"]
    gone = members_of(about, stores, Selected(), {GAME: None})
    assert (gone.pods, gone.total, gone.is_target_missing) == ((), 0, True)
    none = members_of(about, stores, Selected(), {GAME: Asked(uid="game-uid", replicas=0)})
    assert (none.pods, none.total) == ((), 0)


def test_a_count_that_nobody_tells_can_be_told_by_the_budget() -> None:
    """PUB-33, PUB-34: then its pods count as those of any other, and not everything is refused."""
    stores = Stores()
    game_pods(stores)
    about = target("Game", "example.com/v1")
    unknown = members_of(about, stores, Selected(), {GAME: Asked(uid="game-uid")})
    assert (unknown.total, unknown.uncounted, len(unknown.pods)) == (-1, ("Game web",), 3)
    spec = {**codec.to_builtins(about)["spec"], "protectTotalReplicas": 3}
    found = members_of(budget(spec=spec), stores, Selected(), {GAME: Asked(uid="game-uid")})
    assert (found.total, found.uncounted, names(found)) == (3, (), ["web-a", "web-b", "web-c"])
    plan = decide(Snapshot(budget=budget(spec=spec), members=found, now=NOW, gates=dict(GATES)))
    status = plan.memo_as(Memo).status
    assert status is not None
    assert (status.unavailable_allowed, status.current_available, status.desired_available) == (1, 3, 2)


def test_where_nobody_can_ask_the_last_count_stands() -> None:
    """For a look at a budget without a manager, and for forecasts."""
    stores = Stores()
    game_pods(stores)
    found = members_of(target("Game", "example.com/v1"), stores, Selected())
    assert (found.total, names(found)) == (3, ["web-a", "web-b", "web-c"])


def test_a_selector_counts_kinds_that_nobody_watches() -> None:
    """PUB-31: each workload once, if it is the one that the pods remember."""
    stores = Stores()
    game_pods(stores)
    clone_set = stores.put(CLONE_SETS, workload(CLONE_SETS, "other", replicas=2))
    stores.put(PODS, owned("clone", clone_set, "CloneSet", "apps.kruise.io/v1beta1"))
    assert owners_to_ask(budget(), stores, Selected(), {}) == (GAME,)
    for asked, total, uncounted in (
        (Asked(uid="game-uid", replicas=4), 6, ()),
        (Asked(uid="another-uid", replicas=4), 2, ()),
        (None, 2, ()),
        (Asked(uid="game-uid"), 1, ("Game web",)),
    ):
        found = members_of(budget(), stores, Selected(), {GAME: asked})
        assert (found.total, found.uncounted) == (total, uncounted)


def test_a_kind_that_is_not_listed_yet_is_waited_for() -> None:
    """An empty store would look like an empty cluster, and open the budget."""
    with pytest.raises(NotKnownYetError):
        members_of(target("Deployment"), Stores(unlisted=(DEPLOYMENTS,)), Selected())


DEPLOYMENT, REPLICA_SET = Owner("apps", "Deployment", "web"), Owner("apps", "ReplicaSet", "web-1")


def test_a_workload_that_a_store_does_not_have_is_asked_for_before_it_is_taken_for_gone() -> None:
    """PUB-30, PUB-31, PUB-125: the pods of a rollout may be seen long before their ReplicaSet."""
    stores, selected = Stores(), Selected()
    deployment = workload(DEPLOYMENTS, "web", replicas=5)
    replica_set = workload(REPLICA_SETS, "web-1", owner=deployment)
    stores.put(PODS, owned("web-a", replica_set, "ReplicaSet"))
    answers: dict[Owner, Any] = {}
    for owner, said in ((REPLICA_SET, replica_set), (DEPLOYMENT, deployment)):
        assert owners_to_ask(budget(), stores, selected, answers) == (owner,)
        with pytest.raises(NotKnownYetError):
            members_of(budget(), stores, selected, answers)
        answers[owner] = said
    assert owners_to_ask(budget(), stores, selected, answers) == ()
    found = members_of(budget(), stores, selected, answers)
    assert (found.total, found.is_abandoned, found.is_asked) == (5, False, False)
    gone = members_of(budget(), stores, selected, {REPLICA_SET: None})
    assert (gone.total, gone.is_abandoned) == (0, True)
    # By name, too.
    about = target("Deployment")
    assert owners_to_ask(about, stores, selected, {}) == (DEPLOYMENT,)
    assert members_of(about, stores, selected, answers).total == 5
    assert members_of(about, stores, selected, {DEPLOYMENT: None}).is_target_missing
    # Once the store has them, nobody is asked.
    stores.put(DEPLOYMENTS, deployment)
    stores.put(REPLICA_SETS, replica_set)
    assert owners_to_ask(budget(), stores, selected, {}) == owners_to_ask(about, stores, selected, {}) == ()


def test_a_record_stays_while_the_replica_set_of_its_pod_is_not_known() -> None:
    """PUB-52, PUB-130: a pod that was let go would count as available as soon as its ReplicaSet is seen."""
    stores = Stores()
    deployment = stores.put(DEPLOYMENTS, workload(DEPLOYMENTS, "web", replicas=1))
    replica_set = workload(REPLICA_SETS, "web-1", owner=deployment)
    stores.put(PODS, owned("web-a", replica_set, "ReplicaSet"))
    told = {"web-a": {"uid": "uid-of-web-a", "resourceVersion": "1"}}
    asked = target("Deployment", disruptedPods={"web-a": "2030-01-01T11:59:59Z"}, identities=told)
    for is_seen in (False, True):
        if is_seen:
            stores.put(REPLICA_SETS, replica_set)
        members = members_of(asked, stores, Selected(), {})
        assert names(members) == (["web-a"] if is_seen else [])
        status = decide(Snapshot(budget=asked, members=members, now=NOW, gates=dict(GATES))).memo_as(Memo).status
        assert status is not None
        assert (status.current_available, set(status.disrupted_pods)) == (0, {"web-a"})
        asked = codec.evolve(asked, status=status)


def test_a_replica_set_that_is_seen_late_concerns_the_budget_of_its_deployment() -> None:
    """PUB-30, PUB-56: its pods were seen before; nothing else tells that they are its own."""
    (controller,) = controllers(Options(gates=gates.resolve({})))
    stores = Stores()
    about = stores.put(POD_UNAVAILABLE_BUDGETS, target("Deployment"))
    deployment = stores.put(DEPLOYMENTS, workload(DEPLOYMENTS, "web"))
    replica_set = workload(REPLICA_SETS, "web-1", owner=deployment)
    scaled = codec.evolve(replica_set, spec=codec.evolve(replica_set.spec, replicas=1))
    (keys_of,) = (source.keys for source in controller.sources if source.resource == REPLICA_SETS)
    assert list(keys_of(None, replica_set, stores)) == [key_of(about)]
    assert list(keys_of(replica_set, None, stores)) == [key_of(about)]
    assert list(keys_of(replica_set, scaled, stores)) == []


def test_the_predecessor_of_a_workload_does_not_stand_for_it() -> None:
    """PUB-31: the store has an older one of that name; its pods are of the one that the API server has."""
    stores, selected = Stores(), Selected()
    stores.put(CLONE_SETS, workload(CLONE_SETS, "web", replicas=2))
    older = workload(CLONE_SETS, "web", replicas=4)
    newer = codec.evolve(older, metadata=codec.evolve(older.metadata, uid="uid-of-another"))
    stores.put(PODS, owned("web-a", newer, "CloneSet", "apps.kruise.io/v1beta1"))
    clone_set = Owner("apps.kruise.io", "CloneSet", "web")
    assert owners_to_ask(budget(), stores, selected, {}) == (clone_set,)
    assert members_of(budget(), stores, selected, {clone_set: newer}).total == 4
    assert members_of(budget(), stores, selected, {clone_set: older}).is_abandoned


def test_a_selector_sums_over_the_workloads_behind_its_pods() -> None:
    """PUB-31, PUB-32: a Deployment with two ReplicaSets once; pods of nobody, and those that end, not at all."""
    stores = Stores()
    deployment = stores.put(DEPLOYMENTS, workload(DEPLOYMENTS, "web", replicas=5))
    clone_set = stores.put(CLONE_SETS, workload(CLONE_SETS, "other", replicas=2))
    for name in ("web-1", "web-2"):
        replica_set = stores.put(REPLICA_SETS, workload(REPLICA_SETS, name, replicas=3, owner=deployment))
        stores.put(PODS, owned(f"{name}-pod", replica_set, "ReplicaSet"))
    stores.put(PODS, owned("clone", clone_set, "CloneSet", "apps.kruise.io/v1beta1"))
    stores.put(PODS, pod("bare"))
    stores.put(PODS, pod("leaving", deletionTimestamp="2030-01-01T00:00:00Z"))
    found = members_of(budget(), stores, Selected())
    assert found.total == 7
    assert names(found) == ["bare", "clone", "web-1-pod", "web-2-pod"]
    assert found.gone == ("uid-of-leaving",)


def test_the_pods_of_a_selector_are_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever comes, goes or is labelled anew is noted; the namespace is not listed again."""
    stores, selected = Stores(), Selected()
    asked = stores.put(POD_UNAVAILABLE_BUDGETS, budget())
    stores.store(PODS).subscribe(lambda old, new: selected.note(old, new, stores))
    stores.put(PODS, pod("web-a"))
    assert names(members_of(asked, stores, selected)) == ["web-a"]
    monkeypatch.setattr(Store, "list", lambda *_: pytest.fail("the whole namespace was listed"))
    second = stores.put(PODS, pod("web-b"))
    assert names(members_of(asked, stores, selected)) == ["web-a", "web-b"]
    away = codec.evolve(second, metadata=codec.evolve(second.metadata, labels={"app": "api"}))
    stores.put(PODS, away)
    assert names(members_of(asked, stores, selected)) == ["web-a"]


def test_a_record_stays_while_the_watch_lags_behind() -> None:
    """PUB-52, PUB-130: over by its time, but the pod is another one by now, and nobody here has seen it."""
    stores = Stores()
    seen = stores.put(PODS, pod("web-a"))
    asked = budget(unavailablePods={"web-a": "2030-01-01T11:00:00Z"}, identities={"web-a": {"uid": "uid-of-web-a"}})
    members = members_of(asked, stores, Selected())
    version = int(seen.metadata.resource_version)
    assert behind(members, {"web-a": version}, ["web-a"]) == ()
    assert behind(members, {"web-a": version + 1}, ["web-a"]) == behind(members, {"web-a": None}, ["web-a"])
    assert behind(members, {"web-a": None}, ["web-a"]) == ("web-a",)
    assert behind(members, {"elsewhere": None}, ["elsewhere"]) == ()
    # Only some are looked at in one pass; of the others nobody knows.
    assert behind(members, {"web-a": version}, ["web-a", "web-b"]) == ("web-b",)
    for late, current in ((("web-a",), 0), ((), 1)):
        snapshot = Snapshot(budget=asked, members=codec.evolve(members, behind=late), now=NOW, gates=dict(GATES))
        status = decide(snapshot).memo_as(Memo).status
        assert status is not None
        assert (status.current_available, set(status.unavailable_pods)) == (current, set(late))
    assert records_over(asked.status, NOW) == ["web-a"]


def test_a_record_of_a_pod_that_is_yet_to_be_seen_stays() -> None:
    """PUB-52: the store still has its predecessor of the same name, which must not count as available."""
    stores = Stores()
    seen = stores.put(PODS, pod("web-0"))
    version = int(seen.metadata.resource_version)
    for newer, is_kept in ((version + 5, True), (version, False)):
        identities = {"web-0": {"uid": "of-its-successor", "resourceVersion": str(newer)}}
        asked = budget(disruptedPods={"web-0": "2030-01-01T11:59:59Z"}, identities=identities)
        members = members_of(asked, stores, Selected())
        status = decide(Snapshot(budget=asked, members=members, now=NOW, gates=dict(GATES))).memo_as(Memo).status
        assert status is not None
        assert (bool(status.disrupted_pods), status.current_available) == (is_kept, 0 if is_kept else 1)


@pytest.mark.parametrize(
    ("version", "strange", "waits"), [(1, 0, False), (50, 0, True), (50, 50, False), (51, 50, True)]
)
def test_numbers_of_newer_pods_are_left_alone(version: int, strange: int, waits: bool) -> None:
    """PUB-53: also where the budget changed after somebody looked, as it does for a manager that stood still."""
    (controller,) = controllers(Options(gates=gates.resolve({})))
    stores = Stores()
    asked = stores.put(POD_UNAVAILABLE_BUDGETS, budget(podsVersion=version))
    stores.put(PODS, pod("web-a"))
    view: Any = SimpleNamespace(store=stores.store, now=NOW, outside=Looked(strange=strange))
    snapshot = controller.snapshot(view, key_of(asked))
    assert snapshot is not None
    assert bool(snapshot.waits_for) is waits
