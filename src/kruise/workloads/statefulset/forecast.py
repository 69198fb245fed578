"""What a forecast asks a StatefulSet beside its decisions."""

from __future__ import annotations

from kruise.api.apps.shared import IN_PLACE_POLICIES, RE_CREATE
from kruise.api.apps.statefulset import ON_POD_ROLLING_UPDATE, STATEFUL_SETS, StatefulSet
from kruise.faces.forecast import Amount, ForecastFacts, Limits
from kruise.inplace import availability
from kruise.workloads.shared.ordinals import replicas_of
from kruise.workloads.statefulset.limits import limits_of, strategy_of

_PATH = "spec.updateStrategy.rollingUpdate"


def _limits(statefulset: StatefulSet) -> Limits:
    limits, rolling = limits_of(statefulset.spec), strategy_of(statefulset.spec)
    given, partition = rolling.max_unavailable, None
    if rolling.partition is not None:
        partition = Amount(path=f"{_PATH}.partition", given=rolling.partition, pods=limits.partition)
    return Limits(
        unavailable=Amount(
            path=f"{_PATH}.maxUnavailable",
            given=1 if given is None else given,
            pods=limits.max_unavailable,
            is_given=given is not None,
        ),
        partition=partition,
        is_paused=limits.is_paused,
        is_on_delete=limits.is_on_delete,
    )


def _claims_stay(statefulset: StatefulSet) -> tuple[str, str]:
    """A pod that is made anew gets its claim back (ST-81, ST-91)."""
    if statefulset.spec.volume_claim_update_strategy.type == ON_POD_ROLLING_UPDATE:
        return "", ""
    return (
        "a change of volumeClaimTemplates reaches only claims that do not exist yet: pods keep theirs, however often "
        "they are made anew",
        f"set volumeClaimUpdateStrategy.type to {ON_POD_ROLLING_UPDATE} to let claims grow, or delete a claim and then "
        "its pod when the data may go",
    )


FORECAST = ForecastFacts(
    resource=STATEFUL_SETS,
    wanted=lambda statefulset, around: replicas_of(statefulset.spec),
    limits=_limits,
    min_ready_seconds=lambda statefulset: limits_of(statefulset.spec).min_ready_seconds,
    serves=availability.is_available,
    policy=lambda statefulset: strategy_of(statefulset.spec).pod_update_policy or RE_CREATE,
    in_place_policies=frozenset(IN_PLACE_POLICIES),
    lifecycle=lambda statefulset: statefulset.spec.lifecycle,
    update_revision=lambda statefulset: statefulset.status.update_revision,
    history_limit=lambda statefulset: statefulset.spec.revision_history_limit,
    claim_templates=lambda statefulset: statefulset.spec.volume_claim_templates,
    claims_stay=_claims_stay,
)
