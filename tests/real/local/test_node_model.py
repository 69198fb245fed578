"""The nodes of the local cluster tell of a pod what real kubelets tell: the same stories on both, compared.

A story makes a pod and changes it. Compared are every status that a watch saw on the way (phase, conditions, container
states) and the events, with their texts; times, ids and addresses are taken out. What differs for a reason is stated
with the story, and in docs/nodes.md.

A kubelet writes the newest status it has: of two that follow at once it may write one, in some runs and not in others.
So a real story has no status that ours lacks, in the same order; and what one real story passes over, another tells.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest

from kruise.api.native.events import EVENTS
from kruise.api.native.nodes import NAMESPACES
from kruise.api.native.pod import PODS
from kruise.local.cluster import ClusterOptions, LocalCluster
from kruise.machinery.client.client import Client
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.kubeconfig import load
from kruise.machinery.client.requests import PatchType, Request, Verb
from kruise.machinery.clock import Clock, RealClock, VirtualClock, run_virtual
from tests.support import realnodes_images
from tests.support.realnodes import RealNodes

Json = dict[str, Any]

SMALL_CPU, LARGE_CPU = "50m", "80m"

_PLACEHOLDERS: Sequence[tuple[str, str]] = (
    (r"containerd://[0-9a-f]{64}", "CONTAINER"),
    (r"sha256:[0-9a-f]{64}", "DIGEST"),
    (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UID"),
    (r"\bkube-api-access-[a-z0-9]{5}\b", "kube-api-access"),
    (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\b", "TIME"),
    (r"\b\d+(\.\d+){3}\b", "ADDRESS"),
    (r"\bnode-\d\b", "NODE"),
    (r"model(-[a-z]+)+-\d\b", "NAMESPACE"),
    (r"in [\d.]+m?s \([\d.]+m?s including waiting\). Image size: \d+ bytes", "in TIME. Image size: SIZE"),
)


class Stage:
    """Where a story is told: a namespace of its own, and what a watch of its pods saw."""

    def __init__(self, client: Client, namespace: str, clock: Clock) -> None:
        self.client = client
        self.namespace = namespace
        self.clock = clock
        self.seen: list[Json] = []
        self._news = asyncio.Event()

    async def create(self, *containers: Json, name: str = "web", **spec: Any) -> None:
        body = {"metadata": {"name": name}, "spec": {"containers": list(containers), **spec}}
        await self.client.create(PODS, body, self.namespace)

    async def patch(self, body: Json, *, name: str = "web") -> None:
        await self.client.patch(PODS, name, body, self.namespace, patch_type=PatchType.STRATEGIC)

    async def delete(self, *, name: str = "web") -> None:
        await self.client.delete(PODS, name, self.namespace)
        await self._until(lambda: bool(self.seen) and self.seen[-1].get("gone", False), 60.0)

    async def until(self, check: Callable[[Json], bool], *, within: float = 60.0) -> None:
        """Waits until the watch has seen such a pod."""
        await self._until(lambda: bool(self.seen) and check(self.seen[-1]), within)

    async def version(self) -> str:
        answer = await self.client.send(Request(Verb.LIST, PODS, self.namespace))
        return str(json.loads(answer.body)["metadata"]["resourceVersion"])

    async def watch(self, version: str) -> None:
        """Everything after this version; so a watch that is opened late misses nothing."""
        query = (("watch", "true"), ("resourceVersion", version))
        async with self.client.transport.stream(Request(Verb.WATCH, PODS, self.namespace, query=query)) as lines:
            async for line in lines:
                event = json.loads(line)
                self.seen.append({**event["object"], "gone": event["type"] == "DELETED"})
                self._news.set()

    async def events(self) -> list[Json]:
        answer = await self.client.send(Request(Verb.LIST, EVENTS, self.namespace))
        found: list[Json] = json.loads(answer.body)["items"]
        return found

    async def _until(self, check: Callable[[], bool], within: float) -> None:
        deadline = self.clock.monotonic() + within
        while not check():
            self._news.clear()
            left = deadline - self.clock.monotonic()
            assert left > 0, json.dumps(self.seen[-1:], indent=1)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), left)


Story = Callable[[Stage], Awaitable[None]]


@dataclasses.dataclass(frozen=True, slots=True)
class Told:
    """A story as one of the two clusters told it."""

    statuses: tuple[Json, ...]
    events: tuple[str, ...]
    """Sorted: some are said at the same moment."""


async def tell(stage: Stage, story: Story) -> Told:
    watching = asyncio.create_task(stage.watch(await stage.version()))
    try:
        await story(stage)
        seen = tuple(stage.seen)
        # Events are written a moment after the status.
        await asyncio.sleep(1.5)
        events = await stage.events()
    finally:
        watching.cancel()
        await asyncio.wait({watching})
    texts = {event_text(event) for event in events if not is_chance(event)}
    return Told(without_repetition(map(status_of, seen)), tuple(sorted(texts)))


def is_chance(event: Json) -> bool:
    """What a kubelet says at some times and not at others, whatever the pod does."""
    # One that has just met a namespace may have to wait for its CA; it tries again at once.
    waits_for_ca = event["reason"] == "FailedMount"
    # A look at the pod while the change arrives may end in the completion of a resize to what the pod had before.
    resized_to_old = event["reason"] == "ResizeCompleted" and f'"cpu":"{SMALL_CPU}"' in event["message"]
    return bool(waits_for_ca or resized_to_old)


def without_repetition(statuses: Iterable[Json]) -> tuple[Json, ...]:
    return tuple(status for status, _ in itertools.groupby(statuses))


def status_of(pod: Json) -> Json:
    """What is compared of a pod, without what is different each time."""
    status = json.loads(without_chance(json.dumps(pod["status"])))
    for condition in status.get("conditions", ()):
        for key in ("lastProbeTime", "lastTransitionTime"):
            condition.pop(key, None)
    if "conditions" in status:
        status["conditions"] = sorted(status["conditions"], key=lambda condition: str(condition["type"]))
    deleting = "deletionTimestamp" in pod["metadata"]
    return {"deleting": deleting, "gone": pod["gone"], **status}


def event_text(event: Json) -> str:
    source = event.get("source", {}).get("component") or event.get("reportingComponent", "")
    path = event["involvedObject"].get("fieldPath", "")
    return without_chance(f"{source} {event['type']} {event['reason']} {path}: {event['message']}")


def without_chance(text: str) -> str:
    for pattern, placeholder in _PLACEHOLDERS:
        text = re.sub(pattern, placeholder, text)
    return text


@contextlib.asynccontextmanager
async def local_stage(namespace: str) -> AsyncIterator[Stage]:
    clock = VirtualClock(asyncio.get_running_loop())
    cluster = LocalCluster(ClusterOptions(nodes=1, seed=1), clock=clock)
    running = asyncio.create_task(cluster.run(), name="cluster")
    await cluster.ready.wait()
    client = cluster.client("story")
    await client.create(NAMESPACES, {"metadata": {"name": namespace}})
    await asyncio.sleep(1)
    try:
        yield Stage(client, namespace, clock)
    finally:
        running.cancel()
        await asyncio.wait({running})


def told_locally(story: Story, namespace: str) -> Told:
    async def main() -> Told:
        async with local_stage(namespace) as stage:
            return await tell(stage, story)

    return run_virtual(main())


async def told_by_kubelets(cluster: RealNodes, story: Story, namespace: str) -> Told:
    await asyncio.to_thread(cluster.create_namespace, namespace)
    try:
        async with Client(HttpTransport(load(cluster.kubeconfig)), clock=RealClock()) as client:
            return await tell(Stage(client, namespace, RealClock()), story)
    finally:
        await asyncio.to_thread(cluster.delete_namespace, namespace)


# Short words


def container(image: str, *command: str, name: str = "app", **more: Any) -> Json:
    found: Json = {"name": name, "image": image, **more}
    if command:
        found["command"] = list(command)
    return found


def shell(image: str, text: str, **more: Any) -> Json:
    return container(image, "sh", "-c", text, **more)


def is_ready(pod: Json) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", ()))


def restarts(pod: Json) -> int:
    return sum(each["restartCount"] for each in pod["status"].get("containerStatuses", ()))


def waits_for(reason: str) -> Callable[[Json], bool]:
    def check(pod: Json) -> bool:
        statuses = pod["status"].get("containerStatuses", ())
        return any(each["state"].get("waiting", {}).get("reason") == reason for each in statuses)

    return check


# Stories


async def ready(stage: Stage) -> None:
    await stage.create(container("model.test/ready:v1"))
    await stage.until(is_ready)


async def image_change(stage: Stage) -> None:
    await stage.create(container("model.test/change:v1"), container("model.test/stays:v1", name="other"))
    await stage.until(is_ready)
    await stage.patch({"spec": {"containers": [{"name": "app", "image": "model.test/change:v2"}]}})
    await stage.until(lambda pod: is_ready(pod) and restarts(pod) == 1)


async def image_change_fails(stage: Stage) -> None:
    await stage.create(container("model.test/runs:v1"))
    await stage.until(is_ready)
    await stage.patch({"spec": {"containers": [{"name": "app", "image": "model.test/runs:missing"}]}})
    await stage.until(waits_for("ImagePullBackOff"))


async def image_change_of_deaf_container(stage: Stage) -> None:
    deaf = container("model.test/hard:v1", "sleep", "600")
    await stage.create(deaf, terminationGracePeriodSeconds=6)
    await stage.until(is_ready)
    await stage.patch({"spec": {"containers": [{"name": "app", "image": "model.test/hard:v2"}]}})
    await stage.until(lambda pod: is_ready(pod) and restarts(pod) == 1)


async def labels_change(stage: Stage) -> None:
    await stage.create(container("model.test/labelled:v1"))
    await stage.until(is_ready)
    await stage.patch({"metadata": {"labels": {"revision": "2"}, "annotations": {"note": "new"}}})
    await asyncio.sleep(3)


async def resize(stage: Stage) -> None:
    small, large = ({"requests": {"cpu": cpu, "memory": "16Mi"}} for cpu in (SMALL_CPU, LARGE_CPU))
    await stage.create(container("model.test/sized:v1", resources=small))
    await stage.until(is_ready)
    await stage.client.patch(
        PODS,
        "web",
        {"spec": {"containers": [{"name": "app", "resources": large}]}},
        stage.namespace,
        patch_type=PatchType.STRATEGIC,
        subresource="resize",
    )
    await stage.until(
        lambda pod: (
            pod["status"]["containerStatuses"][0].get("resources", {}).get("requests", {}).get("cpu") == LARGE_CPU
            and not any(each["type"].startswith("PodResize") for each in pod["status"]["conditions"])
        )
    )


async def sidecar(stage: Stage) -> None:
    helper = container("model.test/helper:v1", name="helper", restartPolicy="Always")
    await stage.create(container("model.test/helped:v1"), initContainers=[helper])
    await stage.until(is_ready)
    await stage.delete()


async def post_start_fails(stage: Stage) -> None:
    hook = {"postStart": {"exec": {"command": ["sh", "-c", "echo no; exit 7"]}}}
    await stage.create(container("model.test/hooked:v1", lifecycle=hook))
    await stage.until(lambda pod: restarts(pod) == 1)


async def pre_stop(stage: Stage) -> None:
    hook = {"preStop": {"exec": {"command": ["sleep", "7"]}}}
    await stage.create(container("model.test/slowly:v1", lifecycle=hook))
    await stage.until(is_ready)
    await stage.delete()


async def deadline(stage: Stage) -> None:
    await stage.create(container("model.test/late:v1"), activeDeadlineSeconds=4, restartPolicy="Never")
    await stage.until(lambda pod: pod["status"]["phase"] == "Failed")


async def crash_loop(stage: Stage) -> None:
    await stage.create(shell("model.test/crash:v1", "sleep 3; exit 3"))
    await stage.until(lambda pod: restarts(pod) == 1 and waits_for("CrashLoopBackOff")(pod))


async def pull_error(stage: Stage) -> None:
    await stage.create(container("model.test/web:missing"))
    await stage.until(waits_for("ImagePullBackOff"))


async def unreadable_image(stage: Stage) -> None:
    await stage.create(container("model.test/Web:1:2"))
    await stage.until(waits_for("InvalidImageName"))


async def probe_fails_silently(stage: Stage) -> None:
    await fail_readiness(stage, "model.test/silent:v1", "false")


async def probe_fails_with_output(stage: Stage) -> None:
    await fail_readiness(stage, "model.test/outspoken:v1", "sh", "-c", "echo not yet; exit 2")


async def probe_times_out(stage: Stage) -> None:
    await fail_readiness(stage, "model.test/slow:v1", "sh", "-c", "sleep 3")


async def fail_readiness(stage: Stage, image: str, *command: str) -> None:
    probe = {"exec": {"command": list(command)}, "periodSeconds": 1, "failureThreshold": 1}
    await stage.create(container(image, readinessProbe=probe))
    await stage.until(lambda pod: pod["status"]["phase"] == "Running")
    await asyncio.sleep(3)


async def liveness_probe_fails(stage: Stage) -> None:
    probe = {"exec": {"command": ["false"]}, "periodSeconds": 2, "failureThreshold": 1}
    await stage.create(container("model.test/sick:v1", livenessProbe=probe))
    await stage.until(lambda pod: restarts(pod) == 1 and is_ready(pod))


async def terminating(stage: Stage) -> None:
    await stage.create(container("model.test/deaf:v1", "sleep", "600"), terminationGracePeriodSeconds=8)
    await stage.until(is_ready)
    await stage.delete()


async def terminating_soon(stage: Stage) -> None:
    await stage.create(container("model.test/heeding:v1"))
    await stage.until(is_ready)
    await stage.delete()


async def init_containers(stage: Stage) -> None:
    first = shell("model.test/first:v1", "sleep 2", name="first")
    second = shell("model.test/second:v1", "sleep 2", name="second")
    await stage.create(container("model.test/inited:v1"), initContainers=[first, second])
    await stage.until(is_ready)


async def job_pod(stage: Stage) -> None:
    await stage.create(shell("model.test/job:v1", "sleep 2; exit 0"), restartPolicy="Never")
    await stage.until(lambda pod: pod["status"]["phase"] == "Succeeded")


async def failed_pod(stage: Stage) -> None:
    await stage.create(shell("model.test/failed:v1", "sleep 2; exit 4"), restartPolicy="Never")
    await stage.until(lambda pod: pod["status"]["phase"] == "Failed")


async def readiness_gate(stage: Stage) -> None:
    await stage.create(container("model.test/gated:v1"), readinessGates=[{"conditionType": "InPlaceUpdateReady"}])
    await stage.until(lambda pod: pod["status"]["phase"] == "Running")
    condition = {"type": "InPlaceUpdateReady", "status": "True"}
    await stage.client.patch(
        PODS,
        "web",
        {"status": {"conditions": [condition]}},
        stage.namespace,
        patch_type=PatchType.STRATEGIC,
        subresource="status",
    )
    await stage.until(is_ready)


def is_stopping(status: Json) -> bool:
    """The end has begun but is not over: the pod is deleted, or conditions speak of an end and the phase does not."""
    ends = any(each.get("reason") in ("PodCompleted", "PodFailed") for each in status.get("conditions", ()))
    return not status["gone"] and status["phase"] == "Running" and (status["deleting"] or ends)


# What the local cluster leaves out of a story: the status between the beginning and the end of a short termination.
STORIES: Mapping[Story, Callable[[Json], bool] | None] = {
    ready: None,
    image_change: None,
    image_change_fails: None,
    image_change_of_deaf_container: None,
    labels_change: None,
    resize: None,
    sidecar: is_stopping,
    post_start_fails: None,
    pre_stop: None,
    deadline: is_stopping,
    crash_loop: None,
    pull_error: None,
    unreadable_image: None,
    probe_fails_silently: None,
    probe_fails_with_output: None,
    probe_times_out: None,
    liveness_probe_fails: None,
    terminating: None,
    terminating_soon: is_stopping,
    init_containers: None,
    job_pod: is_stopping,
    failed_pod: is_stopping,
    readiness_gate: None,
}


# A story has images of its own, so that it always begins with pulling them.
SERVERS = """
    ready:v1 change:v1 change:v2 stays:v1 silent:v1 outspoken:v1 slow:v1 sick:v1 inited:v1 gated:v1 heeding:v1
    runs:v1 labelled:v1 sized:v1 helper:v1 helped:v1 hooked:v1 slowly:v1 late:v1
"""
SHELLS = "crash:v1 deaf:v1 first:v1 second:v1 job:v1 failed:v1 hard:v1 hard:v2"


@pytest.fixture(scope="module")
def model_images(real_nodes: RealNodes) -> None:
    """The images of all stories, none of which a node has yet."""
    for port, name in enumerate(SERVERS.split(), start=80):
        real_nodes.registry.push(f"model.test/{name}", realnodes_images.server_image(name, port))
    for name in SHELLS.split():
        real_nodes.push_image(f"model.test/{name}", contents={"/name": name})


# How often a story is told until every status was seen.
TELLINGS = 3


@pytest.mark.nodes
@pytest.mark.spread
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
async def test_both_tell_the_same(real_nodes: RealNodes, model_images: None, story: Story) -> None:
    """Statuses in their order, and events with their texts."""
    namespace = f"model-{story.__name__.replace('_', '-')}"
    local = await asyncio.to_thread(told_locally, story, f"{namespace}-0")
    left_out = STORIES[story] or (lambda status: False)
    ours = list(itertools.filterfalse(left_out, local.statuses))
    untold = set(range(len(ours)))
    for telling in range(1, TELLINGS + 1):
        real = await told_by_kubelets(real_nodes, story, f"{namespace}-{telling}")
        assert local.events == real.events
        theirs = list(itertools.filterfalse(left_out, real.statuses))
        if STORIES[story]:
            assert len(theirs) < len(real.statuses), "nothing is left out any more: compare it whole"
        untold -= set(places(theirs, ours))
        if not untold:
            break
        await asyncio.to_thread(forget_images, real_nodes, images_in(local.events))
    assert [ours[place] for place in sorted(untold)] == [], "no kubelet ever told this"


def places(theirs: Sequence[Json], ours: Sequence[Json]) -> list[int]:
    """Where each of their statuses stands among ours, which have them all in this order; the first and the last too."""
    found: list[int] = []
    for status in theirs:
        begin = found[-1] + 1 if found else 0
        assert status in ours[begin:], f"not told here after status {begin - 1}:\n{json.dumps(status, indent=1)}"
        found.append(ours.index(status, begin))
    assert (found[0], found[-1]) == (0, len(ours) - 1)
    return found


def images_in(events: Iterable[str]) -> set[str]:
    return {image for event in events for image in re.findall(r"model[.]test/[a-z]+:v\d", event)}


def forget_images(cluster: RealNodes, images: set[str]) -> None:
    """A story begins with pulling its images, also when it is told again. Those of others may be in use now."""
    for node in cluster.nodes:
        listed = cluster.run_on_node(node, "ctr", "--namespace=k8s.io", "images", "list", "-q", "name~=^model[.]test/")
        if names := sorted(images.intersection(listed.split())):
            cluster.run_on_node(node, "ctr", "--namespace=k8s.io", "images", "remove", "--sync", *names)
