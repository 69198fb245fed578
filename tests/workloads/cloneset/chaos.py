"""Rollouts to disturb: whole stories of a CloneSet, the promises that hold at each moment, and a manager that dies.

A story runs over a `World`, so the same one is told on virtual time and on a real API server. The `Witness` watches
all pods from outside and checks the promises at every single event, in whatever state the manager is.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.native.apps import CONTROLLER_REVISIONS
from kruise.api.native.pod import PODS, Pod
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS
from kruise.inplace import keys
from kruise.machinery.client.errors import ClientError, NotFoundError
from kruise.machinery.client.requests import PatchType, Request
from kruise.machinery.client.transport import Response, Transport
from tests.support.world import World

Json = dict[str, Any]
NAME = "web"
OLD_IMAGE = "nginx:1.25"
NEW_IMAGE = "nginx:1.26"
HOOK = "example.com/hold"
ID_LABEL = "apps.kruise.io/cloneset-instance-id"


def manifest(
    *,
    replicas: int = 3,
    rolling: Mapping[str, Any] | None = None,
    claims: bool = False,
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> Json:
    pod_spec: Json = {
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "main", "image": OLD_IMAGE, "imagePullPolicy": "IfNotPresent"}],
    }
    if claims:
        pod_spec["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        spec["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": claim}]
    return {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "CloneSet",
        "metadata": {"name": NAME},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": NAME}},
            "template": {"metadata": {"labels": {"app": NAME, **(labels or {})}}, "spec": pod_spec},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": dict(rolling or {})},
            **spec,
        },
    }


# Promises


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What holds at every moment of a step."""

    most: int
    """Pods that are not on their way out."""
    available: int = 0
    """At least so many of them serve."""
    new: int | None = None
    """At most so many have the new image."""


def serves(pod: Pod) -> bool:
    """Spelled out here, and not taken from the code that is tested (IPU-112)."""
    conditions = {item.type: item.status for item in pod.status.conditions}
    return (
        pod.status.phase == "Running"
        and conditions.get("Ready") == "True"
        and conditions.get("InPlaceUpdateReady", "True") == "True"
        and pod.metadata.labels.get(keys.STATE_LABEL, "") in ("", "Normal")
    )


class Witness:
    """Watches the pods of a namespace and keeps every breach of the bounds."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._pods: dict[str, Pod] = {}
        self.bounds: Bounds | None = None
        self.breaches: list[str] = []
        self.seen = 0
        self.uids: set[str] = set()
        self.on_pod: Callable[[Pod], None] = lambda pod: None
        """Told of each pod as it is seen."""

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[Witness]:
        task = asyncio.create_task(self._watch(), name="witness")
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.wait({task})
        assert not self.breaches, "\n".join(self.breaches)

    async def _watch(self) -> None:
        client, namespace = self._world.client, self._world.namespace
        while True:
            # A server that was restarted ends the watch: the list shows where it goes on.
            with contextlib.suppress(ClientError):
                page = await client.list(PODS, namespace)
                self._pods = {pod.metadata.name: pod for pod in page.items}
                self._check("list")
                async with client.watch(PODS, namespace, resource_version=page.resource_version) as events:
                    async for event in events:
                        self._take(event.type, event.object)
            await asyncio.sleep(0.2)

    def _take(self, kind: str, pod: Pod) -> None:
        name = pod.metadata.name
        if kind == "BOOKMARK":
            return
        if kind == "DELETED":
            self._pods.pop(name, None)
        else:
            self._pods[name] = pod
            self.on_pod(pod)
        self._check(f"{kind} {name}")

    def _check(self, event: str) -> None:
        self.seen += 1
        pods = [pod for pod in self._pods.values() if pod.metadata.deletion_timestamp is None]
        self.uids.update(pod.metadata.uid for pod in pods)
        bounds = self.bounds
        if bounds is None:
            return
        available = sum(map(serves, pods))
        new = sum(any(container.image == NEW_IMAGE for container in pod.spec.containers) for pod in pods)
        if len(pods) > bounds.most:
            self.breaches.append(f"{event}: {len(pods)} pods, at most {bounds.most} are allowed")
        if available < bounds.available:
            self.breaches.append(f"{event}: {available} pods are available, {bounds.available} were promised")
        if bounds.new is not None and new > bounds.new:
            self.breaches.append(f"{event}: {new} new pods, the partition lets {bounds.new} be new")


# What a story does


async def persistently(act: Callable[[], Awaitable[Any]], world: World, within: float = 90.0) -> None:
    """A user who tries again: while the manager is away, its webhooks are, too, and nothing can be changed."""
    deadline = world.clock.monotonic() + within
    while True:
        try:
            await act()
        except ClientError:
            if world.clock.monotonic() > deadline:
                raise
            await asyncio.sleep(0.5)
        else:
            return


async def change(world: World, operations: list[Json]) -> None:
    await persistently(lambda: world.patch(CLONE_SETS, NAME, operations, patch_type=PatchType.JSON), world)


async def new_image(world: World) -> None:
    path = "/spec/template/spec/containers/0/image"
    await change(world, [{"op": "replace", "path": path, "value": NEW_IMAGE}])


async def settled(world: World, *, replicas: int, new: int, within: float = 240.0) -> None:
    """Until everything that can be seen from outside is as it is to be."""

    async def check() -> None:
        try:
            found = await world.cloneset(NAME)
            pods = await world.list(PODS)
        except ClientError as error:
            raise AssertionError(str(error)) from error
        status = found.get("status", {})
        assert len(pods) == replicas, [pod["metadata"]["name"] for pod in pods]
        images = [pod["spec"]["containers"][0]["image"] for pod in pods]
        assert images.count(NEW_IMAGE) == new, images
        assert status.get("observedGeneration") == found["metadata"]["generation"], status
        counted = (status["replicas"], status["readyReplicas"], status["availableReplicas"])
        assert counted == (replicas, replicas, replicas), status
        assert status["updatedAvailableReplicas"] == (new or replicas), status
        states = [pod["metadata"]["labels"].get(keys.STATE_LABEL) for pod in pods]
        assert states == ["Normal"] * replicas, states

    await world.until(check, within=within, every=1.0)


Story = Callable[[World, "Stage"], Awaitable[None]]


@dataclasses.dataclass(slots=True)
class Stage:
    """What a story gets besides the world: the witness, and the moment from which the manager may be disturbed."""

    witness: Witness
    begin: Callable[[], None] = lambda: None
    claims: bool = True
    """Whether the cluster has storage for claims."""

    def promise(self, **bounds: Any) -> None:
        self.witness.bounds = Bounds(**bounds)


async def grow(world: World, stage: Stage) -> None:
    """From nothing, then more, with claims."""
    stage.begin()
    stage.promise(most=2)
    await persistently(lambda: world.create(manifest(replicas=2, claims=stage.claims)), world)
    await settled(world, replicas=2, new=0)
    stage.promise(most=4, available=2)
    await change(world, [{"op": "replace", "path": "/spec/replicas", "value": 4}])
    await settled(world, replicas=4, new=0)


async def shrink(world: World, stage: Stage, *, reuse: bool = False) -> None:
    """Fewer pods, with claims that go along; one pod of the user's choice."""
    await world.create(manifest(replicas=4, claims=True, scaleStrategy={"enablePVCReuse": reuse}))
    await settled(world, replicas=4, new=0)
    stage.begin()
    stage.promise(most=4, available=2)
    chosen = (await world.pods())[1]["metadata"]["name"]
    await change(
        world,
        [
            {"op": "replace", "path": "/spec/replicas", "value": 2},
            {"op": "add", "path": "/spec/scaleStrategy/podsToDelete", "value": [chosen]},
        ],
    )
    await settled(world, replicas=2, new=0)
    assert chosen not in [pod["metadata"]["name"] for pod in await world.pods()]

    async def emptied() -> None:
        assert not (await world.cloneset(NAME))["spec"]["scaleStrategy"].get("podsToDelete")

    await world.until(emptied)


async def replace_by_hand(world: World, stage: Stage) -> None:
    """Claims are reused: a pod that somebody deletes comes back with its name and its data (CS-121)."""
    await world.create(manifest(replicas=2, claims=True, scaleStrategy={"enablePVCReuse": True}))
    await settled(world, replicas=2, new=0)
    claims = await _claim_uids(world)
    names = [pod["metadata"]["name"] for pod in await world.pods()]
    stage.begin()
    stage.promise(most=2)
    for name in names:
        await persistently(functools.partial(world.delete, PODS, name), world)
    await world.sleep(2)
    await settled(world, replicas=2, new=0)
    assert [pod["metadata"]["name"] for pod in await world.pods()] == names
    assert await _claim_uids(world) == claims


async def _claim_uids(world: World) -> set[str]:
    return {claim["metadata"]["uid"] for claim in await world.list(PERSISTENT_VOLUME_CLAIMS)}


async def in_place(world: World, stage: Stage) -> None:
    """In place with a grace period, two of three pods first, then the last one."""
    strategy = {"gracePeriodSeconds": 2}
    rolling = {
        "podUpdatePolicy": "InPlaceIfPossible",
        "maxUnavailable": 1,
        "partition": 1,
        "inPlaceUpdateStrategy": strategy,
    }
    await world.create(manifest(rolling=rolling))
    await settled(world, replicas=3, new=0)
    uids = set(stage.witness.uids)
    stage.begin()
    stage.promise(most=3, available=2, new=2)
    await new_image(world)
    await settled(world, replicas=3, new=2)
    stage.promise(most=3, available=2)
    await change(world, [{"op": "replace", "path": "/spec/updateStrategy/rollingUpdate/partition", "value": 0}])
    await settled(world, replicas=3, new=3)
    assert stage.witness.uids == uids


async def recreate(world: World, stage: Stage) -> None:
    """One more pod first, then an old one goes: nobody ever misses a pod."""
    await world.create(manifest(replicas=2, rolling={"maxUnavailable": 0, "maxSurge": 1}, claims=stage.claims))
    await settled(world, replicas=2, new=0)
    stage.begin()
    stage.promise(most=3, available=2)
    await new_image(world)
    await settled(world, replicas=2, new=2)
    assert len(stage.witness.uids) == 4


async def hooks(world: World, stage: Stage) -> None:
    """Update in place and scale in with somebody who takes a label off and puts it on again."""
    held = {"labelsHandler": {HOOK: "true"}}
    lifecycle = {"preDelete": held, "inPlaceUpdate": {**held, "markPodNotReady": True}}
    rolling = {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 1}
    await world.create(manifest(replicas=2, rolling=rolling, labels={HOOK: "true"}, lifecycle=lifecycle))
    await settled(world, replicas=2, new=0)
    stage.begin()
    async with _somebody_at_the_hook(world):
        stage.promise(most=2, available=1)
        await new_image(world)
        await settled(world, replicas=2, new=2)
        await change(world, [{"op": "replace", "path": "/spec/replicas", "value": 1}])
        await settled(world, replicas=1, new=1)
    assert len(stage.witness.uids) == 2


@contextlib.asynccontextmanager
async def _somebody_at_the_hook(world: World) -> AsyncIterator[None]:
    async def attend() -> None:
        while True:
            with contextlib.suppress(ClientError):
                for pod in await world.pods():
                    await _pass_on(world, pod)
            await asyncio.sleep(1)

    task = asyncio.create_task(attend(), name="hook")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


async def _pass_on(world: World, pod: Json) -> None:
    labels = pod["metadata"]["labels"]
    state = labels.get(keys.STATE_LABEL, "")
    wanted: str | None = labels.get(HOOK)
    if state in ("PreparingUpdate", "PreparingDelete"):
        wanted = None
    elif state == "Updated":
        wanted = "true"
    if wanted != labels.get(HOOK):
        body = {"metadata": {"uid": pod["metadata"]["uid"], "labels": {HOOK: wanted}}}
        with contextlib.suppress(NotFoundError):
            await world.patch(PODS, pod["metadata"]["name"], body)


STORIES: Mapping[str, Story] = {
    "grow": grow,
    "shrink": shrink,
    "shrink with reuse": functools.partial(shrink, reuse=True),
    "replace by hand": replace_by_hand,
    "in place": in_place,
    "recreate": recreate,
    "hooks": hooks,
}


# How it ended


async def end_state(world: World) -> Json:
    """Everything that must be the same whatever happened on the way: names, times and versions left out."""
    cloneset = await world.cloneset(NAME)
    pods = await world.list(PODS)
    claims = await world.list(PERSISTENT_VOLUME_CLAIMS)
    revisions = await world.list(CONTROLLER_REVISIONS)
    ids = {pod["metadata"]["labels"][ID_LABEL] for pod in pods}
    status = {key: value for key, value in cloneset["status"].items() if key != "observedGeneration"}
    return {
        "status": status,
        "spec": cloneset["spec"],
        "pods": sorted((_pod_summary(pod) for pod in pods), key=json.dumps),
        "claims": sorted(_claim_summary(claim, ids) for claim in claims),
        "revisions": sorted((item["metadata"]["name"], item["revision"]) for item in revisions),
    }


def _pod_summary(pod: Json) -> Json:
    metadata = pod["metadata"]
    labels = {key: value for key, value in metadata["labels"].items() if key != ID_LABEL}
    return {
        "labels": labels,
        "named after its id": metadata["name"] == f"{NAME}-{metadata['labels'][ID_LABEL]}",
        "annotations": sorted(metadata.get("annotations", {})),
        "finalizers": metadata.get("finalizers", []),
        "owners": [owner["kind"] for owner in metadata["ownerReferences"]],
        "images": [container["image"] for container in pod["spec"]["containers"]],
        "restarts": [status["restartCount"] for status in pod["status"]["containerStatuses"]],
        "conditions": sorted(
            f"{item['type']}={item['status']} {item.get('reason', '')} {item.get('message', '')}".strip()
            for item in pod["status"]["conditions"]
        ),
    }


def _claim_summary(claim: Json, ids: set[str]) -> str:
    metadata = claim["metadata"]
    belongs = metadata["labels"].get(ID_LABEL) in ids
    owners = [owner["kind"] for owner in metadata.get("ownerReferences", [])]
    return f"of a pod: {belongs}, owners {owners}, terminating: {'deletionTimestamp' in metadata}"


# A manager that dies

COUNTED = frozenset({"clonesets", "pods", "persistentvolumeclaims", "controllerrevisions"})


class DeadlyTransport:
    """Counts the writes that matter. Number `deadly` is the last one: either it is never sent, or it is done and the
    answer never comes. From then on nothing gets through, as for a process that is gone."""

    def __init__(self, inner: Transport, *, deadly: int = 0, before: bool = False) -> None:
        self.inner = inner
        self.armed = False
        self.writes: list[str] = []
        self.struck = asyncio.Event()
        self._deadly = deadly
        self._before = before

    def arm(self) -> None:
        """Count from now on."""
        self.armed = True

    async def send(self, request: Request) -> Response:
        await self._stop_if_dead()
        if not (self.armed and request.verb.writes and _is_counted(request)):
            answer = await self.inner.send(request)
            await self._stop_if_dead()
            return answer
        self.writes.append(f"{request.verb} {request.path}")
        is_last = len(self.writes) == self._deadly
        if is_last and self._before:
            self.struck.set()
            await self._stop_if_dead()
        answer = await self.inner.send(request)
        if is_last:
            self.struck.set()
        await self._stop_if_dead()
        return answer

    def stream(self, request: Request) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._stream(request)

    @contextlib.asynccontextmanager
    async def _stream(self, request: Request) -> AsyncGenerator[AsyncIterator[bytes], None]:
        await self._stop_if_dead()
        async with self.inner.stream(request) as lines:
            yield lines

    async def close(self) -> None:
        await self.inner.close()

    async def _stop_if_dead(self) -> None:
        if self.struck.is_set():
            await asyncio.get_running_loop().create_future()


def _is_counted(request: Request) -> bool:
    return request.resource is not None and request.resource.plural in COUNTED


def numbered(texts: list[str]) -> Iterator[str]:
    """For failures: what the writes before the deadly one were."""
    return (f"{number}: {text}" for number, text in enumerate(texts, 1))
