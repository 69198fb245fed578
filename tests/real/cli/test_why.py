"""`kruise why` on a real API server: the document, causes by the manager's journal and anew, few rights, no manager."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from tests.support.commandline import Done, Kruise
from tests.support.kruisecluster import KruiseCluster
from tests.support.manifests import cloneset_manifest

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def cluster() -> Iterator[KruiseCluster]:
    with KruiseCluster() as cluster:
        yield cluster


def apply(cluster: KruiseCluster, name: str, namespace: str = "default") -> None:
    cluster.plane.kubectl("-n", namespace, "apply", "-f", "-", stdin=json.dumps(cloneset_manifest(name)))


def until(kruise: Kruise, *arguments: str, words: tuple[str, ...]) -> Done:
    deadline = time.monotonic() + 60
    while True:
        done = kruise("why", *arguments)
        if all(word in done.out for word in words):
            return done
        assert time.monotonic() < deadline, f"{done.code}\n{done.out}\n{done.err}"
        time.sleep(0.5)


@pytest.mark.smoke
def test_a_rollout_that_hangs(cluster: KruiseCluster) -> None:
    """By the address of the manager's journal, and anew: the same causes; and the end of it."""
    kruise = Kruise(cluster.kubeconfig)
    apply(cluster, "web")
    kruise.ok("rollout", "status", "cloneset/web", "--timeout=60s")
    until(kruise, "cloneset/web", words=("nothing waits: 3 of 3 pods",))
    kruise.ok("set", "image", "cloneset/web", "main=nginx:missing")
    by_address = (f"--manager-url={cluster.journal_url}",)
    asked = until(kruise, "cloneset/web", *by_address, words=("[image-pull]", "used up by"))
    assert asked.code == 3
    assert f"from the last decision of the manager at {cluster.journal_url}" in asked.out
    anew = until(kruise, "cloneset/web", words=("[image-pull]", "used up by", "decision made anew"))
    assert "the manager's journal was not asked: " in anew.out, "it runs outside the cluster"

    def causes(*arguments: str) -> list[list[str]]:
        data = json.loads(kruise("why", "cloneset/web", "-o", "json", *arguments).out)
        return [[cause["code"] for cause in waiting["causes"]] for waiting in data["waiting"]]

    assert causes() == causes(*by_address)
    kruise.ok("rollout", "undo", "cloneset/web", "--wait", "--timeout=90s")
    until(kruise, "cloneset/web", words=("nothing waits",))


def test_a_quota_and_few_rights(cluster: KruiseCluster) -> None:
    """Pods are refused by a quota; who may only read what is in the namespace learns it, too."""
    cluster.plane.kubectl("create", "namespace", "tight")
    cluster.plane.kubectl("-n", "tight", "create", "quota", "small", "--hard=pods=2")
    apply(cluster, "web", "tight")
    cluster.plane.kubectl("-n", "tight", "create", "rolebinding", "jane", "--clusterrole=view", "--user=jane")
    role = ["create", "role", "more", "--verb=get,list"]
    resources = "--resource=clonesets.apps.kruise.io,controllerrevisions.apps"
    cluster.plane.kubectl("-n", "tight", *role, resources)
    cluster.plane.kubectl("-n", "tight", "create", "rolebinding", "more", "--role=more", "--user=jane")
    kruise = Kruise(cluster.kubeconfig)
    words = ("exceeded quota: small", "[create-refused]", "kubectl describe quota -n tight")
    assert until(kruise, "-n", "tight", "cloneset/web", words=words).code == 3
    said = until(kruise, "-n", "tight", "cloneset/web", "--as=jane", words=words)
    assert "note: decided without nodes: " in said.out
    assert "cannot get resource" in kruise.refused("why", "-n", "default", "cloneset/web", "--as=jane")


def test_no_manager_is_at_work(cluster: KruiseCluster) -> None:
    """Its lease ran out: that is the cause of everything."""
    kruise = Kruise(cluster.kubeconfig)
    apply(cluster, "alone")
    kruise.ok("rollout", "status", "cloneset/alone", "--timeout=60s")
    cluster.stop_manager()
    try:
        cluster.plane.kubectl("delete", "pod", "-l", "app=alone", "--wait=false")
        said = until(kruise, "cloneset/alone", words=("[manager-down]", "nobody holds the lease"))
        assert said.code == 3
    finally:
        cluster.start_manager()
    until(kruise, "cloneset/alone", words=("nothing waits",))
