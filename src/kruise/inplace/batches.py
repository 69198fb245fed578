"""Applying an update to a pod, in batches by launch priority (IPU section 9, IPU-38, IPU-42).

Containers that were started in an order are updated in that order: the highest priority first, the others when it runs
and is ready. What a batch leaves for later is kept in the update state, so each step needs nothing but the pod.

Every edit made here is exact: it belongs to the pod in the update that it was seen in, and to no other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from kruise.api.meta import ObjectMeta
from kruise.api.native.apps import ControllerRevision
from kruise.api.native.pod import Container, Pod
from kruise.inplace import keys
from kruise.inplace.barriers import priority_of
from kruise.inplace.edits import PodEdit
from kruise.inplace.resizing import refused_resize
from kruise.inplace.state import (
    BatchRecord,
    LastStatus,
    PreCheck,
    RefMetadata,
    Resources,
    UpdateSpec,
    UpdateState,
    grace_json,
    state_json,
)
from kruise.machinery import codec
from kruise.machinery.codec import Struct

NOTHING_OPEN = UpdateState()
_MOST_OVERTAKEN = 20
"""Images in between that are remembered of a container, the last ones. It may be stuck while a new image is built each
hour, and what stands in annotations has an end."""
_DELETED_FINALIZERS = "$deleteFromPrimitiveList/finalizers"


def first_batch(
    pod: Pod, spec: UpdateSpec, *, now: datetime, previous: UpdateState | None, overtaken: UpdateState = NOTHING_OPEN
) -> PodEdit:
    """Begin an update: metadata, and the first batch of containers (IPU-50 to IPU-53).

    `previous` is the state that `grace_start` wrote, when that grace period is over: the update keeps the time of its
    begin. None begins a new update, whatever the pod went through before. `overtaken` is what is left to wait for of
    the one that it overtakes.
    """
    state = previous if previous is not None else _begun(spec, now, overtaken)
    return _metadata(pod, spec.meta_data_patch).merged(
        _batch(pod, state, spec.container_images, spec.container_ref_metadata, spec.container_resources, now)
    )


def next_batch(pod: Pod, state: UpdateState, *, now: datetime) -> PodEdit:
    """Apply the batch after the one that has arrived. The caller has seen to it that the last one is ready (IPU-71)."""
    return _batch(
        pod,
        state,
        state.next_container_images,
        state.next_container_ref_metadata,
        state.next_container_resources,
        now,
    )


def grace_start(pod: Pod, spec: UpdateSpec, *, now: datetime, overtaken: UpdateState = NOTHING_OPEN) -> PodEdit:
    """Only note down the update, to be applied when its grace period is over (IPU-42)."""
    annotations = _state_annotation(pod, _begun(spec, now, overtaken))
    annotations[keys.UPDATE_GRACE_ANNOTATION] = grace_json(spec)
    if keys.OLD_UPDATE_GRACE_ANNOTATION in pod.metadata.annotations:
        annotations[keys.OLD_UPDATE_GRACE_ANNOTATION] = None
    return PodEdit(annotations=annotations, exact=True)


def without_grace(pod: Pod) -> dict[str, str | None]:
    """The annotation changes that take the pod out of its grace period, in both spellings."""
    names = (keys.UPDATE_GRACE_ANNOTATION, keys.OLD_UPDATE_GRACE_ANNOTATION)
    return {name: None for name in names if name in pod.metadata.annotations}


def _begun(spec: UpdateSpec, now: datetime, overtaken: UpdateState) -> UpdateState:
    return UpdateState(
        revision=spec.revision,
        update_timestamp=now,
        last_container_statuses=overtaken.last_container_statuses,
        update_env_from_metadata=spec.update_env_from_metadata or overtaken.update_env_from_metadata,
        update_resources=bool(spec.container_resources) or overtaken.update_resources,
        update_images=bool(spec.container_images or overtaken.last_container_statuses),
        container_batches_record=overtaken.container_batches_record,
    )


def _state_annotation(pod: Pod, state: UpdateState) -> dict[str, str | None]:
    annotations: dict[str, str | None] = {keys.UPDATE_STATE_ANNOTATION: state_json(state)}
    if keys.OLD_UPDATE_STATE_ANNOTATION in pod.metadata.annotations:
        annotations[keys.OLD_UPDATE_STATE_ANNOTATION] = None
    return annotations


def _metadata(pod: Pod, patch: Mapping[str, Any]) -> PodEdit:
    """The template's own labels, annotations and finalizers (IPU-50). Nothing else of a pod's metadata can change."""
    metadata = patch.get("metadata")
    if not isinstance(metadata, Mapping):
        return PodEdit(exact=True)
    return PodEdit(
        labels=_changes(pod.metadata.labels, metadata.get("labels")),
        annotations=_changes(pod.metadata.annotations, metadata.get("annotations")),
        add_finalizers=tuple(
            name for name in _names(metadata.get("finalizers")) if name not in pod.metadata.finalizers
        ),
        remove_finalizers=tuple(
            name for name in _names(metadata.get(_DELETED_FINALIZERS)) if name in pod.metadata.finalizers
        ),
        exact=True,
    )


def _changes(present: Mapping[str, str], wanted: Any) -> dict[str, str | None]:
    if not isinstance(wanted, Mapping):
        return {}
    return {
        name: value for name, value in wanted.items() if isinstance(value, str) or (value is None and name in present)
    }


def _names(value: Any) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


def _batch(
    pod: Pod,
    state: UpdateState,
    images: Mapping[str, str],
    references: Mapping[str, RefMetadata],
    resources: Mapping[str, Resources],
    now: datetime,
) -> PodEdit:
    concerned = [
        container
        for container in pod.spec.containers
        if container.name in images or container.name in references or container.name in resources
    ]
    # A container that the pod does not have is in no batch; waiting for it would never end.
    names = {container.name for container in concerned}
    chosen = _chosen(concerned, references)
    # As long as a node refuses what one container asks for, it grants nothing to any other: these go together.
    resized = names if refused_resize(pod) is not None else chosen
    labels: dict[str, str | None] = {}
    annotations: dict[str, str | None] = {}
    for name in sorted(chosen & references.keys()):
        labels.update(references[name].labels)
        annotations.update(references[name].annotations)
    changed = {name: image for name, image in images.items() if name in chosen}
    batch = tuple(sorted(chosen))
    after = codec.evolve(
        state,
        last_container_statuses=_last_statuses(pod, state, changed),
        next_container_images={name: image for name, image in images.items() if name in names - chosen},
        next_container_ref_metadata={name: found for name, found in references.items() if name in names - chosen},
        next_container_resources={name: found for name, found in resources.items() if name in names - resized},
        pre_check_before_next=None,
        container_batches_record=(*_records_without(state, chosen), BatchRecord(timestamp=now, containers=batch)),
    )
    if after.has_next:
        after = codec.evolve(after, pre_check_before_next=PreCheck(containers_required_ready=batch))
    return PodEdit(
        labels=labels,
        annotations={**annotations, **without_grace(pod), **_state_annotation(pod, after)},
        images=changed,
        resources={name: found for name, found in resources.items() if name in resized},
        exact=True,
    )


def _records_without(state: UpdateState, changed: Collection[str]) -> Iterator[BatchRecord]:
    """Of a container that an overtaken update changed, too, the later change counts."""
    for record in state.container_batches_record:
        left = tuple(name for name in record.containers if name not in changed)
        if left or not record.containers:
            yield codec.evolve(record, containers=left)


def _last_statuses(pod: Pod, state: UpdateState, changed: Mapping[str, str]) -> dict[str, LastStatus] | None:
    statuses = dict(state.last_container_statuses or {})
    wanted = {container.name: container.image for container in pod.spec.containers}
    for status in pod.status.container_statuses:
        name = status.name
        if name not in changed:
            continue
        # Where an entry is there already, the update that wrote it is overtaken.
        before = statuses.get(name)
        overtaken = dict.fromkeys((*before.overtaken, wanted.get(name, ""))) if before is not None else {}
        passed = tuple(image for image in overtaken if image != changed[name])
        statuses[name] = LastStatus(image_id=status.image_id, overtaken=passed[-_MOST_OVERTAKEN:])
    return statuses or None


def _chosen(concerned: Iterable[Container], references: Mapping[str, RefMetadata]) -> set[str]:
    """Containers without a priority, and those of the highest one (IPU-51), with all readers of what they read."""
    priorities = {container.name: priority_of(container) for container in concerned}
    highest = max((priority for priority in priorities.values() if priority is not None), default=None)
    chosen = {name for name, priority in priorities.items() if priority is None or priority == highest}
    waiting = priorities.keys() - chosen
    return _with_fellow_readers(chosen, waiting, references) if waiting and references else chosen


def _with_fellow_readers(chosen: set[str], waiting: set[str], references: Mapping[str, RefMetadata]) -> set[str]:
    """A label has one value, so all who read it have to restart together, whatever their priority (IPU-52)."""
    result = set(chosen)
    left = {name: _read(references[name]) for name in waiting if name in references}
    shared = set[tuple[str, str]]().union(*(_read(references[name]) for name in chosen if name in references))
    while joining := {name for name, read in left.items() if not read.isdisjoint(shared)}:
        result |= joining
        for name in joining:
            shared |= left.pop(name)
    return result


def _read(found: RefMetadata) -> set[tuple[str, str]]:
    return {("label", key) for key in found.labels} | {("annotation", key) for key in found.annotations}


# An update that a newer one overtakes


class _TemplateSpec(Struct):
    containers: tuple[Container, ...] = ()


class _Template(Struct):
    metadata: ObjectMeta = ObjectMeta()
    spec: _TemplateSpec = _TemplateSpec()


class _DataSpec(Struct):
    template: _Template = _Template()


class _Data(Struct):
    spec: _DataSpec = _DataSpec()


def carried_over(spec: UpdateSpec, previous: UpdateState, new: ControllerRevision) -> UpdateSpec:
    """The update, with what an overtaken one had left for later batches (IPU-38).

    The pod carries the revision of the overtaken update already, so the difference between the revisions knows nothing
    of containers that had not had their turn. They get what the new template says.
    """
    if not previous.has_next:
        return spec
    template = codec.decode(new.data, _Data).spec.template
    containers = {container.name: container for container in template.spec.containers}
    images = {
        name: containers[name].image for name in previous.next_container_images if name in containers
    } | spec.container_images
    references = dict(spec.container_ref_metadata)
    for name, left in previous.next_container_ref_metadata.items():
        if name in containers:
            _carry_references(references, name, left, template.metadata)
    resources = dict(spec.container_resources)
    for name, left_resources in previous.next_container_resources.items():
        if name in containers:
            _carry_resources(resources, name, left_resources, containers[name])
    return codec.evolve(
        spec,
        container_images=images,
        container_ref_metadata=references,
        container_resources=resources,
        update_env_from_metadata=bool(references),
    )


def _carry_references(references: dict[str, RefMetadata], name: str, left: RefMetadata, template: ObjectMeta) -> None:
    # What the new template no longer has is removed from the pod by the metadata patch.
    labels = {key: template.labels[key] for key in left.labels if key in template.labels}
    annotations = {key: template.annotations[key] for key in left.annotations if key in template.annotations}
    if labels or annotations:
        known = references.get(name, RefMetadata())
        references[name] = RefMetadata(labels=labels | known.labels, annotations=annotations | known.annotations)


def _carry_resources(resources: dict[str, Resources], name: str, left: Resources, container: Container) -> None:
    limits, requests = container.resources.limits, container.resources.requests
    # A pod's request follows its limit where the template has none.
    implied = {**limits, **requests}
    known = resources.get(name, Resources())
    resources[name] = Resources(
        limits={key: limits[key] for key in left.limits if key in limits} | known.limits,
        requests={key: implied[key] for key in left.requests if key in implied} | known.requests,
    )
