"""Labels and annotations of budgets (PUB section 4)."""

from __future__ import annotations

from collections.abc import Mapping

RELATED = "kruise.io/related-pub"
"""Of a pod: the budget that guards it. This one is written."""
RELATED_NEW = "pub.kruise.io/related-pub"
"""The newer spelling: read first, written by nobody yet."""
NO_PROTECT = "pub.kruise.io/no-protect"
RETURNED = "pub.kruise.io/returned"
"""Of a pod: when the unit was given back that was taken for it in vain. Written so that the pod has another version."""
UNAVAILABLE_PREFIX = "unavailable-pod.kruise.io/"
CONFIG_SOURCE = "kubernetes.io/config.source"

DELETE_GATE = "PodUnavailableBudgetDeleteGate"
UPDATE_GATE = "PodUnavailableBudgetUpdateGate"
RESIZE_GATE = "InPlacePodVerticalScaling"


def budget_named_by(annotations: Mapping[str, str]) -> str:
    """The budget that guards a pod, by the pod's annotations; empty: none (PUB-131)."""
    return annotations.get(RELATED_NEW, "") or annotations.get(RELATED, "")


def is_marked_unavailable(labels: Mapping[str, str]) -> bool:
    """Somebody has marked the pod, for a repair say: it counts as unavailable though it is ready."""
    return any(key.startswith(UNAVAILABLE_PREFIX) for key in labels)


def is_exempt(annotations: Mapping[str, str]) -> bool:
    """Only the text `true` counts."""
    return annotations.get(NO_PROTECT) == "true"


def is_guarding(gates: Mapping[str, bool]) -> bool:
    """Whether budgets are there for anything (PUB-10)."""
    return gates.get(DELETE_GATE, False) or gates.get(UPDATE_GATE, False)
