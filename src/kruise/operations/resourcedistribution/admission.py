"""Admission of ResourceDistributions (RD section 5). Pure.

There are no defaults. What the API server itself would say of a copy is found out by creating one on trial, in the
manager's own namespace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kruise.admission.decisions import Allow, Deny, Failure, HandlerView, NeedsReads, Trial, Verdict, verdict_of
from kruise.admission.review import AdmissionRequest
from kruise.api.apps.conversion.resourcedistribution import convert
from kruise.api.apps.resourcedistribution import ResourceDistributionSpec
from kruise.api.core import formats
from kruise.api.core.field_errors import FORBIDDEN, INVALID, FieldError, Path, forbidden, invalid, required
from kruise.api.versions import NEWER
from kruise.machinery.client.errors import StatusCause
from kruise.machinery.codec import DecodeError, Struct, decode, encode
from kruise.machinery.documents import value_at
from kruise.machinery.selectors import SelectorError, from_label_selector
from kruise.operations.resourcedistribution import content

GATE = "ResourceDistributionGate"
_RESOURCE = Path("spec").child("resource")
_TARGETS = Path("spec").child("targets")


class _Object(Struct):
    spec: ResourceDistributionSpec = ResourceDistributionSpec()


class Admission:
    def __init__(self, own_namespace: str) -> None:
        self._own_namespace = own_namespace

    def judge(self, request: AdmissionRequest, view: HandlerView) -> Verdict:
        if request.sub_resource or request.operation not in ("CREATE", "UPDATE"):
            return Allow()
        if not view.gates.get(GATE, False):
            return Deny(message=f"feature-gate {GATE} is not enabled")  # RD-10
        try:
            spec = _spec(request.body())
            old = _spec(request.old_body()) if request.has_old_object else None
        except DecodeError as error:
            return Deny(message=str(error), code=400, reason="BadRequest")  # RD-11
        template = content.read(spec.resource)
        wrong = [*_resource(template, content.read(old.resource) if old is not None else None), *_targets(spec)]
        causes = [StatusCause(reason=error.type, message=error.message, field=str(error.path)) for error in wrong]
        if not any(error.path.startswith(_RESOURCE) for error in wrong) and (
            old is None or bytes(old.resource) != bytes(spec.resource)
        ):
            trial = self._trial(template)
            if not view.was_read(trial):
                return NeedsReads(targets=(trial,), may_fail=True)
            causes += _tried(view.live(trial))
        return verdict_of(causes, warnings=tuple(_warnings(spec, template)))

    def _trial(self, template: Mapping[str, Any]) -> Trial:
        """RD-16."""
        kind = content.kind_of(template)
        assert kind is not None
        metadata = {**template["metadata"], "namespace": self._own_namespace}
        for name in ("uid", "resourceVersion", "ownerReferences"):
            metadata.pop(name, None)
        return Trial(kind, self._own_namespace, encode({**template, "metadata": metadata}))


def _spec(body: dict[str, Any]) -> ResourceDistributionSpec:
    return decode(encode(convert(body, NEWER)), _Object).spec


def _resource(template: Mapping[str, Any], old: Mapping[str, Any] | None) -> Iterator[FieldError]:
    """RD-13 to RD-15: the first that is wrong is enough (RD-17)."""
    if not template:
        yield required(_RESOURCE, "empty resource is not allowed")
    elif content.kind_of(template) is None:
        found = f"{template.get('apiVersion', '')} {template.get('kind', '')}".strip()
        yield invalid(_RESOURCE, found, "unknown or unsupported resource GroupKind, only support [Secret ConfigMap]")
    elif not content.name_of(template):
        # With a generateName alone, nobody could find the copies again.
        yield required(_RESOURCE.child("metadata", "name"), "copies have the name of the resource")
    elif template["metadata"].get("ownerReferences"):
        # Of several owners the last to go would take the copy with it, and only one may be the controller.
        yield forbidden(_RESOURCE.child("metadata", "ownerReferences"), "copies belong to the distribution alone")
    elif old is not None and _identity(old) != _identity(template):
        yield invalid(_RESOURCE, " ".join(_identity(template)), "resource apiVersion, kind, and name are immutable")


def _identity(template: Mapping[str, Any]) -> tuple[str, str, str]:
    return str(template.get("apiVersion", "")), str(template.get("kind", "")), content.name_of(template)


def _targets(spec: ResourceDistributionSpec) -> Iterator[FieldError]:
    """RD-18."""
    lists = {
        "includedNamespaces": spec.targets.included_namespaces.names,
        "excludedNamespaces": spec.targets.excluded_namespaces.names,
    }
    for field, names in lists.items():
        for name in names:
            for problem in formats.dns_label(name):
                yield invalid(_TARGETS.child(field), name, problem)
    if both := sorted(set(lists["includedNamespaces"]) & set(lists["excludedNamespaces"])):
        names_in_both = f"[{' '.join(both)}]"
        yield invalid(
            _TARGETS,
            names_in_both,
            f"ambiguous targets because namespace {names_in_both} is in both IncludedNamespaces.List and "
            "ExcludedNamespaces.List",
        )
    try:
        from_label_selector(spec.targets.namespace_selector)
    except SelectorError as error:
        yield invalid(_TARGETS.child("namespaceSelector"), "", str(error))


def _tried(failed: Failure | None) -> Iterator[StatusCause]:
    """What the API server says of a copy, and whose fault that is."""
    if failed is None or failed.reason == "AlreadyExists":
        return
    if failed.reason in ("Invalid", "BadRequest"):
        reason, text = INVALID, "Invalid value: spec.resource is invalid"
    elif failed.reason == "Forbidden":
        reason, text = FORBIDDEN, "Forbidden: spec.resource is forbidden"
    else:
        reason, text = "InternalError", "Internal error: failed to dry-run validate spec.resource"
    yield StatusCause(reason=reason, message=f"{text}: {failed.message}", field=str(_RESOURCE))


def _warnings(spec: ResourceDistributionSpec, template: Mapping[str, Any]) -> Iterator[str]:
    targets = spec.targets
    selector = targets.namespace_selector
    chosen = targets.all_namespaces or targets.included_namespaces.names
    if not chosen and not selector.match_labels and not selector.match_expressions:
        yield (
            f"{_TARGETS} chooses no namespace, so nothing is distributed: use includedNamespaces, namespaceSelector or "
            "allNamespaces"
        )
    finalizers = value_at(template, ("metadata", "finalizers"), ())
    if finalizers and isinstance(finalizers, list):
        where = _RESOURCE.child("metadata", "finalizers")
        names = ", ".join(map(str, finalizers))
        yield f"{where}: each copy gets them, and stays, as its namespace does, until {names} is taken off"
    for name in content.unknown_fields(template):
        yield f'unknown field "{_RESOURCE.child(name)}"'
