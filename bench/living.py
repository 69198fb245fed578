"""A fleet on a real control plane: how it is made, waited for and rolled, and what is seen of the manager meanwhile."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit
from urllib.request import urlopen

from bench import processes
from bench.fleet import NODES_PER_TEAM, TEAM_LABEL, Json, Member, is_settled, pod_template
from kruise.admission.chain import PATH
from kruise.api.apps.broadcastjob import BROADCAST_JOBS
from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.daemonset import DAEMON_SETS
from kruise.api.apps.statefulset import STATEFUL_SETS
from kruise.api.apps.uniteddeployment import UNITED_DEPLOYMENTS
from kruise.api.native.apps import DEPLOYMENTS
from kruise.api.resource import Resource
from kruise.machinery.client.client import Client
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.codec import decode
from tests.support.kruisecluster import KruiseCluster
from tests.support.realcluster import Answer

WORKLOADS: tuple[Resource[Any], ...] = (
    CLONE_SETS, STATEFUL_SETS, DAEMON_SETS, UNITED_DEPLOYMENTS, BROADCAST_JOBS, DEPLOYMENTS
)  # fmt: skip
_AT_A_TIME = 16
_SAMPLE = re.compile(r"^([a-z_]+)(?:\{(.*)\})? ([0-9.e+-]+|NaN)$", re.MULTILINE)


def note(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


class Fleet:
    def __init__(self, cluster: KruiseCluster, client: Client) -> None:
        self.cluster = cluster
        self.client = client

    async def label_nodes(self, teams: Sequence[str], nodes: int = NODES_PER_TEAM) -> None:
        """So many of them become those of each team."""

        async def label(number: int) -> None:
            body = {"metadata": {"labels": {TEAM_LABEL: teams[number // nodes]}}}
            while (await self._answer("PATCH", f"/api/v1/nodes/sim-{number + 1}", body)).status == 404:  # noqa: ASYNC110
                await asyncio.sleep(0.5)  # they register one after the other

        await side_by_side(label(number) for number in range(len(teams) * nodes))

    async def namespace(self, name: str) -> None:
        await asyncio.to_thread(self.cluster.plane.create_namespace, name)
        await self._ask("PATCH", f"/api/v1/namespaces/{name}", {"metadata": {"labels": {TEAM_LABEL: name}}})

    async def _answer(self, method: str, path: str, body: Json | None = None) -> Answer:
        return await asyncio.to_thread(self.cluster.plane.request, method, path, body)

    async def _ask(self, method: str, path: str, body: Json | None = None) -> Any:
        return (await self._answer(method, path, body)).ok()

    async def make(self, members: Iterable[Member]) -> None:
        await side_by_side(self.client.create(member.resource, member.body, member.namespace) for member in members)

    async def listed(self, resource: Resource[Any], namespace: str = "") -> list[Json]:
        answer = await self.client.send(Request(Verb.LIST, resource, namespace, timeout=60))
        said = {"kind": resource.kind, "apiVersion": resource.api_version}  # items of native kinds do not say it
        return [said | item for item in decode(answer.body, dict[str, Any])["items"]]

    async def unsettled(self, members: Sequence[Member], namespace: str = "") -> list[Member]:
        """Those that have not all their pods, updated and ready."""
        late: list[Member] = []
        for resource in WORKLOADS:
            found = {_place(document): document for document in await self.listed(resource, namespace)}
            late += (
                member
                for member in members
                if member.resource is resource and not is_settled(found[member.namespace, member.name], member.pods)
            )
        return late

    async def until_settled(self, members: Sequence[Member], namespace: str = "", *, within: float = 900) -> None:
        ends = time.monotonic() + within
        while late := await self.unsettled(members, namespace):
            if time.monotonic() > ends:
                names = ", ".join(f"{member.resource} {member.namespace}/{member.name}" for member in late[:10])
                raise TimeoutError(f"not settled within {within:.0f} s: {len(late)} workloads, among them {names}")
            await asyncio.sleep(0.5 if namespace else 2)

    async def roll(self, member: Member, image: str) -> None:
        """A new image for a workload; returns when all its pods have it and are ready."""
        await self.client.patch(member.resource, member.name, new_image(member, image), member.namespace)
        request = Request(Verb.GET, member.resource, member.namespace, member.name)
        while True:
            answer = await self.client.send(request)
            if is_settled(decode(answer.body, dict[str, Any]), member.pods):
                return
            await asyncio.sleep(0.25)

    # What is seen of the manager

    def samples(self) -> dict[tuple[str, str], float]:
        """Its metrics by name and labels."""
        with urlopen(f"{self.cluster.metrics_url}/metrics", timeout=30) as answer:
            text = answer.read().decode()
        return {(name, labels or ""): float(value) for name, labels, value in _SAMPLE.findall(text)}

    def total(self, name: str) -> float:
        return sum(value for (what, _), value in self.samples().items() if what == name)

    def memory(self) -> tuple[float, float]:
        """Of the manager, now and at its highest, in MB."""
        return memory_of(self.cluster.manager_pid)

    async def admission(self) -> tuple[SplitResult, str]:
        """Where the API server would ask about pods, and the certificate of its CA."""
        path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
        configurations = (await self._ask("GET", path))["items"]
        hook = next(
            hook["clientConfig"]
            for configuration in configurations
            for hook in configuration["webhooks"]
            if urlsplit(hook["clientConfig"].get("url", "")).path == PATH
        )
        return urlsplit(hook["url"]), base64.b64decode(hook["caBundle"]).decode()


def memory_of(pid: int) -> tuple[float, float]:
    found = dict(re.findall(r"^(VmRSS|VmHWM):\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE))
    return int(found["VmRSS"]) / 1000, int(found["VmHWM"]) / 1000


def new_image(member: Member, image: str) -> Json:
    """The patch of a template. A merge patch replaces lists as a whole."""
    containers = pod_template({}, image)["spec"]["containers"]
    template: Json = {"spec": {"containers": containers}}
    if member.resource is UNITED_DEPLOYMENTS:
        inner = {"spec": {"template": template}}
        return {"spec": {"template": {"cloneSetTemplate": inner}}}
    return {"spec": {"template": template}}


async def side_by_side(calls: Iterable[Any], at_a_time: int = _AT_A_TIME) -> None:
    work = iter(calls)

    async def lane() -> None:
        for call in work:
            await call

    async with asyncio.TaskGroup() as tasks:
        for _ in range(at_a_time):
            tasks.create_task(lane())


@dataclasses.dataclass(slots=True)
class Meter:
    """CPU of a process from one look to the next."""

    pid: int
    _cpu: float = 0.0
    _at: float = 0.0

    def __post_init__(self) -> None:
        self.share()

    def share(self) -> float:
        """Of a core, since the last look."""
        cpu, at = processes.cpu_seconds(self.pid), time.perf_counter()
        cpu, self._cpu = cpu - self._cpu, cpu
        seconds, self._at = at - self._at, at
        return cpu / seconds


def within(samples: Callable[[], dict[tuple[str, str], float]]) -> Counter[str]:
    """The manager's own histogram of answered reviews: how many took at most so many seconds, of all paths."""
    found: Counter[str] = Counter()
    for (name, labels), value in samples().items():
        if name == "controller_runtime_webhook_latency_seconds_bucket":
            limit = re.search(r'le="([^"]+)"', labels)
            assert limit is not None
            found[limit[1]] += int(value)
    return found


def _place(document: Json) -> tuple[str, str]:
    metadata = document["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
