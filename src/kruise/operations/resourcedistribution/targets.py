"""Which namespaces get a copy (RD-20). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kruise.api.apps.resourcedistribution import Targets
from kruise.machinery.selectors import Selector, SelectorError, from_label_selector

SYSTEM = frozenset({"kube-system", "kube-public"})
"""Targets only where they are listed by name: no selector, and not all namespaces, means them."""


def selector_of(targets: Targets) -> Selector | None:
    """None: it selects nothing, as an empty one does here, or it cannot be read."""
    try:
        selector = from_label_selector(targets.namespace_selector)
    except SelectorError:
        return None
    return None if selector.is_empty else selector


def wanted(targets: Targets, namespaces: Iterable[tuple[str, Mapping[str, str]]]) -> list[str]:
    """Names in order; those that are listed are wanted whether they exist or not."""
    listed = set(targets.included_namespaces.names)
    if targets.all_namespaces:
        found = {name for name, _ in namespaces}
    else:
        selector = selector_of(targets)
        found = set(listed)
        if selector is not None:
            found.update(name for name, labels in namespaces if selector.matches(labels))
    return sorted(found - (SYSTEM - listed) - set(targets.excluded_namespaces.names))
