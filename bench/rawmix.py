"""The API server's raw rate for a mix of writes: a bare aiohttp loop that sends the same verbs, through the same
webhooks, to the same watchers, with nothing to decide.

The pods of the mix are made after one of the rollout's own, with its labels, annotations, status and writers: what a
write costs the server depends on the size of the object, and most on who wrote which of its fields before. They belong
to nobody: no scheduler looks at them, and they are bound to a node that is not there.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import random
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import aiohttp

from tests.support.auditlog import AuditEntry

CREATE, BIND, STATUS, PATCH, EVENT, OTHER = "create", "bind", "status", "patch", "event", "other"
"""Kinds of writes: pods, their bindings, their statuses, their specs, events, statuses of workloads."""
_JSON, _MERGE, _STRATEGIC = (
    "application/json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)


def kind_of(entry: AuditEntry) -> str:
    """Which kind of write an entry is; empty for what a mix leaves out (leases, nodes, reads)."""
    if not entry.is_write or entry.code >= 400:
        return ""
    match entry.resource, entry.subresource, entry.verb:
        case "pods", "", "create":
            return CREATE
        case "pods", "binding", _:
            return BIND
        case "pods", "status", _:
            return STATUS
        case "pods", _, "patch" | "update":
            return PATCH
        case "events", _, _:
            return EVENT
        case "clonesets" | "sidecarsets" | "controllerrevisions", _, _:
            return OTHER
    return ""


def mix_of(entries: Iterable[AuditEntry]) -> Counter[str]:
    return Counter(kind for entry in entries if (kind := kind_of(entry)))


@dataclasses.dataclass(frozen=True, slots=True)
class Rate:
    per_second: float
    cpu_per_write: float
    """Seconds of this process."""


class RawLoop:
    def __init__(self, session: aiohttp.ClientSession, url: str, namespace: str, in_flight: int) -> None:
        self._session = session
        self._root = f"{url}/api/v1/namespaces/{namespace}"
        self._namespace = namespace
        self._in_flight = in_flight
        self._model: Mapping[str, Any] = {}
        self._number = 0

    async def measure(self, mix: Mapping[str, int], writes: int, model: Mapping[str, Any]) -> Rate:
        """Send about `writes` writes in the proportions of the mix. `model`: a pod of the rollout, as it is when it
        runs."""
        self._model = model
        share = writes / sum(mix.values())
        counts = {kind: round(count * share) for kind, count in mix.items()}
        # Writes other than creates need pods that are there.
        stock = await self._stock(200)
        plan = [kind for kind, count in counts.items() for _ in range(count)]
        random.Random(1).shuffle(plan)
        unbound = await self._stock(counts.get(BIND, 0))
        work = iter(plan)
        began, cpu = time.perf_counter(), time.process_time()

        async def lane() -> None:
            for kind in work:
                await self._write(kind, stock, unbound)

        async with asyncio.TaskGroup() as group:
            for _ in range(self._in_flight):
                group.create_task(lane())
        wall, spent = time.perf_counter() - began, time.process_time() - cpu
        await self._remove()
        return Rate(len(plan) / wall, spent / len(plan))

    async def _stock(self, count: int) -> list[str]:
        names = [self._name() for _ in range(count)]
        left = iter(names)

        async def lane() -> None:
            for name in left:
                await self._create(name)
                await self._status(name, dict(self._model["status"]), "raw-nodes")
                await self._status(name, {"conditions": [self._condition()]}, "raw-manager")

        async with asyncio.TaskGroup() as group:
            for _ in range(self._in_flight):
                group.create_task(lane())
        return names

    def _name(self) -> str:
        self._number += 1
        return f"raw-{self._number:06d}"

    async def _write(self, kind: str, stock: list[str], unbound: list[str]) -> None:
        self._number += 1
        name = stock[self._number % len(stock)]
        if kind == CREATE:
            await self._create(self._name())
        elif kind == BIND:
            target = {"apiVersion": "v1", "kind": "Node", "name": "nowhere"}
            pod = unbound.pop()
            body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target}
            await self._send("POST", f"/pods/{pod}/binding", body, _JSON)
        elif kind in (STATUS, OTHER):
            # A node tells of a container as often as the manager of its condition.
            if self._number % 2:
                await self._status(name, {"conditions": [self._condition()]}, "raw-manager")
            else:
                await self._status(name, self._node_status(), "raw-nodes")
        elif kind == PATCH:
            container = self._model["spec"]["containers"][0]["name"]
            body = {
                "metadata": {"labels": {"n": str(self._number)}, "annotations": {"state": "x" * 200}},
                "spec": {"containers": [{"name": container, "image": f"nginx:{self._number}"}]},
            }
            await self._send("PATCH", f"/pods/{name}?fieldManager=raw-manager", body, _STRATEGIC)
        else:
            regarding = {"apiVersion": "v1", "kind": "Pod", "namespace": self._namespace, "name": name}
            body = {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": f"{name}.{self._number:x}"},
                "involvedObject": regarding,
                "type": "Normal",
                "reason": "Raw",
                "message": f"raw write number {self._number}",
                "source": {"component": "bench"},
            }
            await self._send("POST", "/events", body, _JSON)

    async def _create(self, name: str) -> None:
        metadata, spec = self._model["metadata"], dict(self._model["spec"])
        spec.pop("nodeName", None)
        labels = {**metadata["labels"], "app": "raw"}
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": labels, "annotations": metadata.get("annotations", {})},
            "spec": {**spec, "schedulerName": "nobody"},
        }
        await self._send("POST", "/pods", body, _JSON)

    async def _status(self, name: str, status: Mapping[str, Any], writer: str) -> None:
        body = {"metadata": {"labels": {"n": str(self._number)}}, "status": status}
        await self._send("PATCH", f"/pods/{name}/status?fieldManager={writer}", body, _STRATEGIC)

    def _time(self) -> str:
        return f"2030-01-01T00:{self._number // 60 % 60:02d}:{self._number % 60:02d}Z"

    def _condition(self) -> dict[str, Any]:
        return {"type": "InPlaceUpdateReady", "status": "True", "lastTransitionTime": self._time()}

    def _node_status(self) -> dict[str, Any]:
        status = self._model["status"]
        ready = {"status": "True", "lastTransitionTime": self._time()}
        started = {"running": {"startedAt": self._time()}}
        containers = [{**item, "restartCount": self._number, "state": started} for item in status["containerStatuses"]]
        return {
            "conditions": [{"type": "Ready", **ready}, {"type": "ContainersReady", **ready}],
            "containerStatuses": containers,
        }

    async def _remove(self) -> None:
        path = "/pods?labelSelector=app%3Draw&gracePeriodSeconds=0"
        await self._send("DELETE", path, {"gracePeriodSeconds": 0}, _JSON)

    async def _send(self, method: str, path: str, body: object, kind: str) -> None:
        headers = {"Content-Type": kind, "Accept": "application/json", "User-Agent": "bench-raw"}
        data = json.dumps(body).encode()
        async with self._session.request(method, self._root + path, data=data, headers=headers) as response:
            answer = await response.read()
            if response.status >= 300:
                raise RuntimeError(f"{method} {path}: {response.status} {answer[:300]!r}")
