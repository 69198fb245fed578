"""Whether two selectors may select the same object: a guess that is right where labels are used as they mostly are
(SCS-32). Pure."""

from __future__ import annotations

from kruise.api.meta import LabelSelector

_ANY = None


def may_overlap(left: LabelSelector, right: LabelSelector) -> bool:
    return not (_excludes(left, right) or _excludes(right, left))


def scopes_overlap(left: LabelSelector | None, right: LabelSelector | None) -> bool:
    """Of namespace selectors: an absent one selects all."""
    return left is None or right is None or may_overlap(left, right)


def _listed(selector: LabelSelector) -> dict[str, set[str] | None]:
    """Label -> the values that the selector asks for; None: any value."""
    found: dict[str, set[str] | None] = {key: {value} for key, value in selector.match_labels.items()}
    for term in selector.match_expressions:
        if term.operator == "Exists":
            found[term.key] = _ANY
        elif term.operator == "In":
            known = found.setdefault(term.key, set())
            if known is not None:
                known.update(term.values)
    return found


def _excludes(left: LabelSelector, right: LabelSelector) -> bool:
    """Whether what `left` asks for is nothing that `right` can select."""
    listed = _listed(left)
    for key, value in right.match_labels.items():
        known = listed.get(key, _ANY)
        if known is not None and value not in known:
            return True
    for term in right.match_expressions:
        known, values = listed.get(term.key, _ANY), set(term.values)
        if term.operator == "In" and known is not None and not known & values:
            return True
        if term.operator == "NotIn" and known is not None and known <= values:
            return True
        if term.operator == "Exists" and term.key not in listed:
            return True
        if term.operator == "DoesNotExist" and term.key in listed:
            return True
    return False
