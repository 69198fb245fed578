"""What verbs, status, forecasts and readiness must know of a StatefulSet of ours."""

from __future__ import annotations

from kruise.api.apps.shared import GROUP
from kruise.faces.face import Face, History, Restart, resource
from kruise.faces.progress import (
    NOT_ROLLING,
    Progress,
    is_observed,
    is_rolling,
    number,
    partition_complete,
    partitioned,
    standing,
)
from kruise.machinery.documents import Json, name_of, value_at
from kruise.workloads.shared.conditions import FAILURE_BUDGET
from kruise.workloads.statefulset import causes

_ROLLING = ("spec", "updateStrategy", "rollingUpdate")


def progress(document: Json) -> Progress:
    """KK-1, waiting for more than its letter asks: for the newest spec to be seen, for as many updated pods as the
    partition allows, for no pod too many, and for all of them to be ready (and, with minReadySeconds, available)."""
    wanted = number(document, "spec", "replicas", default=1)
    kept = min(number(document, *_ROLLING, "partition"), wanted)
    updated, total = number(document, "status", "updatedReplicas"), number(document, "status", "replicas")
    seen = Progress(
        wanted=wanted,
        expected=wanted - kept,
        updated=updated,
        ready=number(document, "status", "readyReplicas"),
        available=number(document, "status", "availableReplicas"),
        total=total,
        is_paused=bool(value_at(document, (*_ROLLING, "paused"), False)),
    )
    if not is_observed(document):
        return seen.waiting("Waiting for statefulset spec update to be observed...")
    if not is_rolling(document) and updated < total:
        old = f"{total - updated} of {total} pods have an older template until somebody deletes them"
        return seen.failed(f"{NOT_ROLLING}: {old}")
    if (stop := standing(document, FAILURE_BUDGET)) is not None:
        return seen.failed(f'statefulset "{name_of(document)}" exceeded its failure budget: {stop}')
    if updated < seen.expected and is_rolling(document):
        hint = " (the StatefulSet is paused: kruise rollout resume lets it go on)" if seen.is_paused else ""
        return seen.waiting(f"{partitioned(updated, seen.expected)}{hint}")
    if (missing := _missing(seen, number(document, *_ROLLING, "minReadySeconds"))) is not None:
        return seen.waiting(missing)
    if not is_rolling(document):
        return seen.done(f"all {wanted} pods are ready and have the newest template")
    if kept:
        return seen.done(partition_complete(updated))
    revision = value_at(document, ("status", "updateRevision"), "")
    return seen.done(f"statefulset rolling update complete {updated} pods at revision {revision}...")


def _missing(seen: Progress, min_ready_seconds: int) -> str | None:
    if seen.total > seen.wanted:
        return f"Waiting for {seen.total - seen.wanted} pods to be deleted..."
    if seen.ready < seen.wanted:
        return f"Waiting for {seen.wanted - seen.ready} pods to be ready..."
    if seen.available < seen.wanted and min_ready_seconds:
        return f"Waiting for {seen.wanted - seen.available} pods to be available..."
    return None


FACE = Face(
    resource=resource(GROUP, "v1beta1", "statefulsets", "StatefulSet"),
    versions=("v1alpha1", "v1beta1"),
    short_names=("sts", "asts"),
    is_ours=True,
    paused=(*_ROLLING, "paused"),
    partition=(*_ROLLING, "partition"),
    writes_pod_ready=True,
    progress=progress,
    settings="kruise.workloads.statefulset.settings:settings",
    forecast="kruise.workloads.statefulset.forecast:FORECAST",
    history=History.CONTROLLER_REVISIONS,
    restart=Restart.ANNOTATION,
    causes=causes.CAUSES,
)
