"""Admission of jobs that bring images to nodes: the order of questions, the same for one image and for a list. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from kruise.admission.decisions import Allow, Change, Deny, HandlerView, Mutation, Verdict
from kruise.admission.registry import Handler, MutatingHandler, ValidatingHandler
from kruise.admission.review import AdmissionRequest
from kruise.machinery import codec
from kruise.operations.images.templates import (
    DAEMON_GATE,
    JOBS_GATE,
    gate_off,
    is_leaving,
    refused,
    verdict,
    warnings_of,
    with_defaults,
)
from kruise.operations.images.watching import WATCHED_NODE_IMAGES

J = TypeVar("J")


def defaulted(
    request: AdmissionRequest, more: Callable[[dict[str, Any], AdmissionRequest], dict[str, Any]] | None = None
) -> Mutation:
    """The job with the defaults of its template, and with `more` that only its kind has."""
    job = request.body()
    spec = job.get("spec")
    if request.sub_resource or not isinstance(spec, dict):
        return Allow()
    changed = {**job, "spec": with_defaults(spec)}
    return Change(object=more(changed, request) if more is not None else changed)


def judged(
    request: AdmissionRequest,
    view: HandlerView,
    kind: type[J],
    problem: Callable[[Any], str],
    change_problem: Callable[[Any, Any], Deny | None] | None = None,
) -> Verdict:
    """`problem` tells what is wrong with a spec, `change_problem` what may not become of one."""
    if request.sub_resource:
        return Allow()
    if (off := gate_off(view, DAEMON_GATE, JOBS_GATE)) is not None:
        return Allow() if is_leaving(request) else off
    try:
        job: Any = codec.decode(request.object, kind)
        old: Any = codec.decode(request.old_object, kind) if request.has_old_object else None
    except codec.DecodeError as error:
        return refused(str(error))
    if old is not None:
        if change_problem is not None and (found := change_problem(old.spec, job.spec)) is not None:
            return found
        if old.spec == job.spec or job.metadata.deletion_timestamp is not None:
            return Allow()
    if text := problem(job.spec):
        return refused(text)
    return verdict("", tuple(warnings_of(job.spec, view)))


def handlers_of(
    kind: str,
    default: Callable[[AdmissionRequest, HandlerView], Mutation],
    judge: Callable[[AdmissionRequest, HandlerView], Verdict],
) -> tuple[Handler, ...]:
    path = f"apps-kruise-io-{kind}"
    return (
        MutatingHandler(f"/mutate-{path}", default),
        ValidatingHandler(f"/validate-{path}", judge, (WATCHED_NODE_IMAGES,)),
    )
