"""What a pass decides: subsets of pods, costs, counts, marks (WS section 7)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kruise.api.apps.workloadspread import SubsetStatus, WorkloadSpread
from kruise.api.meta import Condition
from kruise.api.native.pod import Pod
from kruise.machinery import codec
from kruise.machinery.client.requests import Verb
from kruise.machinery.codec import evolve
from kruise.machinery.plan import OnError, Outcome, Outcomes, PhaseOutcomes, Plan, Result, Urgency
from kruise.spread.workloadspread.conclude import conclude, events
from kruise.spread.workloadspread.costs import in_order_of_leaving
from kruise.spread.workloadspread.decide import MARK, STATUS, Memo, decide
from kruise.spread.workloadspread.numbers import PathError, number_at, sum_at
from tests.spread.workloadspread.objects import NOW, node_of, pod_of, snapshot_of, spread_of, with_list
from tests.spread.workloadspread.stories import MATCHED, adaptive, subset, zone_term

COST = "controller.kubernetes.io/pod-deletion-cost"
DEPLOYMENT: dict[str, Any] = {"target": ("apps/v1", "Deployment")}
RS = ("apps/v1", "ReplicaSet")
UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/3 nodes are available: 3 node(s) didn't match. preemption: 0/3 nodes are available: 3 not helpful.",
}


def marks(plan: Plan) -> dict[str, dict[str, Any]]:
    """What is written to the metadata of pods, by name."""
    return {
        chain[0].target.name: chain[0].body["metadata"]
        for phase in plan.phases
        if phase.name == MARK
        for chain in phase.chains
    }


def costs(plan: Plan) -> dict[str, int]:
    return {name: int(body["annotations"][COST]) for name, body in marks(plan).items() if COST in body["annotations"]}


def status(plan: Plan) -> dict[str, Any]:
    for action in plan.actions():
        if action.subresource == "status":
            found: dict[str, Any] = action.body[0]["value"]
            return found
    return {}


def counted(plan: Plan, version: str = "") -> dict[str, tuple[int, int]]:
    told = status(plan)
    elements = told["versionedSubsetStatuses"].get(version, []) if version else told["subsetStatuses"]
    return {item["name"]: (item["replicas"], item["missingReplicas"]) for item in elements}


def pods(subset_name: str, number: int, **options: Any) -> list[Pod]:
    return [pod_of(f"{subset_name}-{position}", subset_name, **options) for position in range(number)]


@pytest.mark.parametrize(
    ("sizes", "numbers", "wanted"),
    [
        ((3, 3), (3, 3), {200: 3, 100: 3}),
        ((10, 10, None), (10, 10, 10), {300: 10, 200: 10, 100: 10}),
        ((10, 10, None), (20, 20, 20), {300: 10, -100: 10, 200: 10, -200: 10, 100: 20}),
        ((None,), (4,), {100: 4}),
    ],
)
def test_costs(sizes: tuple[int | None, ...], numbers: tuple[int, ...], wanted: dict[int, int]) -> None:  # WS-45
    spread = spread_of(*(subset(f"s{position}", size=size) for position, size in enumerate(sizes)))
    found = [pod for position, number in enumerate(numbers) for pod in pods(f"s{position}", number)]
    told = costs(decide(snapshot_of(spread, *found)))
    assert {cost: list(told.values()).count(cost) for cost in set(told.values())} == wanted


def test_pods_of_a_subset_that_is_gone_go_first() -> None:  # WS-42, WS-45, WS-63
    assert costs(decide(snapshot_of(spread_of(subset("a")), *pods("gone", 2)))) == {"gone-0": -200, "gone-1": -200}


def test_costs_are_written_only_where_they_differ_and_where_somebody_reads_them() -> None:  # WS-45, WS-56
    right = pod_of("p", "a", annotations={COST: "100"})
    assert costs(decide(snapshot_of(spread_of(subset("a")), right))) == {}
    for target in (("apps/v1", "StatefulSet"), ("batch/v1", "Job"), ("x.io/v1", "Custom")):
        assert costs(decide(snapshot_of(spread_of(subset("a"), target=target), *pods("a", 1)))) == {}
    assert costs(decide(snapshot_of(spread_of(subset("a")), *pods("a", 1, phase="Succeeded")))) == {}


def test_old_versions_are_drained_from_the_first_subset() -> None:  # WS-46
    spread = spread_of(subset("a", size=3), subset("b"), **DEPLOYMENT)
    found = [
        *(pod_of(f"old-a{n}", "a", owner=RS, labels={"pod-template-hash": "old"}) for n in range(3)),
        pod_of("old-b", "b", owner=RS, labels={"pod-template-hash": "old"}),
        pod_of("new-a", "a", owner=RS, labels={"pod-template-hash": "new"}),
    ]
    told = costs(decide(snapshot_of(spread, *found, latest="new")))
    assert told == {"old-a0": 100, "old-a1": 100, "old-a2": 100, "old-b": 200, "new-a": 200}


def test_who_is_surplus() -> None:  # WS-45
    ordered = [
        pod_of("unassigned", node="", phase="Pending", ready=False),
        pod_of("pending", phase="Pending", ready=False),
        pod_of("unready", ready=False),
        pod_of("ready-restarts", restarts=3, age=50),
        pod_of("ready-lately", age=50),
        pod_of("ready-long", age=500),
    ]
    assert [pod.metadata.name for pod in in_order_of_leaving(ordered[::-1])] == [pod.metadata.name for pod in ordered]


# Counting


def test_counts_and_entries() -> None:  # WS-47, WS-5
    spread = with_list(
        spread_of(subset("a", size=5), subset("b")),
        SubsetStatus(
            name="a",
            creating_pods={"a-0": NOW, "coming": NOW - timedelta(seconds=10), "lost": NOW - timedelta(seconds=31)},
            deleting_pods={
                "a-1": NOW - timedelta(seconds=5),
                "a-2": NOW - timedelta(seconds=16),
                "away": NOW - timedelta(seconds=1),
            },
        ),
    )
    plan = decide(snapshot_of(spread, *pods("a", 3)))
    assert counted(plan) == {"a": (3, 2), "b": (0, -1)}
    assert counted(plan, "versionIgnored") == {"a": (3, 1), "b": (0, -1)}
    element = status(plan)["versionedSubsetStatuses"]["versionIgnored"][0]
    assert list(element["creatingPods"]) == ["coming"]
    assert list(element["deletingPods"]) == ["a-1"]
    assert sorted(wake.after for wake in plan.wakes) == [10, 20]
    assert "creatingPods" not in status(plan)["subsetStatuses"][0]
    done = Outcomes((PhaseOutcomes(STATUS, (tuple(_done(plan, STATUS)),)),))
    told = {(note.reason, note.message) for note in conclude(snapshot_of(spread), plan, done).events}
    assert told == {
        ("CreatePodFailed", "Pod default/lost was expected to be created but it wasn't"),
        ("DeletePodFailed", "Pod default/a-2 was expected to be deleted but it wasn't"),
    }


def _done(plan: Plan, name: str, result: Result = Result.DONE) -> list[Outcome]:
    return [
        Outcome(action=action, result=result, error="" if result is Result.DONE else "no")
        for phase in plan.phases
        if phase.name == name
        for chain in phase.chains
        for action in chain
    ]


def test_what_expired_is_not_told_before_it_is_out_of_the_ledger() -> None:
    old = SubsetStatus(name="a", creating_pods={"lost": NOW - timedelta(seconds=60)})
    plan = decide(snapshot_of(with_list(spread_of(subset("a", size=1)), old)))
    moved = Outcomes((PhaseOutcomes(STATUS, (tuple(_done(plan, STATUS, Result.MOVED)),)),))
    assert conclude(snapshot_of(spread_of()), plan, moved).events == ()


def test_pods_are_found_by_the_uid_of_their_booking() -> None:  # WS-25, WS-47
    old = SubsetStatus(name="a", creating_pods={"some-uid": NOW})
    plan = decide(snapshot_of(with_list(spread_of(subset("a", size=1)), old), pod_of("p", "a", uid="some-uid")))
    assert counted(plan, "versionIgnored") == {"a": (1, 0)}


def test_an_entry_may_be_for_the_pod_that_follows() -> None:
    old = SubsetStatus(name="a", creating_pods={"web-0": NOW})
    leaving = pod_of("web-0", "a", terminating=True)
    told = status(decide(snapshot_of(with_list(spread_of(subset("a", size=1)), old), leaving)))
    assert told["versionedSubsetStatuses"]["versionIgnored"][0]["creatingPods"]
    young = pod_of("web-0", "a", terminating=True, age=0)
    told = status(decide(snapshot_of(with_list(spread_of(subset("a", size=1)), old), young)))
    assert "creatingPods" not in told["versionedSubsetStatuses"]["versionIgnored"][0]


def test_versions_without_pods() -> None:  # WS-48
    spread = with_list(spread_of(subset("a", size=1), **DEPLOYMENT), SubsetStatus(name="a", replicas=1), version="old")
    assert "versionedSubsetStatuses" not in status(decide(snapshot_of(spread)))
    coming = with_list(spread, SubsetStatus(name="a", creating_pods={"u": NOW}), version="new")
    assert list(status(decide(snapshot_of(coming)))["versionedSubsetStatuses"]) == ["new"]


def test_a_status_that_is_true_is_not_written_again() -> None:  # WS-34a, WS-37
    spread = spread_of(subset("a", size=2), subset("b"))
    pod = pod_of("p", "a", annotations={COST: "200"})
    first = decide(snapshot_of(spread, pod))
    written = evolve(spread, status=codec.convert(status(first), type(spread.status)))
    again = decide(snapshot_of(written, pod))
    assert again.phases == ()
    assert status(decide(snapshot_of(evolve(written, metadata=evolve(written.metadata, generation=2)), pod)))


def test_the_status_is_guarded_and_comes_after_the_costs() -> None:  # WS-36, WS-37
    plan = decide(snapshot_of(spread_of(subset("a")), *pods("a", 1)))
    assert [phase.name for phase in plan.phases] == [MARK, STATUS]
    action = plan.phases[-1].chains[0][0]
    assert (action.uid, action.resource_version) == ("ws-uid", "7")


def test_one_that_goes_is_left_alone() -> None:  # WS-35
    spread = spread_of(subset("a"))
    going = evolve(spread, metadata=evolve(spread.metadata, deletion_timestamp=NOW))
    assert decide(snapshot_of(going, *pods("a", 1))) == Plan()


# Adoption


def old_spread(*subsets: dict[str, Any], **options: Any) -> WorkloadSpread:
    """Younger than its pods."""
    return spread_of(*subsets, age=10, **options)


def test_pods_from_before_are_taken_over() -> None:  # WS-43, WS-44
    patch = {"metadata": {"labels": {"s": "a"}, "annotations": {"x": "y"}}, "spec": {"hostNetwork": True}}
    spread = old_spread(subset("a", "a", 1, patch=patch), subset("b", "b"))
    found = [pod_of("p1"), pod_of("p2"), pod_of("p3", node="node-b"), pod_of("p4", node=""), pod_of("p5", node="away")]
    plan = decide(snapshot_of(spread, *found))
    told = marks(plan)
    assert told["p1"]["labels"] == {"s": "a"}
    assert told["p1"]["annotations"] == {"x": "y", MATCHED: '{"name":"ws","subset":"a"}', COST: "-100"}
    assert told["p2"]["annotations"][COST] == "200"
    assert told["p3"]["annotations"] == {MATCHED: '{"name":"ws","subset":"b"}', COST: "100"}
    assert told["p4"] == told["p5"] == {"annotations": {COST: "-300"}}
    assert counted(plan) == {"a": (2, 0), "b": (1, -1)}
    keeps = evolve(
        spread,
        metadata=evolve(
            spread.metadata, annotations={"workloadspread.kruise.io/ignore-patch-existing-pods-metadata": "True"}
        ),
    )
    assert "labels" not in marks(decide(snapshot_of(keeps, *found)))["p1"]


def test_scores() -> None:  # WS-41, WS-43, WS-63
    def preferred(name: str, **weights: int) -> dict[str, Any]:
        terms = [{"weight": weight, "preference": zone_term(zone)} for zone, weight in weights.items()]
        return {"name": name, "preferredNodeSelector": terms}

    spread = old_spread(preferred("a", a=20, b=10), preferred("b", a=10, b=20))
    on_b = pod_of("p", node="node-b")
    assert counted(decide(snapshot_of(spread, on_b))) == {"a": (0, -1), "b": (1, -1)}
    labelled = old_spread(subset("a"), subset("b", patch={"metadata": {"labels": {"s": "b"}}}))
    assert counted(decide(snapshot_of(labelled, pod_of("p", labels={"s": "b"}))))["b"] == (1, -1)
    assert counted(decide(snapshot_of(labelled, pod_of("p"))))["a"] == (1, -1)
    sized = old_spread(subset("a", size=0), subset("b", size=1))
    assert counted(decide(snapshot_of(sized, pod_of("p"))))["b"] == (1, 0)


def test_taints_and_the_pods_own_affinity_count() -> None:  # WS-43
    spread = old_spread(subset("a", tolerations=[{"key": "spot", "operator": "Exists"}]), subset("b"))
    tainted = {"node-a": node_of("node-a", "a", {"key": "spot", "effect": "NoSchedule"})}
    snapshot = evolve(snapshot_of(spread, pod_of("p")), nodes=tainted)
    assert counted(decide(snapshot))["a"] == (1, -1)
    required = {"nodeSelectorTerms": [zone_term("b")]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    strict = pod_of("p", spec={"affinity": affinity})
    assert marks(decide(snapshot_of(old_spread(subset("a", "a")), strict)))["p"] == {"annotations": {COST: "-200"}}


def test_those_that_were_let_in_stay_as_they_are_until_there_is_a_place() -> None:  # WS-34a, WS-60
    full = spread_of(subset("a", size=1))
    found = [*pods("a", 1, annotations={COST: "100"}), pod_of("extra")]
    assert marks(decide(snapshot_of(full, *found))) == {}
    raised = spread_of(subset("a", size=2))
    assert list(marks(decide(snapshot_of(raised, *found)))) == ["extra"]
    # One that another WorkloadSpread let in, which is gone, is taken over like one from before (WS-43).
    foreign = pod_of("foreign", annotations={MATCHED: '{"name":"gone","subset":"x"}'})
    assert list(marks(decide(snapshot_of(full, *pods("a", 1, annotations={COST: "100"}), foreign)))) == [
        "a-0",
        "foreign",
    ]


@pytest.mark.parametrize("text", ["no json", "[]", '{"subset":"a"}', '{"name":5,"subset":"a"}'])
def test_a_mark_that_nobody_can_read_is_none(text: str) -> None:  # WS-25, WS section 13
    odd = pod_of("p", annotations={MATCHED: text})
    assert counted(decide(snapshot_of(old_spread(subset("a")), odd))) == {"a": (1, -1)}
    shouted = pod_of("p", annotations={MATCHED: '{"NAME":"ws","Subset":"a"}'})
    assert marks(decide(snapshot_of(old_spread(subset("a")), shouted)))["p"] == {"annotations": {COST: "100"}}


# Rescheduling


def stuck(name: str, subset_name: str, age: float) -> Pod:
    return pod_of(name, subset_name, node="", phase="Pending", ready=False, age=age, conditions=[UNSCHEDULABLE])


def told_conditions(plan: Plan) -> dict[str, tuple[str, str]]:
    return {
        item["name"]: (item["conditions"][0]["status"], item["conditions"][0]["reason"])
        for item in status(plan)["subsetStatuses"]
        if "conditions" in item
    }


def test_stuck_pods_are_deleted_after_their_subset_is_marked() -> None:  # WS-50, WS-52, WS-53, WS-36
    spread = spread_of(subset("a", size=2), subset("b"), scheduleStrategy=adaptive(5))
    plan = decide(snapshot_of(spread, stuck("old", "a", 6), stuck("young", "a", 5), stuck("last", "b", 60)))
    assert told_conditions(plan) == {"a": ("False", "PodUnschedulable"), "b": ("True", "Sufficient")}
    chain = plan.phases[-1].chains[0]
    assert [(action.verb, action.target.name) for action in chain] == [(Verb.PATCH, "ws"), (Verb.DELETE, "old")]
    assert {wake.after for wake in plan.wakes} == {1}
    assert status(plan)["versionedSubsetStatuses"]["versionIgnored"][0]["conditions"][0]["status"] == "False"
    told = [cause.message for held in plan.held for cause in held.causes]
    assert told[0].endswith("The scheduler says: 0/3 nodes are available: 3 node(s) didn't match.")
    assert all("preemption" not in text for text in told)


def test_fixed_and_zero_seconds_have_no_condition() -> None:  # WS-8
    bad = Condition(type="Schedulable", status="False", reason="PodUnschedulable", last_transition_time=NOW)
    for strategy in ({"type": "Fixed"}, {"type": "Adaptive"}, adaptive(0)):
        spread = spread_of(subset("a", size=2), subset("b"), scheduleStrategy=strategy)
        spread = evolve(
            spread, status=evolve(spread.status, subset_statuses=(SubsetStatus(name="a", conditions=(bad,)),))
        )
        plan = decide(snapshot_of(spread, stuck("old", "a", 600)))
        assert told_conditions(plan) == {}
        assert all(action.verb is not Verb.DELETE for action in plan.actions())


@pytest.mark.parametrize(("age", "wanted"), [(299, "False"), (300, "True")])
def test_a_subset_is_tried_again_after_five_minutes(age: int, wanted: str) -> None:  # WS-50, WS-52
    since = NOW - timedelta(seconds=age)
    bad = Condition(type="Schedulable", status="False", reason="PodUnschedulable", last_transition_time=since)
    spread = spread_of(subset("a", size=2), subset("b"), scheduleStrategy=adaptive(5))
    element = SubsetStatus(name="a", conditions=(bad,))
    spread = evolve(spread, status=evolve(spread.status, subset_statuses=(element,)))
    plan = decide(snapshot_of(spread))
    assert told_conditions(plan)["a"][0] == wanted
    assert [wake.after for wake in plan.wakes] == ([1] if wanted == "False" else [])
    notes = conclude(snapshot_of(spread), plan, Outcomes()).events
    assert [note.reason for note in notes] == ([] if wanted == "False" else ["RecoverSchedulable"])


def test_failures_are_told() -> None:
    spread = spread_of(subset("a", size=2), subset("b"), scheduleStrategy=adaptive(5))
    plan = decide(snapshot_of(spread, stuck("old", "a", 60)))
    cost = next(iter(events(plan, MARK, tuple(_done(plan, MARK, Result.FAILED)))))
    assert cost.reason == "PatchPodDeletionCostFailed"
    chain = tuple(_done(plan, STATUS, Result.FAILED))
    assert [note.reason for note in events(plan, STATUS, chain)] == ["DeletePodFailed"]


# Paths


def test_paths() -> None:  # WS-30, WS-39
    document = {"spec": {"groups": [{"replicas": 2}, {"replicas": 3}], "ready": True, "name": "x"}}
    assert sum_at(document, ["spec.groups.0.replicas", "spec.groups.1.replicas", ""]) == 5
    for path in ("spec.groups.2.replicas", "spec.groups.-1.replicas", "spec.groups.x", "spec.none", "spec.name.x"):
        with pytest.raises(PathError, match="leads nowhere"):
            number_at(document, path)
    for path in ("spec.ready", "spec.name", "spec.groups"):
        with pytest.raises(PathError, match="whole number"):
            number_at(document, path)


def test_a_path_that_leads_nowhere_stops_nothing_but_the_count() -> None:  # WS-39
    spread = spread_of(subset("a", size="50%"), subset("b"))
    plan = decide(snapshot_of(spread, *pods("a", 1), problem="spec.targetFilter.replicasPathList: odd"))
    assert plan.phases == ()
    assert plan.held[0].causes[0].meaning.code == "no-target"
    assert plan.memo_as(Memo).parts == (), "nobody can tell who is above a maximum that nobody knows"


# What goes wrong


@pytest.mark.parametrize(("result", "observed"), [(Result.DONE, [4]), (Result.FAILED, [])])
def test_a_pod_that_takes_no_mark_does_not_keep_the_count_back(result: Result, observed: list[int]) -> None:  # WS-36
    spread = spread_of(subset("a", size=2), subset("b"), generation=4)
    snapshot = snapshot_of(evolve(spread, status=evolve(spread.status, observed_generation=3)), pod_of("p", "a"))
    plan = decide(snapshot)
    assert (plan.phases[0].name, plan.phases[0].on_error) == (MARK, OnError.CONTINUE)
    assert counted(plan)["a"] == (1, 1)
    assert status(plan)["observedGeneration"] == 3
    assert [(held.target.name, held.causes[0].code) for held in plan.held] == [("p", "unmarked")]
    done = Outcomes(
        tuple(
            PhaseOutcomes(
                phase.name,
                tuple(
                    tuple(Outcome(action=one, result=result if phase.name == MARK else Result.DONE) for one in chain)
                    for chain in phase.chains
                ),
            )
            for phase in plan.phases
        )
    )
    written = conclude(snapshot, plan, done).status
    assert [item["value"] for item in (written.body if written is not None else [])] == observed


def test_entries_from_before_the_clock_was_set_back_expire() -> None:
    ahead = NOW + timedelta(hours=1)
    element = SubsetStatus(name="a", replicas=1, creating_pods={"c": ahead}, deleting_pods={"p": ahead})
    plan = decide(snapshot_of(with_list(spread_of(subset("a", size=2), subset("b")), element), pod_of("p", "a")))
    [first, _] = status(plan)["versionedSubsetStatuses"]["versionIgnored"]
    assert "creatingPods" not in first
    assert "deletingPods" not in first
    soon = SubsetStatus(name="a", creating_pods={"c": NOW + timedelta(seconds=5)})
    plan = decide(snapshot_of(with_list(spread_of(subset("a", size=2), subset("b")), soon)))
    assert "c" in status(plan)["versionedSubsetStatuses"]["versionIgnored"][0]["creatingPods"]


# Many pods at once


def test_the_ledger_is_written_before_many_pods_are_marked() -> None:  # WS-36, WS-47
    """Admission goes on writing there: what was counted would be stale once all are marked."""
    spread = spread_of(subset("a", "a", 40), subset("b"), generation=2)
    creating = {f"pod-{number:02}": NOW for number in range(30)}
    spread = with_list(spread, SubsetStatus(name="a", missing_replicas=10, creating_pods=creating))
    pods = [pod_of(name, "a") for name in creating]
    plan = decide(snapshot_of(spread, *pods))
    assert [phase.name for phase in plan.phases] == ["ledger", MARK, STATUS]
    assert plan.phases[1].urgency is Urgency.LATER, "pods that are still to be made do not wait for them"
    ledger, overall = plan.phases[0].chains[0][0], plan.phases[2].chains[0][0]
    [written] = ledger.body
    assert ledger.resource_version == "7", "guarded: others write it, too"
    [element, _] = written["value"]["versionedSubsetStatuses"]["versionIgnored"]
    assert (element["replicas"], element["missingReplicas"], "creatingPods" in element) == (30, 10, False)
    assert written["value"]["subsetStatuses"] == [], "what people look at tells of pods that are marked"
    assert not overall.resource_version
    told = {operation["path"]: operation["value"] for operation in overall.body}
    assert [item["replicas"] for item in told["/status/subsetStatuses"]] == [30, 0]
    assert told["/status/observedGeneration"] == 0, "not before all of them are marked"
    assert "/status/versionedSubsetStatuses" not in told


def test_a_ledger_that_has_not_changed_is_not_written_for_many_marks() -> None:  # WS-37
    spread = spread_of(subset("a"))
    plan = decide(snapshot_of(spread, *(pod_of(f"pod-{number:02}", "a") for number in range(30))))
    settled = evolve(spread, status=codec.convert(plan.phases[0].chains[0][0].body[0]["value"], type(spread.status)))
    again = decide(snapshot_of(settled, *(pod_of(f"pod-{number:02}", "a") for number in range(30))))
    assert [phase.name for phase in again.phases] == [MARK, STATUS]


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ("foo", "spec.subsets[1].patch: failed to merge patch: it must be an object"),
        ({"spec": {"containers": "x"}}, "spec.subsets[1].patch.spec.containers: Invalid value"),
        ({"spec": {"tolerations": None}}, ""),
    ],
)
def test_a_patch_that_lets_every_pod_be_refused_is_told(patch: Any, words: str) -> None:
    plan = decide(snapshot_of(spread_of(subset("a", size=1), subset("b", patch=patch))))
    told = [(cause.code, cause.message) for held in plan.held for cause in held.causes]
    assert [code for code, _ in told] == ["subset-patch"] * bool(words)
    assert all(message.startswith(f"pods that are to go into subset b are refused: {words}") for _, message in told)
