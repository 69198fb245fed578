"""A recording and our cluster side by side, look by look, and in the end.

The recorded names of pods are given to ours as late as possible: a name is bound when a step needs it. Pods that
nothing has told apart so far may be exchanged.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import re
from collections.abc import Container, Mapping, Sequence
from typing import Any

from tests.recordings.environment import zone_of
from tests.recordings.kinds import RecordedKind
from tests.recordings.matching import match
from tests.recordings.ours import Names, claim_picture, pod_picture, revision_picture, workload_picture
from tests.recordings.parsing import Json, Recording, Step
from tests.recordings.pictures import anonymous, holds, sparse, unlike, with_acts
from tests.recordings.recorded import CONFLICT, ID_LABEL, STATE_LABEL, Acts, Picture, Recorded

PER_PASS = ("ScaleUpLimited",)
"""Events that every pass repeats: how often says how often somebody looked."""
OUR_OWN = {"Waiting"}
"""Conditions that only ours has: what the original shows nobody."""
COMBINED = "(combined from similar events): "


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    aspect: str
    """`status`, `pod labels`, `events`, ...: what a table of chosen differences names."""
    text: str

    def __str__(self) -> str:
        return f"[{self.aspect}] {self.text}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Both clusters at one moment; ours as it is."""

    recorded: Recorded
    workloads: Mapping[str, Json]
    pods: Mapping[str, Json]
    revisions: Mapping[str, Json]
    claims: Sequence[Json]


class Comparison:
    """Collects what differs; says it once, and goes on."""

    def __init__(self, recording: Recording, kind: RecordedKind, names: Names) -> None:
        self.recording = recording
        self.kind = kind
        self.names = names
        self.found: list[Difference] = []
        self.looks: list[Look] = []
        self.glances: list[Look] = []
        self._bound: dict[str, str] = {}
        self._recorded_history: dict[str, list[Picture]] = collections.defaultdict(list)
        self._our_history: dict[str, list[Picture]] = collections.defaultdict(list)
        self._known: dict[str, set[str]] = collections.defaultdict(set)
        self._acts = Acts()
        self._revision_of: dict[str, str] = {}
        self._state_of: dict[str, str] = {}
        self._going: set[str] = set()
        self._progress = ""

    def differ(self, aspect: str, text: str) -> None:
        self.found.append(Difference(aspect, text))

    def bind(self, name: str, living: Container[str]) -> str:
        """Give one of our pods a recorded name for good: the one of the same number, if it fits."""
        if name in self._bound:
            return self._bound[name]
        if self.kind.names_pods:
            return name
        number = int(name.rpartition("-")[2])
        same = self.names.pods[number - 1 : number]
        free = [our for our in self.names.pods if our not in self._bound.values() and our in living]
        for our in sorted(free, key=lambda our: our not in same):
            if self._fits(name, our) and self._matching({**self._bound, name: our}) is not None:
                self._bound[name] = our
                return our
        chosen = (same if same and same[0] in free else free)[0]
        self._bound[name] = chosen
        self.differ("matching", f"no pod of ours had gone the way of {name}; {chosen} stands for it")
        return chosen

    def _fits(self, name: str, our: str) -> bool:
        return all(
            not unlike(before, now)
            for before, now in zip(self._recorded_history[name], self._our_history[our], strict=True)
        )

    def _matching(self, bound: Mapping[str, str]) -> dict[str, str] | None:
        for name in bound:
            self._even(name, bound[name])
        recorded, ours = list(self._recorded_history), list(self._our_history)
        return match(recorded, ours, self._fits, bound)

    def _even(self, name: str, our: str) -> None:
        """Both were absent in all looks so far, if not seen yet."""
        for _ in range(len(self._recorded_history[name]), len(self.looks)):
            self._recorded_history[name].insert(0, {})
        for _ in range(len(self._our_history[our]), len(self.looks)):
            self._our_history[our].insert(0, {})

    def see_act(self, kind: str, pod: Json) -> None:
        name, labels = pod["metadata"]["name"], pod["metadata"].get("labels", {})
        revision = labels.get("controller-revision-hash", "")
        if kind == "MODIFIED" and self._revision_of.get(name, revision) != revision:
            self._acts.updated.append(name)
        self._revision_of[name] = revision
        state = labels.get(STATE_LABEL, "")
        if state and kind != "DELETED" and (kind == "ADDED" or self._state_of.get(name) != state):
            self._acts.enter(name, state)
        self._state_of[name] = state
        uid = pod["metadata"]["uid"]
        if "deletionTimestamp" in pod["metadata"] and uid not in self._going:
            self._going.add(uid)
            self._acts.deleted.append(name)

    def see_workload(self, kind: str, workload: Json) -> None:
        for condition in workload.get("status", {}).get("conditions", ()):
            if condition["type"] == "Progressing" and condition["reason"] != self._progress and kind != "DELETED":
                self._progress = condition["reason"]
                self._acts.progress.append(self._progress)

    def note_known(self, recorded: Recorded) -> None:
        for name, workload in recorded.workloads.items():
            self._known[name] |= set(workload.get("status", {}))

    def compare_spread(self, step: Step, look: Look) -> None:
        """How many pods the zones have, whichever zone it is (CS-93)."""
        recorded = [picture["node"] for picture in look.recorded.pods.values() if not picture["terminating"]]
        ours = [pod["spec"]["nodeName"] for pod in look.pods.values() if "deletionTimestamp" not in pod["metadata"]]
        before, now = (sorted(collections.Counter(map(zone_of, nodes)).values()) for nodes in (recorded, ours))
        self._same("spread", f"after step {step.number} ({step.title})", before, now)

    def compare(self, step: Step, look: Look, acts: Acts, *, in_order: bool) -> None:
        """`acts`: what was recorded since the last look."""
        where = f"after step {step.number} ({step.title})"
        self._compare_workloads(where, look.recorded, look.workloads)
        self._compare_revisions(where, look.recorded, look.revisions)
        self._same("progress", where, acts.progress, self._acts.progress)
        self._compare_pods(where, look, self._comparable(acts, in_order), self._comparable(self._acts, in_order))
        self._acts = Acts()

    def _comparable(self, acts: Acts, in_order: bool) -> Acts:
        told = not self.recording.terse and not self.recording.sparse
        return Acts(
            updated=acts.updated if in_order else [],
            deleted=acts.deleted if in_order else [],
            states=acts.states if told else {},
        )

    def _compare_workloads(self, where: str, recorded: Recorded, ours: Mapping[str, Json]) -> None:
        if set(recorded.workloads) != set(ours):
            self.differ("workloads", f"{where}: recorded {sorted(recorded.workloads)}, ours {sorted(ours)}")
        for name in set(recorded.workloads) & set(ours):
            before, now = recorded.workloads[name], workload_picture(ours[name], self.names)
            self._same("generation", where, before["metadata"]["generation"], now["generation"])
            spec = workload_picture({**before, "status": {}}, self.names)["spec"]
            for key in sorted(set(spec) | set(now["spec"])):
                if key != "volumeClaimTemplates":
                    self._same(f"spec.{key}", where, spec.get(key), now["spec"].get(key))
            status = before.get("status", {})
            for key in sorted(self._known[name] - {"conditions"}):
                self._same(f"status.{key}", where, status.get(key), now["status"].get(key))
            self._same_conditions(where, status.get("conditions", {}), now["conditions"])

    def _same_conditions(self, where: str, recorded: Json, ours: Json) -> None:
        wanted = {
            kind: tuple(re.sub(r"pod-\d+", "pod-N", condition.get(key, "")) for key in ("status", "reason", "message"))
            for kind, condition in recorded.items()
            if CONFLICT not in condition.get("message", "")
        }
        for kind in sorted((set(wanted) | set(ours)) - OUR_OWN):
            self._same(f"condition {kind}", where, wanted.get(kind), ours.get(kind))

    def _compare_revisions(self, where: str, recorded: Recorded, ours: Mapping[str, Json]) -> None:
        now = {self.names.plain(name): revision_picture(obj, self.names) for name, obj in ours.items()}
        for name in sorted(set(recorded.revisions) | set(now)):
            before = recorded.revisions.get(name)
            if before is None or name not in now:
                self._same(f"revision {name}", where, before is not None, name in now)
                continue
            for key in ("labels", "annotations", "revision", "owned"):
                self._same(f"revision {key}", where, before.get(key, {}), now[name][key])

    def _compare_pods(self, where: str, look: Look, recorded_acts: Acts, our_acts: Acts) -> None:
        before = with_acts(self._recorded_pictures(look.recorded), recorded_acts)
        now = with_acts(self._our_pictures(look.pods, look.claims), our_acts)
        for shelf, pictures in ((self._recorded_history, before), (self._our_history, now)):
            for name in set(shelf) | set(pictures):
                history = shelf[name]
                while len(history) < len(self.looks):
                    history.insert(0, {})
                history.append(pictures.get(name, {}))
        self.looks.append(look)
        if self.kind.names_pods:
            self._bound = {name: name for name in (*self._recorded_history, *self._our_history)}
        if self._matching(self._bound) is None:
            self._explain(where, before, now)
            for shelf in (self._recorded_history, self._our_history):
                for history in shelf.values():
                    history[-1] = {}  # said once; go on from here

    def _explain(self, where: str, before: Mapping[str, Picture], now: Mapping[str, Picture]) -> None:
        present, ours = [n for n in before if before[n]], [n for n in now if now[n]]
        if len(present) != len(ours):
            self.differ("pods", f"{where}: recorded {len(present)} pods, ours {len(ours)}")
        free = [name for name in ours if name not in self._bound.values()]
        told = False
        for name in present:
            candidates = [self._bound[name]] if name in self._bound else free
            compared = [(unlike(before[name], now.get(our, {})), our) for our in candidates]
            if not compared:
                continue
            least, our = min(compared, key=lambda entry: len(entry[0]))
            if our in free and not least:
                free.remove(our)
            for aspect in least:
                told = True
                self.differ(
                    f"pod {aspect}",
                    f"{where}: {name}: recorded {before[name][aspect]!r}, ours {now.get(our, {}).get(aspect)!r}",
                )
        if not told and len(present) == len(ours):
            self.differ("pods", f"{where}: each pod has a match, but not all of them at once")

    def _recorded_pictures(self, recorded: Recorded) -> dict[str, Picture]:
        pictures: dict[str, Picture] = {}
        for name, picture in recorded.pods.items():
            known = dict(picture)
            if not self.kind.is_per_node:
                known.pop("node")
            known["labels"] = anonymous(known["labels"])
            known.setdefault("generation", 1)
            if self.recording.sparse:
                known = sparse(known)
            pictures[name] = known
        for name, claim in recorded.claims.items():
            owner = name.partition("-")[2]
            told = {
                "labels": anonymous(claim["metadata"]["labels"]),
                "owners": [entry["kind"] for entry in claim["metadata"].get("ownerReferences", ())],
                "terminating": "deletionTimestamp" in claim["metadata"],
            }
            pictures.setdefault(owner, {}).setdefault("claims", []).append(told)
        return pictures

    def _our_pictures(self, pods: Mapping[str, Json], claims: Sequence[Json]) -> dict[str, Picture]:
        pictures: dict[str, Picture] = {}
        for name, pod in pods.items():
            picture = pod_picture(pod, self.names)
            if self.kind.is_per_node:
                picture["node"] = pod["spec"].get("nodeName", "")
            pictures[name] = sparse(picture) if self.recording.sparse else picture
        for claim in claims:
            told = claim_picture(claim)
            told.pop("spec")
            number = claim["metadata"]["labels"].get(ID_LABEL)
            owner = f"web-{number}" if number is not None else claim["metadata"]["name"].partition("-")[2]
            pictures.setdefault(owner, {}).setdefault("claims", []).append(told)
        return pictures

    def _same(self, aspect: str, where: str, recorded: Any, ours: Any) -> None:
        if recorded != ours:
            self.differ(aspect, f"{where}: recorded {recorded!r}, ours {ours!r}")

    # At the end

    def compare_events(self, events: list[Json]) -> None:
        ours: collections.Counter[tuple[str, ...]] = collections.Counter()
        for event in events:
            if event.get("source", {}).get("component") != self.kind.component:
                continue
            target = f"{event['involvedObject']['kind']}/{event['involvedObject']['name']}"
            told = event["message"].removeprefix(COMBINED)
            message = self.names.plain(self.names.without_pods(told))
            ours[target, event["type"], event["reason"], _cut(message)] += event.get("count") or 1
        recorded: collections.Counter[tuple[str, ...]] = collections.Counter()
        for row in self.recording.events:
            if row.component == self.kind.component:
                message = row.message.removeprefix(COMBINED)
                recorded[row.target, row.type, row.reason, _cut(message)] += row.count
        for key in sorted(set(ours) | set(recorded)):
            often = key[2] in PER_PASS and ours[key] and recorded[key]
            if ours[key] != recorded[key] and not often:
                self.differ("events", f"{' '.join(key)}: recorded {recorded[key]} times, ours {ours[key]} times")

    def compare_printed(self) -> None:
        """Objects printed in full: compared with ours of the state that they were taken from."""
        matching = self._matching(self._bound) or dict(self._bound)
        for title, obj in self.recording.objects:
            compare = {
                self.kind.kind: self._compare_printed_workload,
                "Pod": self._compare_printed_pod,
                "PersistentVolumeClaim": self._compare_printed_claim,
            }.get(obj["kind"])
            if compare is not None and not compare(title, obj, matching):
                self.differ("printed", f"{title} was printed at a moment that no look caught")

    def _compare_printed_workload(self, title: str, obj: Json, _: Mapping[str, str]) -> bool:
        name, wanted = obj["metadata"]["name"], workload_picture(obj, Names())
        for look in reversed(self.looks):
            known = look.recorded.workloads.get(name, {"metadata": {"generation": 0}})
            status = {key: value for key, value in known.get("status", {}).items() if key != "conditions"}
            if known["metadata"]["generation"] != wanted["generation"] or name not in look.workloads:
                continue
            if any(wanted["status"].get(key) != value for key, value in status.items()):
                continue
            where, now = f"as printed ({title})", workload_picture(look.workloads[name], self.names)
            self._same("status", where, wanted["status"], now["status"])
            for key, value in wanted["spec"].items():
                self._same(f"spec.{key}", where, value, now["spec"].get(key))
            self._compare_condition_fields(title, obj, look.workloads[name])
            if "template" in obj["spec"]:
                self._same("spec.template", where, obj["spec"]["template"], look.workloads[name]["spec"]["template"])
            return True
        return False

    def _compare_condition_fields(self, title: str, obj: Json, ours: Json) -> None:
        """Which fields a condition has (CS-25)."""
        now = {condition["type"]: sorted(condition) for condition in ours["status"].get("conditions", ())}
        for condition in obj["status"].get("conditions", ()):
            kind = condition["type"]
            if kind in now:
                self._same(f"fields of condition {kind}", title, sorted(condition), now[kind])

    def _compare_printed_pod(self, title: str, obj: Json, matching: Mapping[str, str]) -> bool:
        name, wanted = obj["metadata"]["name"], pod_picture(obj, Names())
        for look in [*reversed(self.looks), *self.glances]:
            if name not in look.recorded.pods or matching.get(name) not in look.pods:
                continue
            known = {**look.recorded.pods[name], "labels": anonymous(look.recorded.pods[name]["labels"])}
            known = sparse(known) if self.recording.sparse else known
            plain = sparse(wanted) if self.recording.sparse else wanted
            if unlike({aspect: value for aspect, value in known.items() if aspect in plain}, plain):
                continue
            pod = look.pods[matching[name]]
            now = pod_picture(pod, self.names)
            for aspect in unlike(wanted, now):
                self.differ(f"pod {aspect}", f"{title}: printed {wanted[aspect]!r}, ours {now.get(aspect)!r}")
            self._compare_printed_times(title, obj, pod)
            self._compare_printed_spec(title, obj["spec"], _renamed(pod["spec"], matching[name], name))
            return True
        return False

    def _compare_printed_times(self, title: str, obj: Json, pod: Json) -> None:
        """IPU-40, IPU-93: which conditions carry a time. Only some were printed with it."""
        ours = {condition["type"]: condition for condition in pod["status"]["conditions"]}
        for condition in obj["status"]["conditions"]:
            if "lastTransitionTime" in condition:
                has_time = ours[condition["type"]].get("lastTransitionTime") is not None
                where = f"{title}, condition {condition['type']}"
                self._same("pod transition times", where, condition["lastTransitionTime"] is not None, has_time)

    def _compare_printed_spec(self, title: str, wanted: Json, ours: Json) -> None:
        """Volumes and containers are printed in part; the node is the environment's."""
        for key in sorted(set(wanted) - {"nodeName"}):
            if not holds(ours.get(key), wanted[key]):
                self.differ(f"pod spec.{key}", f"{title}: printed {wanted[key]!r}, ours {ours.get(key)!r}")

    def _compare_printed_claim(self, title: str, obj: Json, matching: Mapping[str, str]) -> bool:
        name = obj["metadata"]["name"]
        pod = name.partition("-")[2]
        ours = name.replace(pod, matching.get(pod, "?"))
        seen = [claim for look in self.looks for claim in look.claims if claim["metadata"]["name"] == ours]
        wanted = claim_picture(obj)
        if seen and not any(claim_picture(claim) == wanted for claim in seen):
            for key, value in wanted.items():
                self._same(f"claim {key}", title, value, claim_picture(seen[0])[key])
        return bool(seen)

    def compare_revision_names(self) -> None:
        self._same("revision name", "the first one", self.recording.revision_example, self.names.raw_revisions[0])


def _renamed(spec: Json, our: str, name: str) -> Json:
    text = re.sub(r"kube-api-access-\w+", "kube-api-access-<x>", json.dumps(spec).replace(our, name))
    renamed: Json = json.loads(text)
    return renamed


def _cut(message: str) -> str:
    """Without the long description of an object."""
    return message.partition(", pod: {")[0]
