"""What a WorkloadSpread may not be, and may not become (WS section 4). Pure.

Both versions are judged as `v1beta1`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kruise.api.apps.workloadspread import ADAPTIVE, SCHEDULE_TYPES, Subset, TargetReference, WorkloadSpreadSpec
from kruise.api.core import values
from kruise.api.core.defaults import default_template
from kruise.api.core.field_errors import FieldError, Path, TemplateTypeError, invalid, not_supported, required
from kruise.api.core.validation import common, scheduling, validate_pod_template
from kruise.machinery import codec, intorpercent
from kruise.machinery.selectors import SelectorError, from_label_selector
from kruise.spread.workloadspread.injection import UnfitPatchError, patched
from kruise.spread.workloadspread.targets import STATEFUL_SET, SUPPORTED

Errors = Iterator[FieldError]
Json = Mapping[str, Any]

SPEC = Path("spec")
TARGET_REF = SPEC.child("targetRef")
SUBSETS = SPEC.child("subsets")
STRATEGY = SPEC.child("scheduleStrategy")
_LONGEST = 295
"""Seconds: pods that were in every subset have moved on before the first is tried again."""


def problems(
    spec: WorkloadSpreadSpec, body: Json, old: WorkloadSpreadSpec | None, *, is_whitelisted: bool, taken_by: str
) -> list[FieldError]:
    """Everything that is wrong. `taken_by` is another WorkloadSpread of the same target."""
    return [
        *_target(spec.target_ref, old, is_whitelisted=is_whitelisted, taken_by=taken_by),
        *_subsets(spec, body),
        *_sizes(spec),
        *_strategy(spec),
        *_filter(spec),
    ]


def _target(
    reference: TargetReference, old: WorkloadSpreadSpec | None, *, is_whitelisted: bool, taken_by: str
) -> Errors:
    shown = codec.to_builtins(reference)
    empty = [name for name in ("apiVersion", "kind", "name") if not shown.get(name)]
    if empty:
        words = f"empty TargetReference is not valid for WorkloadSpread: {', '.join(empty)} must be given"
        yield invalid(TARGET_REF, shown, words)
        return
    if reference.kind in SUPPORTED:
        if reference.group not in SUPPORTED[reference.kind]:
            groups = " or ".join(sorted(SUPPORTED[reference.kind]))
            words = f"TargetReference is not valid for {reference.kind}: its group must be {groups}"
            yield invalid(TARGET_REF, shown, words)
    elif not is_whitelisted:
        words = (
            "TargetReference's GroupKind is not permitted: it must be a Deployment, ReplicaSet, StatefulSet, CloneSet "
            "or Job, or be listed in the ConfigMap kruise-configuration"
        )
        yield invalid(TARGET_REF, shown, words)
    if old is not None and _identity(reference) != _identity(old.target_ref):
        yield invalid(TARGET_REF, shown, "change TargetReference is not permitted for WorkloadSpread")
    if taken_by:
        yield invalid(TARGET_REF, shown, f"ws.spec.targetRef is in conflict with other WorkloadSpread {taken_by}")


def _identity(reference: TargetReference) -> tuple[str, str, str]:
    return reference.group, reference.kind, reference.name


def _subsets(spec: WorkloadSpreadSpec, body: Json) -> Errors:
    if not spec.subsets:
        yield required(SUBSETS, "subsets number must >= 1 in WorkloadSpread")
    known: set[str] = set()
    documents = (body.get("spec") or {}).get("subsets") or ()
    for position, (subset, document) in enumerate(zip(spec.subsets, documents, strict=True)):
        where = SUBSETS.at(position)
        if not subset.name:
            yield invalid(where.child("name"), "", "a subset must have a name")
        elif subset.name in known:
            yield invalid(where.child("name"), subset.name, f"duplicated subset name {subset.name}")
        known.add(subset.name)
        try:
            yield from _placement(where, document)
        except TemplateTypeError as error:
            yield error.error


def _placement(where: Path, subset: Json) -> Errors:
    """As Kubernetes judges the same fields of a pod."""
    term, preferred = subset.get("requiredNodeSelector"), subset.get("preferredNodeSelector")
    if term:
        path = where.child("requiredNodeSelector")
        found = values.normalise(term, "core.NodeSelectorTerm", path=path)
        yield from scheduling.node_term(path, found, check_values=True)
    for position, item in enumerate(preferred or ()):
        path = where.child("preferredNodeSelector").at(position)
        found = values.normalise(item, "core.PreferredSchedulingTerm", path=path)
        if not 1 <= found["weight"] <= 100:
            yield invalid(path.child("weight"), found["weight"], "must be in the range 1-100")
        yield from scheduling.node_term(path.child("preference"), found["preference"], check_values=False)
    path = where.child("tolerations")
    given = [
        values.normalise(item, "core.Toleration", path=path.at(position))
        for position, item in enumerate(subset.get("tolerations") or ())
    ]
    yield from scheduling.tolerations(path, given)


def _sizes(spec: WorkloadSpreadSpec) -> Errors:
    """WS-12."""
    is_text: bool | None = None
    total, first = 0, None
    for position, subset in enumerate(spec.subsets):
        size = subset.max_replicas
        if size is None:
            continue
        where = SUBSETS.at(position).child("maxReplicas")
        if spec.target_ref.kind == STATEFUL_SET and not isinstance(size, int):
            yield invalid(where, size, "the maxReplicas type must be Int for StatefulSet")
            continue
        if not _is_size(size):
            words = 'maxReplicas is not valid for subset: use a number that is not negative, or a percentage like "30%"'
            yield invalid(where, size, words)
            continue
        if is_text is not None and isinstance(size, str) != is_text:
            words = "the maxReplicas type of all subsets must be the same: numbers, or percentages"
            yield invalid(where, size, words)
        is_text = isinstance(size, str)
        if isinstance(size, str) and size.endswith("%"):
            first = first or (where, size)
            total += intorpercent.percentage(size)
            if total > 100:
                yield invalid(where, size, "the sum of all subset's maxReplicas exceeds 100% is no permitted")
    last = spec.subsets[-1].max_replicas if spec.subsets else None
    if first is not None and last is not None and total < 100:
        words = (
            "maxReplicas sum of all subsets must equal 100% when type is specified as percent: raise it, or leave "
            "maxReplicas of the last subset out"
        )
        yield invalid(*first, words)


def _is_size(size: int | str) -> bool:
    if isinstance(size, str) and size.isascii() and size.isdigit():
        return len(size) < 10
    return not intorpercent.problems(size)


def _strategy(spec: WorkloadSpreadSpec) -> Errors:
    """WS-13."""
    strategy = spec.schedule_strategy
    if strategy.type not in SCHEDULE_TYPES:
        yield not_supported(STRATEGY.child("type"), strategy.type, SCHEDULE_TYPES)
    if strategy.adaptive is None:
        return
    if strategy.type != ADAPTIVE:
        words = "the scheduleStrategy's type must be adaptive when using adaptive scheduleStrategy"
        yield invalid(STRATEGY.child("type"), strategy.type, words)
    adaptive, number = STRATEGY.child("adaptive"), len(spec.subsets)
    if number > 1 and spec.subsets[-1].max_replicas is not None:
        words = "the last subset's maxReplicas must be not specified when using adaptive scheduleStrategy"
        yield invalid(adaptive, spec.subsets[-1].max_replicas, words)
    seconds = strategy.adaptive.reschedule_critical_seconds
    if seconds is None:
        return
    most = _LONGEST // (number - 1) if number > 1 else None
    if seconds < 0 or (most is not None and seconds > most):
        words = f"rescheduleCriticalSeconds < 0 or rescheduleCriticalSeconds > {most} is not permitted"
        if most is None:
            words = "rescheduleCriticalSeconds < 0 is not permitted"
        yield invalid(adaptive.child("rescheduleCriticalSeconds"), seconds, words)


def _filter(spec: WorkloadSpreadSpec) -> Errors:
    """WS-14."""
    selector = spec.target_filter.selector if spec.target_filter is not None else None
    if selector is None:
        return
    where = SPEC.child("targetFilter", "selector")
    found = list(common.label_selector(where, codec.to_builtins(selector)))
    yield from found
    if not found:
        try:
            from_label_selector(selector)
        except SelectorError as error:
            yield invalid(where, codec.to_builtins(selector), str(error))


# Patches


def patch_problems(subset: Subset, position: int, template: Any, claims: tuple[str, ...]) -> Errors:
    """WS-15: the pods of the target must be fit with the patch."""
    where = SUBSETS.at(position).child("patch")
    document = codec.decode(template, object)
    try:
        changed = patched(document if isinstance(document, dict) else {}, subset.patch)
        wanted = default_template(changed, path=where)
        found = list(validate_pod_template(wanted, where, restart_policies=_ANY_POLICY, claim_volumes=claims))
    except UnfitPatchError as error:
        yield invalid(where, codec.decode(subset.patch, object), str(error))
    except TemplateTypeError as error:
        yield error.error
    else:
        yield from found


_ANY_POLICY = ("Always", "OnFailure", "Never")
