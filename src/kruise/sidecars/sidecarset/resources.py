"""The resources of a sidecar that follow those of the containers beside it (SCS-54)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from kruise.api.apps.sidecarset import ResourceExpressions, ResourcesPolicy
from kruise.machinery import codec
from kruise.machinery.quantity import Format, QuantityError, from_milli_value, parse_quantity
from kruise.sidecars.sidecarset.content import Json, is_injected, is_native, name_of
from kruise.sidecars.sidecarset.expressions import ExpressionError, Milli, evaluate
from kruise.sidecars.sidecarset.patterns import PatternError, compiled

ANY_NAME = ".*"
_FORMATS = {"cpu": Format.DECIMAL, "memory": Format.BINARY}


class ResourcesError(ValueError):
    """The resources of a sidecar cannot be worked out."""


def policy_of(container: Mapping[str, Any]) -> ResourcesPolicy | None:
    found = container.get("resourcesPolicy")
    return codec.convert(found, ResourcesPolicy) if isinstance(found, Mapping) else None


def resources_of(policy: ResourcesPolicy, pod: Json, others: Collection[str]) -> Json:
    """The resources by the policy. `others` are the names of sidecars, which count for nobody. Raises
    ResourcesError."""
    targets = list(_targets(policy, pod, others))
    if not targets:
        pattern = policy.target_containers_name_regex or ANY_NAME
        raise ResourcesError(f"no container of the pod has a name that matches {pattern!r}")
    expressions = policy.resources_expr
    found: Json = {}
    for kind, wanted in (("limits", expressions.limits), ("requests", expressions.requests)):
        amounts = dict(_amounts(kind, wanted, targets, policy.target_containers_mode)) if wanted is not None else {}
        if amounts:
            found[kind] = amounts
    return found


def _targets(policy: ResourcesPolicy, pod: Json, others: Collection[str]) -> Iterator[Json]:
    try:
        pattern = compiled(policy.target_containers_name_regex or ANY_NAME)
    except PatternError as error:
        raise ResourcesError(f"targetContainersNameRegex: {error}") from error
    spec = pod.get("spec") or {}
    native = [item for item in spec.get("initContainers") or () if is_native(item)]
    for container in (*native, *(spec.get("containers") or ())):
        name = name_of(container)
        if name not in others and not is_injected(container) and pattern.search(name):
            yield container


def _amounts(kind: str, wanted: ResourceExpressions, targets: Iterable[Json], mode: str) -> Iterator[tuple[str, str]]:
    for resource, expression in (("cpu", wanted.cpu), ("memory", wanted.memory)):
        if not expression:
            continue
        given = [_amount(container, kind, resource) for container in targets]
        if kind == "limits" and None in given:
            continue  # unlimited, whatever the expression says
        amounts = [amount or 0 for amount in given]
        variable = Milli(max(amounts) if mode == "max" else sum(amounts))
        try:
            value = evaluate(expression, {resource: variable})
        except ExpressionError as error:
            raise ResourcesError(f"resourcesExpr.{kind}.{resource} {expression!r}: {error}") from error
        yield resource, str(from_milli_value(value, _FORMATS[resource]))


def _amount(container: Json, kind: str, resource: str) -> int | None:
    amounts = (container.get("resources") or {}).get(kind) or {}
    if resource not in amounts:
        return None
    try:
        return parse_quantity(amounts[resource]).milli_value()
    except QuantityError as error:
        raise ResourcesError(f"container {name_of(container)}: resources.{kind}.{resource}: {error}") from error
