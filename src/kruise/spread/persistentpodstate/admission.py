"""Admission of PersistentPodStates (PPS section 4) and of pods that are made again (PPS section 7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kruise.admission.chain import StepContext
from kruise.admission.decisions import Allow, Change, Deny, HandlerView, NeedsReads, Verdict
from kruise.admission.registry import Handler, ValidatingHandler
from kruise.admission.review import AdmissionRequest
from kruise.api.apps.conversion.persistentpodstate import convert
from kruise.api.apps.persistentpodstate import (
    PERSISTENT_POD_STATES,
    PersistentPodState,
    PersistentPodStateSpec,
    PodState,
)
from kruise.api.core import formats
from kruise.api.core.field_errors import FieldError, Path, describe, invalid, required
from kruise.api.native.config import CONFIG_MAPS, CONFIGURATION, WhitelistError
from kruise.api.versions import NEWER
from kruise.feature import Conversion, Settings
from kruise.machinery import codec
from kruise.machinery.client.errors import StatusCause
from kruise.machinery.plan import Target
from kruise.spread.persistentpodstate import keys
from kruise.spread.persistentpodstate.targets import (
    TARGET,
    WATCHED_STATES,
    Workload,
    is_supported,
    whitelisted,
)

PATH = "/validate-apps-kruise-io-persistentpodstate"
CONVERSION = Conversion(convert.group, convert.kind, convert)
_SPEC = Path("spec")
_TARGET = _SPEC.child("targetRef")
_WEIGHTS = range(1, 101)


class _Admission:
    def __init__(self, own_namespace: str) -> None:
        self._configuration = Target(CONFIG_MAPS, own_namespace, CONFIGURATION)

    def judge(self, request: AdmissionRequest, view: HandlerView) -> Verdict:
        if request.operation not in ("CREATE", "UPDATE") or request.sub_resource:
            return Allow()
        body = convert(request.body(), NEWER)
        try:
            spec = _spec(body)
            old = _spec(convert(request.old_body(), NEWER)) if request.has_old_object else None
        except codec.DecodeError as error:
            return Deny(message=f"spec: {error}", code=400, reason="BadRequest")
        reference = spec.target_ref
        listed = is_supported(reference.group, reference.kind)
        if not listed:
            if not view.was_read(self._configuration):
                return NeedsReads(targets=(self._configuration,))
            config = view.live(self._configuration)
            try:
                listed = (reference.group, reference.kind) in whitelisted(config.data if config is not None else None)
            except WhitelistError as error:
                return Deny(message=str(error), code=400, reason="BadRequest")
        found = [*_problems(spec, old, is_listed=listed), *_conflicts(request, body, spec, view)]
        if found:
            causes = tuple(StatusCause(reason=one.type, message=one.message, field=str(one.path)) for one in found)
            return Deny(message=describe(found), code=400, reason="BadRequest", causes=causes)
        return Allow(warnings=tuple(warnings_of(spec)))


def handlers(settings: Settings) -> tuple[Handler, ...]:
    judge = _Admission(settings.own_namespace).judge
    return (ValidatingHandler(PATH, judge, (WATCHED_STATES,)),)


def _spec(body: Mapping[str, Any]) -> PersistentPodStateSpec:
    return codec.convert(body.get("spec") or {}, PersistentPodStateSpec)


def _problems(
    spec: PersistentPodStateSpec, old: PersistentPodStateSpec | None, *, is_listed: bool
) -> Iterator[FieldError]:
    """PPS-6 to PPS-8, PPS-10, PPS-11."""
    reference = spec.target_ref
    given = codec.to_builtins(reference)
    if not (reference.api_version and reference.kind and reference.name):
        yield invalid(_TARGET, given, "apiVersion, kind and name must be given")
    if not is_listed:
        words = f"kind must be StatefulSet of apps or apps.kruise.io, or listed in {keys.WHITELIST}"
        yield invalid(_TARGET, given, f"{words} of the ConfigMap {CONFIGURATION}")
    if spec.required_persistent_topology is None and not spec.preferred_persistent_topology:
        yield invalid(
            _SPEC, {"targetRef": given}, "requiredPersistentTopology or preferredPersistentTopology must be given"
        )
    if old is not None and old.target_ref != reference:
        yield required(_TARGET, "targetRef cannot be modified: delete the object, and create it anew")


def _conflicts(
    request: AdmissionRequest, body: Mapping[str, Any], spec: PersistentPodStateSpec, view: HandlerView
) -> Iterator[FieldError]:
    """PPS-9."""
    reference = spec.target_ref
    workload = Workload(request.namespace or "", reference.group, reference.kind, reference.name)
    own = str((body.get("metadata") or {}).get("name") or request.name)
    for other in view.store(PERSISTENT_POD_STATES).by_index(TARGET, workload.value):
        if other.metadata.name != own:
            words = f"targetRef is in conflict with other PersistentPodState {other.metadata.name}"
            yield invalid(_TARGET, codec.to_builtins(reference), words)
            return


def warnings_of(spec: PersistentPodStateSpec) -> Iterator[str]:
    """In both versions: paths without the names of keys, which differ."""
    required = spec.required_persistent_topology
    terms = [term.preference for term in spec.preferred_persistent_topology]
    given = [key for term in (*terms, *((required,) if required is not None else ())) for key in term.keys]
    if not given:
        yield f"{_SPEC}: no labels of nodes are named, so no place is remembered"
    for key in dict.fromkeys(given):
        if problems := formats.qualified_name(key):
            yield f'{_SPEC}: no node has a label "{key}", so it is never remembered: {problems[0]}'
    for position, annotation in enumerate(spec.persistent_pod_annotations):
        if not annotation.key:
            path = _SPEC.child("persistentPodAnnotations").at(position).child("key")
            yield f"{path}: it is empty, so nothing is remembered by it"
    for position, term in enumerate(spec.preferred_persistent_topology):
        if term.weight not in _WEIGHTS:
            path = _SPEC.child("preferredPersistentTopology").at(position).child("weight")
            yield f"{path}: {term.weight} is not from 1 to 100: pods that are made again will be refused"


# Pods that are made again


def inject(pod: dict[str, Any], context: StepContext) -> Change | None:
    """The pod with the place that is remembered of it; None: leave it as it is (PPS-29 to PPS-32)."""
    metadata = pod.get("metadata")
    spec = pod.get("spec")
    if context.request.operation != "CREATE" or context.request.sub_resource:
        return None
    if not isinstance(metadata, dict) or not isinstance(spec, dict):
        return None
    found = _remembered(metadata, context)
    return _placed(pod, metadata, spec, *found) if found is not None else None


def _remembered(metadata: Mapping[str, Any], context: StepContext) -> tuple[PersistentPodState, PodState] | None:
    """Only workloads of the kinds that may be targets have an object, so nobody else is looked up in vain."""
    owners = metadata.get("ownerReferences")
    owner = next((one for one in owners or () if isinstance(one, dict) and one.get("controller") is True), None)
    if owner is None:
        return None
    group = str(owner.get("apiVersion", "")).rpartition("/")[0]
    workload = Workload(context.namespace, group, str(owner.get("kind", "")), str(owner.get("name", "")))
    for state in context.view.store(PERSISTENT_POD_STATES).by_index(TARGET, workload.value):
        known = state.status.pod_states.get(str(metadata.get("name", "")))
        if state.metadata.deletion_timestamp is None and known is not None and known.node_topology_labels:
            return state, known
    return None


def _placed(
    pod: dict[str, Any], metadata: dict[str, Any], spec: dict[str, Any], state: PersistentPodState, known: PodState
) -> Change | None:
    labels = known.node_topology_labels
    must = state.spec.required_persistent_topology
    selector = {key: labels[key] for key in (must.keys if must is not None else ()) if key in labels}
    terms = [
        {
            "weight": term.weight,
            "preference": {
                "matchExpressions": [
                    {"key": key, "operator": "In", "values": [labels[key]]}
                    for key in term.preference.keys
                    if key in labels
                ]
            },
        }
        for term in state.spec.preferred_persistent_topology
    ]
    if not selector and not terms:
        return None
    changed = dict(spec)
    if selector:
        changed["nodeSelector"] = {**_mapping(spec.get("nodeSelector")), **selector}
    if terms:
        affinity = _mapping(spec.get("affinity"))
        nodes = _mapping(affinity.get("nodeAffinity"))
        preferred = "preferredDuringSchedulingIgnoredDuringExecution"
        before = nodes.get(preferred)
        wishes = [*(before if isinstance(before, list) else ()), *terms]
        changed["affinity"] = {**affinity, "nodeAffinity": {**nodes, preferred: wishes}}
    annotations = {**_mapping(metadata.get("annotations")), keys.INJECTED: state.metadata.name}
    return Change(object={**pod, "metadata": {**metadata, "annotations": annotations}, "spec": changed})


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
