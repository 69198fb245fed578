"""The readiness gate `KruisePodReady` for new pods: the first step of the pod chain (IPU-80, PW-12)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kruise.admission.chain import StepContext
from kruise.admission.decisions import Change
from kruise.api.apps.shared import GROUP
from kruise.inplace import keys

EVERY_POD_GATE = "KruisePodReadinessGate"


def add_gate(pod: dict[str, Any], context: StepContext) -> Change | None:
    """The pod with the gate, where it is ours or the feature gate asks for every pod; None: leave it as it is."""
    spec = pod.get("spec")
    if not isinstance(spec, dict) or not (context.view.gates.get(EVERY_POD_GATE, False) or is_ours(pod)):
        return None
    gates = spec.get("readinessGates")
    gates = gates if isinstance(gates, list) else []
    if any(isinstance(gate, dict) and gate.get("conditionType") == keys.KRUISE_POD_READY for gate in gates):
        return None
    added = [*gates, {"conditionType": keys.KRUISE_POD_READY}]
    return Change(object={**pod, "spec": {**spec, "readinessGates": added}})


def is_ours(pod: Mapping[str, Any]) -> bool:
    """Whether the controller of a pod, as a document, is a kind of `apps.kruise.io` in whatever version."""
    metadata = pod.get("metadata")
    owners = metadata.get("ownerReferences") if isinstance(metadata, dict) else None
    if not isinstance(owners, list):
        return False
    return any(
        isinstance(owner, dict)
        and owner.get("controller") is True
        and str(owner.get("apiVersion", "")).rpartition("/")[0] == GROUP
        for owner in owners
    )
