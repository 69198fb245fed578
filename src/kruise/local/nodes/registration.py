"""How nodes announce themselves: the Node object, its lease, and the words for a node that is gone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from kruise.api.native.events import LEASES
from kruise.api.native.nodes import NAMESPACES, NODES
from kruise.local.nodes.node import SimulatedNode
from kruise.local.nodes.pods import BOUND_PODS, TERMINAL, Pod
from kruise.local.nodes.spec import conditions, node_object, node_status, shown_images
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import AlreadyExistsError, ClientError, NotFoundError
from kruise.machinery.client.requests import PatchType
from kruise.machinery.clock import Clock
from kruise.machinery.times import format_micro_time, format_time

log = logging.getLogger(__name__)

LEASE_NAMESPACE = "kube-node-lease"
LEASE_SECONDS = 40
RENEW_SECONDS = 10.0
REPORT_SECONDS = 300.0
GRACE_SECONDS = 50.0
"""How long a control plane waits before it gives up a silent node."""
AT_ONCE = 16
UNREACHABLE = "node.kubernetes.io/unreachable"

_SILENT = "Kubelet stopped posting node status."


class Model(Protocol):
    client: Client
    clock: Clock

    @property
    def nodes(self) -> Mapping[str, SimulatedNode]: ...


async def register_all(client: Client, nodes: Iterable[SimulatedNode], now: Callable[[], datetime]) -> None:
    """Make all Node objects, some at a time. Raises where the server refuses one."""
    waiting = list(nodes)[::-1]

    async def some() -> None:
        while waiting:
            node = waiting.pop()
            await register(client, node, now())

    async with asyncio.TaskGroup() as tasks:
        for _ in range(min(AT_ONCE, len(waiting))):
            tasks.create_task(some())


async def register(client: Client, node: SimulatedNode, now: datetime) -> None:
    """Make the Node object, or take over the one that is there, with its labels and taints."""
    body = node_object(node.spec, now)
    try:
        made = await client.create(NODES, body)
    except AlreadyExistsError:
        made = await client.get(NODES, node.spec.name)
    node.notice(made)
    if not node.down and not _is_ready(made.status.conditions):
        # A server that takes no status with a new object, or a node that was given up.
        await report_up(client, node, now)
    node.registered = True


def _is_ready(found: Sequence[Any]) -> bool:
    return any(item.type == "Ready" and item.status == "True" for item in found)


async def report_up(client: Client, node: SimulatedNode, now: datetime) -> None:
    """Everything about the node, as at its start; the marks of its absence go."""
    name = node.spec.name
    status = node_status(node.spec, node.images.present, now)
    known = await client.patch(NODES, name, {"status": status}, patch_type=PatchType.STRATEGIC, subresource="status")
    taints = [taint for taint in known.spec.taints if taint.key != UNREACHABLE]
    if len(taints) != len(known.spec.taints):
        body = {"spec": {"taints": [{"key": t.key, "value": t.value, "effect": t.effect} for t in taints]}}
        await client.patch(NODES, name, body, patch_type=PatchType.MERGE)


async def report_images(client: Client, node: SimulatedNode) -> None:
    body = {"status": {"images": shown_images(node.images.present)}}
    try:
        await client.patch(NODES, node.spec.name, body, patch_type=PatchType.MERGE, subresource="status")
    except NotFoundError:
        log.info("node object is gone", extra={"node": node.spec.name})


# Heartbeats


async def renew_leases(model: Model, submit: Callable[[Callable[[], Awaitable[None]]], None]) -> None:
    """Renew every lease in turn, spread over the interval; now and then report the whole status."""
    reported: dict[str, float] = {}
    await _ensure_namespace(model.client)
    while True:
        began = model.clock.monotonic()
        names = sorted(model.nodes)
        for position, name in enumerate(names):
            node = model.nodes[name]
            if node.registered and not node.down:
                submit(_renewal(model, node))
                if began - reported.setdefault(name, began) >= REPORT_SECONDS:
                    reported[name] = began
                    submit(_heartbeat(model, node))
            if position % AT_ONCE == AT_ONCE - 1:
                await asyncio.sleep(RENEW_SECONDS * AT_ONCE / (2 * len(names)))
        await asyncio.sleep(max(0.5, RENEW_SECONDS - (model.clock.monotonic() - began)))


def _renewal(model: Model, node: SimulatedNode) -> Callable[[], Awaitable[None]]:
    async def renew() -> None:
        name = node.spec.name
        moment = format_micro_time(model.clock.now())
        try:
            await model.client.patch(LEASES, name, {"spec": {"renewTime": moment}}, LEASE_NAMESPACE)
        except NotFoundError:
            owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node.uid}
            body = {
                "metadata": {"name": name, "namespace": LEASE_NAMESPACE, "ownerReferences": [owner]},
                "spec": {"holderIdentity": name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": moment},
            }
            await model.client.create(LEASES, body, LEASE_NAMESPACE)

    return renew


def _heartbeat(model: Model, node: SimulatedNode) -> Callable[[], Awaitable[None]]:
    async def beat() -> None:
        moment = format_time(model.clock.now())
        items = [
            {"type": item["type"], "lastHeartbeatTime": moment}
            for item in conditions(model.clock.now(), model.clock.now())
        ]
        body = {"status": {"conditions": items}}
        await model.client.patch(NODES, node.spec.name, body, patch_type=PatchType.STRATEGIC, subresource="status")

    return beat


async def _ensure_namespace(client: Client) -> None:
    try:
        await client.create(NAMESPACES, {"metadata": {"name": LEASE_NAMESPACE}})
    except AlreadyExistsError:
        pass
    except ClientError as error:
        # Leases will say more clearly what is wrong, if anything is.
        log.info("namespace not created", extra={"namespace": LEASE_NAMESPACE, "error": str(error)})


# Where no controller watches over nodes


async def report_lost(client: Client, node: SimulatedNode, pods: Sequence[Pod], now: datetime) -> None:
    """What a control plane writes about a node that has been silent for too long."""
    moment = format_time(now)
    items = [
        {
            "type": item["type"],
            "status": "Unknown",
            "reason": "NodeStatusUnknown",
            "message": _SILENT,
            "lastTransitionTime": moment,
        }
        for item in conditions(now, now)
    ]
    body = {"status": {"conditions": items}}
    known = await client.patch(NODES, node.spec.name, body, patch_type=PatchType.STRATEGIC, subresource="status")
    taints: list[dict[str, str]] = [
        {"key": t.key, "value": t.value, "effect": t.effect} for t in known.spec.taints if t.key != UNREACHABLE
    ]
    taints += [{"key": UNREACHABLE, "effect": effect, "timeAdded": moment} for effect in ("NoSchedule", "NoExecute")]
    await client.patch(NODES, node.spec.name, {"spec": {"taints": taints}}, patch_type=PatchType.MERGE)
    for pod in pods:
        ready = next((item for item in pod.status.conditions if item.type == "Ready"), None)
        if ready is None or ready.status != "True" or pod.status.phase in TERMINAL:
            continue
        change = {"type": "Ready", "status": "False", "lastTransitionTime": moment}
        about = {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [change]}}
        try:
            await client.patch(
                BOUND_PODS,
                pod.metadata.name,
                about,
                pod.metadata.namespace,
                patch_type=PatchType.STRATEGIC,
                subresource="status",
            )
        except NotFoundError:
            continue
