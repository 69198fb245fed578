"""Defaults of a Troupe, and what it may not be."""

from kruise.admission.decisions import Allow, Change, HandlerView, Invalid, verdict_of
from kruise.admission.review import AdmissionRequest
from kruise.machinery.client.errors import StatusCause


def default(request: AdmissionRequest, view: HandlerView) -> Change:
    troupe = request.body()
    return Change(object={**troupe, "spec": {"replicas": 1, **troupe.get("spec", {})}})


def validate(request: AdmissionRequest, view: HandlerView) -> Allow | Invalid:
    cause = StatusCause(reason="FieldValueRequired", message="Required value: name an image", field="spec.image")
    return verdict_of([] if request.body()["spec"].get("image") else [cause])
