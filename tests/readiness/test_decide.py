"""Who gets `KruisePodReady` from the readiness controller, and when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kruise.api.native.pod import Pod
from kruise.inplace import keys
from kruise.machinery import codec
from kruise.machinery.client.requests import PatchType
from kruise.machinery.plan import Action, Outcomes, Plan, Urgency
from kruise.readiness.decide import Snapshot, conclude, decide, has_writer, is_concerned

BOUND = datetime(2026, 1, 1, tzinfo=UTC)
CLONE_SET = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web", "uid": "u", "controller": True}


def pod(
    *, gate: bool = True, condition: str = "", owner: dict[str, Any] | None = None, node: str = "n1", **metadata: Any
) -> Pod:
    conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    if condition:
        conditions.append({"type": keys.KRUISE_POD_READY, "status": condition})
    body = {
        "metadata": {"name": "p", "namespace": "ns", "uid": "1", "resourceVersion": "3", **metadata},
        "spec": {
            "nodeName": node,
            "readinessGates": [{"conditionType": keys.KRUISE_POD_READY if gate else "other"}],
        },
        "status": {"conditions": conditions if node else []},
    }
    if owner is not None:
        body["metadata"]["ownerReferences"] = [owner]
    return codec.convert(body, Pod)


def decided(seen: Pod, *, after: float = 0.0) -> Plan:
    writers = {("apps.kruise.io", "CloneSet")}
    return decide(Snapshot(pod=seen, now=BOUND + timedelta(seconds=after), has_writer=has_writer(seen, writers)))


def actions(plan: Plan) -> list[Action]:
    return list(plan.actions())


@pytest.mark.parametrize("node", ["n1", ""])
def test_a_pod_that_no_workload_of_ours_looks_after_gets_it_at_once(node: str) -> None:  # IPU-81, PW-13
    (action,) = actions(decided(pod(node=node)))
    assert (action.subresource, action.patch_type, action.uid) == ("status", PatchType.STRATEGIC, "1")
    assert action.body == {
        "status": {
            "conditions": [{"type": "KruisePodReady", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
        }
    }


@pytest.mark.parametrize(
    "seen",
    [
        pod(gate=False),
        pod(condition="True"),
        pod(condition="False"),
        pod(deletionTimestamp="2026-01-01T00:00:00Z"),
    ],
)
def test_pods_that_are_none_of_its_business(seen: Pod) -> None:  # IPU-81
    assert not is_concerned(seen)
    assert decided(seen) == Plan()


def test_a_clone_set_has_a_second_from_the_binding_to_write_it_itself() -> None:
    """Times on a pod have whole seconds: bound at 00:00:00 may be bound at 00:00:00.999."""
    seen = pod(owner=CLONE_SET)
    for after, wait in ((0.0, 2.0), (0.5, 1.5), (1.9995, 0.001)):
        plan = decided(seen, after=after)
        assert actions(plan) == []
        (wake,) = plan.wakes
        assert wake.after == pytest.approx(wait)
    late = decided(seen, after=2.0)
    assert len(actions(late)) == 1
    assert late.phases[0].urgency is Urgency.LATER


def test_an_unbound_pod_of_a_clone_set_waits_for_its_node() -> None:
    assert decided(pod(owner=CLONE_SET, node=""), after=60) == Plan()


@pytest.mark.parametrize(
    "owner",
    [
        {**CLONE_SET, "controller": False},
        {**CLONE_SET, "apiVersion": "apps/v1", "kind": "ReplicaSet"},
        {**CLONE_SET, "kind": "StatefulSet"},
        {**CLONE_SET, "apiVersion": "example.com/v1"},
    ],
)
def test_other_owners_do_not_write_it(owner: dict[str, Any]) -> None:
    assert len(actions(decided(pod(owner=owner)))) == 1


def test_the_older_version_of_the_owner_is_the_same_clone_set() -> None:  # CS-153
    assert actions(decided(pod(owner={**CLONE_SET, "apiVersion": "apps.kruise.io/v1alpha1"}))) == []


def test_a_pod_that_was_born_on_its_node_counts_from_its_creation() -> None:
    body = codec.to_builtins(pod(owner=CLONE_SET, creationTimestamp="2025-12-31T23:59:59Z"))
    body["status"] = {}
    seen = codec.convert(body, Pod)
    (wake,) = decided(seen).wakes
    assert wake.after == pytest.approx(1.0)
    assert len(actions(decided(seen, after=1.0))) == 1


def test_there_is_nothing_to_conclude() -> None:
    seen = Snapshot(pod=pod(), now=BOUND)
    conclusion = conclude(seen, decide(seen), Outcomes())
    assert (conclusion.status, conclusion.events, conclusion.retry) == (None, (), "")
