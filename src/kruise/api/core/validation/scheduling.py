"""Where a pod may run: affinity, tolerations, spread, gates."""

from __future__ import annotations

from collections.abc import Sequence

from kruise.api.core import formats
from kruise.api.core.field_errors import Path, duplicate, forbidden, invalid, not_supported, required
from kruise.api.core.validation import common
from kruise.api.core.validation.common import Errors, Struct

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_WEIGHT = "must be in the range 1-100"


def affinity(path: Path, given: Struct | None) -> Errors:
    if given is None:
        return
    node = given.get("nodeAffinity")
    if node is not None:
        yield from _node_affinity(path.child("nodeAffinity"), node)
    for name in ("podAffinity", "podAntiAffinity"):
        pods = given.get(name)
        if pods is not None:
            yield from _pod_affinity(path.child(name), pods)


def _node_affinity(path: Path, given: Struct) -> Errors:
    wanted = given.get(REQUIRED)
    if wanted is not None:
        where = path.child(REQUIRED, "nodeSelectorTerms")
        if not wanted["nodeSelectorTerms"]:
            yield required(where, "must have at least one node selector term")
        for position, term in enumerate(wanted["nodeSelectorTerms"] or ()):
            yield from node_term(where.at(position), term, check_values=True)
    for position, preference in enumerate(given.get(PREFERRED) or ()):
        where = path.child(PREFERRED).at(position)
        if not 1 <= preference["weight"] <= 100:
            yield invalid(where.child("weight"), preference["weight"], _WEIGHT)
        yield from node_term(where.child("preference"), preference["preference"], check_values=False)


def node_term(path: Path, term: Struct, *, check_values: bool) -> Errors:
    for position, expression in enumerate(term.get("matchExpressions") or ()):
        yield from _node_expression(path.child("matchExpressions").at(position), expression, check_values)
    for position, expression in enumerate(term.get("matchFields") or ()):
        yield from _node_field(path.child("matchFields").at(position), expression)


def _node_expression(path: Path, expression: Struct, check_values: bool) -> Errors:
    operator, values = expression["operator"], expression.get("values") or ()
    if operator in ("In", "NotIn"):
        if not values:
            yield required(path.child("values"), "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            yield forbidden(path.child("values"), "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            yield required(path.child("values"), "must be specified single value when `operator` is 'Lt' or 'Gt'")
    else:
        yield invalid(path.child("operator"), operator, "not a valid selector operator")
    yield from common.label_name(path.child("key"), expression["key"])
    if check_values:
        for position, value in enumerate(values):
            yield from common.complaints(path.child("values").at(position), value, formats.label_value(value))


def _node_field(path: Path, expression: Struct) -> Errors:
    operator, values, key = expression["operator"], expression.get("values") or (), expression["key"]
    if operator in ("In", "NotIn"):
        if len(values) != 1:
            words = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            yield required(path.child("values"), words)
    else:
        yield invalid(path.child("operator"), operator, "not a valid selector operator")
    if key != "metadata.name":
        yield invalid(path.child("key"), key, "not a valid field selector key")
        return
    for position, value in enumerate(values):
        yield from common.complaints(path.child("values").at(position), value, formats.dns_subdomain(value))


def _pod_affinity(path: Path, given: Struct) -> Errors:
    for position, term in enumerate(given.get(REQUIRED) or ()):
        yield from _pod_term(path.child(REQUIRED).at(position), term)
    for position, weighted in enumerate(given.get(PREFERRED) or ()):
        where = path.child(PREFERRED).at(position)
        if not 1 <= weighted["weight"] <= 100:
            yield invalid(where.child("weight"), weighted["weight"], _WEIGHT)
        yield from _pod_term(where.child("podAffinityTerm"), weighted["podAffinityTerm"])


def _pod_term(path: Path, term: Struct) -> Errors:
    yield from common.label_selector(path.child("labelSelector"), term.get("labelSelector"))
    yield from common.label_selector(path.child("namespaceSelector"), term.get("namespaceSelector"))
    for name in term.get("namespaces") or ():
        yield from common.complaints(path.child("namespace"), name, formats.dns_label(name))
    yield from _label_keys(
        path, term.get("matchLabelKeys") or (), term.get("mismatchLabelKeys") or (), term.get("labelSelector")
    )
    if not term["topologyKey"]:
        yield required(path.child("topologyKey"), "can not be empty")
    yield from common.label_name(path.child("topologyKey"), term["topologyKey"])


def _label_keys(path: Path, match: Sequence[str], mismatch: Sequence[str], selector: Struct | None) -> Errors:
    for field, keys in (("matchLabelKeys", match), ("mismatchLabelKeys", mismatch)):
        if keys and selector is None:
            yield forbidden(path.child(field), "must not be specified when labelSelector is not set")
        elif keys:
            for position, key in enumerate(keys):
                yield from common.label_name(path.child(field).at(position), key)
    if selector is not None:
        positions = {key: position for position, key in enumerate(match)}
        seen = set(selector.get("matchLabels") or ())
        for expression in selector.get("matchExpressions") or ():
            key = expression["key"]
            if key in positions and key in seen:
                yield invalid(path.at(positions[key]), key, "exists in both matchLabelKeys and labelSelector")
            seen.add(key)
    for position, key in enumerate(match):
        if key in mismatch:
            where = path.child("matchLabelKeys").at(position)
            yield invalid(where, key, "exists in both matchLabelKeys and mismatchLabelKeys")


def tolerations(path: Path, given: Sequence[Struct]) -> Errors:
    for position, toleration in enumerate(given):
        where = path.at(position)
        key, operator, value, effect = (toleration.get(name, "") for name in ("key", "operator", "value", "effect"))
        if key:
            yield from common.label_name(where.child("key"), key)
        elif operator != "Exists":
            words = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            yield invalid(where.child("operator"), operator, words)
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            words = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield invalid(where.child("effect"), effect, words)
        if operator in ("Equal", ""):
            found = formats.label_value(value)
            if found:
                yield invalid(where.child("operator"), value, ";".join(found))
        elif operator == "Exists":
            if value:
                yield invalid(where.child("operator"), value, "value must be empty when `operator` is 'Exists'")
        else:
            yield not_supported(where.child("operator"), operator, ("Equal", "Exists"))
        if effect and effect not in _EFFECTS:
            yield not_supported(where.child("effect"), effect, _EFFECTS)


def spread_constraints(path: Path, constraints: Sequence[Struct]) -> Errors:
    for position, constraint in enumerate(constraints):
        where = path.at(position)
        key, action = constraint["topologyKey"], constraint["whenUnsatisfiable"]
        yield from common.positive(where.child("maxSkew"), constraint["maxSkew"])
        if not key:
            yield required(where.child("topologyKey"), "can not be empty")
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            yield not_supported(where.child("whenUnsatisfiable"), action, ("DoNotSchedule", "ScheduleAnyway"))
        pairs = [(other["topologyKey"], other["whenUnsatisfiable"]) for other in constraints[position + 1 :]]
        if (key, action) in pairs:
            yield duplicate(where.child("{topologyKey, whenUnsatisfiable}"), f"{{{key}, {action}}}")
        domains = constraint.get("minDomains")
        if domains is not None:
            yield from common.positive(where.child("minDomains"), domains)
            if action != "DoNotSchedule":
                words = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                yield invalid(where.child("minDomains"), domains, words)
        for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            policy = constraint.get(field)
            if policy is not None and policy not in ("Honor", "Ignore"):
                yield not_supported(where.child(field), policy, ("Honor", "Ignore"))
        selector = constraint.get("labelSelector")
        yield from _label_keys(where, constraint.get("matchLabelKeys") or (), (), selector)
        yield from common.label_selector(where.child("labelSelector"), selector)


def readiness_gates(path: Path, gates: Sequence[Struct]) -> Errors:
    for position, gate in enumerate(gates):
        yield from common.label_name(path.at(position).child("conditionType"), gate["conditionType"])


def scheduling_gates(path: Path, gates: Sequence[Struct]) -> Errors:
    seen: set[str] = set()
    for position, gate in enumerate(gates):
        where, name = path.at(position), gate["name"]
        yield from common.label_name(where, name)
        if name in seen:
            yield duplicate(where, name)
        seen.add(name)
