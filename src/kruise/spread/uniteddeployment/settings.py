"""Strategy and sizes of a UnitedDeployment as commands show them, and sizes that cannot be."""

from __future__ import annotations

from kruise.api.apps.uniteddeployment import FIXED, MANUAL, UnitedDeploymentSpec
from kruise.faces.face import Setting
from kruise.machinery import codec
from kruise.machinery.documents import Json, value_at
from kruise.spread.uniteddeployment.numbers import SizeError, allocated, total_of


def unscalable(document: Json) -> str:
    """Why the replicas cannot be shared among the subsets; empty: they can."""
    try:
        allocated(codec.convert(document["spec"], UnitedDeploymentSpec), {})
    except SizeError as error:
        return f"{error}: change the subsets first (spec.topology.subsets)"
    return ""


def settings(document: Json) -> list[Setting]:
    """Each with a title, for `kruise describe rollout`."""
    spec = codec.convert(document["spec"], UnitedDeploymentSpec)
    schedule = spec.topology.schedule_strategy
    found = [
        ("Strategy", spec.update_strategy.type or MANUAL),
        ("Schedule", schedule.type or FIXED),
        ("Replicas", str(total_of(spec))),
    ]
    told = {one.get("name"): one for one in value_at(document, ("status", "subsetStatuses"), [])}
    for subset in spec.topology.subsets:
        found.append((f"Subset {subset.name}", _subset(told.get(subset.name, {}))))
    return found


def _subset(status: Json) -> str:
    there = int(status.get("replicas") or 0)
    wanted = status.get("allocatedReplicas")
    text = f"{int(status.get('readyReplicas') or 0)} of {there if wanted is None else wanted} ready"
    if partition := status.get("partition"):
        text += f", {partition} kept at the old template"
    if reserved := status.get("reservedPods"):
        text += f", {reserved} stuck"
    for condition in status.get("conditions") or ():
        if condition.get("type") == "Schedulable" and condition.get("status") == "False":
            text += f", unschedulable: {condition.get('message', '')}"
    return text
