"""Pods whose containers start in order: each container waits for the key of its priority (CLP A2). Pure."""

from __future__ import annotations

from typing import Any

from kruise.admission.chain import StepContext
from kruise.admission.decisions import Change, Deny, Mutation
from kruise.admission.launch_order import ANNOTATION, ORDERED, PriorityError, asked_priority, variables_of
from kruise.inplace import keys
from kruise.inplace.barriers import config_name, key_of
from kruise.machinery.names import SUBDOMAIN_MAX, child_name, derived_suffix
from kruise.sidecars.launch_priority.barrier import DONE

Json = dict[str, Any]


def order(pod: Json, context: StepContext) -> Mutation | None:
    """The pod with barriers; None: its containers start together."""
    metadata, spec = pod.get("metadata"), pod.get("spec")
    containers = spec.get("containers") if isinstance(spec, dict) else None
    if not isinstance(metadata, dict) or not isinstance(spec, dict) or not isinstance(containers, list):
        return None
    if len(containers) < 2 or not all(isinstance(container, dict) for container in containers):
        return None
    priorities = _priorities(metadata, containers)
    if isinstance(priorities, Deny):
        return priorities
    if len(set(priorities)) == 1:
        return None
    name = metadata.get("name") or ""
    if not name and metadata.get("generateName"):
        # The ConfigMap is named after the pod, so the name has to be known now (CLP-7).
        name = child_name(str(metadata["generateName"]), derived_suffix(context.request.uid))
    if not name:
        return None  # the API server has something to say about that
    barrier = config_name(name)
    if len(barrier) > SUBDOMAIN_MAX:
        words = (
            f"metadata.name: with container launch priority it may have {SUBDOMAIN_MAX - len('-barrier')} characters"
        )
        return Deny(message=f"{words}, since a ConfigMap is named after the pod", code=400, reason="BadRequest")
    waiting = [_waiting(item, barrier, key_of(rank)) for item, rank in zip(containers, priorities, strict=True)]
    metadata = {**_not_done(metadata), "name": name}
    return Change(object={**pod, "metadata": metadata, "spec": {**spec, "containers": waiting}})


def _not_done(metadata: Json) -> Json:
    """Copied from another pod, the annotation would open all barriers at once."""
    annotations = metadata.get("annotations")
    if not isinstance(annotations, dict) or DONE not in annotations:
        return metadata
    return {**metadata, "annotations": {key: value for key, value in annotations.items() if key != DONE}}


def _priorities(metadata: Json, containers: list[Json]) -> list[int] | Deny:
    annotations = metadata.get("annotations")
    if isinstance(annotations, dict) and annotations.get(ANNOTATION) == ORDERED:
        return [-position for position in range(len(containers))]
    found = []
    for position, container in enumerate(containers):
        try:
            found.append(asked_priority(container))
        except PriorityError as error:
            return Deny(message=f"spec.containers[{position}].{error}", code=400, reason="BadRequest")
    return found


def _waiting(container: Json, barrier: str, key: str) -> Json:
    """The barrier stands last. One that was copied from another pod would never be opened (CLP-8a)."""
    others = [item for item in variables_of(container) if item.get("name") != keys.BARRIER_ENV]
    reference = {"configMapKeyRef": {"name": barrier, "key": key}}
    return {**container, "env": [*others, {"name": keys.BARRIER_ENV, "valueFrom": reference}]}
