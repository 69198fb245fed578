"""What a forecast asks a CloneSet beside its decisions."""

from __future__ import annotations

from kruise.api.apps.cloneset import CLONE_SETS, CloneSet
from kruise.api.apps.shared import IN_PLACE_POLICIES
from kruise.faces.forecast import Amount, Around, ForecastFacts, Limits, amount_of
from kruise.inplace import availability
from kruise.workloads.cloneset.numbers import DEFAULT_MAX_UNAVAILABLE, limits_of, replicas_of


def _limits(cloneset: CloneSet) -> Limits:
    limits = limits_of(cloneset.spec)
    strategy = cloneset.spec.update_strategy
    rolling = strategy.rolling_update
    path = "spec.updateStrategy.rollingUpdate"
    unavailable = rolling.max_unavailable if rolling is not None else None
    return Limits(
        unavailable=Amount(
            path=f"{path}.maxUnavailable",
            given=DEFAULT_MAX_UNAVAILABLE if unavailable is None else unavailable,
            pods=limits.max_unavailable,
            is_given=unavailable is not None,
        ),
        surge=amount_of(f"{path}.maxSurge", rolling.max_surge if rolling is not None else None, limits.max_surge),
        partition=amount_of(f"{path}.partition", rolling.partition if rolling is not None else None, limits.partition),
        is_paused=limits.is_paused,
        is_on_delete=strategy.type == "OnDelete",
    )


def _policy(cloneset: CloneSet) -> str:
    rolling = cloneset.spec.update_strategy.rolling_update
    return (rolling.pod_update_policy if rolling is not None else "") or "ReCreate"


def _wanted(cloneset: CloneSet, around: Around) -> int:
    return replicas_of(cloneset.spec)


FORECAST = ForecastFacts(
    resource=CLONE_SETS,
    wanted=_wanted,
    limits=_limits,
    min_ready_seconds=lambda cloneset: int(cloneset.spec.min_ready_seconds),
    serves=availability.is_available,
    policy=_policy,
    in_place_policies=frozenset(IN_PLACE_POLICIES),
    lifecycle=lambda cloneset: cloneset.spec.lifecycle,
    update_revision=lambda cloneset: cloneset.status.update_revision,
    history_limit=lambda cloneset: cloneset.spec.revision_history_limit,
    claim_templates=lambda cloneset: cloneset.spec.volume_claim_templates,
    claims_stay=lambda cloneset: (
        "a change of volumeClaimTemplates reaches only pods that are made anew: claims stay as they are",
        "recreate the pods to have them get new claims",
    ),
)
