"""What is inside a namespace or a definition, and so stands in the way of its deletion (DP-15, DP-16). Pure.

Both are read live: the question is rare, and the last object may have gone a moment ago.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kruise.admission.decisions import Allow, Deny, Failure, HandlerView, Listing, NeedsReads, Verdict
from kruise.admission.review import AdmissionRequest
from kruise.api.meta import PartialObject
from kruise.api.native.pod import PODS, is_active
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS
from kruise.api.resource import Resource
from kruise.protection.deletion.rules import ALWAYS, CASCADING, CASCADING_GATE, label_of, name_of, named, refusal

_NAMESPACES = "namespace_deletion_protection"
_DEFINITIONS = "crd_deletion_protection"


def judge_namespace(request: AdmissionRequest, view: HandlerView) -> Verdict:
    """DP-15."""
    protection = label_of(request, view.gates)
    if protection == ALWAYS:
        return refusal(request, ALWAYS, counter=_NAMESPACES)
    if protection != CASCADING:
        return Allow()
    pods, claims = (Listing(kind, name_of(request)) for kind in (PODS, PERSISTENT_VOLUME_CLAIMS))
    if not view.was_read(pods):
        return NeedsReads(targets=(pods, claims), may_fail=True)
    for listing in (pods, claims):
        if isinstance(failed := view.live(listing), Failure):
            return Deny(message=f"failed to list {listing}: {failed.message}", code=500, reason="InternalError")
    active = [pod for pod in view.live(pods) if is_active(pod)]
    if active:
        remedy = f"delete its pods first ({named(active)})"
        return refusal(request, CASCADING, f"active pods {len(active)}>0", remedy, counter=_NAMESPACES)
    bound = [
        claim
        for claim in view.live(claims)
        if claim.status.phase == "Bound" and claim.metadata.deletion_timestamp is None
    ]
    if bound:
        inside, remedy = f'"Bound" status pvc {len(bound)}>0', f"delete its claims first ({named(bound)})"
        return refusal(request, CASCADING, inside, remedy, counter=_NAMESPACES)
    return Allow()


def judge_definition(request: AdmissionRequest, view: HandlerView) -> Verdict:
    """DP-16, DP-53."""
    if request.kind.version not in ("v1", "v1beta1"):
        return Allow()
    protection = label_of(request, view.gates)
    if protection == ALWAYS:
        return refusal(request, ALWAYS, counter=_DEFINITIONS)
    if protection != CASCADING:
        return Allow()
    if not view.gates.get(CASCADING_GATE, False):
        inside = f"feature-gate {CASCADING_GATE} is not enabled, so nobody counts its objects"
        return refusal(request, CASCADING, inside, counter=_DEFINITIONS)
    objects = Listing(_stored_kind(request.old_body()))
    if not view.was_read(objects):
        return NeedsReads(targets=(objects,), may_fail=True)
    found = view.live(objects)
    if isinstance(found, Failure):
        message = f"failed to list CRs of {name_of(request)}: {found.message}"
        return Deny(message=message, code=500, reason="InternalError")
    living = [one for one in found if one.metadata.deletion_timestamp is None]
    if living:
        remedy = f"delete its objects first ({named(living)})"
        return refusal(request, CASCADING, f"active CRs {len(living)}>0", remedy, counter=_DEFINITIONS)
    return Allow()


def _stored_kind(definition: Mapping[str, Any]) -> Resource[PartialObject]:
    """By the plural and the version that is stored (DP-54). In v1beta1 one version may stand by itself."""
    spec = definition["spec"]
    versions = spec.get("versions") or [{"name": spec.get("version", "v1"), "storage": True}]
    stored = next(version["name"] for version in versions if version.get("storage"))
    names = spec["names"]
    return Resource(spec["group"], stored, names["plural"], names["kind"], spec["scope"] == "Namespaced", PartialObject)
