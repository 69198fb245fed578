"""WorkloadSpreads and pods as values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from kruise.api.apps.workloadspread import SubsetStatus, WorkloadSpread, WorkloadSpreadStatus
from kruise.api.native.nodes import Node
from kruise.api.native.pod import Pod
from kruise.machinery import codec
from kruise.machinery.codec import evolve
from kruise.spread.workloadspread.situation import Seen, Snapshot
from tests.spread.workloadspread import stories
from tests.spread.workloadspread.stories import ZONE, Json

NOW = datetime(2026, 5, 1, 12, 0, 0, tzinfo=UTC)
VERSIONED = ("deployment", "replicaset")


def spread_of(*subsets: Json, generation: int = 1, age: float = 3600, **options: Any) -> WorkloadSpread:
    document = stories.spread(*subsets, **options)
    document["metadata"].update(
        namespace="default",
        uid="ws-uid",
        resourceVersion="7",
        generation=generation,
        creationTimestamp=(NOW - timedelta(seconds=age)).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )
    return codec.convert(document, WorkloadSpread)


def with_list(spread: WorkloadSpread, *elements: SubsetStatus, version: str = "versionIgnored") -> WorkloadSpread:
    lists = {**spread.status.versioned_subset_statuses, version: elements}
    return evolve(spread, status=WorkloadSpreadStatus(versioned_subset_statuses=lists))


def pod_of(
    name: str,
    subset: str | None = "",
    *,
    owner: tuple[str, str] = ("apps.kruise.io/v1alpha1", "CloneSet"),
    node: str = "node-a",
    phase: str = "Running",
    ready: bool = True,
    age: float = 600,
    uid: str = "",
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    spec: Json | None = None,
    conditions: list[Json] | None = None,
    terminating: bool = False,
    restarts: int = 0,
) -> Pod:
    created = (NOW - timedelta(seconds=age)).isoformat()
    marks = dict(annotations or {})
    if subset:
        told = f'"name":"ws","subset":"{subset}"' + (f',"uid":"{uid}"' if uid else "")
        marks[stories.MATCHED] = f"{{{told}}}"
    metadata: Json = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "creationTimestamp": created,
        "labels": {"app": "web", **(labels or {})},
        "annotations": marks,
        "ownerReferences": [
            {"apiVersion": owner[0], "kind": owner[1], "name": "web", "uid": "web-uid", "controller": True}
        ],
    }
    if terminating:
        metadata["deletionTimestamp"] = NOW.isoformat()
    given = [{"type": "Ready", "status": str(ready), "lastTransitionTime": created}, *(conditions or [])]
    document = {
        "metadata": metadata,
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "nginx"}], **(spec or {})},
        "status": {
            "phase": phase,
            "conditions": given,
            "containerStatuses": [{"name": "main", "restartCount": restarts}],
        },
    }
    return codec.convert(document, Pod)


def node_of(name: str, zone: str, *taints: Json) -> Node:
    metadata = {"name": name, "labels": {ZONE: zone}}
    return codec.convert({"metadata": metadata, "spec": {"taints": list(taints)}}, Node)


NODES = {"node-a": node_of("node-a", "a"), "node-b": node_of("node-b", "b")}


def snapshot_of(
    spread: WorkloadSpread,
    *pods: Pod,
    replicas: int | None = None,
    latest: str = "versionIgnored",
    now: datetime = NOW,
    **target: Any,
) -> Snapshot:
    seen = Seen(exists=True, replicas=len(pods) if replicas is None else replicas, latest_version=latest, **target)
    return Snapshot(spread=spread, target=seen, pods=pods, nodes=NODES, versioned=VERSIONED, now=now)
