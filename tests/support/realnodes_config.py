"""Configuration files and command lines of a real node's daemons, of the image registry and of the API server.

A node sees directories of its own at /run, /var/lib and /var/log, so all daemons use the places that they have on any
machine, and pods with hostPath volumes find them there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.clusterpki import Credentials
from tests.support.realnodes_network import Layout

# What a node has for itself, and the name of the directory that is mounted there.
OWN_PLACES = {"/run": "run", "/var/lib": "lib", "/var/log": "log"}
CNI_PLUGINS = Path("/usr/lib/cni")
NEEDED_CNI_PLUGINS = ("host-local", "loopback", "portmap", "ptp")
CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
PAUSE_IMAGE = "registry.k8s.io/pause:3.10"
PROXY_HEALTH_PORT = 10256
STORAGE_CLASS = "standard"
GROWING_CLASS = "growing"
"""Its claims may ask for more; those of the default class may not."""
PROVISIONER = "pykruise.test/hostpath"

# The kubelet writes these settings of the whole machine unless it finds them as it wants them; a node shows it such.
_KERNEL_SETTINGS = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}


# Linux gives a user 128. A control plane has 10, three nodes have 38, and several clusters run at a time.
_INOTIFY, _INOTIFY_INSTANCES = "/proc/sys/fs/inotify/max_user_instances", 1024


def anchor_script(directory: Path, node: str) -> str:
    """Makes a node out of fresh mount, network and host name namespaces, then holds them open."""
    lines = ["set -e", f"echo {node} > /proc/sys/kernel/hostname", "echo 1 > /proc/sys/net/ipv4/ip_forward"]
    lines.append(f"[ $(cat {_INOTIFY}) -ge {_INOTIFY_INSTANCES} ] || echo {_INOTIFY_INSTANCES} > {_INOTIFY} || true")
    lines += [f"mount --bind {directory / name} {place}" for place, name in OWN_PLACES.items()]
    for setting in _KERNEL_SETTINGS:
        lines.append(f"mount --bind {directory / 'settings' / setting.replace('/', '.')} /proc/sys/{setting}")
    # Volumes that pods mount in both directions need it; it reaches no further than this namespace.
    lines += ["mount --make-rshared /", f"exec tail -f {directory / 'made'}"]
    return "\n".join(lines) + "\n"


def write_node(directory: Path, layout: Layout, number: int, node: str, registry: str, snapshotter: str) -> None:
    """All files of a node but the kubelet's and kube-proxy's."""
    for name in OWN_PLACES.values():
        (directory / name).mkdir(parents=True)
    for setting, value in _KERNEL_SETTINGS.items():
        path = directory / "settings" / setting.replace("/", ".")
        path.parent.mkdir(exist_ok=True)
        path.write_text(value + "\n")
    (directory / "made").touch()
    (directory / "anchor.sh").write_text(anchor_script(directory, node))
    (directory / "resolv.conf").write_text(f"nameserver {layout.dns_service}\n")
    (directory / "containerd.toml").write_text(_containerd(directory, snapshotter))
    (directory / "cni").mkdir()
    (directory / "cni" / "10-nodes.conflist").write_text(json.dumps(_pod_network(layout, number), indent=2))
    # The host file of the name `_default` speaks for every registry: nothing is ever pulled from elsewhere.
    hosts = directory / "registries" / "_default" / "hosts.toml"
    hosts.parent.mkdir(parents=True)
    server = f"http://{registry}"
    hosts.write_text(f'server = "{server}"\n[host."{server}"]\n  capabilities = ["pull", "resolve"]\n')


def containerd(binary: Path, directory: Path) -> list[str | Path]:
    return [binary, f"--config={directory / 'containerd.toml'}"]


def kubelet(
    binary: Path,
    directory: Path,
    layout: Layout,
    number: int,
    *,
    cgroup: str,
    kubeconfig: Path,
    client_ca: Path,
    feature_gates: Mapping[str, bool],
) -> list[str | Path]:
    config = directory / "kubelet.json"
    settings: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {"anonymous": {"enabled": False}, "x509": {"clientCAFile": str(client_ca)}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroup,
        "failCgroupV1": False,
        "clusterDNS": [layout.dns_service],
        "clusterDomain": "cluster.local",
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "enforceNodeAllocatable": [],
        # How full the machine's disk is must not decide tests; its device may not even have statistics.
        "evictionHard": {"nodefs.available": "0%", "imagefs.available": "0%", "nodefs.inodesFree": "0%"},
        "imageGCHighThresholdPercent": 100,
        "localStorageCapacityIsolation": False,
        "failSwapOn": False,
        "makeIPTablesUtilChains": False,
        # Lowering it takes a right that containers and small machines may lack.
        "oomScoreAdj": 0,
        "resolvConf": str(directory / "resolv.conf"),
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        "featureGates": dict(feature_gates),
    }
    config.write_text(json.dumps(settings, indent=2))
    return [binary, f"--config={config}", f"--kubeconfig={kubeconfig}", f"--node-ip={layout.node(number)}"]


def kube_proxy(binary: Path, directory: Path, layout: Layout, node: str, kubeconfig: Path) -> list[str | Path]:
    config = directory / "kube-proxy.json"
    settings = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "clusterCIDR": layout.pods,
        "hostnameOverride": node,
        "healthzBindAddress": f"0.0.0.0:{PROXY_HEALTH_PORT}",
        # These are settings of the whole machine.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }
    config.write_text(json.dumps(settings, indent=2))
    return [binary, f"--config={config}"]


def registry(binary: Path, directory: Path, address: str) -> list[str | Path]:
    """The image registry: plain HTTP, kept in `directory`."""
    config = directory / "registry.yml"
    settings = {
        "version": 0.1,
        "log": {"level": "warn", "accesslog": {"disabled": False}},
        "storage": {"filesystem": {"rootdirectory": str(directory / "registry")}, "delete": {"enabled": True}},
        "http": {"addr": address},
    }
    config.write_text(json.dumps(settings, indent=2))
    return [binary, "serve", config]


def apiserver_arguments(layout: Layout, kubelet_client: Credentials) -> list[str]:
    """What the API server needs besides for clusters with nodes; of a flag that is given twice, the last one counts."""
    return [
        f"--service-cluster-ip-range={layout.services}",
        # Pods reach the API server by service `kubernetes`.
        "--endpoint-reconciler-type=lease",
        f"--kubelet-client-certificate={kubelet_client.certificate}",
        f"--kubelet-client-key={kubelet_client.key}",
    ]


def _containerd(directory: Path, snapshotter: str) -> str:
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    return f"""\
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
]
[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd/opt"
[grpc]
  address = "{CONTAINERD_SOCKET}"
[{cri}]
  sandbox_image = "{PAUSE_IMAGE}"
  # Without the right to lower oom_score_adj no sandbox would start.
  restrict_oom_score_adj = true
  # Keeps pods' network namespaces out of /run/netns.
  netns_mounts_under_state_dir = true
[{cri}.containerd]
  snapshotter = "{snapshotter}"
[{cri}.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[{cri}.cni]
  bin_dir = "{CNI_PLUGINS}"
  conf_dir = "{directory / "cni"}"
[{cri}.registry]
  config_path = "{directory / "registries"}"
"""


def _pod_network(layout: Layout, number: int) -> dict[str, Any]:
    """A routed link per pod: without a bridge, traffic between pods of one node passes kube-proxy's rules, too."""
    return {
        "cniVersion": "0.4.0",
        "name": "nodes",
        "plugins": [
            {
                "type": "ptp",
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{"subnet": layout.node_pods(number)}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }
