"""What a CloneSet may not be, and may not become (CS-40 to CS-51), in both versions. Pure.

The parts are checked one by one, so an author sees everything that is wrong at once. On an update, parts that did not
change are not judged again: what was once accepted, by us or by an older release, never stands in the way of a change
somewhere else.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kruise.api.apps.shared import IN_PLACE_ONLY, ON_DELETE, POD_UPDATE_POLICIES
from kruise.api.core import formats, schema, values
from kruise.api.core.defaults import default_template
from kruise.api.core.field_errors import FieldError, Path, TemplateTypeError, forbidden, invalid, required
from kruise.api.core.validation import common, metadata, validate_pod_template
from kruise.inplace import order_rules
from kruise.inplace.difference import Operation, operations
from kruise.machinery.intorpercent import IntOrPercent, IntOrPercentError, scaled_fraction
from kruise.machinery.patches import json_patch
from kruise.machinery.revisions import template_labels
from kruise.machinery.selectors import SelectorError, from_label_selector
from kruise.machinery.wording import listed
from kruise.workloads.cloneset.numbers import DEFAULT_MAX_UNAVAILABLE
from kruise.workloads.cloneset.progress import NO_DEADLINE
from kruise.workloads.cloneset.wire import SPEC, STRATEGY, Reading, annotations_in
from kruise.workloads.shared import failure_budget

Json = Mapping[str, Any]
Errors = Iterator[FieldError]

FLAT_TYPES = (*POD_UPDATE_POLICIES, ON_DELETE)
NESTED_TYPES = ("RollingUpdate", ON_DELETE)
PODS_TO_DELETE = SPEC.child("scaleStrategy", "podsToDelete")

_META = Path("metadata")
_SELECTOR = SPEC.child("selector")
_TEMPLATE = SPEC.child("template")
_DEADLINE = SPEC.child("progressDeadlineSeconds")
_MUTABLE = (
    "replicas",
    "template",
    "lifecycle",
    "scaleStrategy",
    "updateStrategy",
    "minReadySeconds",
    "progressDeadlineSeconds",
    "volumeClaimTemplates",
    "revisionHistoryLimit",
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An object that is judged: as it was sent, and its spec as admission reads it."""

    body: Json
    reading: Reading
    namespace: str = ""
    """Of the request, for objects that do not say it themselves."""

    @property
    def spec(self) -> Json:
        return self.body.get("spec") or {}

    @property
    def annotations(self) -> Mapping[str, str]:
        return annotations_in(self.body)

    @property
    def template(self) -> Any:
        return self.spec.get("template")

    @property
    def claim_names(self) -> tuple[str, ...]:
        claims: Sequence[Any] = self.spec.get("volumeClaimTemplates") or ()
        metas = (claim.get("metadata") if isinstance(claim, Mapping) else None for claim in claims)
        return tuple(str(meta.get("name", "")) if isinstance(meta, Mapping) else "" for meta in metas)


def problems(new: Candidate, old: Candidate | None = None, *, allow_privileged: bool = True) -> tuple[FieldError, ...]:
    """Everything that is wrong with a new CloneSet, or with the change of one."""
    try:
        found = [*_metadata(new, old), *_failure_budget(new, old)]
        if old is None or new.spec != old.spec:
            found.extend(_spec(new, old, allow_privileged=allow_privileged))
    except TemplateTypeError as error:
        return (error.error,)
    return tuple({str(error): error for error in found}.values())


def _metadata(new: Candidate, old: Candidate | None) -> Errors:
    meta = _object_meta(new)
    if old is not None:
        yield from metadata.object_meta_update(_META, meta, _object_meta(old))
        return
    is_named_later = bool(meta.get("generateName")) and not meta.get("name")
    for error in metadata.object_meta(_META, meta, name=formats.dns_subdomain):
        if not (is_named_later and error.path == _META.child("name")):
            yield error


def _failure_budget(new: Candidate, old: Candidate | None) -> Errors:
    """A budget that nobody understands would protect nobody. One that was there before stays editable around."""
    value = new.annotations.get(failure_budget.ANNOTATION)
    if value is None or (old is not None and old.annotations.get(failure_budget.ANNOTATION) == value):
        return
    try:
        failure_budget.parse(value)
    except failure_budget.BudgetError as error:
        yield invalid(_META.child("annotations").key(failure_budget.ANNOTATION), value, str(error))


def _object_meta(candidate: Candidate) -> values.Value:
    meta = values.normalise(candidate.body.get("metadata"), "meta.ObjectMeta", path=_META)
    return {**meta, "namespace": meta.get("namespace") or candidate.namespace}


def _spec(new: Candidate, old: Candidate | None, *, allow_privileged: bool) -> Errors:
    reading = new.reading
    yield from common.non_negative(SPEC.child("replicas"), reading.replicas)
    yield from _selector_and_labels(new)
    if old is None or (new.template, new.claim_names) != (old.template, old.claim_names):
        yield from _template(new, allow_privileged=allow_privileged)
    if old is None or _strategy_terms(new) != _strategy_terms(old):
        yield from _strategy(reading)
    if old is None or reading.scale != old.reading.scale:
        yield from _doubles(reading.scale.pods_to_delete)
    if reading.is_v1alpha1 and (old is None or _deadline_terms(reading) != _deadline_terms(old.reading)):
        yield from _deadline(reading)
    if old is not None:
        yield from _immutable(new.spec, old.spec)
        if reading.is_v1alpha1 and reading.type == IN_PLACE_ONLY:
            yield from _images_only(new.template, old.template)


# Selector and template


def _selector_and_labels(candidate: Candidate) -> Errors:
    given = candidate.spec.get("selector")
    if given is None:
        yield required(_SELECTOR, "name the labels of the pods that this CloneSet manages")
        return
    selector = values.normalise(given, "meta.LabelSelector", path=_SELECTOR)
    found = list(common.label_selector(_SELECTOR, selector))
    if not selector:
        found.append(invalid(_SELECTOR, given, "empty selector is invalid for cloneset"))
    yield from found
    if found:
        return
    labels = template_labels(candidate.template)
    try:
        is_match = from_label_selector(selector).matches(labels)
    except SelectorError as error:
        yield invalid(_SELECTOR, given, str(error))
        return
    if not is_match:
        where = _TEMPLATE.child("metadata", "labels")
        yield invalid(where, dict(labels), "`selector` does not match template `labels`")


def _template(candidate: Candidate, *, allow_privileged: bool) -> Errors:
    """CS-42. Judged with the API server's own defaults, as the pods will be: ours leave some to it, and the gate
    TemplateNoDefaults leaves it all."""
    template = default_template(candidate.template, path=_TEMPLATE)
    for position, name in enumerate(candidate.claim_names):
        if not name:
            yield required(SPEC.child("volumeClaimTemplates").at(position).child("metadata", "name"))
    yield from validate_pod_template(
        template,
        _TEMPLATE,
        restart_policies=("Always",),
        claim_volumes=filter(None, candidate.claim_names),
        allow_privileged=allow_privileged,
    )
    if template["spec"].get("activeDeadlineSeconds") is not None:
        where = _TEMPLATE.child("spec", "activeDeadlineSeconds")
        yield forbidden(
            where, "activeDeadlineSeconds in cloneset is not supported: its pods run until they are deleted"
        )


# The update strategy


def _strategy_terms(candidate: Candidate) -> tuple[Any, ...]:
    """What the judgement of a strategy depends on."""
    reading = candidate.reading
    return (reading.type, reading.policy, reading.rollout, reading.replicas)


def _strategy(reading: Reading) -> Errors:
    supported = FLAT_TYPES if reading.is_v1alpha1 else NESTED_TYPES
    if reading.type and reading.type not in supported:
        yield invalid(STRATEGY.child("type"), reading.type, f"must be {_listed(supported)}")
    rollout, path = reading.rollout, reading.rollout_path
    if rollout is None:
        return
    if not reading.is_v1alpha1:
        if reading.policy and reading.policy not in POD_UPDATE_POLICIES:
            yield invalid(path.child("podUpdatePolicy"), reading.policy, f"must be {_listed(POD_UPDATE_POLICIES)}")
        yield from _pre_download(reading)
    yield from _amounts(reading)
    yield from order_rules.priority(path.child("priorityStrategy"), rollout.priority_strategy)
    yield from order_rules.scatter(path.child("scatterStrategy"), rollout.scatter_strategy)


def _listed(words: Sequence[str], conjunction: str = "or") -> str:
    quoted = [f"'{word}'" for word in words]
    return f"{', '.join(quoted[:-1])} {conjunction} {quoted[-1]}"


def _amounts(reading: Reading) -> Errors:
    """CS-44 and CS-45. What cannot be read is one complaint, not the start of several."""
    rollout, path = reading.rollout, reading.rollout_path
    if rollout is None:
        return
    names = {"partition": rollout.partition, "maxUnavailable": rollout.max_unavailable, "maxSurge": rollout.max_surge}
    numbers: dict[str, int] = {}
    for name, value in names.items():
        try:
            numbers[name] = _pods(value, name, reading.replicas)
        except IntOrPercentError:
            yield invalid(path.child(name), value, 'must be an integer or a percentage, such as 2, "20%" or "0.5%"')
    if _is_negative(rollout.partition, numbers.get("partition", 0)):
        yield invalid(path.child("partition"), rollout.partition, common.NEGATIVE)
    surge = numbers.get("maxSurge", 0)
    if surge > 0 and reading.policy == IN_PLACE_ONLY:
        complaint = "can not use maxSurge with strategy type InPlaceOnly: pods in place need no others beside them"
        yield invalid(path.child("maxSurge"), rollout.max_surge, complaint)
    if reading.replicas > 0 and len(numbers) == len(names) and numbers["maxUnavailable"] < 1 and surge < 1:
        shown = DEFAULT_MAX_UNAVAILABLE if rollout.max_unavailable is None else rollout.max_unavailable
        complaint = "maxUnavailable and maxSurge should not both be less than 1: no pod could be updated"
        yield invalid(path.child("maxUnavailable"), shown, complaint)


def _pods(value: IntOrPercent | None, name: str, replicas: int) -> int:
    """How many pods are meant, percentages rounded up."""
    if value is None:
        value = DEFAULT_MAX_UNAVAILABLE if name == "maxUnavailable" else 0
    return scaled_fraction(value, max(replicas, 0), round_up=True)


def _is_negative(value: IntOrPercent | None, number: int) -> bool:
    # A small negative percentage rounds up to no pod at all.
    return number < 0 or (isinstance(value, str) and value.startswith("-"))


def _pre_download(reading: Reading) -> Errors:
    """CS-49. In v1alpha1 these are annotations, and the fields have no effect."""
    in_place = reading.rollout.in_place_update_strategy if reading.rollout is not None else None
    if in_place is None:
        return
    path = reading.rollout_path.child("inPlaceUpdateStrategy")
    parallelism = in_place.image_pre_download_parallelism
    is_number = isinstance(parallelism, int) or (isinstance(parallelism, str) and _is_digits(parallelism))
    if parallelism is not None and (not is_number or int(parallelism) < 0):
        where = path.child("imagePreDownloadParallelism")
        yield invalid(where, parallelism, "must be a non-negative integer, as a number or a string; no percentage")
    yield from _non_negative(path, "imagePreDownloadTimeoutSeconds", in_place.image_pre_download_timeout_seconds)
    minimum = in_place.image_pre_download_min_updated_ready_pods
    yield from _non_negative(path, "imagePreDownloadMinUpdatedReadyPods", minimum)


def _is_digits(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= len(str(formats.MAX_INT32))


def _non_negative(path: Path, name: str, value: int | None) -> Errors:
    if value is not None:
        yield from common.non_negative(path.child(name), value)


# The rest


def _doubles(names: Sequence[str]) -> Errors:
    doubled = [name for name, times in Counter(names).items() if times > 1]
    if doubled:
        yield invalid(PODS_TO_DELETE, list(names), f"duplicated items [{', '.join(doubled)}]")


def _deadline_terms(reading: Reading) -> tuple[int | None, int]:
    return (reading.progress_deadline_seconds, reading.min_ready_seconds)


def _deadline(reading: Reading) -> Errors:
    """CS-48, v1alpha1 only."""
    deadline = reading.progress_deadline_seconds
    if deadline is None:
        return
    yield from common.non_negative(_DEADLINE, deadline)
    if deadline != NO_DEADLINE and deadline <= reading.min_ready_seconds:
        yield invalid(_DEADLINE, deadline, "must be greater than minReadySeconds")


def _immutable(new: Json, old: Json) -> Errors:
    changed = [
        name
        for name in dict.fromkeys((*old, *new))
        if name not in _MUTABLE and not _is_same(name, new.get(name), old.get(name))
    ]
    if changed:
        allowed, others = _listed(_MUTABLE, "and"), ", ".join(changed)
        yield forbidden(
            SPEC, f"updates to cloneset spec for fields other than {allowed} are forbidden, but found {others}"
        )


def _is_same(name: str, new: Any, old: Any) -> bool:
    if new == old:
        return True
    return name == "selector" and values.equal(new, old, "meta.LabelSelector")


def _images_only(new: Any, old: Any) -> Errors:
    """CS-50: what can only be done in place must be possible in place."""
    try:
        before, after = (values.normalise(one, schema.POD_TEMPLATE_SPEC)["spec"] for one in (old, new))
    except TemplateTypeError:
        # The new template's own complaint; a stored one that cannot be read has nothing to be compared with.
        return
    others = [
        f"{operation.kind} {json_patch.pointer(*operation.path)}"
        for operation in operations(before, after)
        if not _is_image_change(operation)
    ]
    if others:
        yield forbidden(SPEC, f"only allowed to update images in spec for InPlaceOnly, but found {listed(others)}")


def _is_image_change(operation: Operation) -> bool:
    match operation:
        case ("replace", ("containers", int(_), "image"), _):
            return True
    return False
