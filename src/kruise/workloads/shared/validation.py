"""What no workload may be or become: metadata, selector, template, immutable fields, settings that several have. Pure.

The parts are checked one by one, so an author sees everything that is wrong at once. On an update, parts that did not
change are not judged again: what was once accepted, by us or by an older release, never stands in the way of a change
somewhere else.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from kruise.api.apps.shared import InPlaceUpdateStrategy
from kruise.api.core import formats, schema, values
from kruise.api.core.defaults import default_template
from kruise.api.core.field_errors import FieldError, Path, TemplateTypeError, forbidden, invalid, required
from kruise.api.core.validation import common, metadata, validate_pod_template
from kruise.inplace.difference import Operation, operations
from kruise.machinery.patches import json_patch
from kruise.machinery.revisions import template_labels
from kruise.machinery.selectors import SelectorError, from_label_selector
from kruise.machinery.wording import listed
from kruise.workloads.shared import failure_budget
from kruise.workloads.shared.wire import CLAIM_TEMPLATES, META, SELECTOR, SPEC, TEMPLATE, annotations_in

Json = Mapping[str, Any]
Errors = Iterator[FieldError]
R_co = TypeVar("R_co", covariant=True)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Candidate(Generic[R_co]):
    """An object that is judged: as plain JSON, and its spec as admission reads it."""

    body: Json
    reading: R_co
    namespace: str = ""
    """Of the request, for objects that do not say it themselves."""
    version: str = ""
    """In which it was sent."""

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


C = TypeVar("C", bound=Candidate[Any])


def problems(
    new: C,
    old: C | None,
    spec: Callable[[C, C | None], Errors],
    *,
    name: Callable[[str], list[str]],
    is_namespaced: bool = True,
) -> tuple[FieldError, ...]:
    """Everything that is wrong with a new object, or with the change of one. `spec` judges its own part, `name` its
    name."""
    try:
        found = [*_metadata(new, old, name, is_namespaced), *_failure_budget(new, old)]
        if old is None or new.spec != old.spec:
            found.extend(spec(new, old))
    except TemplateTypeError as error:
        return (error.error,)
    return tuple({str(error): error for error in found}.values())


def _metadata(
    new: Candidate[Any], old: Candidate[Any] | None, name: Callable[[str], list[str]], is_namespaced: bool
) -> Errors:
    meta = _object_meta(new)
    if old is not None:
        yield from metadata.object_meta_update(META, meta, _object_meta(old))
        return
    is_named_later = bool(meta.get("generateName")) and not meta.get("name")
    for error in metadata.object_meta(META, meta, name=name, namespaced=is_namespaced):
        if not (is_named_later and error.path == META.child("name")):
            yield error


def _object_meta(candidate: Candidate[Any]) -> values.Value:
    meta = values.normalise(candidate.body.get("metadata"), "meta.ObjectMeta", path=META)
    return {**meta, "namespace": meta.get("namespace") or candidate.namespace}


def _failure_budget(new: Candidate[Any], old: Candidate[Any] | None) -> Errors:
    """A budget that nobody understands would protect nobody. One that was there before stays editable around."""
    value = new.annotations.get(failure_budget.ANNOTATION)
    if value is None or (old is not None and old.annotations.get(failure_budget.ANNOTATION) == value):
        return
    try:
        failure_budget.parse(value)
    except failure_budget.BudgetError as error:
        yield invalid(META.child("annotations").key(failure_budget.ANNOTATION), value, str(error))


# Selector and template


def selector_and_labels(candidate: Candidate[Any], kind: str) -> Errors:
    given = candidate.spec.get("selector")
    if given is None:
        yield required(SELECTOR, f"name the labels of the pods that this {kind} manages")
        return
    selector = values.normalise(given, "meta.LabelSelector", path=SELECTOR)
    found = list(common.label_selector(SELECTOR, selector))
    if not selector:
        found.append(invalid(SELECTOR, given, f"empty selector is invalid for {kind.lower()}"))
    yield from found
    if found:
        return
    labels = template_labels(candidate.template)
    try:
        is_match = from_label_selector(selector).matches(labels)
    except SelectorError as error:
        yield invalid(SELECTOR, given, str(error))
        return
    if not is_match:
        where = TEMPLATE.child("metadata", "labels")
        yield invalid(where, dict(labels), "`selector` does not match template `labels`")


def template(
    candidate: Candidate[Any], kind: str, *, allow_privileged: bool, claim_volumes: Iterable[str] = ()
) -> Errors:
    """Judged with the API server's own defaults, as the pods will be: ours leave some to it, and the gate
    TemplateNoDefaults leaves it all. `claim_volumes` are those that pods get beside the template's own."""
    wanted = default_template(candidate.template, path=TEMPLATE)
    for position, name in enumerate(candidate.claim_names):
        if not name:
            yield required(CLAIM_TEMPLATES.at(position).child("metadata", "name"))
    yield from validate_pod_template(
        wanted,
        TEMPLATE,
        restart_policies=("Always",),
        claim_volumes=filter(None, claim_volumes),
        allow_privileged=allow_privileged,
    )
    if wanted["spec"].get("activeDeadlineSeconds") is not None:
        yield forbidden(
            TEMPLATE.child("spec", "activeDeadlineSeconds"),
            f"activeDeadlineSeconds in {kind.lower()} is not supported: its pods run until they are deleted",
        )


def images_only(new: Any, old: Any) -> Errors:
    """What can only be done in place must be possible in place (CS-50, ST-32)."""
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


# Single fields


def quoted(words: Sequence[str], conjunction: str = "or") -> str:
    marked = [f"'{word}'" for word in words]
    return f"{', '.join(marked[:-1])} {conjunction} {marked[-1]}"


def not_negative(path: Path, name: str, value: int | None) -> Errors:
    if value is not None:
        yield from common.non_negative(path.child(name), value)


def immutable(new: Json, old: Json, kind: str, mutable: Sequence[str]) -> Errors:
    changed = [
        name
        for name in dict.fromkeys((*old, *new))
        if name not in mutable and not _is_same(name, new.get(name), old.get(name))
    ]
    if changed:
        allowed, others = quoted(mutable, "and"), ", ".join(changed)
        yield forbidden(
            SPEC, f"updates to {kind.lower()} spec for fields other than {allowed} are forbidden, but found {others}"
        )


def _is_same(name: str, new: Any, old: Any) -> bool:
    if new == old:
        return True
    return name == "selector" and values.equal(new, old, "meta.LabelSelector")


def pre_download(path: Path, in_place: InPlaceUpdateStrategy | None) -> Errors:
    """CS-49. Below `path` is the in-place strategy."""
    if in_place is None:
        return
    path = path.child("inPlaceUpdateStrategy")
    parallelism = in_place.image_pre_download_parallelism
    is_number = isinstance(parallelism, int) or (isinstance(parallelism, str) and _is_digits(parallelism))
    if parallelism is not None and (not is_number or int(parallelism) < 0):
        where = path.child("imagePreDownloadParallelism")
        yield invalid(where, parallelism, "must be a non-negative integer, as a number or a string; no percentage")
    yield from not_negative(path, "imagePreDownloadTimeoutSeconds", in_place.image_pre_download_timeout_seconds)
    minimum = in_place.image_pre_download_min_updated_ready_pods
    yield from not_negative(path, "imagePreDownloadMinUpdatedReadyPods", minimum)


def _is_digits(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= len(str(formats.MAX_INT32))
