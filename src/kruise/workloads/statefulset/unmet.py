"""What a StatefulSet asks for and does not get: for want of a feature gate of the manager (ST-10), or of ordinals."""

from __future__ import annotations

from collections.abc import Iterator

from kruise.api.apps.statefulset import ON_POD_ROLLING_UPDATE
from kruise.machinery.plan import Cause, Held, Target
from kruise.machinery.wording import listed
from kruise.workloads.shared.ordinals import START_GATE
from kruise.workloads.statefulset.causes import GATE_OFF, TOO_MANY
from kruise.workloads.statefulset.claim_templates import GROWTH_GATE
from kruise.workloads.statefulset.situation import Situation
from kruise.workloads.statefulset.volumes import is_compatible, pairs


def unmet(situation: Situation) -> tuple[Held, ...]:
    """Of the StatefulSet itself: no pod waits for it."""
    target = Target.of(situation.owner.resource, situation.statefulset)
    return tuple(Held(target=target, causes=(cause,)) for cause in _causes(situation))


def _causes(situation: Situation) -> Iterator[Cause]:
    spec = situation.statefulset.spec
    if (wanted := spec.replicas or 0) > situation.replicas:
        yield TOO_MANY.cause(
            f"of {wanted} pods there can be {situation.replicas}",
            details={"wanted": wanted, "most": situation.replicas},
            remedy="lower spec.replicas, or spec.ordinals.start",
        )
    if spec.ordinals is not None and spec.ordinals.start > 0 and not situation.gate(START_GATE):
        yield _cause(f"ordinals.start {spec.ordinals.start} has no effect", "spec.ordinals.start", START_GATE)
    if spec.volume_claim_update_strategy.type != ON_POD_ROLLING_UPDATE or situation.gate(GROWTH_GATE):
        return
    stay = [
        claim.metadata.name
        for slot in situation.slots
        for template, claim in pairs(situation, slot)
        if not is_compatible(claim, template)
    ]
    if stay:
        yield _cause(f"claims do not grow: {listed(stay)}", "spec.volumeClaimUpdateStrategy.type", GROWTH_GATE)


def _cause(what: str, field: str, gate: str) -> Cause:
    return GATE_OFF.cause(
        f"{what}: the manager runs without feature gate {gate}",
        details={"gate": gate, "field": field},
        remedy=f"switch the gate on, or take {field} away",
    )
