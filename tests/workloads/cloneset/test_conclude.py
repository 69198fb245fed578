"""What is said after a plan was carried out: status, events, wakes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kruise.api.apps.cloneset import CLONE_SETS, CloneSet
from kruise.api.apps.images import IMAGE_PULL_JOBS
from kruise.api.native.apps import CONTROLLER_REVISIONS
from kruise.api.native.pod import PODS, Pod
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS
from kruise.api.resource import Resource
from kruise.faces.kstatus import RECONCILING, STALLED
from kruise.machinery import codec
from kruise.machinery import plan as plans
from kruise.machinery.digest import plan_to_data
from kruise.machinery.pending import Pending
from kruise.machinery.plan import (
    Action,
    Chain,
    Conclusion,
    EventNote,
    EventType,
    Outcome,
    Phase,
    Plan,
    Result,
    StatusEffect,
    Target,
)
from kruise.manager.options import Options
from kruise.workloads.cloneset.controller import controllers
from kruise.workloads.cloneset.events import events
from kruise.workloads.cloneset.memo import Memo
from kruise.workloads.cloneset.situation import Snapshot, situation_of
from kruise.workloads.cloneset.status import figures
from kruise.workloads.cloneset.update import RECREATE
from kruise.workloads.shared.moving import IN_PLACE
from tests.support.outcomes import carried_out
from tests.workloads.cloneset.status_cases import START, UID, at, cloneset, pod, update_revision

DONE, FAILED, SKIPPED = Result.DONE, Result.FAILED, Result.SKIPPED
SILENT = [result for result in Result if result not in (Result.DONE, Result.FAILED)]


def create(resource: Resource[Any], name: str, **body: Any) -> Action:
    return plans.create(resource, {"metadata": {"name": name, "namespace": "demo"}, **body}, reason="missing")


def patch(resource: Resource[Any], name: str) -> Action:
    return plans.patch(Target(resource, "demo", name), {}, uid=f"uid-{name}", reason="differs")


def delete(resource: Resource[Any], name: str) -> Action:
    return plans.delete(Target(resource, "demo", name), uid=f"uid-{name}", reason="surplus")


def concluded(
    phases: Mapping[str, list[Chain]],
    results: list[Result],
    *,
    subject: CloneSet | None = None,
    pods: tuple[Pod, ...] = (),
    now: Any = START,
    error: str = "refused",
    failed_late: Mapping[str, str] = {},
    **memo: Any,
) -> Conclusion:
    """Conclude over phases of chains, with the results of their actions in order."""
    snapshot = Snapshot(cloneset=subject or cloneset(), pods=pods, now=now, pending=Pending(failures=dict(failed_late)))
    counted = figures(situation_of(snapshot))
    plan = Plan(
        phases=tuple(Phase(name=name, chains=tuple(chains)) for name, chains in phases.items()),
        memo=Memo(figures=counted, **{"target_revision": counted.update_revision, **memo}),
    )
    remaining = iter(results)
    outcomes = carried_out(plan, lambda action: _outcome(action, next(remaining), error))
    assert not list(remaining)
    plan_to_data(plan)  # whatever a plan carries must be fit for the journal
    [spec] = controllers(Options())
    return spec.concluded(snapshot, plan, outcomes)


def _outcome(action: Action, result: Result, error: str) -> Outcome:
    return Outcome(action=action, result=result, error=error if result is FAILED else "")


def told(conclusion: Conclusion) -> list[tuple[str, str, str]]:
    return [(note.type.value, note.reason, note.message) for note in conclusion.events]


def conditions(conclusion: Conclusion) -> dict[str, str]:
    """Types and messages of the conditions that are written, but for those that tell that a rollout is not over."""
    found = {condition["type"]: condition["message"] for condition in written(conclusion).get("conditions", [])}
    return {kind: message for kind, message in found.items() if kind not in (RECONCILING, STALLED)}


def written(conclusion: Conclusion) -> dict[str, Any]:
    assert conclusion.status is not None
    (operation,) = conclusion.status.body
    status: dict[str, Any] = operation["value"]
    return status


class TestEvents:
    """CS section 14."""

    def test_pods_created_and_deleted(self) -> None:
        chains: list[Chain] = [(create(PODS, "web-a"),), (delete(PODS, "web-b"),)]
        assert told(concluded({"scale": chains}, [DONE, DONE])) == [
            ("Normal", "SuccessfulCreate", "succeed to create pod web-a"),
            ("Normal", "SuccessfulDelete", "succeed to delete pod web-b"),
        ]

    def test_a_pod_that_is_refused_is_shown(self) -> None:
        conclusion = concluded({"scale": [(create(PODS, "web-a"),)]}, [FAILED], error="exceeded quota")
        body = '{"metadata":{"name":"web-a","namespace":"demo"}}'
        text = f"failed to create pod: exceeded quota, pod: {body}"
        assert told(conclusion) == [("Warning", "FailedCreate", text)]

    def test_a_large_pod_is_cut(self) -> None:
        big = create(PODS, "web-a", spec={"x": "y" * 9000})
        ((_, _, message),) = told(concluded({"scale": [(big,)]}, [FAILED]))
        assert len(message) == 1024
        assert message.startswith("failed to create pod: refused, pod: {")

    def test_a_claim_that_is_refused_is_shown_and_its_pod_is_not_spoken_of(self) -> None:
        chain = (create(PERSISTENT_VOLUME_CLAIMS, "data-web-a"), create(PODS, "web-a"))
        ((kind, reason, message),) = told(concluded({"scale": [chain]}, [FAILED, SKIPPED]))
        assert (kind, reason) == ("Warning", "FailedCreate")
        assert message.startswith('failed to create pvc: refused, pvc: {"metadata":{"name":"data-web-a"')

    def test_claims_that_are_made_are_not_spoken_of(self) -> None:
        chain = (create(PERSISTENT_VOLUME_CLAIMS, "data-web-a"), create(PODS, "web-a"))
        assert [reason for _, reason, _ in told(concluded({"scale": [chain]}, [DONE, DONE]))] == ["SuccessfulCreate"]

    def test_deletions_that_fail(self) -> None:
        chains: list[Chain] = [
            (delete(PODS, "web-a"), delete(PERSISTENT_VOLUME_CLAIMS, "data-web-a")),
            (delete(PODS, "web-b"), delete(PERSISTENT_VOLUME_CLAIMS, "data-web-b")),
        ]
        assert told(concluded({"scale": chains}, [DONE, FAILED, FAILED, SKIPPED])) == [
            ("Normal", "SuccessfulDelete", "succeed to delete pod web-a"),
            ("Warning", "FailedDelete", "failed to delete pvc data-web-a: refused"),
            ("Warning", "FailedDelete", "failed to delete pod web-b: refused"),
        ]

    def test_claims_that_cannot_be_cleaned_up(self) -> None:  # CS-122
        claims = PERSISTENT_VOLUME_CLAIMS
        chains: list[Chain] = [(patch(claims, "data-web-a"),), (delete(claims, "data-web-b"),)]
        assert told(concluded({"claims": chains}, [FAILED, FAILED])) == [
            ("Warning", "FailedUpdate", "failed to update PVC data-web-a: refused"),
            ("Warning", "FailedDelete", "failed to clean up PVC data-web-b: refused"),
        ]

    def test_in_place_updates(self) -> None:
        revision = update_revision(cloneset())
        chains: list[Chain] = [(patch(PODS, name), patch(PODS, name)) for name in ("web-a", "web-b")]
        assert told(
            concluded(
                {"update": chains},
                [DONE, DONE, DONE, FAILED],
                moves={"web-a": IN_PLACE, "web-b": IN_PLACE},
            )
        ) == [
            ("Normal", "SuccessfulUpdatePodInPlace", f"successfully update pod web-a in-place(revision {revision})"),
            (
                "Warning",
                "FailedUpdatePodInPlace",
                f"failed to update pod web-b in-place(revision {revision}): refused",
            ),
        ]

    def test_a_failure_early_in_a_chain_is_one_event(self) -> None:
        chain = (patch(PODS, "web-a"),) * 2
        conclusion = concluded({"update": [chain]}, [FAILED, SKIPPED], moves={"web-a": IN_PLACE})
        assert [note.reason for note in conclusion.events] == ["FailedUpdatePodInPlace"]

    def test_recreation(self) -> None:  # CS-104
        revision = update_revision(cloneset())
        chains: list[Chain] = [(patch(PODS, name),) for name in ("web-a", "web-b")]
        assert told(concluded({"update": chains}, [DONE, FAILED], moves={"web-a": RECREATE, "web-b": RECREATE})) == [
            (
                "Normal",
                "SuccessfulUpdatePodReCreate",
                f"successfully patch pod web-a specified-delete for update(revision {revision})",
            ),
            (
                "Warning",
                "FailedUpdatePodReCreate",
                f"failed to patch pod specified-delete web-b for update(revision {revision}): refused",
            ),
        ]

    def test_going_back_names_the_revision_it_goes_to(self) -> None:  # CS-105
        chain = (patch(PODS, "web-a"),)
        conclusion = concluded({"update": [chain]}, [DONE], moves={"web-a": IN_PLACE}, target_revision="web-old")
        assert conclusion.events[0].message == "successfully update pod web-a in-place(revision web-old)"

    def test_a_pod_that_is_only_prepared_has_no_event(self) -> None:
        assert told(concluded({"update": [(patch(PODS, "web-a"),)]}, [DONE])) == []

    def test_refreshes_have_no_event(self) -> None:
        assert told(concluded({"refresh": [(patch(PODS, "web-a"),)]}, [DONE])) == []

    def test_pull_jobs(self) -> None:  # IPU-153: both are Normal
        jobs = [create(IMAGE_PULL_JOBS, f"web-b-{name}", spec={"image": "nginx:1.26"}) for name in ("main", "side")]
        label = patch(CONTROLLER_REVISIONS, "web-b")
        assert told(concluded({"pull-jobs": [(jobs[0],), (jobs[1],), (label,)]}, [DONE, FAILED, DONE])) == [
            ("Normal", "CreatedImagePullJob", "created ImagePullJob web-b-main for image: nginx:1.26"),
            (
                "Normal",
                "FailedCreateImagePullJob",
                "failed to create ImagePullJob web-b-side for image: nginx:1.26: refused",
            ),
        ]

    def test_events_known_before_come_first(self) -> None:  # CS-81
        limited = EventNote(
            type=EventType.WARNING,
            reason="ScaleUpLimited",
            message="scaleUp is limited because of scaleStrategy.maxUnavailable, limit: 1",
        )
        conclusion = concluded({"scale": [(create(PODS, "web-a"),)]}, [DONE], events=(limited,))
        assert conclusion.events[0] is limited
        assert [note.reason for note in conclusion.events] == ["ScaleUpLimited", "SuccessfulCreate"]

    @pytest.mark.parametrize("result", SILENT)
    def test_what_is_nobodys_failure_is_not_spoken_of(self, result: Result) -> None:
        phases: dict[str, list[Chain]] = {
            "claims": [(delete(PERSISTENT_VOLUME_CLAIMS, "data"),)],
            "pull-jobs": [(create(IMAGE_PULL_JOBS, "job", spec={"image": "nginx"}),)],
            "scale": [(create(PODS, "web-a"),), (delete(PODS, "web-b"),)],
            "refresh": [(patch(PODS, "web-c"),)],
            "update": [(patch(PODS, "web-d"),), (patch(PODS, "web-e"),)],
        }
        conclusion = concluded(phases, [result] * 7, moves={"web-d": IN_PLACE, "web-e": RECREATE})
        assert told(conclusion) == []
        assert conditions(conclusion) == {}
        assert conclusion.retry == ""


class TestFailures:
    def test_scaling(self) -> None:  # CS-25
        chains: list[Chain] = [(create(PODS, "web-a"),), (create(PODS, "web-b"),)]
        assert conditions(concluded({"scale": chains}, [DONE, FAILED])) == {"FailedScale": "refused"}

    @pytest.mark.parametrize("phase", ["refresh", "update"])
    def test_updating(self, phase: str) -> None:  # CS-25, CS-100: refreshing is a part of it
        assert conditions(concluded({phase: [(patch(PODS, "web-a"),)]}, [FAILED])) == {"FailedUpdate": "refused"}

    def test_a_reason_known_before(self) -> None:  # CS-103
        text = "find Pod web-a update strategy is InPlaceOnly but can not update in-place"
        assert conditions(concluded({}, [], update_error=text)) == {"FailedUpdate": text}

    @pytest.mark.parametrize("phase", ["release", "claims", "pull-jobs", "spec", "history"])
    def test_other_phases_have_no_condition(self, phase: str) -> None:
        assert conditions(concluded({phase: [(patch(CLONE_SETS, "web"),)]}, [FAILED])) == {}

    @pytest.mark.parametrize(("result", "left"), [(DONE, {}), *((result, {"FailedScale": "no"}) for result in SILENT)])
    def test_cleared_by_success_alone(self, result: Result, left: dict[str, str]) -> None:  # CS-27
        failed = {"type": "FailedScale", "status": "True", "message": "no"}
        conclusion = concluded(
            {"scale": [(create(PODS, "web-a"),)]}, [result], subject=cloneset(status={"conditions": [failed]})
        )
        assert conditions(conclusion) == left

    def test_cleared_when_nothing_is_left_to_do(self) -> None:  # CS-27
        failed = {"type": "FailedUpdate", "status": "True", "message": "no"}
        settled = _settled_status()
        subject = cloneset(status={**settled, "conditions": [failed]})
        assert conditions(concluded({}, [], subject=subject)) == {}

    def test_a_cloneset_that_goes_keeps_what_it_said(self) -> None:
        failed = {"type": "FailedUpdate", "status": "True", "message": "no"}
        subject = cloneset(status={"conditions": [failed]})
        going = codec.evolve(subject, metadata=codec.evolve(subject.metadata, deletion_timestamp=START))
        assert conditions(concluded({}, [], subject=going)) == {"FailedUpdate": "no"}  # CS-28: and it is written


def _settled_status() -> dict[str, Any]:
    conclusion = concluded({}, [])
    assert conclusion.status is not None
    status: dict[str, Any] = conclusion.status.body[0]["value"]
    return status


class TestStatus:
    def test_the_whole_status_is_written_with_the_uid(self) -> None:
        conclusion = concluded({}, [], subject=cloneset(replicas=1), pods=())
        assert conclusion.status is not None
        assert (conclusion.status.uid, conclusion.status.subresource) == (UID, "status")
        (operation,) = conclusion.status.body
        assert (operation["op"], operation["path"]) == ("add", "/status")
        assert operation["value"]["expectedUpdatedReplicas"] == 1

    def test_an_equal_status_is_not_written(self) -> None:  # CS-28
        assert concluded({}, [], subject=cloneset(status=_settled_status())).status is None

    def test_it_is_written_by_a_pass_that_only_scaled(self) -> None:  # CS-28
        assert concluded({"scale": [(create(PODS, "web-a"),)]}, [DONE]).status is not None

    @pytest.mark.parametrize("result", [FAILED, *SILENT])
    def test_a_revision_that_is_not_there_is_not_named(self, result: Result) -> None:
        phases: dict[str, list[Chain]] = {
            "revision": [(create(CONTROLLER_REVISIONS, "web-b"),)],
            "scale": [(create(PODS, "web-a"),)],
        }
        assert concluded(phases, [result, SKIPPED]) == Conclusion()

    def test_a_revision_that_was_made_is_named(self) -> None:
        conclusion = concluded({"revision": [(create(CONTROLLER_REVISIONS, "web-b"),)]}, [DONE])
        assert conclusion.status is not None
        assert conclusion.status.body[0]["value"]["updateRevision"] == update_revision(cloneset())


class TestWakes:
    def test_the_next_pod_to_become_available(self) -> None:  # CS-69a
        subject = cloneset(replicas=3, minReadySeconds=10)
        pods = (
            pod("web-a", ready_since=at(5)),
            pod("web-b", ready_since=at(3)),
            pod("web-c", ready_since=at(1), state="Updating"),  # its state changes by a write
            pod("web-d", ready_since=None),
        )
        (wake,) = concluded({}, [], subject=subject, pods=pods, now=at(6.5)).wakes
        assert (wake.after, wake.reason) == (7.5, "pod web-b becomes available after minReadySeconds")

    def test_nothing_to_wait_for(self) -> None:
        subject = cloneset(replicas=1, minReadySeconds=10)
        assert concluded({}, [], subject=subject, pods=(pod("web-a", ready_since=START),), now=at(11)).wakes == ()

    def test_the_deadline_of_a_rollout(self) -> None:  # CS-118
        (wake,) = concluded({}, [], subject=cloneset(progressDeadlineSeconds=5), now=at(10.25)).wakes
        assert (wake.after, wake.reason) == (5.75, "progressDeadlineSeconds ends")

    def test_a_wake_finds_the_deadline_exceeded(self) -> None:  # CS-118
        first = concluded({}, [], subject=cloneset(progressDeadlineSeconds=5), now=at(10.25))
        assert first.status is not None
        subject = cloneset(progressDeadlineSeconds=5, status=first.status.body[0]["value"])
        second = concluded({}, [], subject=subject, now=at(10.25 + first.wakes[0].after))
        assert second.wakes == ()
        assert "timed out" in conditions(second)["Progressing"]

    @pytest.mark.parametrize("rolling", [{"paused": True}, {"partition": 2}])
    def test_no_deadline_while_it_waits_on_purpose(self, rolling: dict[str, Any]) -> None:  # CS-116
        assert concluded({}, [], subject=cloneset(progressDeadlineSeconds=5, rolling=rolling)).wakes == ()

    def test_a_deadline_that_is_over_already_is_looked_at_at_once(self) -> None:
        (wake,) = concluded({}, [], subject=cloneset(progressDeadlineSeconds=-9)).wakes
        assert wake.after == 0.0


class TestLate:
    """What ended after its pass."""

    def test_pods_that_came_late_are_told_of(self) -> None:
        action = create(PODS, "web-a")
        plan = Plan(phases=(Phase(name="scale", chains=((action,),)),))
        [note] = events(plan, "scale", (Outcome(action=action, result=DONE),))
        assert (note.reason, note.message) == ("SuccessfulCreate", "succeed to create pod web-a")
        assert not list(events(plan, "scale", (Outcome(action=action, result=SKIPPED),)))

    def test_a_late_refusal_is_shown_until_a_pass_finds_nothing_to_scale(self) -> None:
        shown = concluded({}, [], failed_late={"scale": "exceeded quota"})
        assert conditions(shown)["FailedScale"] == "exceeded quota"

    def test_counts_are_no_news_but_conditions_are(self) -> None:
        settled = cloneset(status=written(concluded({}, [])))
        assert concluded({}, [], subject=settled, pods=(pod("a"),)).effect is StatusEffect.INFORMS
        refused = concluded({}, [], subject=settled, failed_late={"scale": "exceeded quota"})
        assert refused.effect is StatusEffect.REQUEUES
