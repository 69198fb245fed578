"""Admission of WorkloadSpreads: there are no defaults, only judgement (WS section 4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kruise.admission.decisions import Allow, Deny, HandlerView, NeedsReads, Verdict
from kruise.admission.registry import Handler, ValidatingHandler
from kruise.admission.review import AdmissionRequest
from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.conversion.workloadspread import convert
from kruise.api.apps.shared import GROUP
from kruise.api.apps.workloadspread import ADAPTIVE, WORKLOAD_SPREADS, WorkloadSpreadSpec
from kruise.api.core import formats, schema, values
from kruise.api.core.field_errors import FieldError, Path, describe, go_quote
from kruise.api.core.unknown_fields import unknown_fields
from kruise.api.core.validation import metadata
from kruise.api.native.apps import DEPLOYMENTS, JOBS, REPLICA_SETS, STATEFUL_SETS
from kruise.api.native.config import CONFIG_MAPS, CONFIGURATION, WhitelistError
from kruise.api.resource import Resource
from kruise.api.versions import NEWER
from kruise.feature import Conversion, Settings
from kruise.machinery import codec
from kruise.machinery.client.errors import StatusCause
from kruise.machinery.plan import Target
from kruise.spread.workloadspread import whitelist
from kruise.spread.workloadspread.injection import unfit
from kruise.spread.workloadspread.targets import TARGET, WATCHED_SPREADS, Workload, index_value, is_supported
from kruise.spread.workloadspread.validation import STRATEGY, SUBSETS, patch_problems, problems

CONVERSION = Conversion(convert.group, convert.kind, convert)
PATH = "/validate-apps-kruise-io-workloadspread"
GATE = "WorkloadSpread"
_META = Path("metadata")
_TEMPLATES: Mapping[tuple[str, str], Resource[Any]] = {
    ("apps", "Deployment"): DEPLOYMENTS,
    ("apps", "ReplicaSet"): REPLICA_SETS,
    ("apps", "StatefulSet"): STATEFUL_SETS,
    (GROUP, "CloneSet"): CLONE_SETS,
    ("batch", "Job"): JOBS,
}


class _Admission:
    def __init__(self, own_namespace: str) -> None:
        self._own_namespace = own_namespace

    def judge(self, request: AdmissionRequest, view: HandlerView) -> Verdict:
        if request.operation not in ("CREATE", "UPDATE") or request.sub_resource:
            return Allow()
        if not view.gates.get(GATE, True):
            return Deny(
                message=f"feature-gate {GATE} is not enabled: start the manager with --feature-gates={GATE}=true"
            )
        body = convert(request.body(), NEWER)
        old_body = convert(request.old_body(), NEWER) if request.has_old_object else None
        try:
            spec = codec.convert(body.get("spec") or {}, WorkloadSpreadSpec)
        except codec.DecodeError as error:
            return Deny(message=f"spec: {error}", code=400, reason="BadRequest")
        old = _stored(old_body)
        listed = True if is_supported(spec.target_ref) else self._is_whitelisted(spec, view)
        if not isinstance(listed, bool):
            return listed
        found = [
            *_metadata(request, body, old_body),
            *problems(spec, body, old, is_whitelisted=listed, taken_by=_taken_by(request, body, spec, view)),
        ]
        if not found:
            patches = _patches(request, spec, old, view)
            if isinstance(patches, NeedsReads):
                return patches
            found = patches
        return _refused(found) if found else Allow(warnings=tuple(_warnings(spec, old)))

    def _is_whitelisted(self, spec: WorkloadSpreadSpec, view: HandlerView) -> bool | NeedsReads | Deny:
        target = Target(CONFIG_MAPS, self._own_namespace, CONFIGURATION)
        if not view.was_read(target):
            return NeedsReads(targets=(target,))
        config = view.live(target)
        try:
            kinds = whitelist.parsed(config.data if config is not None else None)
        except WhitelistError as error:
            return Deny(message=str(error), code=400, reason="BadRequest")
        return whitelist.find(kinds, spec.target_ref.group, spec.target_ref.kind) is not None


def _stored(body: Mapping[str, Any] | None) -> WorkloadSpreadSpec | None:
    if body is None:
        return None
    try:
        return codec.convert(body.get("spec") or {}, WorkloadSpreadSpec)
    except codec.DecodeError:
        return None  # from before anybody looked: what replaces it is judged like something new


def _metadata(
    request: AdmissionRequest, body: Mapping[str, Any], old: Mapping[str, Any] | None
) -> Iterator[FieldError]:
    metas = [
        {
            **(meta := values.normalise(item.get("metadata"), "meta.ObjectMeta", path=_META)),
            "namespace": meta.get("namespace") or request.namespace,
        }
        for item in (body, old)
        if item is not None
    ]
    if old is not None:
        yield from metadata.object_meta_update(_META, *metas)
        return
    is_named_later = bool(metas[0].get("generateName")) and not metas[0].get("name")
    for error in metadata.object_meta(_META, metas[0], name=formats.dns_subdomain):
        if not (is_named_later and error.path == _META.child("name")):
            yield error


def _taken_by(request: AdmissionRequest, body: Mapping[str, Any], spec: WorkloadSpreadSpec, view: HandlerView) -> str:
    """WS-10."""
    reference = spec.target_ref
    workload = Workload(request.namespace or "", reference.group, reference.kind, reference.name)
    own = str((body.get("metadata") or {}).get("name") or request.name)
    others = view.store(WORKLOAD_SPREADS).by_index(TARGET, index_value(workload))
    return next((item.metadata.name for item in others if item.metadata.name != own), "")


def _patches(
    request: AdmissionRequest, spec: WorkloadSpreadSpec, old: WorkloadSpreadSpec | None, view: HandlerView
) -> list[FieldError] | NeedsReads:
    """Judged where the target is there; patches that were accepted once do not stand in the way of other changes."""
    known = {bytes(subset.patch) for subset in old.subsets} if old is not None else set()
    new = [
        (position, subset)
        for position, subset in enumerate(spec.subsets)
        if bytes(subset.patch) not in (b"", b"null") and bytes(subset.patch) not in known
    ]
    resource = _TEMPLATES.get((spec.target_ref.group, spec.target_ref.kind))
    if not new or resource is None:
        return []
    target = Target(resource, request.namespace or "", spec.target_ref.name)
    if not view.was_read(target):
        return NeedsReads(targets=(target,))
    workload = view.live(target)
    if workload is None:
        return []
    claims = tuple(_claims(workload))
    return [
        error for position, subset in new for error in patch_problems(subset, position, workload.spec.template, claims)
    ]


def _claims(workload: Any) -> Iterator[str]:
    for claim in getattr(workload.spec, "volume_claim_templates", ()) or ():
        document = codec.decode(claim, dict[str, Any]) if isinstance(claim, codec.Raw) else codec.to_builtins(claim)
        name = (document.get("metadata") or {}).get("name")
        if name:
            yield str(name)


def _refused(found: list[FieldError]) -> Deny:
    causes = tuple(StatusCause(reason=error.type, message=error.message, field=str(error.path)) for error in found)
    return Deny(message=describe(found), code=400, reason="BadRequest", causes=causes)


def _warnings(spec: WorkloadSpreadSpec, old: WorkloadSpreadSpec | None) -> Iterator[str]:
    known = {bytes(subset.patch) for subset in old.subsets} if old is not None else set()
    for position, subset in enumerate(spec.subsets):
        if bytes(subset.patch) in (b"", b"null") or bytes(subset.patch) in known:
            continue
        where = SUBSETS.at(position).child("patch")
        if problem := unfit(subset.patch, where):  # WS-15: refused only where the target is there
            yield f"{problem}: pods that are to go into subset {subset.name} will be refused"
            continue
        for field in unknown_fields(codec.decode(subset.patch, object), schema.POD, str(where)):
            # Directives such as $patch and $retainKeys are no fields.
            if "$" not in field:
                yield f"unknown field {go_quote(field)}"
    strategy = spec.schedule_strategy
    if strategy.type == ADAPTIVE and not strategy.critical_seconds:
        path = STRATEGY.child("adaptive", "rescheduleCriticalSeconds")
        yield f"{path}: without it, pods that find no node stay in their subset, as with type Fixed"


def webhooks(settings: Settings) -> tuple[Handler, ...]:
    judge = _Admission(settings.own_namespace).judge
    return (ValidatingHandler(PATH, judge, (WATCHED_SPREADS,)),)
