"""What rules of roles grant, read as the API server reads them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple


class Right(NamedTuple):
    group: str
    resource: str
    """With its subresource: `pods/status`. A rule may say `*` or `*/scale`."""
    verb: str
    name: str = ""
    """Empty: of whatever object."""


def rights_of(rule: Mapping[str, Any]) -> Iterator[Right]:
    """One by one."""
    for path in rule.get("nonResourceURLs") or ():
        for verb in rule.get("verbs") or ():
            yield Right("", path, verb)
    for group in rule.get("apiGroups") or ():
        for resource in rule.get("resources") or ():
            for verb in rule.get("verbs") or ():
                for name in rule.get("resourceNames") or ("",):
                    yield Right(group, resource, verb, name)


def is_granted(right: Right, rules: Iterable[Mapping[str, Any]]) -> bool:
    return any(grants(rule, right) for rule in rules)


def grants(rule: Mapping[str, Any], right: Right) -> bool:
    names: Sequence[str] = rule.get("resourceNames") or ()
    _, _, subresource = right.resource.partition("/")
    return (
        _has(rule, "apiGroups", right.group)
        and (
            _has(rule, "resources", right.resource)
            or (bool(subresource) and f"*/{subresource}" in (rule.get("resources") or ()))
        )
        and _has(rule, "verbs", right.verb)
        and (not names or right.name in names)
    )


def _has(rule: Mapping[str, Any], field: str, value: str) -> bool:
    given = rule.get(field) or ()
    return value in given or "*" in given
