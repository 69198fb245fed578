"""Which objects select something that has these labels, without trying the selectors of all. Pure.

Each selector is filed at a place that the labels of whatever it selects lead to: a label with a value that it asks for,
else a label that has to be there, else the place of the rest. A search goes to the places that the given labels lead
to, and tries only what is filed there. Where a selector has several such places, the emptiest is taken: of a thousand
selectors with `env=prod,app=<its own>`, nearly all are filed under their `app`.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from kruise.api.meta import Key, LabelSelector, Object
from kruise.machinery.indexes import Entry
from kruise.machinery.selectors import Requirement, Selector, SelectorError, from_label_selector

T = TypeVar("T", bound=Object)

ALL_NAMESPACES = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Selects:
    """One selector of an object. None selects nothing, an empty one everything, an invalid one nothing."""

    selector: Selector | LabelSelector | Mapping[str, Any] | None
    namespace: str
    """Only what is in this namespace is selected; `ALL_NAMESPACES`: wherever it is."""
    namespaces: Selector | LabelSelector | Mapping[str, Any] | None = None
    """Selects the namespaces by their labels, too; None: whatever their labels are."""


SelectorFunction = Callable[[T], Iterable[Selects]]
"""The selectors that an object has; none, one or several."""


@dataclasses.dataclass(frozen=True, slots=True)
class Filter:
    """A selector of an object, parsed."""

    selector: Selector
    namespace: str
    namespaces: Selector | None

    def matches(self, labels: Mapping[str, str], namespace: str, namespace_labels: Mapping[str, str] | None) -> bool:
        if self.namespace not in (ALL_NAMESPACES, namespace):
            return False
        if self.namespaces is not None and (namespace_labels is None or not self.namespaces.matches(namespace_labels)):
            return False
        return self.selector.matches(labels)


def filters(function: SelectorFunction[T]) -> Callable[[T], tuple[Filter, ...]]:
    """The function, with its selectors parsed. Those that cannot select anything are left out."""

    @functools.wraps(function)
    def parsed(obj: T) -> tuple[Filter, ...]:
        found = []
        for selects in function(obj):
            try:
                selector = _parsed(selects.selector)
                namespaces = None if selects.namespaces is None else _parsed(selects.namespaces)
            except SelectorError:
                continue  # admission refuses it where it can; what got past selects nothing, and breaks nobody
            if not selector.selects_nothing and (namespaces is None or not namespaces.selects_nothing):
                found.append(Filter(selector, selects.namespace, namespaces))
        return tuple(found)

    return parsed


def _parsed(selector: Selector | LabelSelector | Mapping[str, Any] | None) -> Selector:
    return selector if isinstance(selector, Selector) else from_label_selector(selector)


class _Place(NamedTuple):
    scope: str
    """The namespace that selectors here are for, or `ALL_NAMESPACES`, or `_NAMESPACE_LABELS`."""
    key: str = ""
    value: str | None = None
    """None: whatever the value is."""


_NAMESPACE_LABELS = "/"
"""The scope of places that the labels of a namespace lead to. No namespace has this name."""


class _Filed(Generic[T]):
    __slots__ = ("entry", "filter", "places")

    def __init__(self, entry: Entry[T], filter: Filter, places: tuple[_Place, ...]) -> None:
        self.entry = entry
        self.filter = filter
        self.places = places


class SelectorIndex(Generic[T]):
    """Entries by the selectors that a function reads from their objects."""

    __slots__ = ("_filed", "_places", "function", "name")

    def __init__(self, name: str, function: SelectorFunction[T]) -> None:
        self.name = name
        self.function = function
        self._filed: dict[tuple[Key, Filter], _Filed[T]] = {}
        self._places: dict[_Place, dict[_Filed[T], None]] = {}

    def move(self, entry: Entry[T], before: tuple[Filter, ...], after: tuple[Filter, ...]) -> None:
        """The selectors of an entry changed; the same one may come twice in either."""
        for gone in set(before).difference(after):
            filed = self._filed.pop((entry.key, gone))
            for place in filed.places:
                there = self._places[place]
                del there[filed]
                if not there:
                    del self._places[place]
        for new in dict.fromkeys(after):
            if new not in before:
                filed = self._filed[entry.key, new] = _Filed(entry, new, self._places_for(new))
                for place in filed.places:
                    self._places.setdefault(place, {})[filed] = None

    def _places_for(self, filter: Filter) -> tuple[_Place, ...]:
        """Where to file: labels with whatever this selects have exactly one of the places."""
        choices = list(_choices(filter.namespace, filter.selector.requirements))
        if filter.namespaces is not None:
            choices += _choices(_NAMESPACE_LABELS, filter.namespaces.requirements)
        return min(choices, key=self._crowd, default=(_Place(filter.namespace),))

    def _crowd(self, places: tuple[_Place, ...]) -> tuple[bool, int, int]:
        """The less, the better: any value goes last; then how many would be tried with this one; then its copies."""
        return places[0].value is None, max(len(self._places.get(place, ())) for place in places), len(places)

    def find(
        self, labels: Mapping[str, str], namespace: str, namespace_labels: Mapping[str, str] | None
    ) -> tuple[T, ...]:
        found: dict[Key, Entry[T]] = {}
        for place in _leads_to(labels, namespace, namespace_labels):
            for filed in self._places.get(place, ()):
                entry = filed.entry
                if entry.key not in found and filed.filter.matches(labels, namespace, namespace_labels):
                    found[entry.key] = entry
        return tuple([found[key].obj for key in sorted(found)])


def _choices(scope: str, requirements: Iterable[Requirement]) -> Iterator[tuple[_Place, ...]]:
    """For each requirement that can serve: the places of which a match must lead to one."""
    for requirement in requirements:
        if values := requirement.only_values:
            yield tuple(_Place(scope, requirement.key, value) for value in dict.fromkeys(values))
        elif requirement.needs_label:
            yield (_Place(scope, requirement.key),)


def _leads_to(
    labels: Mapping[str, str], namespace: str, namespace_labels: Mapping[str, str] | None
) -> Iterator[_Place]:
    for scope in (ALL_NAMESPACES, namespace) if namespace else (ALL_NAMESPACES,):
        yield _Place(scope)
        for key, value in labels.items():
            yield _Place(scope, key, value)
            yield _Place(scope, key)
    for key, value in (namespace_labels or {}).items():
        yield _Place(_NAMESPACE_LABELS, key, value)
        yield _Place(_NAMESPACE_LABELS, key)
