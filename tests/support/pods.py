"""Pods for tests of pure code, made from the few facts that a test is about."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from kruise.api.meta import Condition, ObjectMeta
from kruise.api.native.pod import ContainerStatus, Pod, PodSpec, PodStatus

NOW = datetime(2030, 1, 1, 12, 0, 0, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=1)


def make_pod(
    name: str = "web-1",
    *,
    phase: str = "Running",
    node: str = "node-1",
    ready: bool | None = True,
    ready_since: datetime | None = LONG_AGO,
    in_place_ready: bool | None = None,
    restarts: tuple[int, ...] = (0,),
    created: datetime | None = LONG_AGO,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Pod:
    """A pod that runs and is ready, but for what is said otherwise. `ready` and `in_place_ready` None: no condition."""
    conditions = []
    if in_place_ready is not None:
        conditions.append(Condition(type="InPlaceUpdateReady", status=str(in_place_ready)))
    if ready is not None:
        conditions.append(Condition(type="Ready", status=str(ready), last_transition_time=ready_since))
    statuses = tuple(ContainerStatus(name=f"c{i}", restart_count=count) for i, count in enumerate(restarts))
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace="demo",
            uid=f"uid-{name}",
            creation_timestamp=created,
            labels=dict(labels or {}),
            annotations=dict(annotations or {}),
        ),
        spec=PodSpec(node_name=node),
        status=PodStatus(phase=phase, conditions=tuple(conditions), container_statuses=statuses),
    )
