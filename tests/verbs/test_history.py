"""Revisions of a workload, and the way back to one of them (KK-2)."""

from __future__ import annotations

import pytest

from kruise.faces.native import DAEMON_SET, DEPLOYMENT, SERVICE
from kruise.machinery.documents import Json, patch_between
from kruise.verbs import history, template_text, undo
from kruise.verbs.errors import VerbError
from kruise.workloads.cloneset.face import FACE as CLONE_SET
from tests.verbs.objects import cloneset, container, controller_revision, native, owned, replica_set, template

OLD, NEW = template(container(image="nginx:1.25")), template(container(image="nginx:1.26"))


def test_revisions_of_a_cloneset_come_oldest_first_and_only_its_own() -> None:
    stranger = owned(controller_revision(9, OLD), uid="other")
    held = [controller_revision(2, NEW, cause="set image"), stranger, controller_revision(1, OLD)]
    found = history.revisions_of(CLONE_SET, cloneset(), held)
    assert [(one.number, one.cause) for one in found] == [(1, ""), (2, "set image")]
    assert found[0].template == OLD
    assert history.table(found) == ["REVISION  CHANGE-CAUSE", "1         <none>", "2         set image"]


def test_revisions_of_a_deployment_are_its_replicasets() -> None:
    held = [replica_set(1, OLD), replica_set(3, NEW), owned({"metadata": {"name": "odd"}, "spec": {}})]
    found = history.revisions_of(DEPLOYMENT, native("Deployment"), held)
    assert [one.number for one in found] == [1, 3]
    assert found[1].template == NEW, "the hash label is none of the Deployment's"


def test_without_revisions() -> None:
    assert history.table([]) == ["No rollout history found."]


def roll_back(document: Json, to: int = 0) -> undo.Rollback:
    held = [controller_revision(1, OLD), controller_revision(2, NEW)]
    return undo.roll_back(CLONE_SET, document, history.revisions_of(CLONE_SET, document, held), to)


def test_undo_goes_to_the_revision_before_the_newest() -> None:  # KK-2
    document = cloneset(pods=NEW)
    rollback = roll_back(document)
    assert rollback.revision.number == 1
    assert rollback.changed["spec"]["template"] == OLD
    assert patch_between(document, rollback.changed)[1:] == [
        {"op": "test", "path": "/spec/template/spec/containers/0/name", "value": "main"},
        {"op": "test", "path": "/spec/template/spec/containers/0/image", "value": "nginx:1.26"},
        {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "nginx:1.25"},
    ]


def test_undo_leaves_nothing_of_the_newer_template() -> None:  # KK-2
    """A merge of the stored template would keep labels and fields that only the newer one has."""
    newer = template(container(image="nginx:1.26"), labels={"app": "web", "canary": "yes"}, nodeSelector={"a": "b"})
    assert roll_back(cloneset(pods=newer)).changed["spec"]["template"] == OLD


def test_undo_is_skipped_where_the_template_is_that_already() -> None:  # KK-2
    rollback = roll_back(cloneset(pods=NEW), to=2)
    assert rollback.skipped == "skipped rollback (current template already matches revision 2)"


@pytest.mark.parametrize(
    ("to", "numbers", "message"),
    [
        (0, [1], "no last revision to roll back to"),
        (7, [1, 2], "unable to find the specified revision 7; there are 1, 2"),
        (-1, [1, 2], "unable to find specified revision -1 in history"),
    ],
)
def test_undo_without_a_target_is_refused(to: int, numbers: list[int], message: str) -> None:  # KK-2
    document = cloneset(pods=NEW)
    known = history.revisions_of(CLONE_SET, document, [controller_revision(number, OLD) for number in numbers])
    with pytest.raises(VerbError) as caught:
        undo.roll_back(CLONE_SET, document, known, to)
    assert message in str(caught.value)


def test_undo_of_a_deployment_takes_back_annotations_of_the_revision() -> None:  # KK-2
    """What tells about the Deployment stays, and so does what the rollout project wrote."""
    document = native("Deployment", pods=NEW)
    document["metadata"]["annotations"] = {
        "deployment.kubernetes.io/revision": "2",
        "rollouts.kruise.io/x": "kept",
        "kubernetes.io/change-cause": "newer",
        "team": "new",
    }
    held = [replica_set(1, OLD, **{"kubernetes.io/change-cause": "older", "rollouts.kruise.io/x": "stale"})]
    known = history.revisions_of(DEPLOYMENT, document, [*held, replica_set(2, NEW)])
    changed = undo.roll_back(DEPLOYMENT, document, known, 0).changed
    assert changed["spec"]["template"] == OLD
    assert changed["metadata"]["annotations"] == {
        "deployment.kubernetes.io/revision": "2",
        "rollouts.kruise.io/x": "kept",
        "kubernetes.io/change-cause": "older",
    }


def test_undo_of_a_paused_deployment_is_refused() -> None:
    document = native("Deployment", pods=NEW, paused=True)
    known = history.revisions_of(DEPLOYMENT, document, [replica_set(1, OLD), replica_set(2, NEW)])
    with pytest.raises(VerbError, match="you cannot rollback a paused deployment; resume it first"):
        undo.roll_back(DEPLOYMENT, document, known, 0)
    with pytest.raises(VerbError, match='no rollout history found for deployment "web"'):
        undo.target(DEPLOYMENT, document, known[:1], 0)


def test_undo_of_a_kind_without_history_is_refused() -> None:
    with pytest.raises(VerbError, match="service/web keeps no history"):
        undo.roll_back(SERVICE, native("Service"), [], 0)


def test_undo_of_a_daemonset() -> None:
    document = native("DaemonSet", pods=NEW)
    known = history.revisions_of(DAEMON_SET, document, [controller_revision(1, OLD), controller_revision(2, NEW)])
    assert undo.roll_back(DAEMON_SET, document, known, 1).changed["spec"]["template"] == OLD


def test_templates_that_mean_the_same_are_the_same() -> None:
    assert history.same_template({**OLD, "metadata": {**OLD["metadata"], "creationTimestamp": None}}, OLD)
    assert not history.same_template(NEW, OLD)
    assert not history.same_template({"spec": {"containers": 1}}, OLD)


def test_a_template_as_text() -> None:
    pods = template(
        container(
            "main",
            "nginx:1.25",
            command=["nginx", "-g"],
            ports=[{"containerPort": 80, "name": "http"}, {"containerPort": 53, "protocol": "UDP"}],
            env=[
                {"name": "A", "value": "1"},
                {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                {"name": "C", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
                {"name": "D", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "E", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
            ],
            resources={"limits": {"cpu": "1", "memory": "1Gi"}},
            readinessProbe={"httpGet": {"port": 80, "path": "/ok"}},
            livenessProbe={"exec": {"command": ["true"]}},
            volumeMounts=[{"name": "data", "mountPath": "/data", "readOnly": True}],
        ),
        initContainers=[container("init", "busybox:1")],
        serviceAccountName="robot",
        priorityClassName="high",
        volumes=[{"name": "data", "emptyDir": {}}],
        tolerations=[{"key": "a", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5}],
    )
    pods["metadata"]["annotations"] = {"x": "y"}
    assert template_text.described(pods) == [
        "Pod Template:",
        "  Labels:  app=web",
        "  Annotations:  x: y",
        "  Service Account:  robot",
        "  Init Containers:",
        "   init:",
        "    Image:      busybox:1",
        "    Port:       <none>",
        "    Host Port:  <none>",
        "    Environment:  <none>",
        "    Mounts:       <none>",
        "  Containers:",
        "   main:",
        "    Image:       nginx:1.25",
        "    Ports:       80/TCP (http), 53/UDP",
        "    Host Ports:  0/TCP (http), 0/UDP",
        "    Command:     nginx -g",
        "    Limits:      cpu=1, memory=1Gi",
        "    Liveness:    exec ['true'] delay=0s timeout=1s period=10s #success=1 #failure=3",
        "    Readiness:   http-get http://:80/ok delay=0s timeout=1s period=10s #success=1 #failure=3",
        "    Environment:",
        "      A:  1",
        "      B:  <set to the key 'k' in secret 's'>",
        "      C:  <set to the key 'k' of config map 'c'>",
        "      D:  (v1:metadata.name)",
        "      E:  (limits.cpu)",
        "    Mounts:",
        "      /data from data (ro)",
        "  Volumes:",
        "   data:  emptyDir",
        "  Priority Class Name:  high",
        "  Node-Selectors:  <none>",
        "  Tolerations:  a:NoSchedule op=Exists for 5s",
    ]
