"""Whether an object may be deleted (DP section 3). Pure.

The label is read from the object as it is stored, so taking it away and deleting works at once (DP-2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kruise.admission.decisions import Allow, Deny, Protected
from kruise.admission.inventory import PROTECTION_LABEL
from kruise.admission.review import AdmissionRequest
from kruise.api.versions import mapping

GATE = "ResourcesDeletionProtection"
CASCADING_GATE = "DeletionProtectionForCRDCascadingGate"
ALWAYS = "Always"
CASCADING = "Cascading"
WORKLOADS = "workload_deletion_protection"
_NAMED_AT_MOST = 3


def label_of(request: AdmissionRequest, gates: Mapping[str, bool]) -> str:
    """The protection that an object has against this request: `Always`, `Cascading`, or none (DP-10 to DP-12)."""
    if request.operation != "DELETE" or request.sub_resource or not request.has_old_object:
        return ""
    if not gates.get(GATE, False):
        return ""
    stored = request.old_body()
    if mapping(stored.get("metadata")).get("deletionTimestamp"):
        return ""
    value = _label(stored)
    return value if value in (ALWAYS, CASCADING) else ""


def _label(body: Mapping[str, Any]) -> Any:
    """As it was sent, by whomever: a webhook sees objects before anybody has checked their types."""
    return mapping(mapping(body.get("metadata")).get("labels")).get(PROTECTION_LABEL)


def judge_workload(request: AdmissionRequest, gates: Mapping[str, bool]) -> Allow | Deny:
    """DP-13, DP-14."""
    protection = label_of(request, gates)
    if protection == ALWAYS:
        return refusal(request, ALWAYS, counter=WORKLOADS)
    if protection == CASCADING:
        replicas = mapping(request.old_body().get("spec")).get("replicas") or 0
        if replicas > 0:
            return refusal(request, CASCADING, f"replicas {replicas}>0", "scale it to 0 first", counter=WORKLOADS)
    return Allow()


def advice(body: Mapping[str, Any], gates: Mapping[str, bool]) -> str:
    """About a label that protects from nothing."""
    value = _label(body)
    if value is None:
        return ""
    if value not in (ALWAYS, CASCADING):
        return f"metadata.labels[{PROTECTION_LABEL}]: {value!r} protects from nothing: use {ALWAYS} or {CASCADING}"
    if not gates.get(GATE, False):
        return f"metadata.labels[{PROTECTION_LABEL}] protects from nothing while feature-gate {GATE} is off"
    return ""


def idle(body: Mapping[str, Any], kind: str) -> str:
    """About the label on an object of a kind that is not protected."""
    if _label(body) is None:
        return ""
    return f"metadata.labels[{PROTECTION_LABEL}] protects from nothing here: deletions of {kind}s are not refused"


def leaf_advice(body: Mapping[str, Any], kind: str) -> str:
    """About the label on an object that has nothing inside."""
    if _label(body) != CASCADING:
        return ""
    return f"metadata.labels[{PROTECTION_LABEL}]: {CASCADING} protects no {kind}: nothing is inside it; use {ALWAYS}"


def judge_always(request: AdmissionRequest, gates: Mapping[str, bool]) -> Allow | Deny:
    """Services and Ingresses have nothing inside (DP-17)."""
    return refusal(request, ALWAYS) if label_of(request, gates) == ALWAYS else Allow()


def refusal(request: AdmissionRequest, value: str, inside: str = "", remedy: str = "", *, counter: str = "") -> Deny:
    """DP-20: clients look for the first words. What follows says how to go on."""
    said = f"forbidden by ResourcesProtectionDeletion for {PROTECTION_LABEL}={value}"
    if inside:
        said += f" and {inside}"
    where = f" -n {request.namespace}" if request.namespace and request.kind.kind != "Namespace" else ""
    unlabel = f"kubectl label {_word(request)} {name_of(request)}{where} {PROTECTION_LABEL}-"
    advice = (
        f"{remedy}, or take the label away: {unlabel}" if remedy else f"to delete it, take the label away: {unlabel}"
    )
    return Deny(message=f"{said}; {advice}", record=_record(request, counter) if counter else None)


def _word(request: AdmissionRequest) -> str:
    kind = request.kind.kind.lower()
    return f"{kind}.{request.kind.group}" if request.kind.group else kind


def name_of(request: AdmissionRequest) -> str:
    """A request to delete a collection names nobody: its objects come one by one."""
    return request.name or str(mapping(request.old_body().get("metadata")).get("name", ""))


def _record(request: AdmissionRequest, counter: str) -> Protected:
    """DP-30."""
    kind, namespace, name = request.kind.kind, request.namespace or "", name_of(request)
    if counter == WORKLOADS:
        labels = {"kind_namespace_name": f"{kind}_{namespace}_{name}"}
    else:
        namespace, labels = "", {"name": name}
    return Protected(
        event="DeletionProtection", kind=kind, namespace=namespace, name=name, counter=counter, labels=labels
    )


def named(objects: Sequence[Any]) -> str:
    """The first of them, for a message."""
    names = [
        f"{one.metadata.namespace}/{one.metadata.name}" if one.metadata.namespace else one.metadata.name
        for one in objects[:_NAMED_AT_MOST]
    ]
    more = len(objects) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")
