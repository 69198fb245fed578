"""What the recordings of images, restarts and probes leave open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kruise.api.native.pod import PODS
from tests.recordings.operations.playing import IMAGES, KINDS, PROBES, RESTARTS, Act, Player, Stage

_IDLE, _BUSY = "0 is idle", "3 is busy"


def pod_marks(name: str, marks: Mapping[str, str | None]) -> Act:
    """The node model is told by a pod's annotations what its containers do."""

    async def act(player: Player) -> None:
        found = {f"sim.kruise.io/{knob}": value for knob, value in marks.items()}
        await player.world.patch(PODS, name, {"metadata": {"annotations": found}})

    return act


def with_marks(marks: Mapping[str, str]) -> Act:
    """The pod of a recording, which the node model is told of."""

    async def act(player: Player) -> None:
        [manifest] = player.asked_for("create Pod p")
        found = {f"sim.kruise.io/{knob}": value for knob, value in marks.items()}
        manifest["metadata"]["annotations"] = found
        await player.create_pod(manifest, 0.0)

    return act


def patches(target: str, *bodies: Any) -> Act:
    async def act(player: Player) -> None:
        for body in bodies:
            await player.patch(target, body)

    return act


def image_lost(node: str, image: str) -> Act:
    async def act(player: Player) -> None:
        nodes = player.world.cluster.nodes
        assert nodes is not None
        nodes.nodes[node].images.remove(image)

    return act


def container_ends(pod: str, name: str) -> Act:
    async def act(player: Player) -> None:
        nodes = player.world.cluster.nodes
        assert nodes is not None
        machine = nodes.machine("demo", pod)
        assert machine is not None
        node = nodes.find(machine.pod.spec.node_name)
        assert node is not None
        [runtime] = node.runtimes.values()
        [container] = [
            one for one in await runtime.list_containers(pod_uid=machine.pod.metadata.uid) if one.name == name
        ]
        await runtime.stop_container(container.id, 1)

    return act


def node_comes(name: str, labels: Mapping[str, str]) -> Act:
    async def act(player: Player) -> None:
        await player.make_node(name, labels)

    return act


def makes(*manifests: Mapping[str, Any]) -> Act:
    async def act(player: Player) -> None:
        for manifest in manifests:
            await player.create(dict(manifest))

    return act


def loses(target: str) -> Act:
    async def act(player: Player) -> None:
        kind, _, name = target.partition("/")
        await player.world.delete(KINDS[kind], name)

    return act


def _pod(name: str, node: str) -> dict[str, Any]:
    metadata = {"name": name, "labels": {"app": "web"}}
    spec = {"nodeName": node, "containers": [{"name": "main", "image": "nginx:1.25"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _request(name: str, container: str, pod: str = "pod-1") -> dict[str, Any]:
    spec = {"podName": pod, "containers": [{"name": container}]}
    metadata = {"name": name}
    return {
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "ContainerRecreateRequest",
        "metadata": metadata,
        "spec": spec,
    }


def requests(name: str, container: str, pod: str = "pod-1") -> Act:
    async def act(player: Player) -> None:
        await player.create_named(_request(name, container, pod))

    return act


_MISSING_SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "reg-missing", "labels": {"own": "1"}, "annotations": {"x": "y"}},
    "type": "Opaque",
    "data": {"k": "bQ=="},
}


def _version(number: int) -> dict[str, Any]:
    policy = {"timeoutSeconds": 30, "backoffLimit": 3, "ttlSecondsAfterFinished": 10}
    return {"spec": {"images": {"nginx": {"tags": [{"tag": "rec-hand", "version": number, "pullPolicy": policy}]}}}}


STAGES: Mapping[str, Stage] = {
    # Images, with daemons
    "imagelistpulljob-good-and-bad": Stage(compared=IMAGES, missing=("busybox:rec-list-none",)),
    "imagepulljob-backoff": Stage(compared=IMAGES, missing=("nginx:rec-back0", "nginx:rec-back3", "nginx:rec-backd")),
    "imagepulljob-digest-podselector": Stage(compared=IMAGES),
    "imagepulljob-three-nodes": Stage(compared=IMAGES),
    "imagepulljob-two-jobs": Stage(compared=IMAGES, acts={4: image_lost("node1", "nginx:rec-two")}),
    "nodeimage-by-hand": Stage(
        compared=IMAGES, targets={2: "NodeImage/node3"}, acts={3: patches("NodeImage/node3", _version(1), _version(5))}
    ),
    # Images, without
    "imagelistpulljob-always": Stage(compared=IMAGES, is_real=False),
    "imagepulljob-always": Stage(compared=IMAGES, is_real=False),
    "imagepulljob-deadline": Stage(compared=IMAGES, is_real=False),
    "imagepulljob-gate-off": Stage(
        compared=IMAGES,
        is_real=False,
        targets={3: "NodeImage/sim-0", 4: "Node/sim-0", 5: "Node/sim-0", 6: "NodeImage/sim-0"},
    ),
    "imagepulljob-never": Stage(compared=IMAGES, is_real=False, targets={9: "ImagePullJob/pull"}),
    "imagepulljob-nodeimage-by-hand": Stage(
        compared=IMAGES,
        is_real=False,
        targets=dict.fromkeys((1, 3, 4, 6, 8), "NodeImage/sim-0"),
        ages={4: (700, 1300), 6: (1300,)},
        acts={
            5: patches("NodeImage/sim-0", {"spec": {"images": None}}),
            10: node_comes("hand-1", {"a": "b"}),
            11: node_comes("vk-1", {"type": "virtual-kubelet"}),
        },
    ),
    "imagepulljob-podselector": Stage(
        compared=IMAGES,
        is_real=False,
        targets={8: "Pod/p1", 11: "Node/sim-0", 12: "Node/sim-0"},
        acts={2: makes(_pod("p0b", "sim-0")), 3: makes(_pod("p1", "sim-1")), 5: makes(_pod("p2", "sim-2"))},
    ),
    "imagepulljob-pullsecrets": Stage(
        compared=IMAGES,
        is_real=False,
        targets={4: "Secret/reg-a"},
        acts={5: makes(_MISSING_SECRET), 7: loses("Secret/reg-a")},
    ),
    # Restarts
    "containerrecreaterequest-defaults": Stage(
        compared=("ContainerRecreateRequest",),
        is_real=False,
        acts={3: requests("r2", "main"), 4: requests("r3", "nope"), 5: requests("r4", "main", "no-such-pod")},
    ),
    "containerrecreaterequest-already-recreated": Stage(compared=RESTARTS, targets={3: "ContainerRecreateRequest/r2"}),
    "containerrecreaterequest-crash-after-restart": Stage(
        compared=RESTARTS, before={2: pod_marks("p", {"crash-loop": "1 after 2s", "crash-count": "2"})}
    ),
    "containerrecreaterequest-deadline": Stage(compared=RESTARTS),
    "containerrecreaterequest-exited-container": Stage(compared=RESTARTS),
    "containerrecreaterequest-given-up": Stage(compared=RESTARTS),
    "containerrecreaterequest-one-waits-for-another": Stage(
        compared=RESTARTS, targets={3: "ContainerRecreateRequest/r2"}
    ),
    "containerrecreaterequest-ordered": Stage(
        compared=RESTARTS, targets=dict.fromkeys((3, 4, 5), "ContainerRecreateRequest/r")
    ),
    "containerrecreaterequest-prestop": Stage(compared=RESTARTS),
    "containerrecreaterequest-refused": Stage(
        compared=RESTARTS, missing=("busybox:none",), acts={1: with_marks({"stop-seconds": "3"})}, tail=0.2
    ),
    "containerrecreaterequest-shared-processes": Stage(compared=RESTARTS),
    # Probes
    "podprobemarker": Stage(compared=PROBES, is_real=False, targets={5: "Pod/pod-1"}),
    "podprobemarker-before-pod": Stage(compared=PROBES),
    "podprobemarker-exec": Stage(
        compared=PROBES,
        acts={
            1: with_marks({"exec": _BUSY}),
            3: pod_marks("p", {"exec": _IDLE}),
            4: pod_marks("p", {"exec": _BUSY}),
            5: container_ends("p", "main"),
        },
    ),
    "podprobemarker-tcp-http": Stage(
        compared=PROBES,
        targets={3: "PodProbeMarker/m"},
        acts={1: with_marks({"http.web": "200 docker.io/library/nginx:alpine", "closed-ports": "81"})},
        before={3: pod_marks("p", {"http.web": "404"})},
    ),
    "podprobemarker-two-markers": Stage(compared=PROBES, targets=dict.fromkeys((4, 6), "PodProbeMarker/a-b")),
}
