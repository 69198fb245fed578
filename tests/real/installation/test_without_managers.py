"""No manager is left: what goes on, what does not, and what those repair that come back. On three real nodes.

As docs/manager.md lists it ("When no manager answers") and docs/install.md ("When managers come and go").
"""

from __future__ import annotations

import pytest

from tests.support.availability import (
    CLONE_SETS,
    DEMO,
    MUTATING,
    Json,
    entries,
    pod,
    ready_pods,
    scale_managers,
    uids,
    wait_ready_pods,
)
from tests.support.incluster import InCluster, clone_set, made
from tests.support.realnodes import RealNodes

pytestmark = [pytest.mark.nodes, pytest.mark.long, pytest.mark.together("installation")]

EXEMPT = "/api/v1/namespaces/exempt"
DEPLOYMENTS = "/apis/apps/v1/namespaces/demo/deployments"
BUDGETS = "/apis/policy.kruise.io/v1beta1/namespaces/demo/podunavailablebudgets"
ADMITTED = "webhookConfiguration.failurePolicy.pods=Ignore"
MARK = "kruise.io/related-pub"


def deployment(name: str) -> Json:
    template = {**pod(name), "metadata": {"labels": {"app": name}}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"metadata": {"name": name}, "spec": spec}


def eviction(name: str) -> Json:
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}


def refused(nodes: RealNodes, entry: str, method: str, path: str, body: Json | None = None) -> None:
    answer = nodes.request(method, path, body, timeout=40.0)
    assert answer.status == 500, answer
    assert f'failed calling webhook "{entry}"' in str(answer.body)


def wait_gone(running: InCluster, path: str) -> None:
    running.wait(lambda: running.nodes.request("GET", path).status == 404, f"{path} is gone")


def test_what_goes_on_while_no_manager_is_left(running: InCluster) -> None:  # MGR-87, MGR-89
    nodes = running.nodes
    nodes.request("POST", "/api/v1/namespaces", {"metadata": {"name": "exempt", "labels": {"control-plane": "x"}}}).ok()
    try:
        prepare(running)
        before = uids(ready_pods(nodes, "web"))
        scale_managers(running, 0)
        goes_on(running)
        is_refused(running)
        assert uids(ready_pods(nodes, "web")) == before

        # Where it takes too long.
        running.kruise("uninstall", "--webhooks-only")
        running.wait(lambda: nodes.request("POST", f"{DEMO}/pods", pod("new")).status == 201, "pods can be made")
        wait_ready_pods(running, "native", 1)
        nodes.request("PATCH", f"{CLONE_SETS}/web", {"spec": {"replicas": 3}}).ok()
        scale_managers(running, 2)
        wait_ready_pods(running, "web", 3)
        assert before < uids(ready_pods(nodes, "web"))
        # The budget guards again what it guarded before.
        answer = nodes.request("DELETE", f"{DEMO}/pods/guarded")
        assert (answer.status, "failed calling webhook" in str(answer.body)) == (403, False), answer
    finally:
        nodes.request("DELETE", EXEMPT)


def prepare(running: InCluster) -> None:
    """A pod that nothing protects, one that a budget does, and a CloneSet."""
    nodes = running.nodes
    for name, app in (("one", "guarded"), ("spare", "nobody")):
        about = {"selector": {"matchLabels": {"app": app}}, "minAvailable": 1}
        nodes.request("POST", BUDGETS, made("PodUnavailableBudget", name, about, group="policy.kruise.io")).ok()
    running.wait(lambda: nodes.request("GET", f"{BUDGETS}/one").ok().get("status"), "the budget is looked after")
    for name in ("free", "guarded"):
        nodes.request("POST", f"{DEMO}/pods", pod(name)).ok()
    nodes.request("POST", CLONE_SETS, clone_set("web", replicas=2)).ok()
    for name, count in (("free", 1), ("guarded", 1), ("web", 2)):
        wait_ready_pods(running, name, count)


def goes_on(running: InCluster) -> None:
    """Pods that nothing protects go, what is exempt comes, and what is not of ours is as ever."""
    nodes = running.nodes
    nodes.request("PATCH", f"{DEMO}/pods/free", {"metadata": {"labels": {"a": "b"}}}).ok()
    nodes.request("DELETE", f"{DEMO}/pods/free").ok()
    wait_gone(running, f"{DEMO}/pods/free")
    running.wait(lambda: nodes.request("POST", f"{EXEMPT}/pods", pod("made")).status == 201, "an exempt pod is made")
    assert len(nodes.request("GET", CLONE_SETS).ok()["items"]) == 1
    nodes.request("PATCH", f"{CLONE_SETS}/web/scale", {"spec": {"replicas": 2}}).ok()
    # Kinds whose deletion nobody checks.
    nodes.request("DELETE", f"{BUDGETS}/spare").ok()
    wait_gone(running, f"{BUDGETS}/spare")


def is_refused(running: InCluster) -> None:
    """What nobody can check; the answer says by whom."""
    nodes = running.nodes
    refused(nodes, "vpod.kb.io", "DELETE", f"{DEMO}/pods/guarded")
    for name in ("guarded", "web"):
        for found in ready_pods(nodes, name):
            path = f"{DEMO}/pods/{found['metadata']['name']}/eviction"
            refused(nodes, "vpodeviction.kb.io", "POST", path, eviction(found["metadata"]["name"]))
    refused(nodes, "mpod.kb.io", "POST", f"{DEMO}/pods", pod("new"))
    refused(nodes, "mcloneset.kb.io", "PATCH", f"{CLONE_SETS}/web", {"spec": {"replicas": 3}})
    refused(nodes, "mcloneset.kb.io", "POST", CLONE_SETS, clone_set("other"))
    refused(nodes, "vcloneset.kb.io", "DELETE", f"{CLONE_SETS}/web")
    older = nodes.request("GET", CLONE_SETS.replace("v1beta1", "v1alpha1"), timeout=40.0)
    assert (older.status, "conversion webhook" in str(older.body)) == (500, True), older
    # A Deployment is made, and its pods are not until somebody answers.
    nodes.request("POST", DEPLOYMENTS, deployment("native")).ok()
    running.wait(lambda: 'failed calling webhook "mpod.kb.io"' in failure_of(nodes, "native"), "no pod is made")
    assert ready_pods(nodes, "native") == []


def failure_of(nodes: RealNodes, name: str) -> str:
    status = nodes.request("GET", f"{DEPLOYMENTS}/{name}").ok()["status"]
    told = [each["message"] for each in status.get("conditions", []) if each["type"] == "ReplicaFailure"]
    return " ".join(told)


def test_pods_are_let_in_where_that_was_chosen(running: InCluster) -> None:  # MGR-87
    """They come as they are: no budget guards them until a manager is back, for one."""
    nodes = running.nodes
    running.install(running.image, ADMITTED)
    prepare(running)
    policies = {each["name"]: each["failurePolicy"] for every in entries(nodes) for each in every}
    assert {name for name, policy in policies.items() if policy == "Ignore"} == {"mpod.kb.io"}
    assert is_marked(nodes, "guarded")

    scale_managers(running, 0)
    for name in ("early", "late"):
        made_now = {**pod("guarded"), "metadata": {"name": name, "labels": {"app": "guarded"}}}
        nodes.request("POST", f"{DEMO}/pods", made_now).ok()
    nodes.request("POST", DEPLOYMENTS, deployment("native")).ok()
    wait_ready_pods(running, "guarded", 3)
    wait_ready_pods(running, "native", 1)
    assert not is_marked(nodes, "late")
    nodes.request("DELETE", f"{DEMO}/pods/early").ok()
    wait_gone(running, f"{DEMO}/pods/early")
    # What was protected before stays so.
    refused(nodes, "vpod.kb.io", "DELETE", f"{DEMO}/pods/guarded")
    refused(nodes, "vpodeviction.kb.io", "POST", f"{DEMO}/pods/guarded/eviction", eviction("guarded"))

    # Who makes the configuration again knows what was chosen.
    nodes.request("DELETE", MUTATING).ok()
    scale_managers(running, 2)
    assert policies == {each["name"]: each["failurePolicy"] for every in entries(nodes) for each in every}
    running.wait(lambda: is_marked(nodes, "late"), "the budget guards it")


def is_marked(nodes: RealNodes, name: str) -> bool:
    return MARK in nodes.request("GET", f"{DEMO}/pods/{name}").ok()["metadata"].get("annotations", {})
