"""Admission of ImageListPullJobs (ILPJ-1, ILPJ-2). Pure."""

from __future__ import annotations

from kruise.admission.decisions import HandlerView, Mutation, Verdict
from kruise.admission.registry import Handler
from kruise.admission.review import AdmissionRequest
from kruise.api.apps.images import MOST_LISTED, ImageListPullJob, ImageListPullJobSpec
from kruise.api.apps.pulling import completion_problem, parallelism_problem
from kruise.operations.images.admission import defaulted, handlers_of, judged
from kruise.operations.images.templates import image_problem, selector_problem


def default(request: AdmissionRequest, view: HandlerView) -> Mutation:
    return defaulted(request)


def judge(request: AdmissionRequest, view: HandlerView) -> Verdict:
    return judged(request, view, ImageListPullJob, problem)


def problem(spec: ImageListPullJobSpec) -> str:
    """The deadline is checked here as well: otherwise every job that is made of it would be refused, for ever."""
    found = selector_problem(spec) or _images_problem(spec.images)
    return found or parallelism_problem(spec) or completion_problem(spec)


def _images_problem(images: tuple[str, ...]) -> str:
    if not images:
        return "image can not be empty"
    if len(set(images)) < len(images):
        return "images cannot have duplicate values"
    if len(images) > MOST_LISTED:
        return f"the maximum number of images cannot > {MOST_LISTED}"
    return next((found for image in images if (found := image_problem(image))), "")


def handlers() -> tuple[Handler, ...]:
    return handlers_of("imagelistpulljob", default, judge)
