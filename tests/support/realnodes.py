"""A real Kubernetes with real nodes: the control plane, and containerd, kubelet and kube-proxy for each node.

    with RealNodes(nodes=3, audit=True) as cluster:
        cluster.nodes                                            # ("node-1", "node-2", "node-3"), all ready
        cluster.push_image("web:v2", script="echo hello\\n...")    # into the registry that all nodes pull from
        cluster.run_on_node("node-1", "ctr", "-n", "k8s.io", "containers", "ls")

Each node is a set of namespaces on this machine (see `realnodes_network.py` and `realnodes_config.py`); containers are
real ones. Images come from a registry of the cluster's own, which stands in for all registries; claims are served with
hostPath volumes. There is no DNS service. Linux and root are needed.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Self

from tests.support import (
    kubebuild,
    realnodes_config,
    realnodes_images,
    realnodes_leftovers,
    realnodes_network,
    realnodes_storage,
)
from tests.support.instances import instances_root
from tests.support.kubebuild import MissingPrerequisiteError
from tests.support.realcluster import ADMIN_GROUP, ClusterError, ControlPlane, require_prerequisites
from tests.support.realnodes_images import Registry
from tests.support.realnodes_leftovers import Footprint
from tests.support.realnodes_network import Layout

PACKAGES = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "docker-registry": "docker-registry",
    "nft": "nftables",
    "iptables": "iptables",
    "ip": "iproute2",
    "mount": "mount",
    "nsenter": "util-linux",
    "unshare": "util-linux",
}

_SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ROOT = Path(__file__).resolve().parents[2]
# The bridge's namespace; in lists of nodes it counts as one.
_HUB = "hub"
# In the instance's directory, for processes that join the cluster.
_LAYOUT = "network.json"
_DAEMONS = ("containerd", "kubelet", "kube-proxy")


class RealNodes(ControlPlane):
    """A cluster with `nodes` real nodes; everything else is as for ControlPlane."""

    _port_count = 6

    def __init__(self, *, nodes: int = 3, start_timeout: float = 180.0, **options: Any) -> None:
        if not 1 <= nodes <= realnodes_network.MAX_NODES:
            raise ValueError(f"nodes={nodes}: a cluster has 1 to {realnodes_network.MAX_NODES} nodes")
        super().__init__(start_timeout=start_timeout, **options)
        self.nodes = tuple(f"node-{number}" for number in range(1, nodes + 1))
        self._layout: Layout | None = None
        self._footprint: Footprint | None = None
        self._anchors: dict[str, int] = {}

    def join(self, directory: Path) -> Self:
        super().join(directory)
        self._footprint = Footprint.find(directory)
        self._layout = Layout(**json.loads((directory / _LAYOUT).read_text()))
        self._address = self._layout.host
        running = self.pids()
        self._anchors = {node: running[f"{node}-anchor"] for node in self.nodes}
        return self

    @property
    def registry(self) -> Registry:
        """Where all nodes pull all images from."""
        return Registry(f"{self._running_layout.host}:{self._running_instance.ports[5]}")

    def push_image(
        self,
        name: str,
        *,
        script: str = "",
        contents: Mapping[str, bytes | str] | None = None,
        command: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> str:
        """Makes an image with busybox and pushes it; returns its digest. A script is PID 1: it must trap SIGTERM."""
        image = realnodes_images.make_image(script=script, contents=contents, command=command, environment=environment)
        return self.registry.push(name, image)

    def node_address(self, node: str) -> str:
        return self._running_layout.node(self.nodes.index(node) + 1)

    def node_command(self, node: str, *command: str | Path) -> list[str]:
        """A command line that runs a command with the node's network, mounts and host name."""
        spaces = f"/proc/{self._anchors[node]}/ns"
        enter = [f"--net={spaces}/net", f"--mount={spaces}/mnt", f"--uts={spaces}/uts"]
        return [_program("nsenter"), *enter, "--", *(str(each) for each in command)]

    def run_on_node(self, node: str, *command: str | Path, stdin: bytes = b"") -> str:
        """Runs a command on a node and returns its output."""
        done = subprocess.run(self.node_command(node, *command), input=stdin, capture_output=True, check=False)
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip()
            raise ClusterError(f"`{' '.join(map(str, command))}` on {node} failed: {said}")
        return done.stdout.decode(errors="replace")

    # Chaos

    def kill_kubelet(self, node: str) -> None:
        """SIGKILL; the node's containers run on."""
        self._own_instance.stop(f"{node}-kubelet")

    def start_kubelet(self, node: str) -> None:
        """Starts it again with the same directories; does not wait."""
        self._spawn(f"{node}-kubelet")

    def kill_containerd(self, node: str) -> None:
        """SIGKILL; the node's containers run on."""
        self._own_instance.stop(f"{node}-containerd")

    def start_containerd(self, node: str) -> None:
        """Starts it again with the same directories; does not wait."""
        self._spawn(f"{node}-containerd")

    def power_off(self, node: str) -> None:
        """Its daemons and containers end at once, and nobody hears of it: the node is silent from now on."""
        realnodes_network.plug(self.pids()[f"{_HUB}-anchor"], self.nodes.index(node) + 1, is_in=False)
        for daemon in _DAEMONS:
            self._own_instance.stop(f"{node}-{daemon}")
        realnodes_leftovers.kill_node(self._running_footprint, node, spare=self._anchors[node])

    def power_on(self, node: str, *, timeout: float = 30.0) -> None:
        """Starts it again with what is on its disk; does not wait until it is ready."""
        realnodes_network.plug(self.pids()[f"{_HUB}-anchor"], self.nodes.index(node) + 1, is_in=True)
        containerd = f"{node}-containerd"
        self._spawn(containerd)
        # A kubelet that finds no runtime gives up after a while; the old socket is still there, so somebody has to ask.
        deadline = time.monotonic() + timeout
        self._wait_for(partial(self._runtime_answers, node), deadline, f"containerd on {node}", (containerd,))
        self._spawn(f"{node}-kubelet")
        self._spawn(f"{node}-kube-proxy")

    # Inside

    def _runtime_answers(self, node: str) -> bool:
        try:
            return bool(self.run_on_node(node, "ctr", "version"))
        except ClusterError:
            return False

    @property
    def _running_layout(self) -> Layout:
        if self._instance is None or self._layout is None:
            raise ClusterError("the cluster is not started")
        return self._layout

    @property
    def _running_footprint(self) -> Footprint:
        if self._instance is None or self._footprint is None:
            raise ClusterError("the cluster is not started")
        return self._footprint

    def _find_programs(self) -> dict[str, Path]:
        missing: list[str] = []
        found: dict[str, Path] = {}
        for find in (require_machine, lambda: require_prerequisites(kubebuild.NODE_BINARIES)):
            try:
                found.update(find())
            except MissingPrerequisiteError as error:
                missing += error.missing
        if missing:
            raise MissingPrerequisiteError(missing)
        return found

    def _serving_names(self) -> list[str]:
        return [*super()._serving_names(), "kubernetes", "kubernetes.default", self._running_layout.api_service]

    def _prepare(self, binaries: Mapping[str, Path]) -> None:
        footprint = self._footprint = Footprint.create(self.directory)
        try:
            realnodes_leftovers.make_cgroups(footprint, [_HUB, *self.nodes])
        except OSError as error:
            raise ClusterError(f"cgroups cannot be made: {error}; a container must be a privileged one") from error
        with realnodes_network.claim_layout() as layout:
            self._layout = layout
            self._address = layout.host
            (self.directory / _LAYOUT).write_text(json.dumps({"block": layout.block}))
            hub = self._anchor_hub()
            realnodes_network.connect_host(layout, footprint.link, hub)
        for number, node in enumerate(self.nodes, start=1):
            self._anchors[node] = self._anchor_node(number, node)
        realnodes_network.connect_nodes(layout, footprint.link, hub, [self._anchors[node] for node in self.nodes])
        super()._prepare(binaries)
        self._prepare_services(binaries)
        for number, node in enumerate(self.nodes, start=1):
            self._prepare_node(binaries, number, node)

    def _anchor_hub(self) -> int:
        made = self._home(_HUB) / "made"
        made.parent.mkdir(parents=True)
        made.touch()
        return self._spawn_anchor(_HUB, [_program("unshare"), "--net", "--", _program("tail"), "-f", str(made)])

    def _anchor_node(self, number: int, node: str) -> int:
        home = self._home(node)
        # Overlays do not stack; copying small images instead is quick enough.
        snapshotter = "native" if _is_overlay(self.directory) else "overlayfs"
        realnodes_config.write_node(home, self._running_layout, number, node, self.registry.address, snapshotter)
        unshare = [_program("unshare"), "--mount", "--net", "--uts", "--", "/bin/sh", str(home / "anchor.sh")]
        return self._spawn_anchor(node, unshare)

    def _spawn_anchor(self, node: str, command: Sequence[str]) -> int:
        """Starts the process that holds a node's namespaces, and waits until they are made."""
        component = f"{node}-anchor"
        pid = self._running_instance.spawn(component, self._in_cgroup(node, command))
        self._wait_for(
            lambda: Path(f"/proc/{pid}/cmdline").read_bytes().partition(b"\0")[0].endswith(b"tail"),
            time.monotonic() + 10.0,
            f"namespaces of {node}",
            (component,),
        )
        return pid

    def _prepare_services(self, binaries: Mapping[str, Path]) -> None:
        """What serves all nodes: the API server's part, the registry, storage."""
        directory, layout, authority = self.directory, self._running_layout, self._running_authority
        kubelet_client = authority.client("kube-apiserver-kubelet-client", (ADMIN_GROUP,))
        self._commands["kube-apiserver"] += realnodes_config.apiserver_arguments(layout, kubelet_client)
        registry = realnodes_config.registry(binaries["docker-registry"], directory, self.registry.address)
        self._commands["registry"] = registry
        provisioner = authority.client("hostpath-provisioner", (ADMIN_GROUP,))
        self._commands["storage"] = [
            *(sys.executable, "-m", realnodes_storage.__name__),
            *(self._address, str(self._apiserver_port), authority.files.certificate),
            *(provisioner.certificate, provisioner.key, directory / "volumes"),
        ]

    def _prepare_node(self, binaries: Mapping[str, Path], number: int, node: str) -> None:
        home, layout, authority = self._home(node), self._running_layout, self._running_authority
        containerd = realnodes_config.containerd(binaries["containerd"], home)
        kubelet = realnodes_config.kubelet(
            binaries["kubelet"],
            home,
            layout,
            number,
            cgroup=f"/{self._running_footprint.cgroup}/{node}",
            kubeconfig=authority.kubeconfig(self.url, f"system:node:{node}", ("system:nodes",)),
            client_ca=authority.files.certificate,
            feature_gates=self._feature_gates,
        )
        proxy_kubeconfig = authority.kubeconfig(self.url, "system:kube-proxy", ())
        proxy = realnodes_config.kube_proxy(binaries["kube-proxy"], home, layout, node, proxy_kubeconfig)
        for daemon, command in (("containerd", containerd), ("kubelet", kubelet), ("kube-proxy", proxy)):
            self._commands[f"{node}-{daemon}"] = self._in_cgroup(node, self.node_command(node, *command))

    def _in_cgroup(self, node: str, command: Sequence[str]) -> list[str | Path]:
        """The same command as a member of the node's cgroup, with all that it will ever start."""
        members = realnodes_leftovers.system_cgroup(self._running_footprint, node) / "cgroup.procs"
        return ["/bin/sh", "-c", 'echo $$ > "$0" && exec "$@"', members, *command]

    def _bring_up(self, deadline: float) -> None:
        self._spawn("registry")
        for node in self.nodes:
            self._spawn(f"{node}-containerd")
        with ThreadPoolExecutor(1) as background:
            # Making and pushing images takes about as long as the control plane.
            images = background.submit(self._provide_images, deadline)
            super()._bring_up(deadline)
            images.result()
        for storage_class in realnodes_storage.storage_classes():
            self.request("POST", "/apis/storage.k8s.io/v1/storageclasses", storage_class).ok()
        python_path = {"PYTHONPATH": str(_ROOT)}
        self._running_instance.spawn("storage", self._commands["storage"], python_path)
        for node in self.nodes:
            self._spawn(f"{node}-kubelet")
        for node in self.nodes:
            self._wait_for(partial(self._is_ready, node), deadline, f"ready node {node}", (f"{node}-kubelet",))
            self._spawn(f"{node}-kube-proxy")
        for node in self.nodes:
            proxy = f"{node}-kube-proxy"
            self._wait_for(partial(self._proxy_is_healthy, node), deadline, f"healthy {proxy}", (proxy,))

    def _provide_images(self, deadline: float) -> None:
        self._wait_for(self.registry.answers, deadline, "image registry", ("registry",))
        for name, image in realnodes_images.catalogue().items():
            self.registry.push(name, image)
        pause = realnodes_images.pause_image().archive(realnodes_config.PAUSE_IMAGE)
        for node in self.nodes:
            socket = self._home(node) / "run" / "containerd" / "containerd.sock"
            self._wait_for(socket.exists, deadline, f"containerd on {node}", (f"{node}-containerd",))
            self.run_on_node(node, "ctr", "--namespace=k8s.io", "images", "import", "-", stdin=pause)

    def _is_ready(self, node: str) -> bool:
        answer = self.request("GET", f"/api/v1/nodes/{node}")
        if answer.status != 200:
            return False
        conditions = {each["type"]: each["status"] for each in answer.body["status"].get("conditions", [])}
        return conditions.get("Ready") == "True" and not answer.body["spec"].get("taints")

    def _proxy_is_healthy(self, node: str) -> bool:
        connection = http.client.HTTPConnection(
            self.node_address(node), realnodes_config.PROXY_HEALTH_PORT, timeout=5.0
        )
        try:
            connection.request("GET", "/healthz")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def _home(self, node: str) -> Path:
        return self.directory / "nodes" / node


def require_machine() -> dict[str, Path]:
    """Paths of what Debian has for nodes. Raises one MissingPrerequisiteError that names all that is missing."""
    missing: list[str] = []
    found: dict[str, Path] = {}
    packages: dict[str, None] = {}
    if not sys.platform.startswith("linux"):
        missing.append("Linux: real nodes are for Linux only")
    elif os.geteuid() != 0:
        missing.append("root: real nodes are made of namespaces, mounts and cgroups; run this as root or with sudo")
    for program, package in PACKAGES.items():
        if located := shutil.which(program, path=_SEARCH_PATH):
            found[program] = Path(located)
        else:
            packages[package] = None
    if not all((realnodes_config.CNI_PLUGINS / name).exists() for name in realnodes_config.NEEDED_CNI_PLUGINS):
        packages["containernetworking-plugins"] = None
    if realnodes_images.find_busybox() is None:
        packages["busybox-static"] = None
    if packages:
        missing.append(f"Debian packages: `apt-get install --no-install-recommends {' '.join(packages)}`")
    for path in (instances_root(), kubebuild.cache_directory()):
        for place in realnodes_config.OWN_PLACES:
            if path.resolve().is_relative_to(place):
                remedy = "set PYKRUISE_CLUSTERS and XDG_CACHE_HOME to directories elsewhere"
                missing.append(f"{path} in sight of the nodes, which have a {place} of their own: {remedy}")
    if missing:
        raise MissingPrerequisiteError(missing)
    return found


def _program(name: str) -> str:
    return shutil.which(name, path=_SEARCH_PATH) or name


def _is_overlay(path: Path) -> bool:
    kind = subprocess.run(
        ["stat", "--file-system", "--format=%T", str(path)], capture_output=True, text=True, check=True
    )
    return kind.stdout.strip() == "overlayfs"
