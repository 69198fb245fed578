"""Promises that hold at every event of our watch, whatever else goes on."""

from __future__ import annotations

import math
from typing import Any

from kruise.machinery.clock import Clock
from kruise.machinery.times import parse_time
from tests.recordings.parsing import Json


class Invariants:
    """Watches pods and CloneSets, and notes every broken promise.

    - No pod is created beyond replicas and surge (CS-75).
    - No more pods than the partition allows get the update revision in place (CS-79).
    - The controller takes no available pod out of service when that leaves fewer than replicas - maxUnavailable (CS-78,
      CS-102).
    """

    kind = "CloneSet"

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pods: dict[str, Json] = {}
        self._clonesets: dict[str, Json] = {}
        self._touched: set[str] = set()
        self.user_deleted: set[str] = set()
        self.broken: list[str] = []
        self.checked = 0

    def touched(self, name: str) -> None:
        """A user is about to change the pod: the next change of it is not the controller's."""
        self._touched.add(name)

    def deleted(self, name: str) -> None:
        """A user is about to delete the pod."""
        self.user_deleted.add(name)

    def see_workload(self, kind: str, cloneset: Json) -> None:
        name = cloneset["metadata"]["name"]
        if kind == "DELETED":
            self._clonesets.pop(name, None)
        else:
            self._clonesets[name] = cloneset

    def see_pod(self, kind: str, pod: Json) -> None:
        name = pod["metadata"]["name"]
        before = self._pods.get(name)
        by_user = name in self._touched
        self._touched.discard(name)
        owner = self._owner(pod) or (self._owner(before) if before else "")
        cloneset = self._clonesets.get(owner)
        if kind == "DELETED":
            self._pods.pop(name, None)
        else:
            self._pods[name] = pod
        if cloneset is None or "deletionTimestamp" in cloneset["metadata"]:
            return
        self.checked += 1
        if kind == "ADDED":
            self._check_number(cloneset, owner)
        elif before is not None and not by_user:
            self._check_partition(cloneset, owner, before, pod)
            self._check_availability(cloneset, owner, before, pod, gone=kind == "DELETED")

    def _owner(self, pod: Json) -> str:
        owners = pod["metadata"].get("ownerReferences", ())
        return next((str(owner["name"]) for owner in owners if owner["kind"] == self.kind), "")

    def _active(self, owner: str) -> list[Json]:
        return [pod for pod in self._pods.values() if self._owner(pod) == owner and _is_active(pod)]

    def _check_number(self, cloneset: Json, owner: str) -> None:
        spec = cloneset["spec"]
        limit = spec["replicas"] + _number(spec["updateStrategy"].get("maxSurge", 0), spec["replicas"], up=True)
        there = len(self._active(owner))
        if there > limit:
            self.broken.append(f"{there} pods where replicas and surge allow {limit}")

    def _check_partition(self, cloneset: Json, owner: str, before: Json, pod: Json) -> None:
        update = cloneset.get("status", {}).get("updateRevision", "")
        if _revision(before) == _revision(pod) or _revision(pod) != update:
            return
        spec = cloneset["spec"]
        partition = _partition(spec["updateStrategy"].get("partition", 0), spec["replicas"])
        new = [other for other in self._active(owner) if _revision(other) == update]
        if len(new) > max(spec["replicas"] - partition, 0):
            self.broken.append(f"{len(new)} pods at the update revision in spite of partition {partition}")

    def _check_availability(self, cloneset: Json, owner: str, before: Json, pod: Json, *, gone: bool) -> None:
        spec = cloneset["spec"]
        minimum = spec.get("minReadySeconds", 0)
        name = pod["metadata"]["name"]
        if not self._is_available(before, minimum) or name in self.user_deleted:
            return
        taken_out = gone or any(_turned_false(before, pod, gate) for gate in ("InPlaceUpdateReady", "KruisePodReady"))
        deleted = "deletionTimestamp" in pod["metadata"] and "deletionTimestamp" not in before["metadata"]
        if not taken_out and not deleted:
            return
        surge = _number(spec["updateStrategy"].get("maxSurge", 0), spec["replicas"], up=True)
        allowed = _number(spec["updateStrategy"].get("maxUnavailable", "20%"), spec["replicas"], up=surge == 0)
        available = sum(self._is_available(other, minimum) for other in self._active(owner))
        if available < spec["replicas"] - allowed:
            self.broken.append(
                f"{name} was taken out of service: {available} available pods of {spec['replicas']}, "
                f"maxUnavailable {allowed}"
            )

    def _is_available(self, pod: Json, minimum: int) -> bool:
        ready = _condition(pod, "Ready")
        if not _is_active(pod) or ready.get("status") != "True":
            return False
        if _condition(pod, "InPlaceUpdateReady").get("status", "True") != "True":
            return False
        state = pod["metadata"].get("labels", {}).get("lifecycle.apps.kruise.io/state", "Normal")
        if state != "Normal":
            return False
        since = parse_time(ready["lastTransitionTime"])
        return minimum == 0 or (self._clock.now() - since).total_seconds() >= minimum


def _is_active(pod: Json) -> bool:
    ended = pod.get("status", {}).get("phase") in ("Failed", "Succeeded")
    return not ended and "deletionTimestamp" not in pod["metadata"]


def _revision(pod: Json) -> str:
    return str(pod["metadata"].get("labels", {}).get("controller-revision-hash", ""))


def _condition(pod: Json, kind: str) -> Json:
    conditions: list[Json] = pod.get("status", {}).get("conditions", [])
    return next((condition for condition in conditions if condition["type"] == kind), {})


def _turned_false(before: Json, now: Json, kind: str) -> bool:
    return _condition(before, kind).get("status") == "True" and _condition(now, kind).get("status") == "False"


def _number(value: Any, total: int, *, up: bool) -> int:
    """CS-71."""
    if isinstance(value, int):
        return value
    share = float(str(value).removesuffix("%")) * total / 100
    return math.ceil(share) if up else math.floor(share)


def _partition(value: Any, replicas: int) -> int:
    """CS-70."""
    partition = _number(value, replicas, up=True)
    if isinstance(value, str) and value != "100%" and replicas > 1:
        partition = min(partition, replicas - 1)
    return max(min(partition, replicas), 0)
