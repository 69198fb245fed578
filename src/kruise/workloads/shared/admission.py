"""Admission of workloads: defaults on the way in, judgement of what results, protection from deletion.

A kind says how it is read, what it gets by default, what is worth a warning and what is wrong; the rest is the same for
all. What only the newer version has fields for is kept in an annotation of the older one (`kruise.api.versions`): an
update that leaves the annotation out, as one does that replaces an object, does not take these fields away.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, Protocol, TypeVar

from kruise.admission.decisions import Allow, Change, Deny, HandlerView, Mutation, NeedsReads, Verdict, verdict_of
from kruise.admission.registry import Handler, MutatingHandler, ValidatingHandler
from kruise.admission.review import AdmissionRequest
from kruise.api.core.field_errors import FieldError, TemplateTypeError, forbidden, invalid
from kruise.api.resource import Resource
from kruise.api.versions import KEPT, NEWER, OLDER, KeptError, TwoVersions, annotation_of, read_kept, with_annotations
from kruise.feature import Conversion, Settings
from kruise.machinery import codec
from kruise.machinery.client.errors import StatusCause
from kruise.machinery.codec import Raw
from kruise.machinery.watched import Kinds
from kruise.protection.deletion.rules import advice, idle, judge_workload
from kruise.workloads.shared.validation import Candidate
from kruise.workloads.shared.wire import META, MisfitError, annotations_in, read_spec

R = TypeVar("R")
Json = Mapping[str, Any]
_KEPT_PATH = META.child("annotations").key(KEPT)


def _nothing(gates: Mapping[str, bool]) -> Kinds:
    return ()


class Defaulted(Protocol):
    def __call__(
        self, body: Json, /, *, version: str, gates: Mapping[str, bool], old: Json | None = None
    ) -> dict[str, Any]:
        """An object with its defaults; `old` is what it replaces. Raises TemplateTypeError."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Judgement(Generic[R]):
    """An object that is to be judged, and all that it may depend on."""

    new: Candidate[R]
    old: Candidate[R] | None
    view: HandlerView
    allow_privileged: bool = True


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Admission(Generic[R]):
    """The admission of a kind."""

    convert: TwoVersions
    stored_spec: type
    """The struct of the spec in the version that is stored."""
    read: Callable[[bytes | Raw, str], R]
    """An object of a version, as the kind judges it. Raises MisfitError."""
    defaulted: Defaulted
    warnings: Callable[[Candidate[R], Mapping[str, str], Mapping[str, bool]], Iterable[str]]
    """About an object as it was sent; the annotations that it had before; gates."""
    problems: Callable[[Judgement[R]], NeedsReads | tuple[FieldError, ...]]
    change_warnings: Callable[[Candidate[R], Json], Iterable[str]] = lambda new, old: ()
    """About what an update changes: the object as it was sent, and as it was."""
    is_judged_as_stored: bool = False
    """Both versions have the same paths, so the older one is judged as the newer one that it becomes."""
    is_protected: bool = True
    """Whether deletion protection covers the kind."""
    awaited: Resource[Any] | None = None
    """The stored kind, where pods that are made right after it are to know of it."""
    needs: Callable[[Mapping[str, bool]], Kinds] = _nothing
    """What `problems` looks up in stores, under these gates."""

    @property
    def conversion(self) -> Conversion:
        return Conversion(self.convert.group, self.convert.kind, self.convert)

    def webhooks(self, settings: Settings) -> tuple[Handler, ...]:
        return self.handlers(allow_privileged=settings.allow_privileged, needs=self.needs(settings.gates))

    def handlers(self, *, allow_privileged: bool = True, needs: Kinds = ()) -> tuple[Handler, ...]:
        """Both handlers. `allow_privileged` is what the API server says about privileged containers."""
        name = f"{self.convert.group.replace('.', '-')}-{self.convert.kind.lower()}"
        judge = functools.partial(self.judge, allow_privileged=allow_privileged)
        return (
            MutatingHandler(f"/mutate-{name}", self.default),
            ValidatingHandler(f"/validate-{name}", judge, needs, awaited=self.awaited),
        )

    def default(self, request: AdmissionRequest, view: HandlerView) -> Mutation:
        if request.operation not in ("CREATE", "UPDATE") or request.sub_resource:
            return Allow()
        version, old = request.kind.version, request.old_body() if request.has_old_object else None
        body, lost = _carried_over(request.body(), old, version)
        if kept := self._kept_problem(body, old, version):
            return verdict_of(causes((kept,)))
        try:
            candidate = self._candidate(body, request.object, request)
            changed = self.defaulted(body, version=version, old=old, gates=view.gates)
        except (MisfitError, TemplateTypeError) as error:
            return unreadable(error.error)
        warnings = list(self.warnings(candidate, _unchanged_annotations(body, old), view.gates))
        if old is not None:
            warnings += self.change_warnings(candidate, old)
        protection = advice(body, view.gates) if self.is_protected else idle(body, request.kind.kind)
        told = tuple(text for text in (*warnings, protection, lost) if text)
        return Change(object=self._unless_it_reads_the_same(changed, old, version), warnings=told)

    def _unless_it_reads_the_same(self, body: dict[str, Any], old: Json | None, version: str) -> dict[str, Any]:
        """The API server compares what is sent with what it reads. What the stored version has other words for, or
        none, would be a change each time that the same manifest is sent, so it is written as it reads."""
        if version == NEWER or old is None or body.get("spec") == old.get("spec"):
            return body
        read = self.convert(self.convert(body, NEWER), version)
        if read.get("spec") != old.get("spec"):
            return body
        # Whoever is judged as it was sent is: a value that conversion takes for another one must not get through.
        is_told = self.is_judged_as_stored or _is_within(read["spec"], body["spec"])
        return {**body, "spec": read["spec"]} if is_told else body

    def judge(self, request: AdmissionRequest, view: HandlerView, *, allow_privileged: bool = True) -> Verdict:
        if request.sub_resource:
            return Allow()
        if request.operation == "DELETE":
            return judge_workload(request, view.gates) if self.is_protected else Allow()
        if request.operation not in ("CREATE", "UPDATE"):
            return Allow()
        body, old_body = request.body(), request.old_body() if request.has_old_object else None
        if kept := self._kept_problem(body, old_body, request.kind.version):
            return verdict_of(causes((kept,)))
        try:
            new = self._candidate(body, request.object, request)
        except MisfitError as error:
            return unreadable(error.error)
        old = self._stored(old_body, request) if old_body is not None else None
        found = self.problems(Judgement(new=new, old=old, view=view, allow_privileged=allow_privileged))
        return found if isinstance(found, NeedsReads) else verdict_of(causes(found))

    def _candidate(self, body: dict[str, Any], raw: Raw, request: AdmissionRequest) -> Candidate[R]:
        version = request.kind.version
        if not self.is_judged_as_stored or version == NEWER:
            reading = self.read(raw, version)
        else:
            body = self.convert(body, NEWER)
            reading = self.read(codec.encode(body), NEWER)
        return Candidate(body=body, reading=reading, namespace=request.namespace or "", version=version)

    def _stored(self, body: dict[str, Any], request: AdmissionRequest) -> Candidate[R] | None:
        try:
            return self._candidate(body, request.old_object, request)
        except MisfitError:
            # Stored before anybody looked at it: what replaces it is judged like something new.
            return None

    def _kept_problem(self, body: dict[str, Any], old: Json | None, version: str) -> FieldError | None:
        """What is wrong with fields that somebody has written into the annotation by hand."""
        text = annotation_of(body)
        if text is None or (old is not None and annotation_of(old) == text):
            return None
        if version == NEWER:
            return forbidden(_KEPT_PATH, f"only an object in {OLDER} has it: write these fields into the object itself")
        try:
            read_kept(text)
            read_spec(codec.encode(self.convert(body, NEWER)), self.stored_spec)
        except (KeptError, MisfitError) as error:
            return invalid(_KEPT_PATH, text, str(error))
        return None


def _carried_over(body: dict[str, Any], old: Json | None, version: str) -> tuple[dict[str, Any], str]:
    """The object with the annotation that an update has left out, and what to say about it."""
    kept = annotation_of(old) if old is not None else None
    if version != OLDER or not kept or annotation_of(body) is not None:
        return body, ""
    advice = (
        f'{_KEPT_PATH}: stays, as {OLDER} has no fields for what it holds: use {NEWER}, or set it to "" to drop all'
    )
    return with_annotations(body, {KEPT: kept}), advice


def _is_within(less: Any, more: Any) -> bool:
    """Whether some fields are missing, and everything else is the same."""
    if isinstance(less, dict) and isinstance(more, dict):
        return all(key in more and _is_within(value, more[key]) for key, value in less.items())
    return bool(less == more)


def _unchanged_annotations(body: Json, old: Json | None) -> dict[str, str]:
    """Those that are not judged again: only about these is there something to warn of."""
    if old is None:
        return {}
    known = annotations_in(old)
    return {key: value for key, value in annotations_in(body).items() if known.get(key) == value}


def unreadable(error: FieldError) -> Deny:
    return Deny(message=str(error), code=400, reason="BadRequest", causes=tuple(causes((error,))))


def causes(errors: Iterable[FieldError]) -> Iterable[StatusCause]:
    return (StatusCause(reason=error.type, message=error.message, field=str(error.path)) for error in errors)
