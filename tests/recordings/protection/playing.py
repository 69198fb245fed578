"""Recordings of budgets, deletion protection and distributions, played on the local cluster.

The same steps are done at the same distances. After each one it is compared what whoever did it was told, and what is
there: the numbers of the budget, the copies and the status of the distribution, or which objects are left. The log is
read as that of the other kinds that are played by steps.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.resourcedistribution import RESOURCE_DISTRIBUTIONS
from kruise.api.native.apps import DEPLOYMENTS, REPLICA_SETS
from kruise.api.native.config import CONFIG_MAPS, SECRETS, SERVICES
from kruise.api.native.extensions import CUSTOM_RESOURCE_DEFINITIONS
from kruise.api.native.nodes import NAMESPACES
from kruise.api.native.pod import PODS
from kruise.api.policy.podunavailablebudget import POD_UNAVAILABLE_BUDGETS
from kruise.api.resource import Resource
from kruise.machinery.client.errors import ApiError
from kruise.machinery.client.requests import PatchType
from kruise.machinery.codec import to_builtins
from kruise.machinery.patches import merge
from tests.recordings.spread.playing import Json, Picture, Step, differences, read
from tests.support.world import LocalWorld, run_local

SLACK = 20.0
"""Seconds beyond the recorded distance in which a state must come."""
AT_ONCE = 1.0
"""Seconds: steps that follow each other faster are compared after the last of them, but for what was said."""
KINDS: Mapping[str, Resource[Any]] = {
    "CloneSet": CLONE_SETS,
    "ConfigMap": CONFIG_MAPS,
    "CustomResourceDefinition": CUSTOM_RESOURCE_DEFINITIONS,
    "Deployment": DEPLOYMENTS,
    "Namespace": NAMESPACES,
    "PodUnavailableBudget": POD_UNAVAILABLE_BUDGETS,
    "ReplicaSet": REPLICA_SETS,
    "ResourceDistribution": RESOURCE_DISTRIBUTIONS,
    "Secret": SECRETS,
    "Service": SERVICES,
}
SHOWN = ("CloneSet", "Deployment", "ReplicaSet", "Service")
"""Objects of which it is compared whether they are there."""
NUMBERS = ("unavailableAllowed", "currentAvailable", "desiredAvailable", "totalReplicas", "observedGeneration")


class Recorded:
    """The log played forward."""

    def __init__(self) -> None:
        self.objects: dict[str, Json] = {}

    def see(self, target: str, text: str) -> None:
        start = text.find("{")
        change = json.loads(text[start:]) if start >= 0 and text[start - 1 : start] in ("", " ") else {}
        if text.startswith("DELETED"):
            self.objects.pop(target, None)
        elif text.startswith("ADDED"):
            self.objects[target] = change
        elif target in self.objects:
            self.objects[target] = merge.apply(self.objects[target], change)

    def of(self, kind: str) -> dict[str, Json]:
        return {
            key.removeprefix(f"{kind}/"): one
            for key, one in self.objects.items()
            if key.startswith(f"{kind}/") and "deletionTimestamp" not in one.get("metadata", {})
        }


def _budget(status: Json) -> Picture:
    records = {name: len(status.get(name) or {}) for name in ("disruptedPods", "unavailablePods")}
    return {**{name: status.get(name, 0) for name in NUMBERS}, **records}


def _distribution(status: Json) -> Picture:
    found = status.get("conditions") or {}
    conditions = {one["type"]: one for one in found} if isinstance(found, list | tuple) else found
    return {
        **{name: status.get(name) or 0 for name in ("desired", "succeeded", "failed", "observedGeneration")},
        "conditions": {kind: (one["status"], one["reason"]) for kind, one in conditions.items()},
        "failed in": {
            kind: sorted(one.get("failedNamespace") or one.get("failedNamespaces") or ())
            for kind, one in conditions.items()
        },
    }


def _copy(document: Json, *, is_secret: bool) -> Picture:
    metadata = document.get("metadata", {})
    shown = {"labels": metadata.get("labels") or {}, "annotations": metadata.get("annotations") or {}}
    return shown if is_secret else {**shown, "data": document.get("data") or {}}


def picture(subject: str, objects: Callable[[str], dict[str, Json]]) -> Picture:
    """`objects` of a kind by name, those of other namespaces with the namespace before it."""
    if subject == "podunavailablebudget":
        return {name: _budget(one.get("status", {})) for name, one in objects("PodUnavailableBudget").items()}
    if subject == "deletionprotection":
        return {kind: len(objects(kind)) for kind in SHOWN}
    copies = {
        f"{kind}/{name}": _copy(one, is_secret=kind == "Secret")
        for kind in ("ConfigMap", "Secret")
        for name, one in objects(kind).items()
    }
    status = {name: _distribution(one.get("status", {})) for name, one in objects("ResourceDistribution").items()}
    return {"copies": copies, "status": status}


Answer = Callable[["Player", "re.Match[str]", Step], Awaitable[Any]]


class Player:
    def __init__(
        self,
        world: LocalWorld,
        path: Path,
        directions: Mapping[str, Answer],
        before: Mapping[str, Mapping[str, str]],
    ) -> None:
        self.world = world
        self.client = world.client
        self.recording = read(path)
        self.said: list[str] = []
        self._subject = path.stem.partition("-")[0]
        self._directions = directions
        self._before = before
        self._pods: list[str] = []

    async def run(self) -> list[str]:
        recorded, told = Recorded(), list[str]()
        steps = self.recording.steps
        self.world.namespace = "demo"
        for name, labels in {"demo": {}, **self._before}.items():
            await self.make_namespace(name, labels)
        for number, step in enumerate(steps):
            await self._do(step)
            told += [f"{step.title}: {one}" for one in answers_unlike(step.answers, self.said)]
            for line in step.lines:
                recorded.see(*line)
            is_last = number + 1 == len(steps)
            distance = (self.recording.end if is_last else steps[number + 1].at) - step.at
            await self.world.sleep(distance)
            if distance < AT_ONCE and not is_last:
                continue
            found = await self._unlike(picture(self._subject, recorded.of))
            told += [f"{step.title}: {one}" for one in found]
        return told

    async def _unlike(self, wanted: Picture) -> list[str]:
        waited = 0.0
        while True:
            there = {kind: await self._there(kind) for kind in KINDS}
            found = differences(wanted, picture(self._subject, there.__getitem__))
            if not found or waited >= SLACK:
                return found
            await self.world.sleep(0.5)
            waited += 0.5

    async def _there(self, kind: str) -> dict[str, Json]:
        resource, found = KINDS[kind], {}
        is_copy = kind in ("ConfigMap", "Secret")
        if kind in SHOWN or kind == "PodUnavailableBudget":
            items = [one for space in self._namespaces for one in (await self.client.list(resource, space)).items]
        else:
            items = list((await self.client.list(resource)).items)
        for item in items:
            metadata = item.metadata
            if metadata.deletion_timestamp is not None or (is_copy and metadata.name not in ("cfg", "sec", "token")):
                continue
            name = f"{metadata.namespace}/{metadata.name}" if is_copy else metadata.name
            found[name] = to_builtins(item)
        return found

    @property
    def _namespaces(self) -> tuple[str, ...]:
        return (self.world.namespace, "guard-1", "guard-2")

    async def pod(self, alias: str) -> str:
        """`pod-3` is the third that was made."""
        for pod in sorted(await self.world.pods(), key=lambda one: one["metadata"]["creationTimestamp"]):
            if pod["metadata"]["name"] not in self._pods:
                self._pods.append(pod["metadata"]["name"])
        return self._pods[int(alias.removeprefix("pod-")) - 1]

    def manifest(self, kind: str, name: str = "") -> Json:
        fitting = (one for one in self.recording.manifests if one["kind"] == kind)
        return next(one for one in fitting if name in ("", one["metadata"]["name"]))

    async def make_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": dict(labels)}}
        await self.client.create(NAMESPACES, body)

    async def create(self, manifest: Json, namespace: str = "") -> None:
        """In the version that it says."""
        resource = KINDS[manifest["kind"]]
        version = manifest["apiVersion"].rpartition("/")[2]
        place = (namespace or self.world.namespace) if resource.namespaced else ""
        await self.client.create(dataclasses.replace(resource, version=version), manifest, place)

    async def patch(self, kind: str, name: str, body: Any, namespace: str = "") -> None:
        form = PatchType.JSON if isinstance(body, list) else PatchType.MERGE
        resource = PODS if kind == "Pod" else KINDS[kind]
        place = (namespace or self.world.namespace) if resource.namespaced else ""
        await self.client.patch(resource, name, body, place, patch_type=form)

    async def delete(self, kind: str, name: str, namespace: str = "", **options: Any) -> None:
        resource = PODS if kind == "Pod" else KINDS[kind]
        place = (namespace or self.world.namespace) if resource.namespaced else ""
        await self.client.delete(resource, name, place, **options)

    async def trying(self, work: Awaitable[Any]) -> None:
        """Notes what is said to it."""
        try:
            await work
        except ApiError as error:
            self.said.append(f"HTTP {error.code} {error}")

    async def _do(self, step: Step) -> None:
        self.said = []
        for pattern, direction in self._directions.items():
            if (found := re.match(pattern, step.title)) is not None:
                await self.trying(direction(self, found, step))
                return
        raise AssertionError(f"a step that nobody knows how to do: {step.title}")


_REFUSAL = re.compile(
    r'(?:HTTP (\d+) ?\w*|Error from server[^:]*): (?:admission webhook "([^"]+)" denied the request: )?(.*)'
)
_FACT = re.compile(r"\S+ \{.*\}")


def answers_unlike(recorded: tuple[str, ...], ours: list[str]) -> list[str]:
    """Refusals must come, with the same code, by the same webhook, and say at least as much; so must what was read."""
    wanted = [text for text in recorded if _REFUSAL.match(text) or _FACT.fullmatch(text)]
    if len(wanted) != len(ours):
        return [f"[answers] recorded {wanted}, ours {ours}"]
    pairs = zip(wanted, ours, strict=True)
    return [f"[answers] recorded {one!r}, ours {other!r}" for one, other in pairs if not _says(one, other)]


def _says(recorded: str, ours: str) -> bool:
    found = _REFUSAL.match(recorded)
    if found is None:
        return recorded == ours
    code, webhook, text = found.groups()
    is_code = code is None or ours.startswith(f"HTTP {code} ")
    return is_code and (webhook or "") in ours and text in ours


def play(
    path: Path, directions: Mapping[str, Answer], *, gates: str, before: Mapping[str, Mapping[str, str]]
) -> list[str]:
    """How ours differs from a recording. `before`: namespaces that were there, with their labels."""
    found: list[str] = []

    async def scenario(world: LocalWorld) -> None:
        found.extend(await Player(world, path, directions, before).run())

    run_local(scenario, nodes=3, feature_gates=gates)
    return found
