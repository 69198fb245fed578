"""What verbs, status, forecasts and readiness must know of a CloneSet."""

from __future__ import annotations

from kruise.api.apps.shared import GROUP
from kruise.faces.face import Face, History, Restart, resource
from kruise.faces.progress import Progress, finished, incomplete, number, of_replicas, partition_complete, under_way
from kruise.machinery.documents import Json, value_at
from kruise.workloads.cloneset import causes
from kruise.workloads.cloneset.counts import partition_of
from kruise.workloads.shared.conditions import FAILURE_BUDGET

_ROLLING = ("spec", "updateStrategy", "rollingUpdate")


def progress(document: Json) -> Progress:
    """KK-1, waiting for more than its letter asks: a CloneSet is done when the controller has seen its newest spec, as
    many pods as the partition allows are updated, no surplus pod is left, and all are ready (and, with
    minReadySeconds, available)."""
    wanted = number(document, "spec", "replicas", default=1)
    rolling = value_at(document, _ROLLING, {})
    kept = partition_of(rolling.get("partition"), wanted)
    seen = of_replicas(document, kept=kept, is_paused=bool(rolling.get("paused")))
    if (unfinished := under_way(seen, document, "CloneSet", failure_budget=FAILURE_BUDGET)) is not None:
        return unfinished
    if (waiting := incomplete(seen, min_ready_seconds=number(document, "spec", "minReadySeconds"))) is not None:
        return waiting
    in_place = str(rolling.get("podUpdatePolicy", "")).startswith("InPlace")
    revision = value_at(document, ("status", "updateRevision"), "")
    message = f"CloneSet rolling update complete {seen.updated} pods at revision {revision}..."
    return finished(seen, document, partition_complete(seen.updated) if in_place or kept else message)


FACE = Face(
    resource=resource(GROUP, "v1beta1", "clonesets", "CloneSet"),
    versions=("v1alpha1", "v1beta1"),
    short_names=("clone",),
    is_ours=True,
    paused=(*_ROLLING, "paused"),
    partition=(*_ROLLING, "partition"),
    partition_may_be_percent=True,
    writes_pod_ready=True,
    progress=progress,
    settings="kruise.workloads.cloneset.settings:settings",
    forecast="kruise.workloads.cloneset.forecast:FORECAST",
    history=History.CONTROLLER_REVISIONS,
    restart=Restart.ENVIRONMENT,
    causes=causes.CAUSES,
    is_exposable=True,
    can_scale_down_by_name=True,
    replaces=("apps", "Deployment"),
    spec_from="kruise.workloads.cloneset.migration:spec_from",
)
