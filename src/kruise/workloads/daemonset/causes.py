"""Causes that only DaemonSet knows."""

from __future__ import annotations

from kruise.machinery.causes import Act, Meaning

_ROLLING = "spec.updateStrategy.rollingUpdate"

NODE_NOT_SELECTED = Meaning(
    code="node-not-selected",
    says="the update is only for other nodes",
    act=Act.INTENDED,
    field=f"{_ROLLING}.selector",
    is_wanted=True,
    is_before_turn=True,
)
MISPLACED = Meaning(
    code="misplaced",
    says="its node takes no new pod, so the old one stays",
    act=Act.SOMEBODY,
    field="spec.template.spec.tolerations",
    patience=0,
)
MAX_SURGE = Meaning(
    code="max-surge",
    says="other nodes have two pods, and no more may have",
    act=Act.NOBODY,
    field=f"{_ROLLING}.maxSurge",
    waits_for_others=True,
    is_before_turn=True,
)
SUCCESSOR = Meaning(
    code="successor",
    says="it goes when the new pod of its node is available",
    act=Act.NOBODY,
    field="spec.minReadySeconds",
    waits_for_others=True,
)
TWO_PODS = Meaning(
    code="two-pods",
    says="its node has two pods already, one of which has to go first",
    act=Act.NOBODY,
    field="spec.lifecycle.preDelete",
    waits_for_others=True,
)
FAILED_POD = Meaning(
    code="failed-pod",
    says="it failed, and is replaced after a delay that grows with each failure",
    act=Act.SOMEBODY,
    patience=0,
)
BURST = Meaning(
    code="burst",
    says="no more pods are written to at a time",
    act=Act.NOBODY,
    field="spec.burstReplicas",
    is_before_turn=True,
)
NO_BURST = Meaning(
    code="no-burst",
    says="burstReplicas lets no pod be written to",
    act=Act.SOMEBODY,
    field="spec.burstReplicas",
    patience=0,
    is_before_turn=True,
)
SELECTS_ALL = Meaning(
    code="selects-all",
    says="its selector is empty, and would take every pod of the namespace",
    act=Act.SOMEBODY,
    field="spec.selector",
    patience=0,
)

CAUSES = (NODE_NOT_SELECTED, MISPLACED, MAX_SURGE, SUCCESSOR, TWO_PODS, FAILED_POD, BURST, NO_BURST, SELECTS_ALL)
