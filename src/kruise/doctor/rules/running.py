"""Whether manager and daemons are at work, and of one mind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kruise.api.native.node_selection import selected
from kruise.api.native.nodes import Node
from kruise.api.native.pod import Pod, PodSpec, is_ready
from kruise.doctor.findings import (
    GATES_DISAGREE,
    MANAGER_NOT_READY,
    NO_DAEMON,
    NO_MANAGER,
    NODE_WITHOUT_DAEMON,
    ONE_MANAGER,
    UNKNOWN_GATE,
    Finding,
    Json,
)
from kruise.doctor.snapshot import Snapshot
from kruise.machinery.codec import convert
from kruise.machinery.documents import value_at
from kruise.machinery.wording import listed, plural
from kruise.manager import gates
from kruise.manager.installation import daemon, manager
from kruise.manager.installation.documents import daemon_in, gates_text, manager_in
from kruise.manager.installation.manager import DEPLOYMENT
from kruise.manager.installation.rbac import DAEMON
from kruise.reasons.assembling import standalone
from kruise.reasons.diagnosis import Surroundings

READ_BY_DAEMONS = ("DaemonWatchingPod", "InPlaceUpdateEnvFromMetadata", "PodProbeMarkerGate", "EnhancedLivenessProbe")
"""The gates that mean something to a daemon. About others it cannot disagree."""


def rules(seen: Snapshot) -> Iterator[Finding]:
    if not seen.is_here:
        return
    yield from _lease(seen)
    yield from _replicas(seen)
    yield from _gates(seen)
    chosen = _gates_of(seen.deployment)
    if chosen is None or chosen["KruiseDaemon"]:
        yield from _daemons(seen)


# The manager


def _lease(seen: Snapshot) -> Iterator[Finding]:
    if not (seen.has_manager or seen.manager.is_hidden):
        yield NO_MANAGER.found("the manager", seen.manager.words, seen.manager.remedy)


def _replicas(seen: Snapshot) -> Iterator[Finding]:
    if seen.deployment is None or seen.pods is None:
        return
    where = manager_in(seen.namespace)
    wanted = int(value_at(seen.deployment, ("spec", "replicas"), 1))
    pods = [pod for pod in seen.pods if _has(pod, manager.LABELS)]
    for pod in pods:
        if not is_ready(pod) and pod.metadata.deletion_timestamp is None:
            said, remedy = _trouble_of(pod, seen)
            yield MANAGER_NOT_READY.found(
                f"pod/{pod.metadata.name} in namespace {seen.namespace}",
                said or "it is not ready",
                remedy or f"kubectl logs -n {seen.namespace} {pod.metadata.name}",
            )
    if len(pods) < wanted:
        yield MANAGER_NOT_READY.found(
            str(where),
            f"{plural(wanted - len(pods), 'pod', 'is', 'are')} missing of {wanted}",
            f"kubectl describe deployment {DEPLOYMENT} -n {seen.namespace}",
        )
    if wanted == 1:
        yield ONE_MANAGER.found(
            str(where),
            "there is one replica: while it is moved or upgraded, nobody answers webhooks",
            "kruise install --set manager.replicas=2",
        )


def _trouble_of(pod: Pod, seen: Snapshot) -> tuple[str, str]:
    """What `kruise why` says of it: what is wrong, and what to do."""
    nodes = {node.metadata.name: node for node in seen.nodes}
    node = nodes.get(pod.spec.node_name)
    around = Surroundings(node=node, is_node_gone=bool(pod.spec.node_name) and node is None, events=())
    links = standalone(pod, around=around, now=seen.now)
    return (links[0].message, links[0].remedy) if links else ("", "")


def _has(pod: Pod, labels: Mapping[str, str]) -> bool:
    return labels.items() <= pod.metadata.labels.items()


# Gates


def _gates(seen: Snapshot) -> Iterator[Finding]:
    for where, workload in (
        (manager_in(seen.namespace), seen.deployment),
        (daemon_in(seen.namespace), seen.daemon_set),
    ):
        try:
            gates.parse(gates_text(workload or {}))
        except gates.FeatureGateError as error:
            yield UNKNOWN_GATE.found(str(where), str(error), "kruise install --set featureGates=... with correct names")
    leading, daemons = _gates_of(seen.deployment), _gates_of(seen.daemon_set)
    if leading is None or daemons is None:
        return
    differing = [name for name in READ_BY_DAEMONS if daemons[name] != leading[name]]
    if differing:
        told = [f"{name} ({'on' if leading[name] else 'off'} in the manager)" for name in differing]
        yield GATES_DISAGREE.found(
            "manager and daemon",
            f"they do not have the same feature gates: {', '.join(told)}",
            "kruise install --image IMAGE --set featureGates=... sets both",
        )


def _gates_of(workload: Json | None) -> Mapping[str, bool] | None:
    """None: they are not known."""
    try:
        return gates.resolve(gates.parse(gates_text(workload))) if workload is not None else None
    except gates.FeatureGateError:
        return None


# The daemons


def _daemons(seen: Snapshot) -> Iterator[Finding]:
    if seen.daemon_set is None:
        if not seen.runs_inside and daemon_in(seen.namespace) not in seen.hidden:
            yield NO_DAEMON.found(
                f"daemonset/{DAEMON} in namespace {seen.namespace}",
                "it is not installed: images are not pulled ahead, containers not restarted, probes not run",
                "kruise install --image IMAGE, or switch the gate off: --set featureGates=KruiseDaemon=false",
            )
        return
    if seen.pods is None:
        return
    spec = convert(value_at(seen.daemon_set, ("spec", "template", "spec"), {}), PodSpec)
    daemons = sorted((pod for pod in seen.pods if _has(pod, daemon.LABELS)), key=is_ready)
    there = {pod.spec.node_name: pod for pod in daemons}  # of two on a node the one that is ready
    lacking: dict[tuple[str, str], list[str]] = {}
    for node in seen.nodes:
        if selected(spec, node) and not ((pod := there.get(node.metadata.name)) and is_ready(pod)):
            lacking.setdefault(_why_none(node, pod, seen), []).append(node.metadata.name)
    for (said, remedy), names in lacking.items():
        yield NODE_WITHOUT_DAEMON.found(_nodes(names), said, remedy)


def _why_none(node: Node, pod: Pod | None, seen: Snapshot) -> tuple[str, str]:
    ready = next((item for item in node.status.conditions if item.type == "Ready"), None)
    if ready is not None and ready.status != "True":
        said = f"the node is not ready: {ready.message or ready.reason or 'it does not say why'}"
        return said, "kubectl describe node NODE; what needs its daemon waits until it is back"
    if pod is None:
        return "no daemon is there", f"kubectl describe daemonset {DAEMON} -n {seen.namespace}"
    said, remedy = _trouble_of(pod, seen)
    told = said or "it is not ready"
    return f"its daemon does not run: {told}", remedy or f"kubectl logs -n {seen.namespace} -l control-plane=daemon"


def _nodes(names: Sequence[str]) -> str:
    return f"node/{names[0]}" if len(names) == 1 else f"{len(names)} nodes ({listed(names)})"
