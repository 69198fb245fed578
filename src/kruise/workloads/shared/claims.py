"""Claims for the storage of a workload's pods: what a template says of them, and the bodies made of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kruise.api.core import schema, values
from kruise.api.native.pod import Pod
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS
from kruise.inplace.hashes import deep_hash
from kruise.machinery import codec
from kruise.machinery.codec import Raw


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClaimTemplate:
    """An entry of `volumeClaimTemplates`, as far as claims are made of it."""

    name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    spec: Mapping[str, Any]


def claim_templates(raws: Iterable[Raw]) -> tuple[ClaimTemplate, ...]:
    return tuple(_template(codec.decode(raw, object)) for raw in raws)


def _template(document: Any) -> ClaimTemplate:
    metadata = _mapping(document, "metadata")
    return ClaimTemplate(
        name=str(metadata.get("name", "")),
        labels=_mapping(metadata, "labels"),
        annotations=_mapping(metadata, "annotations"),
        spec=_mapping(document, "spec"),
    )


def _mapping(document: Any, name: str) -> Mapping[str, Any]:
    found = document.get(name) if isinstance(document, dict) else None
    return found if isinstance(found, dict) else {}


def claim_name(template: str, owner: str, identity: str) -> str:
    """The claim of one pod. `identity` is what tells the pod from its siblings: an instance id, an ordinal."""
    return f"{template}-{owner}-{identity}"


def claim_body(
    template: ClaimTemplate,
    *,
    name: str,
    namespace: str,
    labels: Mapping[str, str],
    owners: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """`labels` come on top of the template's."""
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "labels": {**template.labels, **labels}}
    if owners:
        metadata["ownerReferences"] = list(owners)
    if template.annotations:
        metadata["annotations"] = dict(template.annotations)
    return {
        "apiVersion": PERSISTENT_VOLUME_CLAIMS.api_version,
        "kind": PERSISTENT_VOLUME_CLAIMS.kind,
        "metadata": metadata,
        "spec": template.spec,
    }


def claim_templates_hash(templates: Sequence[Raw]) -> str:
    """What a revision notes of the claim templates: names and specs only, in the order of the names (CS-126)."""
    if not templates:
        return ""
    texts = []
    for template in claim_templates(templates):
        claim = {"metadata": {"name": template.name}, "spec": template.spec}
        texts.append((template.name, values.struct_order_json(claim, schema.CLAIM)))
    return str(deep_hash(b"[" + b",".join(text for _, text in sorted(texts)) + b"]"))


def mounted_claims(pods: Iterable[Pod]) -> set[str]:
    return {
        volume.persistent_volume_claim.claim_name
        for pod in pods
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is not None
    }
