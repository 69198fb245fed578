"""Plays a recording on ours: the same manifests and steps at the same distances, in the same environment."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import json
import re
from collections.abc import Mapping
from typing import Any

from kruise.api.native.apps import CONTROLLER_REVISIONS
from kruise.api.native.events import EVENTS
from kruise.api.native.pod import PODS
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES
from kruise.api.resource import Resource
from kruise.machinery.client.errors import ApiError
from kruise.machinery.client.requests import PatchType, Request, Verb
from kruise.machinery.clock import run_virtual
from kruise.machinery.times import format_time
from tests.recordings.comparison import Comparison, Difference, Look
from tests.recordings.directions import Directions
from tests.recordings.environment import Watched, recorded_world
from tests.recordings.kinds import RecordedKind, unchanged
from tests.recordings.ours import Names
from tests.recordings.parsing import Json, Recording, Step
from tests.recordings.recorded import Recorded, Replay
from tests.support.world import LocalWorld

STORAGE: Mapping[str, Resource[Any]] = {one.kind: one for one in (PERSISTENT_VOLUMES, STORAGE_CLASSES)}
SETTLED = 0.75
"""A recorded state is compared when the next step came no sooner than so many seconds later."""
TAIL = 10.0
"""Seconds given to the last step beyond the end of the log."""


@dataclasses.dataclass(slots=True, kw_only=True)
class Played:
    differences: list[Difference]
    compared: int
    """How many states were compared."""
    checked: int
    """At how many events the invariants were checked."""
    revisions: list[str]
    """The names of our revisions, in the order of their creation."""
    pod_writes: int = 0
    """What the manager wrote on pods and their subresources."""


def play(
    recording: Recording, kind: RecordedKind, directions: Directions | None = None, *, version: str = "", seed: int = 1
) -> Played:
    """`version`: the one that the user writes objects in; they are read and compared in the one that was recorded."""
    directed = directions or Directions()

    async def main() -> Played:
        environment = recorded_world(
            recording.nodes,
            late=directed.late,
            gates=recording.gates,
            with_pool=not kind.is_per_node,
            seed=seed,
        )
        async with environment as (world, pods, manager):
            player = Player(recording, kind, directed, world, pods, version or kind.resource.version)
            result = await player.run()
            return dataclasses.replace(result, pod_writes=manager.pod_writes)

    return run_virtual(main())


class Player:
    def __init__(
        self,
        recording: Recording,
        kind: RecordedKind,
        directions: Directions,
        world: LocalWorld,
        pods: Watched,
        version: str,
    ) -> None:
        self.recording = recording
        self.kind = kind
        self.resource = dataclasses.replace(kind.resource, version=version)
        is_other = version != kind.resource.version
        self.manifests = [kind.manifest_in_other(m) if is_other else m for m in recording.manifests]
        self.patch = kind.patch_in_other if is_other else unchanged
        self.directions = directions
        self.world = world
        self.pods = pods
        self.replay = Replay(recording, kind.kind, directions.gap, has_states=kind.has_states)
        self.names = Names(names_pods=kind.names_pods)
        self.comparison = Comparison(recording, kind, self.names)
        self.revisions = Watched(world, CONTROLLER_REVISIONS)
        self.workloads = Watched(world, kind.resource)
        self.promises = kind.promises(world.clock)
        self.revisions.listeners.append(self.names.see_revision)
        pods.listeners += [self.names.see_pod, self.comparison.see_act, self.promises.see_pod]
        self.workloads.listeners += [self.promises.see_workload, self.comparison.see_workload]

    async def run(self) -> Played:
        for obj in self.directions.objects:
            await self.world.client.create(STORAGE[obj["kind"]], obj)
        watches = [asyncio.create_task(part.run()) for part in (self.revisions, self.workloads)]
        await asyncio.sleep(0)
        steps = self.recording.steps
        for step in steps:
            following = steps[step.number].at if step.number < len(steps) else self.recording.end + TAIL
            self.replay.until_step(step.number)
            await self._do(step)
            pause = self.directions.waits.get(step.number, following - step.at)
            glance = self.directions.glances.get(step.number, 0.0)
            if glance:
                await asyncio.sleep(glance)
                self.comparison.glances.append(
                    await self._look(self.replay.until_step(step.number + 1, at=step.at + glance))
                )
            await asyncio.sleep(pause - glance)
            recorded = self.replay.until_step(step.number + 1)
            self.comparison.note_known(recorded)
            if pause >= SETTLED and step.number not in self.directions.unsettled:
                in_order = step.number not in self.directions.together
                look = await self._look(recorded)
                if self.directions.spread:
                    self.comparison.compare_spread(step, look)
                self.comparison.compare(step, look, self.replay.take_acts(), in_order=in_order)
            await self._compare_scale(step)
        await asyncio.sleep(10)  # events are written in the background
        self.comparison.compare_events(await self.world.list(EVENTS))
        self.comparison.compare_printed()
        self.comparison.compare_revision_names()
        for broken in self.promises.broken:
            self.comparison.differ("invariant", broken)
        for task in watches:
            task.cancel()
        await asyncio.wait(watches)
        return Played(
            differences=self.comparison.found,
            compared=len(self.comparison.looks),
            checked=self.promises.checked,
            revisions=self.names.raw_revisions,
        )

    async def _compare_scale(self, step: Step) -> None:
        """The scale subresource was read once, after the first step."""
        for title, printed in self.recording.objects:
            if printed["kind"] == "Scale" and step.number == 1:
                name = printed["metadata"]["name"]
                request = Request(Verb.GET, self.resource, self.world.namespace, name, "scale")
                scale = json.loads((await self.world.client.send(request)).body)
                for key in ("apiVersion", "kind", "spec", "status"):
                    if scale[key] != printed[key]:
                        self.comparison.differ("scale", f"{title}: printed {printed[key]!r}, ours {scale[key]!r}")

    # Steps

    async def _do(self, step: Step) -> None:
        try:
            await self._send(step)
        except ApiError as error:
            code, message = error.code, self.names.without_pods(error.message)
        else:
            code, message = 200, ""
        expected = step.refusal
        if expected is None:
            if code != 200:
                self.comparison.differ("answer", f"step {step.number} ({step.title}) was refused: {code} {message}")
            return
        wanted = re.sub(r"pod-\d+", "pod-N", expected.message)
        if code != expected.code or not _core(message).startswith(_core(wanted)):
            self.comparison.differ(
                "answer",
                f"step {step.number} ({step.title}): recorded {expected.code} {wanted!r}, ours {code} {message!r}",
            )

    async def _send(self, step: Step) -> None:
        title, world = step.title, self.world
        if found := re.match(rf"create {self.kind.kind} (\S+)$", title):
            await world.create(next(m for m in self.manifests if m["metadata"]["name"] == found[1]))
        elif title == f"create a {self.kind.kind} with the same name and selector":
            await world.create(self.manifests[0])
        elif title == "create without readiness gate (refused)":
            manifest = copy.deepcopy(self.manifests[0])
            del manifest["spec"]["template"]["spec"]["readinessGates"]
            await world.create(manifest)
        elif title == "create web2":
            manifest = json.loads(json.dumps(self.manifests[0]).replace('"web"', '"web2"'))
            manifest["spec"]["replicas"] = 1
            await world.create(manifest)
        elif title == "create a bare pod with label app=web":
            await world.create(_bare_pod())
        elif title == "HPA with minReplicas 4":
            await asyncio.sleep(15)
            await world.client.set_scale(self.resource, "web", 4, world.namespace)
        elif found := re.match(rf"delete {self.kind.kind}/(\S+)(?: (\{{.*\}}))?", title):
            policy = json.loads(found[2])["propagationPolicy"] if found[2] else ""
            await world.delete(self.resource, found[1], propagation=policy)
        elif title.startswith("delete "):
            name = self._pod(step)
            self.promises.deleted(name)
            await world.delete(PODS, name)
        elif title.startswith("set phase Failed") or title.endswith(" phase Failed"):
            name = self._pod(step)
            self.promises.touched(name)
            await world.patch(PODS, name, {"status": {"phase": "Failed", "reason": "Evicted"}}, subresource="status")
        elif found := re.match(r"set condition (\S+)=(\w+) on (\S+)", title):
            await self._set_condition(step, found[1], found[2], found[3])
        elif step.form:
            await self._patch(step)
        else:
            raise AssertionError(f"a step that nobody knows how to do: {title}")

    async def _set_condition(self, step: Step, kind: str, status: str, pod: str) -> None:
        self.replay.set_condition(pod, kind, status)
        condition = {"type": kind, "status": status, "lastTransitionTime": format_time(self.world.clock.now())}
        body = {"status": {"conditions": [condition]}}
        name = self._pod(step)
        self.promises.touched(name)
        await self.world.patch(PODS, name, body, subresource="status", patch_type=PatchType.STRATEGIC)

    async def _patch(self, step: Step) -> None:
        form = PatchType.JSON if step.form == "json" else PatchType.MERGE
        if found := re.match(r"the storage side reports capacity \S+ for ([\w-]+)", step.title):
            body = _timed(step.body, self.world)
            volume = (await self.world.get(PERSISTENT_VOLUME_CLAIMS, found[1]))["spec"]["volumeName"]
            capacity = {"spec": {"capacity": body["status"]["capacity"]}}
            await self.world.client.patch(PERSISTENT_VOLUMES, volume, capacity)
            await self.world.patch(PERSISTENT_VOLUME_CLAIMS, found[1], body, subresource="status")
            return
        if step.form == "merge" and set(step.body) == {"metadata"}:
            name = self._pod(step)
            self.promises.touched(name)
            await self.world.patch(PODS, name, step.body, patch_type=form)
            return
        subresource = "scale" if "subresource" in step.title else ""
        body = step.body
        if isinstance(body, dict):
            strategy = body.get("spec", {}).get("scaleStrategy", {})
            if "podsToDelete" in strategy:
                named = [self._bound(name) if name.startswith("pod-") else name for name in strategy["podsToDelete"]]
                body = {**body, "spec": {**body["spec"], "scaleStrategy": {"podsToDelete": named}}}
            if not subresource:
                body = self.patch(body)
        target = [m["metadata"]["name"] for m in self.recording.manifests if m["kind"] == self.kind.kind]
        living = [name for name in target if name in self.workloads.latest]
        await self.world.patch(self.resource, living[-1], body, patch_type=form, subresource=subresource)

    def _pod(self, step: Step) -> str:
        """The pod that a step is about, of ours."""
        if step.number in self.directions.targets:
            return self._bound(self.directions.targets[step.number])
        found = re.search(r"\bweb-\d+" if self.kind.names_pods else r"pod-\d+", step.title)
        if found:
            return self._bound(found[0])
        for word, name in (("first pod", "pod-1"), ("second pod", "pod-2")):
            if word in step.title:
                return self._bound(name)
        raise AssertionError(f"nobody says which pod step {step.number} ({step.title}) is about")

    def _bound(self, name: str) -> str:
        return self.comparison.bind(name, self.pods.latest)

    async def _look(self, recorded: Recorded) -> Look:
        return Look(
            recorded=recorded,
            workloads={obj["metadata"]["name"]: obj for obj in await self.world.list(self.kind.resource)},
            pods={obj["metadata"]["name"]: obj for obj in await self.world.list(PODS)},
            revisions={obj["metadata"]["name"]: obj for obj in await self.world.list(CONTROLLER_REVISIONS)},
            claims=await self.world.list(PERSISTENT_VOLUME_CLAIMS),
        )


def _timed(body: Json, world: LocalWorld) -> Json:
    """With a time where the recording hides it."""
    changed: Json = json.loads(json.dumps(body).replace("<time>", format_time(world.clock.now())))
    return changed


def _core(message: str) -> str:
    """Field, reason and text of a refusal, without the webhook's name and the way a value is written down."""
    message = re.sub(r'^admission webhook "[^"]+"', "admission webhook", message)
    values = r'(?:\[\]string)?\{[^}]*\}|\[\][\w.]+\(nil\)|\[[^\]]*\]|"[^"]*"|\d+'
    return re.sub(rf"Invalid value: (?:{values}): ", "Invalid value: ", message)


def _bare_pod() -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "orphan", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "nginx:1.25"}]},
    }
