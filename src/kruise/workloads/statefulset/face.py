"""What verbs, status, forecasts and readiness must know of a StatefulSet of ours."""

from __future__ import annotations

from kruise.api.apps.shared import GROUP
from kruise.faces.face import Face, History, Restart, resource
from kruise.faces.progress import Progress, finished, incomplete, number, of_replicas, partition_complete, under_way
from kruise.machinery.documents import Json, value_at
from kruise.workloads.shared.conditions import FAILURE_BUDGET
from kruise.workloads.statefulset import causes

_ROLLING = ("spec", "updateStrategy", "rollingUpdate")


def progress(document: Json) -> Progress:
    """KK-1, waiting for more than its letter asks: for the newest spec to be seen, for as many updated pods as the
    partition allows, for no pod too many, and for all of them to be ready (and, with minReadySeconds, available)."""
    wanted = number(document, "spec", "replicas", default=1)
    kept = min(number(document, *_ROLLING, "partition"), wanted)
    seen = of_replicas(document, kept=kept, is_paused=bool(value_at(document, (*_ROLLING, "paused"), False)))
    if (unfinished := under_way(seen, document, "StatefulSet", failure_budget=FAILURE_BUDGET)) is not None:
        return unfinished
    min_ready_seconds = number(document, *_ROLLING, "minReadySeconds")
    if (waiting := incomplete(seen, min_ready_seconds=min_ready_seconds)) is not None:
        return waiting
    revision = value_at(document, ("status", "updateRevision"), "")
    message = f"Advanced StatefulSet rolling update complete {seen.updated} pods at revision {revision}..."
    return finished(seen, document, partition_complete(seen.updated) if kept else message)


FACE = Face(
    resource=resource(GROUP, "v1beta1", "statefulsets", "StatefulSet"),
    versions=("v1alpha1", "v1beta1"),
    short_names=("sts", "asts"),
    is_ours=True,
    has_namesake=True,
    paused=(*_ROLLING, "paused"),
    partition=(*_ROLLING, "partition"),
    min_ready=(*_ROLLING, "minReadySeconds"),
    writes_pod_ready=True,
    progress=progress,
    settings="kruise.workloads.statefulset.settings:settings",
    forecast="kruise.workloads.statefulset.forecast:FORECAST",
    history=History.CONTROLLER_REVISIONS,
    restart=Restart.ENVIRONMENT,
    causes=causes.CAUSES,
    counterpart=("apps", "StatefulSet"),
    handover="kruise.workloads.statefulset.handover:HANDOVER",
)
