"""What a Troupe gets by default, and what it may not be."""

from __future__ import annotations

from kruise.admission.decisions import Allow, Change, HandlerView, Invalid, verdict_of
from kruise.admission.inventory import CREATE_UPDATE, Entry
from kruise.admission.registry import MutatingHandler, ValidatingHandler
from kruise.admission.review import AdmissionRequest
from kruise.machinery.client.errors import StatusCause

from .api import GROUP


def default(request: AdmissionRequest, view: HandlerView) -> Change:
    count = "members" if request.kind.version == "v1alpha1" else "replicas"
    troupe = request.body()
    return Change(object={**troupe, "spec": {count: 1, **troupe.get("spec", {})}})


def validate(request: AdmissionRequest, view: HandlerView) -> Allow | Invalid:
    causes = []
    if not request.body()["spec"].get("image"):
        message = "Required value: name an image"
        causes.append(StatusCause(reason="FieldValueRequired", message=message, field="spec.image"))
    return verdict_of(causes)


HANDLERS = (MutatingHandler("/mutate-troupe", default), ValidatingHandler("/validate-troupe", validate))


def _entry(verb: str) -> Entry:
    return Entry(
        name=f"{verb}.troupe.{GROUP}",
        path=f"/{verb}-troupe",
        group=GROUP,
        resource="troupes",
        versions=("v1alpha1", "v1"),
        operations=CREATE_UPDATE,
    )


MUTATING, VALIDATING = _entry("mutate"), _entry("validate")
