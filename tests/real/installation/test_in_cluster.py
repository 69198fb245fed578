"""Manager and daemon in a cluster of three real nodes, from this tree's image, with the installed roles and no more:
installed by the command and by Helm, at work, and removed again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kruise import release
from tests.support.incluster import NAMESPACE, InCluster, clone_set, made
from tests.support.realcluster import ClusterError
from tests.support.realnodes import RealNodes

pytestmark = [pytest.mark.nodes, pytest.mark.long, pytest.mark.together("installation")]

Json = dict[str, Any]
WORKLOADS = "/apis/apps.kruise.io/v1beta1/namespaces/demo"
PODS = "/api/v1/namespaces/demo/pods"


@pytest.fixture(params=["command", "chart"])
def installed(request: pytest.FixtureRequest, installable: InCluster) -> Iterator[InCluster]:
    image = installable.push("first")
    if request.param == "command":
        installable.install(image, "featureGates=ImagePullJobGate=true")
    else:
        installable.install_chart(image)
    try:
        installable.nodes.create_namespace("demo")
        yield installable
    finally:
        installable.nodes.request("DELETE", "/api/v1/namespaces/demo")
        installable.uninstall()
        gone = "/api/v1/namespaces/demo"
        installable.wait(lambda: installable.nodes.request("GET", gone).status == 404, "the namespace is gone")


def pods_of(nodes: RealNodes, app: str) -> list[Json]:
    found: list[Json] = nodes.request("GET", f"{PODS}?labelSelector=app%3D{app}").ok()["items"]
    return found


def is_ready(pod: Json) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", []))


def statuses(pod: Json) -> list[tuple[str, int]]:
    return [(each["containerID"], each["restartCount"]) for each in pod["status"]["containerStatuses"]]


def test_everything_works_with_the_installed_rights_alone(installed: InCluster, tmp_path: Path) -> None:  # MGR-61
    nodes = installed.nodes
    check_that_nothing_is_privileged(installed)
    check_that_pods_are_apart(installed)

    # A CloneSet, updated in place.
    nodes.request("POST", f"{WORKLOADS}/clonesets", clone_set("web", replicas=3)).ok()
    installed.wait(lambda: ready(nodes, "web", 3), "three pods are ready")
    before = {pod["metadata"]["uid"]: statuses(pod) for pod in pods_of(nodes, "web")}
    patch = {"spec": clone_set("web", replicas=3, image="nginx:1.26")["spec"]}
    nodes.request("PATCH", f"{WORKLOADS}/clonesets/web", patch).ok()
    installed.wait(lambda: updated(nodes, "web", 3), "all pods are updated")
    after = {pod["metadata"]["uid"]: statuses(pod) for pod in pods_of(nodes, "web")}
    assert set(after) == set(before)
    assert all(after[uid] != before[uid] for uid in before)

    # An image, pulled ahead on every node by the daemons.
    job = {"image": "redis:7", "parallelism": 3, "completionPolicy": {"type": "Always"}}
    nodes.request("POST", f"{WORKLOADS}/imagepulljobs", made("ImagePullJob", "ahead", job)).ok()
    installed.wait(lambda: status(nodes, "imagepulljobs", "ahead").get("succeeded") == 3, "all nodes have the image")
    for node in nodes.nodes:
        assert "redis:7" in nodes.run_on_node(node, "ctr", "-n", "k8s.io", "images", "ls", "-q")

    # A container, restarted by the daemon of its node.
    pod = pods_of(nodes, "web")[0]
    about = {"podName": pod["metadata"]["name"], "containers": [{"name": "main"}]}
    nodes.request(
        "POST", f"{WORKLOADS}/containerrecreaterequests", made("ContainerRecreateRequest", "again", about)
    ).ok()
    installed.wait(lambda: status(nodes, "containerrecreaterequests", "again").get("phase") == "Completed", "restarted")
    [again] = [each for each in pods_of(nodes, "web") if each["metadata"]["uid"] == pod["metadata"]["uid"]]
    assert statuses(again) != statuses(pod)

    # MGR-25: nobody has crashed, and nobody was denied anything.
    for each in (*installed.managers(), *installed.daemons()):
        name = each["metadata"]["name"]
        assert [status["restartCount"] for status in each["status"]["containerStatuses"]] == [0], installed.log(name)
        assert "forbidden" not in installed.log(name)


def ready(nodes: RealNodes, app: str, count: int) -> bool:
    found = pods_of(nodes, app)
    return len(found) == count and all(map(is_ready, found))


def updated(nodes: RealNodes, app: str, count: int) -> bool:
    found = status(nodes, "clonesets", app)
    live = nodes.request("GET", f"{WORKLOADS}/clonesets/{app}").ok()["metadata"]["generation"]
    return found.get("observedGeneration") == live and found.get("updatedReadyReplicas") == count


def status(nodes: RealNodes, plural: str, name: str) -> Json:
    found: Json = nodes.request("GET", f"{WORKLOADS}/{plural}/{name}").ok().get("status", {})
    return found


def check_that_nothing_is_privileged(installed: InCluster) -> None:
    """As it is in the running processes, not only as it was asked for."""
    nodes = installed.nodes
    managers, daemons = installed.managers(), installed.daemons()
    assert (len(managers), len(daemons)) == (2, 3)
    for pod in (*managers, *daemons):
        [container] = pod["spec"]["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        about = process_of(nodes, pod)
        assert about["user"] != "0"
        assert set(about["capabilities"].values()) == {0}
        assert (about["seccomp"], about["no_new_privileges"]) == ("2", "1")
    inside = ("exec", f"--namespace={NAMESPACE}", managers[0]["metadata"]["name"], "--")
    assert release() in nodes.kubectl(*inside, "kruise", "--version")
    with pytest.raises(ClusterError, match="Read-only file system"):
        nodes.kubectl(*inside, "python3", "-c", "open('/usr/x', 'w')")
    with pytest.raises(ClusterError, match="not found"):
        nodes.kubectl(*inside, "sh", "-c", "true")


def process_of(nodes: RealNodes, pod: Json) -> Json:
    """What the kernel says of the container's first process."""
    identity = pod["status"]["containerStatuses"][0]["containerID"].removeprefix("containerd://")
    said = nodes.run_on_node(pod["spec"]["nodeName"], "ctr", "-n", "k8s.io", "tasks", "ls")
    [pid] = [line.split()[1] for line in said.splitlines() if line.startswith(identity)]
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    fields = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return {
        "user": fields["Uid"].split()[0],
        "capabilities": {name: int(fields[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")},
        "seccomp": fields["Seccomp"],
        "no_new_privileges": fields["NoNewPrivs"],
    }


def check_that_pods_are_apart(installed: InCluster) -> None:
    assert len({pod["spec"]["nodeName"] for pod in installed.managers()}) == 2
    assert {pod["spec"]["nodeName"] for pod in installed.daemons()} == set(installed.nodes.nodes)
    budget = installed.nodes.request(
        "GET", f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets/kruise-controller-manager"
    ).ok()
    assert budget["spec"]["minAvailable"] == 1


def test_the_chart_is_upgraded_and_removed_by_helm(installable: InCluster) -> None:
    image = installable.push("first")
    installable.install_chart(image)
    service = f"/api/v1/namespaces/{NAMESPACE}/services/kruise-webhook-service"
    secret = f"/api/v1/namespaces/{NAMESPACE}/secrets/kruise-webhook-certs"
    before = [installable.nodes.request("GET", path).ok() for path in (service, secret)]
    installable.install_chart(installable.push("second"), "featureGates=ResourcesDeletionProtection=true", upgrade=True)
    after = [installable.nodes.request("GET", path).ok() for path in (service, secret)]
    assert after[0]["spec"]["clusterIP"] == before[0]["spec"]["clusterIP"]
    assert after[1]["data"] == before[1]["data"] != {}
    [release] = json.loads(installable.helm("list", "--all", "--output=json"))
    assert (release["name"], release["revision"], release["status"]) == ("kruise", "2", "deployed")

    # MGR-62: with the definitions all objects would go, and their pods.
    nodes = installable.nodes
    nodes.create_namespace("demo")
    nodes.request("POST", f"{WORKLOADS}/clonesets", clone_set("web", replicas=1)).ok()
    with pytest.raises(ClusterError, match=r"(?i)job.* failed"):
        installable.helm("uninstall", "kruise")
    said = nodes.kubectl("logs", f"--namespace={NAMESPACE}", "job/kruise-finalizer")
    assert "there still are custom resources in the cluster: 1 clonesets.apps.kruise.io" in said
    assert nodes.request("GET", f"{WORKLOADS}/clonesets/web").ok()["metadata"].get("deletionTimestamp") is None
    nodes.request("DELETE", f"{WORKLOADS}/clonesets/web").ok()
    installable.wait(lambda: nodes.request("GET", f"{WORKLOADS}/clonesets/web").status == 404, "the CloneSet is gone")
    installable.helm("uninstall", "kruise")
    nodes.delete_namespace("demo")
    gone = f"/api/v1/namespaces/{NAMESPACE}"
    installable.wait(lambda: installable.nodes.request("GET", gone).status == 404, "the namespace is gone")
    left = installable.nodes.request("GET", "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations").ok()
    assert left["items"] == []
