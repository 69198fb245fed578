"""Plays a recording of sidecars on ours: the same manifests and steps, in the same environment.

What is recorded on simulated nodes is played on the like: SidecarSets must come to the recorded hashes, byte by byte,
and counts after each step, and pods to what was printed of them. What is recorded on real nodes is played at the
recorded distances, on the node model with our daemon; after each step everything that the log tells is compared
(`pictures`), and so is the order in which pods were changed.
"""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from kruise.api.apps.broadcastjob import BROADCAST_JOBS
from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.containerrecreaterequest import REQUESTS
from kruise.api.apps.sidecarset import SIDECAR_SETS
from kruise.api.native.apps import CONTROLLER_REVISIONS, DEPLOYMENTS, JOBS
from kruise.api.native.config import CONFIG_MAPS
from kruise.api.native.events import EVENTS
from kruise.api.native.nodes import NAMESPACES
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.machinery.client.errors import ApiError
from kruise.machinery.client.requests import PatchType, Request, Verb
from kruise.sidecars.sidecarset import keys
from tests.recordings.comparison import Difference
from tests.recordings.environment import Watched
from tests.recordings.parsing import Recording, Step
from tests.recordings.player import Played
from tests.recordings.sidecarset import pictures
from tests.recordings.sidecarset.pictures import Recorded, as_recorded, heap, normal, pod_picture, set_picture
from tests.support.world import LocalWorld, resource_of

Json = dict[str, Any]
TIMESTAMP = "lifecycle.apps.kruise.io/timestamp"
CREATED: Mapping[str, Resource[Any]] = {
    one.kind: one for one in (SIDECAR_SETS, CLONE_SETS, PODS, DEPLOYMENTS, JOBS, BROADCAST_JOBS, CONFIG_MAPS)
}
COMPONENTS = ("sidecarset-controller", "sidecarterminator-controller")
PATIENCE = 40.0
_NOT_READY = "sim.kruise.io/never-ready."


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What a recording on real nodes leaves to the node model."""

    knobs: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)
    """By the name of a pod or workload: how its containers go."""
    later: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Pods that are made so many seconds after the one before."""
    seconds: Mapping[int, float] = dataclasses.field(default_factory=dict)
    """Steps with another distance to the next one than recorded."""
    settled: float = 3.0
    """Recorded steps that are further apart than this were waited for; ours may take `PATIENCE` more."""


class Player:
    def __init__(self, recording: Recording, world: LocalWorld, stage: Stage | None = None) -> None:
        self.recording = recording
        self.world = world
        self.recorded = Recorded(recording)
        self.differences: list[Difference] = []
        self.compared = 0
        self._stage = stage or Stage()
        self._left = [copy.deepcopy(one) for one in recording.manifests]
        self._created: dict[tuple[str, str], int] = {}

    async def run(self) -> Played:
        await self._prepare()
        for step, following in itertools.zip_longest(self.recording.steps, self.recording.steps[1:]):
            await self._do(step)
            self.recorded.until(step.number)
            await self._look(step, (following.at if following is not None else self.recording.end) - step.at)
        await self._finish()
        return Played(differences=self.differences, compared=self.compared, checked=0, revisions=[])

    def _differ(self, aspect: str, text: str) -> None:
        self.differences.append(Difference(aspect, text))

    # What the two environments do in their own way

    async def _prepare(self) -> None:
        await self.world.client.create(NAMESPACES, {"metadata": {"name": "demo-x", "labels": {"team": "x"}}})

    async def _look(self, step: Step, seconds: float) -> None:
        await self.world.sleep(2)
        if seconds < 0.75:
            return  # the next one came at once: nobody knows where this one would have led
        for name, recorded in self.recorded.sets.items():
            await self._compare_set(step, name, recorded)

    async def _finish(self) -> None:
        await self._compare_printed()

    # Steps

    async def _do(self, step: Step) -> None:
        try:
            await self._send(step)
            answer = ""
        except ApiError as error:
            answer = error.message
        if bool(answer) is not (step.refusal is not None):
            self._differ("answer", f"step {step.number}, {step.title}: {answer or 'accepted'}")

    async def _send(self, step: Step) -> None:
        title, world = step.title, self.world
        if step.form:
            await self._patch(step)
        elif title.startswith("create without the whitelist"):
            await world.create(self._manifest("SidecarSet", "side-patchpodmetadata"))
        elif title.startswith("annotation key outside"):
            manifest = copy.deepcopy(self._manifest("SidecarSet", "side-patchpodmetadata"))
            manifest["spec"]["patchPodMetadata"] = [{"annotations": {"other-key": "x"}, "patchPolicy": "Retain"}]
            await world.create(manifest)
        elif title.startswith("create ConfigMap kruise"):
            await world.client.create(CONFIG_MAPS, self._manifest("ConfigMap", "kruise-configuration"), "kruise-system")
        elif found := re.match(r"create pod (\S+)(?: in namespace (\S+))?", title):
            await world.client.create(PODS, self._bare_pod(found[1]), found[2] or "demo")
        elif found := re.match(r"create (\w+) (\S+)$", title):
            await world.create(self._again(found[1], found[2]))
        else:
            raise AssertionError(f"a step that nobody knows: {title}")

    def _manifest(self, kind: str, name: str) -> Json:
        return next(one for one in self.recording.manifests if (one["kind"], one["metadata"]["name"]) == (kind, name))

    def _again(self, kind: str, name: str) -> Json:
        """The second time it was corrected: the log tells how."""
        manifest = copy.deepcopy(self._manifest(kind, name))
        count = self._created[kind, name] = self._created.get((kind, name), 0) + 1
        if kind == "SidecarSet" and count == 2:
            manifest["spec"]["patchPodMetadata"][0]["annotations"] = {"json": '{"b":3,"c":4}'}
            manifest["spec"]["patchPodMetadata"][0]["patchPolicy"] = "MergePatchJson"
        return manifest

    def _bare_pod(self, name: str) -> Json:
        spec = {"containers": [{"name": "main", "image": "nginx:1.25"}]}
        return {"metadata": {"name": name, "labels": {"app": "web"}}, "spec": spec}

    async def _patch(self, step: Step) -> None:
        form = PatchType.JSON if step.form == "json" else PatchType.MERGE
        if "scale" in step.title:
            await self.world.patch(CLONE_SETS, "web", step.body, patch_type=form)
            return
        name = self._set_of(step.title)
        body = step.body
        text = json.dumps(body)
        if "-rev-1" in text:
            first = await self._revision(name, 1)
            body = json.loads(text.replace(f"{name}-rev-1", first))
        await self.world.patch(SIDECAR_SETS, name, body, patch_type=form)

    def _set_of(self, title: str) -> str:
        """The one that is named, or the latest that is there."""
        names = [one["metadata"]["name"] for one in self.recording.manifests if one["kind"] == "SidecarSet"]
        there = [name for name in names if name in self.recorded.sets]
        return next((name for name in re.findall(r"[\w-]+", title) if name in names), (there or names)[-1])

    async def _revision(self, name: str, number: int) -> str:
        found = await self.world.client.list(CONTROLLER_REVISIONS, "kruise-system", labels=f"{keys.NAME_LABEL}={name}")
        return next(one.metadata.name for one in found.items if one.revision == number)

    # What came of it

    async def _compare_set(self, step: Step, name: str, recorded: Json) -> None:
        wanted = set_picture(recorded)

        async def check() -> None:
            ours = set_picture(await self.world.get(SIDECAR_SETS, name))
            assert (ours["hashes"], ours["generation"]) == (wanted["hashes"], wanted["generation"]), ours
            assert ours["counts"] == wanted["counts"], f"counts recorded {wanted['counts']}, ours {ours['counts']}"

        self.compared += 1
        try:
            await self.world.until(check, within=60)
        except AssertionError as error:
            self._differ("set", f"after step {step.number}, {name}: {str(error).splitlines()[0]}")

    async def _compare_printed(self) -> None:
        example, name = self.recording.revision_example, ""
        for one in self.recording.manifests:
            if one["kind"] == "SidecarSet" and example.startswith(one["metadata"]["name"]):
                name = one["metadata"]["name"]
        if name and await self._revision(name, 1) != example:
            self._differ("revision", f"the first one is {await self._revision(name, 1)}, recorded {example}")
        for title, printed in self.recording.objects:
            if printed.get("kind") != "Pod":
                continue
            ours = [_printed(one) for one in await self.world.list(PODS)]
            wanted = _printed(printed)
            if wanted not in ours:
                self._differ("printed", f"{title}: {_differing(wanted, ours[0] if len(ours) == 1 else ours)}")
            self.compared += 1


def _printed(pod: Json) -> Json:
    """What a SidecarSet has to do with it."""
    spec = pod["spec"]
    annotations = {
        key: _without_hashes(normal(value))
        for key, value in pod["metadata"].get("annotations", {}).items()
        if key != TIMESTAMP
    }
    return {
        "annotations": annotations,
        "containers": [_container(one) for one in spec["containers"]],
        "initContainers": [_container(one) for one in spec.get("initContainers", ())],
        "volumes": [one for one in spec.get("volumes", ()) if not one["name"].startswith(pictures.TOKEN)],
        "imagePullSecrets": spec.get("imagePullSecrets", []),
    }


def _container(container: Json) -> Json:
    mounts = [one for one in container.get("volumeMounts", ()) if not one["name"].startswith(pictures.TOKEN)]
    shown = ("name", "image", "env", "resources", "volumeDevices", "restartPolicy", "imagePullPolicy")
    return {**{key: container[key] for key in shown if container.get(key)}, "volumeMounts": mounts}


def _without_hashes(value: Any) -> Any:
    """Those at the ends of revisions' names: on simulated nodes they were numbered."""
    text = re.sub(r'("controllerRevision": "[\w-]*?)-(?:rev-\d+|[0-9a-z]{8,10})"', r'\1"', json.dumps(value))
    return json.loads(text)


def _differing(wanted: Json, ours: Any) -> str:
    if not isinstance(ours, dict):
        return f"recorded {json.dumps(wanted)}, ours {json.dumps(ours)}"
    parts = [key for key in wanted if wanted[key] != ours[key]]
    return "; ".join(f"{key}: recorded {json.dumps(wanted[key])}, ours {json.dumps(ours[key])}" for key in parts)


class NodePlayer(Player):
    """With the node model under it."""

    async def _prepare(self) -> None:
        body = json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "demo"}}).encode()
        await self.world.client.send(Request(Verb.CREATE, NAMESPACES, body=body))
        self.world.namespace = "demo"
        self._pods = Watched(self.world, PODS)
        self._pods.listeners.append(self._see)
        self._names: dict[str, str] = {}
        """Ours -> what a workload's pod would be called in the log."""
        self._images: dict[str, dict[str, str]] = {}
        self._writes: list[str] = []
        self._requests: dict[str, tuple[str, list[str]]] = {}
        self._watching = asyncio.create_task(self._pods.run())
        await asyncio.sleep(0.5)

    def _see(self, kind: str, pod: Json) -> None:
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        if name not in self._names and pod["metadata"].get("ownerReferences"):
            self._names[name] = f"pod-{len(self._names) + 1}"
        images = {one["name"]: one["image"] for one in pod["spec"]["containers"]}
        before = self._images.get(uid, images)
        shown = pictures.ANY if name in self._names else name
        self._writes += [f"{shown}: {one} gets {images[one]}" for one in sorted(images) if before[one] != images[one]]
        self._images[uid] = images

    # Steps

    async def _send(self, step: Step) -> None:
        title, world = step.title, self.world
        if step.form:
            await self._patch(step)
        elif found := re.match(r"patch both SidecarSets to image (\S+)", title):
            for name in ("lab-two-a", "lab-two-b"):
                await self._set_image(SIDECAR_SETS, name, found[1])
        elif found := re.match(
            r"patch both at the same time: SidecarSet image (\S+), CloneSet (image|env) (\S+)", title
        ):
            if found[2] == "image":
                await self._set_image(CLONE_SETS, "web", found[3])
            else:
                name, _, value = found[3].partition("=")
                added = {
                    "op": "add",
                    "path": "/spec/template/spec/containers/0/env",
                    "value": [{"name": name, "value": value}],
                }
                await world.patch(CLONE_SETS, "web", [added], patch_type=PatchType.JSON)
                await asyncio.sleep(0.8)  # a pod is made with the sidecar of before, as it was there
            await self._set_image(SIDECAR_SETS, "lab-both", found[1])
        elif title == "create ConfigMap p1-barrier by hand with key p_0":
            body = {"metadata": {"name": "p1-barrier"}, "data": {"p_0": "true"}}
            await world.client.create(CONFIG_MAPS, body, world.namespace)
        elif title.startswith("create "):
            for manifest in list(self._next_manifests(title)):
                await asyncio.sleep(self._stage.later.get(manifest["metadata"]["name"], 0.0))
                await self._create(manifest)
        elif title.startswith("delete the CRR"):
            for one in await world.list(REQUESTS):
                if one["spec"]["podName"] == "again":
                    await world.delete(REQUESTS, one["metadata"]["name"])
        elif found := re.match(r"delete (\w+) (\S+)", title):
            await world.delete(CREATED[found[1]], found[2], propagation="Background")
        elif found := re.match(r"(first|second) (becomes|loses) read", title):
            value = None if found[2] == "becomes" else "true"
            await world.patch(PODS, "p", {"metadata": {"annotations": {_NOT_READY + found[1]: value}}})
        elif title.startswith("kill first"):
            await world.patch(PODS, "p", {"metadata": {"annotations": {_NOT_READY + "first": "true"}}})
            body = {"metadata": {"name": "kill"}, "spec": {"podName": "p", "containers": [{"name": "first"}]}}
            await world.client.create(REQUESTS, body, world.namespace)
        else:
            assert title == "wait" or title.startswith("env "), f"a step that nobody knows: {title}"

    def _next_manifests(self, title: str) -> Iterator[Json]:
        """They are listed in the order in which they were made."""
        words = set(re.findall(r"[\w-]+", title))
        if found := re.search(r"p(\d) \.\. p(\d)", title):
            words |= {f"p{number}" for number in range(int(found[1]), int(found[2]))}
        made: list[str] = []
        while self._left and (name := self._left[0]["metadata"]["name"]) in words and name not in made:
            made.append(name)
            yield self._left.pop(0)
        assert made, f"nobody knows what is made: {title}"

    async def _create(self, manifest: Json) -> None:
        knobs = self._stage.knobs.get(manifest["metadata"]["name"], {})
        shaped = manifest["spec"].get("template", manifest)
        if knobs:
            # Nothing is written to files there: knobs tell how it goes.
            metadata = shaped.setdefault("metadata", {})
            metadata["annotations"] = {**metadata.get("annotations", {}), **knobs}
            for container in shaped["spec"]["containers"]:
                if "/d/x" in container.get("command", [""])[-1]:
                    container["command"] = ["sleep", "1"]
                if "readinessProbe" in container:
                    container["readinessProbe"]["exec"]["command"] = ["true"]
        kind = CREATED[manifest["kind"]]
        resource = resource_of(manifest) if "kruise" in manifest["apiVersion"] else kind
        body = json.dumps(manifest).encode()
        await self.world.client.send(Request(Verb.CREATE, resource, self.world.place_of(resource), body=body))

    async def _set_image(self, resource: Resource[Any], name: str, image: str) -> None:
        where = "/spec" if resource is SIDECAR_SETS else "/spec/template/spec"
        body = [{"op": "replace", "path": f"{where}/containers/0/image", "value": image}]
        await self.world.patch(resource, name, body, patch_type=PatchType.JSON)

    async def _patch(self, step: Step) -> None:
        if found := re.match(r"patch Pod ([\w-]+):", step.title):
            ours = next((name for name, recorded in self._names.items() if recorded == found[1]), found[1])
            await self.world.patch(PODS, ours, step.body, patch_type=PatchType.STRATEGIC)
        elif "CloneSet" in step.title:
            await self.world.patch(CLONE_SETS, "web", step.body)
        else:
            form = PatchType.JSON if step.form == "json" else PatchType.MERGE
            manifest = self.recording.manifests[0]
            resource = resource_of(manifest) if manifest["kind"] == "SidecarSet" else SIDECAR_SETS
            await self.world.patch(resource, self._set_of(step.title), step.body, patch_type=form)

    # What came of it

    async def _look(self, step: Step, seconds: float) -> None:
        wanted, is_last = self._told(), step is self.recording.steps[-1]
        await asyncio.sleep(self._stage.seconds.get(step.number, max(seconds - 0.1, 0.0)))
        found = await self._ours()
        deadline = self.world.clock.monotonic() + (PATIENCE if seconds >= self._stage.settled or is_last else 0.0)
        while found != wanted and self.world.clock.monotonic() < deadline:
            await asyncio.sleep(0.5)
            found = await self._ours()
        for aspect, recorded in wanted.items():
            ours = found[aspect]
            self.compared += len(recorded)
            for name in sorted({*recorded, *ours}):
                for text in pictures.unlike(recorded.get(name), ours.get(name)):
                    self._differ(aspect, f"after step {step.number}, {name}: {text}")
        if self.recorded.writes != self._writes:
            text = f"recorded {self.recorded.writes}, ours {self._writes}"
            self._differ("order", f"after step {step.number}: {text}")
        self._writes = []

    def _told(self) -> dict[str, Json]:
        known = self.recorded.objects
        jobs = {**known.get("Job", {}), **known.get("BroadcastJob", {})}
        asked = {one["spec"]["podName"]: sorted(one["spec"]["containers"]) for one in self.recorded.requests}
        return {
            "set": {name: set_picture(one) for name, one in self.recorded.sets.items()},
            "revision": {
                name: pictures.revision_picture(one) for name, one in known.get("ControllerRevision", {}).items()
            },
            "pod": heap({name: pod_picture(one) for name, one in known.get("Pod", {}).items()}),
            "barrier": {name: sorted(one.get("data", {})) for name, one in known.get("ConfigMap", {}).items()},
            "request": heap(asked),
            "job": {name: _ended(one) for name, one in jobs.items()},
        }

    async def _ours(self) -> dict[str, Json]:
        world = self.world
        pods = {one["metadata"]["name"]: one for one in await world.list(PODS)}
        for one in await world.list(REQUESTS):
            if one["metadata"]["name"].startswith("sidecar-termination-"):
                asked = sorted(item["name"] for item in one["spec"]["containers"])
                self._requests[one["metadata"]["uid"]] = (one["spec"]["podName"], asked)
        requests = {self._names.get(name, name): asked for name, asked in self._requests.values()}
        revisions: Json = {}
        if self.recorded.objects.get("ControllerRevision") is not None:
            query = (("labelSelector", keys.NAME_LABEL),)
            answer = await world.client.send(Request(Verb.LIST, CONTROLLER_REVISIONS, "kruise-system", query=query))
            for one in json.loads(answer.body)["items"]:
                revisions[one["metadata"]["name"]] = pictures.revision_picture(one)
        barriers = {
            _renamed(one["metadata"]["name"], self._names): sorted(one.get("data") or {})
            for one in await world.list(CONFIG_MAPS)
            if one["metadata"]["name"].endswith("-barrier")
        }
        return {
            "set": {one["metadata"]["name"]: set_picture(one) for one in await world.list(SIDECAR_SETS)},
            "revision": revisions,
            "pod": heap(
                {self._names.get(name, name): pod_picture(as_recorded(one, self._names)) for name, one in pods.items()}
            ),
            "barrier": barriers,
            "request": heap(requests),
            "job": {
                one["metadata"]["name"]: _ended(one)
                for resource in (JOBS, BROADCAST_JOBS)
                for one in await world.list(resource)
            },
        }

    async def _finish(self) -> None:
        self._watching.cancel()
        recorded = {
            (_POD_NAME.sub(pictures.ANY, row.target), row.type, row.reason, row.message)
            for row in self.recording.events
            if row.component in COMPONENTS
        }
        ours = set()
        places = (self.world.namespace, "default")
        for place in places:
            answer = await self.world.client.send(Request(Verb.LIST, EVENTS, place))
            for one in json.loads(answer.body)["items"]:
                if (one.get("source", {}).get("component") or one.get("reportingComponent")) in COMPONENTS:
                    subject = one["involvedObject"]
                    name = pictures.ANY if subject["name"] in self._names else subject["name"]
                    ours.add((f"{subject['kind']}/{name}", one["type"], one["reason"], one["message"]))
        for row in sorted(recorded ^ ours):
            self._differ("event", f"{'recorded' if row in recorded else 'ours'} only: {' '.join(row)}")
        self.compared += len(recorded)


_POD_NAME = re.compile(r"\bpod-\d+\b")


def _renamed(name: str, names: Mapping[str, str]) -> str:
    for ours, recorded in names.items():
        name = name.replace(ours, recorded)
    return name


def _ended(job: Json) -> Any:
    status = job.get("status", {})
    conditions = status.get("conditions") or ()
    types = conditions if isinstance(conditions, dict) else [one["type"] for one in conditions]
    return sorted(set(types) & {"Complete", "Failed"}) or status.get("phase")
