"""Recordings of UnitedDeployments, WorkloadSpreads and PersistentPodStates, played on the local cluster.

Several kinds act in each of them, and pods are placed by the scheduler: the same steps are done at the same distances,
and after each one it is compared what users see. That is the status of the object, where its pods are and what they
cost, and what the children of subsets are to be. Names differ, so that pods are counted by what they are.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.persistentpodstate import PERSISTENT_POD_STATES
from kruise.api.apps.statefulset import STATEFUL_SETS as ADVANCED
from kruise.api.apps.uniteddeployment import UNITED_DEPLOYMENTS
from kruise.api.apps.workloadspread import WORKLOAD_SPREADS
from kruise.api.native.apps import DEPLOYMENTS, JOBS, STATEFUL_SETS
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.faces.kstatus import RECONCILING, STALLED
from kruise.machinery.client.requests import PatchType
from kruise.machinery.patches import merge
from tests.support.world import LocalWorld, run_local

Json = dict[str, Any]
Picture = dict[str, Any]
ZONES = "abcabc"
SLACK = 20.0
"""Seconds beyond the recorded distance in which a state must come."""
_MATCHED = "apps.kruise.io/matched-workloadspread"
_COST = "controller.kubernetes.io/pod-deletion-cost"
_SUBSET = "apps.kruise.io/subset-name"
_TOLD = "CloneSet/"
"""Of children of other kinds the recordings leave the changes out."""
_RESERVED = ("WorkloadSpread", "PersistentPodState")
KINDS: Mapping[str, Resource[Any]] = {
    "UnitedDeployment": dataclasses.replace(UNITED_DEPLOYMENTS, version="v1alpha1"),
    "WorkloadSpread": dataclasses.replace(WORKLOAD_SPREADS, version="v1alpha1"),
    "PersistentPodState": dataclasses.replace(PERSISTENT_POD_STATES, version="v1alpha1"),
    "CloneSet": dataclasses.replace(CLONE_SETS, version="v1alpha1"),
    "StatefulSet": ADVANCED,
    "NStatefulSet": STATEFUL_SETS,
    "Deployment": DEPLOYMENTS,
    "Job": JOBS,
    "Pod": PODS,
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    title: str
    at: float
    body: Any
    lines: tuple[tuple[str, str], ...]
    """What the log tells until the next step: the object, and what happened to it."""
    answers: tuple[str, ...] = ()
    """What whoever did it was told."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    subject: str
    manifests: tuple[Json, ...]
    steps: tuple[Step, ...]
    end: float

    @property
    def pinned(self) -> frozenset[str]:
        """Subsets whose pods have one place to go; of the others the scheduler decides."""
        spec = next((one["spec"] for one in self.manifests if one["kind"] == self.subject), {})
        subsets = spec.get("subsets") or spec.get("topology", {}).get("subsets") or ()
        return frozenset(one["name"] for one in subsets if re.search(r'"values": \["[^"]*"\]', json.dumps(one)))

    @property
    def workload(self) -> Json:
        return next(one for one in self.manifests if one["kind"] not in _RESERVED)


def read(path: Path) -> Recording:
    # The nodes of the local cluster have other names than those of the recordings.
    text = re.sub(r"\bnode([1-9])\b", r"node-\1", path.read_text(encoding="utf-8"))
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    manifests = tuple(
        yaml.safe_load(block)
        for block in re.findall(r"^```yaml\n(.*?)^```", sections["Manifest"], flags=re.MULTILINE | re.DOTALL)
    )
    bodies = [_body(line) for line in sections["Steps"].splitlines() if re.match(r"\d+\. ", line)]
    begun: list[tuple[str, float, list[tuple[str, str]], list[str]]] = []
    end = 0.0
    for line in sections["Log"].splitlines():
        found = re.match(r"\+([0-9.]+) (.*)", line)
        if found is None:
            if begun and line.startswith("     "):
                begun[-1][3].append(line.strip())
            continue
        end, told = float(found[1]), found[2]
        if told.startswith("#### "):
            begun.append((told.removeprefix("#### "), end, [], []))
        elif begun and told.startswith("  -> "):
            begun[-1][3].append(told.removeprefix("  -> "))
        elif begun and re.match(r"\w+/", told):
            target, _, change = told.partition(" ")
            begun[-1][2].append((target, change))
    steps = [
        Step(
            title=re.split(r" \((?:merge|json)\): ", title)[0],
            at=at,
            body=body,
            lines=tuple(lines),
            answers=tuple(answers),
        )
        for (title, at, lines, answers), body in zip(begun, bodies, strict=True)
    ]
    subject = path.stem.partition("-")[0]
    kind = next((kind for kind in KINDS if kind.lower() == subject), subject)
    return Recording(subject=kind, manifests=manifests, steps=tuple(steps), end=end)


def _body(line: str) -> Any:
    found = re.search(r"(?:\((?:merge|json)\): |: `)([\[{].*?)`?$", line)
    return json.loads(found[1]) if found else None


# What was recorded


class Recorded:
    """The log played forward."""

    def __init__(self, recording: Recording) -> None:
        self._subject = recording.subject
        self._pinned = recording.pinned
        self._first: Json = {}
        self.objects: dict[str, Json] = {}
        self.pods: dict[str, Json] = {}

    def see(self, target: str, text: str) -> None:
        kind, _, name = target.partition("/")
        known = self.pods if kind == "Pod" else self.objects
        key = name if kind == "Pod" else target
        start = text.find("{")
        change = json.loads(text[start:]) if start >= 0 and text[start - 1 : start] in ("", " ") else {}
        if text.startswith("DELETED"):
            known.pop(key, None)
        elif text.startswith("ADDED"):
            if kind == "Pod":
                change = self._new_pod(text, change)
            known[key] = change
        elif key in known:
            known[key] = merge.apply(known[key], change)

    def _new_pod(self, text: str, change: Json) -> Json:
        pod = merge.apply(copy.deepcopy(self._first), change) if " (diff)" in text else change
        if not self._first:
            self._first = copy.deepcopy(pod)
        if found := re.match(r"ADDED node=(\S+)", text):
            node = "" if found[1] == "None" else found[1]
            pod = merge.apply(pod, {"spec": {"nodeName": node}})
        return pod

    def picture(self) -> Picture:
        pods = Counter(
            _pod(pod.get("metadata", {}), _place(pod.get("spec", {}).get("nodeName", "")), self._pinned)
            for pod in self.pods.values()
            if "deletionTimestamp" not in pod.get("metadata", {})
        )
        found = [(key, one) for key, one in self.objects.items() if key.startswith(f"{self._subject}/")]
        status = {key: _STATUS[self._subject](one.get("status", {})) for key, one in found}
        children = {
            one["metadata"]["labels"][_SUBSET]: one["spec"].get("replicas", 1)
            for key, one in self.objects.items()
            if key.startswith(_TOLD) and _SUBSET in one.get("metadata", {}).get("labels", {})
        }
        return {"pods": dict(pods), "status": status, "children": children}


def _place(node: str) -> str:
    return ZONES[int(node.removeprefix("sim-"))] if node.startswith("sim-") else node


def _pod(metadata: Json, place: str, pinned: frozenset[str] = frozenset()) -> tuple[str, str, str]:
    """Where it belongs, where it is, and what it costs."""
    annotations, labels = metadata.get("annotations") or {}, metadata.get("labels") or {}
    subset = labels.get(_SUBSET, "")
    if mark := annotations.get(_MATCHED):
        subset = json.loads(mark)["subset"]
    return subset, place if subset in pinned else "", annotations.get(_COST, "")


def _by_name(items: Any) -> dict[str, Json]:
    if isinstance(items, list):
        return {one["name"]: one for one in items}
    return items or {}


def _spread_status(status: Json) -> Picture:
    def counts(items: Any) -> dict[str, tuple[int, int]]:
        return {name: (one.get("replicas", 0), one.get("missingReplicas", 0)) for name, one in _by_name(items).items()}

    conditions = {
        f"{name} {kind}": one["status"]
        for name, element in _by_name(status.get("subsetStatuses")).items()
        for kind, one in _conditions(element).items()
    }
    # A version whose pods are all on their way out is listed until the last one is gone: a matter of moments.
    listed = [counts(one) for one in (status.get("versionedSubsetStatuses") or {}).values()]
    versions = [one for one in listed if any(replicas for replicas, _ in one.values())]
    return {
        "observedGeneration": status.get("observedGeneration", 0),
        "subsets": counts(status.get("subsetStatuses")),
        "versions": sorted(versions, key=str),
        "conditions": conditions,
    }


def _conditions(status: Json) -> dict[str, Json]:
    found = status.get("conditions") or {}
    return {one["type"]: one for one in found} if isinstance(found, list) else found


def _united_status(status: Json) -> Picture:
    numbers = ("observedGeneration", "replicas", "readyReplicas", "updatedReplicas", "updatedReadyReplicas")
    return {
        **{name: status.get(name) or 0 for name in numbers},
        "labelSelector": status.get("labelSelector"),
        "subsetReplicas": status.get("subsetReplicas") or {},
        "partitions": (status.get("updateStatus") or {}).get("currentPartitions") or {},
        "is current": status.get("currentRevision") == (status.get("updateStatus") or {}).get("updatedRevision"),
        "conditions": {
            kind: one["status"]
            for kind, one in _conditions(status).items()
            if kind not in (RECONCILING, STALLED)  # which the original does not have
        },
        "subsets": {
            name: (one.get("replicas") or 0, one.get("readyReplicas") or 0)
            for name, one in _by_name(status.get("subsetStatuses")).items()
        },
    }


def _state_status(status: Json) -> Picture:
    states = status.get("podStates") or {}
    return {
        "observedGeneration": status.get("observedGeneration", 0),
        "states": {name: sorted(one.get("nodeTopologyLabels") or {}) for name, one in states.items()},
    }


_STATUS = {
    "WorkloadSpread": _spread_status,
    "UnitedDeployment": _united_status,
    "PersistentPodState": _state_status,
}


# Ours


class Player:
    def __init__(self, world: LocalWorld, recording: Recording, closed: frozenset[str] = frozenset()) -> None:
        self._world = world
        self._recording = recording
        self._closed = closed
        self._places: dict[str, str] = {}
        self.returned: dict[str, set[str]] = {}
        """The nodes that each pod was on, by its name."""

    async def run(self) -> list[str]:
        by_host = "kubernetes.io/hostname" in json.dumps(self._recording.manifests)
        zone = "kubernetes.io/hostname" if by_host else "topology.kubernetes.io/zone"
        for node in (await self._world.client.list(NODES)).items:
            self._places[node.metadata.name] = node.metadata.labels[zone]
        recorded, told = Recorded(self._recording), []
        steps = self._recording.steps
        for number, step in enumerate(steps):
            await self._close(self._closed if number == 0 else frozenset())
            await self._do(step)
            for line in step.lines:
                recorded.see(*line)
            following = steps[number + 1].at if number + 1 < len(steps) else self._recording.end
            await self._world.sleep(max(following - step.at, 0.5))
            found = await self._unlike(recorded.picture())
            told += [f"{step.title}: {one}" for one in found]
        return told

    async def _unlike(self, wanted: Picture) -> list[str]:
        waited = 0.0
        while True:
            ours = await self._picture()
            found = list(differences(wanted, ours))
            if not found or waited >= SLACK:
                return found
            await self._world.sleep(0.5)
            waited += 0.5

    async def _picture(self) -> Picture:
        subject = self._recording.subject
        listed = await self._world.list(PODS)
        pods = [pod for pod in listed if "deletionTimestamp" not in pod["metadata"]]
        for pod in pods:
            if node := pod["spec"].get("nodeName"):
                self.returned.setdefault(pod["metadata"]["name"], set()).add(node)
        objects = await self._world.list(KINDS[subject])
        children = [
            one for one in await self._world.list(KINDS["CloneSet"]) if _SUBSET in one["metadata"].get("labels", {})
        ]
        return {
            "pods": dict(Counter(self._told(pod) for pod in pods)),
            "status": {
                f"{subject}/{one['metadata']['name']}": _STATUS[subject](one.get("status", {})) for one in objects
            },
            "children": {one["metadata"]["labels"][_SUBSET]: one["spec"]["replicas"] for one in children},
        }

    async def _close(self, places: frozenset[str]) -> None:
        """No new pods there: that is how the first ones came to where they were recorded."""
        for name, place in self._places.items() if self._closed else ():
            await self._world.client.patch(NODES, name, {"spec": {"unschedulable": place in places or None}})

    def _told(self, pod: Json) -> tuple[str, str, str]:
        place = self._places.get(pod["spec"].get("nodeName", ""), "")
        return _pod(pod["metadata"], place, self._recording.pinned)

    async def _do(self, step: Step) -> None:
        title, world = step.title, self._world
        if found := re.match(r"create (\w+) (\S+)", title):
            manifest = self._manifest(found[1])
            assert manifest is not None
            await world.client.create(self._resource(found[1]), manifest, world.namespace)
        elif step.body is not None:
            form = PatchType.JSON if isinstance(step.body, list) else PatchType.MERGE
            resource, name = self._target(step.body)
            await world.patch(resource, name, step.body, patch_type=form)
        elif found := re.match(r"delete [Pp]od[ /](\S+)", title):
            await world.delete(PODS, found[1])
        elif found := re.match(r"(delete one pod of|evict pod-1 \(subset) ([\w-]+)", title):
            pods = [pod for pod in await world.list(PODS) if _pod(pod["metadata"], "")[0] == found[2]]
            name = sorted(pod["metadata"]["name"] for pod in pods)[0]
            if found[1].startswith("evict"):
                await world.client.evict(PODS, name, world.namespace)
            else:
                await world.delete(PODS, name)
        elif found := re.match(r"delete (\w+)[ /](\S+)", title):
            await world.delete(self._resource(found[1]), found[2])
        else:
            raise AssertionError(f"a step that nobody knows how to do: {title}")

    def _target(self, body: Any) -> tuple[Resource[Any], str]:
        text = json.dumps(body)
        kind = next(
            (kind for kind, field in _FIELDS.items() if field in text and self._manifest(kind) is not None),
            self._recording.workload["kind"],
        )
        manifest = self._manifest(kind)
        assert manifest is not None
        return self._resource(kind), manifest["metadata"]["name"]

    def _manifest(self, kind: str) -> Json | None:
        return next((one for one in self._recording.manifests if one["kind"] == kind), None)

    def _resource(self, kind: str) -> Resource[Any]:
        manifest = self._manifest(kind)
        is_native = manifest is not None and manifest["apiVersion"].startswith("apps/")
        return KINDS["NStatefulSet" if kind == "StatefulSet" and is_native else kind]


_FIELDS = {"WorkloadSpread": "/spec/subsets", "PersistentPodState": "PersistentTopology"}


def differences(wanted: Picture, ours: Picture, path: str = "") -> list[str]:
    if isinstance(wanted, dict) and isinstance(ours, dict):
        return [
            text
            for key in sorted({*wanted, *ours}, key=str)
            for text in differences(wanted.get(key), ours.get(key), f"{path}.{key}" if path else str(key))
        ]
    return [] if wanted == ours else [f"[{path}] recorded {wanted!r}, ours {ours!r}"]


def play(path: Path, closed: frozenset[str] = frozenset()) -> tuple[list[str], dict[str, set[str]]]:
    """How ours differs from a recording; and where pods were, by name. `closed`: where none of the first pods was."""
    recording = read(path)
    found: list[str] = []
    places: dict[str, set[str]] = {}

    async def scenario(world: LocalWorld) -> None:
        player = Player(world, recording, closed)
        found.extend(await player.run())
        places.update(player.returned)

    run_local(scenario, nodes=3 if "real nodes" in path.read_text(encoding="utf-8") else 6)
    return found, places
