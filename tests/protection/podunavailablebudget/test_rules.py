"""The rules of budgets, one by one and without a cluster."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from kruise.admission.bookkeeping import BookingError, Bookkeeper
from kruise.admission.chain import StepContext
from kruise.admission.decisions import Allow, Change, Deny, Failure, HandlerView, NeedsBooking, NeedsReads
from kruise.admission.validating_chain import PodOperation, PodQuestion
from kruise.api.meta import LabelSelector
from kruise.api.policy.conversion.podunavailablebudget import convert
from kruise.api.policy.podunavailablebudget import DELETE, EVICT, OPERATIONS, POD_UNAVAILABLE_BUDGETS, RESIZE, UPDATE
from kruise.api.versions import KEPT
from kruise.machinery import codec
from kruise.machinery.clock import ManualClock
from kruise.machinery.patches import merge
from kruise.machinery.plan import Outcome, Outcomes, Result, Target
from kruise.machinery.store import Store
from kruise.machinery.times import format_time
from kruise.protection.podunavailablebudget import keys
from kruise.protection.podunavailablebudget.admission import guard, mark
from kruise.protection.podunavailablebudget.availability import is_available
from kruise.protection.podunavailablebudget.booking import MOST_RECORDS, REFUSAL, Freedom, Refused, Taken, book
from kruise.protection.podunavailablebudget.conclude import conclude
from kruise.protection.podunavailablebudget.decide import Memo, Snapshot, decide
from kruise.protection.podunavailablebudget.floor import floor_of
from kruise.protection.podunavailablebudget.indexes import WATCHED_BUDGETS
from kruise.protection.podunavailablebudget.members import Members
from kruise.protection.podunavailablebudget.operations import guarded_operations, operation_of_update, total_replicas
from kruise.protection.podunavailablebudget.validation import judge, overlap
from tests.protection.podunavailablebudget.objects import GATES, NOW, Json, budget, pod, pod_document, request, view

DATA = Path(__file__).parent / "data"
RECORDED = yaml.safe_load((DATA / "validation.yaml").read_text())
VERDICTS = yaml.safe_load((DATA / "verdicts.yaml").read_text())
OPERATION = {"delete": DELETE, "evict": EVICT, "update": UPDATE}
BEFORE = format_time(NOW - timedelta(seconds=5))


# What a budget may be


def manifest(base: str, version: str = "v1alpha1") -> Json:
    made = RECORDED["bases"][base]
    head = {"apiVersion": f"policy.kruise.io/{version}", "kind": made["kind"]}
    return {**head, "metadata": {**made["metadata"], "namespace": "demo"}, "spec": made["spec"]}


def stored(base: str) -> Any:
    document = {**manifest(base), "apiVersion": "policy.kruise.io/v1beta1"}
    document["metadata"] = {**document["metadata"], "uid": base, "resourceVersion": "3"}
    return codec.convert(document, POD_UNAVAILABLE_BUDGETS.type)


@pytest.mark.parametrize("case", RECORDED["cases"], ids=[case["case"] for case in RECORDED["cases"]])
def test_recorded_manifests_are_answered_alike(case: Json) -> None:
    """PUB-1, PUB-11 to PUB-19, PUB-132: accepted or refused with 400 as recorded."""
    base = manifest(case["sent"]["base"])
    new = merge.apply(base, case["sent"]["patch"])
    old = base if case["op"] == "update" else None
    said = judge(
        request(case["op"].upper(), new, old, version="v1alpha1"), view(stored("pub-live"), stored("pub-rlive"))
    )
    assert isinstance(said, Allow) == case["accepted"], said
    if isinstance(said, Deny):
        assert said.code == case["code"] == 400
        assert said.causes


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"protectOperations": ["DELETE", "SCALE"]}, "spec.protectOperations[1]"),
        ({"ignoredPodSelector": {}}, "spec.ignoredPodSelector"),
        ({"protectTotalReplicas": 0}, "spec.protectTotalReplicas"),
    ],
)
def test_what_only_the_newer_version_says_is_judged_too(spec: Json, field: str) -> None:
    """PUB-15, PUB-16."""
    said = judge(request("CREATE", merge.apply(manifest("pub", "v1beta1"), {"spec": spec})), view())
    assert isinstance(said, Deny)
    assert [cause.field for cause in said.causes] == [field]


@pytest.mark.parametrize("text", ["0", "-3"])
def test_an_annotation_that_asks_for_no_pods_is_warned_of_and_does_not_count(text: str) -> None:
    """PUB-17: v1alpha1 has always taken it."""
    notes = {"metadata": {"annotations": {"pub.kruise.io/protect-total-replicas": text}}}
    body = merge.apply(manifest("pub"), notes)
    said = judge(request("CREATE", body), view())
    assert isinstance(said, Allow)
    [warning] = [one for one in said.warnings if "protect-total-replicas" in one]
    assert f"{text} does not count, since there must be at least 1" in warning
    assert total_replicas(codec.convert(body, POD_UNAVAILABLE_BUDGETS.type)) is None
    fine = merge.apply(body, {"metadata": {"annotations": {"pub.kruise.io/protect-total-replicas": "3"}}})
    said = judge(request("CREATE", fine), view())
    assert isinstance(said, Allow)
    assert not said.warnings
    assert total_replicas(codec.convert(fine, POD_UNAVAILABLE_BUDGETS.type)) == 3


def test_the_annotation_agrees_with_the_field() -> None:
    """PUB-17."""
    notes = {"metadata": {"annotations": {"pub.kruise.io/protect-total-replicas": "5"}}}
    both = merge.apply(manifest("pub", "v1beta1"), {**notes, "spec": {"protectTotalReplicas": 5}})
    assert isinstance(judge(request("CREATE", both), view()), Allow)
    other = merge.apply(both, {"spec": {"protectTotalReplicas": 6}})
    said = judge(request("CREATE", other), view())
    assert isinstance(said, Deny)
    assert "must be 6" in said.message


def test_with_both_gates_off_no_budget_is_taken() -> None:
    """PUB-10, PUB-50."""
    said = judge(request("CREATE", manifest("pub", "v1beta1")), view(gates={}))
    assert isinstance(said, Deny)
    assert said.code == 400
    assert keys.DELETE_GATE in said.message
    assert keys.UPDATE_GATE in said.message


def test_a_gate_that_is_off_is_told() -> None:
    said = judge(request("CREATE", manifest("pub", "v1beta1")), view(gates={keys.DELETE_GATE: True}))
    assert isinstance(said, Allow)
    assert keys.UPDATE_GATE in said.warnings[0]


def test_where_nobody_is_asked_is_told() -> None:
    asked = request("CREATE", manifest("pub", "v1beta1"))
    for namespace, expected in (("demo", 0), ("kube-system", 1)):
        said = judge(codec.evolve(asked, namespace=namespace), view())
        assert isinstance(said, Allow)
        assert len(said.warnings) == expected, said.warnings


def selector(operator: str, *values: str) -> LabelSelector:
    document = {"matchExpressions": [{"key": "app", "operator": operator, "values": list(values)}]}
    return codec.convert(document, LabelSelector)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (selector("In", "a", "b"), selector("In", "b", "c"), True),
        (selector("In", "a"), selector("In", "b"), False),
        (selector("In", "a"), selector("NotIn", "a", "b"), False),
        (selector("In", "a", "c"), selector("NotIn", "a", "b"), True),
        (selector("In", "a"), selector("Exists"), True),
        (selector("In", "a"), selector("DoesNotExist"), False),
        (selector("NotIn", "a"), selector("NotIn", "b"), True),
        (selector("NotIn", "a"), selector("DoesNotExist"), True),
        (selector("Exists"), selector("DoesNotExist"), False),
        (selector("DoesNotExist"), selector("DoesNotExist"), True),
        (selector("In", "a"), LabelSelector(match_labels={"app": "a", "tier": "x"}), False),
        (selector("In", "a"), LabelSelector(match_labels={"app": "a"}), True),
    ],
)
def test_selectors_overlap_loosely(one: LabelSelector, other: LabelSelector, expected: bool) -> None:
    """PUB-20, either way round."""
    assert overlap(one, other) is expected
    assert overlap(other, one) is expected


# Versions


def test_annotations_become_fields_and_back() -> None:
    """PUB-2 to PUB-4, PUB-133: and a write through v1alpha1 keeps what it has no place for."""
    newer = {
        "apiVersion": "policy.kruise.io/v1beta1",
        "kind": "PodUnavailableBudget",
        "metadata": {"name": "pub"},
        "spec": {
            "maxUnavailable": 1,
            "protectOperations": ["DELETE", "EVICT"],
            "protectTotalReplicas": 5,
            "ignoredPodSelector": {"matchLabels": {"a": "b"}},
        },
        "status": {"unavailableAllowed": 1},
    }
    older = convert(newer, "v1alpha1")
    annotations = older["metadata"]["annotations"]
    assert annotations["kruise.io/pub-protect-operations"] == "DELETE,EVICT"
    assert annotations["pub.kruise.io/protect-total-replicas"] == "5"
    assert set(older["spec"]) == {"maxUnavailable"}
    assert KEPT in annotations
    assert convert(older, "v1beta1")["spec"] == newer["spec"]
    plain = merge.apply(newer, {"spec": {"protectOperations": None, "protectTotalReplicas": None}})
    plain["metadata"] = {"name": "pub", "annotations": {"kruise.io/pub-protect-operations": "DELETE"}}
    assert "kruise.io/pub-protect-operations" not in convert(plain, "v1alpha1")["metadata"].get("annotations", {})


# The floor


@pytest.mark.parametrize(
    ("spec", "total", "expected"),
    [
        ({"maxUnavailable": "25%"}, 10, 7),
        ({"maxUnavailable": "25%"}, 5, 3),
        ({"minAvailable": "80%"}, 10, 8),
        ({"maxUnavailable": 1}, 2, 1),
        ({"maxUnavailable": 5}, 2, 0),
        ({"minAvailable": 100}, 10, 100),
        ({"maxUnavailable": 1}, -1, 0),
        ({"minAvailable": 2}, -1, 2),
    ],
)
def test_the_floor(spec: Json, total: int, expected: int) -> None:
    """PUB-34, PUB-35, PUB-126."""
    assert floor_of(budget(spec=spec).spec, total) == expected


# Who may go


@pytest.mark.parametrize("case", VERDICTS, ids=[case["case"] for case in VERDICTS])
def test_recorded_requests_are_answered_alike(case: Json) -> None:
    """PUB-35, PUB-60, PUB-61, PUB-62, PUB-71, PUB-72, PUB-127: of pods that are ready, by the recorded status."""
    sent, status = case["sent"], case["sent"]["status"]
    spec = {key: value for key, value in sent["pub"].items() if key != "annotations"}
    asked = budget(
        spec=spec,
        annotations=sent["pub"].get("annotations"),
        allowed=status["unavailableAllowed"],
        current=status["currentAvailable"],
        desired=status["desiredAvailable"],
        total=status["totalReplicas"],
    )
    assert floor_of(asked.spec, status["totalReplicas"]) == status["desiredAvailable"]
    said = book(asked, pod(), OPERATION[case["op"]], gates=GATES, now=NOW)
    assert isinstance(said, Refused) != case["accepted"], said


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"pod": {"annotations": {keys.NO_PROTECT: "true"}}}, Freedom.EXEMPT),
        ({"pod": {"is_ready": False}}, Freedom.UNAVAILABLE),
        ({"pod": {"deletionTimestamp": "2030-01-01T00:00:00Z"}}, Freedom.UNAVAILABLE),  # PUB-121
        ({"pod": {"labels": {"unavailable-pod.kruise.io/x": ""}}}, Freedom.UNAVAILABLE),
        ({"budget": {"spec": {"ignoredPodSelector": {"matchLabels": {"app": "web"}}}}}, Freedom.IGNORED),
        ({"budget": {"desired": 0}}, Freedom.NO_FLOOR),
        ({"budget": {"spec": {"protectOperations": ["EVICT"]}}}, Freedom.UNGUARDED),
        ({"budget": {"disruptedPods": {"web-a": BEFORE}}}, Freedom.RECORDED),
        ({"budget": {"unavailablePods": {"web-a": BEFORE}}}, Freedom.RECORDED),
    ],
)
def test_who_needs_nothing(given: Mapping[str, Json], expected: Freedom) -> None:
    """PUB-61, PUB-63, PW-38: also where nothing is left."""
    asked = budget(allowed=0, **given.get("budget", {}))
    assert book(asked, pod(**given.get("pod", {})), DELETE, gates=GATES, now=NOW) is expected


def test_records_are_of_a_pod_and_not_of_a_name() -> None:
    """A second pod under the name has no share in what was let through for the first."""
    known = {"web-a": {"uid": "uid-of-web-a", "resourceVersion": "4"}}
    asked = budget(allowed=0, disruptedPods={"web-a": BEFORE}, identities=known)
    assert book(asked, pod(), DELETE, gates=GATES, now=NOW) is Freedom.RECORDED
    assert isinstance(book(asked, pod(uid="another"), DELETE, gates=GATES, now=NOW), Refused)


@pytest.mark.parametrize(("age", "renews"), [(2, False), (8, False), (10, True), (18, True)])
def test_an_eviction_makes_its_record_last_as_long_as_anybody_waits_for_the_answer(age: int, renews: bool) -> None:
    """PUB-61, PUB-62: the API server asks about it once. Nothing more is taken; others are asked about again."""
    since = format_time(NOW - timedelta(seconds=age))
    known = {"web-a": {"uid": "uid-of-web-a", "resourceVersion": "5"}}
    asked = budget(allowed=0, disruptedPods={"web-a": since}, identities=known)
    said = book(asked, pod(), EVICT, gates=GATES, now=NOW)
    assert isinstance(said, Taken) is renews
    if isinstance(said, Taken):
        assert said.status.disrupted_pods == {"web-a": NOW}
        assert said.status.unavailable_allowed == 0
    assert book(asked, pod(), DELETE, gates=GATES, now=NOW) is Freedom.RECORDED


def test_an_eviction_of_a_pod_that_is_updated_lasts_as_an_eviction() -> None:
    known = {"web-a": {"uid": "uid-of-web-a", "resourceVersion": "5"}}
    asked = budget(allowed=0, unavailablePods={"web-a": format_time(NOW)}, identities=known)
    said = book(asked, pod(), EVICT, gates=GATES, now=NOW)
    assert isinstance(said, Taken)
    assert (said.status.unavailable_pods, said.status.disrupted_pods) == ({}, {"web-a": NOW})


def test_an_old_copy_lets_nobody_through_whose_time_is_over() -> None:
    asked = budget(allowed=0, disruptedPods={"web-a": format_time(NOW - timedelta(seconds=30))})
    assert isinstance(book(asked, pod(), DELETE, gates=GATES, now=NOW), Refused)


@pytest.mark.parametrize(("operation", "field"), [(DELETE, "disrupted"), (EVICT, "disrupted"), (UPDATE, "unavailable")])
def test_what_is_taken_is_recorded(operation: str, field: str) -> None:
    """PUB-62."""
    said = book(budget(allowed=2), pod(), operation, gates=GATES, now=NOW)
    assert isinstance(said, Taken)
    assert said.status.unavailable_allowed == 1
    assert set(getattr(said.status, f"{field}_pods")) == {"web-a"}
    assert said.status.identities["web-a"].uid == "uid-of-web-a"


def test_too_many_records_are_refused() -> None:
    """PUB-62."""
    many = {f"pod-{number}": BEFORE for number in range(MOST_RECORDS + 1)}
    said = book(budget(disruptedPods=many), pod(), DELETE, gates=GATES, now=NOW)
    assert isinstance(said, Refused)
    assert "too big" in said.message


def test_which_operations_are_guarded() -> None:
    """PUB-5, PUB-60, PUB-81, PW-39: field, annotation, the usual ones; a resize is an update where it restarts."""
    resizing = {**GATES, keys.RESIZE_GATE: True}
    assert guarded_operations(budget(), GATES) == set(OPERATIONS)
    assert guarded_operations(budget(), resizing) == {DELETE, UPDATE, EVICT}
    listed = budget(spec={"protectOperations": ["RESIZE"]}, annotations={"kruise.io/pub-protect-operations": "DELETE"})
    assert guarded_operations(listed, resizing) == {RESIZE}
    noted = budget(annotations={"kruise.io/pub-protect-operations": "DELETE, EVICT,"})
    assert guarded_operations(noted, GATES) == {DELETE, EVICT}


# Availability


SHA = "sha256:" + "a" * 64
OTHER = "sha256:" + "b" * 64


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, True),
        ({"is_ready": False}, False),
        ({"annotations": {"apps.kruise.io/inplace-update-grace": "{}"}}, False),
        ({"annotations": {"apps.kruise.io/inplace-update-state": "no json"}}, False),
        (
            {
                "containers": [{"name": "main", "image": f"nginx@{SHA}"}],
                "statuses": [{"name": "main", "imageID": f"docker-pullable://docker.io/library/nginx@{SHA}"}],
            },
            True,
        ),
        (
            {
                "containers": [{"name": "main", "image": f"nginx@{SHA}"}],
                "statuses": [{"name": "main", "imageID": f"docker.io/library/nginx@{OTHER}"}],
            },
            False,
        ),
        ({"containers": [{"name": "main", "image": f"nginx@{SHA}"}]}, False),
        (
            {
                "containers": [{"name": "main", "image": f"nginx@{SHA}"}, {"name": "log", "image": "log:1"}],
                "statuses": [{"name": "main", "imageID": f"docker.io/library/nginx@{SHA}"}, {"name": "log"}],
                "annotations": {"apps.kruise.io/inplace-update-grace": "{}"},
            },
            False,
        ),
        (
            {
                "containers": [
                    {"name": "log", "image": "log:2", "env": [{"name": "IS_INJECTED", "value": "true"}]},
                ],
                "statuses": [{"name": "log", "image": "log:1", "imageID": "one"}],
                "annotations": {
                    "kruise.io/sidecarset-injected-list": "logs",
                    "kruise.io/sidecarset-inplace-update-state": (
                        '{"logs":{"lastContainerStatuses":{"log":{"imageID":"one"}}}}'
                    ),
                },
            },
            False,
        ),
        (  # the same image under another tag: runtimes report its full name
            {
                "containers": [
                    {"name": "log", "image": "log:2", "env": [{"name": "IS_INJECTED", "value": "true"}]},
                ],
                "statuses": [{"name": "log", "image": "docker.io/library/log:2", "imageID": "one"}],
                "annotations": {
                    "kruise.io/sidecarset-injected-list": "logs",
                    "kruise.io/sidecarset-inplace-update-state": (
                        '{"logs":{"lastContainerStatuses":{"log":{"imageID":"one"}}}}'
                    ),
                },
            },
            True,
        ),
    ],
)
def test_when_a_pod_is_available(options: Json, expected: bool) -> None:
    """PUB-40 to PUB-42, PUB-129."""
    assert is_available(pod(**options)) is expected


# What an update is


def resources(**amounts: Any) -> Json:
    return pod_document(containers=[{"name": "main", "image": "nginx:1.25", "resources": amounts}])


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (pod_document(), pod_document(labels={"x": "y"}, annotations={"x": "y"}), None),
        (pod_document(), pod_document(labels={"unavailable-pod.kruise.io/x": ""}), UPDATE),
        (pod_document(labels={"unavailable-pod.kruise.io/x": ""}), pod_document(), None),
        (
            pod_document(labels={"unavailable-pod.kruise.io/x": ""}),
            pod_document(labels={"unavailable-pod.kruise.io/y": ""}),
            None,
        ),
        (pod_document(), pod_document(containers=[{"name": "main", "image": "nginx:1.26"}]), UPDATE),
        (resources(requests={"cpu": "1"}), resources(requests={"cpu": "2"}), RESIZE),
        (resources(requests={"cpu": "1"}), resources(requests={"cpu": "1000m"}), RESIZE),
        (resources(requests={"cpu": "1"}), resources(requests={"cpu": "1"}, limits={"cpu": "1"}), RESIZE),
        (resources(), resources(requests={"cpu": "1"}), UPDATE),  # another class of service
        (
            resources(requests={"cpu": "1", "ephemeral-storage": "1"}),
            resources(requests={"cpu": "1", "ephemeral-storage": "2"}),
            UPDATE,
        ),
    ],
)
def test_what_an_update_is(old: Json, new: Json, expected: str | None) -> None:
    """PUB-70, PUB-80, PUB-128."""
    assert operation_of_update(old, new) == expected


def test_a_restart_is_an_update() -> None:
    """PUB-80, PUB-128, PW-36: by the policy of the container, and of a static pod in any case."""
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]

    def with_cpu(cpu: str, **annotations: str) -> Json:
        main = {"name": "main", "image": "nginx", "resizePolicy": policy, "resources": {"requests": {"cpu": cpu}}}
        if annotations:
            del main["resizePolicy"]
        return pod_document(containers=[main], annotations=annotations)

    assert operation_of_update(with_cpu("1"), with_cpu("2")) == UPDATE
    static = {keys.CONFIG_SOURCE: "file"}
    assert operation_of_update(with_cpu("1", **static), with_cpu("2", **static)) == UPDATE
    assert operation_of_update(with_cpu("1", x="y"), with_cpu("2", x="y")) == RESIZE


# The check of requests


def question(
    operation: PodOperation, around: Any, *, asked: Json | None = None, new: Json | None = None
) -> PodQuestion:
    old = asked or pod_document()
    if operation is PodOperation.EVICTION:
        said = request("CREATE", {"metadata": {"name": "web-a"}}, subresource="eviction")
    else:
        said = request(operation.verb, new, old)
    return PodQuestion(said, around, operation, codec.convert(old, type(pod())))


def booked(asked: PodQuestion, *found: Any) -> tuple[Any, list[Any]]:
    """What is said in the end, and what was written, where the budget is found like this, one after the other: in the
    store, and whenever it is read."""
    server = Found(*found)
    keeper = Bookkeeper(ManualClock(NOW), newest=lambda target: server.first, read=server.read, write=server.write)
    said = guard(asked)
    for _ in range(3):
        if not isinstance(said, NeedsBooking):
            break
        try:
            answer = asyncio.run(keeper.book(said))
        except BookingError as error:
            answer = Failure(0, "", str(error))
        view_then = dataclasses.replace(asked.view, bookings={said.target: answer})
        said = guard(dataclasses.replace(asked, view=view_then))
    return said, server.written


class Found:
    """An API server that has one budget, as others leave it."""

    def __init__(self, first: Any, *then: Any) -> None:
        self.first = first
        self._then = list(then)
        self._now = first
        self.written: list[Any] = []

    async def read(self, target: Target) -> Any:
        return self._now

    async def write(self, action: Any) -> Outcome:
        self.written.append(action)
        if self._then:
            self._now = self._then.pop(0)
            if isinstance(self._now, str):
                return Outcome(action=action, result=Result.FAILED, error=self._now)
            return Outcome(action=action, result=Result.MOVED)
        return Outcome(action=action, result=Result.DONE)


def test_a_deletion_is_written_down_before_it_is_let_through() -> None:
    """PUB-62, PUB-64, PUB-71, PW-46: guarded by the version that was decided about."""
    said, [action] = booked(question(PodOperation.DELETE, view(budget())), budget())
    assert isinstance(said, Allow)
    assert (action.resource_version, action.uid, action.subresource) == ("7", "uid-of-pub", "status")


def test_who_was_slower_looks_again() -> None:
    """PUB-62, PUB-120: after a conflict, what is there now counts; an answer that got lost is not taken twice."""
    asked = question(PodOperation.DELETE, view(budget()))
    said, written = booked(asked, budget(), budget(allowed=0, version="8"))
    assert isinstance(said, Deny)
    assert len(written) == 1
    said, written = booked(asked, budget(), budget(allowed=1, version="8"))
    assert isinstance(said, Allow)
    assert [action.resource_version for action in written] == ["7", "8"]
    lost = budget(allowed=0, version="8", disruptedPods={"web-a": BEFORE})
    said, written = booked(asked, budget(), lost)
    assert isinstance(said, Allow)
    assert len(written) == 1
    assert isinstance(booked(asked, budget(), None)[0], Allow)
    refused, _ = booked(asked, budget(), "no etcd")
    assert isinstance(refused, Deny)
    assert refused.code == 403
    assert "no etcd" in refused.message


def test_what_took_too_long_is_asked_again() -> None:
    """PUB-62: a manager that stood still since it wrote must not let go what others have given away since."""
    asked = question(
        PodOperation.UPDATE, view(budget()), new=pod_document(containers=[{"name": "main", "image": "nginx:2"}])
    )
    said = guard(asked)
    assert isinstance(said, NeedsBooking)
    answer = said.book(budget(), NOW).result
    for seconds, is_answer in ((8, True), (9, False)):
        later = dataclasses.replace(asked.view, now=NOW + timedelta(seconds=seconds), bookings={said.target: answer})
        assert isinstance(guard(dataclasses.replace(asked, view=later)), Allow) == is_answer


def test_a_unit_is_the_pods_in_every_version_that_is_let_go() -> None:
    """PUB-61.7, PUB-63: nothing is taken twice; but where it may matter, the newest version is written down."""
    identity = {"uid": "uid-of-web-a", "resourceVersion": "4"}
    for since, is_noted in ((NOW, False), (NOW - timedelta(seconds=12), True)):
        records = {"web-a": format_time(since)}
        asked = budget(allowed=0, disruptedPods=records, identities={"web-a": identity})
        said = book(asked, pod(), DELETE, gates=GATES, now=NOW)
        if not is_noted:
            assert said is Freedom.RECORDED
            continue
        assert isinstance(said, Taken)
        assert said.status.identities["web-a"].resource_version == "5"
        assert said.status.unavailable_allowed == 0
        assert said.status.disrupted_pods == asked.status.disrupted_pods


@pytest.mark.parametrize(
    ("operation", "code", "reason"),
    [(PodOperation.DELETE, 403, "Forbidden"), (PodOperation.EVICTION, 429, "TooManyRequests")],
)
def test_how_a_refusal_is_said(operation: PodOperation, code: int, reason: str) -> None:
    """PUB-90 to PUB-93, PW-41: the answer, the event, the counter and the log."""
    around = view(budget(allowed=1))
    assert isinstance(booked(question(operation, view(budget(allowed=0))), budget(allowed=1))[0], Allow)
    said, written = booked(question(operation, around), budget(allowed=0, current=2))
    assert not written
    assert isinstance(said, Deny)
    assert (said.code, said.reason, said.retry_after_seconds) == (code, reason, 0)
    assert said.message.startswith(f'podunavailablebudget.policy.kruise.io "pub" is forbidden: {REFUSAL}')
    assert "2 of 3 pods are available, 2 must be" in said.message
    assert said.note is not None
    assert (said.note.component, said.note.event.reason) == ("pub-controller", "PubPreventPodDeletion")
    assert said.note.event.message.startswith("openkruise pub prevents pod deletion: budget pub refuses")
    assert said.note.event.message.endswith(
        "; it goes on when more pods are available; kruise why pub/pub names those that are not"
    )
    assert said.record is not None
    assert said.record.counter == "pod_unavailable_budget"
    assert said.record.labels == {"kind_namespace_name": "unknown_demo_web-a"}


def test_a_refusal_that_no_wait_ends_says_what_would() -> None:
    """PUB-127: no pod is down, and the budget has nothing to give."""
    closed = budget(spec={"maxUnavailable": 0}, allowed=0, current=3, desired=3)
    said, _ = booked(question(PodOperation.EVICTION, view(closed)), closed)
    assert isinstance(said, Deny)
    assert said.note is not None
    assert "; change maxUnavailable or minAvailable of podunavailablebudget/pub, or add" in said.note.event.message
    assert f"annotation {keys.NO_PROTECT}=true" in said.note.event.message


def test_what_is_not_asked_about() -> None:
    """PUB-70, PUB-74, PUB-124, PUB-131: pods without a mark, marks of budgets that are gone, changes of no weight."""
    around = view(budget(allowed=0))
    unmarked = pod_document(annotations={keys.RELATED: ""})
    assert guard(question(PodOperation.DELETE, around, asked=unmarked)) is None
    gone = pod_document(annotations={keys.RELATED: "old"})
    assert isinstance(booked(question(PodOperation.DELETE, around, asked=gone), None)[0], Allow)
    labelled = pod_document(labels={"x": "y"})
    assert guard(question(PodOperation.UPDATE, around, new=labelled)) is None
    newer = pod_document(annotations={keys.RELATED: "old", keys.RELATED_NEW: "pub"})
    assert isinstance(guard(question(PodOperation.DELETE, around, asked=newer)), NeedsBooking)


def test_resizes_by_their_subresource_are_not_asked_about() -> None:
    """PUB-82."""
    from kruise.admission.validating_chain import PodValidationStep

    assert PodOperation.RESIZE not in PodValidationStep.UNAVAILABLE_BUDGET.value.operations


@pytest.mark.parametrize("user", ["jane", "system:serviceaccount:kruise-system:kruise-manager", "system:node:a"])
def test_nobody_is_a_special_case(user: str) -> None:
    """PUB-106: neither the manager's own deletions of WorkloadSpreads nor a kubelet's; a restart that leaves the spec
    as it is concerns nobody."""
    asked = question(PodOperation.DELETE, view(budget()))
    by = dataclasses.replace(asked, request=request("DELETE", old=pod_document(), user=user))
    assert isinstance(booked(by, budget(allowed=0))[0], Deny)
    restarted = pod_document(statuses=[{"name": "main", "restartCount": 1}])
    assert guard(question(PodOperation.UPDATE, view(budget()), new=restarted)) is None


# The status


def decided(asked: Any, *pods: Any, total: int = 3, gone: tuple[str, ...] = (), **options: Any) -> Memo:
    members = Members(pods=pods, gone=gone, total=total, version=options.pop("version", 5))
    plan = decide(Snapshot(budget=asked, members=members, now=options.pop("now", NOW), gates=dict(GATES)))
    return plan.memo_as(Memo)


def test_what_was_let_through_counts_as_down_until_it_is_over() -> None:
    """PUB-52, PUB-53, PUB-130: 20 s for a deletion, 10 s for an update, and never early."""
    pods = [pod(name) for name in ("web-a", "web-b", "web-c")]
    since = format_time(NOW)
    asked = budget(disruptedPods={"web-a": since}, unavailablePods={"web-b": since}, allowed=0, current=1)
    for seconds, current in ((0, 1), (10, 1), (11, 2), (20, 2), (21, 3)):
        memo = decided(asked, *pods, now=NOW + timedelta(seconds=seconds))
        assert memo.status is not None
        assert memo.status.current_available == current, seconds
        assert memo.status.unavailable_allowed == max(0, current - 2)
        assert [event.reason for event in memo.events] == (["NotDeleted"] if seconds > 20 else [])


def test_a_unit_that_nobody_used_is_given_back_when_nobody_can() -> None:
    """PUB-52, PUB-130: a request may be stuck on its way. With another version of the pod it comes to nothing."""
    since, over = format_time(NOW), NOW + timedelta(seconds=21)
    unused = {"uid": "uid-of-web-a", "resourceVersion": pod().metadata.resource_version}
    pods = tuple(pod(name) for name in ("web-a", "web-b", "web-c"))
    for identity, is_kept in ((unused, True), ({**unused, "resourceVersion": "4"}, False)):
        asked = budget(disruptedPods={"web-a": since}, identities={"web-a": identity}, allowed=0, current=2)
        for now, stays in ((over, is_kept), (over + timedelta(seconds=30), False)):
            plan = decide(Snapshot(budget=asked, members=Members(pods=pods, total=3), now=now, gates=dict(GATES)))
            status = plan.memo_as(Memo).status
            assert status is not None
            assert bool(status.disrupted_pods) == stays
            written = [(action.target.name, action.body) for action in plan.actions()]
            mark = {"metadata": {"annotations": {keys.RETURNED: format_time(now)}}}
            assert written == ([("web-a", mark)] if stays else [])


@pytest.mark.parametrize("field", ["disruptedPods", "unavailablePods"])
def test_a_record_from_a_clock_that_was_ahead_lasts_no_longer_than_others(field: str) -> None:
    """PUB-52, PUB-130: else its unit would be lost for as long as the clock was wrong."""
    pods = [pod(name) for name in ("web-a", "web-b", "web-c")]

    def since(ahead: timedelta) -> timedelta:
        asked = budget(**{field: {"web-a": format_time(NOW + ahead)}}, allowed=0, current=2)
        memo = decided(asked, *pods)
        assert memo.status is not None
        assert memo.status.current_available == 2
        [kept] = {**memo.status.disrupted_pods, **memo.status.unavailable_pods}.values()
        return kept - NOW

    assert since(timedelta(hours=1)) == since(timedelta(seconds=3)) == timedelta(seconds=2)
    for near in (2, 1, 0, -5):
        assert since(timedelta(seconds=near)) == timedelta(seconds=near), "clocks may differ so much"


def test_records_go_with_their_pods() -> None:
    """PUB-52: seen on its way out, or made anew; but not while a pod has not been seen at all."""
    pods = [pod(name) for name in ("web-b", "web-c")]
    identity = {"uid": "uid-of-web-a", "resourceVersion": "4"}
    asked = budget(disruptedPods={"web-a": BEFORE}, identities={"web-a": identity}, allowed=0)
    for memo in (
        decided(asked, *pods, gone=("uid-of-web-a",)),
        decided(asked, *pods),
        decided(asked, pod("web-a", uid="another"), *pods),
    ):
        assert memo.status is not None
        assert memo.status.disrupted_pods == {}
        assert memo.status.identities == {}
    late = decided(asked, *pods, version=3)
    assert late.status is not None
    assert set(late.status.disrupted_pods) == {"web-a"}


def test_a_status_is_written_only_where_it_differs() -> None:
    """PUB-53, PUB-54, PUB-64."""
    pods = tuple(pod(name) for name in ("web-a", "web-b", "web-c"))
    for asked, is_written in ((budget(), False), (budget(allowed=0), True)):
        snapshot = Snapshot(budget=asked, members=Members(pods=pods, total=3), now=NOW, gates=dict(GATES))
        concluded = conclude(snapshot, decide(snapshot), Outcomes())
        assert (concluded.status is not None) == is_written
        if concluded.status is not None:
            assert concluded.status.resource_version == "7"


def test_surplus_pods_count() -> None:
    """PUB-105."""
    memo = decided(budget(), *(pod(f"web-{letter}") for letter in "abcde"))
    assert memo.status is not None
    assert (memo.status.unavailable_allowed, memo.status.current_available) == (3, 5)


def test_pods_learn_their_budget_unless_they_name_one() -> None:
    """PUB-51, PUB-124."""
    pods = (pod("web-a"), pod("web-b", annotations={keys.RELATED: ""}), pod("web-c", annotations={keys.RELATED: "old"}))
    plan = decide(Snapshot(budget=budget(), members=Members(pods=pods, total=3), now=NOW, gates=dict(GATES)))
    assert [action.target.name for action in plan.actions()] == ["web-b"]
    [action] = plan.actions()
    assert action.body == {"metadata": {"annotations": {keys.RELATED: "pub"}}}


def test_nothing_is_decided_before_all_is_known() -> None:
    """A kind that is not listed yet would look like one without objects, and open the budget."""
    plan = decide(Snapshot(budget=budget(), members=Members(), now=NOW, waits_for="deployments are not listed yet"))
    assert (plan.memo, len(plan.wakes)) == (None, 1)


@pytest.mark.parametrize("numbers", list(itertools.product((0, 1, 3), repeat=2)))
def test_what_is_allowed_is_never_negative(numbers: tuple[int, int]) -> None:
    """PUB-130."""
    ready, total = numbers
    pods = [pod(f"web-{place}", is_ready=place < ready) for place in range(3)]
    memo = decided(budget(spec={"minAvailable": 2}), *pods, total=total)
    assert memo.status is not None
    assert memo.status.unavailable_allowed == max(0, ready - 2)


@pytest.mark.parametrize(
    ("found", "marked"),
    [([budget()], "pub"), ([budget(spec={"selector": {"matchLabels": {"app": "x"}}})], ""), ([], ""), (None, "")],
)
def test_a_manager_that_has_just_begun_reads_which_budgets_there_are(found: Any, marked: str) -> None:
    """PUB-57: a pod without its mark would be guarded by nobody. It comes in also where budgets cannot be read."""
    new = pod_document(annotations={})
    del new["metadata"]["annotations"]
    empty: Store[Any] = Store(WATCHED_BUDGETS)
    began = HandlerView(now=NOW, seed=1, gates=GATES, stores=lambda resource: empty)
    asked = mark(new, StepContext(request("CREATE", new), began, "demo"))
    assert isinstance(asked, NeedsReads)
    assert asked.may_fail
    (listing,) = asked.targets
    answer = Failure(404, "NotFound", "no such kind") if found is None else found
    read = dataclasses.replace(began, reads={listing: answer})
    said = mark(new, StepContext(request("CREATE", new), read, "demo"))
    assert said is None or isinstance(said, Change)
    assert (said.object["metadata"]["annotations"][keys.RELATED] if said is not None else "") == marked
