"""A change of one pod as a value, and the fewest requests that make it.

The parts of a pod are written through three doors: `pods/status`, `pods/resize` and the pod itself. A status patch may
carry labels, annotations and finalizers too, so a change of conditions and metadata is one request.

How a request is guarded depends on what it may not overrule:

* Plain changes are strategic merge patches: conditions merge by type, nobody else's values are touched.
* An *exact* change belongs to the very update that was looked at. It is a JSON patch that tests the revision label and
  the update state annotation, so that a pod that began another update meanwhile stays as it is (IPU-72). So is every
  change of images and resources.
* The message of `KruisePodReady` is a list that several writers share (IPU-82): its change tests the old message.

A JSON patch names a condition by its place and tests that it is there. Places hardly ever change between the look and
the write: a merge patch moves the conditions it names to the front, and a kubelet names all of its own in the first
report after each change of a pod.

A JSON patch cannot say "append unless it is there", and the server accepts two conditions of one type. Where such a
change needs a condition that the pod lacks, a merge patch with the resourceVersion takes its place.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kruise.api.meta import Condition
from kruise.api.native.pod import PODS, Container, Pod
from kruise.inplace import keys
from kruise.machinery import plan as plans
from kruise.machinery.client.requests import PatchType
from kruise.machinery.patches.json_patch import escape, pointer
from kruise.machinery.plan import Action, Chain, Target
from kruise.machinery.quantity import QuantityError, parse_quantity
from kruise.machinery.times import format_time

if TYPE_CHECKING:
    from kruise.inplace.state import Resources

Amount = str | int | float
_CONDITIONS = "/status/conditions"
_FINALIZERS = "/metadata/finalizers"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PodEdit:
    """What is to be different about a pod. None as the value of a label or annotation takes it away."""

    labels: Mapping[str, str | None] = dataclasses.field(default_factory=dict)
    annotations: Mapping[str, str | None] = dataclasses.field(default_factory=dict)
    add_finalizers: tuple[str, ...] = ()
    remove_finalizers: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    """Whole, as they are to be."""
    images: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """By container name; names that the pod lacks count for nothing."""
    resources: Mapping[str, Resources] = dataclasses.field(default_factory=dict)
    """By container name: only the entries that change."""
    exact: bool = False
    """Only while the pod carries the revision label and the update state that it was seen with."""

    @property
    def is_empty(self) -> bool:
        return not (
            self.labels
            or self.annotations
            or self.add_finalizers
            or self.remove_finalizers
            or self.conditions
            or self.images
            or self.resources
        )

    def merged(self, other: PodEdit) -> PodEdit:
        """Both edits in one; where they disagree, the other one wins."""
        if other.is_empty:
            return self if self.exact or not other.exact else dataclasses.replace(self, exact=True)
        return PodEdit(
            labels={**self.labels, **other.labels},
            annotations={**self.annotations, **other.annotations},
            add_finalizers=_joined(self.add_finalizers, other.add_finalizers, without=other.remove_finalizers),
            remove_finalizers=_joined(self.remove_finalizers, other.remove_finalizers, without=other.add_finalizers),
            conditions=tuple({item.type: item for item in (*self.conditions, *other.conditions)}.values()),
            images={**self.images, **other.images},
            resources={**self.resources, **other.resources},
            exact=self.exact or other.exact,
        )


NO_EDIT = PodEdit()


def _joined(first: Sequence[str], second: Sequence[str], *, without: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*(name for name in first if name not in without), *second)))


def writes(pod: Pod, edit: PodEdit, *, reason: str, resize_subresource: bool = True) -> Chain:
    """The requests that make the edit, in order: conditions, resources, then everything else.

    The revision label and the update state come last, so that a chain that broke off is begun anew: what was done
    already does no harm the second time.
    """
    metadata = _metadata_change(pod, edit)
    resources = _differing_resources(pod, edit.resources)
    in_spec = {} if resize_subresource else resources
    images = _images(pod, edit.images)
    rides_along = bool(edit.conditions) and not (images or resources)
    chain: list[Action] = []
    if edit.conditions:
        chain.append(_status(pod, edit, metadata if rides_along else _NO_CHANGE, reason))
    if resources and resize_subresource:
        containers = [{"name": name, "resources": amounts} for name, amounts in resources.items()]
        body = {"spec": {"containers": containers}}
        chain.append(_patch(pod, body, PatchType.STRATEGIC, reason, "resize"))
    if images or in_spec or (metadata.is_needed and not rides_along):
        if edit.exact or images or resources:
            operations = [
                *_same_update(pod),
                *(operation for index, image in images.items() for operation in _image(pod, index, image)),
                *_resources(pod, in_spec),
                *metadata.operations(pod),
            ]
            chain.append(_patch(pod, operations, PatchType.JSON, reason))
        else:
            chain.append(_patch(pod, metadata.merge_patch(), PatchType.STRATEGIC, reason))
    return tuple(chain)


def _patch(
    pod: Pod, body: Any, patch_type: PatchType, reason: str, subresource: str = "", resource_version: str = ""
) -> Action:
    return plans.patch(
        Target.of(PODS, pod),
        body,
        uid=pod.metadata.uid,
        reason=reason,
        patch_type=patch_type,
        subresource=subresource,
        resource_version=resource_version,
    )


# Labels, annotations, finalizers


@dataclasses.dataclass(frozen=True, slots=True)
class _MetadataChange:
    """What of an edit's metadata the pod does not have yet."""

    labels: Mapping[str, str | None]
    annotations: Mapping[str, str | None]
    add_finalizers: tuple[str, ...]
    remove_finalizers: tuple[str, ...]

    @property
    def is_needed(self) -> bool:
        return bool(self.labels or self.annotations or self.add_finalizers or self.remove_finalizers)

    def merge_patch(self) -> dict[str, Any]:
        """A strategic merge patch; empty where there is nothing to change."""
        metadata: dict[str, Any] = {}
        if self.labels:
            metadata["labels"] = dict(self.labels)
        if self.annotations:
            metadata["annotations"] = dict(self.annotations)
        if self.add_finalizers:
            metadata["finalizers"] = list(self.add_finalizers)
        if self.remove_finalizers:
            metadata["$deleteFromPrimitiveList/finalizers"] = list(self.remove_finalizers)
        return {"metadata": metadata} if metadata else {}

    def operations(self, pod: Pod) -> list[dict[str, Any]]:
        operations = _of_map("labels", pod.metadata.labels, self.labels)
        operations += _of_map("annotations", pod.metadata.annotations, self.annotations)
        if self.add_finalizers or self.remove_finalizers:
            seen = pod.metadata.finalizers
            wanted = [*(name for name in seen if name not in self.remove_finalizers), *self.add_finalizers]
            # The whole list is tested: a place in it says nothing once somebody else has written.
            operations.append({"op": "test", "path": _FINALIZERS, "value": list(seen) or None})
            if wanted:
                operations.append({"op": "add", "path": _FINALIZERS, "value": wanted})
            else:
                operations.append({"op": "remove", "path": _FINALIZERS})
        return operations


_NO_CHANGE = _MetadataChange({}, {}, (), ())


def _metadata_change(pod: Pod, edit: PodEdit) -> _MetadataChange:
    there = pod.metadata.finalizers
    return _MetadataChange(
        _differing(pod.metadata.labels, edit.labels),
        _differing(pod.metadata.annotations, edit.annotations),
        tuple(name for name in edit.add_finalizers if name not in there),
        tuple(name for name in edit.remove_finalizers if name in there),
    )


def _differing(seen: Mapping[str, str], wanted: Mapping[str, str | None]) -> dict[str, str | None]:
    return {name: value for name, value in wanted.items() if seen.get(name) != value}


def _of_map(name: str, seen: Mapping[str, str], changes: Mapping[str, str | None]) -> list[dict[str, Any]]:
    if not changes:
        return []
    if not seen:
        # An empty map is not there at all on the server, so it has to be made, over nobody's head.
        path = f"/metadata/{name}"
        added = {key: value for key, value in changes.items() if value is not None}
        return [{"op": "test", "path": path, "value": None}, {"op": "add", "path": path, "value": added}]
    operations: list[dict[str, Any]] = []
    for key, value in changes.items():
        path = f"/metadata/{name}/{escape(key)}"
        operations.append({"op": "remove", "path": path} if value is None else _add(path, value))
    return operations


def _add(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


def _same_update(pod: Pod) -> list[dict[str, Any]]:
    """Tests that the pod is in the very update that it was seen in."""
    metadata = pod.metadata
    return [
        _is_still("labels", metadata.labels, keys.REVISION_LABEL),
        _is_still("annotations", metadata.annotations, keys.UPDATE_STATE_ANNOTATION),
    ]


def _is_still(name: str, seen: Mapping[str, str], key: str) -> dict[str, Any]:
    path = f"/metadata/{name}/{escape(key)}" if seen else f"/metadata/{name}"
    return {"op": "test", "path": path, "value": seen.get(key)}


# Conditions


def _status(pod: Pod, edit: PodEdit, metadata: _MetadataChange, reason: str) -> Action:
    places = {item.type: place for place, item in enumerate(pod.status.conditions)}
    shared = _changes_message(pod, edit.conditions, places)
    guarded = edit.exact or shared
    if guarded and all(item.type in places for item in edit.conditions):
        operations = _same_update(pod) if edit.exact else []
        for item in edit.conditions:
            operations += _in_place(pod, item, places[item.type])
        operations += metadata.operations(pod)
        return _patch(pod, operations, PatchType.JSON, reason, "status")
    conditions = [
        _merged_condition(item, pod.status.conditions[places[item.type]] if item.type in places else None)
        for item in edit.conditions
    ]
    body = {**metadata.merge_patch(), "status": {"conditions": conditions}}
    version = pod.metadata.resource_version if guarded else ""
    return _patch(pod, body, PatchType.STRATEGIC, reason, "status", version)


def _changes_message(pod: Pod, conditions: Sequence[Condition], places: Mapping[str, int]) -> bool:
    for item in conditions:
        if item.type == keys.KRUISE_POD_READY:
            place = places.get(item.type)
            return item.message != ("" if place is None else pod.status.conditions[place].message)
    return False


def _in_place(pod: Pod, wanted: Condition, place: int) -> list[dict[str, Any]]:
    path = f"{_CONDITIONS}/{place}"
    seen = pod.status.conditions[place]
    operations: list[dict[str, Any]] = [{"op": "test", "path": f"{path}/type", "value": wanted.type}]
    if wanted.type == keys.KRUISE_POD_READY and wanted.message != seen.message:
        operations.append({"op": "test", "path": f"{path}/message", "value": seen.message or None})
    value: dict[str, Any] = {
        "type": wanted.type,
        "status": wanted.status,
        "lastProbeTime": _time(wanted.last_probe_time),
        "lastTransitionTime": _time(wanted.last_transition_time),
    }
    if wanted.reason:
        value["reason"] = wanted.reason
    if wanted.message:
        value["message"] = wanted.message
    if wanted.observed_generation:
        value["observedGeneration"] = wanted.observed_generation
    operations.append({"op": "replace", "path": path, "value": value})
    return operations


def _merged_condition(wanted: Condition, seen: Condition | None) -> dict[str, Any]:
    value: dict[str, Any] = {
        "type": wanted.type,
        "status": wanted.status,
        "lastTransitionTime": _time(wanted.last_transition_time),
    }
    if wanted.reason or seen is not None:
        value["reason"] = wanted.reason
    if wanted.message or seen is not None:
        value["message"] = wanted.message
    return value


def _time(value: Any) -> str | None:
    return None if value is None else format_time(value)


# Containers


def _images(pod: Pod, images: Mapping[str, str]) -> dict[int, str]:
    if not images:
        return {}
    return {
        place: images[container.name] for place, container in enumerate(pod.spec.containers) if container.name in images
    }


def _image(pod: Pod, place: int, image: str) -> list[dict[str, Any]]:
    return [
        _is_container(pod, place),
        {"op": "replace", "path": f"/spec/containers/{place}/image", "value": image},
    ]


def _is_container(pod: Pod, place: int) -> dict[str, Any]:
    return {"op": "test", "path": f"/spec/containers/{place}/name", "value": pod.spec.containers[place].name}


def _differing_resources(pod: Pod, resources: Mapping[str, Resources]) -> dict[str, dict[str, dict[str, Amount]]]:
    """The entries that differ from what the pod has now (IPU-55), so that a second try sends nothing twice."""
    if not resources:
        return {}
    differing: dict[str, dict[str, dict[str, Amount]]] = {}
    for container in pod.spec.containers:
        wanted = resources.get(container.name)
        if wanted is None:
            continue
        amounts = {
            kind: changed
            for kind, seen, entries in (
                ("limits", container.resources.limits, wanted.limits),
                ("requests", container.resources.requests, wanted.requests),
            )
            if (changed := {name: amount for name, amount in entries.items() if not _equal(seen.get(name), amount)})
        }
        if amounts:
            differing[container.name] = amounts
    return differing


def _equal(seen: Amount | None, wanted: Amount) -> bool:
    if seen is None:
        return False
    try:
        return parse_quantity(seen) == parse_quantity(wanted)
    except QuantityError:
        return seen == wanted


def _resources(pod: Pod, resources: Mapping[str, Mapping[str, Mapping[str, Amount]]]) -> list[dict[str, Any]]:
    """For servers that take resources with the pod itself (before 1.32)."""
    operations: list[dict[str, Any]] = []
    for place, container in enumerate(pod.spec.containers):
        amounts = resources.get(container.name)
        if amounts is None:
            continue
        operations.append(_is_container(pod, place))
        for kind, entries in amounts.items():
            operations += _amounts(container, place, kind, entries)
    return operations


def _amounts(container: Container, place: int, kind: str, entries: Mapping[str, Amount]) -> list[dict[str, Any]]:
    path = ("spec", "containers", place, "resources", kind)
    there = container.resources.limits if kind == "limits" else container.resources.requests
    if not there:
        return [_add(pointer(*path), dict(entries))]
    return [_add(pointer(*path, name), amount) for name, amount in entries.items()]
