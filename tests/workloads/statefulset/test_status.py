"""The status, the revisions, the conditions and the events of a StatefulSet."""

from __future__ import annotations

from kruise.api.native.apps import CONTROLLER_REVISIONS
from kruise.api.native.pod import PODS
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS
from kruise.machinery.plan import EventNote, Outcome, Outcomes, PhaseOutcomes, Plan, Result
from kruise.model.loop import Pass
from kruise.model.world import Json
from kruise.workloads.statefulset.status import wire_form
from tests.support.modelled import BROKEN
from tests.workloads.statefulset.modelled import CLAIM, IN_PLACE, ModelledStatefulSet, document


def _settled(given: Json) -> ModelledStatefulSet:
    model = ModelledStatefulSet(given)
    model.settle()
    return model


def _pass(model: ModelledStatefulSet) -> Pass:
    done = model.loop.run(model.loop.controllers[0], model.key)
    assert done is not None
    return done


def _events(model: ModelledStatefulSet) -> tuple[EventNote, ...]:
    done = _pass(model)
    return model.loop.controllers[0].spec.concluded(done.snapshot, done.plan, done.outcomes).events


def _texts(notes: tuple[EventNote, ...]) -> list[tuple[str, str, str]]:
    return [(note.type.value, note.reason, note.message) for note in notes]


# Counting


def test_a_status_that_has_seen_nothing_yet_has_every_required_member() -> None:  # ST-5, ST-16
    model = ModelledStatefulSet(document(1))
    model.reconcile()
    revision = model.revisions[0].metadata.name
    written = wire_form(model.statefulset.status)
    assert [condition["type"] for condition in written.pop("conditions")] == ["Reconciling"]
    assert written == {
        "observedGeneration": 1,
        "replicas": 0,
        "readyReplicas": 0,
        "availableReplicas": 0,
        "currentReplicas": 0,
        "updatedReplicas": 0,
        "collisionCount": 0,
        "currentRevision": revision,
        "updateRevision": revision,
        "labelSelector": "app=web",
    }


def test_a_settled_status() -> None:  # ST-11, ST-12, ST-18
    status = _settled(document(2)).statefulset.status
    assert (status.replicas, status.ready_replicas, status.available_replicas) == (2, 2, 2)
    assert (status.current_replicas, status.updated_replicas) == (2, 2)
    assert (status.updated_ready_replicas, status.updated_available_replicas) == (2, 2)
    assert status.conditions == ()


def test_terminating_pods_exist_but_are_at_no_revision() -> None:  # ST-12
    model = _settled(document(2))
    model.delete_pod("web-1")
    model.reconcile()
    status = model.statefulset.status
    assert (status.replicas, status.ready_replicas, status.current_replicas, status.updated_replicas) == (2, 2, 1, 1)


def test_a_rollout_is_complete_when_all_pods_are_updated_and_ready() -> None:  # ST-14, ST-15
    model = _settled(document(2))
    first = model.statefulset.status.current_revision
    model.set_image("nginx:2")
    model.settle(6)
    status = model.statefulset.status
    assert status.current_revision == first != status.update_revision
    model.settle()
    status = model.statefulset.status
    assert status.current_revision == status.update_revision != first
    assert status.current_replicas == 2


def test_a_pod_that_is_missing_for_a_moment_does_not_complete_a_rollout() -> None:
    """The counters of the others agree, and yet the pod has to come back at the current revision."""
    model = _settled(document(2, rolling={"partition": 1}))
    first = model.statefulset.status.current_revision
    model.set_image("nginx:2")
    model.settle()
    model.delete_pod("web-0")
    model.settle()
    assert model.statefulset.status.current_revision == first
    assert model.images == {"web-0": "nginx:1", "web-1": "nginx:2"}


def test_scaled_to_nothing_a_rollout_is_complete() -> None:  # ST-14
    model = _settled(document(0))
    model.set_image("nginx:2")
    model.settle(3)
    status = model.statefulset.status
    assert status.current_revision == status.update_revision


def test_a_new_template_shows_at_once_although_a_pod_blocks() -> None:  # ST-17
    model = _settled(document(2, rolling={"partition": 2}))
    model.delete_pod("web-1")
    model.set_image("nginx:2")
    model.reconcile()
    status = model.statefulset.status
    assert status.update_revision != status.current_revision


def test_a_status_that_says_the_same_is_not_written() -> None:  # ST-16
    model = _settled(document(2, volumeClaimTemplates=[CLAIM]))
    before = model.writes
    done = _pass(model)
    assert done.conclusion.status is None
    assert model.writes == before


def test_minimum_ready_seconds_tell_ready_from_available() -> None:  # ST-44
    model = ModelledStatefulSet(document(1, rolling={"minReadySeconds": 60}))
    model.settle(20)
    status = model.statefulset.status
    assert (status.ready_replicas, status.available_replicas) == (1, 0)
    model.settle(60)
    assert model.statefulset.status.available_replicas == 1


# Revisions


def test_revisions_are_named_and_kept_as_the_limit_says() -> None:  # ST-51, ST-52, ST-54
    model = _settled(document(1, revisionHistoryLimit=1))
    for number in range(2, 6):
        model.set_image(f"nginx:{number}")
        model.settle(20)
    assert len(model.revisions) == 2
    newest = max(model.revisions, key=lambda revision: revision.revision)
    assert newest.metadata.name == model.statefulset.status.update_revision
    assert newest.revision == 5
    assert newest.metadata.labels["controller.kubernetes.io/hash"] == newest.metadata.name.removeprefix("web-")


def test_a_revision_of_nobody_is_adopted() -> None:  # ST-49
    model = _settled(document(1))
    name = model.revisions[0].metadata.name
    model.change(CONTROLLER_REVISIONS, name, lambda made: made["metadata"].pop("ownerReferences"))
    model.settle(3)
    [revision] = model.revisions
    assert [owner.kind for owner in revision.metadata.owner_references] == ["StatefulSet"]


# Conditions


def test_what_cannot_be_created_is_a_condition_that_goes_again() -> None:  # ST-21
    model = ModelledStatefulSet(document(1))
    model.reconcile()
    model.world.remove(PODS, model.pods[0])
    plan = model.loop.controllers[0].spec.decide(model.snapshot())
    failed = _failed(plan, "quota exceeded")
    conclusion = model.loop.controllers[0].spec.concluded(model.snapshot(), plan, failed)
    assert conclusion.status is not None
    [rolling, condition] = conclusion.status.body[0]["value"]["conditions"]
    assert (rolling["type"], rolling["reason"]) == ("Reconciling", "RollingOut")
    assert (condition["type"], condition["status"]) == ("FailedCreatePod", "True")
    assert "quota exceeded" in condition["message"]
    assert [text[1] for text in _texts(conclusion.events)] == ["FailedCreate"]
    model.settle()
    assert model.statefulset.status.conditions == ()


def _failed(plan: Plan, error: str, *, reason: str = "Forbidden") -> Outcomes:
    return Outcomes(
        tuple(
            PhaseOutcomes(
                phase.name,
                tuple(
                    tuple(
                        Outcome(action=action, result=Result.FAILED, error=error, error_reason=reason)
                        for action in chain
                    )
                    for chain in phase.chains
                ),
            )
            for phase in plan.phases
        )
    )


def test_what_waits_for_too_long_is_told() -> None:
    model = ModelledStatefulSet(document(2))
    model.edit_spec(lambda spec: spec["template"]["spec"]["containers"][0].update(image=BROKEN))
    model.settle(30, seconds=10)
    [rolling, condition] = model.statefulset.status.conditions
    assert (rolling.type, rolling.reason) == ("Reconciling", "RollingOut")
    assert (condition.type, condition.reason) == ("Waiting", "Order")
    assert "web-0" in condition.message


# Events


def test_events_of_pods_and_claims() -> None:
    model = ModelledStatefulSet(document(1, volumeClaimTemplates=[CLAIM]))
    assert _texts(_events(model)) == [
        ("Normal", "SuccessfulCreate", "create Claim data-web-0 Pod web-0 in StatefulSet web success"),
        ("Normal", "SuccessfulCreate", "create Pod web-0 in StatefulSet web successful"),
    ]
    model.settle()
    model.edit_spec(lambda spec: spec.update(replicas=0))
    assert _texts(_events(model)) == [("Normal", "SuccessfulDelete", "delete Pod web-0 in StatefulSet web successful")]


def test_events_of_an_update_in_place() -> None:
    model = _settled(document(1, rolling=IN_PLACE))
    model.set_image("nginx:2")
    notes = _events(model)
    name = model.statefulset.status.update_revision
    assert _texts(notes) == [
        ("Normal", "SuccessfulUpdatePodInPlace", f"successfully update pod web-0 in-place(revision {name})")
    ]


def test_a_name_that_is_there_already_is_no_event() -> None:  # ST-131
    model = ModelledStatefulSet(document(1))
    model.reconcile()
    model.world.remove(PODS, model.pods[0])
    controller = model.loop.controllers[0].spec
    plan = controller.decide(model.snapshot())
    conclusion = controller.concluded(
        model.snapshot(), plan, _failed(plan, 'pods "web-0" already exists', reason="AlreadyExists")
    )
    assert conclusion.events == ()


def test_a_claim_that_cannot_be_made_is_said() -> None:
    model = ModelledStatefulSet(document(1, volumeClaimTemplates=[CLAIM]))
    model.reconcile()
    model.world.remove(PODS, model.pods[0])
    model.world.remove(PERSISTENT_VOLUME_CLAIMS, model.claims[0])
    controller = model.loop.controllers[0].spec
    plan = controller.decide(model.snapshot())
    events = controller.concluded(model.snapshot(), plan, _failed(plan, "no")).events
    assert (
        "Warning",
        "FailedCreate",
        "create Claim data-web-0 for Pod web-0 in StatefulSet web failed error: no",
    ) in _texts(events)
