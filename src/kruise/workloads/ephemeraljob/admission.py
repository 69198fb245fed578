"""Admission of EphemeralJobs (EJ-11 to EJ-16): nothing is filled in, and what could never run is refused."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

from kruise.admission.decisions import Allow, Deny, HandlerView
from kruise.admission.registry import Handler, ValidatingHandler
from kruise.admission.review import AdmissionRequest
from kruise.api.core import schema, values
from kruise.api.core.field_errors import FieldError, Path, TemplateTypeError, go_quote, invalid, wrong_type
from kruise.api.core.images import reference_problem
from kruise.api.core.unknown_fields import unknown_fields
from kruise.api.core.validation import common, validate_ephemeral_containers
from kruise.feature import Settings
from kruise.machinery.client.errors import StatusCause

PATH = "/validate-apps-kruise-io-v1alpha1-ephemeraljob"
CONTAINERS = "ephemeralContainers"
"""Errors about containers begin here, without `spec.template` (EJ-12)."""
_SPEC = Path("spec")
_NUMBERS = ("replicas", "parallelism", "activeDeadlineSeconds", "ttlSecondsAfterFinished")
_NOTHING = {
    "replicas": "lets no pod be served: use a positive number, or leave it out for all",
    "parallelism": "lets no pod be served: use a positive number",
    "activeDeadlineSeconds": "lets the job fail at once: use a positive number, or leave it out",
}
"""What 0 means."""
_MOST_WARNINGS = 10

Json = Mapping[str, Any]


def webhooks(settings: Settings) -> tuple[Handler, ...]:
    return (ValidatingHandler(PATH, functools.partial(judge, allow_privileged=settings.allow_privileged)),)


def judge(request: AdmissionRequest, view: HandlerView, *, allow_privileged: bool = True) -> Allow | Deny:
    if request.sub_resource or request.operation not in ("CREATE", "UPDATE"):
        return Allow()
    body = request.body()
    old = request.old_body() if request.has_old_object else None
    found = tuple(problems(_spec(body), _spec(old) if old is not None else None, allow_privileged=allow_privileged))
    if found:
        return _refused(found)
    return Allow(warnings=tuple(_warnings(_spec(body), _spec(old) if old is not None else {})))


def problems(spec: Json, old: Json | None = None, *, allow_privileged: bool = True) -> Iterator[FieldError]:
    """What is wrong. What was there before and has not changed is not judged again."""
    known = old or {}
    for name in _NUMBERS:
        value = spec.get(name)
        if isinstance(value, int) and value < 0 and known.get(name) != value:
            yield invalid(_SPEC.child(name), value, _advice(name))
    if old is None or spec.get("selector") != known.get("selector"):
        yield from _selector(spec.get("selector"))
    given = _containers(spec)
    if old is None or given != _containers(known):
        if given is not None and not isinstance(given, list):
            yield wrong_type(CONTAINERS, given, "must be a list of containers")
        else:
            yield from validate_ephemeral_containers(given, CONTAINERS, allow_privileged=allow_privileged)


def _advice(name: str) -> str:
    if name in ("replicas", "parallelism"):
        return "must be greater than or equal to 0: a number of pods, or leave it out"
    return "must be greater than or equal to 0: a number of seconds, or leave it out"


def _selector(given: Any) -> Iterator[FieldError]:
    path = _SPEC.child("selector")
    try:
        selector = values.normalise(given, "meta.LabelSelector", path=path)
    except TemplateTypeError as error:
        yield error.error
        return
    yield from common.label_selector(path, selector)


def _spec(body: Json) -> Json:
    spec = body.get("spec")
    return spec if isinstance(spec, Mapping) else {}


def _containers(spec: Json) -> Any:
    template = spec.get("template")
    return template.get(CONTAINERS) if isinstance(template, Mapping) else None


def _warnings(spec: Json, old: Json) -> Iterator[str]:
    """A job that can do nothing, and what the definition leaves open in containers: names of fields and of images. What
    has not changed was told before."""
    for name, told in _NOTHING.items():
        if spec.get(name) == 0 and old.get(name) != 0:
            yield f"{_SPEC.child(name)}: 0 {told}"
    given = _containers(spec)
    if given != _containers(old):
        yield from _of_containers(given)


def _of_containers(given: Any) -> Iterator[str]:
    path = f"spec.template.{CONTAINERS}"
    if not given:
        yield f"{path} is empty: the job has nothing to inject, and ends in phase Error"
    found = unknown_fields(given, f"{schema.LIST}core.EphemeralContainer", path)
    yield from (f"unknown field {go_quote(place)}" for place in found[:_MOST_WARNINGS])
    if len(found) > _MOST_WARNINGS:
        yield f"{len(found) - _MOST_WARNINGS} more unknown fields in {path}"
    for place, container in enumerate(given or ()):
        image = container["image"]
        if reason := reference_problem(image):
            told = f"{go_quote(image)} is no image: {reason}; no node can pull it, and the container stays in the pods"
            yield f"{path}[{place}].image: {told}"


def _refused(found: tuple[FieldError, ...]) -> Deny:
    texts = list(dict.fromkeys(str(error) for error in found))
    message = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    causes = tuple(StatusCause(reason=error.type, message=error.message, field=str(error.path)) for error in found)
    return Deny(message=message, code=400, reason="BadRequest", causes=causes)
