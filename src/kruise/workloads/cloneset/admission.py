"""Admission of CloneSets: defaults on the way in, judgement of what results, protection from deletion.

Names in `podsToDelete` are looked up live (v1alpha1 only, CS-47): a store that lags behind would refuse a pod that has
just come, and the webhook need not keep every pod in memory for a question that is rarely asked.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

from kruise.admission.decisions import Allow, Change, Deny, HandlerView, Mutation, NeedsReads, Verdict, verdict_of
from kruise.admission.inventory import PROTECTION_LABEL
from kruise.admission.registry import Handler, MutatingHandler, ValidatingHandler
from kruise.admission.review import AdmissionRequest
from kruise.api.core.field_errors import FieldError, TemplateTypeError, invalid
from kruise.api.native.pod import PODS, Pod
from kruise.machinery.client.errors import StatusCause
from kruise.machinery.ownership import is_controlled_by
from kruise.machinery.plan import Target
from kruise.workloads.cloneset import advice
from kruise.workloads.cloneset.defaults import defaulted
from kruise.workloads.cloneset.validation import PODS_TO_DELETE, Candidate, problems
from kruise.workloads.cloneset.wire import MisfitError, annotations_in, read

MUTATE = "/mutate-apps-kruise-io-cloneset"
VALIDATE = "/validate-apps-kruise-io-cloneset"


def handlers(*, allow_privileged: bool = True) -> tuple[Handler, ...]:
    """Both handlers. `allow_privileged` is what the API server says about privileged containers."""
    return (
        MutatingHandler(MUTATE, default),
        ValidatingHandler(VALIDATE, functools.partial(judge, allow_privileged=allow_privileged)),
    )


def default(request: AdmissionRequest, view: HandlerView) -> Mutation:
    """CS-30 to CS-33."""
    if request.operation not in ("CREATE", "UPDATE") or request.sub_resource:
        return Allow()
    version = request.kind.version
    body = request.body()
    try:
        reading = read(request.object, version)
        changed = defaulted(
            body,
            version=version,
            old=request.old_body() if request.has_old_object else None,
            template_defaults=not view.gates.get("TemplateNoDefaults", False),
            host_network_ports=view.gates.get("DefaultHostNetworkHostPortsInPodTemplates", False),
        )
    except (MisfitError, TemplateTypeError) as error:
        return _unreadable(error.error)
    return Change(object=changed, warnings=advice.warnings_of(reading, _unchanged_annotations(request)))


def judge(request: AdmissionRequest, view: HandlerView, *, allow_privileged: bool = True) -> Verdict:
    """CS-40 to CS-52."""
    if request.sub_resource:
        return Allow()
    if request.operation == "DELETE":
        return _deletion(request, view)
    if request.operation not in ("CREATE", "UPDATE"):
        return Allow()
    version = request.kind.version
    try:
        new = Candidate(body=request.body(), reading=read(request.object, version), namespace=request.namespace or "")
        old = _stored(request) if request.has_old_object else None
    except MisfitError as error:
        return _unreadable(error.error)
    found = problems(new, old, allow_privileged=allow_privileged)
    if not found and new.reading.is_v1alpha1:
        answer = _pods_to_delete(new, old, view)
        if isinstance(answer, NeedsReads):
            return answer
        found = answer
    return verdict_of(_causes(found))


def _unchanged_annotations(request: AdmissionRequest) -> dict[str, str]:
    """Those that are not judged again: only about these is there something to warn of."""
    if not request.has_old_object:
        return {}
    known = annotations_in(request.old_body())
    return {key: value for key, value in annotations_in(request.body()).items() if known.get(key) == value}


def _stored(request: AdmissionRequest) -> Candidate | None:
    try:
        reading = read(request.old_object, request.kind.version)
    except MisfitError:
        # Stored before anybody looked at it: what replaces it is judged like something new.
        return None
    return Candidate(body=request.old_body(), reading=reading, namespace=request.namespace or "")


def _pods_to_delete(new: Candidate, old: Candidate | None, view: HandlerView) -> NeedsReads | tuple[FieldError, ...]:
    """Names that were not there before must be pods of this very CloneSet."""
    known = old.reading.scale.pods_to_delete if old is not None else ()
    added = [name for name in new.reading.scale.pods_to_delete if name not in known]
    targets = {name: Target(PODS, new.namespace, name) for name in added}
    unread = tuple(target for target in targets.values() if not view.was_read(target))
    if unread:
        return NeedsReads(targets=unread)
    uid = str((new.body.get("metadata") or {}).get("uid", ""))
    return tuple(
        invalid(PODS_TO_DELETE, name, complaint)
        for name, target in targets.items()
        if (complaint := _complaint(name, view.live(target), uid))
    )


def _complaint(name: str, pod: Pod | None, uid: str) -> str:
    if pod is None:
        return f'find pod {name} failed: Pod "{name}" not found'
    if not uid or not is_controlled_by(pod, uid):
        return f"find pod {name} owner is not this CloneSet"
    if pod.metadata.deletion_timestamp is not None:
        return f"pod {name} is being deleted already"
    return ""


def _deletion(request: AdmissionRequest, view: HandlerView) -> Verdict:
    """CS-52, DP-10 to DP-14."""
    if not view.gates.get("ResourcesDeletionProtection", False) or not request.has_old_object:
        return Allow()
    stored = request.old_body()
    metadata = stored.get("metadata") or {}
    if metadata.get("deletionTimestamp"):
        return Allow()
    protection = (metadata.get("labels") or {}).get(PROTECTION_LABEL)
    replicas = (stored.get("spec") or {}).get("replicas") or 0
    if protection == "Always":
        return _protected("Always")
    if protection == "Cascading" and replicas > 0:
        return _protected("Cascading", f" and replicas {replicas}>0")
    return Allow()


def _protected(value: str, because: str = "") -> Deny:
    return Deny(message=f"forbidden by ResourcesProtectionDeletion for {PROTECTION_LABEL}={value}{because}")


def _unreadable(error: FieldError) -> Deny:
    return Deny(message=str(error), code=400, reason="BadRequest", causes=tuple(_causes((error,))))


def _causes(errors: Iterable[FieldError]) -> Iterable[StatusCause]:
    return (StatusCause(reason=error.type, message=error.message, field=str(error.path)) for error in errors)
