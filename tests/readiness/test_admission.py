"""The gate `KruisePodReady` at the creation of a pod."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import pytest

from kruise.admission.chain import PodChain, PodStep
from kruise.admission.decisions import Allow, Change, HandlerView
from kruise.manager.options import Options
from kruise.readiness.controller import FEATURE
from tests.admission.helpers import request_of

OURS = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web", "uid": "u", "controller": True}
NATIVE = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
GATE = {"conditionType": "KruisePodReady"}


def body(*owners: Any, gates: Any = None) -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"name": "main", "futureField": {"a": [1]}}], "alsoUnknown": True}
    if gates is not None:
        spec["readinessGates"] = gates
    metadata: dict[str, Any] = {"generateName": "web-"}
    if owners:
        metadata["ownerReferences"] = list(owners)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def decided(pod: dict[str, Any], *, every_pod: bool = False) -> dict[str, Any] | None:
    """The pod as it leaves the chain; None where it was not changed."""
    chain = PodChain()
    for mutation in FEATURE.pod_mutations(Options()):
        chain.register(mutation.step, mutation.mutate, needs=mutation.needs)
    view = HandlerView(now=datetime(2026, 1, 1, tzinfo=UTC), seed=1, gates={"KruisePodReadinessGate": every_pod})
    before = copy.deepcopy(pod)
    answer = chain.decide(request_of(pod, kind="Pod", resource="pods"), view)
    assert pod == before
    if isinstance(answer, Change):
        return dict(answer.object)
    assert isinstance(answer, Allow)
    return None


def test_it_is_the_first_step() -> None:  # PW section 3
    assert [mutation.step for mutation in FEATURE.pod_mutations(Options())] == [PodStep.READINESS_GATE]


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1", "v9"])
def test_pods_of_our_workloads_get_the_gate(version: str) -> None:  # IPU-80, PW-12
    owner = {**OURS, "apiVersion": f"apps.kruise.io/{version}"}
    changed = decided(body(owner))
    assert changed is not None
    assert changed["spec"]["readinessGates"] == [GATE]
    # Everything else goes through as it came (PW-3).
    changed["spec"].pop("readinessGates")
    assert changed == body(owner)


def test_it_is_appended_to_the_gates_that_are_there_and_never_twice() -> None:  # IPU-80, PW-12
    other = {"conditionType": "InPlaceUpdateReady"}
    changed = decided(body(OURS, gates=[other]))
    assert changed is not None
    assert changed["spec"]["readinessGates"] == [other, GATE]
    assert decided(changed) is None


def test_other_pods_get_it_only_where_the_feature_gate_asks_for_all() -> None:  # PW-14
    foreign = {**OURS, "apiVersion": "example.com/v1"}
    for pod in (body(), body(NATIVE), body({**OURS, "controller": False}), body(foreign)):
        assert decided(pod) is None
        changed = decided(pod, every_pod=True)
        assert changed is not None
        assert changed["spec"]["readinessGates"] == [GATE]


@pytest.mark.parametrize(
    "odd",
    [
        {"apiVersion": "v1", "kind": "Pod"},
        {"metadata": {"ownerReferences": "x"}, "spec": {}},
        {"metadata": {"ownerReferences": ["x", {"controller": True, "apiVersion": None}]}, "spec": {}},
        {"metadata": None, "spec": None},
    ],
)
def test_odd_shapes_are_left_to_the_server_to_refuse(odd: dict[str, Any]) -> None:
    assert decided(odd) is None


def test_a_null_list_of_gates_is_an_empty_one() -> None:
    pod = body(OURS)
    pod["spec"]["readinessGates"] = None
    changed = decided(pod)
    assert changed is not None
    assert changed["spec"]["readinessGates"] == [GATE]
