"""The failure budget: its forms, which pods failed, when a rollout stops and goes on, and what that means in plans."""

from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.api.apps.cloneset import CLONE_SETS, CloneSetStatus
from kruise.api.apps.shared import FailureBudgetStatus
from kruise.api.meta import Condition
from kruise.api.native.pod import PODS, Pod, is_active
from kruise.faces.kstatus import RECONCILING, STALLED
from kruise.faces.progress import Phase
from kruise.inplace import keys
from kruise.inplace.state import UpdateState, state_json
from kruise.machinery import codec
from kruise.machinery.client.requests import Verb
from kruise.machinery.digest import plan_to_data
from kruise.machinery.plan import Action, Outcomes, Plan
from kruise.machinery.revision_names import short_hash
from kruise.model.world import Json
from kruise.workloads.cloneset import face
from kruise.workloads.cloneset.conclude import conclude
from kruise.workloads.cloneset.decide import decide
from kruise.workloads.cloneset.memo import Memo
from kruise.workloads.cloneset.numbers import Limits
from kruise.workloads.cloneset.situation import Snapshot
from kruise.workloads.cloneset.validation import problems
from kruise.workloads.cloneset.wire import Reading, read
from kruise.workloads.shared import advice, failure_budget
from kruise.workloads.shared.conditions import FAILURE_BUDGET
from kruise.workloads.shared.failure_budget import (
    ANNOTATION,
    Budget,
    BudgetError,
    Reaction,
    RolloutState,
    Stop,
    judge,
    look_at,
)
from kruise.workloads.shared.validation import Candidate
from tests.support.clonesets import NOW, TEMPLATE, make_cloneset, make_pending
from tests.support.examples import story_settings
from tests.support.modelled import BROKEN
from tests.workloads.cloneset.modelled import ModelledCloneSet
from tests.workloads.cloneset.test_properties import _STEPS as STEPS
from tests.workloads.cloneset.test_properties import Checked, models
from tests.workloads.cloneset.test_properties import _come_to_rest as come_to_rest
from tests.workloads.cloneset.test_properties import _is_where_it_should_be as is_where_it_should_be
from tests.workloads.cloneset.test_properties import _play as play

# Forms


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("0", Budget(0)),
        ("2", Budget(2)),
        ("2:pause", Budget(2)),
        ("10%", Budget("10%")),
        ("0.5%:rollback", Budget("0.5%", Reaction.ROLL_BACK)),
        ("100%:rollback", Budget("100%", Reaction.ROLL_BACK)),
    ],
)
def test_forms(text: str, budget: Budget) -> None:
    assert failure_budget.parse(text) == budget
    assert failure_budget.budget_of({ANNOTATION: text}) == budget


@pytest.mark.parametrize(
    "text",
    ["", " 2", "2 ", "-1", "+1", "1.5", "%", "-5%", "101%", "2:", "2:Pause", "2:stop", ":pause", "2:pause:x", "٣"],
)
def test_what_is_no_budget_is_refused_with_the_forms_and_has_no_effect(text: str) -> None:
    with pytest.raises(BudgetError, match='"10%:rollback"'):
        failure_budget.parse(text)
    assert failure_budget.budget_of({ANNOTATION: text}) is None


@given(st.text(max_size=8))
def test_any_text_is_a_budget_or_refused(text: str) -> None:
    budget = failure_budget.budget_of({ANNOTATION: text})
    if budget is None:
        with pytest.raises(BudgetError, match="percentage"):
            failure_budget.parse(text)
    else:
        assert budget.allows(10) >= 0


@pytest.mark.parametrize(("amount", "replicas", "allowed"), [("10%", 19, 1), ("10%", 9, 0), (3, 2, 3), ("50%", 0, 0)])
def test_percentages_are_of_the_replicas_rounded_down(amount: int | str, replicas: int, allowed: int) -> None:
    assert Budget(amount).allows(replicas) == allowed


# Failed pods


def pod(
    *statuses: Json, created: str = "2030-01-01T11:55:00Z", moved: str = "", resources: bool = False, **more: Any
) -> Pod:
    """`moved` in place at that time, and its `resources` then."""
    metadata: Json = {"name": "web-a", "namespace": "demo", "creationTimestamp": created, "annotations": {}}
    if moved:
        since = datetime.fromisoformat(moved)
        state = UpdateState(revision="web-2", update_timestamp=since, update_resources=resources)
        metadata["annotations"][keys.UPDATE_STATE_ANNOTATION] = state_json(state)
    document = {
        "metadata": metadata,
        "spec": {"nodeName": "node-1", "containers": [{"name": "main", "image": "nginx:2"}], **more.pop("spec", {})},
        "status": {"phase": "Running", "containerStatuses": list(statuses), **more},
    }
    return codec.convert(document, Pod)


def waiting(reason: str, message: str = "", **more: Any) -> Json:
    return {"name": "main", "state": {"waiting": {"reason": reason, "message": message}}, **more}


def ended(at: str, code: int = 1, started: str = "") -> Json:
    return {"terminated": {"exitCode": code, "startedAt": started or at, "finishedAt": at}}


def failure(found: Pod, now: datetime = NOW) -> str:
    return look_at(found, deadline_seconds=600, now=now).failure


@pytest.mark.parametrize(
    "reason",
    [
        "CrashLoopBackOff",
        "ImagePullBackOff",
        "ErrImagePull",
        "InvalidImageName",
        "ErrImageNeverPull",
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
        "PostStartHookError",
    ],
)
def test_a_container_that_cannot_start_is_a_failure(reason: str) -> None:
    assert failure(pod(waiting(reason))) == f"{reason} of container main"
    assert failure(pod(waiting(reason), phase="Pending")) == f"{reason} of container main"


def test_a_container_that_is_being_made_is_none() -> None:
    look = look_at(pod(waiting("ContainerCreating")), deadline_seconds=600, now=NOW)
    assert look.failure == ""
    assert look.due_after == 301  # made five minutes ago; times have whole seconds


def test_a_container_that_waits_for_its_turn_is_none_until_the_deadline() -> None:
    """CLP-8: pods that start in order show that error until those before are ready."""
    key = {"configMapKeyRef": {"name": "web-a-barrier", "key": "p_0"}}
    spec = {"containers": [{"name": "main", "env": [{"name": keys.BARRIER_ENV, "valueFrom": key}]}]}
    text = "couldn't find key p_0 in ConfigMap demo/web-a-barrier"
    found = pod(waiting("CreateContainerConfigError", text), spec=spec)
    look = look_at(found, deadline_seconds=600, now=NOW)
    assert (look.failure, look.due_after) == ("", 301)
    assert failure(found, NOW + timedelta(seconds=301)) == "not ready for 600 s"


def test_an_init_container_counts_too() -> None:
    assert failure(pod(initContainerStatuses=[{**waiting("CrashLoopBackOff"), "name": "init"}])).endswith("init")


def test_old_trouble_does_not_count_against_the_revision_that_repairs_it() -> None:
    """A kubelet tells the former state until it has pulled the new image."""
    moved = "2030-01-01T11:59:50Z"
    assert failure(pod(waiting("ImagePullBackOff", 'Back-off pulling image "nginx:1"'), moved=moved)) == ""
    assert failure(pod(waiting("ImagePullBackOff", 'Back-off pulling image "nginx:2"'), moved=moved)) != ""
    before, after = "2030-01-01T11:59:40Z", "2030-01-01T11:59:55Z"
    assert failure(pod(waiting("CrashLoopBackOff", lastState=ended(before)), moved=moved)) == ""
    assert failure(pod(waiting("CrashLoopBackOff", lastState=ended(after, started=before)), moved=moved)) == ""
    assert failure(pod(waiting("CrashLoopBackOff", lastState=ended(after)), moved=moved)) != ""
    never = ended(after, started="1970-01-01T00:00:00Z")
    assert failure(pod(waiting("CrashLoopBackOff", lastState=never), moved=moved)) != ""


def test_a_container_that_crashed_twice_is_a_failure_while_it_runs_again() -> None:
    """Else a pod that crashes again and again would look well in between."""
    running = {"name": "main", "state": {"running": {}}, "lastState": ended("2030-01-01T11:59:00Z")}
    ready = [{"type": "Ready", "status": "True", "lastTransitionTime": "2030-01-01T11:59:55Z"}]
    assert failure(pod({**running, "restartCount": 2})) == "container main ended with code 1, 2 restarts"
    assert failure(pod({**running, "restartCount": 1})) == ""
    assert failure(pod({**running, "restartCount": 2}, conditions=ready)) != ""
    assert failure(pod({**running, "restartCount": 2}, conditions=ready), NOW + timedelta(seconds=10)) == ""
    # An update in place is a restart of its own.
    moved = "2030-01-01T11:58:00Z"
    assert failure(pod({**running, "restartCount": 2}, moved=moved)) == ""
    assert failure(pod({**running, "restartCount": 3}, moved=moved)) != ""


def test_a_pod_that_is_not_ready_in_time_is_a_failure() -> None:
    late = pod({"name": "main", "state": {"running": {}}}, created="2030-01-01T11:49:59Z")
    assert failure(late) == "not ready for 600 s"
    assert failure(late, NOW - timedelta(seconds=1)) == ""
    assert failure(pod(created="2030-01-01T11:49:59Z", spec={"nodeName": ""})) == "without a node for 600 s"
    # The time begins with the move, and again when the pod has been ready meanwhile.
    assert failure(pod(created="2030-01-01T10:00:00Z", moved="2030-01-01T11:55:00Z")) == ""
    unready = [{"type": "Ready", "status": "False", "lastTransitionTime": "2030-01-01T11:55:00Z"}]
    assert failure(pod(created="2030-01-01T10:00:00Z", conditions=unready)) == ""


def test_a_pod_that_a_hook_takes_out_of_service_has_not_failed() -> None:
    held = [{"type": keys.KRUISE_POD_READY, "status": "False"}]
    assert (
        look_at(pod(created="2030-01-01T10:00:00Z", conditions=held), deadline_seconds=600, now=NOW).due_after is None
    )


def test_a_resize_that_the_node_refuses_is_a_failure_though_the_pod_serves_on() -> None:
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2030-01-01T10:00:00Z"}
    pending = {"type": "PodResizePending", "status": "True", "message": "no room"}
    refused = resized([ready, {**pending, "reason": "Infeasible"}])
    assert failure(refused) == "the node refuses the new resources (Infeasible: no room)"
    deferred = resized([ready, {**pending, "reason": "Deferred"}])
    assert look_at(deferred, deadline_seconds=600, now=NOW).due_after == 301  # whole seconds mean their end
    late = NOW + timedelta(seconds=301)
    assert failure(deferred, late) == "the node puts the new resources off (Deferred: no room)"
    assert failure(pod(conditions=[ready, {**pending, "reason": "Infeasible"}])) == ""  # it was made so
    by_others = pod(moved="2030-01-01T11:55:00Z", conditions=[ready, {**pending, "reason": "Infeasible"}])
    assert failure(by_others) == ""  # its update was of something else


def resized(conditions: list[Json], *statuses: Json) -> Pod:
    return pod(*statuses, moved="2030-01-01T11:55:00Z", resources=True, conditions=conditions)


def test_a_resize_that_never_ends_is_a_failure_in_the_end() -> None:
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2030-01-01T10:00:00Z"}
    under_way = {"type": "PodResizeInProgress", "status": "True"}
    late = NOW + timedelta(seconds=301)
    assert look_at(resized([ready, under_way]), deadline_seconds=600, now=NOW).due_after == 301
    assert failure(resized([ready, under_way]), late) == "without its new resources for 600 s"
    fails = {**under_way, "reason": "Error", "message": "too much is used"}
    assert failure(resized([ready, fails])) == ""
    assert (
        failure(resized([ready, fails]), late) == "the node fails to give the new resources (Error: too much is used)"
    )


def test_a_resize_of_somebody_else_has_a_deadline_of_its_own() -> None:
    """The update that changed resources has been over for long; an autoscaler asks for others now."""
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2030-01-01T10:00:00Z"}
    begun = {"type": "PodResizeInProgress", "status": "True", "lastTransitionTime": "2030-01-03T12:00:00Z"}
    now = datetime(2030, 1, 3, 12, 0, 2, tzinfo=UTC)
    look = look_at(resized([ready, begun]), deadline_seconds=600, now=now)
    assert look.failure == ""
    assert look.due_after == 599  # whole seconds mean their end


def test_a_resize_that_waits_hides_no_crash() -> None:
    unready = {"type": "Ready", "status": "False", "lastTransitionTime": "2030-01-01T11:58:00Z"}
    pending = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}
    assert failure(resized([unready, pending], waiting("CrashLoopBackOff", lastState=ended("2030-01-01T11:58:00Z"))))


def test_pods_that_were_sent_away_are_not_lost() -> None:
    assert failure_budget.is_lost(pod(phase="Failed", reason="Evicted"))
    assert not failure_budget.is_lost(pod(phase="Failed", reason="Preempting"))
    assert not failure_budget.is_lost(pod())


# When a rollout stops


def rollout(failed: int = 0, **more: Any) -> RolloutState:
    values: Json = {"revision": "web-2", "replicas": 10, "is_under_way": True, "is_complete": False, "back_to": "web-1"}
    names = {f"web-{number:02}": "CrashLoopBackOff of container main" for number in range(failed)}
    return RolloutState(**values | more, failed=names)


def stop_of(budget: str, failed: int, **more: Any) -> Stop:
    stop = judge(failure_budget.parse(budget), rollout(failed, **more), None).stop
    assert stop is not None
    assert stop.is_new
    return stop


def known(budget: str, failed: int, **more: Any) -> FailureBudgetStatus:
    """What is remembered of such a rollout."""
    return stop_of(budget, failed, **more).memory


def condition_of(stop: Stop, previous: Condition | None = None, now: datetime = NOW) -> Condition:
    found = failure_budget.condition_of(stop, previous, now)
    assert found is not None
    return found


def test_more_than_the_budget_stops_and_names_the_pods() -> None:
    assert judge(Budget(2), rollout(2), None) == failure_budget.UNJUDGED
    assert judge(Budget(2), rollout(5, is_under_way=False), None) == failure_budget.UNJUDGED
    condition = condition_of(stop_of("2", 5))
    assert (condition.status, condition.reason, condition.last_transition_time) == ("True", "Paused", NOW)
    assert condition.message.startswith(
        "5 pods failed at revision web-2, failure budget 2 allows 2: web-00 (CrashLoopBackOff of container main), "
    )
    assert "and 2 more; no further pod is updated; roll out a newer template" in condition.message


def test_a_stop_is_remembered_while_pods_look_well() -> None:
    first = stop_of("1", 3)
    later = judge(Budget(1), rollout(0), first.memory).stop
    assert later is not None
    assert not later.is_new
    assert (later.memory, later.message) == (first.memory, first.message)
    grown = judge(Budget(1), rollout(4), first.memory).stop
    assert grown is not None
    assert grown.failed == 4
    kept = condition_of(grown, condition_of(first), NOW + timedelta(hours=1))
    assert kept.last_transition_time == NOW


@pytest.mark.parametrize(
    ("budget", "now", "why"),
    [
        (None, rollout(3), "is gone"),
        (Budget(1), rollout(0, revision="web-3"), "web-3 is rolled out now"),
        (Budget(1), rollout(0, is_complete=True), "all pods are available"),
        (Budget(3), rollout(2), "allows 3 failed pods"),
        (Budget("30%"), rollout(3), "allows 3 failed pods"),
    ],
)
def test_what_ends_a_stop(budget: Budget | None, now: RolloutState, why: str) -> None:
    judgement = judge(budget, now, known("1", 3))
    assert judgement.stop is None
    assert why in judgement.ended
    assert failure_budget.condition_of(judgement.stop, condition_of(stop_of("1", 3)), NOW) is None


@pytest.mark.parametrize(
    ("budget", "now"),
    [
        (Budget(2), rollout(0)),
        (Budget(3), rollout(4)),
        (Budget(1, Reaction.ROLL_BACK), rollout(0, is_under_way=False)),
    ],
)
def test_what_does_not_end_it(budget: Budget, now: RolloutState) -> None:
    assert judge(budget, now, known("1", 3)).stop is not None


def test_more_replicas_do_not_end_it() -> None:
    """They may have come because pods failed."""
    memory = known("10%", 2)
    assert judge(Budget("10%"), rollout(2, replicas=100), memory).stop is not None
    assert judge(Budget("20%"), rollout(2, replicas=10), memory).stop is None


def test_going_back_needs_somewhere_to_go() -> None:
    back = condition_of(stop_of("0:rollback", 1))
    assert back.reason == "RolledBack"
    assert back.message.startswith("1 pod failed")
    assert "updated pods go back to web-1" in back.message
    first = condition_of(stop_of("0:rollback", 1, back_to=""))
    assert first.reason == "Paused"
    assert "there is no earlier revision to go back to" in first.message


def test_a_new_revision_that_fails_at_once_is_a_new_stop() -> None:
    stop = judge(Budget(1), rollout(2, revision="web-3"), known("1", 3)).stop
    assert stop is not None
    assert (stop.is_new, stop.failed, stop.revision) == (True, 2, "web-3")


def test_a_condition_alone_stops_nothing_and_is_not_told_twice() -> None:
    """Somebody wrote it, or the server dropped the field that it does not know."""
    assert judge(Budget(1), rollout(0), None, is_told=True) == failure_budget.UNJUDGED
    again = judge(Budget(1), rollout(2), None, is_told=True).stop
    assert again is not None
    assert not again.is_new


@given(st.integers(1, 40), st.integers(1, 300))
def test_messages_and_memory_are_bounded_and_stay_the_same(failed: int, length: int) -> None:
    names = {f"{'x' * length}-{number:02}": "not ready; for 600 s" * length for number in range(failed)}
    now = RolloutState(revision="r" * 253, replicas=9, failed=names, is_under_way=True, is_complete=False)
    stop = judge(Budget(0), now, None).stop
    assert stop is not None
    assert len(stop.message) <= failure_budget.LONGEST_MESSAGE
    assert len(codec.encode(stop.memory)) < 2000
    read = codec.decode(codec.encode(stop.memory), FailureBudgetStatus)
    again = judge(Budget(0), now, read).stop
    assert again is not None
    assert not again.is_new
    assert (again.memory, again.message) == (stop.memory, stop.message)


# In plans of a CloneSet, over a model of a cluster

LIMITS = st.sampled_from((1, 2, "50%", "100%"))


def model_of(budget: str | None, *, replicas: int, policy: str, **rolling: Any) -> ModelledCloneSet:
    template: Json = copy.deepcopy(dict(TEMPLATE))
    template["spec"]["containers"][0]["image"] = "nginx:1"
    spec: Json = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}},
        "template": template,
        "scaleStrategy": {},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"podUpdatePolicy": policy, **rolling}},
        "progressDeadlineSeconds": 40,
    }
    metadata: Json = {"name": "web", "namespace": "demo"}
    if budget is not None:
        metadata["annotations"] = {ANNOTATION: budget}
    return ModelledCloneSet(
        {"apiVersion": CLONE_SETS.api_version, "kind": "CloneSet", "metadata": metadata, "spec": spec, "status": {}}
    )


def set_image(model: ModelledCloneSet, image: str) -> None:
    def apply(spec: Json) -> None:
        spec["template"] = copy.deepcopy(spec["template"])
        spec["template"]["spec"]["containers"][0]["image"] = image

    model.edit_spec(apply)


def ask(model: ModelledCloneSet, budget: str | None) -> None:
    annotations = {} if budget is None else {ANNOTATION: budget}
    model.change(CLONE_SETS, "web", lambda document: document["metadata"].update(annotations=annotations))


def kept(model: ModelledCloneSet) -> list[Pod]:
    return [found for found in model.pods if is_active(found)]


def image_of(found: Pod) -> str:
    return found.spec.containers[0].image


def conditions(model: ModelledCloneSet) -> dict[str, Condition]:
    return conditions_in(model.cloneset.status)


def conditions_in(status: CloneSetStatus) -> dict[str, Condition]:
    return {item.type: item for item in status.conditions}


def healed(found: Pod) -> Pod:
    """As a pod that crashes again and again looks in between."""
    ready = tuple(
        codec.evolve(item, status="True", last_transition_time=NOW) if item.type == "Ready" else item
        for item in found.status.conditions
    )
    return codec.evolve(found, status=codec.evolve(found.status, conditions=ready))


class Watched:
    """A model whose every plan is checked: nobody moves to a revision that has stopped."""

    def __init__(self, model: ModelledCloneSet) -> None:
        self.model = model

    def reconcile(self) -> None:
        self.model.reconcile(decided=self._check)

    def _check(self, snapshot: Snapshot, plan: Plan) -> None:
        judgement = plan.memo_as(Memo).failure_budget
        if judgement is None or judgement.stop is None:
            return
        stop = judgement.stop
        if plan.memo_as(Memo).moves:
            assert plan.memo_as(Memo).target_revision != stop.revision
        other = plan.memo_as(Memo).figures.current_revision != stop.revision
        for action in plan.actions():
            if action.target.resource == PODS and action.verb is Verb.CREATE and other:
                label = action.body["metadata"]["labels"][keys.REVISION_LABEL]
                assert short_hash(label) != short_hash(stop.revision), "a pod is made at a stopped revision"

    def rest(self) -> None:
        """Everybody does their part until nothing happens any more, time included."""
        quiet = 0
        for _ in range(400):
            before = self.model.writes
            self.reconcile()
            moved = [self.model.kubelet(found.metadata.name) for found in self.model.pods]
            self.model.pass_time(7.0)
            quiet = 0 if any(moved) or self.model.writes != before else quiet + 1
            if quiet > 8:
                return
        raise AssertionError("it never comes to rest")

    def is_rolled_out(self, image: str) -> bool:
        pods = kept(self.model)
        status = self.model.cloneset.status
        return (
            [image_of(found) for found in pods] == [image] * (self.model.cloneset.spec.replicas or 0)
            and status.available_replicas == status.updated_available_replicas == len(pods)
            and status.current_revision == status.update_revision
            and FAILURE_BUDGET not in conditions(self.model)
        )


@st.composite
def watched(draw: st.DrawFn, budgets: st.SearchStrategy[str]) -> Watched:
    policy = draw(st.sampled_from(("ReCreate", "InPlaceIfPossible")))
    model = model_of(
        draw(budgets),
        replicas=draw(st.integers(1, 5)),
        policy=policy,
        maxUnavailable=draw(LIMITS),
        maxSurge=draw(st.sampled_from((0, 0, 1))),
    )
    found = Watched(model)
    found.rest()
    assert found.is_rolled_out("nginx:1")
    return found


AMOUNTS = st.sampled_from(("0", "1", "2", "20%", "50%"))


@settings(max_examples=25, deadline=None)
@given(watched(AMOUNTS), st.integers(0, 7))
def test_a_stopped_rollout_stays_and_a_newer_template_repairs_it(found: Watched, scaled: int) -> None:
    model = found.model
    set_image(model, BROKEN)
    found.rest()
    broken = [item for item in kept(model) if image_of(item) == BROKEN]
    allowed = failure_budget.parse(model.cloneset.metadata.annotations[ANNOTATION]).allows(
        model.cloneset.spec.replicas or 0
    )
    # A surplus pod that failed goes when the rollout stops, so fewer may be left than have failed.
    assert FAILURE_BUDGET in conditions(model) or len(broken) <= allowed
    if FAILURE_BUDGET in conditions(model):
        memory = model.cloneset.status.failure_budget
        assert memory is not None
        assert memory.failed > allowed
        names = {item.metadata.name for item in broken}
        model.edit_spec(lambda spec: spec.update(replicas=max(scaled, 1)))
        model.edit_spec(lambda spec: spec["updateStrategy"]["rollingUpdate"].update(maxUnavailable="100%"))
        found.rest()
        assert {item.metadata.name for item in kept(model) if image_of(item) == BROKEN} <= names
    set_image(model, "nginx:2")
    found.rest()
    assert found.is_rolled_out("nginx:2")


@settings(max_examples=25, deadline=None)
@given(watched(AMOUNTS.map("{}:rollback".format)))
def test_a_rollout_that_goes_back_ends_where_it_began(found: Watched) -> None:
    model = found.model
    revision = model.cloneset.status.current_revision
    set_image(model, BROKEN)
    found.rest()
    condition = conditions(model).get(FAILURE_BUDGET)
    if condition is not None:
        assert condition.reason == "RolledBack"
        assert {image_of(item) for item in kept(model)} == {"nginx:1"}
        assert model.cloneset.status.available_replicas == model.cloneset.spec.replicas
        assert model.cloneset.status.current_revision == revision
    set_image(model, "nginx:2")
    found.rest()
    assert found.is_rolled_out("nginx:2")


@settings(max_examples=15, deadline=None)
@given(watched(st.just("0")), st.sampled_from((None, "100%", "7")))
def test_a_stop_ends_with_the_annotation(found: Watched, budget: str | None) -> None:
    """Removed or raised: the rollout goes on as far as maxUnavailable lets it."""
    model = found.model
    set_image(model, BROKEN)
    found.rest()
    assert FAILURE_BUDGET in conditions(model)
    ask(model, budget)
    model.edit_spec(lambda spec: spec["updateStrategy"]["rollingUpdate"].update(maxUnavailable="100%"))
    found.rest()
    assert FAILURE_BUDGET not in conditions(model)
    assert {image_of(item) for item in kept(model)} == {BROKEN}


def written(plan: Plan) -> list[Any]:
    """What a plan does to pods, but for what the model numbers."""
    data = plan_to_data(plan)
    actions = [
        (phase["name"], [{**action, "uid": "", "resource_version": ""} for action in chain])
        for phase in data["phases"]
        if phase["name"] not in ("revision", "history")
        for chain in phase["chains"]
    ]
    return [*actions, data["held"]]


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 5), LIMITS, st.sampled_from(("ReCreate", "InPlaceIfPossible")), st.sampled_from(("7", "lots")))
def test_off_changes_nothing(replicas: int, limit: int | str, policy: str, budget: str) -> None:
    """Neither a text that is no budget nor a budget that nothing exceeds changes what is done to pods."""
    off, on = (model_of(text, replicas=replicas, policy=policy, maxUnavailable=limit) for text in (None, budget))
    for image in ("nginx:1", "nginx:2"):
        for model in (off, on):
            set_image(model, image)
        for _ in range(12):
            plans = []
            for model in (off, on):
                plans.append(model.reconcile())
                for found in model.pods:
                    model.kubelet(found.metadata.name)
                model.pass_time(7.0)
            assert written(plans[0]) == written(plans[1])
            assert plans[0].memo_as(Memo).failure_budget is None
    assert {"Progressing"} <= set(conditions(off)) == set(conditions(on)) <= {"Progressing", RECONCILING, STALLED}


# What is said


def stopped_model(budget: str = "0") -> ModelledCloneSet:
    found = Watched(model_of(budget, replicas=3, policy="InPlaceIfPossible", maxUnavailable=2))
    found.rest()
    set_image(found.model, BROKEN)
    found.rest()
    return found.model


def test_the_plan_says_whom_the_budget_holds_and_what_helps() -> None:
    plan = decide(stopped_model().snapshot())
    [held] = [item for item in plan.held if [cause.code for cause in item.causes] == ["failure-budget"]]
    [cause] = held.causes
    assert cause.details["failed"] == 2
    assert cause.details["allowed"] == 0
    assert ANNOTATION in cause.remedy
    assert "not ready for 40 s" in cause.message


def written_anew(model: ModelledCloneSet, **status: Any) -> dict[str, Any]:
    """The status after a pass of a manager that has just started over this one."""
    model.change(CLONE_SETS, "web", lambda document: document["status"].update(status))
    snapshot = model.snapshot()
    plan = decide(snapshot)
    memo = plan.memo_as(Memo)
    write = conclude(snapshot, Plan(held=plan.held, memo=memo), Outcomes()).status
    assert memo.failure_budget is not None
    assert memo.failure_budget.stop is not None
    assert not memo.failure_budget.stop.is_new
    assert not memo.moves
    return dict(write.body[0]["value"]) if write is not None else {}


@pytest.mark.parametrize(
    "told",
    [
        [],
        [{"type": FAILURE_BUDGET, "status": "True", "reason": "Paused", "message": "zu viele Pods sind ausgefallen"}],
    ],
    ids=["no condition", "other words"],
)
def test_a_stop_does_not_hang_on_what_people_are_told(told: list[Json]) -> None:
    """Of the whole stop only the numbers in the status are needed, and the words are made anew from them."""
    model = stopped_model()
    before = model.cloneset.status
    well = codec.evolve(model.snapshot(), pods=tuple(map(healed, model.pods)))
    judged = decide(well).memo_as(Memo).failure_budget
    assert judged is not None
    assert judged.stop is not None, "pods that look well end nothing"
    after = written_anew(model, conditions=told)
    if not told:  # a condition that stands with the same reason is left as it is
        [condition] = [item for item in after["conditions"] if item["type"] == FAILURE_BUDGET]
        assert condition["message"] == conditions_in(before)[FAILURE_BUDGET].message
    assert model.cloneset.status.failure_budget == before.failure_budget


def test_a_stop_costs_no_further_writes() -> None:
    model = stopped_model()
    assert written_anew(model) == {}


def test_nothing_is_remembered_once_it_is_over() -> None:
    model = stopped_model()
    ask(model, None)
    model.reconcile()
    assert model.cloneset.status.failure_budget is None


def test_one_event_when_it_stops_and_one_when_it_ends() -> None:
    model = stopped_model()
    told = []
    for budget in ("0", None, None):
        ask(model, budget)
        snapshot = model.snapshot()
        plan = decide(snapshot)
        empty = Plan(held=plan.held, memo=codec.evolve(plan.memo_as(Memo), moves={}))
        told.append([(note.type, note.reason) for note in conclude(snapshot, empty, Outcomes()).events])
        model.reconcile()
    assert told == [[], [("Normal", "FailureBudgetCleared")], []]
    model.change(CLONE_SETS, "web", lambda document: document["status"].update(conditions=[], failureBudget=None))
    ask(model, "0")
    snapshot = model.snapshot()
    plan = decide(snapshot)
    [event] = conclude(snapshot, Plan(memo=codec.evolve(plan.memo_as(Memo), moves={})), Outcomes()).events
    assert (event.type, event.reason) == ("Warning", FAILURE_BUDGET)
    assert all(found.metadata.name in event.message for found in kept(model) if image_of(found) == BROKEN)


def test_a_pod_that_is_just_being_moved_is_not_judged_by_what_it_was() -> None:
    """It counts as moved while its write is under way, and looks as broken as before."""
    model = stopped_model()
    set_image(model, "nginx:2")
    revision = decide(model.snapshot()).memo_as(Memo).target_revision
    broken = [item.metadata.name for item in kept(model) if image_of(item) == BROKEN]
    moving = codec.evolve(model.snapshot(), pending=make_pending(dict.fromkeys(broken, revision)))
    assert decide(moving).memo_as(Memo).failure_budget.stop is None
    arrived = model.snapshot()
    assert decide(arrived).memo_as(Memo).failure_budget.stop is None
    touched = codec.evolve(arrived, pending=make_pending(dict.fromkeys(broken, "")))
    assert decide(touched).memo_as(Memo).failure_budget.stop is None


def test_a_pass_is_asked_for_when_a_pod_would_count_as_failed() -> None:
    found = Watched(model_of("0", replicas=2, policy="InPlaceIfPossible", maxUnavailable=1))
    found.rest()
    set_image(found.model, BROKEN)
    for _ in range(3):
        found.reconcile()
        for item in found.model.pods:
            found.model.kubelet(item.metadata.name)
    waits = [wake.after for wake in decide(found.model.snapshot()).wakes if "counts as failed" in wake.reason]
    assert waits == [pytest.approx(41)]


# Whatever anybody does


class Budgeted(Checked):
    """The promises of a CloneSet about its pods, and that a stopped rollout takes nobody along."""

    def _partition_is_kept(self, action: Action, kept: list[Pod], limits: Limits) -> None:
        judgement = self.plan.memo_as(Memo).failure_budget
        if judgement is None or judgement.stop is None:
            super()._partition_is_kept(action, kept, limits)
            return
        assert self._snapshot is not None
        [before] = [found for found in self._snapshot.pods if found.metadata.name == action.target.name]
        after = next(found for found in self.model.pods if found.metadata.name == action.target.name)
        assert self.is_new(before) or not self.is_new(after), "a pod moves to a stopped revision"


@story_settings(12)
@given(models(), AMOUNTS, st.sampled_from(Reaction), st.lists(STEPS, min_size=10, max_size=50))
def test_promises_hold_for_random_stories(
    model: ModelledCloneSet, amount: str, reaction: Reaction, story: list[tuple[str, int]]
) -> None:
    ask(model, f"{amount}:{reaction}")
    model.edit_spec(lambda spec: spec.update(progressDeadlineSeconds=40))
    checked = Budgeted(model)
    checked.reconcile()
    for step, number in story:
        play(checked, step, number)
    if BROKEN.encode() in bytes(model.cloneset.spec.template):
        set_image(model, "nginx:4")
    come_to_rest(checked)
    if FAILURE_BUDGET in conditions(model):
        ask(model, None)  # pods that waited too long for somebody's hook count as failed, too
        come_to_rest(checked)
    assert FAILURE_BUDGET not in conditions(model)
    is_where_it_should_be(checked)


# At the door, and on the command line


def candidate(budget: str | None, **spec: Any) -> Candidate[Reading]:
    body = codec.decode(codec.encode(make_cloneset(**spec)), dict)
    body["metadata"] |= {"annotations": {} if budget is None else {ANNOTATION: budget}}
    return Candidate(body=body, reading=read(codec.encode(body), "v1beta1"))


def test_a_wrong_budget_is_refused_when_it_comes_and_stays_editable_around() -> None:
    place = f"metadata.annotations[{ANNOTATION}]"
    assert [error.path for error in problems(candidate("lots"))] == [place]
    assert [error.path for error in problems(candidate("lots"), candidate("2"))] == [place]
    assert problems(candidate("lots", replicas=4), candidate("lots")) == ()
    assert problems(candidate(None), candidate("lots")) == ()
    assert problems(candidate("2:rollback"), candidate("lots")) == ()
    assert f'{place}: "lots" has no effect' in advice.of_failure_budget({ANNOTATION: "lots"})
    assert advice.of_failure_budget({ANNOTATION: "2"}) == ""


def test_the_status_of_a_rollout_that_stopped_is_a_failure() -> None:
    document = codec.decode(codec.encode(stopped_model().cloneset), dict)
    progress = face.progress(document)
    assert progress.phase is Phase.FAILED
    assert 'cloneset "web" exceeded its progress deadline' in progress.message
    document["status"]["conditions"] = [
        item for item in document["status"]["conditions"] if item["type"] != "Progressing"
    ]
    progress = face.progress(document)
    assert progress.phase is Phase.FAILED
    assert 'cloneset "web" exceeded its failure budget: 2 pods failed' in progress.message
