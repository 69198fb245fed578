"""What everybody else must know of a WorkloadSpread."""

from __future__ import annotations

from kruise.api.apps.shared import GROUP
from kruise.faces.face import Face, Pods, Setting, resource
from kruise.faces.progress import Progress, is_observed
from kruise.machinery.documents import Json, name_of, value_at
from kruise.machinery.wording import listed, plural
from kruise.spread.workloadspread import causes


def progress(document: Json) -> Progress:
    """Done when the newest spec was seen, and every subset gets pods."""
    elements = value_at(document, ("status", "subsetStatuses"), ())
    pods = sum(int(one.get("replicas") or 0) for one in elements)
    seen = Progress(wanted=pods, expected=pods, updated=pods, ready=pods, available=pods, total=pods, is_paused=False)
    if not is_observed(document):
        return seen.waiting("Waiting for WorkloadSpread spec update to be observed...")
    left_out = [
        str(one.get("name"))
        for one in elements
        for item in one.get("conditions") or ()
        if item.get("type") == "Schedulable" and item.get("status") == "False"
    ]
    if left_out:
        return seen.waiting(f"Waiting for nodes that take pods of subset {listed(left_out)}...")
    counts = ", ".join(f"{one.get('name')} {one.get('replicas', 0)}" for one in elements)
    return seen.done(f'workload spread "{name_of(document)}" has {plural(pods, "pod")} in its subsets: {counts}')


def settings(document: Json) -> list[Setting]:
    reference = value_at(document, ("spec", "targetRef"), {})
    strategy = value_at(document, ("spec", "scheduleStrategy"), {})
    seconds = value_at(strategy, ("adaptive", "rescheduleCriticalSeconds"), 0)
    told = f"Adaptive, pods move on after {seconds}s" if strategy.get("type") == "Adaptive" and seconds else "Fixed"
    sizes = [
        f"{one.get('name')} {one.get('maxReplicas', 'any')}" for one in value_at(document, ("spec", "subsets"), ())
    ]
    return [
        ("Target", f"{reference.get('kind')} {reference.get('name')}"),
        ("Strategy", told),
        ("Subsets", ", ".join(sizes)),
    ]


FACE = Face(
    resource=resource(GROUP, "v1beta1", "workloadspreads", "WorkloadSpread"),
    versions=("v1alpha1", "v1beta1"),
    short_names=("ws",),
    is_ours=True,
    template=None,
    selector=None,
    replicas=None,
    pods=Pods.SELECTED,
    overlooks_changes=True,
    placement="kruise.spread.workloadspread.matched:placement",
    progress=progress,
    unmet=(causes.NO_TARGET, causes.UNFIT_PATCH, causes.RIVAL),
    forecast="kruise.spread.workloadspread.forecast:FORECAST",
    settings="kruise.spread.workloadspread.face:settings",
    causes=causes.CAUSES,
)
