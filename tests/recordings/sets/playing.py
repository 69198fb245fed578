"""Recordings of workloads on real nodes, played on the local cluster with its node model and node daemons.

Kubelets have a pace of their own, so what is compared after each step is what happened to pods, in order: which came,
which were told to go, which were changed in place, and to which revision; then which of their containers were started
again, and what somebody saw who looked into one. In the end the status is compared, and the pods that are printed.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS
from kruise.inplace.keys import REVISION_LABEL, STATE_LABEL
from kruise.machinery.client.requests import PatchType
from kruise.workloads.cloneset.claims import INSTANCE_ID_LABEL
from tests.support.rollout_log import Sign, watching
from tests.support.world import LocalWorld, resource_of, run_local

Json = dict[str, Any]
GATES = ",".join(
    f"{gate}=true"
    for gate in (
        *("ImagePullJobGate", "PreDownloadImageForInPlaceUpdate", "PreDownloadImageForDaemonSetUpdate"),
        *("EnhancedLivenessProbe", "KruisePodReadinessGate"),
    )
)
"""Those of the recordings, as far as these kinds know them."""
ANY = "a pod"
"""Only a StatefulSet names its pods."""
LOOK = "what the container has"
SLACK = 20.0
"""Seconds beyond the recorded distance in which things must have happened."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    title: str
    seconds: float
    """Until the next one."""
    body: Any
    signs: tuple[str, ...]
    by_hand: Json
    """The first change of a pod: where somebody changed one by hand, this is it."""
    said: str
    """What a look into a container gave."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    manifest: Json
    others: tuple[Json, ...]
    """What is created together with it."""
    steps: tuple[Step, ...]
    counters: Mapping[str, int]
    """Of the status in the end, where it was recorded."""
    pods: Mapping[str, Json]
    """Those that are printed in the end, by name."""


def read(path: Path) -> Recording:
    text = re.sub(r"\bnode([1-9])\b", r"node-\1", path.read_text(encoding="utf-8"))
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    manifest, *others = [yaml.safe_load(block) for block in _blocks(sections["Manifest"])]
    bodies = [_body(line) for line in sections["Steps"].splitlines() if re.match(r"\d+\. ", line)]
    begun: list[_Begun] = []
    seen = _Seen(manifest)
    at = 0.0
    for line in sections["Log"].splitlines():
        found = re.match(r"\+([0-9.]+) (.*)", line)
        if found is None:
            continue
        at, told = float(found[1]), found[2]
        if told.startswith("#### "):
            begun.append(_Begun(told.removeprefix("#### "), at))
        elif told.startswith("Pod/"):
            begun[-1].note(told, seen)
        elif told.lstrip().startswith("-> "):
            begun[-1].said = told.strip().removeprefix("-> ") if begun[-1].title == LOOK else ""
    ends = [*(each.at for each in begun[1:]), at]
    steps = tuple(
        Step(
            title=each.title,
            seconds=end - each.at,
            body=bodies[number] if number < len(bodies) else None,
            signs=(*each.signs, *sorted(each.restarts)),
            by_hand=each.changes[0] if each.changes else {},
            said=each.said,
        )
        for number, (each, end) in enumerate(zip(begun, ends, strict=True))
    )
    printed = re.findall(r"^(\w+ \S+):\n\n```yaml\n(.*?)^```", sections["Final objects"], re.MULTILINE | re.DOTALL)
    final = {title: yaml.safe_load(text) for title, text in printed}
    status = final.get(f"{manifest['kind']} {manifest['metadata']['name']}", {}).get("status", {})
    return Recording(
        manifest=manifest,
        others=tuple(others),
        steps=steps,
        counters={name: value for name, value in status.items() if isinstance(value, int)},
        pods={title.removeprefix("Pod "): found for title, found in final.items() if title.startswith("Pod ")},
    )


class _Begun:
    """A step, as far as it is read."""

    def __init__(self, title: str, at: float) -> None:
        self.title, self.at = title, at
        self.signs: list[str] = []
        self.restarts: set[str] = set()
        self.changes: list[Json] = []
        self.said = ""

    def note(self, told: str, seen: _Seen) -> None:
        self.signs += seen.signs(told)
        self.restarts |= seen.restarts(told)
        if change := change_of(told):
            self.changes.append(change)


def _blocks(section: str) -> list[str]:
    return re.findall(r"^```yaml\n(.*?)^```", section, flags=re.MULTILINE | re.DOTALL)


def _body(line: str) -> Any:
    found = re.search(r": `([\[{].*)`$", line)
    return json.loads(found[1]) if found else None


def change_of(told: str) -> Json:
    """What a line says of the metadata and the spec of a pod."""
    found = re.search(r' (\{"(?:metadata|spec)".*)', told)
    return dict(json.JSONDecoder().raw_decode(found[1])[0]) if found else {}


class _Seen:
    """What a log has told of pods so far. Revisions are numbered as they come."""

    def __init__(self, manifest: Json) -> None:
        self._has_names = manifest["kind"] == "StatefulSet"
        self._revisions: dict[str, int] = {}
        self._worn: dict[str, str] = {}
        self._counts: dict[tuple[str, str], int] = {}

    def signs(self, told: str) -> list[str]:
        name, _, change = told.removeprefix("Pod/").partition(" ")
        metadata = change_of(told).get("metadata", {})
        if revision := metadata.get("labels", {}).get(REVISION_LABEL):
            act = "create" if change.startswith("ADDED") else "in-place"
            self._worn[name] = revision
            return [self._sign(act, name)]
        if "deletionTimestamp" in metadata:
            return [self._sign("delete", name)]
        return []

    def restarts(self, told: str) -> set[str]:
        name = told.removeprefix("Pod/").partition(" ")[0]
        found = set()
        for container, count in re.findall(r" container (\S+)\[[^]]*?restartCount=(\d+)", told):
            if int(count) > self._counts.get((name, container), 0):
                found.add(restart(container, name, is_subject=name in self._worn, has_names=self._has_names))
            self._counts[name, container] = int(count)
        return found

    def _sign(self, act: str, name: str) -> str:
        number = self._revisions.setdefault(self._worn[name], len(self._revisions) + 1)
        return f"{act} {name if self._has_names else ANY} at revision {number}"


def restart(container: str, pod: str, *, is_subject: bool, has_names: bool) -> str:
    """Once for all pods whose names are chance."""
    return f"container {container} of {ANY if is_subject and not has_names else pod} starts again"


# Played


def play(recording: Recording) -> list[str]:
    """In what ours differs, each in a line."""
    found: list[str] = []

    async def story(world: LocalWorld) -> None:
        await _Playing(world, recording, found).play()

    run_local(story, nodes=3, feature_gates=GATES)
    return found


class _Playing:
    def __init__(self, world: LocalWorld, recording: Recording, found: list[str]) -> None:
        self._world, self._recording, self._found = world, recording, found
        self._resource = resource_of(recording.manifest)
        self._name = recording.manifest["metadata"]["name"]
        self._has_names = recording.manifest["kind"] == "StatefulSet"
        self._revisions: dict[str, int] = {}
        spec = recording.manifest["spec"]
        selected = spec["selector"]["matchLabels"]
        self._selector = ",".join(f"{key}={value}" for key, value in selected.items())
        self._hooks = spec["template"]["metadata"]["labels"].keys() - selected.keys()
        self._node_label = ""

    async def play(self) -> None:
        async with watching(self._world.client, self._world.namespace, self._selector, self._world.clock) as log:
            for number, step in enumerate(self._recording.steps, 1):
                known, restarts = len(log.signs), await self._restarts()
                said = await self._take(step)
                await asyncio.sleep(step.seconds + SLACK)
                started = {
                    restart(container, pod, is_subject=is_subject, has_names=self._has_names)
                    for (pod, container, is_subject), count in (await self._restarts()).items()
                    if count > restarts.get((pod, container, is_subject), 0)
                }
                ours = (*(self._told(sign) for sign in log.signs[known:]), *sorted(started))
                self._compare(f"step {number}, {step.title}", list(step.signs), list(ours))
                self._compare(f"step {number}, {step.title}, what the container says", step.said, said)
        if not self._recording.steps[-1].title.startswith(f"delete {self._resource.kind}"):
            status = (await self._world.get(self._resource, self._name))["status"]
            for field, value in self._recording.counters.items():
                self._compare(f"status.{field}", value, status.get(field, 0))
        own = await self._world.pods(self._selector)
        names = [pod["metadata"]["name"] for pod in own]
        for name, printed in self._recording.pods.items():
            is_numbered = printed["metadata"].get("generateName") and len(names) == 1
            pod = await self._world.get(PODS, names[0] if is_numbered else name)
            for part, seen in _picture(printed).items():
                self._compare(f"{part} of pod {name}", seen, _picture(pod)[part])

    def _compare(self, what: str, recorded: Any, ours: Any) -> None:
        if recorded != ours:
            self._found.append(f"{what}: recorded {recorded}, ours {ours}")

    async def _restarts(self) -> dict[tuple[str, str, bool], int]:
        """Of each container, by pod; whether the pod is one of the workload's."""
        own = {pod["metadata"]["uid"] for pod in await self._world.pods(self._selector)}
        return {
            (pod["metadata"]["name"], status["name"], pod["metadata"]["uid"] in own): status["restartCount"]
            for pod in await self._world.pods()
            for status in pod["status"].get("containerStatuses", ())
        }

    def _told(self, sign: Sign) -> str:
        number = self._revisions.setdefault(sign.revision, len(self._revisions) + 1)
        return f"{sign.act} {sign.pod if self._has_names else ANY} at revision {number}"

    async def _take(self, step: Step) -> str:
        """Do it; what somebody gets to see who looks."""
        world = self._world
        if step.body is not None:
            kind = PatchType.JSON if isinstance(step.body, list) else PatchType.MERGE
            await world.patch(self._resource, self._name, step.body, patch_type=kind)
        elif step.title.startswith("create "):
            for manifest in (self._recording.manifest, *self._recording.others):
                await world.create(manifest)
        elif found := re.match(r"delete pod (\S+)", step.title):
            await world.delete(PODS, found[1])
        elif step.title.startswith("delete "):
            await world.delete(self._resource, self._name)
        elif step.title.startswith("release "):
            for pod in await world.pods(self._selector):
                if pod["metadata"]["labels"].get(STATE_LABEL) == "PreparingDelete":
                    released = {"metadata": {"labels": dict.fromkeys(self._hooks)}}
                    await world.patch(PODS, pod["metadata"]["name"], released)
        elif found := re.match(r"label the three nodes (\S+)=(\S+)", step.title):
            self._node_label = found[1]
            for node in (await world.client.list(NODES)).items:
                await world.patch(NODES, node.metadata.name, {"metadata": {"labels": {found[1]: found[2]}}})
        elif re.match(r"(a label|the annotation)\b.* (of|from) the pod\b", step.title):
            await world.patch(PODS, await self._only_pod(), step.by_hand)
        elif step.title == LOOK:
            variable = step.said.partition("=")[0]
            return f"{variable}={self._environment(await self._only_pod(), variable)}"
        elif step.title.startswith("remove the label"):
            only = re.search(r"from (\S+)", step.title)
            for node in (await world.client.list(NODES)).items:
                if only is None or node.metadata.name == only[1]:
                    await world.patch(NODES, node.metadata.name, {"metadata": {"labels": {self._node_label: None}}})
        elif not step.title.endswith("is pushed to the registry"):  # simulated nodes have every image
            raise ValueError(f"nobody knows how to do this: {step.title}")
        return ""

    async def _only_pod(self) -> str:
        [pod] = await self._world.pods(self._selector)
        return str(pod["metadata"]["name"])

    def _environment(self, pod: str, variable: str) -> str:
        """A variable of whichever running container has it."""
        machine = self._world.cluster.nodes.machine(self._world.namespace, pod)
        assert machine is not None
        running = [record.current for record in machine.records.values() if record.current is not None]
        [value] = [text for one in running for name, text in one.environment if name == variable]
        return value


def _picture(pod: Json) -> dict[str, Any]:
    """What is like in any cluster."""
    metadata, containers = pod["metadata"], pod["spec"]["containers"]
    if not isinstance(containers, dict):
        containers = {container["name"]: container for container in containers}
    return {
        "labels": {name: text for name, text in metadata.get("labels", {}).items() if name != INSTANCE_ID_LABEL},
        "annotations": sorted(metadata.get("annotations", {})),
        "images": {name: container["image"] for name, container in containers.items()},
        "liveness probes": sorted(name for name, container in containers.items() if "livenessProbe" in container),
    }
