"""Three real nodes: pods run, talk, restart in place and keep their data; a stopped cluster leaves nothing behind."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.support import instances, kubebuild, realnodes, realnodes_images, realnodes_leftovers, realnodes_storage
from tests.support.ports import free_port
from tests.support.realcluster import ClusterError
from tests.support.realnodes import RealNodes
from tests.support.realnodes_leftovers import Footprint
from tests.support.realnodes_network import Layout

ROOT = Path(__file__).resolve().parents[3]
Json = dict[str, Any]

pytestmark = pytest.mark.spread
nodes = pytest.mark.nodes
# One at a time: a node has many inotify instances, of which Linux gives a user 128.
one_more = pytest.mark.together("one-more-node")


class Pods:
    """The pods of one namespace on the real nodes."""

    def __init__(self, cluster: RealNodes, namespace: str) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.path = f"/api/v1/namespaces/{namespace}/pods"

    def create(self, name: str, container: Json, **spec: Any) -> None:
        metadata = {"name": name, "labels": {"app": name}}
        body = {"metadata": metadata, "spec": {"containers": [{"name": "main", **container}], **spec}}
        self.cluster.request("POST", self.path, body).ok()

    def get(self, name: str) -> Json:
        found: Json = self.cluster.request("GET", f"{self.path}/{name}").ok()
        return found

    def until(self, name: str, check: Callable[[Json], bool], timeout: float = 40.0) -> Json:
        deadline = time.monotonic() + timeout
        while not check(found := self.get(name)):
            assert time.monotonic() < deadline, json.dumps(found["status"], indent=1)
            time.sleep(0.05)
        return found

    def ready(self, name: str) -> Json:
        return self.until(name, is_ready)

    def kubectl(self, *arguments: str) -> str:
        return self.cluster.kubectl(f"--namespace={self.namespace}", *arguments)

    def run(self, name: str, *command: str) -> str:
        """Runs a command in the pod's container."""
        return self.kubectl("exec", name, "--", *command)

    def fetch(self, name: str, url: str) -> str:
        """What the pod gets from a web server. Debian's busybox crashes on `wget -T`."""
        return self.run(name, "timeout", "5", "wget", "-qO-", url)


def is_ready(pod: Json) -> bool:
    return ("Ready", "True") in [(each["type"], each["status"]) for each in pod["status"].get("conditions", [])]


def main_status(pod: Json) -> Json:
    found: Json = pod["status"]["containerStatuses"][0]
    return found


def waiting_reason(pod: Json) -> str | None:
    statuses = pod["status"].get("containerStatuses", [])
    return statuses[0]["state"].get("waiting", {}).get("reason") if statuses else None


@pytest.fixture
def pods(real_nodes: RealNodes, nodes_namespace: str) -> Pods:
    return Pods(real_nodes, nodes_namespace)


# A cluster as in the field


@nodes
@pytest.mark.smoke
def test_three_nodes_are_ready(real_nodes: RealNodes) -> None:
    """With names, addresses and versions as they should be, and all their daemons."""
    found = {each["metadata"]["name"]: each for each in real_nodes.request("GET", "/api/v1/nodes").ok()["items"]}
    assert tuple(found) == real_nodes.nodes == ("node-1", "node-2", "node-3")
    for name, node in found.items():
        assert is_ready(node)
        assert {each["type"]: each["address"] for each in node["status"]["addresses"]} == {
            "InternalIP": real_nodes.node_address(name),
            "Hostname": name,
        }
        assert node["status"]["nodeInfo"]["kubeletVersion"] == kubebuild.kubernetes_version()
        assert node["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("containerd://")
    running = set(real_nodes.pids())
    assert {f"{node}-{daemon}" for node in found for daemon in ("containerd", "kubelet", "kube-proxy")} <= running


@nodes
def test_pods_on_all_nodes_reach_each_other_and_show_themselves(real_nodes: RealNodes, pods: Pods) -> None:
    """A pod's address is of its node's range; pods of other nodes and the host can reach it; logs and exec work."""
    for node in real_nodes.nodes:
        pods.create(f"on-{node}", {"image": "nginx:1.7.9"}, nodeName=node)
    found = [pods.ready(f"on-{node}") for node in real_nodes.nodes]
    addresses = [pod["status"]["podIP"] for pod in found]
    assert [address.rpartition(".")[0][-3:] for address in addresses] == ["129", "130", "131"]
    assert [pod["status"]["hostIP"] for pod in found] == [real_nodes.node_address(node) for node in real_nodes.nodes]
    for node in real_nodes.nodes:
        for address in addresses:
            assert "nginx 1.7.9" in pods.fetch(f"on-{node}", f"http://{address}/")
        assert pods.kubectl("logs", f"on-{node}") == "nginx 1.7.9 starts\n"
        assert pods.run(f"on-{node}", "hostname") == f"on-{node}\n"
    with urllib.request.urlopen(f"http://{addresses[0]}/", timeout=5) as answer:
        assert b"nginx 1.7.9" in answer.read()


@nodes
def test_port_forward(pods: Pods) -> None:
    """`kubectl port-forward` reaches a server in a pod."""
    pods.create("web", {"image": "nginx:1.25"})
    pods.ready("web")
    port = free_port()
    kubectl = [str(kubebuild.cache_directory() / "kubectl"), f"--kubeconfig={pods.cluster.kubeconfig}"]
    command = [*kubectl, f"--namespace={pods.namespace}", "port-forward", "web", f"{port}:80"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as forwarding:
        try:
            assert forwarding.stdout is not None
            assert "Forwarding from 127.0.0.1" in forwarding.stdout.readline()
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as answer:
                assert b"nginx 1.25" in answer.read()
        finally:
            forwarding.kill()


@nodes
def test_services_are_reachable_from_pods_nodes_and_host(real_nodes: RealNodes, pods: Pods) -> None:
    """kube-proxy leads the ClusterIP to a ready pod, also to one on the caller's own node, and to the caller itself."""
    pods.create("server", {"image": "nginx:1.26"}, nodeName="node-1")
    for name, node in (("near", "node-1"), ("far", "node-2")):
        pods.create(name, {"image": "busybox:1.36", "command": ["sleep", "600"]}, nodeName=node)
    service = {
        "metadata": {"name": "web"},
        "spec": {"selector": {"app": "server"}, "ports": [{"port": 8080, "targetPort": 80}]},
    }
    made = real_nodes.request("POST", f"/api/v1/namespaces/{pods.namespace}/services", service).ok()
    url = f"http://{made['spec']['clusterIP']}:8080/"
    for name in ("server", "near", "far"):
        pods.ready(name)

    def reached() -> bool:
        try:
            return "nginx 1.26" in pods.fetch("near", url)
        except ClusterError:
            # kube-proxy hears of the ready pod a moment after us.
            return False

    deadline = time.monotonic() + 10
    while not reached():
        assert time.monotonic() < deadline
    assert "nginx 1.26" in pods.fetch("far", url)
    assert "nginx 1.26" in pods.fetch("server", url)
    assert "nginx 1.26" in real_nodes.run_on_node("node-3", "busybox", "wget", "-qO-", url)
    with urllib.request.urlopen(url, timeout=5) as answer:
        assert b"nginx 1.26" in answer.read()


@nodes
def test_pods_reach_the_api_server_by_its_service(pods: Pods) -> None:
    """A client in a pod finds address and token where all clients look."""
    pods.create("client", {"image": "busybox:1.36", "command": ["sleep", "600"]})
    pods.ready("client")
    program = (
        "cd /var/run/secrets/kubernetes.io/serviceaccount && test -s ca.crt && "
        'timeout 5 wget -qO- --no-check-certificate --header "Authorization: Bearer $(cat token)" '
        "https://$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT/version"
    )
    assert json.loads(pods.run("client", "sh", "-c", program))["gitVersion"] == kubebuild.kubernetes_version()


@nodes
def test_claims_are_bound_and_keep_their_data(real_nodes: RealNodes, pods: Pods) -> None:
    """The default class serves a claim; data survives a container restart and a move to another node, not the claim."""
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    claims = f"/api/v1/namespaces/{pods.namespace}/persistentvolumeclaims"
    real_nodes.request("POST", claims, claim).ok()
    container = {
        "image": "busybox:1.36",
        "command": ["sh", "-c", "trap 'exit 0' TERM; echo run >> /data/runs; while :; do sleep 600 & wait $!; done"],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    pods.create("first", container, nodeName="node-1", volumes=volumes)
    pods.ready("first")
    bound = real_nodes.request("GET", f"{claims}/data").ok()
    assert bound["status"]["phase"] == "Bound"
    assert bound["spec"]["storageClassName"] == "standard"
    with contextlib.suppress(ClusterError):  # it may go down together with the container
        pods.run("first", "kill", "1")
    pods.until("first", lambda pod: is_ready(pod) and main_status(pod)["restartCount"] == 1)
    assert pods.run("first", "cat", "/data/runs") == "run\nrun\n"
    pods.kubectl("delete", "pod", "first", "--wait")
    pods.create("second", container, nodeName="node-2", volumes=volumes)
    pods.ready("second")
    assert pods.run("second", "cat", "/data/runs") == "run\nrun\nrun\n"
    pods.kubectl("delete", "pod/second", "pvc/data", "--wait")
    volume = f"/api/v1/persistentvolumes/{bound['spec']['volumeName']}"
    deadline = time.monotonic() + 10
    while real_nodes.request("GET", volume).status != 404:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert not (real_nodes.directory / "volumes" / bound["spec"]["volumeName"]).exists()


# Images


@nodes
@pytest.mark.smoke
def test_a_changed_image_restarts_only_its_container(real_nodes: RealNodes, pods: Pods) -> None:
    """In place: pod, address, node and the other container stay."""
    pods.create("web", {"image": "nginx:1.25"})
    pods.ready("web")
    other = {"name": "other", "image": "redis:6"}
    spec = {"containers": [{"name": "main", "image": "nginx:1.25"}, other], "terminationGracePeriodSeconds": 5}
    real_nodes.request("POST", pods.path, {"metadata": {"name": "pair"}, "spec": spec}).ok()
    before = pods.ready("pair")
    patch = {"spec": {"containers": [{"name": "main", "image": "nginx:1.26"}, other]}}
    pods.kubectl("patch", "pod", "pair", "--type=strategic", "-p", json.dumps(patch))
    after = pods.until("pair", lambda pod: is_ready(pod) and main_status(pod)["restartCount"] == 1)
    for part in (("metadata", "uid"), ("status", "podIP"), ("spec", "nodeName")):
        assert before[part[0]][part[1]] == after[part[0]][part[1]]
    old, new = before["status"]["containerStatuses"], after["status"]["containerStatuses"]
    assert new[0]["imageID"].rpartition("@")[2] == real_nodes.registry.digest("nginx:1.26")
    assert new[0]["containerID"] != old[0]["containerID"]
    assert new[1] == old[1]
    # A stand-in ends by itself when asked, as the real programs do.
    assert new[0]["lastState"]["terminated"]["exitCode"] == 0
    assert "nginx 1.26" in pods.fetch("pair", "http://127.0.0.1/")


@nodes
def test_two_tags_of_one_image_have_one_id(real_nodes: RealNodes, pods: Pods) -> None:
    """The kubelet restarts the container for the new name, and its imageID stays the same."""
    assert real_nodes.registry.digest("nginx:1.26-same") == real_nodes.registry.digest("nginx:1.26")
    pods.create("web", {"image": "nginx:1.26"})
    before = main_status(pods.ready("web"))
    pods.kubectl("set", "image", "pod/web", "main=nginx:1.26-same")
    after = main_status(pods.until("web", lambda pod: is_ready(pod) and main_status(pod)["restartCount"] == 1))
    assert after["imageID"] == before["imageID"]
    assert after["containerID"] != before["containerID"]


@nodes
def test_unknown_tags_cannot_be_pulled(real_nodes: RealNodes, pods: Pods) -> None:
    """First ErrImagePull, then ImagePullBackOff, whatever the registry is called; once pushed, the image is there."""
    pods.create("web", {"image": "example.com/team/web:v9"})
    failed = pods.until("web", lambda pod: waiting_reason(pod) == "ErrImagePull")
    assert "example.com/team/web:v9: not found" in main_status(failed)["state"]["waiting"]["message"]
    pods.until("web", lambda pod: waiting_reason(pod) == "ImagePullBackOff")
    digest = real_nodes.push_image("example.com/team/web:v9", script="trap 'exit 0' TERM\nsleep 600 & wait\n")
    pods.create("later", {"image": "example.com/team/web:v9"})
    assert main_status(pods.ready("later"))["imageID"] == f"example.com/team/web@{digest}"


@nodes
def test_always_asks_the_registry(real_nodes: RealNodes, pods: Pods) -> None:
    """A tag that was pushed again is new for `Always`, and the old one for `IfNotPresent` on a node that has it."""
    script = "trap 'exit 0' TERM\ncat /word\nsleep 600 & wait\n"
    first = real_nodes.push_image("moving:v1", script=script, contents={"/word": "first\n"})
    pods.create("before", {"image": "moving:v1"}, nodeName="node-1")
    assert main_status(pods.ready("before"))["imageID"].endswith(first)
    second = real_nodes.push_image("moving:v1", script=script, contents={"/word": "second\n"})
    assert first != second
    pods.create("kept", {"image": "moving:v1", "imagePullPolicy": "IfNotPresent"}, nodeName="node-1")
    pods.ready("kept")
    pods.create("renewed", {"image": "moving:v1", "imagePullPolicy": "Always"}, nodeName="node-1")
    assert main_status(pods.ready("renewed"))["imageID"].endswith(second)
    assert pods.kubectl("logs", "kept") == "first\n"
    assert pods.kubectl("logs", "renewed") == "second\n"


@nodes
def test_the_catalogue_is_in_the_registry(real_nodes: RealNodes) -> None:
    """Every well-known name has the image that is made for it, and making it again gives the same."""
    made = realnodes_images.catalogue()
    assert {"nginx:alpine", "redis:7", "busybox:latest", "openkruise/guestbook:v1"} <= set(made)
    found = {name: real_nodes.registry.digest(name) for name in made}
    assert found == {name: image.digest for name, image in made.items()}
    assert real_nodes.registry.digest("nginx:no-such-tag") is None


# Nothing is left


def machine_state() -> Json:
    """What a cluster could leave behind on this machine, without what other clusters have by their names."""
    places = ("/run/netns", "/run/containerd", "/var/lib/cni", "/var/lib/kubelet", "/var/log/pods", "/opt/containerd")
    settings = ("net/ipv4/ip_forward", "vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/hostname")

    def unnamed(found: Iterable[str]) -> list[str]:
        return sorted(each for each in found if "kruise-" not in each)

    return {
        "links": unnamed(path.name for path in Path("/sys/class/net").iterdir()),
        "mounts": [line.split(" ", 2)[2] for line in Path("/proc/self/mountinfo").read_text().splitlines()],
        "cgroups": unnamed(str(path) for path in Path("/sys/fs/cgroup").glob("*/*") if path.is_dir()),
        "firewall": subprocess.run(["nft", "list", "ruleset"], capture_output=True, text=True, check=True).stdout,
        "routes": unnamed(subprocess.check_output(["ip", "route"], text=True).splitlines()),
        "places": {place: sorted(os.listdir(place)) if Path(place).exists() else None for place in places},
        "settings": {name: Path("/proc/sys", name).read_text() for name in settings},
    }


def processes_that_mention(text: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command_line = path.read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if text.encode() in command_line:
            found.append(command_line.replace(b"\0", b" ").decode(errors="replace"))
    return found


@nodes
@one_more
def test_stop_leaves_nothing_behind() -> None:
    """With a pod that has containers, mounts and an address: no process, link, mount, cgroup, rule or file is left."""
    before = machine_state()
    with RealNodes(nodes=1) as cluster:
        pods = Pods(cluster, "default")
        pods.create("web", {"image": "nginx:alpine"}, shareProcessNamespace=True)
        pods.ready("web")
        directory = cluster.directory
        footprint = Footprint.find(directory)
        assert footprint is not None
        assert len(realnodes_leftovers.processes(footprint)) >= 6
        assert f"link {footprint.link}" in realnodes_leftovers.remains(footprint)
    assert realnodes_leftovers.remains(footprint) == []
    assert processes_that_mention(str(directory)) == []
    assert machine_state() == before
    assert not directory.exists()


@nodes
@one_more
def test_the_next_start_cleans_up_after_a_killed_run() -> None:
    """SIGKILL of the tests ends the daemons at once; containers run on until the next start removes them."""
    before = machine_state()
    program = (
        "import time; from tests.support.realnodes import RealNodes\n"
        "cluster = RealNodes(nodes=1).start()\n"
        "cluster.kubectl('run', 'web', '--image=nginx:alpine')\n"
        "cluster.kubectl('wait', '--for=condition=Ready', 'pod/web', '--timeout=40s')\n"
        "print(cluster.directory, flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        try:
            directory = Path(owner.stdout.readline().strip())
        finally:
            owner.kill()
    footprint = Footprint.find(directory)
    assert footprint is not None
    assert realnodes_leftovers.processes(footprint), "the container outlives the tests"
    assert directory.name in instances.remove_stale()
    assert realnodes_leftovers.remains(footprint) == []
    assert processes_that_mention(str(directory)) == []
    assert machine_state() == before
    assert not directory.exists()


@nodes
@one_more
def test_two_clusters_side_by_side(real_nodes: RealNodes) -> None:
    """Each has its own network, and one ends without the other."""
    with RealNodes(nodes=1) as other:
        assert other.node_address("node-1") != real_nodes.node_address("node-1")
        pods = Pods(other, "default")
        pods.create("web", {"image": "nginx:alpine"})
        pods.ready("web")
    assert is_ready(real_nodes.request("GET", "/api/v1/nodes/node-1").ok())


@nodes
@one_more
def test_command_line_starts_and_stops_nodes() -> None:
    """`up --nodes` returns and leaves a cluster that works; `down` removes it."""
    name = f"nodes-of-{os.getpid()}"

    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", "tests.support.realcluster", *arguments]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120).stdout

    before = machine_state()
    try:
        assert "is up after" in run("up", "--nodes", "1", "--name", name)
        kubeconfig = instances.instances_root() / name / "admin.kubeconfig"
        kubectl = [str(kubebuild.cache_directory() / "kubectl"), f"--kubeconfig={kubeconfig}", "get", "nodes"]
        assert "node-1" in subprocess.run(kubectl, capture_output=True, text=True, check=True).stdout
        assert "node-1-kubelet" in run("status")
    finally:
        assert run("down", "--name", name) == f"cluster {name} is gone\n"
    assert machine_state() == before


# Without a cluster


def test_what_nodes_need_is_named_in_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root, Debian packages and Kubernetes binaries, all at once, each with its remedy."""
    monkeypatch.setattr(realnodes, "_SEARCH_PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(kubebuild.MissingPrerequisiteError) as caught:
        RealNodes(nodes=1).start()
    text = str(caught.value)
    assert "root: real nodes are made of namespaces" in text
    assert "apt-get install --no-install-recommends containerd runc docker-registry nftables iptables iproute2" in text
    assert "kubelet, kube-proxy v1.34.4 not built yet" in text
    assert "python -m tests.support.realcluster build --nodes" in text


@pytest.mark.parametrize(
    ("name", "repository", "tag"),
    [
        ("nginx", "library/nginx", "latest"),
        ("nginx:1.7.9", "library/nginx", "1.7.9"),
        ("docker.io/library/nginx:alpine", "library/nginx", "alpine"),
        ("openkruise/guestbook:v1", "openkruise/guestbook", "v1"),
        ("localhost:5000/a/b", "a/b", "latest"),
        ("example.com/web:v1", "web", "v1"),
        ("registry.aliyuncs.com/k8sxio/pause:3.2", "k8sxio/pause", "3.2"),
    ],
)
def test_image_names_are_read_as_the_runtime_reads_them(name: str, repository: str, tag: str) -> None:
    assert realnodes_images.split_name(name) == (repository, tag)


def test_networks_of_a_layout_do_not_overlap() -> None:
    """Host, nodes, services and pods are apart, within one block."""
    layout = Layout(207)
    assert (layout.host, layout.node(3)) == ("10.207.0.1", "10.207.0.13")
    assert (layout.services, layout.api_service) == ("10.207.64.0/18", "10.207.64.1")
    assert (layout.pods, layout.node_pods(3)) == ("10.207.128.0/17", "10.207.131.0/24")


def test_only_pending_claims_of_our_class_get_a_volume(tmp_path: Path) -> None:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "2Gi"}},
        "storageClassName": "standard",
    }
    claim = {
        "metadata": {"name": "data", "namespace": "n", "uid": "u"},
        "spec": spec,
        "status": {"phase": "Pending"},
    }
    volume = realnodes_storage.volume_for(claim, tmp_path)
    assert volume is not None
    assert volume["metadata"]["name"] == "pvc-u"
    assert volume["spec"]["claimRef"]["name"] == "data"
    assert volume["spec"]["hostPath"]["path"] == str(tmp_path / "pvc-u")
    others = (
        {**claim, "status": {"phase": "Bound"}},
        {**claim, "spec": {**spec, "storageClassName": "other"}},
        {**claim, "spec": {**spec, "volumeName": "chosen"}},
    )
    assert [realnodes_storage.volume_for(each, tmp_path) for each in others] == [None, None, None]
    bound = {**claim, "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}
    assert realnodes_storage.size_to_grow_to(bound) == "2Gi"
    grown = {**claim, "status": {"phase": "Bound", "capacity": {"storage": "2Gi"}}}
    assert [realnodes_storage.size_to_grow_to(each) for each in (claim, grown)] == ["", ""]
