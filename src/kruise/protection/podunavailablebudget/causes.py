"""Causes that only budgets know."""

from __future__ import annotations

from kruise.machinery.causes import MINUTE, Act, Meaning

BUDGET = Meaning(
    code="unavailable-budget",
    says="a PodUnavailableBudget lets no more pods be unavailable now",
    act=Act.NOBODY,
    field="PodUnavailableBudget spec.maxUnavailable or minAvailable",
    waits_for_others=True,
)
"""Of a pod that a workload would take away."""
CLOSED_BUDGET = Meaning(
    code="closed-budget",
    says="a PodUnavailableBudget never lets a pod be unavailable",
    act=Act.SOMEBODY,
    field="PodUnavailableBudget spec.maxUnavailable or minAvailable",
    patience=0,
)
TARGET_MISSING = Meaning(
    code="target-missing",
    says="the workload behind the budget is not there, so it guards nothing",
    act=Act.SOMEBODY,
    field="spec.targetRef",
    patience=0,
)
NO_PODS = Meaning(
    code="no-pods",
    says="it matches no pods, so it guards nothing",
    act=Act.SOMEBODY,
    field="spec.selector",
    patience=MINUTE,
)
UNKNOWN_COUNT = Meaning(
    code="unknown-count",
    says="nobody tells how many pods there should be, so too little is guarded, or nothing",
    act=Act.SOMEBODY,
    field="spec.protectTotalReplicas",
    patience=0,
)
SCALED_TO_ZERO = Meaning(
    code="scaled-to-zero",
    says="its workload is scaled to 0, so there is nothing to guard",
    act=Act.INTENDED,
    field="spec.targetRef",
    is_wanted=True,
)
OTHER_BUDGET = Meaning(
    code="other-budget",
    says="pods that it matches belong to another budget, which alone is asked about them",
    act=Act.SOMEBODY,
    field="spec.selector or spec.targetRef",
    patience=MINUTE,
)
USED_UP = Meaning(
    code="budget-used-up",
    says="as many pods are unavailable as may be: what is guarded is refused",
    act=Act.NOBODY,
    field="spec.maxUnavailable or spec.minAvailable",
    waits_for_others=True,
)
UNGUARDED = Meaning(
    code="operation-unguarded",
    says="nobody asks the budget about an operation that it is meant to guard: a gate of the manager is off",
    act=Act.INTENDED,
    field="spec.protectOperations",
    is_wanted=True,
)
UNASKED = Meaning(
    code="namespace-unasked",
    says="nobody asks it about deletions, evictions and changes of pods: its namespace is that of the control plane",
    act=Act.SOMEBODY,
    field="metadata.namespace",
    patience=0,
)
NEVER_FREE = Meaning(
    code="budget-never-free",
    says="it refuses everything even when all pods are available",
    act=Act.SOMEBODY,
    field="spec.maxUnavailable or spec.minAvailable",
    patience=0,
)
POD_UNAVAILABLE = Meaning(
    code="pod-unavailable",
    says="it uses up the budget, being unavailable itself",
    act=Act.NOBODY,
    patience=MINUTE,
)
HOLDING = (BUDGET, CLOSED_BUDGET)
"""Of pods that workloads would take away."""
OF_BUDGETS = (
    TARGET_MISSING,
    NO_PODS,
    SCALED_TO_ZERO,
    OTHER_BUDGET,
    UNKNOWN_COUNT,
    USED_UP,
    NEVER_FREE,
    UNGUARDED,
    UNASKED,
    POD_UNAVAILABLE,
)
"""Of budgets themselves."""
