"""Recordings of StatefulSets and DaemonSets on real nodes, played on the local cluster with its node model.

Kubelets have a pace of their own, so what is compared after each step is what happened to pods, in order: which came,
which were told to go, which were changed in place, and to which revision. In the end the status is compared.
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
from tests.support.rollout_log import Sign, watching
from tests.support.world import LocalWorld, resource_of, run_local

Json = dict[str, Any]
GATES = "ImagePullJobGate=true,PreDownloadImageForInPlaceUpdate=true,PreDownloadImageForDaemonSetUpdate=true"
ANY = "a pod"
"""Only a StatefulSet names its pods."""
SLACK = 20.0
"""Seconds beyond the recorded distance in which things must have happened."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    title: str
    seconds: float
    """Until the next one."""
    body: Any
    signs: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    manifest: Json
    steps: tuple[Step, ...]
    counters: Mapping[str, int]
    """Of the status in the end, where it was recorded."""


def read(path: Path) -> Recording:
    text = re.sub(r"\bnode([1-9])\b", r"node-\1", path.read_text(encoding="utf-8"))
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    [manifest] = [yaml.safe_load(block) for block in _blocks(sections["Manifest"])]
    bodies = [_body(line) for line in sections["Steps"].splitlines() if re.match(r"\d+\. ", line)]
    begun: list[tuple[str, float, list[str]]] = []
    seen = _Seen(has_names=manifest["kind"] == "StatefulSet")
    at = 0.0
    for line in sections["Log"].splitlines():
        found = re.match(r"\+([0-9.]+) (.*)", line)
        if found is None:
            continue
        at, told = float(found[1]), found[2]
        if told.startswith("#### "):
            begun.append((told.removeprefix("#### "), at, []))
        elif told.startswith("Pod/"):
            begun[-1][2].extend(seen.signs(told))
    ends = [*(begun_at for _, begun_at, _ in begun[1:]), at]
    steps = tuple(
        Step(
            title=title, seconds=end - start, body=bodies[number] if number < len(bodies) else None, signs=tuple(signs)
        )
        for number, ((title, start, signs), end) in enumerate(zip(begun, ends, strict=True))
    )
    subject = rf"^{manifest['kind']} {manifest['metadata']['name']}:\n\n```yaml\n(.*?)^```"
    final = re.search(subject, sections["Final objects"], flags=re.MULTILINE | re.DOTALL)
    status = yaml.safe_load(final[1]).get("status", {}) if final else {}
    counters = {name: value for name, value in status.items() if isinstance(value, int)}
    return Recording(manifest=manifest, steps=steps, counters=counters)


def _blocks(section: str) -> list[str]:
    return re.findall(r"^```yaml\n(.*?)^```", section, flags=re.MULTILINE | re.DOTALL)


def _body(line: str) -> Any:
    found = re.search(r": `([\[{].*)`$", line)
    return json.loads(found[1]) if found else None


class _Seen:
    """What a log has told of pods so far. Revisions are numbered as they come."""

    def __init__(self, *, has_names: bool) -> None:
        self._has_names = has_names
        self._revisions: dict[str, int] = {}
        self._worn: dict[str, str] = {}

    def signs(self, told: str) -> list[str]:
        name, _, change = told.removeprefix("Pod/").partition(" ")
        found = re.search(r'(?:^| )(\{"(?:metadata|spec)".*)', change)
        document = json.JSONDecoder().raw_decode(found[1])[0] if found else {}
        metadata = document.get("metadata", {})
        if revision := metadata.get("labels", {}).get(REVISION_LABEL):
            act = "create" if change.startswith("ADDED") else "in-place"
            self._worn[name] = revision
            return [self._sign(act, name)]
        if "deletionTimestamp" in metadata:
            return [self._sign("delete", name)]
        return []

    def _sign(self, act: str, name: str) -> str:
        number = self._revisions.setdefault(self._worn[name], len(self._revisions) + 1)
        return f"{act} {name if self._has_names else ANY} at revision {number}"


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
        self._revisions: dict[str, int] = {}
        spec = recording.manifest["spec"]
        selected = spec["selector"]["matchLabels"]
        self._selector = ",".join(f"{key}={value}" for key, value in selected.items())
        self._hooks = spec["template"]["metadata"]["labels"].keys() - selected.keys()
        self._node_label = ""

    async def play(self) -> None:
        async with watching(self._world.client, self._world.namespace, self._selector, self._world.clock) as log:
            for number, step in enumerate(self._recording.steps, 1):
                known = len(log.signs)
                await self._take(step)
                await asyncio.sleep(step.seconds + SLACK)
                ours = tuple(self._told(sign) for sign in log.signs[known:])
                if ours != step.signs:
                    self._found.append(f"step {number}, {step.title}: recorded {list(step.signs)}, ours {list(ours)}")
        if not self._recording.steps[-1].title.startswith(f"delete {self._resource.kind}"):
            status = (await self._world.get(self._resource, self._name))["status"]
            for field, value in self._recording.counters.items():
                if status.get(field, 0) != value:
                    self._found.append(f"status.{field}: recorded {value}, ours {status.get(field)}")

    def _told(self, sign: Sign) -> str:
        number = self._revisions.setdefault(sign.revision, len(self._revisions) + 1)
        return f"{sign.act} {sign.pod if self._resource.kind == 'StatefulSet' else ANY} at revision {number}"

    async def _take(self, step: Step) -> None:
        world = self._world
        if step.body is not None:
            kind = PatchType.JSON if isinstance(step.body, list) else PatchType.MERGE
            await world.patch(self._resource, self._name, step.body, patch_type=kind)
        elif step.title.startswith("create "):
            await world.create(self._recording.manifest)
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
        elif step.title.startswith("remove the label"):
            only = re.search(r"from (\S+)", step.title)
            for node in (await world.client.list(NODES)).items:
                if only is None or node.metadata.name == only[1]:
                    await world.patch(NODES, node.metadata.name, {"metadata": {"labels": {self._node_label: None}}})
        elif not step.title.endswith("is pushed to the registry"):  # simulated nodes have every image
            raise ValueError(f"nobody knows how to do this: {step.title}")
