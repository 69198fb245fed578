"""`kruise plan` on a real API server with simulated nodes, by somebody who may only read; and its document."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import ApiError
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.kubeconfig import load
from tests.support.commandline import Kruise
from tests.support.kruisecluster import ALONE, KruiseCluster
from tests.support.walkthroughs import DOCUMENTS


@pytest.fixture(scope="module")
def cluster() -> Iterator[KruiseCluster]:
    with KruiseCluster(flags=ALONE) as cluster:
        yield cluster


def manifest(name: str, **rolling: object) -> str:
    document = yaml.safe_load((DOCUMENTS / "manifests" / "verbs.yaml").read_text().replace("web", name))
    document["spec"]["updateStrategy"]["rollingUpdate"] |= rolling
    return yaml.safe_dump(document)


@pytest.mark.smoke
def test_read_only_rights_suffice(cluster: KruiseCluster) -> None:
    """Nothing but get and list is granted, so a plan that comes out has written nothing."""
    kruise = Kruise(cluster.kubeconfig)
    cluster.plane.kubectl("apply", "-f", "-", stdin=manifest("read"))
    kruise.ok("rollout", "status", "clone/read", "--timeout=90s")
    plan = ("plan", "clone/read", "--image", "main=nginx:1.26", "--as=reader")
    assert 'User "reader" cannot get resource "clonesets"' in kruise.refused(*plan)
    resources = "--resource=clonesets.apps.kruise.io,pods,controllerrevisions.apps,persistentvolumeclaims"
    cluster.plane.kubectl("create", "role", "planner", "--verb=get,list", resources)
    cluster.plane.kubectl("create", "rolebinding", "planner", "--role=planner", "--user=reader")
    data = json.loads("\n".join(kruise.ok(*plan, "-o", "json")))
    assert (data["verdict"], data["counts"]) == ("complete", {"in-place": 5})
    assert [len(wave["moves"]) for wave in data["waves"]] == [2, 2, 1]
    assert any(note.startswith("no right to list nodes") for note in data["notes"])
    assert any(note.startswith("you may not list podunavailablebudgets") for note in data["notes"])
    shapes = [note for note in data["notes"] if note.endswith("what they change in new pods is not in this plan")]
    assert any("workloadspreads" in note for note in shapes)
    kinds = ("sidecarsets", "workloadspreads", "persistentpodstates", "podprobemarkers")
    names = (
        "nodes",
        "namespaces",
        "podunavailablebudgets.policy.kruise.io",
        *(f"{kind}.apps.kruise.io" for kind in kinds),
    )
    cluster.plane.kubectl("create", "clusterrole", "around-reader", "--verb=list", f"--resource={','.join(names)}")
    cluster.plane.kubectl("create", "clusterrolebinding", "around", "--clusterrole=around-reader", "--user=reader")
    assert json.loads("\n".join(kruise.ok(*plan, "-o", "json")))["notes"] == []


def test_a_file_is_planned_as_kubectl_applies_it(cluster: KruiseCluster, tmp_path: Path) -> None:
    """Fields of others stay, fields that were applied go, and the change that comes is the one that was planned."""
    kruise = Kruise(cluster.kubeconfig)
    cluster.plane.kubectl("apply", "-f", "-", stdin=manifest("merged", maxSurge=1))
    kruise.ok("rollout", "status", "clone/merged", "--timeout=90s")
    cluster.plane.kubectl("annotate", "clone", "merged", "team=shop")
    kruise.ok("scale", "clone/merged", "--replicas=4", "--wait", "--timeout=90s")
    wanted = yaml.safe_load(manifest("merged").replace("nginx:1.25", "nginx:1.26"))
    del wanted["spec"]["replicas"]
    wanted["spec"]["minReadySeconds"] = 1
    file = tmp_path / "merged.yaml"
    file.write_text(yaml.safe_dump(wanted))
    data = json.loads("\n".join(kruise.ok("plan", "-f", str(file), "-o", "json")))
    cluster.plane.kubectl("apply", "-f", str(file))
    made = json.loads(cluster.plane.kubectl("get", "clone", "merged", "-o", "json"))
    planned = {change["path"]: change.get("after") for change in data["changes"]}
    assert planned["spec.minReadySeconds"] == made["spec"]["minReadySeconds"]
    assert data["replicas"] == made["spec"]["replicas"]
    assert made["metadata"]["annotations"]["team"] == "shop"
    assert not [path for path in planned if path.startswith("metadata")]
    kruise.ok("rollout", "status", "clone/merged", "--timeout=90s")
    revision = json.loads(cluster.plane.kubectl("get", "clone", "merged", "-o", "json"))["status"]["updateRevision"]
    assert revision == data["revisions"]["to"]


@pytest.mark.parametrize(
    ("patch", "flag"),
    [
        ({"spec": {"replicas": -1}}, "spec.replicas=-1"),
        ({"spec": {"replicas": "x"}}, "spec.replicas=x"),
        (
            {"spec": {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 0}}}},
            "spec.updateStrategy.rollingUpdate.maxUnavailable=0",
        ),
        ({"spec": {"selector": {"matchLabels": {"app": "x"}}}}, "spec.selector.matchLabels.app=x"),
    ],
)
def test_refusals_are_those_of_the_server(cluster: KruiseCluster, patch: object, flag: str) -> None:
    cluster.plane.kubectl("apply", "-f", "-", stdin=manifest("refused"))
    said = Kruise(cluster.kubeconfig).refused("plan", "clone/refused", "--set", flag)

    async def change() -> None:
        async with Client(HttpTransport(load(cluster.kubeconfig))) as client:
            await client.patch(CLONE_SETS, "refused", patch, "default")

    with pytest.raises(ApiError) as refused:
        asyncio.run(change())
    assert said == str(refused.value)
