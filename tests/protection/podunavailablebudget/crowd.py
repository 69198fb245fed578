"""An application under a budget, and fifty clients that take its pods away, each as it likes."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.daemonset import DAEMON_SETS
from kruise.api.apps.sidecarset import SIDECAR_SETS
from kruise.api.apps.statefulset import STATEFUL_SETS
from kruise.api.native.apps import DEPLOYMENTS
from kruise.api.native.pod import PODS, Pod
from kruise.api.policy.podunavailablebudget import POD_UNAVAILABLE_BUDGETS, PodUnavailableBudget
from kruise.api.resource import Resource
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import ClientError
from kruise.machinery.client.requests import PatchType
from tests.protection.podunavailablebudget.checker import MARK, History
from tests.scenarios.podlog import is_serving

SIZES = (9, 9, 9, 9, 9, 9, 9, 40)
"""Pods. Of many, so many may go at once that not all are looked at together."""
CLIENTS = 50
KINDS: Sequence[Resource[Any]] = (CLONE_SETS, STATEFUL_SETS, CLONE_SETS)
NODES = 9
"""What a DaemonSet needs."""
_SHORTEST = 15.0


class Crowd:
    """`storm`: seconds of fire. `calm`: seconds until all is well again."""

    def __init__(
        self,
        client: Client,
        random: Random,
        *,
        namespace: str,
        storm: float,
        calm: float,
        kinds: Sequence[Resource[Any]] = KINDS,
    ) -> None:
        self._client = client
        self._random = random
        self._namespace = namespace
        self._storm = storm
        self._calm = calm
        self.resource = random.choice(kinds)
        self.replicas = NODES if self.resource is DAEMON_SETS else random.choice(SIZES)
        self._limit = random.randint(1, 4) if self.replicas < 10 else random.randint(22, 30)
        self.has_sidecars = False
        self.answers: Counter[str] = Counter()
        self.history = History(0)
        self._there: dict[str, Pod] = {}
        """The pods as the watch told them last."""

    @property
    def floor(self) -> int:
        return self.replicas - self._limit

    async def put_sidecars(self) -> None:
        """Before the pods come: a SidecarSet, which is rolled out in the storm, too."""
        self.has_sidecars = True
        spec = {
            "selector": {"matchLabels": {"app": "web"}},
            "containers": [{"name": "envoy", "image": "envoy:1.1"}],
            "updateStrategy": {"type": "RollingUpdate", "maxUnavailable": self.replicas},
        }
        kind = {"apiVersion": SIDECAR_SETS.api_version, "kind": SIDECAR_SETS.kind}
        await self._client.create(SIDECAR_SETS, {**kind, "metadata": {"name": "envoy"}, "spec": spec})

    async def gather(self) -> int:
        """Make the application, and wait until all is well; gives the version at which it is."""
        await self._client.create(self.resource, self._workload(), self._namespace)
        await self._client.create(POD_UNAVAILABLE_BUDGETS, self._budget(), self._namespace)
        await self.until_whole()
        listed = await self._client.list(PODS, self._namespace)
        self.history.begins = int(listed.resource_version)
        for pod in listed.items:
            self.saw("ADDED", pod, 0.0)
        return self.history.begins

    def saw(self, kind: str, found: Pod | PodUnavailableBudget, at: float) -> None:
        """A watch told of it."""
        if isinstance(found, PodUnavailableBudget):
            self.history.note_budget(found, at)
            return
        is_gone = kind == "DELETED"
        self.history.note_pod(found, at, is_gone=is_gone)
        if is_gone:
            self._there.pop(found.metadata.name, None)
        else:
            self._there[found.metadata.name] = found

    async def shoot(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(CLIENTS):
                tasks.create_task(self._one())
            containers = [{"name": "main", "image": "nginx:1.26"}]
            template = {"template": {"spec": {"containers": containers}}}
            tasks.create_task(self._rollout(self.resource, "web", self._namespace, template))
            if self.has_sidecars:
                sidecars = {"containers": [{"name": "envoy", "image": "envoy:1.2"}]}
                tasks.create_task(self._rollout(SIDECAR_SETS, "envoy", "", sidecars))

    # Objects

    def _workload(self) -> dict[str, Any]:
        policy = self._random.choice(("InPlaceIfPossible", "ReCreate"))
        rolling: dict[str, Any] = {"podUpdatePolicy": policy, "maxUnavailable": self.replicas}
        spec: dict[str, Any] = {
            "replicas": self.replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": "nginx:1.25"}]},
            },
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
        }
        resource = self.resource
        if resource is STATEFUL_SETS:
            spec |= {"serviceName": "web", "podManagementPolicy": "Parallel"}
            spec["template"]["spec"]["readinessGates"] = [{"conditionType": "InPlaceUpdateReady"}]
        elif resource is DAEMON_SETS:
            del spec["replicas"], rolling["podUpdatePolicy"]
            rolling["rollingUpdateType"] = "Standard" if policy == "ReCreate" else policy
        elif resource is DEPLOYMENTS:
            del spec["updateStrategy"], rolling["podUpdatePolicy"]
            spec["strategy"] = {"type": "RollingUpdate", "rollingUpdate": {**rolling, "maxSurge": 0}}
        return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "web"}, "spec": spec}

    def _budget(self) -> dict[str, Any]:
        which: dict[str, Any] = {"selector": {"matchLabels": {"app": "web"}}}
        if self._random.random() < 0.5:
            reference = {"apiVersion": self.resource.api_version, "kind": self.resource.kind, "name": "web"}
            which = {"targetRef": reference}
        much: dict[str, Any] = {"maxUnavailable": self._limit}
        if self._random.random() < 0.3:
            much = {"minAvailable": self.replicas - self._limit}
        return {
            "apiVersion": POD_UNAVAILABLE_BUDGETS.api_version,
            "kind": POD_UNAVAILABLE_BUDGETS.kind,
            "metadata": {"name": "pub"},
            "spec": {**which, **much},
        }

    # Who shoots

    async def _one(self) -> None:
        ends = asyncio.get_running_loop().time() + self._storm
        while asyncio.get_running_loop().time() < ends:
            # Many at the same moment, now and then.
            step = self._random.choice((0.0, 0.1, 1.0, 3.0)) * self._storm / _SHORTEST
            await asyncio.sleep(step - asyncio.get_running_loop().time() % step if step else 0.05)
            pods = [pod for pod in self._there.values() if is_serving(pod)]
            if not pods:
                continue
            pod = self._random.choice(pods)
            action = self._random.choice((self._delete, self._evict, self._image, self._mark, self._dry))
            name = action.__name__.strip("_")
            try:
                await action(pod.metadata.name)
            except ClientError as error:
                self.answers[f"{name} {getattr(error, 'code', 'lost')}"] += 1
            else:
                self.answers[f"{name} done"] += 1

    async def _delete(self, pod: str) -> None:
        await self._client.delete(PODS, pod, self._namespace, grace_period_seconds=self._random.choice((0, 1, None)))

    async def _evict(self, pod: str) -> None:
        await self._client.evict(PODS, pod, self._namespace)

    async def _dry(self, pod: str) -> None:
        await self._client.evict(PODS, pod, self._namespace, dry_run=True)

    async def _image(self, pod: str) -> None:
        change = [{"op": "replace", "path": "/spec/containers/0/image", "value": f"nginx:{self._random.randint(1, 9)}"}]
        await self._client.patch(PODS, pod, change, self._namespace, patch_type=PatchType.JSON)

    async def _mark(self, pod: str) -> None:
        await self._client.patch(PODS, pod, {"metadata": {"labels": {MARK: "1"}}}, self._namespace)
        await asyncio.sleep(self._random.random() * 5)
        await self._client.patch(PODS, pod, {"metadata": {"labels": {MARK: None}}}, self._namespace)

    async def unmark(self) -> None:
        for pod in (await self._client.list(PODS, self._namespace)).items:
            if MARK in pod.metadata.labels:
                with contextlib.suppress(ClientError):
                    await self._client.patch(
                        PODS, pod.metadata.name, {"metadata": {"labels": {MARK: None}}}, self._namespace
                    )

    async def _rollout(self, resource: Resource[Any], name: str, namespace: str, spec: dict[str, Any]) -> None:
        await asyncio.sleep(self._storm * self._random.uniform(0.1, 0.5))
        for _ in range(20):
            with contextlib.suppress(ClientError):
                await self._client.patch(resource, name, {"spec": spec}, namespace)
                return
            await asyncio.sleep(1)

    # Who looks

    async def until_whole(self) -> None:
        """Raises AssertionError where it does not become so."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + self._calm
        while True:
            found = await self._client.get(POD_UNAVAILABLE_BUDGETS, "pub", self._namespace)
            status = found.status
            numbers = (status.unavailable_allowed, status.current_available, status.total_replicas)
            records = {**status.disrupted_pods, **status.unavailable_pods, **status.identities}
            if numbers == (self._limit, self.replicas, self.replicas) and not records:
                return
            assert loop.time() < ends, f"{numbers} {sorted(records)}"
            await asyncio.sleep(0.5)
