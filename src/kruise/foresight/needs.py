"""What has to be read from a cluster for a forecast."""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from kruise.api.meta import LabelSelector, ObjectMeta
from kruise.api.native.apps import CONTROLLER_REVISIONS
from kruise.api.native.nodes import NAMESPACES, NODES
from kruise.api.native.pod import PODS
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES
from kruise.api.resource import Resource
from kruise.faces.face import Face
from kruise.feature import Feature, Settings
from kruise.foresight.errors import RefusedError, UnknownKindError
from kruise.kinds import face_of
from kruise.machinery import codec
from kruise.machinery.documents import value_at
from kruise.machinery.selectors import SelectorError, from_label_selector
from kruise.machinery.watched import watched

_CLAIMS = ("volumeClaimTemplates", "persistentVolumeClaim")
_LABELLED = (PODS, CONTROLLER_REVISIONS)
"""Kinds whose objects carry the labels that the selector asks for."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A list to read."""

    resource: Resource[Any]
    namespace: str = ""
    """Empty: of all namespaces, or of none."""
    selector: str = ""
    optional: bool = False
    """The cluster may not serve this kind: then it is left out."""
    shapes_pods: bool = False
    """Admission looks at these objects when a pod is created."""
    places_pods: bool = False
    """The scheduler looks at these objects, and only it."""


def needed(
    subject: Resource[Any],
    document: Mapping[str, Any],
    *,
    features: Sequence[Feature],
    settings: Settings,
) -> tuple[Need, ...]:
    """The lists that a forecast about this object needs, in any served version; the object itself is read apart."""
    face = face_of(subject.group, subject.kind)
    if face is None or not face.forecast:
        raise UnknownKindError(subject)
    try:
        namespace = codec.convert(document.get("metadata") or {}, ObjectMeta).namespace
        # Without a selector everything of the namespace is read: the owners tell.
        selector = codec.convert(value_at(document, face.selector, {}) if face.selector else {}, LabelSelector)
        whole = str(from_label_selector(selector))
        exact = str(from_label_selector(LabelSelector(match_labels=selector.match_labels)))
    except (codec.DecodeError, SelectorError) as error:
        raise RefusedError(f"spec.selector: {error}", code=422) from error
    found: dict[Resource[Any], Need] = {}
    facts = face.forecast_facts()
    children = facts.children if facts is not None else ()
    for feature in features:
        for spec in feature.controllers(settings):
            if spec.subject != subject and spec.subject not in children:
                continue
            for source in spec.sources:
                if source.resource != subject and source.resource not in found:
                    found[source.resource] = Need(
                        resource=source.resource,
                        namespace=namespace if source.resource.namespaced else "",
                        selector=_revisions(face, document)
                        if source.resource == CONTROLLER_REVISIONS and face.contribution is not None
                        else (whole if source.resource in children else _selector(source.resource, whole, exact)),
                        optional=source.optional,
                    )
    found.setdefault(NODES, Need(resource=NODES))
    if _mounts_claims(document):
        found |= {need.resource: need for need in storage_needs(namespace, found)}
    if face.contribution is not None:
        found[subject] = Need(resource=subject)  # others may put something into the same pods
    for need in shaping_needs(namespace, features=features, settings=settings):
        found.setdefault(need.resource, need)
    return tuple(found.values())


def shaping_needs(namespace: str, *, features: Sequence[Feature], settings: Settings) -> Iterator[Need]:
    """What tells what these features make of new pods."""
    for resource in _asked_about_pods(features, settings):
        where = namespace if resource.namespaced else ""
        yield Need(resource=resource, namespace=where, optional=True, shapes_pods=True)


def storage_needs(namespace: str, known: Container[Resource[Any]] = ()) -> Iterator[Need]:
    """What tells where the volumes of pods can be used; `known` is read anyhow. A pod may mount any claim of its
    namespace, whoever made it."""
    for resource in (PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES):
        where = namespace if resource.namespaced else ""
        yield Need(resource=resource, namespace=where, places_pods=resource not in known)


def _mounts_claims(value: Any) -> bool:
    """Whether pods of this document have claims, wherever it has its templates."""
    if isinstance(value, Mapping):
        return any((key in _CLAIMS and bool(item)) or _mounts_claims(item) for key, item in value.items())
    return isinstance(value, list) and any(map(_mounts_claims, value))


def _asked_about_pods(features: Sequence[Feature], settings: Settings) -> Iterator[Resource[Any]]:
    """What admission makes of new pods depends on objects of these kinds. Of Kubernetes' own only namespaces are read:
    the others are on the way to a pod's workload, and that is the subject."""
    defined = {
        (one["spec"]["group"], one["spec"]["names"]["kind"]) for feature in features for one in feature.definitions
    }
    for feature in features:
        for mutation in feature.pod_mutations(settings):
            for kind in map(watched, mutation.needs):
                if kind.resource == NAMESPACES or (kind.resource.group, kind.resource.kind) in defined:
                    yield kind.resource


def _revisions(face: Face, document: Mapping[str, Any]) -> str:
    assert face.contribution is not None
    return f"{face.contribution.revision_label}={value_at(document, ('metadata', 'name'), '')}"


def _selector(resource: Resource[Any], whole: str, exact: str) -> str:
    if resource in _LABELLED:
        return whole
    # Claims get the labels that the selector names one by one, not those that its expressions ask for.
    return exact if resource == PERSISTENT_VOLUME_CLAIMS else ""
