"""Which pods of a CloneSet move, in which order and how, and what holds the others: whole passes, as decided."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest

from kruise.api.meta import ObjectMeta
from kruise.api.native.pod import PODS, ContainerStatus, Pod
from kruise.inplace import keys
from kruise.inplace.state import LastStatus, UpdateSpec, UpdateState, grace_json, state_json
from kruise.machinery import codec
from kruise.machinery.client.requests import Verb
from kruise.machinery.patches.json_patch import pointer
from kruise.machinery.plan import Action, Chain, Outcomes, Plan
from kruise.workloads.cloneset.conclude import conclude
from kruise.workloads.cloneset.decide import decide
from kruise.workloads.cloneset.memo import Memo
from kruise.workloads.cloneset.situation import Situation
from tests.support.clonesets import NEW, NOW, OLD, TEMPLATE, make_cloneset, make_pod, make_situation

IN_PLACE = {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": "100%"}
UPDATE_HOOK = {"inPlaceUpdate": {"labelsHandler": {"hook": "true"}}}
DELETE_HOOK = {"preDelete": {"labelsHandler": {"hook": "true"}}}
HOOKED = {"hook": "true"}


def situation(
    pods: Sequence[Pod],
    *,
    replicas: int | None = None,
    rolling: Mapping[str, Any] | None = None,
    gates: Mapping[str, bool] | None = None,
    template: Mapping[str, Any] = TEMPLATE,
    **spec: Any,
) -> Situation:
    """In the middle of a rollout from the old revision, by default in place and without limits."""
    count = len(pods) if replicas is None else replicas
    cloneset = make_cloneset(replicas=count, rolling={**IN_PLACE, **(rolling or {})}, template=template, **spec)
    return make_situation(cloneset, pods, gates=gates, rollout=True)


def planned(pods: Sequence[Pod], **options: Any) -> Plan:
    return decide(situation(pods, **options).snapshot)


def chains(plan: Plan, phase: str) -> dict[str, Chain]:
    """The chains of a phase by the object they begin with, in order."""
    return {
        chain[0].target.name: chain for found in plan.phases if found.name == phase for chain in found.chains if chain
    }


def moved(plan: Plan) -> list[str]:
    return list(chains(plan, "update"))


def causes(plan: Plan) -> dict[str, list[str]]:
    return {held.target.name: [cause.code for cause in held.causes] for held in plan.held}


def written_labels(chain: Iterable[Action]) -> dict[str, str]:
    """Labels that a chain writes, whatever kind of patch it sends."""
    found: dict[str, str] = {}
    for action in chain:
        if isinstance(action.body, Mapping):
            found.update(action.body.get("metadata", {}).get("labels", {}))
        else:
            front = pointer("metadata", "labels", "")
            for item in action.body:
                if item["op"] in ("add", "replace") and item["path"].startswith(front):
                    found[item["path"].removeprefix(front).replace("~1", "/")] = item["value"]
    return found


def old(instance_id: str, **facts: Any) -> Pod:
    return make_pod(instance_id, old=True, **facts)


def new(instance_id: str, **facts: Any) -> Pod:
    return make_pod(instance_id, **facts)


def in_grace(pod: Pod, seconds: int = 60, revision: str = NEW.metadata.name) -> Pod:
    """It has begun an in-place update, and waits for its grace period to end."""
    state = UpdateState(revision=revision, update_timestamp=NOW)
    spec = UpdateSpec(revision=revision, container_images={"main": "nginx:1.25"}, grace_seconds=seconds)
    annotations = {keys.UPDATE_STATE_ANNOTATION: state_json(state), keys.UPDATE_GRACE_ANNOTATION: grace_json(spec)}
    labels = {**pod.metadata.labels, keys.REVISION_LABEL: revision}
    return codec.evolve(pod, metadata=codec.evolve(pod.metadata, annotations=annotations, labels=labels))


# Who moves (CS-102)


def test_as_many_as_max_unavailable_allows() -> None:  # CS-79, CS-102
    plan = planned([old(name) for name in "abcde"], rolling={"maxUnavailable": 2})
    assert moved(plan) == ["web-a", "web-b"]
    assert causes(plan) == {f"web-{name}": ["max-unavailable"] for name in "cde"}


def test_as_many_as_the_partition_leaves() -> None:  # CS-70, CS-102
    plan = planned([old(name) for name in "abcd"], rolling={"partition": "99%"})
    assert moved(plan) == ["web-a"]
    assert causes(plan) == {f"web-{name}": ["partition"] for name in "bcd"}


def test_unavailable_pods_of_the_target_revision_use_up_the_budget() -> None:  # CS-102
    pods = [new("a", ready=False), *(old(name) for name in "bcde")]
    assert moved(planned(pods, rolling={"maxUnavailable": 1})) == []
    assert moved(planned(pods, rolling={"maxUnavailable": 2})) == ["web-b"]


def test_a_broken_old_revision_is_replaced_no_faster_than_the_budget() -> None:  # CS-102, edge case 18
    pods = [old(name, ready=False) for name in "abcde"]
    assert moved(planned(pods, rolling={"maxUnavailable": 2})) == ["web-a", "web-b"]


def test_an_unavailable_old_pod_costs_no_availability() -> None:  # CS-102
    pods = [*(old(name) for name in "abcd"), old("e", ready=False)]
    plan = planned(pods, rolling={"maxUnavailable": 1})
    assert moved(plan) == ["web-e"], "it comes first, and nobody available may follow"
    assert moved(planned(pods, rolling={"maxUnavailable": 2})) == ["web-e", "web-a"]


def test_the_walk_ends_at_the_first_that_would_break_a_limit() -> None:  # CS-102: those behind do not overtake
    first = {"weightPriority": [{"weight": 100, "matchSelector": {"matchLabels": {"first": "yes"}}}]}
    pods = [old("a", labels={"first": "yes"}), old("b", ready=False), old("c")]
    plan = planned(pods, rolling={"maxUnavailable": 1, "priorityStrategy": first})
    assert moved(plan) == []
    assert causes(plan)["web-b"] == ["max-unavailable"]


def test_min_ready_seconds_count_for_availability() -> None:  # CS-102, IPU-112
    fresh = new("a", ready_since="2030-01-01T11:59:55Z")
    pods = [fresh, *(old(name) for name in "bc")]
    assert moved(planned(pods, rolling={"maxUnavailable": 1}, minReadySeconds=10)) == []
    assert moved(planned(pods, rolling={"maxUnavailable": 1}, minReadySeconds=4)) == ["web-b"]


def test_pods_of_several_old_revisions_are_candidates_alike() -> None:  # CS-102, edge case 17
    older = make_pod("b", old=True, labels={keys.REVISION_LABEL: "web-75758d4f6c"})
    plan = planned([old("a"), older], rolling={"maxUnavailable": 2})
    assert sorted(moved(plan)) == ["web-a", "web-b"]


def test_a_pod_in_grace_is_not_moved_again() -> None:  # CS-102, regression 6
    waiting = in_grace(old("a", state="Updating"), revision="web-75758d4f6c")
    assert moved(planned([waiting, old("b")])) == ["web-b"]


def test_a_pod_that_is_about_to_go_is_never_moved() -> None:  # CS-102, IPU-103
    leaving = old("a", state="PreparingDelete", labels=HOOKED)
    plan = planned([leaving, old("b")], lifecycle=DELETE_HOOK)
    assert moved(plan) == ["web-b"]


def test_a_pod_that_came_back_is_moved_at_once() -> None:  # CS-113
    assert moved(planned([old("a", state="PreparingNormal", node="")])) == ["web-a"]


def test_a_state_that_is_being_written_is_waited_for() -> None:  # CS-100
    plan = planned([old("a", state="PreparingNormal"), old("b")])
    assert moved(plan) == []
    assert written_labels(chains(plan, "refresh")["web-a"])[keys.STATE_LABEL] == "Normal"


def test_pods_that_prepare_come_first() -> None:  # IPU-123
    pods = [old("a"), old("b", state="PreparingUpdate")]
    assert moved(planned(pods, rolling={"maxUnavailable": 1}, lifecycle=UPDATE_HOOK)) == ["web-b"]


def test_scaling_comes_before_updating() -> None:  # CS-69
    plan = planned([old("a"), old("b")], replicas=3)
    [updating] = [phase for phase in plan.phases if phase.name == "update"]
    assert [phase.name for phase in plan.phases][:2] == ["scale", "update"]
    assert updating.unless_done == ("scale",)


# Who does not


def test_on_delete_updates_nothing() -> None:  # CS-101, CS-107
    plan = planned([old("a"), new("b")], updateStrategy={"type": "OnDelete"})
    assert moved(plan) == []
    assert causes(plan) == {"web-a": ["on-delete"]}


def test_paused_updates_nothing() -> None:  # CS-101, CS-108
    plan = planned([old("a"), new("b")], rolling={"paused": True})
    assert moved(plan) == []
    assert causes(plan) == {"web-a": ["paused"]}


@pytest.mark.parametrize(
    "spec",
    [
        {"rolling": {"paused": True}},
        {"updateStrategy": {"type": "OnDelete"}},
        {"rolling": {"partition": 2}},
    ],
)
def test_pods_are_refreshed_all_the_same(spec: dict[str, Any]) -> None:  # CS-100, CS-101, CS-108
    plan = planned([old("a", state="PreparingNormal"), old("b")], **spec)
    refreshed = chains(plan, "refresh")
    assert list(refreshed) == ["web-a"]
    assert written_labels(refreshed["web-a"])[keys.STATE_LABEL] == "Normal"


def test_a_missing_template_hash_is_added() -> None:  # CS-100
    bare = new("a")
    labels = {name: value for name, value in bare.metadata.labels.items() if name != keys.TEMPLATE_HASH_LABEL}
    bare = codec.evolve(bare, metadata=codec.evolve(bare.metadata, labels=labels))
    refreshed = chains(planned([bare]), "refresh")
    assert written_labels(refreshed["web-a"]) == {keys.TEMPLATE_HASH_LABEL: NEW.metadata.name.rpartition("-")[2]}


def test_pods_that_are_where_they_should_be_are_left_alone() -> None:  # CS-101
    plan = planned([new("a"), new("b")])
    assert plan.phases == ()
    assert plan.held == ()


# How they move (CS-103, CS-104)


def recreated(plan: Plan) -> dict[str, dict[str, str]]:
    return {name: written_labels(chain) for name, chain in chains(plan, "update").items()}


def with_env() -> dict[str, Any]:
    template: dict[str, Any] = copy.deepcopy(dict(TEMPLATE))
    template["spec"]["containers"][0]["env"] = [{"name": "A", "value": "b"}]
    return template


def test_in_place_where_it_is_possible() -> None:  # CS-103, IPU-40, IPU-42
    [status, spec] = chains(planned([old("a")]), "update")["web-a"]
    assert (status.subresource, spec.subresource) == ("status", "")
    assert {"op": "replace", "path": "/spec/containers/0/image", "value": "nginx:1.25"} in spec.body
    assert written_labels([spec])[keys.REVISION_LABEL] == NEW.metadata.name


def test_the_label_is_short_with_its_gate() -> None:  # IPU-21, CS-150
    chain = chains(planned([old("a")], gates={"CloneSetShortHash": True}), "update")["web-a"]
    assert written_labels(chain)[keys.REVISION_LABEL] == NEW.metadata.name.rpartition("-")[2]


def test_recreate_only_marks_the_pod() -> None:  # CS-104, IPU-130
    plan = planned([old("a")], rolling={"podUpdatePolicy": "ReCreate"})
    assert recreated(plan) == {"web-a": {keys.SPECIFIED_DELETE_LABEL: "true"}}
    assert plan.memo_as(Memo).moves == {"web-a": "recreate"}


def test_recreate_where_it_is_not_possible_in_place() -> None:  # CS-103
    plan = planned([old("a")], template=with_env())
    assert recreated(plan) == {"web-a": {keys.SPECIFIED_DELETE_LABEL: "true"}}


@pytest.mark.parametrize("value", ["true", "false", ""])
def test_a_pod_that_is_marked_already_is_not_marked_again(value: str) -> None:  # CS-104, IPU-130: any value marks
    marked = old("a", labels={keys.SPECIFIED_DELETE_LABEL: value})
    plan = planned([marked, old("b")], rolling={"podUpdatePolicy": "ReCreate", "maxUnavailable": 1})
    assert "web-a" not in chains(plan, "update")
    [gone] = chains(plan, "scale")["web-a"]
    assert gone.verb is Verb.DELETE


def test_in_place_only_says_what_it_cannot_do_and_goes_no_further() -> None:  # CS-103
    found = situation([old("a"), old("b")], rolling={"podUpdatePolicy": "InPlaceOnly"}, template=with_env())
    plan = decide(found.snapshot)
    assert moved(plan) == []
    assert causes(plan)["web-a"] == ["in-place-only"]
    conclusion = conclude(found.snapshot, plan, Outcomes())
    text = "find Pod web-a update strategy is InPlaceOnly but can not update in-place"
    assert conclusion.status is not None
    conditions = conclusion.status.body[0]["value"]["conditions"]
    [failed, _, waiting] = sorted(conditions, key=lambda item: str(item["type"]))
    assert (waiting["type"], waiting["reason"]) == ("Waiting", "InPlaceOnly")
    assert (failed["type"], failed["message"]) == ("FailedUpdate", text)


def test_a_state_that_nobody_knows_is_refused() -> None:  # IPU-103
    plan = planned([old("a", state="Resting"), old("b")])
    assert moved(plan) == []
    assert plan.memo_as(Memo).update_error == "not allowed to in-place update pod web-a in state Resting"


def test_a_pod_that_is_to_be_deleted_is_not_updated_in_place_first() -> None:  # CS-83, CS-103
    plan = planned([old("a", specified=True), old("b")], rolling={"maxUnavailable": 1})
    assert "web-a" not in moved(plan)
    assert list(chains(plan, "scale")) == ["web-a"]


def test_a_grace_period_is_waited_for() -> None:  # IPU-42, IPU-143
    plan = planned([old("a")], rolling={"inPlaceUpdateStrategy": {"gracePeriodSeconds": 7}})
    [_, spec] = chains(plan, "update")["web-a"]
    assert all("/image" not in item["path"] for item in spec.body)
    assert [wake.after for wake in plan.wakes] == [7.0]


def test_every_wait_is_asked_for() -> None:  # IPU-70, IPU-143: the queue keeps the earliest
    plan = planned([in_grace(new("a", state="Updating"), 60), in_grace(new("b", state="Updating"), 20)])
    assert sorted(wake.after for wake in plan.wakes) == [20.0, 60.0]
    assert causes(plan) == {"web-a": ["grace"], "web-b": ["grace"]}


# Claim templates (CS-125)


@pytest.mark.parametrize(
    ("policy", "gate", "how"),
    [
        ("InPlaceIfPossible", False, "in-place"),
        ("InPlaceIfPossible", True, "recreate"),
        ("InPlaceOnly", True, "in-place"),
    ],
)
def test_another_hash_of_claim_templates(policy: str, gate: bool, how: str) -> None:  # CS-125, IPU-31
    found = situation([old("a")], rolling={"podUpdatePolicy": policy})
    hashes = {OLD.metadata.name: "1", NEW.metadata.name: "2"}
    known = tuple(
        codec.evolve(
            revision,
            metadata=codec.evolve(
                revision.metadata, annotations={keys.CLAIM_TEMPLATES_HASH: hashes[revision.metadata.name]}
            ),
        )
        for revision in found.history
    )
    gates = {"RecreatePodWhenChangeVCTInCloneSetGate": gate}
    plan = decide(codec.evolve(found.snapshot, revisions=known, gates=gates))
    assert plan.memo_as(Memo).moves == {"web-a": how}


# Going back (CS-105, CS-109)


def test_a_raised_partition_does_nothing_without_its_gate() -> None:  # CS-109
    pods = [*(old(name) for name in "ab"), *(new(name) for name in "cde")]
    plan = planned(pods, rolling={"partition": 4, "maxUnavailable": 2})
    assert moved(plan) == []


def test_a_raised_partition_brings_pods_back_with_its_gate() -> None:  # CS-79, CS-105, CS-109
    pods = [*(old(name) for name in "ab"), *(new(name) for name in "cde")]
    plan = planned(pods, rolling={"partition": 4, "maxUnavailable": 2}, gates={"CloneSetPartitionRollback": True})
    back = chains(plan, "update")
    assert list(back) == ["web-c", "web-d"]
    assert {written_labels(chain)[keys.REVISION_LABEL] for chain in back.values()} == {OLD.metadata.name}
    image = {"op": "replace", "path": "/spec/containers/0/image", "value": "nginx:1.24"}
    assert all(image in chain[-1].body for chain in back.values())


def test_what_is_created_meanwhile_keeps_the_partition() -> None:  # CS-76, CS-105
    plan = planned([old("a"), new("b")], replicas=4, rolling={"partition": 2})
    made = [chain[-1].body["metadata"]["labels"][keys.REVISION_LABEL] for chain in chains(plan, "scale").values()]
    assert sorted(made) == sorted([OLD.metadata.name, NEW.metadata.name])


# Hooks


def test_a_hooked_pod_prepares_and_keeps_its_revision() -> None:  # CS-112
    chain = chains(planned([old("a", labels=HOOKED)], lifecycle=UPDATE_HOOK), "update")["web-a"]
    assert written_labels(chain) == {keys.STATE_LABEL: "PreparingUpdate"}


def test_a_pod_that_prepares_is_held_until_its_hook_is_gone() -> None:  # CS-112
    pod = old("a", labels=HOOKED, state="PreparingUpdate")
    plan = planned([pod], lifecycle=UPDATE_HOOK)
    assert moved(plan) == []
    [held] = plan.held
    assert [(cause.code, cause.message) for cause in held.causes] == [("hook", "label hook=true must be removed")]
    free = old("a", labels={"hook": "false"}, state="PreparingUpdate")
    assert moved(planned([free], lifecycle=UPDATE_HOOK)) == ["web-a"]


def test_a_pod_that_prepares_counts_as_unavailable() -> None:  # CS-112, IPU-112
    pods = [old("a", labels=HOOKED, state="PreparingUpdate"), old("b"), old("c")]
    assert moved(planned(pods, rolling={"maxUnavailable": 1}, lifecycle=UPDATE_HOOK)) == []


def test_an_update_in_place_knows_no_pre_delete_hook() -> None:  # IPU-105
    chain = chains(planned([old("a", labels=HOOKED)], lifecycle=DELETE_HOOK), "update")["web-a"]
    assert written_labels(chain)[keys.STATE_LABEL] == "Updating"


def test_a_recreated_pod_goes_through_its_pre_delete_hook() -> None:  # IPU-105, CS-86, CS-104
    marked = old("a", labels=HOOKED, specified=True)
    plan = planned([marked], rolling={"podUpdatePolicy": "ReCreate"}, lifecycle=DELETE_HOOK)
    [prepared] = chains(plan, "scale")["web-a"]
    assert prepared.verb is Verb.PATCH
    assert written_labels([prepared])[keys.STATE_LABEL] == "PreparingDelete"


def test_scale_in_goes_through_its_pre_delete_hook() -> None:  # IPU-105, CS-84
    plan = planned([new("a", labels=HOOKED)], replicas=0, lifecycle=DELETE_HOOK)
    [prepared] = chains(plan, "scale")["web-a"]
    assert written_labels([prepared])[keys.STATE_LABEL] == "PreparingDelete"


def test_annotations_that_cannot_be_read_hold_only_their_pod() -> None:  # CS-100
    broken = old("a", state="Updating")
    metadata: ObjectMeta = codec.evolve(broken.metadata, annotations={keys.UPDATE_STATE_ANNOTATION: "{"})
    plan = planned([codec.evolve(broken, metadata=metadata), old("b")])
    assert moved(plan) == ["web-b"]
    assert causes(plan)["web-a"] == ["broken-annotation"]


def test_an_updated_pod_gets_its_hook_back_before_another_update() -> None:  # IPU-100, regression 10
    hooks = {"inPlaceUpdate": {"labelsHandler": {"hook": "true"}, "finalizersHandler": ["example.com/hook"]}}
    pod = old("a", state="Updated", labels={"hook": "false"})
    [chain] = chains(planned([pod], lifecycle=hooks), "update").values()
    assert written_labels(chain) == {keys.STATE_LABEL: "PreparingUpdate", "hook": "true"}
    assert "example.com/hook" in str(chain[-1].body)


@pytest.mark.parametrize(
    ("pod", "lifecycle", "code", "message"),
    [
        (
            new("a", state="PreparingNormal"),
            {"preNormal": {"labelsHandler": HOOKED}},
            "hook",
            "label hook=true must be added",
        ),
        (new("a", state="PreparingNormal", node=""), None, "unscheduled", "the pod has no node yet"),
        (new("a", state="Updated"), UPDATE_HOOK, "hook", "label hook=true must be added"),
        (
            new("a", state="PreparingDelete", labels=HOOKED, specified=True),
            DELETE_HOOK,
            "hook",
            "label hook=true must be removed",
        ),
    ],
)
def test_who_waits_is_told_for_what(pod: Pod, lifecycle: Any, code: str, message: str) -> None:  # CS-110, IPU-104
    plan = planned([pod], lifecycle=lifecycle)
    assert chains(plan, "update") == {}
    assert [(cause.code, cause.message) for held in plan.held for cause in held.causes] == [(code, message)]


# Pods under way


def under_way(pod: Pod, state: UpdateState, *, image: str, runs: str) -> Pod:
    """In an update whose container should run `image`, and runs another one or the same."""
    metadata = codec.evolve(pod.metadata, annotations={keys.UPDATE_STATE_ANNOTATION: state_json(state)})
    [main] = pod.spec.containers
    status = ContainerStatus(name="main", image=runs, image_id=f"id-of-{runs}", ready=True)
    return codec.evolve(
        pod,
        metadata=metadata,
        spec=codec.evolve(pod.spec, containers=(codec.evolve(main, image=image),)),
        status=codec.evolve(pod.status, container_statuses=(status,)),
    )


BEGUN = UpdateState(
    revision=NEW.metadata.name,
    update_timestamp=NOW,
    last_container_statuses={"main": LastStatus(image_id="id-of-nginx:1.24")},
    update_images=True,
)


def test_a_pod_whose_container_has_not_restarted_is_waited_for() -> None:  # IPU-61, IPU-71
    plan = planned([under_way(new("a", state="Updating"), BEGUN, image="nginx:1.25", runs="nginx:1.24")])
    assert plan.phases == ()
    assert causes(plan) == {"web-a": ["updating"]}


def test_a_pod_that_has_arrived_becomes_normal() -> None:  # IPU-60, IPU-72, CS-100
    plan = planned([under_way(new("a", state="Updating"), BEGUN, image="nginx:1.25", runs="nginx:1.25")])
    assert written_labels(chains(plan, "refresh")["web-a"])[keys.STATE_LABEL] == "Normal"
    assert plan.held == ()


def test_the_end_of_grace_changes_the_pod() -> None:  # IPU-70, CS-100
    waited = in_grace(new("a", state="Updating"), 60)
    found = situation([waited, old("b")], rolling={"maxUnavailable": 2})
    later = codec.evolve(found.snapshot, now=NOW + timedelta(seconds=60))
    plan = decide(later)
    [chain] = chains(plan, "refresh").values()
    labels = written_labels(chain)
    assert keys.STATE_LABEL not in labels, "it is still on its way"
    assert any("/image" in item["path"] for action in chain for item in action.body)
    assert moved(plan) == ["web-b"], "steps of pods under way do not stop the others (CS-100)"


@pytest.mark.parametrize("key", [keys.UPDATE_GRACE_ANNOTATION, keys.OLD_UPDATE_GRACE_ANNOTATION])
def test_a_grace_period_of_a_normal_pod_is_noticed(key: str) -> None:  # IPU-70, regression 5
    """Somebody set it back to Normal and to another revision: what was prepared is dropped, not applied."""
    pod = in_grace(new("a"), 60, revision="web-75758d4f6c")
    annotations = dict(pod.metadata.annotations)
    annotations[key] = annotations.pop(keys.UPDATE_GRACE_ANNOTATION)
    labels = {**pod.metadata.labels, keys.REVISION_LABEL: NEW.metadata.name}
    pod = codec.evolve(pod, metadata=codec.evolve(pod.metadata, annotations=annotations, labels=labels))
    [chain] = chains(planned([pod]), "refresh").values()
    removed = [item["path"] for action in chain for item in action.body if item["op"] == "remove"]
    assert removed == [pointer("metadata", "annotations", key)]


def test_every_write_of_a_pod_names_the_pod_it_was_decided_about() -> None:
    plan = planned([old("a"), old("b", state="PreparingNormal", node=""), new("c", specified=True)])
    on_pods = [action for action in plan.actions() if action.target.resource == PODS and action.verb is not Verb.CREATE]
    assert on_pods
    assert all(action.uid == f"uid-{action.target.name.removeprefix('web-')}" for action in on_pods)
