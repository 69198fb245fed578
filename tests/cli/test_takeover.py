"""`kruise install --takeover` and `kruise doctor --takeover` as they are typed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kruise.api.native.nodes import NAMESPACES
from kruise.machinery.client.client import Client
from tests.support.commandline import Kruise, local_cluster
from tests.support.openkruise import NAMESPACE
from tests.support.openkruise_census import documents
from tests.support.openkruise_objects import OpenKruise
from tests.support.patients import DAEMON_SETS, DEPLOYMENTS


def test_there_and_back(tmp_path_factory: pytest.TempPathFactory) -> None:
    with local_cluster(tmp_path_factory.mktemp("state"), "--bare") as kubeconfig:
        kruise = Kruise(kubeconfig)
        assert "nothing of OpenKruise to take over" in kruise.refused("install", "--takeover")
        assert kruise.ok("doctor", "--takeover")[0] == "Kubernetes v1.34.4, without OpenKruise"
        assert "there is no way back" in kruise.refused("install", "--takeover", "--undo")

        kruise.talk(lambda client: OpenKruise(client, datetime.now(UTC)).install())
        refused = kruise.refused("install")
        assert refused.startswith("nothing was changed: deployment/kruise-controller-manager")
        assert "kruise install --takeover" in refused

        # What is in the way is said before anything is changed.
        label(kruise, None)
        done = kruise("doctor", "--takeover")
        assert (done.code, done.lines[-1]) == (3, "1 broken, 1 note")
        assert "kubectl label namespace kruise-system" in kruise.refused("install", "--takeover")
        label(kruise, "controller-manager")

        said = kruise.ok("install", "--takeover", "--dry-run")
        assert said[0] == "what would happen:"
        assert said[2].startswith("  2. scales deployment/kruise-controller-manager")
        assert commands(kruise) == ["/manager", "/kruise-daemon"]

        said = kruise.ok("install", "--takeover", "--image", "kruise:1", "--set", "manager.replicas=1", "--timeout=50s")
        assert said[-1].endswith("kruise install --takeover --undo goes back")
        assert commands(kruise) == ["kruise", "kruise"]
        data = json.loads(kruise("doctor", "--takeover", "-o", "json").out)
        assert (data["state"], data["original"]) == ("done", "openkruise/kruise-manager:v1.9.0")
        assert data["definitions"]["clonesets.apps.kruise.io"] == {
            "versions": ["v1alpha1", "v1beta1"],
            "stored": "v1alpha1",
        }
        said = kruise.ok("install", "--takeover", "--undo", "--dry-run")
        assert said[-1].endswith("deletes configmap/kruise-takeover")
        said = kruise.ok("install", "--takeover", "--undo", "--timeout=50s")
        assert any(line.startswith("OpenKruise is back, as it was before ") for line in said)
        assert commands(kruise) == ["/manager", "/kruise-daemon"]


def test_wrong_usage(tmp_path: Path) -> None:
    kruise = Kruise(tmp_path / "none")
    assert "--undo goes with --takeover" in kruise.refused("install", "--undo", code=2)
    assert "--dry-run goes with --takeover" in kruise.refused("install", "--dry-run", code=2)
    assert "takes no values and no image" in kruise.refused("install", "--takeover", "--undo", "--image=a:1", code=2)
    assert "--dry-run tells" in kruise.refused("install", "--takeover", "--print", code=2)
    assert "does not go with --fix" in kruise.refused("doctor", "--takeover", "--fix", code=2)


def label(kruise: Kruise, value: str | None) -> None:
    body = {"metadata": {"labels": {"control-plane": value}}}
    kruise.talk(lambda client: client.patch(NAMESPACES, NAMESPACE, body))


def commands(kruise: Kruise) -> list[str]:
    """What manager and daemon are to run."""

    async def read(client: Client) -> list[str]:
        found = []
        for resource in (DEPLOYMENTS, DAEMON_SETS):
            for workload in await documents(client, resource, NAMESPACE):
                found.append(workload["spec"]["template"]["spec"]["containers"][0]["command"][0])
        return found

    return kruise.talk(read)
