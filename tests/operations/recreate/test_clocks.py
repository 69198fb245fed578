"""What the manager tells the daemon of containers, where the clocks of nodes are not its own (CRR-31)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kruise.api.apps.containerrecreaterequest import (
    ContainerRecreateRequest,
    ContainerRecreateRequestSpec,
    ContainerRecreateRequestStatus,
    RecreatedContainer,
    StatusContext,
    SyncedStatus,
)
from kruise.api.meta import ObjectMeta
from kruise.api.native.pod import ContainerState, ContainerStateRunning, ContainerStatus, Pod, PodStatus
from kruise.operations.recreate.decide import decide
from kruise.operations.recreate.situation import Snapshot

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
OLD, NEW = "containerd://old", "containerd://new"


def told(container_id: str, started: float | None, *, known: tuple[SyncedStatus, ...] = ()) -> Any:
    """The snapshot that is written; None: none."""
    running = ContainerStateRunning(started_at=NOW + timedelta(seconds=started)) if started is not None else None
    status = ContainerStatus(
        name="app", container_id=container_id, ready=True, restart_count=1, state=ContainerState(running=running)
    )
    context = StatusContext(container_id=OLD)
    request = ContainerRecreateRequest(
        metadata=ObjectMeta(
            name="r", namespace="ns", uid="u", creation_timestamp=NOW, labels={"crr.apps.kruise.io/pod-uid": "p"}
        ),
        spec=ContainerRecreateRequestSpec(
            pod_name="p", containers=(RecreatedContainer(name="app", status_context=context),)
        ),
        status=ContainerRecreateRequestStatus(phase="Recreating", container_status_snapshot=known),
    )
    pod = Pod(metadata=ObjectMeta(name="p", namespace="ns", uid="p"), status=PodStatus(container_statuses=(status,)))
    for action in decide(Snapshot(request=request, pod=pod, now=NOW + timedelta(seconds=5))).actions():
        return [one["containerID"] for one in action.body[0]["value"]]
    return None


@pytest.mark.parametrize("started", [-3600.0, -1.0, 0.0, 2.0, 3600.0])
def test_another_container_is_told_of_whatever_its_node_takes_for_the_time(started: float) -> None:
    """CRR-31, CRR-47: a request on a node whose clock is behind would never end otherwise."""
    assert told(NEW, started) == [NEW]


def test_the_container_that_was_there_is_not_told_of() -> None:
    """CRR-31, section 12 no. 1: it is ready, and would count as a success."""
    assert told(OLD, -60.0) is None
    assert told(NEW, None) is None
