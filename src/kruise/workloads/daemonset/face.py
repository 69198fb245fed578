"""What verbs, status, forecasts and readiness must know of a DaemonSet."""

from __future__ import annotations

from kruise.api.apps.shared import GROUP
from kruise.faces.face import Face, History, Pods, Restart, resource
from kruise.faces.progress import Progress, finished, number, partition_complete, unavailable, under_way
from kruise.machinery.documents import Json, name_of, value_at
from kruise.machinery.intorpercent import absolute
from kruise.workloads.daemonset import causes
from kruise.workloads.shared.conditions import FAILURE_BUDGET

_ROLLING = ("spec", "updateStrategy", "rollingUpdate")


def progress(document: Json) -> Progress:
    """Done when the controller has seen the newest spec, as many nodes as the partition allows have a pod of the
    present template, and all pods are available."""
    name = name_of(document)
    wanted = number(document, "status", "desiredNumberScheduled")
    rolling = value_at(document, _ROLLING, {})
    kept = min(absolute(rolling.get("partition"), wanted, round_up=False), wanted)
    expected = wanted - kept
    updated = number(document, "status", "updatedNumberScheduled")
    available = number(document, "status", "numberAvailable")
    seen = Progress(
        wanted=wanted,
        expected=expected,
        updated=updated,
        ready=number(document, "status", "numberReady"),
        available=available,
        total=number(document, "status", "currentNumberScheduled"),
        is_paused=bool(rolling.get("paused")),
    )
    if (unfinished := under_way(seen, document, "DaemonSet", failure_budget=FAILURE_BUDGET)) is not None:
        return unfinished
    if available < wanted:
        return seen.waiting(unavailable(seen))
    message = partition_complete(updated) if kept else f'daemon set "{name}" successfully rolled out'
    return finished(seen, document, message)


FACE = Face(
    resource=resource(GROUP, "v1beta1", "daemonsets", "DaemonSet"),
    versions=("v1alpha1", "v1beta1"),
    short_names=("daemon", "ads"),
    is_ours=True,
    has_namesake=True,
    replicas=None,
    paused=(*_ROLLING, "paused"),
    partition=(*_ROLLING, "partition"),
    partition_may_be_percent=True,
    pods=Pods.PER_NODE,
    writes_pod_ready=True,
    progress=progress,
    settings="kruise.workloads.daemonset.settings:settings",
    forecast="kruise.workloads.daemonset.forecast:FORECAST",
    history=History.CONTROLLER_REVISIONS,
    restart=Restart.ENVIRONMENT,
    causes=causes.CAUSES,
    counterpart=("apps", "DaemonSet"),
    handover="kruise.workloads.daemonset.handover:HANDOVER",
)
