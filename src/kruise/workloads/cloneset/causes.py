"""Causes that only CloneSet knows."""

from __future__ import annotations

from kruise.machinery.causes import Act, Meaning

_ROLLING = "spec.updateStrategy.rollingUpdate"

SURGE = Meaning(
    code="surge",
    says="it is one too many, and goes when the others are available",
    act=Act.NOBODY,
    field=f"{_ROLLING}.maxSurge",
    waits_for_others=True,
    is_before_turn=True,
)
TO_DELETE = Meaning(
    code="to-delete", says="it is about to be deleted", act=Act.NOBODY, field="spec.scaleStrategy.podsToDelete"
)
PREPARING_DELETE = Meaning(
    code="preparing-delete",
    says="pods that were chosen before go first",
    act=Act.NOBODY,
    field="spec.replicas",
    waits_for_others=True,
)

CAUSES = (SURGE, TO_DELETE, PREPARING_DELETE)
