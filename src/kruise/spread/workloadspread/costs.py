"""What the deletion of each pod costs: surplus pods go first, then the subsets from the last to the first (WS 7.5)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from kruise.api.apps.workloadspread import WorkloadSpreadSpec
from kruise.api.native.pod import Pod, is_active, ready_since
from kruise.spread.workloadspread.classifying import UNASSIGNED, Group
from kruise.spread.workloadspread.numbers import limit_of

_STEP = 100
_PHASES = {"": 0, "Pending": 0, "Unknown": 1, "Running": 2}


def costs(
    spec: WorkloadSpreadSpec,
    groups: Mapping[str, Group],
    *,
    replicas: int | None,
    latest: str,
    is_terminating: Callable[[Pod], bool],
) -> dict[str, int]:
    """By name of the pod; only of active pods."""
    found: dict[str, int] = {}
    number = len(spec.subsets)
    for version, group in groups.items():
        for position, subset in enumerate(spec.subsets):
            # Versions on their way out are drained from the first subset (WS-46).
            index = position if version == latest else number - 1 - position
            pods = [pod for pod in group.pods.get(subset.name, ()) if is_active(pod) and not is_terminating(pod)]
            limit = limit_of(subset, replicas)
            surplus = 0 if limit is None else max(0, len(pods) - limit)
            for place, pod in enumerate(in_order_of_leaving(pods)):
                is_surplus = place < surplus
                found[pod.metadata.name] = -_STEP * (index + 1) if is_surplus else _STEP * (number - index)
        for pod in group.pods.get(UNASSIGNED, ()):
            if is_active(pod) and not is_terminating(pod):
                found[pod.metadata.name] = -_STEP * (number + 1)
    return found


def in_order_of_leaving(pods: Sequence[Pod]) -> list[Pod]:
    """The first are surplus first. Ties end in the name, so that nothing flaps."""
    by_name = sorted(pods, key=lambda pod: pod.metadata.name)
    return sorted(by_name, key=_rank)


def _rank(pod: Pod) -> tuple[object, ...]:
    is_ready, since = ready_since(pod)
    restarts = max((status.restart_count for status in pod.status.container_statuses), default=0)
    created = pod.metadata.creation_timestamp
    return (
        bool(pod.spec.node_name),
        _PHASES.get(pod.status.phase, 2),
        is_ready,
        -since.timestamp() if since is not None else -math.inf,
        -restarts,
        -created.timestamp() if created is not None else 0.0,
    )
