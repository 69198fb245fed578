"""The everyday verbs on a real API server with simulated nodes, also as `kubectl kruise`."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from kruise import kinds
from kruise.faces.face import Face
from tests.support.commandline import Kruise
from tests.support.kruisecluster import KruiseCluster
from tests.support.walkthroughs import search_path

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def cluster() -> Iterator[KruiseCluster]:
    with KruiseCluster() as cluster:
        yield cluster


@pytest.fixture
def kruise(cluster: KruiseCluster) -> Kruise:
    return Kruise(cluster.kubeconfig)


def environment(cluster: KruiseCluster) -> dict[str, str]:
    return {**os.environ, "PATH": search_path(), "KUBECONFIG": str(cluster.kubeconfig)}


def kubectl(cluster: KruiseCluster, *arguments: str, stdin: str = "", code: int = 0) -> str:
    done = subprocess.run(
        ["kubectl", *arguments], env=environment(cluster), input=stdin, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == code, f"kubectl {' '.join(arguments)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def manifest(kind: str, name: str, **spec: Any) -> str:
    labels = {"app": name}
    document = {
        "apiVersion": "apps.kruise.io/v1beta1" if kind == "CloneSet" else "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": "nginx:1.25", "ports": [{"containerPort": 80}]}]},
            },
            **spec,
        },
    }
    return yaml.dump(document)


IN_PLACE = {"rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": "100%"}}


@pytest.mark.smoke
def test_a_cloneset_through_kubectl(cluster: KruiseCluster) -> None:
    """kubectl finds the plugin, hands it its flags, and passes on its exit code."""
    kubectl(cluster, "apply", "-f", "-", stdin=manifest("CloneSet", "web", replicas=3, updateStrategy=IN_PLACE))
    done = "partitioned roll out complete: 3 new pods have been updated...\n"
    assert kubectl(cluster, "kruise", "rollout", "status", "cloneset/web", "--timeout=60s").endswith(done)
    updated = kubectl(
        cluster, "kruise", "-n", "default", "set", "image", "clone", "web", "main=nginx:1.26", "--wait", "--timeout=60s"
    )
    assert updated.startswith("cloneset.apps.kruise.io/web image updated\n")
    assert updated.endswith(done)
    assert kubectl(cluster, "kruise", "rollout", "history", "clone/web").splitlines()[2:] == [
        "1         <none>",
        "2         <none>",
    ]
    undone = kubectl(cluster, "kruise", "rollout", "undo", "clone/web", "--wait", "--timeout=60s")
    assert undone.startswith("cloneset.apps.kruise.io/web rolled back\n")
    image = "{.spec.template.spec.containers[0].image}"
    assert kubectl(cluster, "get", "clone", "web", "-o", f"jsonpath={image}") == "nginx:1.25"
    kubectl(cluster, "kruise", "rollout", "pause", "clone/web")
    kubectl(cluster, "kruise", "rollout", "pause", "clone/web", code=1)
    kubectl(cluster, "kruise", "set", "image", "clone/web", "main=nginx:1.27")
    kubectl(cluster, "kruise", "rollout", "status", "clone/web", "--timeout=1s", code=3)
    kubectl(cluster, "kruise", "rollout", "resume", "clone/web", "--wait", "--timeout=60s")
    kubectl(cluster, "kruise", "rollout", "stauts", "clone/web", code=2)


@pytest.mark.parametrize(
    ("kind", "spec", "last"),
    [
        ("Deployment", {"replicas": 2}, 'deployment "native" successfully rolled out'),
        ("StatefulSet", {"replicas": 2, "serviceName": "native"}, "statefulset rolling update complete 2 pods"),
        ("DaemonSet", {}, 'daemon set "native" successfully rolled out'),
    ],
)
def test_native_workloads(cluster: KruiseCluster, kruise: Kruise, kind: str, spec: dict[str, Any], last: str) -> None:
    """Update, history, undo and restart of kinds that Kubernetes' own controllers roll out; as kubectl sees it, too."""
    kubectl(cluster, "apply", "-f", "-", stdin=manifest(kind, "native", **spec))
    name = f"{kind.lower()}/native"
    assert last in kruise.ok("rollout", "status", name, "--timeout=90s")[-1]
    assert last in kruise.ok("set", "image", name, "main=nginx:1.26", "--wait", "--timeout=90s")[-1]
    assert [line.split()[0] for line in kruise.ok("rollout", "history", name)[2:]] == ["1", "2"]
    assert (
        kubectl(cluster, "rollout", "history", name).split() == " ".join(kruise.ok("rollout", "history", name)).split()
    )
    assert last in kruise.ok("rollout", "undo", name, "--wait", "--timeout=90s")[-1]
    image = kubectl(cluster, "get", name, "-o", "jsonpath={.spec.template.spec.containers[0].image}")
    assert image == "nginx:1.25"
    assert "skipped rollback" in kruise.ok("rollout", "undo", name, "--to-revision=3")[0]
    assert last in kruise.ok("rollout", "restart", name, "--wait", "--timeout=90s")[-1]
    data = json.loads("\n".join(kruise.ok("describe", "rollout", name, "-o", "json")))
    assert {pod["state"] for pod in data["pods"] if pod["revision"] == data["revisions"][0]["number"]} == {"Ready"}
    kubectl(cluster, "delete", name)


@pytest.mark.parametrize("face", [face for face in kinds.REGISTRY.built_in if face.counterpart is not None], ids=str)
def test_pods_are_handed_over_and_back(cluster: KruiseCluster, kruise: Kruise, face: Face) -> None:
    """kube-controller-manager lets go of them, and takes them back, without making them anew."""
    native, name = f"{face.singular}.apps", f"keep-{face.singular}"
    spec = {"replicas": 3, "serviceName": name} if face.replicas else {}
    kubectl(cluster, "apply", "-f", "-", stdin=manifest(face.resource.kind, name, **spec))
    kruise.ok("rollout", "status", f"{native}/{name}", "--timeout=90s")
    columns = "custom-columns=:metadata.uid,:status.containerStatuses[0].restartCount"

    def pods() -> list[str]:
        told = kubectl(cluster, "get", "pods", "-l", f"app={name}", "-o", columns, "--no-headers")
        return sorted(told.splitlines())

    before = pods()
    for source, destination in ((native, face.label), (face.label, native)):
        move = ("migrate", destination, "--from", source, f"--src-name={name}", "-n", "default", "--timeout-seconds=90")
        assert kruise.ok(*move)[-1].startswith(f"{destination}/{name} has ")
        kruise.ok("rollout", "status", f"{destination}/{name}", "--timeout=60s")
        assert pods() == before
    kruise.ok("set", "image", f"{native}/{name}", "main=nginx:1.26", "--wait", "--timeout=90s")
    assert not set(before) & set(pods())
    kubectl(cluster, "delete", f"{native}/{name}")


def test_set_migrate_expose_and_scaledown(cluster: KruiseCluster, kruise: Kruise) -> None:
    """A real API server accepts every patch that the verbs send."""
    kubectl(cluster, "apply", "-f", "-", stdin=manifest("Deployment", "shop", replicas=3))
    kruise.ok("rollout", "status", "deploy/shop", "--timeout=60s")
    move = ("migrate", "CloneSet", "--from", "Deployment", "--src-name=shop", "--dst-name=shop2", "-n", "default")
    assert kruise.ok(*move, "--create") == ["cloneset.apps.kruise.io/shop2 created"]
    assert kruise.ok(*move, "--timeout-seconds=90")[-1].endswith("3 pods moved")
    kruise.ok("set", "env", "clone/shop2", "A=1")
    kruise.ok("set", "resources", "clone/shop2", "--requests=cpu=10m")
    kruise.ok("set", "sa", "clone/shop2", "default")
    kruise.ok("set", "env", "deploy/shop", "A=1", "--dry-run=server")
    assert kruise.ok("expose", "clone/shop2", "--name=shop") == ["service/shop exposed"]
    assert kruise.ok("set", "selector", "svc/shop", "app=shop,x=y") == ["service/shop selector updated"]
    kruise.ok("rollout", "status", "clone/shop2", "--timeout=90s")
    pods = json.loads("\n".join(kruise.ok("describe", "rollout", "clone/shop2", "-o", "json")))["pods"]
    kruise.ok("scaledown", "clone/shop2", f"--pods={pods[0]['name']}")
    kruise.ok("rollout", "status", "clone/shop2", "--timeout=90s")
    kubectl(cluster, "wait", "--for=delete", f"pod/{pods[0]['name']}", "--timeout=90s")
    replicas = "jsonpath={.spec.replicas}"
    assert kubectl(cluster, "get", "clone", "shop2", "-o", replicas) == "2"
    assert kruise.ok("scale", "clone/shop2", "deploy/shop", "--replicas=1", "--dry-run=server") == [
        "cloneset.apps.kruise.io/shop2 scaled (server dry run)",
        "deployment.apps/shop scaled (server dry run)",
    ]
    kruise.ok("scale", "clone/shop2", "--replicas=1", "--current-replicas=2", "--wait", "--timeout=90s")
    assert kubectl(cluster, "get", "clone", "shop2", "-o", replicas) == "1"


def test_without_rights(cluster: KruiseCluster, kruise: Kruise) -> None:
    """Who may not is told so; who may only scale can."""
    kubectl(cluster, "apply", "-f", "-", stdin=manifest("CloneSet", "secret", replicas=0))
    said = kruise.refused("rollout", "status", "clone/secret", "--as=nobody")
    assert 'User "nobody" cannot get resource "clonesets"' in said
    assert "--as" in said
    kubectl(cluster, "create", "role", "reader", "--verb=get", "--resource=clonesets.apps.kruise.io")
    kubectl(cluster, "create", "role", "scaler", "--verb=patch", "--resource=clonesets.apps.kruise.io/scale")
    for role in ("reader", "scaler"):
        kubectl(cluster, "create", "rolebinding", role, f"--role={role}", "--user=scaler")
    kruise.ok("scale", "clone/secret", "--replicas=1", "--as=scaler")
    assert "cannot patch resource" in kruise.refused("rollout", "pause", "clone/secret", "--as=scaler")
    assert "did you mean secret?" in kruise.refused("rollout", "status", "clone/secert")
