"""What no budget may be or become (PUB section 6). Every refusal has code 400."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kruise.admission.decisions import Allow, Deny, HandlerView, Verdict
from kruise.admission.review import AdmissionRequest
from kruise.api.core import values
from kruise.api.core.field_errors import FieldError, Path, TemplateTypeError, describe, forbidden, invalid, required
from kruise.api.core.validation import common
from kruise.api.meta import LabelSelector, LabelSelectorRequirement
from kruise.api.native.nodes import KUBE_SYSTEM
from kruise.api.policy.conversion.podunavailablebudget import convert, replicas_in
from kruise.api.policy.podunavailablebudget import (
    OPERATIONS,
    POD_UNAVAILABLE_BUDGETS,
    PROTECT_OPERATIONS,
    PROTECT_TOTAL_REPLICAS,
    PodUnavailableBudget,
    PodUnavailableBudgetSpec,
)
from kruise.api.policy.shared import GROUP
from kruise.api.versions import NEWER
from kruise.machinery import codec
from kruise.machinery.client.errors import StatusCause
from kruise.machinery.intorpercent import problems as number_problems
from kruise.machinery.store import Store
from kruise.protection.podunavailablebudget import keys
from kruise.protection.podunavailablebudget.workloads import KINDS, SCALED, group_of

PATH = f"/validate-{GROUP.replace('.', '-')}-podunavailablebudget"

Json = Mapping[str, Any]
Errors = Iterator[FieldError]

_SPEC = Path("spec")
_ANNOTATIONS = Path("metadata").child("annotations")
_WHICH = Path("spec.selector, targetRef")
_HOW_MANY = Path("spec.maxUnavailable, minAvailable")
_KIND = "PodUnavailableBudget"


def judge(request: AdmissionRequest, view: HandlerView) -> Verdict:
    if request.operation not in ("CREATE", "UPDATE") or request.sub_resource:
        return Allow()
    if not keys.is_guarding(view.gates):
        text = (
            f"feature-gate {keys.DELETE_GATE} and {keys.UPDATE_GATE} are both off, so a budget would guard nothing: "
            "switch one of them on (--feature-gates of the manager)"
        )
        return _refused((forbidden(Path("spec"), text),))
    body = convert(request.body(), NEWER)
    old = convert(request.old_body(), NEWER) if request.has_old_object else None
    if old is not None and _is_unchanged(body, old):
        return Allow()  # an object from before stays usable: finalizers and labels can be changed
    try:
        spec = codec.convert(body.get("spec") or {}, PodUnavailableBudgetSpec)
    except codec.DecodeError as error:
        return _refused((invalid(_SPEC, body.get("spec"), str(error)),))
    name = str((body.get("metadata") or {}).get("name") or request.name or "")
    try:
        found = [*_annotations(body, spec), *_problems(body, spec), *_changes(body, old)]
        if not found:
            others = view.store(POD_UNAVAILABLE_BUDGETS)
            found += _conflicts(spec, body, name, request.namespace or "", others)
    except TemplateTypeError as error:
        return _refused((error.error,))
    if found:
        return _refused(found)
    return Allow(warnings=(*_of_annotations(body), *_warnings(request, spec, view.gates)))


def _is_unchanged(body: Json, old: Json) -> bool:
    def judged(obj: Json) -> tuple[Any, ...]:
        known = (obj.get("metadata") or {}).get("annotations") or {}
        return obj.get("spec"), known.get(PROTECT_OPERATIONS), known.get(PROTECT_TOTAL_REPLICAS)

    return judged(body) == judged(old)


def _refused(errors: Iterable[FieldError]) -> Deny:
    found = tuple(errors)
    causes = tuple(StatusCause(reason=error.type, message=error.message, field=str(error.path)) for error in found)
    return Deny(message=describe(found), code=400, reason="BadRequest", causes=causes)


def _annotations(body: Json, spec: PodUnavailableBudgetSpec) -> Errors:
    """PUB-17 and the other annotation, which takes no blanks."""
    known = (body.get("metadata") or {}).get("annotations") or {}
    operations, total = known.get(PROTECT_OPERATIONS), known.get(PROTECT_TOTAL_REPLICAS)
    if operations is not None and not all(item in OPERATIONS for item in str(operations).split(",")):
        yield invalid(
            _ANNOTATIONS.key(PROTECT_OPERATIONS),
            operations,
            f"annotation[{PROTECT_OPERATIONS}] is invalid: list some of {', '.join(OPERATIONS)}, "
            "with commas and without blanks, or leave it out",
        )
    if total is None:
        return
    where = _ANNOTATIONS.key(PROTECT_TOTAL_REPLICAS)
    if replicas_in(str(total)) is None:
        text = f"annotation[{PROTECT_TOTAL_REPLICAS}] is invalid: it must be an integer of 32 bits"
        yield invalid(where, total, text)
    elif spec.protect_total_replicas is not None and str(total) != str(spec.protect_total_replicas):
        text = (
            f"must be {spec.protect_total_replicas}, as spec.protectTotalReplicas says: change both, or drop this one"
        )
        yield invalid(where, total, text)


def _problems(body: Json, spec: PodUnavailableBudgetSpec) -> Errors:
    given = body.get("spec") or {}
    if spec.selector is None and spec.target_ref is None:
        yield required(_WHICH, f"no selector or targetRef defined in {_KIND}")
    elif spec.selector is not None and spec.target_ref is not None:
        yield required(_WHICH, "selector and targetRef are mutually exclusive")
    elif spec.target_ref is not None:
        yield from _target(given.get("targetRef"), spec)
    else:
        yield from _selector(_SPEC.child("selector"), given.get("selector"))
    if spec.max_unavailable is None and spec.min_available is None:
        yield required(_HOW_MANY, f"no maxUnavailable or minAvailable defined in {_KIND}")
    elif spec.max_unavailable is not None and spec.min_available is not None:
        yield required(_HOW_MANY, "maxUnavailable and minAvailable are mutually exclusive")
    for name, value in (("maxUnavailable", spec.max_unavailable), ("minAvailable", spec.min_available)):
        for text in number_problems(value, at_most_100_percent=True) if value is not None else ():
            yield invalid(_SPEC.child(name), value, text)
    for position, item in enumerate(spec.protect_operations):
        if item not in OPERATIONS:
            yield invalid(
                _SPEC.child("protectOperations").at(position), item, f"must be one of {', '.join(OPERATIONS)}"
            )
    if spec.protect_total_replicas is not None and spec.protect_total_replicas < 1:
        yield invalid(_SPEC.child("protectTotalReplicas"), spec.protect_total_replicas, "must be at least 1")
    if spec.ignored_pod_selector is not None:
        yield from _selector(_SPEC.child("ignoredPodSelector"), given.get("ignoredPodSelector"))


def _target(given: Any, spec: PodUnavailableBudgetSpec) -> Errors:
    reference = spec.target_ref
    where = _SPEC.child("targetRef")
    if reference is None:
        return
    if not (reference.api_version and reference.kind and reference.name):
        lacking = [name for name in ("apiVersion", "kind", "name") if not (given or {}).get(name)]
        text = f"empty TargetReference is not valid for {_KIND}: {', '.join(lacking)} must be set"
        yield invalid(where, given, text)
    elif reference.api_version.count("/") > 1:
        yield invalid(where, given, f"unexpected GroupVersion string: {reference.api_version}")


def _selector(where: Path, given: Any) -> Errors:
    selector = values.normalise(given or {}, "meta.LabelSelector", path=where)
    found = list(common.label_selector(where, selector))
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        text = f"empty selector is not valid for {_KIND}: it would take every pod of the namespace"
        found.append(invalid(where, given or {}, text))
    yield from found


def _changes(body: Json, old: Json | None) -> Errors:
    """PUB-18."""
    if old is None:
        return
    new_spec, old_spec = body.get("spec") or {}, old.get("spec") or {}
    for name in ("selector", "targetRef"):
        if not _same(new_spec.get(name), old_spec.get(name)):
            yield invalid(
                _SPEC.child(name),
                new_spec.get(name),
                "selector and targetRef cannot be modified: delete the budget, and create it anew",
            )


def _same(new: Any, old: Any) -> bool:
    return bool(new == old) or (not new and not old)


# Budgets side by side


def _conflicts(
    spec: PodUnavailableBudgetSpec, body: Json, name: str, namespace: str, others: Store[PodUnavailableBudget]
) -> Errors:
    """PUB-19."""
    given = body.get("spec") or {}
    for other in others.list(namespace):
        if other.metadata.name == name:
            continue
        if spec.target_ref is not None and other.spec.target_ref is not None:
            if _identity(spec) == _identity(other.spec):
                text = f"pub.spec.targetRef is in conflict with other {_KIND} {other.metadata.name}"
                yield invalid(_SPEC.child("targetRef"), given.get("targetRef"), text)
                return
        elif (
            spec.selector is not None
            and other.spec.selector is not None
            and other.spec.target_ref is None
            and overlap(spec.selector, other.spec.selector)
        ):
            text = f"pub.spec.selector is in conflict with other {_KIND} {other.metadata.name}"
            yield invalid(_SPEC.child("selector"), given.get("selector"), text)
            return


def _identity(spec: PodUnavailableBudgetSpec) -> tuple[str, str, str]:
    reference = spec.target_ref
    return (group_of(reference.api_version), reference.kind, reference.name) if reference is not None else ("", "", "")


def overlap(one: LabelSelector, other: LabelSelector) -> bool:
    """PUB-20: loosely. Only selectors over the same keys are compared."""
    left, right = _by_key(one), _by_key(other)
    return left.keys() == right.keys() and all(_agree(left[key], right[key]) for key in left)


def _by_key(selector: LabelSelector) -> dict[str, LabelSelectorRequirement]:
    found = {item.key: item for item in selector.match_expressions}
    for key, value in selector.match_labels.items():
        found[key] = LabelSelectorRequirement(key=key, operator="In", values=(value,))
    return found


def _agree(one: LabelSelectorRequirement, other: LabelSelectorRequirement) -> bool:
    left, right = set(one.values), set(other.values)
    match one.operator, other.operator:
        case "In", "In":
            return bool(left & right)
        case "In", "NotIn":
            return not left <= right
        case "NotIn", "In":
            return not right <= left
        case ("In" | "Exists", "DoesNotExist") | ("DoesNotExist", "In" | "Exists"):
            return False
    return True


# Not wrong, but worth a word


def _of_annotations(body: Json) -> Iterator[str]:
    """The field refuses what the annotation of v1alpha1 has always been allowed to say."""
    known = (body.get("metadata") or {}).get("annotations") or {}
    total = replicas_in(str(known.get(PROTECT_TOTAL_REPLICAS, "")))
    if total is not None and total < 1:
        yield (
            f"annotation {PROTECT_TOTAL_REPLICAS}: {total} does not count, since there must be at least 1: the "
            "workloads of the pods are asked"
        )


def _warnings(request: AdmissionRequest, spec: PodUnavailableBudgetSpec, gates: Mapping[str, bool]) -> Iterator[str]:
    if request.namespace == KUBE_SYSTEM:
        yield f"nobody is asked about pods in {KUBE_SYSTEM}: use a PodDisruptionBudget, which holds back evictions"
    reference = spec.target_ref
    if (
        reference is not None
        and (group_of(reference.api_version), reference.kind) not in SCALED.union(KINDS)
        and spec.protect_total_replicas is None
        and not isinstance(spec.min_available, int)
    ):
        yield (
            f"spec.targetRef: a {reference.kind} is asked by its scale subresource how many pods it should have; if it"
            " has none, nothing is refused: set spec.protectTotalReplicas then"
        )
    if not gates.get(keys.UPDATE_GATE, False) and "UPDATE" in (spec.protect_operations or ("UPDATE",)):
        yield (
            f"spec.protectOperations: updates in place are not guarded, since the gate {keys.UPDATE_GATE} of the"
            " manager is off; deletions and evictions are"
        )
    if not gates.get(keys.DELETE_GATE, False):
        yield f"deletions and evictions are not guarded: the gate {keys.DELETE_GATE} of the manager is off"
    if spec.max_unavailable in (0, "0%") or spec.min_available == "100%":
        yield f"no pod may ever be made unavailable: a drain waits until a pod has annotation {keys.NO_PROTECT}=true"
