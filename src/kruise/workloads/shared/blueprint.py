"""New pods of a workload. What the pods of one revision have in common is worked out once; per pod there is only its
name, its labels and its volumes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from kruise.api.native.pod import PODS
from kruise.inplace import keys
from kruise.machinery.ownership import Owner
from kruise.machinery.times import format_time


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PodBlueprint:
    """What all new pods of one revision have in common."""

    metadata: Mapping[str, Any]
    labels: Mapping[str, str]
    spec: Mapping[str, Any]
    volumes: tuple[Any, ...]
    """Volumes of the template that no claim replaces."""

    @classmethod
    def of(
        cls,
        template: Mapping[str, Any],
        owner: Owner,
        *,
        labels: Mapping[str, str],
        state_since: datetime | None,
        in_place_gate: bool,
        claims: Iterable[str] = (),
    ) -> PodBlueprint:
        """`labels` come on top of the template's. `state_since`: the pods begin in a lifecycle state, from then on.
        `in_place_gate`: they get the readiness gate for updates in place. `claims` names the claim templates."""
        given = template.get("metadata") or {}
        spec = template.get("spec") or {}
        annotations = dict(given.get("annotations") or {})
        if state_since is not None:
            annotations[keys.STATE_TIME_ANNOTATION] = format_time(state_since)
        metadata: dict[str, Any] = {
            "generateName": f"{owner.name}-",
            "namespace": owner.namespace,
            **({"annotations": annotations} if annotations else {}),
            "ownerReferences": [owner.reference()],
        }
        if given.get("finalizers"):
            metadata["finalizers"] = list(given["finalizers"])
        if in_place_gate:
            spec = {**spec, "readinessGates": _with_gate(spec.get("readinessGates") or ())}
        replaced = frozenset(claims)
        return cls(
            metadata=metadata,
            labels={**(given.get("labels") or {}), **labels},
            spec=spec,
            volumes=tuple(volume for volume in spec.get("volumes") or () if volume.get("name") not in replaced),
        )

    def pod(
        self,
        name: str,
        *,
        labels: Mapping[str, str],
        claims: Mapping[str, str] | None = None,
        spec: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """`claims` are the names of the pod's claims by the volume that mounts them; `spec` what only this pod has."""
        own = dict(spec or {})
        if claims:
            own["volumes"] = [*(_claimed(volume, claim) for volume, claim in claims.items()), *self.volumes]
        return {
            "apiVersion": PODS.api_version,
            "kind": PODS.kind,
            "metadata": {"name": name, **self.metadata, "labels": {**self.labels, **labels}},
            "spec": {**self.spec, **own} if own else self.spec,
        }


def _with_gate(gates: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    found = list(gates)
    if all(gate.get("conditionType") != keys.IN_PLACE_READY for gate in found):
        found.append({"conditionType": keys.IN_PLACE_READY})
    return found


def _claimed(volume: str, claim: str) -> dict[str, Any]:
    return {"name": volume, "persistentVolumeClaim": {"claimName": claim}}
