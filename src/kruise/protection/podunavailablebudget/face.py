"""What verbs, `why` and others must know of a PodUnavailableBudget."""

from __future__ import annotations

from kruise.api.policy.shared import GROUP
from kruise.faces.face import Face, Pods, resource
from kruise.faces.progress import number
from kruise.machinery.documents import Json, value_at
from kruise.machinery.wording import plural
from kruise.protection.podunavailablebudget import causes


def standing(document: Json) -> str:
    """The numbers of the status, in words."""
    if not value_at(document, ("status",), {}):
        return "its pods have not been counted yet"
    current, desired = number(document, "status", "currentAvailable"), number(document, "status", "desiredAvailable")
    total, allowed = number(document, "status", "totalReplicas"), number(document, "status", "unavailableAllowed")
    there = f"{current} of {total} pods available" if total >= 0 else f"{plural(current, 'pod')} available"
    least, most = value_at(document, ("spec", "minAvailable")), value_at(document, ("spec", "maxUnavailable"))
    by = f"maxUnavailable {most}" if most is not None else f"minAvailable {least}"
    return f"{there}, {desired} must be ({by}); {allowed} more may be made unavailable now"


FACE = Face(
    resource=resource(GROUP, "v1beta1", "podunavailablebudgets", "PodUnavailableBudget"),
    versions=("v1alpha1", "v1beta1"),
    short_names=("pub",),
    is_ours=True,
    template=None,
    selector=None,
    replicas=None,
    pods=Pods.NONE,
    standing=standing,
    causes=(*causes.HOLDING, *causes.OF_BUDGETS),
)
