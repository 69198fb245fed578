"""The status on the wire."""

from __future__ import annotations

from typing import Any

from kruise.api.apps.workloadspread import WORKLOAD_SPREADS, SubsetStatus, WorkloadSpread, WorkloadSpreadStatus
from kruise.machinery import plan as plans
from kruise.machinery.client.requests import PatchType
from kruise.machinery.plan import Action, Target
from kruise.machinery.times import format_time


def status_form(status: WorkloadSpreadStatus) -> dict[str, Any]:
    """Counters are there even when 0, and what a condition must have in v1beta1 (WS-3); what is empty is left out."""
    document: dict[str, Any] = {
        "observedGeneration": status.observed_generation,
        "subsetStatuses": [_element(element) for element in status.subset_statuses],
    }
    if status.versioned_subset_statuses:
        document["versionedSubsetStatuses"] = {
            version: [_element(element) for element in elements]
            for version, elements in status.versioned_subset_statuses.items()
        }
    return document


def _element(element: SubsetStatus) -> dict[str, Any]:
    document: dict[str, Any] = {
        "name": element.name,
        "replicas": element.replicas,
        "missingReplicas": element.missing_replicas,
    }
    for name, pods in (("creatingPods", element.creating_pods), ("deletingPods", element.deleting_pods)):
        if pods:
            document[name] = {key: format_time(time) for key, time in pods.items()}
    if element.conditions:
        document["conditions"] = [
            {
                "type": item.type,
                "status": item.status,
                "reason": item.reason or "Unknown",
                "message": item.message,
                **(
                    {"lastTransitionTime": format_time(item.last_transition_time)}
                    if item.last_transition_time is not None
                    else {}
                ),
            }
            for item in element.conditions
        ]
    return document


def status_write(before: WorkloadSpread, status: WorkloadSpreadStatus, *, reason: str) -> Action:
    """Guarded by the version, since the controller and every admission server write it."""
    return plans.status_patch(
        Target.of(WORKLOAD_SPREADS, before),
        status_form(status),
        uid=before.metadata.uid,
        reason=reason,
        resource_version=before.metadata.resource_version,
    )


def overall_write(before: WorkloadSpread, status: WorkloadSpreadStatus, *, reason: str) -> Action:
    """The part that nobody but the controller writes: the ledger may have gone on since, and is left as it is."""
    form = status_form(status)
    return plans.patch(
        Target.of(WORKLOAD_SPREADS, before),
        [
            {"op": "add", "path": f"/status/{name}", "value": form[name]}
            for name in ("subsetStatuses", "observedGeneration")
        ],
        uid=before.metadata.uid,
        reason=reason,
        patch_type=PatchType.JSON,
        subresource="status",
    )


def observed_write(before: WorkloadSpread, generation: int) -> Action:
    """Only this: the rest may have been written since."""
    return plans.patch(
        Target.of(WORKLOAD_SPREADS, before),
        [{"op": "add", "path": "/status/observedGeneration", "value": generation}],
        uid=before.metadata.uid,
        reason="all pods of its subsets are marked",
        patch_type=PatchType.JSON,
        subresource="status",
    )
