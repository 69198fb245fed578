"""Random StatefulSets and DaemonSets: cases as `cases` makes them of CloneSets."""

from __future__ import annotations

from typing import Any

from tests.foresight_reality.cases import DELETE_HOOK, NAME, Case, Edit, Json, Maker, Step

_GATE = {"conditionType": "InPlaceUpdateReady"}
_STATEFUL_GATES = ("StatefulSetStartOrdinal", "StatefulSetAutoResizePVCGate", "PreparingUpdateAsUpdate")
_GROWS = "StatefulSetAutoResizePVCGate"
_NODES = 4
"""Of the local cluster on which cases are played."""


def make_stateful_case(seed: int) -> Case:
    return _Stateful(seed, "StatefulSet ").case()


def make_daemon_case(seed: int) -> Case:
    return _Daemon(seed, "DaemonSet ").case()


class _Set(Maker):
    """What both have in common: a readiness gate in the template, and limits of their own."""

    kind = ""

    def _manifest(self) -> Json:
        made = super()._manifest()
        made["kind"] = self.kind
        made["spec"]["template"]["spec"]["readinessGates"] = [_GATE]
        made["spec"].pop("scaleStrategy", None)
        return made


class _Stateful(_Set):
    kind = "StatefulSet"

    def __init__(self, seed: int, kind: str) -> None:
        super().__init__(seed, kind)
        self._is_parallel = self._chance(0.6)
        self._has_claims = False

    def _gates(self) -> str:
        chosen = [
            name for name in _STATEFUL_GATES if self._chance(0.5 if self._has_claims and name == _GROWS else 0.12)
        ]
        return ",".join(f"{name}=true" for name in chosen)

    def _manifest(self) -> Json:
        made = super()._manifest()
        spec = made["spec"]
        spec["serviceName"] = NAME
        spec["podManagementPolicy"] = "Parallel" if self._is_parallel else "OrderedReady"
        if seconds := spec.pop("minReadySeconds", 0):
            spec["updateStrategy"].setdefault("rollingUpdate", {})["minReadySeconds"] = seconds
        if spec["updateStrategy"].get("type") == "OnDelete":
            spec["updateStrategy"] = {"type": "OnDelete"}
        if self._chance(0.25):
            spec["reserveOrdinals"] = self._reserved()
        if self._chance(0.15):
            spec["ordinals"] = {"start": self._random.randint(1, 4)}
        if self._is_parallel and self._chance(0.15):
            spec["scaleStrategy"] = {"maxUnavailable": self._random.randint(1, 3)}
        self._has_claims = "volumeClaimTemplates" in spec
        if self._has_claims and self._chance(0.7):
            spec["volumeClaimUpdateStrategy"] = {"type": "OnPodRollingUpdate"}
        if self._has_claims and self._chance(0.5):
            policy = {"whenDeleted": "Retain", "whenScaled": self._random.choice(("Retain", "Delete"))}
            spec["persistentVolumeClaimRetentionPolicy"] = policy
        return made

    def _reserved(self) -> list[int | str]:
        first = self._random.randint(0, 6)
        return self._one_of(([first], 3), ([f"{first}-{first + self._random.randint(0, 3)}"], 2), ([first, 9], 1))

    def _strategy(self) -> Json:
        policy = self._one_of(("InPlaceIfPossible", 10), ("ReCreate", 6), ("InPlaceOnly", 3))
        self._is_in_place = policy != "ReCreate"
        rolling: Json = {"podUpdatePolicy": policy}
        if self._is_parallel and self._chance(0.75):
            rolling["maxUnavailable"] = self._limit(least=1)
        if self._chance(0.3):
            rolling["partition"] = self._partition()
        if self._is_parallel and self._chance(0.3):
            rolling["unorderedUpdate"] = {"priorityStrategy": self._priority()} if self._chance(0.7) else {}
        if self._chance(0.04):
            rolling["paused"] = self._may_stand_still = True
        if self._is_in_place and self._chance(0.15):
            rolling["inPlaceUpdateStrategy"] = {"gracePeriodSeconds": self._random.choice((1, 4, 10))}
        strategy: Json = {"rollingUpdate": rolling}
        if self._chance(0.05):
            strategy["type"] = "OnDelete"
            self._may_stand_still = True
        return strategy

    def _partition(self) -> int:
        return self._random.randint(0, self._replicas)

    def _strategy_change(self) -> list[Edit]:
        edits = [
            Edit("rolling", "partition", self._one_of((0, 3), (None, 1), (self._partition(), 3))),
            Edit("rolling", "maxUnavailable", self._limit(least=1) if self._is_parallel else 1),
            Edit("rolling", "paused", self._one_of((True, 1), (False, 2))),
            Edit("rolling", "podUpdatePolicy", self._random.choice(("ReCreate", "InPlaceIfPossible", "InPlaceOnly"))),
            Edit("rolling", "minReadySeconds", self._random.choice((0, 5))),
            Edit("spec", "updateStrategy", {"type": "OnDelete"}),
        ]
        return self._random.sample(edits, self._one_of((1, 4), (2, 2)))

    def _deletion_change(self) -> list[Edit]:
        """Who goes is said by number here; or claims ask for more."""
        if self._has_claims and self._chance(0.6):
            return [self._claim_size()]
        return self._one_of(
            ([Edit("spec", "reserveOrdinals", self._reserved())], 3),
            ([Edit("spec", "ordinals", {"start": self._random.randint(0, 3)})], 1),
        )

    def _images_change(self) -> list[Edit]:
        edits = super()._images_change()
        return [*edits, self._claim_size()] if self._has_claims and self._chance(0.4) else edits

    def _claim_size(self) -> Edit:
        claim: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}
        return Edit("spec", "volumeClaimTemplates", [{"metadata": {"name": "data"}, "spec": claim}])


class _Daemon(_Set):
    kind = "DaemonSet"

    def __init__(self, seed: int, kind: str) -> None:
        super().__init__(seed, kind)
        self._replicas = _NODES
        self._surges = False

    def _gates(self) -> str:
        return "DaemonSetPruneIneligibleNodes=true" if self._chance(0.1) else ""

    def _manifest(self) -> Json:
        made = super()._manifest()
        spec = made["spec"]
        for name in ("replicas", "volumeClaimTemplates"):
            spec.pop(name, None)
        for container in spec["template"]["spec"]["containers"]:
            container.pop("volumeMounts", None)
        if not self._is_in_place:
            spec["template"]["spec"].pop("readinessGates")
        if self._chance(0.1):
            spec["burstReplicas"] = self._random.randint(1, 3)
        return made

    def _lifecycle(self, metadata: Json) -> Json:
        """The only hook that it has."""
        metadata["labels"][DELETE_HOOK] = "true"
        found: Json = {"preDelete": {"labelsHandler": {DELETE_HOOK: "true"}}}
        if self._chance(0.4):
            found["preDelete"]["markPodNotReady"] = True
        return found

    def _strategy(self) -> Json:
        self._is_in_place = self._chance(0.55)
        rolling: Json = {"rollingUpdateType": "InPlaceIfPossible" if self._is_in_place else "Standard"}
        self._surges = not self._is_in_place and self._chance(0.4)
        if self._surges:
            rolling |= {"maxSurge": self._limit(least=1), "maxUnavailable": 0}
        elif self._chance(0.75):
            rolling["maxUnavailable"] = self._limit(least=1)
        if self._chance(0.3):
            rolling["partition"] = self._partition()
        if self._chance(0.15):
            rolling["selector"] = self._selector()
        if self._chance(0.04):
            rolling["paused"] = self._may_stand_still = True
        strategy: Json = {"rollingUpdate": rolling}
        if self._chance(0.05):
            strategy["type"] = "OnDelete"
            self._may_stand_still = True
        return strategy

    def _selector(self) -> Json:
        chosen = [f"node-{number}" for number in range(1, _NODES + 1) if self._chance(0.5)]
        term: Any = {"key": "kubernetes.io/hostname", "operator": "In", "values": chosen or ["nowhere"]}
        return {"matchExpressions": [term]}

    def _replicas_change(self) -> list[Edit]:
        return [Edit("rolling", "selector", self._one_of((None, 1), (self._selector(), 2)))]

    def _strategy_change(self) -> list[Edit]:
        limit = "maxSurge" if self._surges else "maxUnavailable"
        edits = [
            Edit("rolling", "partition", self._one_of((0, 3), (None, 1), (self._partition(), 3))),
            Edit("rolling", limit, self._limit(least=1)),
            Edit("rolling", "paused", self._one_of((True, 1), (False, 2))),
            Edit("rolling", "rollingUpdateType", self._random.choice(("Standard", "InPlaceIfPossible"))),
            Edit("min-ready", value=self._random.choice((0, 5))),
            Edit("type", value=self._one_of(("RollingUpdate", 2), ("OnDelete", 1))),
        ]
        return self._random.sample(edits, self._one_of((1, 4), (2, 2)))

    def _deletion_change(self) -> list[Edit]:
        return [Edit("spec", "burstReplicas", self._random.randint(1, 4))]

    def _labelled(self) -> list[Step]:
        return []  # nothing about pods decides their order
