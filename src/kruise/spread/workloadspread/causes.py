"""Causes that only WorkloadSpread knows."""

from __future__ import annotations

from kruise.machinery.causes import MINUTE, Act, Meaning

LEFT_OUT = Meaning(
    code="subset-left-out",
    says="pods of a subset find no node, so it gets none for five minutes",
    act=Act.NOBODY,
    field="spec.scheduleStrategy.adaptive.rescheduleCriticalSeconds",
)
SUBSET_NODES = Meaning(
    code="subset-nodes",
    says="no node that its subset asks for can take it",
    act=Act.SOMEBODY,
    field="spec.subsets[].requiredNodeSelector",
    patience=0,
    is_for_want_of_a_node=True,
)
RESCHEDULE = Meaning(
    code="reschedule",
    says="it has found no node yet, and is made again in another subset when its time is over",
    act=Act.NOBODY,
    field="spec.scheduleStrategy.adaptive.rescheduleCriticalSeconds",
    is_for_want_of_a_node=True,
)
NO_TARGET = Meaning(
    code="no-target",
    says="there is no workload of this name to spread",
    act=Act.SOMEBODY,
    field="spec.targetRef",
    patience=MINUTE,
)
UNMARKED = Meaning(
    code="unmarked",
    says="its subset or its deletion cost is not written to it yet",
    act=Act.NOBODY,
    field="spec.subsets",
    patience=MINUTE,
)

RIVAL = Meaning(
    code="two-spreads",
    says="another WorkloadSpread has pods that this one is about",
    act=Act.SOMEBODY,
    field="spec.targetRef",
    patience=0,
)
UNFIT_PATCH = Meaning(
    code="subset-patch",
    says="the patch of a subset fits no pod, so its pods are refused",
    act=Act.SOMEBODY,
    field="spec.subsets[].patch",
    patience=0,
)

CAUSES = (LEFT_OUT, SUBSET_NODES, RESCHEDULE, NO_TARGET, UNMARKED, RIVAL, UNFIT_PATCH)
