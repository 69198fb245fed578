"""Random workloads, how their pods came to where they are, and a change: each a printable value made from its seed.

    case = make_case(17)
    print(case.text())

A case does not know the names of its pods: it means them by their position in the order of names. CloneSets are made
here, other kinds in `sets`.
"""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

Json = dict[str, Any]

NAME = "web"
IN_PLACE_HOOK = "example.com/in-place"
DELETE_HOOK = "example.com/delete"
NORMAL_HOOK = "example.com/normal"
FINALIZER = "example.com/finalizer"

_IMAGES = {
    "main": ("nginx:1.25", "nginx:1.26", "nginx:mainline"),
    "side": ("redis:6", "redis:7"),
    "extra": ("openkruise/guestbook:v1", "openkruise/guestbook:v2", "openkruise/guestbook:v3"),
}
"""Those that real nodes have, too."""
_GATES = ("CloneSetPartitionRollback", "PreparingUpdateAsUpdate", "CloneSetShortHash")
_IN_TEMPLATE = ("image", "label", "annotation", "env", "args")
CRASHES = "sim.kruise.io/crash-loop.main"
NEVER_READY = "sim.kruise.io/never-ready.main"
_CALM = None
_LONG_ENOUGH_TO_BE_STUCK = 400.0
"""Seconds. A pod that is not ready for a shorter time may still be on its way: nobody can tell by looking at it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Edit:
    """One thing that is changed in a workload."""

    what: str
    """`image`, `label`, `annotation`, `env`, `args`, `resources`, `replicas`, `rolling`, `type`, `min-ready`,
    `to-delete`, or `spec`: a whole field of it."""
    where: str = ""
    """A container, or a key."""
    value: Any = None


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """One thing that happens on the way to the start. Empty edits and labels: only time passes."""

    edits: tuple[Edit, ...] = ()
    pods: tuple[int, ...] = ()
    """The pods that get these labels and annotations."""
    labels: Mapping[str, str | None] = dataclasses.field(default_factory=dict)
    annotations: Mapping[str, str | None] = dataclasses.field(default_factory=dict)
    wait: float | None = _CALM
    """Seconds until the next step; None: until nothing happens any more."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    seed: int
    manifest: Json
    steps: tuple[Step, ...]
    change: tuple[Edit, ...]
    gates: str = ""
    """Of the manager, as on its command line."""
    answers_hooks: bool = True
    """False: nobody answers once the change is made, and none is foreseen."""

    def text(self) -> str:
        """For people who look into a difference."""
        spec = {key: value for key, value in self.manifest["spec"].items() if key not in ("selector", "template")}
        template = self.manifest["spec"]["template"]
        lines = [f"case {self.seed}: {_compact(spec)} {self.gates}".rstrip(), f"  template {_compact(template)}"]
        for step in self.steps:
            after = "until calm" if step.wait is None else f"for {step.wait} s"
            told = [_told(edit) for edit in step.edits]
            if step.pods:
                told.append(f"pods {list(step.pods)} get {_compact({**step.labels, **step.annotations})}")
            lines.append(f"  then {', '.join(told) or 'nothing'}, {after}")
        hooks = "" if self.answers_hooks else " (nobody answers hooks)"
        lines.append(f"  change {', '.join(map(_told, self.change)) or 'nothing'}{hooks}")
        return "\n".join(lines)


def _told(edit: Edit) -> str:
    return f"{edit.what} {edit.where}={_compact(edit.value)}" if edit.where else f"{edit.what}={_compact(edit.value)}"


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def edited(document: Mapping[str, Any], edits: Sequence[Edit], pods: Sequence[str]) -> Json:
    """The whole object after these changes. `pods` are the names of its pods, in order."""
    made = copy.deepcopy(dict(document))
    spec = made["spec"]
    template = spec["template"]
    for edit in edits:
        match edit.what:
            case "image" | "args" | "env" | "resources":
                container = next(item for item in template["spec"]["containers"] if item["name"] == edit.where)
                container[edit.what] = edit.value
            case "label" | "annotation":
                known = template["metadata"].setdefault(f"{edit.what}s", {})
                known.pop(edit.where, None)
                if edit.value is not None:
                    known[edit.where] = edit.value
            case "replicas":
                spec["replicas"] = edit.value
            case "min-ready":
                spec["minReadySeconds"] = edit.value
            case "type":
                spec["updateStrategy"]["type"] = edit.value
            case "rolling":
                rolling = spec["updateStrategy"].setdefault("rollingUpdate", {})
                rolling.pop(edit.where, None)
                if edit.value is not None:
                    rolling[edit.where] = edit.value
            case "to-delete":
                chosen = [pods[position] for position in edit.value if position < len(pods)]
                spec.setdefault("scaleStrategy", {})["podsToDelete"] = chosen
            case "spec":
                spec[edit.where] = copy.deepcopy(edit.value)
            case _:
                raise ValueError(f"nobody knows how to change {edit.what}")
    return made


def suits_real_time(case: Case) -> bool:
    """It needs neither minutes nor a moment that must be hit: the start is one at which everything is at rest. Claims
    are left out, since nobody makes volumes."""
    spec = case.manifest["spec"]
    annotations = spec["template"]["metadata"].get("annotations") or {}
    is_short = spec.get("minReadySeconds", 0) <= 10 and annotations.get("sim.kruise.io/slow-start") != "12"
    is_busy = any(edit.what in (*_IN_TEMPLATE, "replicas", "to-delete") for edit in case.change)
    has_extras = "volumeClaimTemplates" in spec or bool(case.gates)
    return is_short and is_busy and not has_extras and all(map(_comes_to_rest, case.steps))


def _comes_to_rest(step: Step) -> bool:
    only_labels = step.labels.keys() <= {"order", "tier"} and not step.annotations and not step.edits
    return step.wait is None or only_labels


def suits_real_nodes(case: Case) -> bool:
    """Nothing in it is asked of simulated nodes only, there are a few pods, but not too many for small nodes, and they
    get another image."""
    text = f"{_compact(case.manifest)} {case.text()}"
    is_fit = all(word not in text for word in ("sim.kruise.io", "fieldRef", "args"))
    moves = any(edit.what == "image" for edit in case.change)
    return suits_real_time(case) and is_fit and moves and 3 <= case.manifest["spec"]["replicas"] <= 6


def make_case(seed: int) -> Case:
    """The case of this number: always the same."""
    return Maker(seed).case()


class Maker:
    """Of CloneSets; those of other kinds are like them in most."""

    def __init__(self, seed: int, kind: str = "") -> None:
        self._seed = seed
        self._random = Random(f"plan and reality {kind}{seed}")
        self._replicas = self._random.randint(1, 12)
        self._containers = list(_IMAGES)[: self._one_of((1, 6), (2, 3), (3, 1))]
        self._images = dict.fromkeys(self._containers, 0)
        self._is_in_place = False
        self._may_stand_still = False
        """Paused, or OnDelete: nobody may have tried what was rolled out last."""
        self._is_broken = False
        """What was rolled out last does not work."""

    def case(self) -> Case:
        manifest = self._manifest()
        steps = self._steps()
        change = self._change()
        hooked = "lifecycle" in manifest["spec"]
        return Case(
            seed=self._seed,
            manifest=manifest,
            steps=steps,
            change=change,
            gates=self._gates(),
            answers_hooks=not (hooked and self._chance(0.2)),
        )

    def _gates(self) -> str:
        return f"{self._random.choice(_GATES)}=true" if self._chance(0.12) else ""

    # Chance

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _one_of(self, *weighted: tuple[Any, float]) -> Any:
        values, weights = zip(*weighted, strict=True)
        return self._random.choices(values, weights)[0]

    def _some(self, most: int) -> tuple[int, ...]:
        """Positions of a few pods."""
        count = self._random.randint(1, max(1, min(most, self._replicas)))
        return tuple(sorted(self._random.sample(range(self._replicas), min(count, self._replicas))))

    def _percent(self) -> str:
        return f"{self._random.choice((1, 10, 20, 25, 33, 50, 60, 75, 99, 100))}%"

    # What there is

    def _manifest(self) -> Json:
        metadata: Json = {"labels": {"app": NAME, "team": "a"}}
        pod: Json = {"containers": [{"name": name, "image": _IMAGES[name][0]} for name in self._containers]}
        spec: Json = {"replicas": self._replicas, "selector": {"matchLabels": {"app": NAME}}}
        annotations: dict[str, str] = {}
        if self._chance(0.2):
            annotations["sim.kruise.io/slow-start"] = str(self._random.choice((2, 5, 12)))
        if self._chance(0.12):
            annotations["sim.kruise.io/stop-seconds"] = str(self._random.choice((2, 6)))
        if self._chance(0.12):
            self._read_environment(pod, annotations)
        if annotations:
            metadata["annotations"] = annotations
        lifecycle = self._lifecycle(metadata) if self._chance(0.3) else {}
        if lifecycle:
            spec["lifecycle"] = lifecycle
        if self._chance(0.15):
            mount = {"name": "data", "mountPath": "/data"}
            pod["containers"][0]["volumeMounts"] = [mount]
            claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
            spec["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": claim}]
        if self._chance(0.3):
            spec["minReadySeconds"] = self._random.choice((1, 3, 10, 25))
        scale: Json = {}
        if self._chance(0.08):
            scale["maxUnavailable"] = self._random.randint(1, 3)
        if self._chance(0.08):
            scale["enablePVCReuse"] = True
        if scale:
            spec["scaleStrategy"] = scale
        spec["template"] = {"metadata": metadata, "spec": pod}
        spec["updateStrategy"] = self._strategy()
        return {
            "apiVersion": "apps.kruise.io/v1beta1",
            "kind": "CloneSet",
            "metadata": {"name": NAME},
            "spec": spec,
        }

    def _read_environment(self, pod: Json, annotations: dict[str, str]) -> None:
        annotations["example.com/level"] = "info"
        source = {"fieldRef": {"fieldPath": "metadata.annotations['example.com/level']"}}
        pod["containers"][-1]["env"] = [{"name": "LEVEL", "valueFrom": source}]

    def _lifecycle(self, metadata: Json) -> Json:
        """Hooks; the template has what they are made of, so that every pod is held."""
        found: Json = {}
        if self._chance(0.7):
            if self._chance(0.3):
                found["inPlaceUpdate"] = {"finalizersHandler": [FINALIZER]}
                metadata["finalizers"] = [FINALIZER]
            else:
                found["inPlaceUpdate"] = {"labelsHandler": {IN_PLACE_HOOK: "true"}}
                metadata["labels"][IN_PLACE_HOOK] = "true"
            if self._chance(0.4):
                found["inPlaceUpdate"]["markPodNotReady"] = True
        if self._chance(0.4) and not metadata.get("finalizers"):
            found["preDelete"] = {"labelsHandler": {DELETE_HOOK: "true"}}
            metadata["labels"][DELETE_HOOK] = "true"
            if self._chance(0.4):
                found["preDelete"]["markPodNotReady"] = True
        if self._chance(0.15):
            found["preNormal"] = {"labelsHandler": {NORMAL_HOOK: "true"}}
        return found

    def _strategy(self) -> Json:
        policy = self._one_of(("InPlaceIfPossible", 11), ("ReCreate", 5), ("InPlaceOnly", 3))
        self._is_in_place = policy != "ReCreate"
        rolling: Json = {"podUpdatePolicy": policy}
        if self._chance(0.75):
            rolling["maxUnavailable"] = self._limit(least=1)
        if policy != "InPlaceOnly" and self._chance(0.35):
            rolling["maxSurge"] = self._one_of((self._random.randint(1, 3), 3), (self._percent(), 1))
            if self._chance(0.4):
                rolling["maxUnavailable"] = 0
        if self._chance(0.3):
            rolling["partition"] = self._partition()
        if self._chance(0.2):
            rolling["priorityStrategy"] = self._priority()
        if self._chance(0.12):
            rolling["scatterStrategy"] = [{"key": "tier", "value": "gold"}]
        if self._chance(0.04):
            rolling["paused"] = self._may_stand_still = True
        if self._is_in_place and self._chance(0.15):
            rolling["inPlaceUpdateStrategy"] = {"gracePeriodSeconds": self._random.choice((1, 4, 10))}
        strategy: Json = {"rollingUpdate": rolling}
        if self._chance(0.05):
            strategy["type"] = "OnDelete"
            self._may_stand_still = True
        return strategy

    def _limit(self, *, least: int) -> int | str:
        if self._chance(0.3):
            return self._percent()
        return min(self._random.randint(least, max(least, self._replicas)), self._random.randint(least, 4))

    def _partition(self) -> int | str:
        return self._percent() if self._chance(0.3) else self._random.randint(0, self._replicas)

    def _priority(self) -> Json:
        if self._chance(0.5):
            return {"orderPriority": [{"orderedKey": "order"}]}
        terms = [
            {"weight": 30 + 40 * (tier == "gold"), "matchSelector": {"matchLabels": {"tier": tier}}}
            for tier in ("gold", "tin")
        ]
        return {"weightPriority": terms}

    # How it came to where it is

    def _steps(self) -> tuple[Step, ...]:
        steps = []
        if self._chance(0.45):
            steps += self._labelled()
        if self._chance(0.35):
            steps += self._halfway()
        if self._chance(0.2):
            sick = {NEVER_READY: "true"}
            steps.append(Step(pods=self._some(3), annotations=sick, wait=_LONG_ENOUGH_TO_BE_STUCK))
        # A pod that shows what does not work must stay to show it.
        if self._chance(0.05) and not self._is_broken:
            label = {"apps.kruise.io/specified-delete": "true"}
            steps.append(Step(pods=self._some(2), labels=label, wait=self._random.choice((0.0, 0.5, 2.0))))
        return tuple(steps)

    def _labelled(self) -> list[Step]:
        tiers: dict[str, list[int]] = {"gold": [], "tin": []}
        for position in range(self._replicas):
            tiers[self._random.choice(("gold", "tin"))].append(position)
        steps = [Step(pods=tuple(pods), labels={"tier": tier}, wait=0.0) for tier, pods in tiers.items() if pods]
        for position in range(self._replicas):
            if self._chance(0.7):
                order = {"order": f"shard-{self._random.randint(0, 4)}"}
                steps.append(Step(pods=(position,), labels=order, wait=0.0))
        return [*steps, Step()]

    def _halfway(self) -> list[Step]:
        """A rollout that has begun: stopped by a partition, or by what it rolls out, or caught in the middle."""
        way = self._one_of(("partition", 4), ("missing", 3), ("crash", 2), ("middle", 3))
        self._is_broken = way in ("missing", "crash")
        # What does not work must have shown on somebody, or nobody can know.
        kept = Edit("rolling", "partition", self._random.randint(0, self._replicas - self._is_broken))
        if way == "missing":
            bad = Edit("image", self._containers[0], "nginx:missing")
            return [Step(edits=(bad, kept) if self._chance(0.5) else (bad, Edit("rolling", "partition")))]
        if way == "crash":
            # Without a readiness probe a container that crashes would be ready for a moment at each of its starts, and
            # what a controller does in these moments is chance.
            edits = (
                self._next_image(self._containers[0]),
                Edit("annotation", CRASHES, "true"),
                Edit("annotation", NEVER_READY, "true"),
            )
            return [Step(edits=(*edits, kept) if self._chance(0.5) else (*edits, Edit("rolling", "partition")))]
        image = self._next_image(self._random.choice(self._containers))
        if way == "middle":
            return [Step(edits=(image,), wait=self._random.choice((0.1, 0.6, 1.3, 2.2, 3.7, 6.0)))]
        return [Step(edits=(image, kept))]

    def _next_image(self, container: str) -> Edit:
        self._images[container] = (self._images[container] + 1) % len(_IMAGES[container])
        return Edit("image", container, _IMAGES[container][self._images[container]])

    # What is changed

    def _change(self) -> tuple[Edit, ...]:
        if self._chance(0.03):
            return ()
        makers = {
            self._images_change: 12,
            self._metadata_change: 4,
            self._rebuilding_change: 4,
            self._replicas_change: 6,
            self._strategy_change: 5,
            self._deletion_change: 2,
        }
        count = self._one_of((1, 10), (2, 5), (3, 2))
        chosen: dict[Any, None] = {}
        while len(chosen) < count:
            chosen.setdefault(self._one_of(*makers.items()))
        edits = [edit for make in makers if make in chosen for edit in make()]
        return tuple([*self._repair(edits), *edits] if self._is_broken else edits)

    def _repair(self, edits: Sequence[Edit]) -> list[Edit]:
        """A new template that still has the fault of the last one would fail too, and nobody could know."""
        is_same = all(edit.what not in _IN_TEMPLATE for edit in edits)
        if is_same and not self._may_stand_still:
            return []
        return [
            self._next_image(self._containers[0]),
            Edit("annotation", CRASHES),
            Edit("annotation", NEVER_READY),
        ]

    def _images_change(self) -> list[Edit]:
        chosen = [name for name in self._containers[1:] if self._chance(0.4)]
        if not chosen or self._chance(0.7):
            chosen = [self._containers[0], *chosen]
        return [self._next_image(name) for name in chosen]

    def _metadata_change(self) -> list[Edit]:
        label = Edit("label", "team", self._random.choice("bcd"))
        note = Edit("annotation", "example.com/level", self._random.choice(("debug", "warning")))
        chosen: list[Edit] = self._one_of(([label], 2), ([note], 2), ([label, note], 1))
        return chosen

    def _rebuilding_change(self) -> list[Edit]:
        container = self._random.choice(self._containers)
        if self._chance(0.5):
            return [Edit("args", container, ["--verbose"])]
        return [Edit("env", container, [{"name": "MODE", "value": self._random.choice(("fast", "safe"))}])]

    def _replicas_change(self) -> list[Edit]:
        wanted = (
            self._random.randint(0, 12)
            if self._chance(0.5)
            else self._replicas + self._random.choice((-2, -1, 1, 2, 3))
        )
        return [Edit("replicas", value=max(0, wanted))]

    def _strategy_change(self) -> list[Edit]:
        edits = [
            Edit("rolling", "partition", self._one_of((0, 3), (None, 1), (self._partition(), 3))),
            Edit("rolling", "maxUnavailable", self._limit(least=1)),
            Edit("rolling", "paused", self._one_of((True, 1), (False, 2))),
            Edit("rolling", "podUpdatePolicy", self._random.choice(("ReCreate", "InPlaceIfPossible", "InPlaceOnly"))),
            Edit("min-ready", value=self._random.choice((0, 5))),
            Edit("rolling", "maxSurge", self._random.choice((None, 1, 2))),
            Edit("type", value=self._one_of(("RollingUpdate", 2), ("OnDelete", 1))),
        ]
        return self._random.sample(edits, self._one_of((1, 4), (2, 2)))

    def _deletion_change(self) -> list[Edit]:
        return [Edit("to-delete", value=list(self._some(2)))]
