"""What verbs, status, forecasts and readiness must know of a UnitedDeployment."""

from __future__ import annotations

from kruise.api.apps.shared import GROUP
from kruise.faces.face import Face, History, Pods, Restart, resource
from kruise.faces.progress import Progress, is_observed, number, partition_complete, partitioned
from kruise.machinery.documents import Json, Path, name_of, value_at
from kruise.machinery.wording import plural
from kruise.spread.uniteddeployment import causes


def progress(document: Json) -> Progress:
    """Done when the controller has seen the newest spec, each subset has as many pods of the present template as its
    partition allows, and all pods are ready. A subset that lags behind is named."""
    subsets = [one for one in value_at(document, ("status", "subsetStatuses"), []) if isinstance(one, dict)]
    wanted = number(document, "spec", "replicas", default=sum(map(_allocated, subsets)))
    kept = sum(int(one.get("partition") or 0) for one in subsets)
    seen = Progress(
        wanted=wanted,
        expected=max(wanted - kept, 0),
        updated=number(document, "status", "updatedReplicas"),
        ready=number(document, "status", "readyReplicas"),
        available=number(document, "status", "readyReplicas"),
        total=number(document, "status", "replicas"),
    )
    if not is_observed(document):
        return seen.waiting("Waiting for UnitedDeployment spec update to be observed...")
    if refusal := _refusal(document):
        return seen.failed(f'uniteddeployment "{name_of(document)}": {refusal}')
    if seen.updated < seen.expected:
        return seen.waiting(f"{partitioned(seen.updated, seen.expected)}{_laggards(subsets)}")
    unready = seen.updated - number(document, "status", "updatedReadyReplicas")
    if unready > 0:
        # Surplus older pods go when these serve. And a workload of a subset may not have said yet that they do not.
        return seen.waiting(f"Waiting for {plural(unready, 'updated pod')} to be ready...{_laggards(subsets)}")
    if seen.total > seen.wanted:
        return seen.waiting(f"Waiting for {plural(seen.total - seen.wanted, 'surplus pod')} to be deleted...")
    if seen.ready < seen.wanted:
        return seen.waiting(f"Waiting for {plural(seen.wanted - seen.ready, 'pod')} to be ready...{_laggards(subsets)}")
    if kept:
        return seen.done(partition_complete(seen.updated))
    return seen.done(f'united deployment "{name_of(document)}" successfully rolled out')


_MEMBERS = ("statefulSetTemplate", "advancedStatefulSetTemplate", "cloneSetTemplate", "deploymentTemplate")


def pod_template(document: Json) -> Path | None:
    """In the template of the children."""
    template = value_at(document, ("spec", "template"), {})
    found = [member for member in _MEMBERS if isinstance(template, dict) and template.get(member)]
    return ("spec", "template", found[0], "spec", "template") if len(found) == 1 else None


def _allocated(subset: Json) -> int:
    return int(subset.get("allocatedReplicas", subset.get("replicas", 0)) or 0)


def _laggards(subsets: list[Json]) -> str:
    found = [
        f"{one.get('name')} ({int(one.get('readyReplicas') or 0)} of {_allocated(one)} ready)"
        for one in subsets
        if int(one.get("readyReplicas") or 0) < _allocated(one)
    ]
    return f" (subset {', '.join(found)})" if found else ""


def _refusal(document: Json) -> str:
    for one in value_at(document, ("status", "conditions"), ()):
        if one.get("type") in ("SubsetProvisioned", "SubsetUpdated") and one.get("status") == "False":
            return str(one.get("message", ""))
    return ""


FACE = Face(
    resource=resource(GROUP, "v1beta1", "uniteddeployments", "UnitedDeployment"),
    versions=("v1alpha1", "v1beta1"),
    short_names=("ud",),
    is_ours=True,
    template=None,
    template_in=pod_template,
    revised=("spec", "template"),
    revision_label="apps.kruise.io/controller-revision-hash",
    revision_field=("status", "updatedRevision"),
    partitions=("spec", "updateStrategy", "manualUpdate", "partitions"),
    pods=Pods.CHILDREN,
    overlooks_changes=True,
    progress=progress,
    forecast="kruise.spread.uniteddeployment.forecast:FORECAST",
    settings="kruise.spread.uniteddeployment.settings:settings",
    unscalable="kruise.spread.uniteddeployment.settings:unscalable",
    history=History.CONTROLLER_REVISIONS,
    restart=Restart.ENVIRONMENT,
    causes=causes.CAUSES,
)
