"""Causes that only StatefulSet knows."""

from __future__ import annotations

from kruise.machinery.causes import MINUTE, Act, Meaning

ORDER = Meaning(
    code="order",
    says="pods go one after the other, and the one before it is not available",
    act=Act.NOBODY,
    field="spec.podManagementPolicy",
    waits_for_others=True,
    is_before_turn=True,
)
OVERDUE = Meaning(
    code="overdue",
    says="it should be gone by now; its name is free only when it is",
    act=Act.SOMEBODY,
    patience=0,
    remedy="see whether its node is alive; if the node is gone for good, delete the Node, or taint it with"
    " node.kubernetes.io/out-of-service=nodeshutdown:NoExecute. Nothing else makes sure that no second pod of this name"
    " runs: kubectl get pod {pod}{flags} -o wide",
)
NAME_TAKEN = Meaning(
    code="name-taken",
    says="a pod of somebody else has its name",
    act=Act.SOMEBODY,
    patience=0,
)
CLAIM_LEAVING = Meaning(
    code="claim-leaving",
    says="its claim is on its way out; a new one follows when it is gone",
    act=Act.NOBODY,
    field="spec.persistentVolumeClaimRetentionPolicy",
)
CLAIM_GROWING = Meaning(
    code="claim-growing",
    says="the volume of its claim grows",
    act=Act.NOBODY,
    field="spec.volumeClaimTemplates",
    patience=MINUTE,
    is_own_step=True,
)
CLAIM_DIFFERS = Meaning(
    code="claim-differs",
    says="its claim cannot become what the template says",
    act=Act.SOMEBODY,
    field="spec.volumeClaimTemplates",
    patience=0,
)
GATE_OFF = Meaning(
    code="gate-off",
    says="it asks for what the manager does only with a feature gate",
    act=Act.SOMEBODY,
    patience=0,
)
TOO_MANY = Meaning(
    code="too-many",
    says="it asks for more pods than there can be",
    act=Act.SOMEBODY,
    field="spec.replicas",
    patience=0,
)

CAUSES = (ORDER, OVERDUE, NAME_TAKEN, CLAIM_LEAVING, CLAIM_GROWING, CLAIM_DIFFERS, GATE_OFF, TOO_MANY)
