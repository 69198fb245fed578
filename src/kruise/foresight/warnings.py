"""What a person should know before making a change: the checks, each of which looks at one thing.

A further check, such as one about a budget that blocks, is one more function in `CHECKS`.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from kruise.faces.forecast import Amount, ForecastFacts, Limits
from kruise.foresight.forecast import Forecast, How, Warning
from kruise.machinery import codec
from kruise.machinery.intorpercent import IntOrPercentError, is_percent, percentage
from kruise.machinery.revisions import DEFAULT_HISTORY_LIMIT
from kruise.machinery.wording import listed, plural
from kruise.workloads.shared import causes

_SURPRISE = Fraction(1, 10)
"""A percentage that comes to a number this much off, as a part of it, is worth a word."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the checks look at beside the forecast."""

    kind: ForecastFacts
    before: Any
    """The subject as it is; None where it is new."""
    after: Any
    """The subject as it would be."""
    replicas: int
    """Pods that are wanted."""
    broken: tuple[str, ...]
    """Names of its pods that do not serve now, and are not about to."""
    refusals: frozenset[str]
    """Why pods cannot be changed in place."""
    dropped: tuple[str, ...]
    """Revisions that leave the history."""
    admission: tuple[str, ...] = ()
    """What the API server would show with its answer."""
    untouched: str = ""
    """What does not happen although somebody may expect it."""

    @property
    def limits(self) -> Limits:
        return self.kind.limits(self.after)


Check = Callable[[Forecast, Facts], Iterator[Warning]]


def with_warnings(forecast: Forecast, facts: Facts) -> Forecast:
    found = tuple(warning for check in CHECKS for warning in check(forecast, facts))
    return dataclasses.replace(forecast, warnings=found)


def _admission(forecast: Forecast, facts: Facts) -> Iterator[Warning]:
    for text in facts.admission:
        yield Warning(code="admission", message=text)


def _untouched(forecast: Forecast, facts: Facts) -> Iterator[Warning]:
    if facts.untouched:
        yield Warning(code="untouched", message=facts.untouched)


def _in_place_only(forecast: Forecast, facts: Facts) -> Iterator[Warning]:
    for stop in forecast.stops:
        if stop.meaning == causes.IN_PLACE_ONLY:
            yield Warning(
                code=stop.code,
                message=f"{facts.kind.policy(facts.after)} refuses this change, the update stops: {stop.message}",
                remedy=stop.remedy,
            )


def _deadlock(forecast: Forecast, facts: Facts) -> Iterator[Warning]:
    """At rest with pods that wait for others to become available: they wait for ever."""
    limit = facts.limits.unavailable
    held = [stop for stop in forecast.stops if stop.is_last and limit is not None and stop.meaning.field == limit.path]
    if not held or limit is None:
        return
    waiting = f"{plural(sum(len(stop.pods) for stop in held), 'pod', 'never gets its', 'never get their')} turn"
    surge = facts.limits.surge
    if limit.pods == 0:
        extra = "" if surge is None or surge.pods == 0 else f", and maxSurge adds {surge.pods}"
        yield Warning(
            code="deadlock",
            message=f"{_name(limit)} {limit.given} lets no pod be unavailable{extra}: {waiting}",
            remedy=f"raise {limit.path}" + ("" if surge is not None and surge.pods else ", or allow a surge"),
        )
    else:
        yield Warning(
            code="deadlock",
            message=f"pods that do not become available use up {_name(limit)} {limit.given}: {waiting}",
            remedy="repair or delete these pods, or raise the limit",
        )


def _rounding(forecast: Forecast, facts: Facts) -> Iterator[Warning]:
    if not forecast.waves and not any(stop.is_last for stop in forecast.stops):
        return
    limits, replicas = facts.limits, facts.replicas
    for amount in (limits.unavailable, limits.surge, limits.partition):
        if amount is None or not amount.is_given or not is_percent(amount.given):
            continue
        try:
            exact = Fraction(percentage(amount.given) * replicas, 100)
        except IntOrPercentError:
            continue
        if abs(amount.pods - exact) > exact * _SURPRISE:
            yield Warning(
                code="rounding",
                message=f"{_name(amount)} {amount.given} of {plural(replicas, 'pod')} is {float(exact):g}, taken as"
                f" {amount.pods}",
                remedy=f"write {amount.path} as a number if you mean another one",
            )


def _history(forecast: Forecast, facts: Facts) -> Iterator[Warning]:
    if not facts.dropped:
        return
    limit = facts.kind.history_limit(facts.after)
    kept = DEFAULT_HISTORY_LIMIT if limit is None else limit
    back = forecast.from_revision in facts.dropped and forecast.from_revision != forecast.to_revision
    what = f"revision {forecast.from_revision}, the one to go back to," if back else listed(facts.dropped)
    yield Warning(
        code="history",
        message=f"{what} leaves the history: revisionHistoryLimit {kept} keeps no more",
        remedy="raise spec.revisionHistoryLimit if you may want to go back there",
    )


def _recreated(forecast: Forecast, facts: Facts) -> Iterator[Warning]:
    policy = facts.kind.policy(facts.after)
    if policy not in facts.kind.in_place_policies:
        return
    reasons = Counter(move.why for move in forecast.moves if move.how is How.RECREATE and move.why in facts.refusals)
    for why, count in reasons.items():
        yield Warning(
            code="recreate",
            message=f"{plural(count, 'pod', 'is', 'are')} rebuilt although the policy is {policy}: {why}",
            remedy="leave that field as it is to have the pods changed in place",
        )


def _surge(forecast: Forecast, facts: Facts) -> Iterator[Warning]:
    surge = facts.limits.surge
    in_place = sum(move.how is How.IN_PLACE for move in forecast.moves)
    if surge is not None and surge.pods and in_place and forecast.most_pods > forecast.replicas:
        extra = forecast.most_pods - forecast.replicas
        yield Warning(
            code="surge",
            message=f"maxSurge makes {plural(extra, 'more pod')} for a while,"
            f" although {plural(in_place, 'pod', 'is', 'are')}"
            " changed in place; which of the old pods go instead depends on who becomes available first",
            remedy="set maxSurge to 0 if pods that restart in place need no stand-in",
        )


def _broken(forecast: Forecast, facts: Facts) -> Iterator[Warning]:
    limit = facts.limits.unavailable
    waits = forecast.waves or any(stop.meaning == causes.MAX_UNAVAILABLE for stop in forecast.stops)
    if not facts.broken or limit is None or not limit.pods or not waits or _template_is_same(forecast):
        return
    count = len(facts.broken)
    use = plural(count, "pod", "does not serve already and uses", "do not serve already and use")
    yield Warning(
        code="broken",
        message=f"{use} up {min(count, limit.pods)} of the {limit.pods} that {_name(limit)} allows:"
        f" {listed(facts.broken)}",
        remedy=f"the rollout goes faster once {'it is' if count == 1 else 'they are'} repaired",
    )


def _standing_still(forecast: Forecast, facts: Facts) -> Iterator[Warning]:
    """The template changes, and nobody follows."""
    if _template_is_same(forecast) or not forecast.from_revision:
        return
    limits, replicas = facts.limits, facts.replicas
    if limits.is_on_delete:
        yield Warning(
            code=causes.ON_DELETE.code,
            message="pods are only replaced when somebody deletes them: the change reaches no running pod",
            remedy="delete the pods when it suits you, or use RollingUpdate",
        )
    elif limits.is_paused:
        yield Warning(
            code=causes.PAUSED.code,
            message="the update is paused: the new template reaches only pods that are made anew",
            remedy="resume it with `kruise rollout resume`",
        )
    elif limits.partition is not None and limits.partition.pods >= replicas > 0:
        yield Warning(
            code=causes.PARTITION.code,
            message=f"partition {limits.partition.given} keeps"
            f" {'the only pod at its' if replicas == 1 else f'all {replicas} pods at their'} revision",
            remedy=f"lower {limits.partition.path} to let pods go on",
        )


def _claims(forecast: Forecast, facts: Facts) -> Iterator[Warning]:
    if facts.before is None:
        return
    before, after = facts.kind.claim_templates(facts.before), facts.kind.claim_templates(facts.after)
    if codec.canonical(codec.to_builtins(before)) != codec.canonical(codec.to_builtins(after)):
        message, remedy = facts.kind.claims_stay(facts.after)
        if message:
            yield Warning(code="claims", message=message, remedy=remedy)


def _availability(forecast: Forecast, facts: Facts) -> Iterator[Warning]:
    allowed = forecast.fewest_allowed
    if allowed is not None and forecast.fewest_available < min(allowed, forecast.available_before):
        yield Warning(
            code="availability",
            message=f"only {plural(forecast.fewest_available, 'pod', 'serves', 'serve')} at the lowest point,"
            f" {allowed} {'is' if allowed == 1 else 'are'} promised",
            remedy="see the waves",
        )


def _template_is_same(forecast: Forecast) -> bool:
    return forecast.from_revision == forecast.to_revision


def _name(amount: Amount) -> str:
    return amount.path.rpartition(".")[2]


CHECKS: tuple[Check, ...] = (
    _admission,
    _untouched,
    _in_place_only,
    _deadlock,
    _standing_still,
    _recreated,
    _availability,
    _rounding,
    _broken,
    _surge,
    _history,
    _claims,
)
