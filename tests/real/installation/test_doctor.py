"""`kruise doctor` against a real API server: what it is told there of roles, webhooks and finalizers. The manager
runs outside of the cluster, so there is neither a Deployment nor a daemon.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.machinery.client.client import Client
from tests.support.commandline import Kruise
from tests.support.kruisecluster import ALONE, KruiseCluster
from tests.support.manifests import cloneset_manifest
from tests.support.patients import CLUSTER_ROLES

pytestmark = [pytest.mark.long, pytest.mark.together("doctor")]

OUTSIDE = {"no-daemon", "nobody-behind-service"}
"""What is said in any case of a manager that runs outside."""


@pytest.fixture
def cluster() -> Iterator[KruiseCluster]:
    with KruiseCluster(flags=ALONE, nodes=1) as cluster:
        yield cluster


def examined(kruise: Kruise, *flags: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(kruise("doctor", "-o", "json", *flags).out)
    return found


def findings(kruise: Kruise, *flags: str) -> dict[str, dict[str, Any]]:
    """By code, without what is said in any case; of several with one code, the first."""
    found: dict[str, dict[str, Any]] = {}
    for one in examined(kruise, *flags)["findings"]:
        if one["code"] not in OUTSIDE:
            found.setdefault(one["code"], one)
    return found


def until(kruise: Kruise, is_so: Callable[[dict[str, dict[str, Any]]], bool]) -> dict[str, dict[str, Any]]:
    """API servers learn of configurations, roles and definitions a moment later."""
    deadline = time.monotonic() + 60
    while not is_so(found := findings(kruise)):
        assert time.monotonic() < deadline, found
        time.sleep(0.5)
    return found


def test_what_is_broken_is_found_and_mended(cluster: KruiseCluster) -> None:
    kruise = Kruise(cluster.kubeconfig)

    def do(work: Callable[[Client], Awaitable[Any]]) -> None:
        kruise.talk(work)

    kruise.ok("install")  # nobody can see which gates a manager outside has: its rights have to be those for all
    until(kruise, lambda found: not found)
    healthy = examined(kruise, "--preflight")
    assert all(not one["error"] for one in healthy["asked"])
    assert len(healthy["asked"]) > 20
    assert healthy["notLookedAt"] == []

    # Rights
    do(lambda client: client.delete(CLUSTER_ROLES, "kruise-daemon-role"))
    assert set(findings(kruise)) == {"missing-object"}
    mended = examined(kruise, "--fix")["mended"]
    assert [(one["code"], one["error"]) for one in mended] == [("missing-object", "")]
    assert findings(kruise) == {}

    # An object that a finalizer holds: told once it has lasted
    async def held(client: Client) -> None:
        manifest = cloneset_manifest("web")
        manifest["metadata"]["finalizers"] = ["example.com/backup"]
        await client.create(CLONE_SETS, manifest, "default")
        await client.delete(CLONE_SETS, "web", "default")

    do(held)
    assert set(findings(kruise)) <= {"waits"}

    # Nobody answers: the API server's own words, not ours
    cluster.kill_manager()
    down = until(kruise, lambda found: "webhook-unanswered" in found)
    assert "connection refused" in down["webhook-unanswered"]["message"]
    assert kruise("doctor").code == 3
