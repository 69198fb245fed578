"""Plays a recording of jobs on ours, on nodes that do what the recorded ones did.

Nobody runs anything here: what a recorded node reported of the n-th pod of a job is reported of our n-th pod of it.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import copy
import dataclasses
import json
import re
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

from kruise.api.apps.advancedcronjob import ADVANCED_CRON_JOBS
from kruise.api.apps.broadcastjob import BROADCAST_JOBS
from kruise.api.apps.images import IMAGE_LIST_PULL_JOBS
from kruise.api.native.apps import JOBS
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.machinery.client.errors import ApiError, NotFoundError
from kruise.machinery.client.requests import Request, Verb
from tests.recordings.course import CoursePlayer, CourseRecording, Json, Moment
from tests.recordings.environment import Watched
from tests.support.world import LocalWorld

KINDS: Mapping[str, Resource[Any]] = {
    one.kind: one for one in (BROADCAST_JOBS, ADVANCED_CRON_JOBS, IMAGE_LIST_PULL_JOBS, JOBS)
}
COMPARED = ("BroadcastJob", "AdvancedCronJob")
COMPONENTS = ("broadcastjob-controller", "advancedcronjob-controller")
_RUN = re.compile(r"-(\d{10})\b")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What a recording leaves open."""

    nodes: Sequence[str] = ("node1", "node2", "node3")
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()
    begins: float = 0.0
    """The unix time of the first step, as the names of runs tell it."""
    runs_in_order: bool = False
    """Ours start at other moments: the n-th of ours stands for the n-th recorded one."""


class Player(CoursePlayer):
    resources = KINDS
    components = COMPONENTS

    def __init__(self, recording: CourseRecording, stage: Stage, world: LocalWorld) -> None:
        super().__init__(recording, world)
        self.stage = stage
        self.shift = 0
        """Seconds from the recorded runs to ours."""
        self.pods: dict[str, list[str]] = collections.defaultdict(list)
        """Of each job, in the order of creation."""
        self.recorded_pods: dict[str, tuple[str, int]] = {}
        self.runs: list[str] = []
        """The unix times in the names of ours, in the order of creation."""
        runs = (_RUN.search(one.target) for one in recording.moments if one.text.startswith("ADDED"))
        self.recorded_runs = list(dict.fromkeys(found[1] for found in runs if found is not None))
        self._pod_uids: set[str] = set()

    # The environment

    async def prepare(self) -> None:
        status = {"allocatable": {"pods": "110", "cpu": "2", "memory": "4Gi"}}
        for name in self.stage.nodes:
            labels = {"kubernetes.io/hostname": name, **self.stage.labels}
            node = {"metadata": {"name": name, "labels": labels}, "spec": {"taints": list(self.stage.taints)}}
            await self.world.client.create(NODES, node)
            await self.world.client.patch(NODES, name, {"status": status}, subresource="status")

    def background(self) -> Sequence[Coroutine[Any, Any, None]]:
        pods = Watched(self.world, PODS)
        pods.listeners.append(self._see_pod)
        return (pods.run(), self._reap())

    async def begin(self) -> None:
        """At the second of a minute at which it was recorded."""
        if self.stage.begins:
            await asyncio.sleep((self.stage.begins - self.world.clock.now().timestamp()) % 60)
            self.shift = round(self.world.clock.now().timestamp() - self.stage.begins)

    async def _reap(self) -> None:
        """Nodes stop what is deleted."""
        while True:
            await asyncio.sleep(0.2)
            for pod in await self.world.list(PODS):
                metadata = pod["metadata"]
                if metadata.get("deletionGracePeriodSeconds"):
                    with contextlib.suppress(NotFoundError):
                        await self.world.delete(PODS, metadata["name"], grace_period_seconds=0)

    def _see_pod(self, kind: str, pod: Json) -> None:
        owners = pod["metadata"].get("ownerReferences")
        if kind == "ADDED" and owners and pod["metadata"]["uid"] not in self._pod_uids:
            self._pod_uids.add(pod["metadata"]["uid"])  # names come again with their nodes
            self.pods[owners[0]["name"]].append(pod["metadata"]["name"])

    def saw(self, kind: str, found: Json) -> None:
        if kind == "ADDED" and (run := _RUN.search(found["metadata"]["name"])) and run[1] not in self.runs:
            self.runs.append(run[1])

    # What is played

    async def happens(self, kind: str, name: str, moment: Moment) -> None:
        if kind == "Pod":
            await self._pod(name, moment)
        elif kind == "ImageListPullJob" and "status" in moment.document:
            await self._report(IMAGE_LIST_PULL_JOBS, self.name(name), moment.document["status"])

    async def step(self, step: str, moment: Moment) -> None:
        client, kind = self.world.client, self.recording.manifests[0]["kind"]
        if step == "create without restartPolicy (refused)":
            manifest = copy.deepcopy(self.recording.manifests[0])
            del manifest["spec"]["template"]["spec"]["restartPolicy"]
            await self._refused(Request(Verb.CREATE, KINDS[kind], "demo", body=json.dumps(manifest).encode()), 500)
        elif found := re.match(r"create (\w+) ([\w-]+)", step):
            await self.world.create(self.recording.manifest(found[2]))
        elif found := re.search(r"(?:\(merge\): |: `)(\{.*\})`?$", step):
            resource, name = KINDS[kind], self.recording.manifests[0]["metadata"]["name"]
            try:
                await client.patch(resource, name, json.loads(found[1]), "demo")
            except ApiError as error:
                if not step.startswith("bad "):
                    raise
                self.same("refusal", step, 422, error.status.code)
        elif found := re.fullmatch(r"delete the failed pod (pod-\d+)", step):
            await self.world.delete(PODS, self._our_pod(found[1]), grace_period_seconds=0)
        elif found := re.fullmatch(r"delete the finished pod of (\w+)", step):
            [name] = [one["metadata"]["name"] for one in await self.world.pods() if one["spec"]["nodeName"] == found[1]]
            await self.world.delete(PODS, name, grace_period_seconds=0)
        elif found := re.fullmatch(r"delete (\w+) ([\w-]+)", step):
            await self.world.delete(KINDS[found[1]], found[2], propagation="Background")
        elif found := re.match(r"(label|remove the label from) (node\d)", step):
            value = "yes" if found[1] == "label" else None
            await client.patch(NODES, found[2], {"metadata": {"labels": {"rec3/bj": value}}})
        elif step == "remove the labels":
            for node in ("node1", "node2"):
                await client.patch(NODES, node, {"metadata": {"labels": {"rec3/bj": None}}})
        else:
            assert step.startswith("node reports "), f"nobody knows how to play {step!r}"

    async def _refused(self, request: Request, code: int) -> None:
        with contextlib.suppress(ApiError):
            try:
                await self.world.client.send(request)
            except ApiError as error:
                self.same("refusal", str(request), code, error.status.code)
                raise
            self.same("refusal", str(request), code, 200)

    async def _pod(self, name: str, moment: Moment) -> None:
        if moment.text.startswith("ADDED"):
            labels = moment.document.get("metadata", {}).get("labels", {})
            owner = labels.get("broadcastjob-name") or labels.get("job-name") or self._last_owner
            self._last_owner = owner
            place = sum(known[0] == owner for known in self.recorded_pods.values())
            self.recorded_pods[name] = (owner, place)
        status: Json = {}
        if found := re.search(r"phase=(\w+)", moment.text):
            status["phase"] = found[1]
        if found := re.search(r"container (\w+)\[.*?restartCount=(\d+)", moment.text):
            status["containerStatuses"] = [{"name": found[1], "restartCount": int(found[2]), "ready": False}]
        if status.get("phase") != "Pending" and status and (ours := self._our_pod(name)):
            filled = [{"image": "busybox", "imageID": "", **one} for one in status.pop("containerStatuses", ())]
            await self._report(PODS, ours, {**status, **({"containerStatuses": filled} if filled else {})})

    _last_owner = ""

    def _our_pod(self, name: str) -> str:
        """Ours that stands for a recorded one; empty: there is none (yet)."""
        owner, place = self.recorded_pods.get(name, ("", 0))
        known = self.pods.get(self.name(owner), [])
        return known[place] if place < len(known) else name if not owner else ""

    async def _report(self, resource: Resource[Any], name: str, status: Json) -> None:
        """Somebody else's status, as it was recorded; what is gone here is told of no more."""
        told = json.loads(json.dumps(status).replace("<time>", self.world.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")))
        told.pop("failedImageStatuses", None)
        with contextlib.suppress(NotFoundError):
            await self.world.patch(resource, name, {"status": told}, subresource="status")

    def name(self, text: str) -> str:
        """With the names of our runs for the recorded ones."""
        return _RUN.sub(lambda found: f"-{self._our_run(found[1])}", text)

    def plain(self, text: str) -> str:
        """With the recorded names for those of our runs."""
        return _RUN.sub(lambda found: f"-{self._recorded_run(found[1])}", text)

    def _our_run(self, recorded: str) -> str:
        if self.stage.runs_in_order and (place := self.recorded_runs.index(recorded)) < len(self.runs):
            return self.runs[place]
        return str(int(recorded) + self.shift)

    def _recorded_run(self, ours: str) -> str:
        if self.stage.runs_in_order and ours in self.runs and self.runs.index(ours) < len(self.recorded_runs):
            return self.recorded_runs[self.runs.index(ours)]
        return str(int(ours) - self.shift)

    def message(self, text: str) -> str:
        return re.sub(r"(pod: )\S+", r"\1<pod>", text)

    def picture(self, kind: str, found: Json) -> Mapping[str, Any]:
        status = found.get("status")
        return {"status": picture_of(kind, status)} if kind in COMPARED and status else {}


def picture_of(kind: str, status: Json) -> Json:
    """All of a status but its times."""
    if kind == "AdvancedCronJob":
        active = status.get("active") or ()
        names = sorted(active if isinstance(active, dict) else (one["name"] for one in active))
        return {"type": status.get("type", ""), "active": names, "ran": "lastScheduleTime" in status}
    conditions = status.get("conditions") or {}
    told = conditions if isinstance(conditions, dict) else {one["type"]: one for one in conditions}
    return {
        **{name: status.get(name) for name in ("desired", "active", "succeeded", "failed", "phase")},
        "ended": "completionTime" in status,
        "conditions": {name: [one["status"], one["reason"], one["message"]] for name, one in told.items()},
    }
