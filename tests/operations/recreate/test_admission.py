"""What admission fills in and refuses (CRR-10 to CRR-16), in the words that were recorded."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from kruise.admission.decisions import Allow, Change, Deny, HandlerView, Mutation, NeedsReads
from kruise.admission.review import AdmissionRequest, GroupVersionKind
from kruise.api.apps.conversion.containerrecreaterequest import GRACE_MESSAGE, convert
from kruise.machinery.codec import Raw, decode
from kruise.operations.recreate.admission import admit

NOW = datetime(2026, 1, 1, tzinfo=UTC)
Json = dict[str, Any]


def pod(name: str, **changes: Any) -> Json:
    body: Json = {
        "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}"},
        "spec": {
            "nodeName": "sim-0",
            "terminationGracePeriodSeconds": 5,
            "initContainers": [{"name": "init"}],
            "containers": [
                {
                    "name": "main",
                    "ports": [{"containerPort": 80, "protocol": "TCP"}],
                    "lifecycle": {"preStop": {"httpGet": {"path": "/x", "port": 80, "scheme": "HTTP"}}},
                },
                {"name": "side", "lifecycle": {"preStop": {"exec": {"command": ["a"]}}}},
                {"name": "plain"},
                {"name": "sleepy", "lifecycle": {"preStop": {"sleep": {"seconds": 3}}}},
                {"name": "new"},
                {"name": "no-id"},
            ],
        },
        "status": {
            "phase": "Running",
            "containerStatuses": [
                {"name": name, "containerID": f"containerd://{name}", "restartCount": 2}
                for name in ("main", "side", "plain", "sleepy")
            ]
            + [{"name": "no-id", "containerID": "", "restartCount": 0}],
        },
    }
    for part, change in changes.items():
        body[part] |= change
    return body


PODS = {
    "p1": pod("p1"),
    "pending": pod("pending", spec={"nodeName": ""}),
    "done": pod("done", status={"phase": "Succeeded"}),
    "leaving": pod("leaving", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
    "ghost": pod("ghost", spec={"nodeName": "gone"}),
    "job": pod("job", status={"phase": "Failed", "conditions": [{"type": "SidecarTerminated", "status": "True"}]}),
    "virtual": pod("virtual", spec={"nodeName": "cloud"}),
}
NODES = {"sim-0": {}, "cloud": {"type": "virtual-kubelet"}}


def admitted(body: Json, *, old: Json | None = None, version: str = "v1beta1", **gates: bool) -> Mutation:
    request = AdmissionRequest(
        uid="1",
        kind=GroupVersionKind(group="apps.kruise.io", version=version, kind="ContainerRecreateRequest"),
        operation="UPDATE" if old is not None else "CREATE",
        namespace="ns",
        object=Raw(json.dumps(body).encode()),
        old_object=Raw(json.dumps(old).encode()) if old is not None else Raw(),
    )
    reads: dict[Any, Any] = {}
    while True:
        answer = admit(request, HandlerView(now=NOW, seed=1, gates=gates, reads=reads))
        if not isinstance(answer, NeedsReads):
            return answer
        for target in answer.targets:
            if target.resource.kind == "Pod":
                found = PODS.get(target.name)
            else:
                labels = NODES.get(target.name)
                found = {"metadata": {"name": target.name, "labels": labels}} if labels is not None else None
            reads[target] = decode(json.dumps(found), target.resource.type) if found is not None else None


def body(**spec: Any) -> Json:
    wanted = {"podName": "p1", "containers": [{"name": "main"}], **spec}
    return {"metadata": {"name": "r"}, "spec": {key: value for key, value in wanted.items() if value is not None}}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"podName": "nope"}, "no found Pod named nope"),
        ({"podName": ""}, "podName can not be empty"),
        ({"containers": None}, "containers list can not be null"),
        ({"containers": []}, "containers list can not be null"),
        ({"containers": [{"name": "init"}]}, "not found init containerStatus in Pod Status"),
        ({"containers": [{"name": "who"}]}, "container who not found in Pod"),
        ({"containers": [{"name": "new"}]}, "not found new containerStatus in Pod Status"),
        (
            {"containers": [{"name": "no-id"}]},
            "no containerID in no-id containerStatus, maybe the container has not been initialized",
        ),
        ({"podName": "pending"}, "not allowed to recreate containers in a pending Pod"),
        ({"podName": "done"}, "not allowed to recreate containers in an inactive Pod"),
        ({"podName": "leaving"}, "not allowed to recreate containers in an inactive Pod"),
        ({"podName": "ghost"}, 'failed to get Node gone: Node "gone" not found'),
        ({"activeDeadlineSeconds": 2}, "activeDeadlineSeconds can not be less than 3s"),
        ({"activeDeadlineSeconds": -1}, "activeDeadlineSeconds can not be less than 3s"),
        (
            {"strategy": {"terminationGracePeriodSeconds": -1}},
            "terminationGracePeriodSeconds must be non-negative integer",
        ),
        ({"strategy": {"unreadyGracePeriodSeconds": -1}}, "unreadyGracePeriodSeconds must be non-negative integer"),
        ({"strategy": {"minStartedSeconds": -1}}, "minStartedSeconds must be non-negative integer"),
        ({"ttlSecondsAfterFinished": -1}, "ttlSecondsAfterFinished must be non-negative integer"),
        ({"strategy": {"failurePolicy": "Foo"}}, "unknown failurePolicy Foo"),
        *(
            (
                {"containers": [{"name": "main", **given}]},
                "preStop, ports, statusContext in container are ready-only fields",
            )
            for given in (
                {"preStop": {"exec": {"command": ["a"]}}},
                {"ports": [{"containerPort": 1}]},
                {"statusContext": {"containerID": "x", "restartCount": 0}},
            )
        ),
    ],
)
def test_refused(spec: Json, message: str) -> None:
    """CRR-10, CRR-12, CRR-14."""
    answer = admitted(body(**spec))
    assert isinstance(answer, Deny)
    assert (answer.message, answer.code) == (message, 400)


def changed(sent: Json) -> Change:
    answer = admitted(sent)
    assert isinstance(answer, Change)
    return answer


def test_filled_in() -> None:
    """CRR-3, CRR-11, CRR-13 to CRR-15, CRR-70, as recorded."""
    names = ("main", "side", "plain", "sleepy")
    sent = body(containers=[{"name": name} for name in names])
    sent["metadata"]["labels"] = {"own": "1", "crr.apps.kruise.io/node-name": "x", "crr.apps.kruise.io/active": "false"}
    answer = changed(sent)
    assert answer.warnings == ()
    contexts = [{"statusContext": {"containerID": f"containerd://{name}", "restartCount": 2}} for name in names]
    assert answer.object == {
        "metadata": {
            "name": "r",
            "labels": {
                "own": "1",
                "crr.apps.kruise.io/active": "true",
                "crr.apps.kruise.io/node-name": "sim-0",
                "crr.apps.kruise.io/pod-uid": "uid-p1",
            },
        },
        "spec": {
            "podName": "p1",
            "containers": [
                {
                    "name": "main",
                    "ports": [{"containerPort": 80, "protocol": "TCP"}],
                    "preStop": {"httpGet": {"path": "/x", "port": 80, "scheme": "HTTP"}},
                    **contexts[0],
                },
                {"name": "side", "preStop": {"exec": {"command": ["a"]}}, **contexts[1]},
                {"name": "plain", **contexts[2]},
                {"name": "sleepy", "preStop": {}, **contexts[3]},
            ],
            "strategy": {"failurePolicy": "Fail", "terminationGracePeriodSeconds": 5},
        },
    }


def test_what_is_given_stays() -> None:
    strategy = {"failurePolicy": "Ignore", "minStartedSeconds": 3, "terminationGracePeriodSeconds": 0}
    answer = changed(body(strategy=strategy, activeDeadlineSeconds=3, ttlSecondsAfterFinished=5))
    assert answer.object["spec"]["strategy"] == strategy
    assert answer.object["spec"]["activeDeadlineSeconds"] == 3


def test_pods_whose_sidecars_are_to_end_are_let_through() -> None:
    """CRR-12."""
    assert isinstance(admitted(body(podName="job")), Change)


def test_warnings() -> None:
    """CRR-64: what is allowed and does not do what one may think is said."""
    [no_gate] = changed(body(strategy={"unreadyGracePeriodSeconds": 3})).warnings
    assert "has no readiness gate KruisePodReady" in no_gate
    [twice] = changed(body(containers=[{"name": "main"}, {"name": "main"}])).warnings
    assert twice == "spec.containers: main is named more than once; it is recreated once"
    virtual = changed(body(podName="virtual"))
    assert virtual.object["metadata"]["labels"]["type"] == "virtual-kubelet"  # CRR-13
    assert "no node daemon runs there" in virtual.warnings[0]


def test_gate_off() -> None:
    """CRR-1: also for updates."""
    for old in (None, body()):
        answer = admitted(body(), old=old, KruiseDaemon=False)
        assert isinstance(answer, Deny)
        remedy = "start the manager with --feature-gates=KruiseDaemon=true"
        assert (answer.message, answer.code) == (f"feature-gate KruiseDaemon is not enabled: {remedy}", 403)


def test_gate_off_holds_nobody_who_goes() -> None:
    """CRR-22: without the gate nobody could take the finalizer off."""
    leaving = body()
    leaving["metadata"] = {**leaving.get("metadata", {}), "deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert isinstance(admitted(leaving, old=leaving, KruiseDaemon=False), Allow)


def stored(**metadata: Any) -> Json:
    labels = {"crr.apps.kruise.io/pod-uid": "u", "crr.apps.kruise.io/node-name": "n"}
    spec = {"podName": "p1", "containers": [], "strategy": {}}
    return {"metadata": {"name": "r", "labels": labels, **metadata}, "spec": spec}


UNREADY = "crr.apps.kruise.io/unready-acquired"


@pytest.mark.parametrize(
    ("new", "message"),
    [
        ({**stored(), "spec": {"podName": "p2"}}, "spec of ContainerRecreateRequest is immutable"),
        (
            stored(labels={"crr.apps.kruise.io/pod-uid": "x", "crr.apps.kruise.io/node-name": "n"}),
            "not allowed to update immutable label crr.apps.kruise.io/pod-uid",
        ),
        (
            stored(labels={"crr.apps.kruise.io/pod-uid": "u"}),
            "not allowed to update immutable label crr.apps.kruise.io/node-name",
        ),
        (stored(annotations={}), f"not allowed to update immutable annotation {UNREADY}"),
    ],
)
def test_changes_that_are_refused(new: Json, message: str) -> None:
    """CRR-16."""
    answer = admitted(new, old=stored(annotations={UNREADY: "2026-01-01T00:00:00Z"}), version="v1alpha1")
    assert isinstance(answer, Deny)
    assert (answer.message, answer.code) == (message, 403)


def test_changes_that_are_allowed() -> None:
    """CRR-16: everything else."""
    new = stored(annotations={"a": "b"}, finalizers=["x"])
    assert isinstance(admitted(new, old=stored()), Allow)
    assert isinstance(admitted(stored(annotations={UNREADY: "x"}), old=stored(), version="v1alpha1"), Allow)


def test_the_same_manifest_again_changes_nothing() -> None:
    """Also where it is applied by somebody who owns the whole list of containers."""
    sent = body(containers=[{"name": "main"}, {"name": "plain"}])
    made = dict(changed(sent).object)
    again = admitted({**made, "spec": sent["spec"]}, old=made)
    assert isinstance(again, Change)
    assert again.object == made
    other = body(containers=[{"name": "plain"}, {"name": "main"}])
    assert isinstance(admitted({**made, "spec": other["spec"]}, old=made), Deny)


# Conversion

SNAPSHOT = [{"name": "app", "ready": False, "restartCount": 0, "containerID": "containerd://b"}]
CONDITION = {
    "type": "PreRecreateGrace",
    "status": "True",
    "reason": "PreRecreateGrace",
    "message": GRACE_MESSAGE,
    "lastTransitionTime": "2026-01-01T00:00:05Z",
}
STORED: Json = {
    "apiVersion": "apps.kruise.io/v1beta1",
    "kind": "ContainerRecreateRequest",
    "metadata": {"name": "r", "annotations": {"own": "1"}},
    "spec": {"podName": "p"},
    "status": {"phase": "Recreating", "containerStatusSnapshot": SNAPSHOT, "conditions": [CONDITION]},
}


def test_the_older_version_has_annotations() -> None:
    """CRR-4, CRR-5, CRR-71."""
    shown = convert(STORED, "v1alpha1")
    assert shown["status"] == {"phase": "Recreating"}
    assert shown["metadata"]["annotations"] == {
        "own": "1",
        "crr.apps.kruise.io/sync-container-statuses": (
            '[{"name":"app","ready":false,"restartCount":0,"containerID":"containerd://b"}]'
        ),
        UNREADY: "2026-01-01T00:00:05Z",
    }


def test_there_and_back_nothing_is_lost() -> None:
    """CRR-6, CRR-7, CRR section 12, 13 and 21."""
    assert convert(convert(STORED, "v1alpha1"), "v1beta1") == STORED
    empty = {**STORED, "status": {"phase": "Recreating", "containerStatusSnapshot": []}}
    assert convert(empty, "v1alpha1")["metadata"]["annotations"]["crr.apps.kruise.io/sync-container-statuses"] == "[]"
    assert convert(convert(empty, "v1alpha1"), "v1beta1") == empty


def test_annotations_that_cannot_be_read_are_dropped() -> None:
    """CRR-5."""
    annotations = {"crr.apps.kruise.io/sync-container-statuses": "{", UNREADY: "soon"}
    broken = {
        "apiVersion": "apps.kruise.io/v1alpha1",
        "metadata": {"name": "r", "annotations": annotations},
        "status": {"phase": "Pending"},
    }
    converted = convert(broken, "v1beta1")
    assert converted["metadata"] == {"name": "r"}
    assert converted["status"] == {"phase": "Pending"}
