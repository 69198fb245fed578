"""How pods are made and deleted when a workload is scaled: how much at a time, and in whose favour."""

from __future__ import annotations

from collections.abc import Sequence

from kruise.machinery.pending import CREATION, Pending
from kruise.machinery.plan import Chain, OnError, Phase, Urgency

_LONGEST_PASS = 0.15
"""Seconds. Pods that got a node meanwhile wait no longer than this for their conditions."""
_DETACH_AFTER = 0.04
"""Seconds that a pass waits for the pods it makes. With two hundred workloads, the server may take much longer."""
_ROUNDS = 8
"""Times what the server takes at once is more than a pass can make in its time: the others come with the next."""


def most_at_once(pending: Pending) -> int:
    """How many pods it is worth to work out in one pass."""
    return pending.capacity * _ROUNDS


def creation(name: str, chains: Sequence[Chain], *, detaches: bool = True) -> Phase:
    """`detaches`: the pass need not wait for the pods. Otherwise it waits for those that it has begun to make, and the
    next one sees them and makes the others."""
    return Phase(
        name=name,
        chains=tuple(chains),
        on_error=OnError.STOP_PHASE,
        slow_start=True,
        pause_after=_DETACH_AFTER if detaches else _LONGEST_PASS,
        detaches=detaches,
        mark=CREATION,
        # Pods that are there should not stand in line behind those that are not.
        urgency=Urgency.LATER,
    )


def deletion(name: str, chains: Sequence[Chain], *, alongside: bool = False) -> Phase:
    return Phase(
        name=name,
        chains=tuple(chains),
        on_error=OnError.STOP_PHASE,
        pause_after=_LONGEST_PASS,
        alongside=alongside,
    )
