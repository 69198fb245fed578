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

CAUSES = (NOTHING_TO_REMEMBER,)
