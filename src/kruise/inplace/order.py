"""In which order pods are updated (IPU-120 to IPU-123).

First the default order, which begins with the pods that matter least; then the user's priorities; then scattering,
which spreads the pods with some label evenly over the rollout. Ties end in the name, so an order is the same each time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from kruise.api.apps.shared import UpdatePriorityOrderTerm, UpdatePriorityStrategy, UpdateScatterTerm
from kruise.api.apps.shared import UpdatePriorityWeightTerm as WeightTerm
from kruise.api.native.pod import Pod, ready_since
from kruise.inplace import keys
from kruise.machinery.remembered import once_per_object
from kruise.machinery.selectors import Selector, SelectorError, from_label_selector

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_TRAILING_DIGITS = re.compile(r"[0-9]+\Z", re.ASCII)
_FIRST = float("-inf")

Placing = tuple[bool, int]
Standing = tuple[float, int, float, str]


def update_order(
    candidates: Sequence[Pod],
    everyone: Sequence[Pod],
    *,
    priority: UpdatePriorityStrategy | None,
    scatter: Sequence[UpdateScatterTerm],
) -> list[Pod]:
    """The candidates in the order in which they are updated. `everyone`: all pods of the workload, the updated ones
    too, whose share of matching pods the scattering aims at."""
    ordered = scattered(by_priority(by_importance(candidates), priority), everyone, scatter)
    preparing = [pod for pod in ordered if _is_preparing(pod)]
    if not preparing:
        return ordered
    return preparing + [pod for pod in ordered if not _is_preparing(pod)]


def _is_preparing(pod: Pod) -> bool:
    return pod.metadata.labels.get(keys.STATE_LABEL) == "PreparingUpdate"


def by_importance(pods: Iterable[Pod]) -> list[Pod]:
    """The default order (IPU-120): what serves least goes first."""
    return sorted(pods, key=_importance)


@once_per_object
def _importance(pod: Pod) -> tuple[Any, ...]:
    is_ready, since = ready_since(pod)
    # One flat tuple: nested ones are slow to compare.
    return (*placing(pod), is_ready, *standing(pod, is_ready=is_ready, since=since))


def placing(pod: Pod) -> Placing:
    """Without a node before with one; Pending, Unknown, Running. A pod without a phase has not been looked at yet and
    counts as Pending."""
    return bool(pod.spec.node_name), _PHASES.get(pod.status.phase, 0)


def standing(pod: Pod, *, is_ready: bool, since: datetime | None) -> Standing:
    """Shorter Ready before longer where both are; more restarts before fewer; newer before older; then by name."""
    restarts = max((status.restart_count for status in pod.status.container_statuses), default=0)
    metadata = pod.metadata
    return (
        _newest_first(since) if is_ready else 0.0,
        -restarts,
        _newest_first(metadata.creation_timestamp),
        metadata.name,
    )


def _newest_first(time: datetime | None) -> float:
    return _FIRST if time is None else -time.timestamp()


def by_priority(pods: Sequence[Pod], strategy: UpdatePriorityStrategy | None) -> list[Pod]:
    """By the user's priorities (IPU-121); pods of equal priority keep their order."""
    if strategy is not None and strategy.weight_priority:
        return sorted(pods, key=_by_weight(strategy.weight_priority))
    if strategy is not None and strategy.order_priority:
        return sorted(pods, key=_by_order(strategy.order_priority))
    return list(pods)


def _by_weight(terms: Sequence[WeightTerm]) -> Callable[[Pod], int]:
    weights = [(selector, term.weight) for term in terms if (selector := _selector(term)) is not None]

    def rank(pod: Pod) -> int:
        labels = pod.metadata.labels
        return -sum(weight for selector, weight in weights if selector.matches(labels))

    return rank


def _selector(term: WeightTerm) -> Selector | None:
    try:
        return from_label_selector(term.match_selector)
    except SelectorError:
        # Admission refuses such a term. Where one was stored nonetheless it favours nobody, and the rollout goes on.
        return None


def _by_order(terms: Sequence[UpdatePriorityOrderTerm]) -> Callable[[Pod], tuple[int, int]]:
    wanted = [term.ordered_key for term in terms]

    def rank(pod: Pod) -> tuple[int, int]:
        labels = pod.metadata.labels
        for position, key in enumerate(wanted):
            if (value := labels.get(key)) is not None:
                return position, -trailing_number(value)
        return -1, 0

    return rank


def trailing_number(value: str) -> int:
    """The number that a label value ends in: 10 for `sts-10`, 0 where there is none."""
    match = _TRAILING_DIGITS.search(value)
    return int(match.group()) if match else 0


def scattered(waiting: Sequence[Pod], everyone: Sequence[Pod], terms: Sequence[UpdateScatterTerm]) -> list[Pod]:
    """Spread the pods that match a term evenly over the order (IPU-122)."""
    ordered = list(waiting)
    for term in _by_matches(terms, waiting):
        ordered = _scattered_by(term, ordered, everyone)
    return ordered


def _by_matches(terms: Sequence[UpdateScatterTerm], waiting: Sequence[Pod]) -> list[UpdateScatterTerm]:
    if len(terms) <= 1:
        return list(terms)
    counted = [(sum(_matches(pod, term) for pod in waiting), term) for term in terms]
    return [term for count, term in sorted(counted, key=lambda item: -item[0]) if count]


def _matches(pod: Pod, term: UpdateScatterTerm) -> bool:
    return pod.metadata.labels.get(term.key) == term.value


def _scattered_by(term: UpdateScatterTerm, waiting: list[Pod], everyone: Sequence[Pod]) -> list[Pod]:
    matching = [pod for pod in waiting if _matches(pod, term)]
    others = [pod for pod in waiting if not _matches(pod, term)]
    if len(matching) <= 1 or len(others) <= 1:
        return waiting
    # One matching pod ends the order, so that the spread reaches from its first place to its last.
    last = matching.pop()
    m, u = len(matching), len(others)
    all_matching = sum(_matches(pod, term) for pod in everyone)
    total_m = max(all_matching - 1, m)
    total_u = max(len(everyone) - all_matching, u)
    if total_u * m >= u * total_m:
        step_m, step_u = _steps(m, u)
        rounds, lead = min(m, u), 0
    else:
        # Fewer matching pods wait than their share: those updated already were ahead, so others go first now.
        step_m, step_u = _steps(total_m, total_u)
        rounds = min(m // step_m, u // step_u)
        lead = u - rounds * step_u
    ordered, others = others[:lead], others[lead:]
    for number in range(rounds):
        ordered += matching[number * step_m : (number + 1) * step_m]
        ordered += others[number * step_u : (number + 1) * step_u]
    return [*ordered, *matching[rounds * step_m :], *others[rounds * step_u :], last]


def _steps(matching: int, others: int) -> tuple[int, int]:
    """How many of each make up one round."""
    rounds = min(matching, others)
    return _rounded(matching, rounds), _rounded(others, rounds)


def _rounded(amount: int, parts: int) -> int:
    """The nearest whole number, halves away from zero."""
    return (2 * amount + parts) // (2 * parts)
