"""What a forecast asks a DaemonSet beside its decisions."""

from __future__ import annotations

from kruise.api.apps.daemonset import DAEMON_SETS, STANDARD, DaemonSet
from kruise.api.apps.shared import IN_PLACE_IF_POSSIBLE
from kruise.api.native.daemon_pods import verdict_on
from kruise.faces.forecast import Amount, Around, ForecastFacts, Limits, amount_of
from kruise.inplace import availability
from kruise.workloads.daemonset.numbers import limits_of

_ROLLING = "spec.updateStrategy.rollingUpdate"


def _limits(daemon_set: DaemonSet) -> Limits:
    """As numbers of the nodes that the status last counted."""
    desired = daemon_set.status.desired_number_scheduled
    limits = limits_of(daemon_set.spec, desired)
    rolling = daemon_set.spec.update_strategy.rolling_update
    unavailable = rolling.max_unavailable if rolling is not None else None
    return Limits(
        unavailable=Amount(
            path=f"{_ROLLING}.maxUnavailable",
            given=limits.unavailable if unavailable is None else unavailable,
            pods=limits.unavailable,
            is_given=unavailable is not None,
        ),
        surge=amount_of(f"{_ROLLING}.maxSurge", rolling.max_surge if rolling is not None else None, limits.surge),
        partition=amount_of(
            f"{_ROLLING}.partition", rolling.partition if rolling is not None else None, limits.partition
        ),
        is_paused=limits.is_paused,
        is_on_delete=limits.is_on_delete,
    )


def _policy(daemon_set: DaemonSet) -> str:
    rolling = daemon_set.spec.update_strategy.rolling_update
    return (rolling.rolling_update_type if rolling is not None else "") or STANDARD


def _wanted(daemon_set: DaemonSet, around: Around) -> int:
    return sum(verdict_on(daemon_set.spec.template, node).should_run for node in around.nodes)


FORECAST = ForecastFacts(
    resource=DAEMON_SETS,
    wanted=_wanted,
    limits=_limits,
    min_ready_seconds=lambda daemon_set: int(daemon_set.spec.min_ready_seconds),
    serves=availability.is_available,
    policy=_policy,
    in_place_policies=frozenset({IN_PLACE_IF_POSSIBLE}),
    lifecycle=lambda daemon_set: daemon_set.spec.lifecycle,
    update_revision=lambda daemon_set: daemon_set.status.update_revision,
    history_limit=lambda daemon_set: daemon_set.spec.revision_history_limit,
)
