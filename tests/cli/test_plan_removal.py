"""`kruise plan delete` and `kruise plan drain` against one `kruise up`: what they say is what then happens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.resourcedistribution import RESOURCE_DISTRIBUTIONS
from kruise.api.native.config import CONFIG_MAPS, SECRETS, SERVICES
from kruise.api.native.events import LEASES
from kruise.api.native.nodes import NAMESPACES
from kruise.api.native.pod import PODS, Pod
from kruise.api.policy.podunavailablebudget import POD_UNAVAILABLE_BUDGETS
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import ForbiddenError
from tests.cli.test_plan import cloneset
from tests.support.commandline import Kruise, local_cluster
from tests.support.waiting import eventually

LABEL = "policy.kruise.io/delete-protection"


@pytest.fixture(scope="module")
def kruise(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kruise]:
    with local_cluster(tmp_path_factory.mktemp("state")) as kubeconfig:
        yield Kruise(kubeconfig)


def planned(kruise: Kruise, *words: str) -> dict[str, Any]:
    done = kruise("plan", *words, "-o", "json")
    assert done.out, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


def test_a_namespace_tells_what_is_inside_and_what_protects_it(kruise: Kruise) -> None:  # DP-15, DP-51
    async def make(client: Client) -> None:
        labels = {LABEL: "Cascading"}
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": labels}}
        await client.create(NAMESPACES, body)
        await client.create(CLONE_SETS, cloneset("web", replicas=2), "shop")

    kruise.talk(make)

    async def two_run(client: Client) -> None:
        assert len((await client.list(PODS, "shop")).items) == 2

    kruise.talk(lambda client: eventually(lambda: two_run(client)))
    found = planned(kruise, "delete", "namespace/shop")
    assert found["refused"]
    assert "active pods 2>0" in found["refusals"][0]["message"]
    inside = {group["kind"]: len(group["names"]) for group in found["goes"]}
    assert (inside["pod"], inside["cloneset"]) == (2, 1)
    with pytest.raises(ForbiddenError, match="active pods 2>0"):
        kruise.talk(lambda client: client.delete(NAMESPACES, "shop"))

    async def protect(client: Client) -> None:
        await client.patch(NAMESPACES, "shop", {"metadata": {"labels": {LABEL: None}}})
        await client.patch(CLONE_SETS, "web", {"metadata": {"labels": {LABEL: "Always"}}}, "shop")

    kruise.talk(protect)
    free = planned(kruise, "delete", "ns", "shop")
    assert not free["refused"]
    assert any("stays in Terminating" in note and "cloneset/web" in note for note in free["notes"])


def test_finalizers_inside_a_namespace_are_told(kruise: Kruise) -> None:
    config = {"metadata": {"name": "kept", "finalizers": ["example.com/mine"]}}

    async def make(client: Client) -> None:
        await client.create(NAMESPACES, {"metadata": {"name": "held"}})
        await client.create(CONFIG_MAPS, config, "held")

    kruise.talk(make)
    [note] = planned(kruise, "delete", "namespace/held")["notes"]
    assert note.startswith("it stays in Terminating until the owners of finalizers inside have acted: ")
    assert note.endswith("configmap/held/kept (example.com/mine)")


def test_pods_of_a_node_that_is_deleted_are_told(kruise: Kruise) -> None:
    container = {"name": "main", "image": "nginx"}
    pod = {"metadata": {"name": "alone"}, "spec": {"nodeName": "node-1", "containers": [container]}}
    kruise.talk(lambda client: client.create(PODS, pod, "default"))
    told, advice = planned(kruise, "delete", "node/node-1")["notes"]
    assert "no budget is asked: " in told
    assert "alone" in told
    assert advice.startswith("to have them asked: kubectl drain node-1")
    kruise.talk(lambda client: client.delete(PODS, "alone", "default"))


def test_a_budget_that_is_never_free_is_not_waited_for(kruise: Kruise) -> None:
    spec = {"targetRef": {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "never"}}
    budget = {"metadata": {"name": "never"}, "spec": {**spec, "maxUnavailable": 0}}

    async def make(client: Client) -> None:
        await client.create(POD_UNAVAILABLE_BUDGETS, budget, "default")
        await client.create(CLONE_SETS, cloneset("never", replicas=1), "default")

    kruise.talk(make)

    async def refused(client: Client) -> str:
        names = [one.metadata.name for one in (await client.list(PODS, "default")).items]
        [name] = [one for one in names if one.startswith("never-")] or [""]
        assert name
        status = (await client.get(POD_UNAVAILABLE_BUDGETS, "never", "default")).status
        assert (status.current_available, status.desired_available, status.total_replicas) == (1, 1, 1)
        return name

    name = kruise.talk(lambda client: eventually(lambda: refused(client)))
    [refusal] = planned(kruise, "delete", f"pod/{name}")["refusals"]
    assert "pub.kruise.io/no-protect=true" in refusal["remedy"]
    assert "wait" not in refusal["remedy"]


def test_a_definition_goes_with_its_objects(kruise: Kruise) -> None:
    found = planned(kruise, "delete", "crd/clonesets.apps.kruise.io")
    assert not found["refused"]
    kruise.create(CLONE_SETS, cloneset("alone", replicas=1))
    again = planned(kruise, "delete", "crd/clonesets.apps.kruise.io")
    assert any("default/alone" in group["names"] for group in again["goes"])


def test_a_distribution_goes_with_its_copies(kruise: Kruise) -> None:  # RD-50
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}, "stringData": {"k": "v"}}
    targets = {"includedNamespaces": {"list": [{"name": "default"}]}}
    head = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "ResourceDistribution", "metadata": {"name": "rd"}}
    body = {**head, "spec": {"resource": secret, "targets": targets}}

    async def copied(client: Client) -> None:
        assert any(one.metadata.name == "token" for one in (await client.list(SECRETS)).items)

    kruise.talk(lambda client: client.create(RESOURCE_DISTRIBUTIONS, body))
    kruise.talk(lambda client: eventually(lambda: copied(client)))
    found = planned(kruise, "delete", "resourcedistribution/rd")
    assert {"kind": "secret", "names": ["default/token"], "why": ""} in found["goes"]


@pytest.mark.parametrize(
    ("kind", "name", "value", "said"),
    [
        ("ConfigMap", "c", "Always", "deletions of ConfigMaps are not refused"),
        ("Service", "s", "Cascading", "Cascading protects no Service: nothing is inside it; use Always"),
        ("Namespace", "misspelt", "always", "'always' protects from nothing: use Always or Cascading"),
    ],
)
def test_a_label_that_does_nothing_is_said(kruise: Kruise, kind: str, name: str, value: str, said: str) -> None:
    """DP-1, DP-17: the API server tells nobody of labels on its own kinds."""
    resource = {"ConfigMap": CONFIG_MAPS, "Service": SERVICES, "Namespace": NAMESPACES}[kind]
    body = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "labels": {LABEL: value}}}
    if kind == "Service":
        body["spec"] = {"ports": [{"port": 80}]}
    kruise.create(resource, body)
    found = planned(kruise, "delete", f"{kind.lower()}/{name}")
    assert not found["refused"]
    assert [note for note in found["notes"] if said in note]


def test_where_no_manager_is_at_work_what_is_asked_about_fails(kruise: Kruise) -> None:
    """PUB section 11, DP-3: by the lease that the last one left."""
    held = {"holderIdentity": "manager_1", "leaseDurationSeconds": 15, "renewTime": "2020-01-01T00:00:00.000000Z"}
    lease = {"metadata": {"name": "kruise-manager", "namespace": "kruise-system"}, "spec": held}
    protected = {"metadata": {"name": "cared-for", "labels": {LABEL: "Always"}}}
    guarded = cloneset("guarded", replicas=1)
    spec = {"targetRef": {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "guarded"}}
    budget = {"metadata": {"name": "guarded"}, "spec": {**spec, "maxUnavailable": 1}}

    async def make(client: Client) -> None:
        await client.create(NAMESPACES, protected)
        await client.create(POD_UNAVAILABLE_BUDGETS, budget, "default")
        await client.create(CLONE_SETS, guarded, "default")

    async def its_pod(client: Client) -> Pod:
        pods = (await client.list(PODS, "default")).items
        [pod] = [one for one in pods if one.metadata.name.startswith("guarded-")] or [None]
        assert pod is not None
        assert pod.metadata.annotations.get("kruise.io/related-pub") == "guarded"
        assert pod.spec.node_name
        return pod

    kruise.talk(make)
    pod = kruise.talk(lambda client: eventually(lambda: its_pod(client)))
    asked = (
        (("delete", "namespace/cared-for"), "until one answers, this deletion fails"),
        (("delete", f"pod/{pod.metadata.name}"), "until one answers, this deletion fails"),
        (("drain", pod.spec.node_name), "every eviction outside of kube-system fails, and so does the drain"),
    )

    def told() -> list[bool]:
        return [any(end in note for note in planned(kruise, *words)["notes"]) for words, end in asked]

    assert told() == [False, False, False]
    kruise.talk(lambda client: client.create(LEASES, lease, "kruise-system"))
    try:
        assert told() == [True, True, True]
        [note] = [one for one in planned(kruise, *asked[0][0])["notes"] if "this deletion fails" in one]
        assert note.startswith("no manager is at work: manager_1 renewed the lease")
    finally:
        kruise.talk(lambda client: client.delete(LEASES, "kruise-manager", "kruise-system"))


def test_what_is_no_kind_is_said(kruise: Kruise) -> None:
    assert 'no kind "thing"' in kruise.refused("plan", "delete", "thing/x", code=2)
    assert "not found" in kruise.refused("plan", "delete", "namespace/nowhere", code=1)
