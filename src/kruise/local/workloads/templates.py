"""Pod templates of workloads: new pods made from them, and what makes two templates the same.

Templates stay raw JSON in the stores. What is worked out from them is remembered by their bytes, since the same few
templates are asked about at every pass.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from kruise.api.core.values import SERVER_FORM
from kruise.api.meta import NO_STRINGS
from kruise.machinery.codec import Raw, Struct, canonical, decode, field
from kruise.machinery.fnv import fnv32a
from kruise.machinery.names import safe_encode
from kruise.machinery.revisions import template_data

TEMPLATE_HASH = "pod-template-hash"


class _Metadata(Struct):
    labels: dict[str, str] = field(default_factory=dict)


class _Labelled(Struct):
    metadata: _Metadata = _Metadata()


def parse(template: Raw) -> dict[str, Any]:
    """The template as plain JSON, the caller's own."""
    return decode(template, dict[str, Any])


@functools.lru_cache(maxsize=2048)
def _labels(template: bytes) -> Mapping[str, str]:
    return decode(template, _Labelled).metadata.labels or NO_STRINGS


def labels(template: Raw) -> Mapping[str, str]:
    return _labels(bytes(template))


@functools.lru_cache(maxsize=2048)
def _identity(template: bytes) -> bytes:
    value = decode(template, dict[str, Any])
    metadata = dict(value.get("metadata") or {})
    kept = {key: text for key, text in (metadata.get("labels") or {}).items() if key != TEMPLATE_HASH}
    metadata.pop("labels", None)
    if metadata.get("creationTimestamp") is None:
        metadata.pop("creationTimestamp", None)  # Go writes a null that says nothing
    if kept:
        metadata["labels"] = kept
    return canonical({**value, "metadata": metadata})


def identity(template: Raw) -> bytes:
    """Equal for templates that make the same pods: whatever the order of keys, and without the hash label."""
    return _identity(bytes(template))


@functools.lru_cache(maxsize=512)
def _revision_data(template: bytes) -> bytes:
    return template_data(decode(template, dict[str, Any]), form=SERVER_FORM)


def revision_data(template: Raw) -> bytes:
    """What a ControllerRevision keeps of a template, byte for byte as kube-controller-manager writes it."""
    return _revision_data(bytes(template))


def template_hash(template: Raw, collisions: int | None) -> str:
    """The value of the label that tells the ReplicaSets of a Deployment apart.

    It looks as Kubernetes' own and has the same use, but another value: Kubernetes hashes what Go prints of its
    structs, which changes with every release; here it is the canonical JSON.
    """
    data = identity(template)
    if collisions is not None:
        data += collisions.to_bytes(8, "little")
    return safe_encode(str(fnv32a(data)))


def new_pod(
    template: Mapping[str, Any],
    *,
    name: str,
    namespace: str,
    generate_name: str,
    owner: Mapping[str, Any],
    more_labels: Mapping[str, str] = NO_STRINGS,
    more_annotations: Mapping[str, str] = NO_STRINGS,
    more_finalizers: Sequence[str] = (),
) -> dict[str, Any]:
    """The pod that a controller makes of a template."""
    given = template.get("metadata") or {}
    finalizers = list(given.get("finalizers") or ())
    metadata: dict[str, Any] = {
        "name": name,
        # For people and tools that look for it; the name is the plan's choice.
        "generateName": generate_name,
        "namespace": namespace,
        "labels": {**(given.get("labels") or {}), **more_labels},
        "annotations": {**(given.get("annotations") or {}), **more_annotations},
        "finalizers": finalizers + [item for item in more_finalizers if item not in finalizers],
        "ownerReferences": [dict(owner)],
    }
    for key in ("annotations", "finalizers"):
        if not metadata[key]:
            del metadata[key]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec") or {}}
