"""What a distribution does about each namespace, and what its status says of it."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.admission.inventory import MUTATING
from kruise.api.apps.resourcedistribution import (
    RESOURCE_DISTRIBUTIONS,
    ResourceDistribution,
    ResourceDistributionSpec,
    Targets,
)
from kruise.api.meta import Key
from kruise.api.native.nodes import NAMESPACES, Namespace
from kruise.machinery import codec
from kruise.machinery.causes import Cause
from kruise.machinery.client.requests import Verb
from kruise.machinery.codec import Raw
from kruise.machinery.plan import Action, OnError, Outcome, Outcomes, PhaseOutcomes, Plan, Result
from kruise.machinery.store import Store
from kruise.machinery.watched import Watched
from kruise.manager import gates
from kruise.manager.options import Options
from kruise.operations.resourcedistribution import content
from kruise.operations.resourcedistribution.admission import _warnings
from kruise.operations.resourcedistribution.causes import CONFLICT, COPY_REFUSED, NO_NAMESPACE, NO_TARGETS, UNFIT
from kruise.operations.resourcedistribution.conclude import TYPES, conclude
from kruise.operations.resourcedistribution.controller import controllers
from kruise.operations.resourcedistribution.decide import decide
from kruise.operations.resourcedistribution.snapshot import FROM, HASH, Copy, Place, Reader, Snapshot, conceal
from kruise.operations.resourcedistribution.targets import wanted

NOW = datetime(2030, 1, 1, tzinfo=UTC)
SECRET = "hunter2-very-secret"
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cfg"}, "data": {"k": "v"}}


def distribution(targets: dict[str, Any], resource: Any = CONFIG, **more: Any) -> ResourceDistribution:
    metadata = {"name": "rd", "uid": "rd-uid", "generation": 1, **more.pop("metadata", {})}
    body = {"metadata": metadata, "spec": {"targets": targets, "resource": resource}, **more}
    return codec.decode(codec.encode(body), ResourceDistribution)


def listing(*names: str) -> dict[str, Any]:
    return {"includedNamespaces": {"list": [{"name": name} for name in names]}}


def seen(one: ResourceDistribution, *copies: Copy, places: tuple[str, ...] = ("a", "b")) -> Snapshot:
    return Snapshot(distribution=one, places=tuple(Place(name=name) for name in places), copies=copies, now=NOW)


def mine(namespace: str, **more: Any) -> Copy:
    return Copy(namespace=namespace, uid=f"{namespace}-uid", owner_uid="rd-uid", fields=("data",), **more)


def actions(plan: Plan) -> list[tuple[Verb, str]]:
    return [(action.verb, action.target.namespace) for action in plan.actions()]


def causes(plan: Plan) -> list[Cause]:
    return [cause for held in plan.held for cause in held.causes]


def test_the_hash_is_that_of_the_recording() -> None:  # RD-41
    resource = {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "cfg", "labels": {"a": "b"}, "annotations": {"note": "x"}},
        "data": {"k": "v1"},
    }
    found = content.hash_of(Raw(json.dumps(resource).encode()))
    assert found == "762774892b2f7190b9df3e7823580f9c33158c3d60f24feab3c53ffc3507f8e4"


def test_each_namespace_gets_what_it_lacks() -> None:  # RD-33, RD-34
    one = distribution(listing("a", "b", "c", "d"))
    there = (mine("a"), mine("b", differs=True), mine("e"))
    plan = decide(seen(one, *there, places=("a", "b", "c", "e")))
    assert actions(plan) == [(Verb.CREATE, "c"), (Verb.PATCH, "b"), (Verb.DELETE, "e")]
    (cause,) = causes(plan)
    assert cause.meaning is NO_NAMESPACE
    assert cause.remedy.endswith("kubectl create namespace d")


@pytest.mark.parametrize(
    ("owner", "text"),
    [
        ("", "is not a copy of this distribution"),
        ("Deployment web", "but belongs to Deployment web"),
        ("ResourceDistribution other", "is the copy of another distribution: ResourceDistribution other"),
    ],
)
def test_what_belongs_to_others_is_not_touched(owner: str, text: str) -> None:  # RD-33, RD-51
    copy = Copy(namespace="a", uid="u", owner_uid="x" if owner else "", owner=owner, differs=True)
    plan = decide(seen(distribution(listing("a")), copy))
    assert actions(plan) == []
    (cause,) = causes(plan)
    assert cause.meaning is CONFLICT
    assert text in cause.message


def test_a_copy_that_lost_its_owner_reference_is_taken_back() -> None:  # RD-33
    one = distribution(listing("a"))
    marks = {FROM: "rd", HASH: "old"}
    lost = Copy(namespace="a", uid="u", annotations=marks, fields=("data",))
    (action,) = decide(seen(one, lost)).actions()
    steps = {step["path"]: step.get("value") for step in action.body}
    assert [owner["uid"] for owner in steps["/metadata/ownerReferences"]] == ["rd-uid"]
    # Elsewhere it is nobody's, and never deleted.
    assert actions(decide(seen(one, codec.evolve(lost, namespace="b"), mine("a")))) == []


@pytest.mark.parametrize("marks", [{}, {FROM: "rd"}, {HASH: "old"}, {FROM: "other", HASH: "old"}])
def test_without_its_marks_it_is_a_conflict(marks: dict[str, str]) -> None:  # RD-33
    plan = decide(seen(distribution(listing("a")), Copy(namespace="a", uid="u", annotations=marks)))
    assert (actions(plan), [cause.meaning for cause in causes(plan)]) == ([], [CONFLICT])


def test_nothing_comes_back_while_it_goes() -> None:  # RD-75
    one = distribution(listing("a"), metadata={"deletionTimestamp": "2030-01-01T00:00:00Z"})
    assert decide(seen(one)) == Plan()


def test_a_resource_from_before_admission_that_cannot_be_copied() -> None:  # RD-31
    """Its status says so, and it is not tried again."""
    one = distribution(listing("a"), {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}})
    plan = decide(seen(one))
    assert [cause.meaning for cause in causes(plan)] == [UNFIT]
    concluded = conclude(seen(one), plan, Outcomes())
    assert concluded.retry == ""
    assert concluded.status is not None
    status = concluded.status.body[0]["value"]
    assert (status["desired"], status["succeeded"], status["failed"]) == (1, 0, 1)
    (told,) = [item for item in status["conditions"] if item["status"] == "True"]
    assert told["type"] == "CreateResourceFailed"
    assert told["reason"] == "spec.resource is no Secret or ConfigMap with a name"
    assert list(told["failedNamespaces"]) == ["a"]
    again = seen(distribution(listing("a"), {"kind": "Pod"}, status=status))
    assert conclude(again, decide(again), Outcomes()).status is None


def test_an_update_keeps_what_others_added_and_takes_away_what_is_not_in_the_template() -> None:  # RD-37
    copy = mine("a", differs=True, labels={"own": "1"}, annotations={"own": "1"}, finalizers=("z",))
    template = {**CONFIG, "metadata": {"name": "cfg", "labels": {"a": "b"}, "finalizers": ["f"]}, "data": None}
    (action,) = decide(seen(distribution(listing("a"), template), copy)).actions()
    steps = {(step["op"], step["path"]): step.get("value") for step in action.body}
    assert steps["add", "/metadata/labels"] == {"own": "1", "a": "b"}
    assert steps["add", "/metadata/annotations"]["own"] == "1"
    assert steps["add", "/metadata/finalizers"] == ["f", "z"]
    assert ("remove", "/data") in steps


NAMES = st.sampled_from(["a", "b", "c", "kube-system", "kube-public"])
LABELS = st.sampled_from([{}, {"g": "1"}, {"g": "2"}])


@settings(max_examples=60)
@given(
    everywhere=st.booleans(),
    included=st.sets(NAMES),
    excluded=st.sets(NAMES),
    selects=st.booleans(),
    existing=st.dictionaries(NAMES, LABELS),
)
def test_targets(
    everywhere: bool, included: set[str], excluded: set[str], selects: bool, existing: dict[str, dict[str, str]]
) -> None:  # RD-20
    selector = {"namespaceSelector": {"matchLabels": {"g": "1"}}} if selects else {}
    lists = {
        "includedNamespaces": {"list": [{"name": name} for name in sorted(included)]},
        "excludedNamespaces": {"list": [{"name": name} for name in sorted(excluded)]},
    }
    targets = codec.convert({"allNamespaces": everywhere, **lists, **selector}, Targets)
    found = wanted(targets, existing.items())
    for name in ("a", "b", "c"):
        selected = selects and existing.get(name) == {"g": "1"}
        is_target = name in existing if everywhere else name in included or selected
        assert (name in found) == (is_target and name not in excluded)
    for name in ("kube-system", "kube-public"):
        is_target = name in included and (name in existing or not everywhere)
        assert (name in found) == (is_target and name not in excluded)


# Status


def outcomes(plan: Plan, results: dict[str, Result], error: str = "no", reason: str = "") -> Outcomes:
    def of(action: Action) -> Outcome:
        result = results.get(action.target.namespace, Result.DONE)
        failed = result is Result.FAILED
        return Outcome(
            action=action, result=result, error=error if failed else "", error_reason=reason if failed else ""
        )

    return Outcomes(
        tuple(
            PhaseOutcomes(phase.name, tuple(tuple(of(action) for action in chain) for chain in phase.chains))
            for phase in plan.phases
        )
    )


def status_after(snapshot: Snapshot, results: dict[str, Result], **more: Any) -> dict[str, Any] | None:
    plan = decide(snapshot)
    write = conclude(snapshot, plan, outcomes(plan, results, **more)).status
    return write.body[0]["value"] if write is not None else None


def test_the_six_conditions() -> None:  # RD-2, RD-3, RD-38
    snapshot = seen(distribution(listing("a", "b", "gone")))
    status = status_after(snapshot, {"b": Result.FAILED})
    assert status is not None
    assert {key: status[key] for key in ("desired", "succeeded", "failed", "observedGeneration")} == {
        "desired": 3,
        "succeeded": 1,
        "failed": 2,
        "observedGeneration": 1,
    }
    assert tuple(item["type"] for item in status["conditions"]) == TYPES
    told = {item["type"]: item for item in status["conditions"] if item["status"] == "True"}
    assert list(told) == ["CreateResourceFailed", "NamespaceNotExists"]
    assert told["CreateResourceFailed"]["reason"] == "no"
    assert list(told["NamespaceNotExists"]["failedNamespaces"]) == ["gone"]
    assert all(item["reason"] == "Succeeded" for item in status["conditions"] if item["status"] == "False")

    later = distribution(listing("a", "b", "gone"), status=status)
    again = Snapshot(
        distribution=later,
        places=snapshot.places,
        copies=(mine("a"),),
        now=NOW + timedelta(minutes=1),
    )
    refused, missing = causes(decide(again))
    assert (refused.meaning, missing.meaning) == (COPY_REFUSED, NO_NAMESPACE)
    assert refused.message == "in b: no"
    assert status_after(again, {"b": Result.FAILED}) is None  # the same again is not written
    changed = status_after(again, {})
    assert changed is not None
    times = {item["type"]: item["lastTransitionTime"] for item in changed["conditions"]}
    assert times.pop("CreateResourceFailed") == "2030-01-01T00:01:00Z"
    assert set(times.values()) == {"2030-01-01T00:00:00Z"}


def test_a_copy_that_cannot_be_changed_is_told_with_its_namespace() -> None:  # RD-72
    """Once for all of them, and what brings them back."""
    names = tuple("abcdefg")
    told = {"type": "UpdateResourceFailed", "status": "True", "reason": "immutable", "failedNamespaces": names}
    one = distribution(listing(*names), status={"observedGeneration": 1, "conditions": [told]})
    plan = decide(seen(one, *(mine(name, differs=True) for name in names), places=names))
    cause, *others = causes(plan)
    assert [one.message for one in others] == [cause.message] * 6
    assert cause.message == "in a, b, c, d, e and 2 more: immutable"
    assert cause.remedy.endswith("kubectl delete configmap cfg -n a")


def test_a_shorter_list_of_conditions_counts_as_none() -> None:  # RD-76
    old = {"type": "GetResourceFailed", "status": "False", "lastTransitionTime": "2020-01-01T00:00:00Z"}
    status = status_after(seen(distribution(listing("a"), status={"conditions": [old]})), {})
    assert status is not None
    assert {item["lastTransitionTime"] for item in status["conditions"]} == {"2030-01-01T00:00:00Z"}


def test_who_was_slower_has_a_conflict() -> None:  # RD-51
    status = status_after(seen(distribution(listing("a"))), {"a": Result.FAILED}, reason="AlreadyExists")
    assert status is not None
    assert [item["type"] for item in status["conditions"] if item["status"] == "True"] == ["ConflictOccurred"]


def test_what_failed_is_tried_again_and_conflicts_are_not() -> None:  # RD-31
    one = seen(distribution(listing("a", "gone")))
    plan = decide(one)
    assert conclude(one, plan, outcomes(plan, {"a": Result.FAILED})).retry == "no"
    assert conclude(one, plan, outcomes(plan, {})).retry == ""
    assert conclude(one, plan, outcomes(plan, {"a": Result.MOVED})).status is None


# Secrets


@pytest.mark.parametrize(
    ("unfit", "said"),
    [
        ({"data": ["k"]}, "data is no map"),
        ({"stringData": "k"}, "stringData is no map"),
        ({"binaryData": [1]}, "binaryData is no map"),
        ({"metadata": {"name": "s", "labels": ["a"]}}, "metadata.labels is no map"),
        ({"metadata": {"name": "s", "annotations": "a"}}, "metadata.annotations is no map"),
        ({"metadata": {"name": "s", "finalizers": "a"}}, "metadata.finalizers is no list of names"),
        ({"metadata": {"name": "s", "finalizers": [{}]}}, "metadata.finalizers is no list of names"),
        ({"metadata": {"name": 5}}, "is no Secret or ConfigMap with a name"),
        ({"metadata": ["name"]}, "is no Secret or ConfigMap with a name"),
        ({"apiVersion": ["v1"]}, "is no Secret or ConfigMap with a name"),
    ],
)
def test_nonsense_from_before_there_was_admission_is_said(unfit: dict[str, Any], said: str) -> None:
    """Nobody has looked at it: it must neither stop others nor be tried for ever."""
    template = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, **unfit}
    one = distribution({"allNamespaces": True}, template, metadata={"resourceVersion": "1"})
    about = ({"metadata": {"name": name, "resourceVersion": "1"}} for name in ("a", "b"))
    namespaces = [codec.convert(document, Namespace) for document in about]
    there: dict[Any, Store[Any]] = {kind: Store(Watched(kind)) for kind in (RESOURCE_DISTRIBUTIONS, NAMESPACES)}
    there[RESOURCE_DISTRIBUTIONS].replace([one], 1)
    there[NAMESPACES].replace(namespaces, 1)
    view: Any = SimpleNamespace(store=there.__getitem__, now=NOW)
    snapshot = Reader().snapshot(view, Key("", "rd"))
    assert snapshot == seen(one)
    plan = decide(snapshot)
    assert actions(plan) == []
    (cause,) = causes(plan)
    assert cause.meaning is UNFIT
    assert cause.message.endswith(said)


@pytest.mark.parametrize("field", ["data", "stringData", "stringDta"])
def test_what_is_kept_shows_no_secret(field: str) -> None:
    template = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, field: {"k": SECRET}}
    quoted = {"kubectl.kubernetes.io/last-applied-configuration": SECRET}
    one = distribution(listing("a", "b"), template, metadata={"annotations": quoted})
    snapshot = seen(one, mine("a", differs=True, annotations=quoted))
    assert SECRET.encode() in codec.encode(snapshot)
    concealed = conceal(snapshot)
    shown = codec.encode(concealed) + repr(decide(concealed)).encode()
    assert SECRET.encode() not in shown
    assert base64.b64encode(SECRET.encode()) not in shown
    assert actions(decide(concealed)) == actions(decide(snapshot))


@pytest.mark.parametrize(
    ("targets", "is_told"),
    [
        ({}, True),
        ({"excludedNamespaces": {"list": [{"name": "a"}]}}, True),
        ({"allNamespaces": True}, False),
        ({"includedNamespaces": {"list": [{"name": "a"}]}}, False),
        ({"namespaceSelector": {"matchLabels": {"team": "a"}}}, False),
    ],
)
def test_targets_that_choose_nobody_are_warned_of(targets: Any, is_told: bool) -> None:  # RD-18
    told = list(_warnings(codec.convert({"targets": targets}, ResourceDistributionSpec), {}))
    assert [text.startswith("spec.targets chooses no namespace") for text in told] == ([True] if is_told else [])


@pytest.mark.parametrize("targets", [{}, {"namespaceSelector": {"matchLabels": {"team": "nobody"}}}])
def test_targets_that_choose_nobody_are_told(targets: Any) -> None:
    one = distribution(targets)
    [cause] = causes(decide(seen(one)))
    assert cause.meaning == NO_TARGETS
    assert not causes(decide(seen(distribution({"allNamespaces": True}), mine("a"), mine("b"))))


def test_finalizers_of_copies_are_warned_of() -> None:  # RD-36, RD-50
    targets = codec.convert({"targets": {"allNamespaces": True}}, ResourceDistributionSpec)
    template = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "finalizers": ["example.com/mine"]}}
    [told] = _warnings(targets, template)
    assert told.startswith("spec.resource.metadata.finalizers: each copy gets them")


def test_it_is_neither_defaulted_nor_overwrites_anything() -> None:  # RD-1, RD-52
    """No entry changes it, and there is no field that would tell to write over what others have."""
    assert all(entry.resource != "resourcedistributions" for entry in MUTATING)
    assert set(codec.to_builtins(codec.convert({"resource": CONFIG, "targets": {}}, ResourceDistributionSpec))) <= {
        "resource",
        "targets",
    }
    assert actions(decide(seen(distribution(listing("a")), Copy(namespace="a", uid="x", differs=True)))) == []


def test_the_flag_sets_the_number_of_workers() -> None:  # RD-30
    def workers(options: Options) -> int:
        (controller,) = controllers(options)
        return controller.workers

    gated = gates.resolve({"ResourceDistributionGate": True})
    assert workers(Options(gates=gated)) == 3
    assert workers(Options(gates=gated, workers={"resourcedistribution": 7})) == 7


def test_every_namespace_is_tried_whatever_others_answer() -> None:  # RD-32
    plan = decide(seen(distribution({"allNamespaces": True}), mine("b", differs=True), places=("a", "b", "c")))
    assert {name for _, name in actions(plan)} == {"a", "b", "c"}
    assert {phase.on_error for phase in plan.phases} == {OnError.CONTINUE}
