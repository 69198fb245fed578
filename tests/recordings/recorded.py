"""What the recorded cluster held after each step: the log played forward, difference by difference.

Only what the log tells is known. A pod's picture is a flat mapping from an aspect ("labels", "condition Ready") to its
value; an aspect that the log never told is absent and is not compared.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import re
from collections.abc import Sequence
from typing import Any

from tests.recordings.parsing import UPDATED, Json, Line, Recording

Picture = dict[str, Any]

STATE_LABEL = "lifecycle.apps.kruise.io/state"
ID_LABEL = "apps.kruise.io/cloneset-instance-id"
TIMESTAMP = "lifecycle.apps.kruise.io/timestamp"
CONFLICT = "Operation cannot be fulfilled"
UNTOLD = "(not told)"
"""Stands where the log does not tell a value; anything is equal to it."""
_WORD = re.compile(
    r"(?P<container>container (?P<name>\S+)\[(?P<facts>[^\]]*)\])"
    r"|(?P<type>[\w./-]+)=(?P<value>\w+)(?:\((?P<why>.*?)\)(?= |$))?"
)


@dataclasses.dataclass(slots=True, kw_only=True)
class Recorded:
    """The state of the recorded cluster."""

    workloads: dict[str, Json] = dataclasses.field(default_factory=dict)
    revisions: dict[str, Json] = dataclasses.field(default_factory=dict)
    pods: dict[str, Picture] = dataclasses.field(default_factory=dict)
    claims: dict[str, Json] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(slots=True, kw_only=True)
class Acts:
    """What the controller did to pods since the last look, in order."""

    updated: list[str] = dataclasses.field(default_factory=list)
    deleted: list[str] = dataclasses.field(default_factory=list)
    states: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    """The lifecycle states that each pod went through."""
    progress: list[str] = dataclasses.field(default_factory=list)
    """The reasons of the condition Progressing."""

    def enter(self, name: str, state: str) -> None:
        self.states.setdefault(name, []).append(state)


class Replay:
    """Plays the log of a recording."""

    def __init__(self, recording: Recording, kind: str, gap: Sequence[str], *, has_states: bool = True) -> None:
        """`kind`: the one that the recording is about. `gap`: the lines that matter where the log leaves some out; the
        rest of it proves them. `has_states`: new pods carry a lifecycle state."""
        self._recording = recording
        self._has_states = has_states
        self._kind = kind
        self._gap = gap
        self._position = 0
        self._first_pod: Picture = {}
        self._texts: dict[str, str] = {}
        self.state = Recorded()
        self.acts = Acts()

    def take_acts(self) -> Acts:
        acts, self.acts = self.acts, Acts()
        return acts

    def until_step(self, number: int, *, at: float = math.inf) -> Recorded:
        """The state right before step `number`, or at the time `at` if that comes sooner."""
        lines = self._recording.lines
        while self._position < len(lines):
            line = lines[self._position]
            if line.step >= number or line.at > at:
                break
            self._play(line)
            self._position += 1
            if self._position == self._recording.left_out_at:
                self._start_all()
            if self._position == self._recording.gap_at:
                for text in self._gap:
                    target, _, change = text.partition(" ")
                    self._play(Line(at=line.at, step=line.step, target=target, text=change))
        return copy.deepcopy(self.state)

    def set_condition(self, pod: str, kind: str, status: str) -> None:
        self.state.pods[pod][f"condition {kind}"] = (status, "", "")

    def _play(self, line: Line) -> None:
        kind, _, name = line.target.partition("/")
        if kind == "Event":
            if found := UPDATED.match(line.text):
                self._imply_update(found["pod"], found["revision"])
            return
        if kind == "Pod":
            self._play_pod(name, line.text)
            return
        shelf = {
            self._kind: self.state.workloads,
            "ControllerRevision": self.state.revisions,
            "PersistentVolumeClaim": self.state.claims,
        }.get(kind)
        if shelf is None:
            return
        if line.text.startswith("DELETED"):
            del shelf[name]
        else:
            change = json.loads(line.text.removeprefix("ADDED "))
            merge(shelf.setdefault(name, {"owned": True}), change)
            conditions = change.get("status", {}).get("conditions") or {}
            if "reason" in conditions.get("Progressing", {}):
                self.acts.progress.append(conditions["Progressing"]["reason"])
            if change.get("metadata", {}).get("ownerReferences", ()) is None:
                shelf[name]["owned"] = False

    def _play_pod(self, name: str, text: str) -> None:
        if text.startswith("DELETED"):
            del self.state.pods[name]
            return
        if text.startswith("ADDED"):
            found = re.match(r"ADDED node=(\S+) (\(diff\) )?(.*)", text)
            assert found is not None
            picture = copy.deepcopy(self._first_pod) if found[2] else {}
            picture.pop("owners", None)  # a difference to the first pod does not tell its owner
            self._change(picture, json.loads(found[3]))
            picture["node"] = found[1].removeprefix("None")
            if not found[2]:
                self._first_pod = copy.deepcopy(picture)
            self.state.pods[name] = picture
            if STATE_LABEL in picture["labels"]:
                self.acts.enter(name, picture["labels"][STATE_LABEL])
            return
        picture = self.state.pods[name]
        words, document = _split(text)
        for found in _WORD.finditer(words):
            self._word(picture, found)
        if document:
            if "controller-revision-hash" in document.get("metadata", {}).get("labels", {}):
                self.acts.updated.append(name)
            if "deletionTimestamp" in document.get("metadata", {}):
                self.acts.deleted.append(name)
            self._change(picture, document)
            state = document.get("metadata", {}).get("labels", {}).get(STATE_LABEL)
            if state:
                self.acts.enter(name, state)
            if self._recording.terse:
                picture["labels"][STATE_LABEL] = UNTOLD

    def _imply_update(self, name: str, revision: str) -> None:
        """Some logs tell of an update by its event alone."""
        picture = self.state.pods.get(name)
        if picture is None or picture["labels"]["controller-revision-hash"] == revision:
            return
        self.acts.updated.append(name)
        labels = {"controller-revision-hash": revision, STATE_LABEL: UNTOLD}
        if "pod-template-hash" in picture["labels"]:
            labels["pod-template-hash"] = revision.partition("-")[2]
        picture["labels"] |= labels
        picture["annotations"]["apps.kruise.io/inplace-update-state"] = UNTOLD
        for aspect in [aspect for aspect in picture if aspect.startswith("container ")]:
            del picture[aspect]
        picture["generation"] = UNTOLD
        picture["images"] = dict.fromkeys(picture["images"], UNTOLD)

    def _word(self, picture: Picture, found: re.Match[str]) -> None:
        if found["container"]:
            facts = dict(fact.split("=", 1) for fact in found["facts"].split())
            status = dict(picture.get(f"container {found['name']}", {}))
            picture[f"container {found['name']}"] = {**status, **facts}
        elif found["type"] == "phase":
            picture["phase"] = found["value"]
        else:
            reason, _, message = (found["why"] or "").partition(":")
            message = message.strip()
            if message == "as above":
                message = self._texts[found["type"]]
            elif message:
                self._texts[found["type"]] = message
            picture[f"condition {found['type']}"] = (found["value"], reason, message)

    def _change(self, picture: Picture, document: Json) -> None:
        metadata = document.get("metadata", {})
        for part in ("labels", "annotations"):
            values = metadata.get(part, {})
            if values is None:
                picture[part] = {}
                continue
            for key, value in values.items():
                if value == "<same text as above>":
                    values[key] = self._texts[key]
                elif part == "annotations" and value is not None:
                    self._texts[key] = value
            values.pop(TIMESTAMP, None)
            merge(picture.setdefault(part, {}), values)
        if "finalizers" in metadata:
            picture["finalizers"] = metadata["finalizers"] or []
        if "ownerReferences" in metadata:
            owners = metadata["ownerReferences"] or []
            picture["owners"] = [f"{owner['kind']}/{owner['name']}" for owner in owners]
        if "generation" in metadata:
            picture["generation"] = metadata["generation"]
        if "deletionTimestamp" in metadata:
            picture["terminating"] = True
        spec = document.get("spec", {})
        containers = {**document.get("containers", {}), **spec.get("containers", {})}
        for name, container in containers.items():
            if "image" in container:
                picture.pop(f"container {name}", None)  # it restarts; not every log tells when
                picture.setdefault("images", {})[name] = container["image"]
        if "readinessGates" in spec:
            picture["gates"] = list(spec["readinessGates"] or ())
        picture.setdefault("finalizers", [])
        picture.setdefault("terminating", False)

    def _start_all(self) -> None:
        """The lines of the start were left out: what every pod went through."""
        for name, picture in self.state.pods.items():
            if self._has_states and picture["labels"].get(STATE_LABEL) != "Normal":
                picture["labels"][STATE_LABEL] = "Normal"
                self.acts.enter(name, "Normal")
            gates = picture.setdefault("gates", [])
            picture["phase"] = "Running"
            ours = [gate for gate in ("KruisePodReady", "InPlaceUpdateReady") if gate in gates]
            for kind in ("PodScheduled", "Initialized", "ContainersReady", *ours):
                picture[f"condition {kind}"] = ("True", "", "")
            held = [gate for gate in gates if "." in gate]
            picture["condition Ready"] = ("False", "ReadinessGatesNotReady", "") if held else ("True", "", "")
            for name, image in picture["images"].items():
                picture[f"container {name}"] = {"image": image, "restartCount": "0", "ready": "True"}


def merge(target: Json, change: Json) -> None:
    """A merge patch, in place."""
    for key, value in change.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict):
            below = target.get(key)
            if not isinstance(below, dict):
                if isinstance(below, str):
                    continue  # "(as in the manifest, with defaults)"
                below = target[key] = {}
            merge(below, value)
        else:
            target[key] = value


def _split(text: str) -> tuple[str, Json]:
    """The words of a change, and the difference that may follow them."""
    for found in re.finditer(r"(?:^| )(\{)", text):
        try:
            document: Json = json.loads(text[found.start(1) :])
        except ValueError:
            continue
        return text[: found.start()], document
    return text, {}
