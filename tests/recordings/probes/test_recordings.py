"""The recordings of OpenKruise's probes, played again.

Pods, markers and the daemon's reports are given to our decision as they were recorded, moment by moment. What nodes are
told must be what was recorded; at each step the pods must have the conditions, labels and annotations that they had.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kruise.api.apps.probes import NodePodProbe, PodProbeMarker
from kruise.api.native.nodes import Node
from kruise.api.native.pod import Pod
from kruise.machinery.codec import convert, encode
from kruise.machinery.patches import merge
from kruise.operations.probes.node.decide import MARKS, Snapshot, decide, entries

Json = dict[str, Any]
DATA = Path(__file__).parent / "data"
RECORDINGS = sorted(path.stem for path in DATA.glob("*.md"))
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TIME = "2026-01-02T03:04:05Z"
_LINE = re.compile(r"\+(\d+\.\d) (?:(#+ .*)|(\w+)/(\S+) (.*))")
_CONDITION = re.compile(r"([\w.-]+/[\w-]+)(?:=(True|False))")
KEPT = {
    # Recorded as taken away while a result was unknown; ours stay until it is known.
    ("podprobemarker-exec", "controller.kubernetes.io/pod-deletion-cost"),
    ("podprobemarker-tcp-http", "http"),
    ("podprobemarker-two-markers", "b"),
}
LEFT_OUT = {
    # Steps after which what nodes were told differs on purpose.
    "podprobemarker-two-markers": "a probe taken out of the spec goes, and a marker of a like name keeps its own",
}


def listed(value: Any, key: str = "name") -> list[Json]:
    """A list, also where it was recorded as a map by the names of its items."""
    if isinstance(value, dict):
        return [{key: name, **item} for name, item in value.items()]
    return list(value or ())


class Play:
    def __init__(self, recording: str) -> None:
        self.recording = recording
        self.pods: dict[str, Json] = {}
        self.markers: dict[str, Json] = {}
        self.probes: dict[str, Json] = {}
        self.recorded: dict[str, dict[str, Json]] = {}
        """By pod: conditions, labels, annotations."""
        self.ours: dict[str, dict[str, Json]] = {}
        self.compared = 0
        self.told = 0

    def run(self) -> None:
        for line in (DATA / f"{self.recording}.md").read_text().splitlines():
            found = _LINE.fullmatch(line)
            if found is None:
                continue
            if found[2]:
                self.compare()
                continue
            kind, name, text = found[3], found[4], found[5]
            start = text.find("{")
            document: Json = {}
            if start >= 0:
                try:
                    document = json.loads(text[start:].replace("<time>", TIME).replace("<ip>", "10.0.0.7"))
                except ValueError:
                    document = {}
            see = {"Pod": self._pod, "PodProbeMarker": self._marker, "NodePodProbe": self._probe}.get(kind)
            if see is not None:
                see(name, text, document)
                self.decide()
        self.compare()

    def _pod(self, name: str, text: str, document: Json) -> None:
        if text.startswith("ADDED"):
            node = re.search(r"node=(\S+)", text)
            labels = document.get("metadata", {}).get("labels", {})
            self.pods[name] = {
                "metadata": {"name": name, "namespace": "demo", "uid": f"uid-{name}", "labels": labels},
                "spec": {**document.get("spec", {}), "nodeName": node[1] if node is not None else ""},
                "status": {"phase": "Running", "podIP": "", "conditions": []},
            }
            if self.recording == "podprobemarker":  # simulated nodes were not asked for more
                self._become(name, "Initialized", "True")
                self.pods[name]["status"]["podIP"] = "10.0.0.7"
            self.recorded[name] = {"conditions": {}, "labels": {}, "annotations": {}}
            self.ours[name] = {"conditions": {}, "labels": {}, "annotations": {}}
            return
        if text == "DELETED":
            self.pods.pop(name, None)
            return
        pod = self.pods[name]
        if node_name := document.get("spec", {}).get("nodeName"):
            pod["spec"]["nodeName"] = node_name
        if document.get("metadata", {}).get("deletionTimestamp"):
            pod["metadata"]["deletionTimestamp"] = TIME
        if "Initialized=True" in text:
            self._become(name, "Initialized", "True")
        for kind, status in _CONDITION.findall(text.partition(" {")[0]):
            self.recorded[name]["conditions"][kind] = status
        for part in ("labels", "annotations"):
            edits = document.get("metadata", {}).get(part)
            if edits is None and part in document.get("metadata", {}):
                self.recorded[name][part].clear()
            for key, value in (edits or {}).items():
                if key in self.marks():
                    self.recorded[name][part][key] = value

    def _become(self, name: str, kind: str, status: str) -> None:
        conditions = self.pods[name]["status"]["conditions"]
        conditions[:] = [one for one in conditions if one["type"] != kind] + [{"type": kind, "status": status}]

    def _marker(self, name: str, text: str, document: Json) -> None:
        if text.startswith("ADDED"):
            self.markers[name] = {"metadata": {"name": name, "namespace": "demo", "uid": name}, "spec": {}}
        if text == "DELETED":
            self.markers.pop(name, None)
            return
        marker = self.markers[name]
        if document.get("metadata", {}).get("deletionTimestamp"):
            marker["metadata"]["deletionTimestamp"] = TIME
        marker["spec"] = merge.apply(marker["spec"], document.get("spec", {}))

    def _probe(self, name: str, text: str, document: Json) -> None:
        known = self.probes.setdefault(name, {"spec": {}, "status": {}})
        if "spec" in document:
            known["spec"] = merge.apply(known["spec"], document["spec"] or {})
            for entry in listed(known["spec"].get("podProbes")):
                if entry["name"] in self.pods and entry.get("IP"):
                    self.pods[entry["name"]]["status"]["podIP"] = "10.0.0.7"
            self._compare_told(name)
        if "status" in document:
            known["status"] = merge.apply(known["status"], document["status"] or {})

    def marks(self) -> set[str]:
        found: set[str] = set()
        for marker in self.markers.values():
            for probe in listed(marker["spec"].get("probes")):
                for policy in probe.get("markerPolicy", ()):
                    found |= {*policy.get("labels", {}), *policy.get("annotations", {})}
        return found

    # Ours

    def snapshot(self, node: str) -> Snapshot:
        known = self.probes[node]
        spec = [
            {**entry, "uid": f"uid-{entry['name']}", "probes": listed(entry.get("probes"))}
            for entry in listed(known["spec"].get("podProbes"))
        ]
        status = [
            {**entry, "uid": f"uid-{entry['name']}", "probeStates": listed(entry.get("probeStates"))}
            for entry in listed(known["status"].get("podProbeStatuses"))
        ]
        probes = {
            "metadata": {"name": node, "uid": node},
            "spec": {"podProbes": spec},
            "status": {"podProbeStatuses": status},
        }
        return Snapshot(
            name=node,
            node=convert({"metadata": {"name": node}}, Node),
            probes=convert(probes, NodePodProbe),
            pods=tuple(convert(self._with_marks(pod), Pod) for pod in self.pods.values()),
            markers=tuple(
                convert({**one, "spec": {**one["spec"], "probes": listed(one["spec"].get("probes"))}}, PodProbeMarker)
                for one in self.markers.values()
            ),
            now=NOW,
        )

    def _with_marks(self, pod: Json) -> Json:
        mine = self.ours[pod["metadata"]["name"]]
        containers = [
            {**one, "ports": listed(one.get("ports")), "env": ()} for one in listed(pod["spec"].get("containers"))
        ]
        shown = {"nodeName": pod["spec"]["nodeName"]}
        conditions = [{"type": kind, "status": status} for kind, status in mine["conditions"].items()]
        return {
            "metadata": {
                **pod["metadata"],
                "labels": {**pod["metadata"]["labels"], **_present(mine["labels"])},
                "annotations": _present(mine["annotations"]),
            },
            "spec": {**shown, "containers": [{"name": one["name"], "ports": one["ports"]} for one in containers]},
            "status": {**pod["status"], "conditions": [*pod["status"]["conditions"], *conditions]},
        }

    def decide(self) -> None:
        for node in self.probes:
            plan = decide(self.snapshot(node))
            for phase in plan.phases:
                for action in (one for chain in phase.chains for one in chain if phase.name == MARKS):
                    mine = self.ours[action.target.name]
                    for one in action.body.get("status", {}).get("conditions", ()):
                        mine["conditions"][one["type"]] = one["status"]
                    for part, edits in action.body.get("metadata", {}).items():
                        mine[part] |= edits

    # Comparing

    def _compare_told(self, node: str) -> None:
        if self.recording in LEFT_OUT:
            return
        snapshot = self.snapshot(node)
        assert snapshot.probes is not None
        ours = json.loads(encode(entries(snapshot)))
        recorded = json.loads(encode(snapshot.probes.spec.pod_probes))
        assert ours == recorded, f"{node} was told {recorded}, ours {ours}"
        self.told += 1

    def compare(self) -> None:
        for name in self.pods:
            for part in ("conditions", "labels", "annotations"):
                recorded, ours = _present(self.recorded[name][part]), _present(self.ours[name][part])
                for key in {*recorded, *ours}:
                    if (self.recording, key) in KEPT and key not in recorded:
                        continue
                    assert ours.get(key) == recorded.get(key), f"{name} {part} {key}"
                    self.compared += 1


def _present(values: Json) -> Json:
    return {key: value for key, value in values.items() if value is not None}


@pytest.mark.parametrize("recording", RECORDINGS)
def test_recording_plays_the_same(recording: str) -> None:
    """PPM-23 to PPM-25, NPP-3, NPP-10 to NPP-14, as recorded but for the marks while nothing is known."""
    play = Play(recording)
    play.run()
    assert play.compared > 0
    assert play.told > 0 or recording in LEFT_OUT


def test_all_recordings_are_there() -> None:
    assert len(RECORDINGS) == 5
