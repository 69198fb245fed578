"""How a StatefulSet is watched, and what it brings to the manager."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kruise.api.apps.definitions.statefulset import DEFINITION
from kruise.api.apps.statefulset import STATEFUL_SETS, StatefulSet
from kruise.api.meta import Key, key_of
from kruise.api.native.ordinals import claim_name, ordinal_of, parent_and_ordinal, pod_name
from kruise.api.native.pod import PODS, Pod
from kruise.api.native.storage import (
    PERSISTENT_VOLUME_CLAIMS,
    STORAGE_CLASSES,
    PersistentVolumeClaim,
    StorageClass,
)
from kruise.feature import Feature, Settings
from kruise.machinery.ownership import is_controlled_by
from kruise.machinery.selectors import SelectorError, from_label_selector
from kruise.machinery.spec import (
    OWNER_INDEX,
    ControllerSpec,
    Source,
    Stores,
    View,
    own_key,
    owner_keys,
)
from kruise.machinery.watched import Watched
from kruise.workloads.shared.adoption import ADOPTERS, WATCHED_PODS, orphans_for, pod_keys
from kruise.workloads.shared.claims import claim_templates
from kruise.workloads.shared.ordinals import START_GATE, ordinals_of
from kruise.workloads.shared.reading import (
    PRE_DOWNLOAD_GATE,
    WATCHED_REVISIONS,
    common_sources,
    common_to_snapshots,
    pace_of,
    tasks_of,
)
from kruise.workloads.statefulset.admission import ADMISSION
from kruise.workloads.statefulset.claim_templates import GROWTH_GATE
from kruise.workloads.statefulset.conclude import conclude
from kruise.workloads.statefulset.decide import decide
from kruise.workloads.statefulset.events import events
from kruise.workloads.statefulset.situation import Snapshot

NAME = "statefulset-controller"
_CLAIMS = "claims"
"""Index of the StatefulSets by what the names of their claims begin with."""
_CLASSES = "claims/class"
"""Index of claims by their class."""


def _claim_prefixes(statefulset: StatefulSet) -> Iterator[str]:
    namespace, name = statefulset.metadata.namespace, statefulset.metadata.name
    for template in claim_templates(statefulset.spec.volume_claim_templates):
        yield f"{namespace}/{template.name}-{name}"


class _Snapshots:
    """Reads what a pass needs from the stores, under the settings of this process."""

    def __init__(self, settings: Settings) -> None:
        self._pulls_images = settings.gates.get(PRE_DOWNLOAD_GATE, False)
        self._grows = settings.gates.get(GROWTH_GATE, False)

    def __call__(self, view: View, key: Key) -> Snapshot | None:
        statefulset = view.store(STATEFUL_SETS).get(*key)
        if statefulset is None:
            return None
        try:
            if from_label_selector(statefulset.spec.selector).is_empty:
                return None  # it would take every pod of the namespace; admission refuses it
        except SelectorError:
            return None  # admission refuses it; trying again cannot help
        seen = common_to_snapshots(view, statefulset, pulls_images=self._pulls_images)
        wanted = ordinals_of(statefulset.spec, start_counts=view.gates.get(START_GATE, False))
        claims = tuple(_claims(view, statefulset, {*wanted, *_ordinals(seen["pods"])}))
        return Snapshot(
            statefulset=statefulset,
            others=_others(view, statefulset, wanted),
            claims=claims,
            storage_classes=tuple(_classes(view, claims)) if self._grows else (),
            **seen,
        )


def _ordinals(pods: Iterable[Pod]) -> Iterator[int]:
    for pod in pods:
        if (ordinal := ordinal_of(pod.metadata.name)) is not None:
            yield ordinal


def _others(view: View, statefulset: StatefulSet, wanted: Iterable[int]) -> tuple[Pod, ...]:
    """Orphans that it may adopt, and pods of others that have a name it wants."""
    store, metadata = view.store(PODS), statefulset.metadata
    found = {pod.metadata.name: pod for pod in orphans_for(view, statefulset)}
    for ordinal in wanted:
        pod = store.get(metadata.namespace, pod_name(metadata.name, ordinal))
        if pod is not None and not is_controlled_by(pod, metadata.uid):
            found[pod.metadata.name] = pod
    return tuple(found.values())


def _claims(view: View, statefulset: StatefulSet, ordinals: Iterable[int]) -> Iterator[PersistentVolumeClaim]:
    store, metadata = view.store(PERSISTENT_VOLUME_CLAIMS), statefulset.metadata
    templates = claim_templates(statefulset.spec.volume_claim_templates)
    if not templates:
        return
    for ordinal in sorted(ordinals):
        for template in templates:
            claim = store.get(metadata.namespace, claim_name(template.name, metadata.name, ordinal))
            if claim is not None:
                yield claim


def _classes(view: View, claims: Iterable[PersistentVolumeClaim]) -> Iterator[StorageClass]:
    store = view.store(STORAGE_CLASSES)
    for name in sorted({claim.spec.storage_class_name for claim in claims if claim.spec.storage_class_name}):
        if (found := store.get("", name)) is not None:
            yield found


_owners_and_adopters = pod_keys(STATEFUL_SETS)


def _pod_keys(old: Pod | None, new: Pod | None, stores: Stores) -> Iterator[Key]:
    """Also the StatefulSet whose pod has the name: one that belongs to somebody else is in its way."""
    yield from _owners_and_adopters(old, new, stores)
    pod = new if new is not None else old
    if pod is None:
        return
    parent, ordinal = parent_and_ordinal(pod.metadata.name)
    found = stores.store(STATEFUL_SETS).get(pod.metadata.namespace, parent) if ordinal is not None else None
    if found is not None and not is_controlled_by(pod, found.metadata.uid):
        yield key_of(found)


def _claim_keys(old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None, stores: Stores) -> Iterator[Key]:
    """The StatefulSets one of whose claims has this name (ST-46, and claims that vanish under a pod, ST-84)."""
    claim = new if new is not None else old
    if claim is None:
        return
    prefix, ordinal = parent_and_ordinal(claim.metadata.name)
    if ordinal is not None:
        found = stores.store(STATEFUL_SETS).by_index(_CLAIMS, f"{claim.metadata.namespace}/{prefix}")
        yield from map(key_of, found)


def _by_class(claim: PersistentVolumeClaim) -> tuple[str, ...]:
    return (claim.spec.storage_class_name,) if claim.spec.storage_class_name else ()


def _class_keys(old: StorageClass | None, new: StorageClass | None, stores: Stores) -> Iterator[Key]:
    """The StatefulSets with claims of a class that lets them grow now, or does no longer (ST-94)."""
    grew, grows = (item is not None and bool(item.allow_volume_expansion) for item in (old, new))
    changed = new if new is not None else old
    if changed is None or grew == grows:
        return
    found: set[Key] = set()
    for claim in stores.store(PERSISTENT_VOLUME_CLAIMS).by_index(_CLASSES, changed.metadata.name):
        found.update(_claim_keys(None, claim, stores))
    yield from found


def controllers(settings: Settings) -> tuple[ControllerSpec[Snapshot], ...]:
    sets = Watched(STATEFUL_SETS, indexes={_CLAIMS: _claim_prefixes}, selectors=ADOPTERS)
    grows = settings.gates.get(GROWTH_GATE, False)
    classes = (Source(STORAGE_CLASSES, _class_keys),) if grows else ()
    claim_indexes = {**OWNER_INDEX, _CLASSES: _by_class} if grows else OWNER_INDEX
    return (
        ControllerSpec(
            name=NAME,
            subject=STATEFUL_SETS,
            snapshot_type=Snapshot,
            snapshot=_Snapshots(settings),
            decide=decide,
            conclude=conclude,
            events=events,
            sources=(
                Source(sets, own_key),
                Source(WATCHED_PODS, _pod_keys),
                Source(Watched(PERSISTENT_VOLUME_CLAIMS, indexes=claim_indexes), _claim_keys),
                Source(WATCHED_REVISIONS, owner_keys(STATEFUL_SETS)),
                *classes,
                *common_sources(settings, STATEFUL_SETS, PRE_DOWNLOAD_GATE),
            ),
            workers=tasks_of(settings, "statefulset"),
            pace=lambda snapshot: pace_of(len(snapshot.pods)),
        ),
    )


FEATURE = Feature(
    name="statefulset",
    definitions=(DEFINITION,),
    controllers=controllers,
    webhooks=ADMISSION.webhooks,
    conversions=(ADMISSION.conversion,),
)
