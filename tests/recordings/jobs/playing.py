"""Plays a recording of jobs on ours: the same manifests and steps at the same distances, on nodes that do what the
recorded ones did.

Nobody runs anything here: what a recorded node reported of the n-th pod of a job is reported of our n-th pod of it.
What the controllers did is not played but compared: every recorded status must come, in its order, and be the last one;
the same objects must be there in the end, and the same events must have been told.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import copy
import dataclasses
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from kruise.api.apps.advancedcronjob import ADVANCED_CRON_JOBS
from kruise.api.apps.broadcastjob import BROADCAST_JOBS
from kruise.api.apps.images import IMAGE_LIST_PULL_JOBS
from kruise.api.native.apps import JOBS
from kruise.api.native.events import EVENTS
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.machinery.client.errors import ApiError, NotFoundError
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.patches import merge
from tests.recordings.comparison import Difference
from tests.recordings.environment import Watched
from tests.recordings.player import Played
from tests.support.world import LocalWorld

Json = dict[str, Any]
KINDS: Mapping[str, Resource[Any]] = {
    one.kind: one for one in (BROADCAST_JOBS, ADVANCED_CRON_JOBS, IMAGE_LIST_PULL_JOBS, JOBS)
}
COMPARED = ("BroadcastJob", "AdvancedCronJob")
COMPONENTS = ("broadcastjob-controller", "advancedcronjob-controller")
TAIL = 4.0
"""Seconds after the last line."""
_LINE = re.compile(r"\+([0-9.]+) (.*)")
_STEP = re.compile(r"^(\d+)\. (.*)$", re.MULTILINE)
_RUN = re.compile(r"-(\d{10})\b")


@dataclasses.dataclass(frozen=True, slots=True)
class Moment:
    at: float
    target: str
    """`Pod/pod-1`; `#3` for the third step."""
    text: str

    @property
    def document(self) -> Json:
        start = self.text.find("{")
        found: Json = json.loads(self.text[start:]) if start >= 0 and not self.target.startswith("#") else {}
        return found


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class JobRecording:
    name: str
    manifests: tuple[Json, ...]
    steps: tuple[str, ...]
    moments: tuple[Moment, ...]
    events: Mapping[tuple[str, ...], int]

    def manifest(self, name: str) -> Json:
        return next(copy.deepcopy(one) for one in self.manifests if one["metadata"]["name"] == name)


def read(path: Path) -> JobRecording:
    parts = re.split(r"^## (.+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    blocks = re.findall(r"^```yaml\n(.*?)^```", sections["Manifest"], flags=re.MULTILINE | re.DOTALL)
    return JobRecording(
        name=path.stem,
        manifests=tuple(yaml.safe_load(block) for block in blocks),
        steps=tuple(text for _, text in _STEP.findall(sections["Steps"])),
        moments=tuple(_moments(sections["Log"])),
        events=_events(sections["Events"]),
    )


def _moments(section: str) -> Iterator[Moment]:
    steps = 0
    for raw in section.splitlines():
        found = _LINE.fullmatch(raw)
        if found is None or found[2].lstrip().startswith(("->", "Event ")):
            continue
        if found[2].startswith("#### "):
            steps += 1
            yield Moment(float(found[1]), f"#{steps}", found[2].removeprefix("#### "))
        else:
            target, _, text = found[2].partition(" ")
            yield Moment(float(found[1]), target, text)


def _events(section: str) -> dict[tuple[str, ...], int]:
    """By object, type, reason and message. The two sorts of recordings have their columns in another order."""
    found: collections.Counter[tuple[str, ...]] = collections.Counter()
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) != 6 or not any(component in cells for component in COMPONENTS):
            continue
        if "/" in cells[0]:
            target, kind, reason, message = cells[:4]
            count = int(cells[4].rpartition("/")[2])
        else:
            kind, reason, target, message = cells[:4]
            count = int(cells[5].partition("/")[0])
        found[target, kind, reason, _without_pods(message)] += count
    return found


def _without_pods(message: str) -> str:
    return re.sub(r"(pod: )\S+", r"\1<pod>", message)


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


class Player:
    def __init__(self, recording: JobRecording, stage: Stage, world: LocalWorld) -> None:
        self.recording = recording
        self.stage = stage
        self.world = world
        self.shift = 0
        """Seconds from the recorded runs to ours."""
        self.pods: dict[str, list[str]] = collections.defaultdict(list)
        """Of each job, in the order of creation."""
        self.recorded_pods: dict[str, tuple[str, int]] = {}
        self.recorded: dict[str, list[Json]] = collections.defaultdict(list)
        self.ours: dict[str, list[Json]] = collections.defaultdict(list)
        self.runs: list[str] = []
        """The unix times in the names of ours, in the order of creation."""
        runs = (_RUN.search(one.target) for one in recording.moments if one.text.startswith("ADDED"))
        self.recorded_runs = list(dict.fromkeys(found[1] for found in runs if found is not None))
        self.differences: list[Difference] = []
        self._statuses: dict[str, Json] = {}
        self._there: set[str] = set()
        self._pod_uids: set[str] = set()

    async def run(self) -> Played:
        await self._make_nodes()
        watches = [Watched(self.world, resource) for resource in (PODS, *KINDS.values())]
        watches[0].listeners.append(self._see_pod)
        for watched in watches[1:]:
            watched.listeners.append(self._see)
        tasks = [asyncio.create_task(part) for part in (*(watched.run() for watched in watches), self._reap())]
        await self._wait_for_the_time()
        begin, now = self.world.clock.monotonic(), 0.0
        for moment in self.recording.moments:
            await asyncio.sleep(max(moment.at - now, 0.0))
            now = self.world.clock.monotonic() - begin
            await self._play(moment)
        await asyncio.sleep(TAIL)
        for kind in COMPARED:
            self._compare_statuses(kind)
        await self._compare_objects()
        await self._compare_events()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        compared = sum(map(len, self.recorded.values()))
        return Played(differences=self.differences, compared=compared, checked=0, revisions=[])

    # The environment

    async def _make_nodes(self) -> None:
        status = {"allocatable": {"pods": "110", "cpu": "2", "memory": "4Gi"}}
        for name in self.stage.nodes:
            labels = {"kubernetes.io/hostname": name, **self.stage.labels}
            node = {"metadata": {"name": name, "labels": labels}, "spec": {"taints": list(self.stage.taints)}}
            await self.world.client.create(NODES, node)
            await self.world.client.patch(NODES, name, {"status": status}, subresource="status")

    async def _wait_for_the_time(self) -> None:
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

    def _see(self, kind: str, found: Json) -> None:
        if kind == "ADDED" and (run := _RUN.search(found["metadata"]["name"])) and run[1] not in self.runs:
            self.runs.append(run[1])
        picture = _picture(found["kind"], found.get("status", {}))
        known = self.ours[f"{found['kind']}/{found['metadata']['name']}"]
        if kind != "DELETED" and found.get("status") and (not known or known[-1] != picture):
            known.append(picture)

    # What is played

    async def _play(self, moment: Moment) -> None:
        kind, _, name = moment.target.partition("/")
        if moment.target.startswith("#"):
            await self._step(self.recording.steps[int(moment.target[1:]) - 1])
        elif kind == "Pod":
            await self._pod(name, moment)
        elif kind in KINDS:
            self._note(kind, self._name(name), moment)
            if kind == "ImageListPullJob" and "status" in moment.document:
                await self._report(IMAGE_LIST_PULL_JOBS, self._name(name), moment.document["status"])

    async def _step(self, step: str) -> None:
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
                self._same("refusal", step, 422, error.status.code)
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
                self._same("refusal", str(request), code, error.status.code)
                raise
            self._same("refusal", str(request), code, 200)

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
        known = self.pods.get(self._name(owner), [])
        return known[place] if place < len(known) else name if not owner else ""

    async def _report(self, resource: Resource[Any], name: str, status: Json) -> None:
        """Somebody else's status, as it was recorded; what is gone here is told of no more."""
        told = json.loads(json.dumps(status).replace("<time>", self.world.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")))
        told.pop("failedImageStatuses", None)
        with contextlib.suppress(NotFoundError):
            await self.world.patch(resource, name, {"status": told}, subresource="status")

    def _name(self, text: str) -> str:
        """With the names of our runs for the recorded ones."""
        return _RUN.sub(lambda found: f"-{self._our_run(found[1])}", text)

    def _plain(self, told: Any) -> str:
        """With the recorded names for those of our runs."""
        text = told if isinstance(told, str) else json.dumps(told, sort_keys=True)
        return _RUN.sub(lambda found: f"-{self._recorded_run(found[1])}", text)

    def _our_run(self, recorded: str) -> str:
        if self.stage.runs_in_order and (place := self.recorded_runs.index(recorded)) < len(self.runs):
            return self.runs[place]
        return str(int(recorded) + self.shift)

    def _recorded_run(self, ours: str) -> str:
        if self.stage.runs_in_order and ours in self.runs and self.runs.index(ours) < len(self.recorded_runs):
            return self.recorded_runs[self.runs.index(ours)]
        return str(int(ours) - self.shift)

    # What is compared

    def _note(self, kind: str, name: str, moment: Moment) -> None:
        key = f"{kind}/{name}"
        if moment.text == "DELETED":
            self._there.discard(key)
            return
        self._there.add(key)
        if "status" in moment.document and kind in COMPARED:
            told = json.loads(self._name(json.dumps(moment.document)))
            self._statuses[key] = merge.apply(self._statuses.get(key, {}), told["status"])
            picture = _picture(kind, self._statuses[key])
            if not self.recorded[key] or self.recorded[key][-1] != picture:
                self.recorded[key].append(picture)

    def _compare_statuses(self, kind: str) -> None:
        for key, recorded in self.recorded.items():
            if not key.startswith(f"{kind}/"):
                continue
            ours, place = self.ours[key], 0
            for picture in recorded:
                if picture in ours[place:]:
                    place = ours.index(picture, place)
                else:
                    self._differ("status", f"{self._plain(key)}: {self._plain(picture)} does not come")
            last = ours[-1] if ours else {}
            if last != recorded[-1]:
                told = f"recorded {self._plain(recorded[-1])}, ours {self._plain(last)}"
                self._differ("end", f"{self._plain(key)}: {told}")

    async def _compare_objects(self) -> None:
        for kind, resource in KINDS.items():
            ours = {f"{kind}/{one['metadata']['name']}" for one in await self.world.list(resource)}
            recorded = {key for key in self._there if key.startswith(f"{kind}/")}
            for key in sorted(ours ^ recorded):
                self._differ("objects", f"{self._plain(key)} is {'left' if key in ours else 'gone'} in the end")

    async def _compare_events(self) -> None:
        ours: collections.Counter[tuple[str, ...]] = collections.Counter()
        for event in await self.world.list(EVENTS):
            if event.get("source", {}).get("component") in COMPONENTS:
                target = f"{event['involvedObject']['kind']}/{event['involvedObject']['name']}"
                ours[target, event["type"], event["reason"], _without_pods(event["message"])] += event.get("count") or 1
        recorded = {tuple(map(self._name, key)): count for key, count in self.recording.events.items()}
        for key in sorted({*ours, *recorded}):
            if ours[key] != recorded.get(key, 0):
                counts = f"recorded {recorded.get(key, 0)} times, ours {ours[key]} times"
                self._differ("events", f"{self._plain(' '.join(key))}: {counts}")

    def _same(self, aspect: str, where: str, recorded: Any, ours: Any) -> None:
        if recorded != ours:
            self._differ(aspect, f"{where}: recorded {recorded!r}, ours {ours!r}")

    def _differ(self, aspect: str, text: str) -> None:
        self.differences.append(Difference(aspect, text))


def _picture(kind: str, status: Json) -> Json:
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
