"""`kruise plan delete` and `kruise plan drain` against one `kruise up`: what they say is what then happens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.resourcedistribution import RESOURCE_DISTRIBUTIONS
from kruise.api.native.config import SECRETS
from kruise.api.native.nodes import NAMESPACES
from kruise.api.native.pod import PODS
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


def test_what_is_no_kind_is_said(kruise: Kruise) -> None:
    assert 'no kind "thing"' in kruise.refused("plan", "delete", "thing/x", code=2)
    assert "not found" in kruise.refused("plan", "delete", "namespace/nowhere", code=1)
