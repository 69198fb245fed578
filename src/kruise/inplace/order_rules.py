"""What an update order may not say: priorities and scatter terms, as every workload takes them (IPU-3, IPU-4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kruise.api.apps.shared import UpdatePriorityStrategy, UpdatePriorityWeightTerm, UpdateScatterTerm
from kruise.api.core.field_errors import FieldError, required
from kruise.machinery.selectors import SelectorError, from_label_selector

Errors = Iterator[FieldError]


def priority(path: str, strategy: UpdatePriorityStrategy | None) -> Errors:
    """All complaints are about `path` itself, and name the entry in their text."""
    if strategy is None:
        return
    if strategy.weight_priority and strategy.order_priority:
        yield required(path, "only one of weightPriority and orderPriority can be used")
    for position, term in enumerate(strategy.weight_priority):
        for complaint in _weight_complaints(term):
            yield required(path, f"weightPriority[{position}]: {complaint}")
    for position, order in enumerate(strategy.order_priority):
        if not order.ordered_key:
            yield required(path, f"orderPriority[{position}]: orderedKey should not be empty")


def _weight_complaints(term: UpdatePriorityWeightTerm) -> Iterator[str]:
    if not 0 <= term.weight <= 100:
        yield f"weight must be a number in the range 0-100, not {term.weight}"
    selector = term.match_selector
    if not selector.match_labels and not selector.match_expressions:
        yield "selector can not be empty: matchSelector would match every pod"
        return
    try:
        from_label_selector(selector)
    except SelectorError as error:
        yield f"invalid selector in matchSelector: {error}"


def scatter(path: str, terms: Sequence[UpdateScatterTerm]) -> Errors:
    seen: set[tuple[str, str]] = set()
    for position, term in enumerate(terms):
        if not term.key:
            yield required(path, f"scatterStrategy[{position}]: key should not be empty")
        elif (term.key, term.value) in seen:
            yield required(path, f"scatterStrategy[{position}]: duplicated key={term.key} value={term.value}")
        seen.add((term.key, term.value))
