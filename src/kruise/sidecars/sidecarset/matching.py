"""Which SidecarSets concern a pod, found by an index of their selectors (SCS-34 to SCS-37)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kruise.admission.coming import Expected
from kruise.api.apps.sidecarset import SIDECAR_SETS, SidecarSet
from kruise.api.meta import LabelSelector, controller_of
from kruise.api.native.apps import CONTROLLER_REVISIONS, ControllerRevision
from kruise.api.native.nodes import NAMESPACES
from kruise.api.versions import mapping
from kruise.machinery import codec
from kruise.machinery.selector_index import ALL_NAMESPACES, Selects
from kruise.machinery.selectors import SelectorError, from_label_selector
from kruise.machinery.spec import OWNER_INDEX
from kruise.machinery.store import Store
from kruise.machinery.watched import Watched
from kruise.sidecars.sidecarset import keys

PODS_OF, REVISIONS_OF = "pods-of-sidecarset", "revisions-of-sidecarset"


def is_empty(selector: LabelSelector | None) -> bool:
    return selector is None or not (selector.match_labels or selector.match_expressions)


def _selects(sidecar_set: SidecarSet) -> Iterator[Selects]:
    spec = sidecar_set.spec
    if not is_empty(spec.selector):
        yield Selects(spec.selector, ALL_NAMESPACES, spec.namespace_selector)


WATCHED_SETS = Watched(SIDECAR_SETS, selectors={PODS_OF: _selects})
"""What the pod webhook and the controller look sets up with."""
WATCHED_NAMESPACES = Watched(NAMESPACES)


def set_named_by(revision: ControllerRevision) -> tuple[str, ...]:
    """The name of the SidecarSet that a revision says it is of."""
    name = revision.metadata.labels.get(keys.NAME_LABEL)
    return (name,) if name else ()


WATCHED_REVISIONS = Watched(CONTROLLER_REVISIONS, indexes={REVISIONS_OF: set_named_by, **OWNER_INDEX})


def belongs_to(revision: ControllerRevision, sidecar_set: SidecarSet) -> bool:
    """Its own, and those that nobody owns; not those of a SidecarSet of the same name that is gone (SCS-74)."""
    reference = controller_of(revision)
    return reference is None or reference.uid == sidecar_set.metadata.uid


def pinned(sidecar_set: SidecarSet, named: Iterable[ControllerRevision]) -> ControllerRevision | None:
    """The revision that new pods are to get, among those `named` by the SidecarSet; None: there is no such one, or
    they get the present content (SCS-80)."""
    wanted = sidecar_set.spec.injection_strategy.revision
    if wanted is not None and wanted.revision_name:
        return next((one for one in named if one.metadata.name == wanted.revision_name), None)
    return newest_tagged(sidecar_set, named)


def newest_tagged(sidecar_set: SidecarSet, named: Iterable[ControllerRevision]) -> ControllerRevision | None:
    """Its newest revision with the tag that `injectionStrategy` names."""
    wanted = sidecar_set.spec.injection_strategy.revision
    if wanted is None or not wanted.custom_version:
        return None
    tagged = [
        one
        for one in named
        if belongs_to(one, sidecar_set) and one.metadata.labels.get(keys.CUSTOM_VERSION) == wanted.custom_version
    ]
    return max(tagged, key=lambda one: one.revision, default=None)


def why_unpinned(sidecar_set: SidecarSet) -> tuple[str, str]:
    """What is said where there is no such revision, so no pod that it selects can be made; and what helps."""
    wanted, name = sidecar_set.spec.injection_strategy.revision, sidecar_set.metadata.name
    what = (wanted.revision_name or f"with customVersion {wanted.custom_version}") if wanted is not None else ""
    return (
        f"SidecarSet {name} is to inject its revision {what}, which does not exist",
        "name another one in spec.injectionStrategy.revision, or remove that: kruise rollout history "
        f"sidecarset/{name}",
    )


def selecting(
    sets: Store[SidecarSet], labels: Mapping[str, str], namespace: str, namespace_labels: Mapping[str, str] | None
) -> tuple[SidecarSet, ...]:
    """The SidecarSets that select a pod, wherever they are in their lives."""
    return sets.selecting(PODS_OF, labels, namespace, namespace_labels)


def may_concern(expected: Expected, sets: Store[SidecarSet], labels: Mapping[str, str]) -> bool:
    """Whether a SidecarSet that the store may not show yet selects pods with these labels, or did so until now. What
    namespaces it is about is asked of the one that is read."""
    known = sets.get("", expected.target.name)
    try:
        # The selector is the same in both versions.
        coming = codec.convert(mapping(mapping(expected.body.get("spec")).get("selector")), LabelSelector)
    except codec.DecodeError:
        return True
    selectors = (coming, known.spec.selector if known is not None else None)
    return any(not is_empty(one) and selects_pod(one, labels) for one in selectors)


def needs_namespace(sets: Store[SidecarSet], labels: Mapping[str, str]) -> bool:
    """Whether it depends on the labels of its namespace which sets select a pod. This looks at all sets."""
    return any(
        one.spec.namespace_selector is not None
        and not is_empty(one.spec.selector)
        and selects_pod(one.spec.selector, labels)
        for one in sets.list()
    )


def base_of(sidecar_set: SidecarSet) -> str:
    """Of a canary, the SidecarSet whose place it takes; empty for others (SCS-20)."""
    annotations = sidecar_set.metadata.annotations
    return annotations.get(keys.BASE, "") if annotations.get(keys.CANARY) == "true" else ""


def names_namespace(selector: LabelSelector | None, namespace: str) -> bool:
    """Whether a selector of namespaces names this very one (SCS-36)."""
    if selector is None:
        return False
    if selector.match_labels.get(keys.NAMESPACE_NAME) == namespace:
        return True
    return any(
        term.key == keys.NAMESPACE_NAME and term.operator == "In" and namespace in term.values
        for term in selector.match_expressions
    )


def applying(found: Iterable[SidecarSet], namespace: str) -> list[SidecarSet]:
    """Those that put sidecars into a new pod, in order: without those that pause, and without bases of canaries."""
    active = [
        one for one in found if not one.spec.injection_strategy.paused and one.metadata.deletion_timestamp is None
    ]
    replaced = {base_of(one) for one in active}
    kept = [one for one in active if one.metadata.name not in replaced]

    def place(one: SidecarSet) -> tuple[bool, str]:
        return not names_namespace(one.spec.namespace_selector, namespace), one.metadata.name

    return sorted(kept, key=place)


def selects_pod(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether the selector of an update strategy lets a pod be updated; an invalid one lets none."""
    if selector is None:
        return True
    try:
        return from_label_selector(selector).matches(labels)
    except SelectorError:
        return False
