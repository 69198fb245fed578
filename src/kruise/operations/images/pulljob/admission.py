"""Admission of ImagePullJobs (IPJ-10 to IPJ-20). Pure."""

from __future__ import annotations

from typing import Any

from kruise.admission.decisions import Deny, HandlerView, Mutation, Verdict
from kruise.admission.registry import Handler
from kruise.admission.review import AdmissionRequest
from kruise.api.apps.images import FINALIZER, PULL_IF_NOT_PRESENT, ImagePullJob, ImagePullJobSpec
from kruise.api.apps.pulling import completion_problem, parallelism_problem
from kruise.operations.images.admission import defaulted, handlers_of, judged
from kruise.operations.images.templates import image_problem, selector_problem


def default(request: AdmissionRequest, view: HandlerView) -> Mutation:
    return defaulted(request, _more)


def _more(job: dict[str, Any], request: AdmissionRequest) -> dict[str, Any]:
    spec = job["spec"]
    if not spec.get("imagePullPolicy"):
        job = {**job, "spec": {**spec, "imagePullPolicy": PULL_IF_NOT_PRESENT}}
    metadata = job.get("metadata") or {}
    finalizers = metadata.get("finalizers") or []
    if request.operation == "CREATE" and request.kind.version == "v1alpha1" and FINALIZER not in finalizers:
        job = {**job, "metadata": {**metadata, "finalizers": [*finalizers, FINALIZER]}}
    return job


def judge(request: AdmissionRequest, view: HandlerView) -> Verdict:
    return judged(request, view, ImagePullJob, problem, _change_problem)


def _change_problem(old: ImagePullJobSpec, new: ImagePullJobSpec) -> Deny | None:
    if old.pull_secrets == new.pull_secrets:
        return None
    return Deny(message="spec.pullSecrets is immutable: make another job")


def problem(spec: ImagePullJobSpec) -> str:
    if found := selector_problem(spec):
        return found
    if not spec.image:
        return "image can not be empty"
    return image_problem(spec.image) or parallelism_problem(spec) or completion_problem(spec)


def handlers() -> tuple[Handler, ...]:
    return handlers_of("imagepulljob", default, judge)
