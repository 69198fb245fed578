"""Hand-made CloneSets and pods for the tests of status and conclusion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from kruise.api.apps.cloneset import CloneSet
from kruise.api.native.apps import ControllerRevision
from kruise.api.native.pod import Pod
from kruise.machinery import codec
from kruise.workloads.cloneset.situation import Situation, Snapshot, situation_of

START = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
UID = "cloneset-uid"


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def template(image: str = "nginx:1.25") -> dict[str, Any]:
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": image}]}}


def cloneset(
    *, replicas: int = 2, status: Mapping[str, Any] | None = None, generation: int = 1, rolling: Any = None, **spec: Any
) -> CloneSet:
    """`rolling` is the rollingUpdate part of the strategy; other spec fields go in by their wire names."""
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible", **(rolling or {})}}
    body = {
        "metadata": {"name": "web", "namespace": "demo", "uid": UID, "generation": generation},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template(),
            "updateStrategy": strategy,
            **spec,
        },
        "status": dict(status or {}),
    }
    return codec.decode(codec.encode(body), CloneSet)


def pod(
    name: str,
    revision: str = "",
    *,
    state: str = "Normal",
    ready_since: datetime | None = START,
    deleted: bool = False,
    phase: str = "Running",
    labels: Mapping[str, str] | None = None,
) -> Pod:
    """A pod of the CloneSet; `ready_since` None: not Ready."""
    ready = {"type": "Ready", "status": "False"}
    if ready_since is not None:
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": ready_since.strftime("%Y-%m-%dT%H:%M:%SZ")}
    owner = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web", "uid": UID, "controller": True}
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": "demo",
        "uid": f"uid-{name}",
        "labels": {
            "app": "web",
            "controller-revision-hash": revision,
            "lifecycle.apps.kruise.io/state": state,
            **(labels or {}),
        },
        "ownerReferences": [owner],
    }
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T12:00:00Z"
    return codec.convert({"metadata": metadata, "status": {"phase": phase, "conditions": [ready]}}, Pod)


def situation(
    subject: CloneSet,
    pods: Iterable[Pod] = (),
    *,
    revisions: Iterable[ControllerRevision] = (),
    now: datetime = START,
) -> Situation:
    return situation_of(Snapshot(cloneset=subject, pods=tuple(pods), revisions=tuple(revisions), now=now))


def update_revision(subject: CloneSet) -> str:
    return situation(subject).update.metadata.name


def revision_of(subject: CloneSet) -> ControllerRevision:
    """The revision that the CloneSet's template has, as if it existed already."""
    return situation(subject).update
