"""Causes that only PersistentPodState knows."""

from __future__ import annotations

from kruise.machinery.causes import MINUTE, Act, Meaning

NOTHING_TO_REMEMBER = Meaning(
    code="nothing-to-remember",
    says="there is no workload of this name whose pods could be remembered",
    act=Act.SOMEBODY,
    field="spec.targetRef",
    patience=MINUTE,
)

REMEMBERED_PLACE = Meaning(
    code="remembered-place",
    says="no node of the place that is remembered of a pod takes it",
    act=Act.SOMEBODY,
    field="spec.requiredPersistentTopology",
    patience=MINUTE,
    is_for_want_of_a_node=True,
)

CAUSES = (NOTHING_TO_REMEMBER, REMEMBERED_PLACE)
