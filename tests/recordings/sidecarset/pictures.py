"""What a recording on real nodes and our cluster say of SidecarSets, pods, barriers and ends, in one form.

Of a pod: its containers in order, with what was put into them; what SidecarSets and the order of start wrote down; how
often each container was started again, and which are ready. Names of a workload's pods are made up: those pods are
compared as a heap.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from kruise.machinery.patches import merge
from kruise.sidecars.sidecarset import keys
from tests.recordings.parsing import Line, Recording

Json = dict[str, Any]
COUNTS = ("matchedPods", "updatedPods", "readyPods", "updatedReadyPods")
TOKEN = "kube-api-access-"
DONE = "apps.kruise.io/container-launch-priority-completed"
_DOCUMENT = re.compile(r'(?:^| )(\{"(?:metadata|spec|status|data|revision)".*)$')
_CONTAINER = re.compile(r" ?(?:initC|c)ontainer (?P<name>[\w-]+)\[(?P<told>(?:[^\[\]]|\[[^\]]*\])*)\]")
_VERDICT = re.compile(rf"{keys.UPGRADABLE}(?:=(?P<status>\w+))?\((?P<reason>\w*): (?P<message>\{{[^}}]*\}})\)")
_POD = re.compile(r"\bpod-\d+\b")
ANY = "a pod"


class Recorded:
    """Objects as the log has them up to a step."""

    def __init__(self, recording: Recording) -> None:
        self._lines = iter(recording.lines)
        self._next = next(self._lines, None)
        self.objects: dict[str, dict[str, Json]] = {}
        """By kind and name."""
        self.requests: list[Json] = []
        """Their names were made alike: each stands for itself."""
        self.writes: list[str] = []
        """Images that were written to running pods, since it was last asked."""

    def until(self, step: int) -> None:
        """All that came of a step."""
        self.writes = []
        while self._next is not None and self._next.step <= step:
            self._take(self._next)
            self._next = next(self._lines, None)

    @property
    def sets(self) -> dict[str, Json]:
        return self.objects.get("SidecarSet", {})

    def _take(self, line: Line) -> None:
        kind, _, name = line.target.partition("/")
        known = self.objects.setdefault(kind, {})
        found = _DOCUMENT.search(line.text)
        document: Json = json.loads(found[1]) if found else {}
        if line.text.startswith("DELETED"):
            known.pop(name, None)
        elif kind == "ContainerRecreateRequest":
            if line.text.startswith("ADDED"):
                self.requests.append(document)
        else:
            before = known.get(name, {})
            if kind == "Pod" and before:
                self.writes += _written(name, document)
            after = merge.apply(before, document)
            known[name] = _with_status(after, line.text) if kind == "Pod" else after


def _written(name: str, document: Json) -> Iterator[str]:
    changed = document.get("spec", {}).get("containers") or {}
    for container in sorted(changed):
        if image := changed[container].get("image"):
            yield f"{_POD.sub(ANY, name)}: {container} gets {image}"


def _with_status(pod: Json, text: str) -> Json:
    """The words that stand for a status."""
    status: Json = dict(pod.get("status", {}))
    if found := re.search(r"(?:^| )phase=(\w+)", text):
        status["phase"] = found[1]
    if found := _VERDICT.search(text):
        known = status.get("verdict") or ["", "", {}]  # of a condition only what changed is told
        status["verdict"] = [found["status"] or known[0], found["reason"] or known[1], json.loads(found["message"])]
    containers = dict(status.get("containers", {}))
    for found in _CONTAINER.finditer(text):
        entry = dict(containers.get(found["name"], {"restarts": 0, "ready": False}))
        if count := re.search(r"restartCount=(\d+)", found["told"]):
            entry["restarts"] = int(count[1])
        if ready := re.search(r"ready=(True|False)", found["told"]):
            entry["ready"] = ready[1] == "True"
        containers[found["name"]] = entry
    return {**pod, "status": {**status, "containers": containers}}


# Pictures


def set_picture(document: Json) -> Json:
    status, metadata = document.get("status", {}), document["metadata"]
    return {
        "hashes": [metadata["annotations"][key] for key in (keys.HASH, keys.HASH_WITHOUT_IMAGE)],
        "generation": metadata["generation"],
        "counts": " ".join(str(status.get(name) or 0) for name in COUNTS),
        "revision": status.get("latestRevision", ""),
    }


def revision_picture(document: Json) -> Json:
    return {"number": document["revision"], "tag": document["metadata"]["labels"].get(keys.CUSTOM_VERSION, "")}


def pod_picture(pod: Json) -> Json:
    """Of a recorded pod, or of one of ours after `as_recorded`."""
    spec, metadata, status = pod.get("spec", {}), pod["metadata"], pod.get("status", {})
    return {
        "containers": [_container(*one) for one in (spec.get("containers") or {}).items()],
        "initContainers": [_container(*one) for one in (spec.get("initContainers") or {}).items()],
        "volumes": [name for name in spec.get("volumes") or {} if not name.startswith(TOKEN)],
        "secrets": list(spec.get("imagePullSecrets") or {}),
        "written": _notes(metadata.get("annotations") or {}),
        "verdict": status.get("verdict"),
        "phase": status.get("phase"),
        "runs": dict(sorted(status.get("containers", {}).items())),
    }


def _container(name: str, one: Json) -> list[Any]:
    mounts = [item for item in _listed(one.get("volumeMounts")) if not item["name"].startswith(TOKEN)]
    shown = {key: one[key] for key in ("image", "resources", "restartPolicy") if one.get(key)}
    return [name, shown, list((one.get("env") or {}).items()), mounts, _listed(one.get("volumeDevices"))]


def _listed(items: Any) -> list[Json]:
    return [{"name": key, **value} for key, value in items.items()] if isinstance(items, dict) else list(items or ())


def _notes(annotations: Mapping[str, str]) -> Json:
    found = {}
    for key, value in annotations.items():
        if key.startswith((keys.VERSION_PREFIX, keys.VERSION_ALT_PREFIX)):
            found[key] = value if value in ("0", "1") else "version of the SidecarSet"
        elif key.startswith("kruise.io/sidecarset") or key == DONE:
            found[key] = normal(value)
    return found


def normal(text: str) -> Any:
    """Without times and ids of images."""
    text = re.sub(r'"updateTimestamp":"[^"]*"', '"updateTimestamp":""', text)
    text = re.sub(r'"imageID":"[^"]*"', '"imageID":""', text)
    try:
        return json.loads(text)
    except ValueError:
        return text


def as_recorded(pod: Json, names: Mapping[str, str]) -> Json:
    """One of ours in the form of the log: lists by name, and a status of a few words. `names`: as a workload's pods
    would be called there."""
    status = pod.get("status", {})
    verdict = next((one for one in status.get("conditions", ()) if one["type"] == keys.UPGRADABLE), None)
    shown: Json = json.loads(_renamed(json.dumps({"metadata": pod["metadata"], "spec": pod["spec"]}), names))
    spec = {key: _keyed(value) for key, value in shown["spec"].items()}
    everyone = (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ()))
    told: Json = {
        "phase": status.get("phase"),
        "containers": {one["name"]: {"restarts": one["restartCount"], "ready": one["ready"]} for one in everyone},
    }
    if verdict is not None:
        told["verdict"] = [verdict["status"], verdict["reason"], json.loads(verdict["message"])]
    return {"metadata": shown["metadata"], "spec": spec, "status": told}


def _keyed(value: Any) -> Any:
    if not isinstance(value, list) or not all(isinstance(one, dict) and "name" in one for one in value):
        return value
    names = [one["name"] for one in value]
    if len(set(names)) < len(names):
        return value
    return {
        one["name"]: {key: _keyed(item) if key == "env" else item for key, item in one.items() if key != "name"}
        for one in value
    }


def _renamed(text: str, names: Mapping[str, str]) -> str:
    for ours, recorded in names.items():
        text = text.replace(ours, recorded)
    return text


def heap(pictures: Mapping[str, Any]) -> Json:
    """By name where a name means something; the others together."""
    named = {name: picture for name, picture in pictures.items() if not _POD.fullmatch(name)}
    others = sorted(_POD.sub(ANY, json.dumps(picture)) for name, picture in pictures.items() if name not in named)
    return {**named, **{f"{ANY} ({number})": json.loads(text) for number, text in enumerate(others, 1)}}


def unlike(recorded: Any, ours: Any, where: str = "") -> Iterator[str]:
    """In what two pictures differ, down to the smallest part."""
    if isinstance(recorded, dict) and isinstance(ours, dict):
        for key in [*recorded, *(key for key in ours if key not in recorded)]:
            yield from unlike(recorded.get(key), ours.get(key), f"{where} {key}")
    elif isinstance(recorded, list) and isinstance(ours, list) and len(recorded) == len(ours):
        for place, (one, other) in enumerate(zip(recorded, ours, strict=True)):
            name = one[0] if isinstance(one, list) and one and isinstance(one[0], str) else place
            yield from unlike(one, other, f"{where} {name}")
    elif recorded != ours:
        yield f"{where.strip()}: recorded {json.dumps(recorded)}, ours {json.dumps(ours)}"
