"""`scale`, `scaledown`, `pause`, `resume`, `restart`."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from kruise import kinds
from kruise.faces.face import Restart
from kruise.faces.native import DAEMON_SET, DEPLOYMENT, SERVICE, STATEFUL_SET
from kruise.machinery.documents import value_at
from kruise.spread.uniteddeployment.face import FACE as UNITED_DEPLOYMENT
from kruise.verbs import pausing, restarting, scaling
from kruise.verbs.errors import UsageError, VerbError
from kruise.workloads.cloneset.face import FACE as CLONE_SET
from kruise.workloads.daemonset.face import FACE as OUR_DAEMON_SET
from tests.verbs.objects import cloneset, container, native, template

NOW = datetime(2030, 1, 1, 12, 0, 0, tzinfo=UTC)
PODS: list[Any] = [{"metadata": {"name": f"web-{letter}"}} for letter in "abc"]


def test_replicas_are_set() -> None:
    assert scaling.scaled(CLONE_SET, cloneset(replicas=3), 5)["spec"]["replicas"] == 5
    with pytest.raises(VerbError, match="a DaemonSet cannot be scaled"):
        scaling.scaled(DAEMON_SET, native("DaemonSet"), 5)


@pytest.mark.parametrize(
    ("sizes", "replicas", "why"),
    [
        (
            (2, 2),
            3,
            "the subsets' replicas come to 4, more than the 3 of the UnitedDeployment: change the subsets first",
        ),
        (
            (2, 2),
            5,
            "the subsets' replicas come to 4, and all are given: they must come to 5: change the subsets first",
        ),
        ((2, None), 1, "the subsets' replicas come to 2, more than the 1 of the UnitedDeployment: change the subsets"),
        ((2, None), 3, ""),
        (("50%", None), 1, ""),
        ((None, None), 0, ""),
    ],
)
def test_replicas_that_the_subsets_do_not_allow_are_refused(
    sizes: tuple[int | str | None, ...], replicas: int, why: str
) -> None:
    subsets = [{"name": f"zone-{i}"} | ({} if size is None else {"replicas": size}) for i, size in enumerate(sizes)]
    united = {"metadata": {"name": "web"}, "spec": {"replicas": 4, "topology": {"subsets": subsets}}}
    wanted = scaling.scaled(UNITED_DEPLOYMENT, united, replicas)
    if not why:
        scaling.must_follow(UNITED_DEPLOYMENT, wanted)
        return
    with pytest.raises(VerbError, match=re.escape(f"/web cannot have {replicas} replicas: {why}")):
        scaling.must_follow(UNITED_DEPLOYMENT, wanted)


def test_preconditions_of_scaling() -> None:
    document = cloneset(replicas=3)
    scaling.check_precondition(CLONE_SET, document, current=3, resource_version="7")
    with pytest.raises(VerbError, match="expected replicas to be 2, was 3"):
        scaling.check_precondition(CLONE_SET, document, current=2, resource_version="")
    with pytest.raises(VerbError, match="expected resource version to be 6, was 7"):
        scaling.check_precondition(CLONE_SET, document, current=-1, resource_version="6")


def test_scaledown_lowers_replicas_and_names_the_pods() -> None:
    document = cloneset(replicas=3, scaleStrategy={"podsToDelete": ["web-a"], "maxUnavailable": 1})
    changed = scaling.without_pods(CLONE_SET, document, ["web-a", "web-b", "web-b"], PODS)
    assert changed["spec"]["replicas"] == 2, "web-a was named before, and lowered the replicas then"
    assert changed["spec"]["scaleStrategy"] == {"podsToDelete": ["web-a", "web-b"], "maxUnavailable": 1}
    assert scaling.without_pods(CLONE_SET, document, ["web-a"], PODS) == document


def test_scaledown_refuses_what_would_delete_other_pods() -> None:
    with pytest.raises(VerbError, match="has no pod web-z; its pods are web-a, web-b, web-c"):
        scaling.without_pods(CLONE_SET, cloneset(), ["web-z"], PODS)
    with pytest.raises(VerbError, match="asks for 1 pods and cannot lose 2"):
        scaling.without_pods(CLONE_SET, cloneset(replicas=1), ["web-a", "web-b"], PODS)
    with pytest.raises(VerbError, match="a Deployment decides itself which of its pods go"):
        scaling.without_pods(DEPLOYMENT, native("Deployment"), ["web-a"], PODS)
    with pytest.raises(UsageError, match="name the pods to delete"):
        scaling.without_pods(CLONE_SET, cloneset(), [], PODS)


def test_pausing_and_resuming() -> None:
    paused = pausing.change(CLONE_SET, cloneset(), pause=True)
    assert paused["spec"]["updateStrategy"]["rollingUpdate"]["paused"] is True
    assert pausing.change(DEPLOYMENT, native("Deployment"), pause=True)["spec"]["paused"] is True
    with pytest.raises(VerbError, match=r'clonesets\.apps\.kruise\.io "web" is already paused'):
        pausing.change(CLONE_SET, paused, pause=True)
    with pytest.raises(VerbError, match=r'deployments\.apps "web" is not paused'):
        pausing.change(DEPLOYMENT, native("Deployment"), pause=False)
    with pytest.raises(VerbError, match=r'statefulsets\.apps "web" resuming is not supported'):
        pausing.change(STATEFUL_SET, native("StatefulSet"), pause=False)


def test_restart_of_a_cloneset_changes_the_environment_of_every_container() -> None:  # KK-3
    pods = template(container(env=[{"name": "A", "value": "1"}]), container("side"), initContainers=[container("init")])
    changed = value_at(restarting.change(CLONE_SET, cloneset(pods=pods), NOW), ("spec", "template", "spec"))
    restarted = {"name": "RESTARTED_AT", "value": "2030-01-01T12:00:00Z"}
    assert [one["env"] for one in changed["containers"]] == [[{"name": "A", "value": "1"}, restarted], [restarted]]
    assert "env" not in changed["initContainers"][0]


def test_restart_says_that_pods_are_recreated() -> None:  # KK-3
    [plain] = restarting.notes(CLONE_SET, cloneset())
    assert "the pods are recreated" in plain
    said = restarting.notes(CLONE_SET, cloneset(rolling={"podUpdatePolicy": "InPlaceIfPossible", "paused": True}))
    assert "not done in place" in said[1]
    assert "kruise rollout resume cloneset/web" in said[2]
    assert restarting.notes(DEPLOYMENT, native("Deployment")) == []


def test_restart_is_refused_where_pods_are_never_recreated() -> None:
    with pytest.raises(VerbError, match="updates its pods in place only"):
        restarting.change(CLONE_SET, cloneset(rolling={"podUpdatePolicy": "InPlaceOnly"}), NOW)


def test_a_restart_of_any_kind_of_ours_makes_new_pods() -> None:  # KK-3
    """An annotation is updated in place, and restarts nothing."""
    restarted = [face for face in kinds.REGISTRY.built_in if face.is_ours and face.restart is not None]
    assert {face.singular for face in restarted} >= {"cloneset", "statefulset", "daemonset"}
    assert {face.restart for face in restarted} == {Restart.ENVIRONMENT}


@pytest.mark.parametrize(
    "policy", [{"podUpdatePolicy": "InPlaceIfPossible"}, {"rollingUpdateType": "InPlaceIfPossible"}]
)
def test_restart_says_so_whatever_the_policy_is_called(policy: Any) -> None:
    said = restarting.notes(OUR_DAEMON_SET, cloneset(rolling=policy))
    assert said[1:] == ["an in-place update cannot change the environment, so this update is not done in place"]


@pytest.mark.parametrize("kind", [DEPLOYMENT, STATEFUL_SET, DAEMON_SET])
def test_restart_of_native_kinds_annotates_the_template(kind: Any) -> None:  # KK-3
    changed = restarting.change(kind, native(kind.resource.kind), NOW)
    assert changed["spec"]["template"]["metadata"]["annotations"] == {
        "kubectl.kubernetes.io/restartedAt": "2030-01-01T12:00:00Z"
    }


def test_restart_refuses_a_paused_deployment_and_what_has_no_pods() -> None:  # KK-3
    with pytest.raises(VerbError, match="can't restart paused deployment"):
        restarting.change(DEPLOYMENT, native("Deployment", paused=True), NOW)
    with pytest.raises(VerbError, match='services "web" restarting is not supported'):
        restarting.change(SERVICE, native("Service"), NOW)
