"""DaemonSet, as the player knows it: its pods are told apart by their nodes, and the recordings are in v1beta1."""

from __future__ import annotations

import collections

from kruise.api.apps.daemonset import DAEMON_SETS
from tests.recordings.invariants import Invariants
from tests.recordings.kinds import RecordedKind
from tests.recordings.parsing import Json


class DaemonPromises(Invariants):
    """- A node has one pod, and a second one only where it surges (DS-40, DS-68).
    - No more nodes than maxUnavailable lose an available pod to the rollout (DS-64).
    """

    kind = "DaemonSet"

    def _check_number(self, daemon_set: Json, owner: str) -> None:
        limit = 2 if _rolling(daemon_set).get("maxSurge") else 1
        places = collections.Counter(_place(pod) for pod in self._active(owner))
        self.broken += [f"{count} pods on {node}" for node, count in places.items() if count > limit]

    def _check_partition(self, daemon_set: Json, owner: str, before: Json, pod: Json) -> None:
        """New pods always have the newest template (DS-42), so there is nothing to count."""

    def _check_availability(self, daemon_set: Json, owner: str, before: Json, pod: Json, *, gone: bool) -> None:
        minimum = daemon_set["spec"].get("minReadySeconds", 0)
        name = pod["metadata"]["name"]
        deleted = gone or ("deletionTimestamp" in pod["metadata"] and "deletionTimestamp" not in before["metadata"])
        if not deleted or not self._is_available(before, minimum) or name in self.user_deleted:
            return
        served = {_place(other) for other in self._active(owner) if self._is_available(other, minimum)}
        wanted = daemon_set.get("status", {}).get("desiredNumberScheduled", 0)
        allowed = _rolling(daemon_set).get("maxUnavailable", 0)
        if len(served) < wanted - allowed:
            self.broken.append(f"{name} went: {len(served)} of {wanted} nodes are served, maxUnavailable {allowed}")


def _rolling(daemon_set: Json) -> Json:
    found: Json = daemon_set["spec"]["updateStrategy"].get("rollingUpdate") or {"maxUnavailable": 1}
    return found


def _place(pod: Json) -> str:
    terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return str(terms["nodeSelectorTerms"][0]["matchFields"][0]["values"][0])


def in_alpha(manifest: Json) -> Json:
    """The fields that recordings write are the same."""
    return {**manifest, "apiVersion": f"{DAEMON_SETS.group}/v1alpha1"}


KIND = RecordedKind(
    resource=DAEMON_SETS, promises=DaemonPromises, is_per_node=True, has_states=False, manifest_in_other=in_alpha
)
