"""Pods to act on, and what a chain of writes makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from kruise.api.native.pod import Pod
from kruise.inplace import keys
from kruise.machinery import codec
from kruise.machinery.client.requests import PatchType
from kruise.machinery.guards import guarded_body
from kruise.machinery.patches import json_patch, strategic
from kruise.machinery.plan import Action
from tests.machinery.patches.pod_schema import POD

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
LONG_BEFORE = "2026-03-01T00:00:00Z"
UID = "00000000-0000-4000-8000-000000000001"
BOTH_GATES = (keys.IN_PLACE_READY, keys.KRUISE_POD_READY)


def condition_body(kind: str, status: str, **more: str) -> dict[str, Any]:
    return {"type": kind, "status": status, "lastProbeTime": None, "lastTransitionTime": LONG_BEFORE, **more}


def pod_body(
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    finalizers: Sequence[str] = (),
    gates: Sequence[str] = BOTH_GATES,
    conditions: Mapping[str, str | dict[str, Any]] | None = None,
    images: Mapping[str, str] | None = None,
    node: str = "n1",
    **more: Any,
) -> dict[str, Any]:
    """A running pod as the server keeps it. Conditions: the status by type, or the fields of the condition."""
    metadata: dict[str, Any] = {"name": "web-1", "namespace": "demo", "uid": UID, "resourceVersion": "7"}
    for name, value in (("labels", labels), ("annotations", annotations), ("finalizers", finalizers)):
        if value:
            metadata[name] = value if isinstance(value, Mapping) else list(value)
    items = []
    for kind, told in (conditions or {}).items():
        items.append(condition_body(kind, told) if isinstance(told, str) else {**condition_body(kind, ""), **told})
    containers = [
        {"name": name, "image": image, "resources": {}} for name, image in (images or {"main": "nginx:1.25"}).items()
    ]
    spec: dict[str, Any] = {"containers": containers}
    if gates:
        spec["readinessGates"] = [{"conditionType": gate} for gate in gates]
    if node:
        spec["nodeName"] = node
    statuses = [
        {"name": item["name"], "image": item["image"], "imageID": f"id of {item['image']}", "ready": True}
        for item in containers
    ]
    status: dict[str, Any] = {"phase": "Running", "containerStatuses": statuses}
    if items:
        status["conditions"] = items
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status, **more}


def decoded(body: Mapping[str, Any]) -> Pod:
    return codec.convert(body, Pod)


def pod(**options: Any) -> Pod:
    return decoded(pod_body(**options))


def played(body: dict[str, Any], chain: Sequence[Action]) -> dict[str, Any]:
    """The pod after all writes of a chain, each with its guards; raises `PatchError` where a test fails."""
    document = body
    for action in chain:
        patch = codec.decode(guarded_body(action), object)
        if action.patch_type is PatchType.JSON:
            changed = json_patch.apply(document, patch)  # type: ignore[arg-type]
        else:
            changed = strategic.apply(document, patch, POD)
        # As a server does it: each door lets only its own parts through.
        document = {**document, **{part: changed[part] for part in _PARTS[action.subresource] if part in changed}}
    return document


_PARTS = {"": ("metadata", "spec"), "status": ("metadata", "status"), "resize": ("spec",)}


def conditions_of(body: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    found = body["status"].get("conditions", [])
    by_type = {item["type"]: item for item in found}
    assert len(by_type) == len(found), "two conditions of one type"
    return by_type


def doors(chain: Sequence[Action]) -> list[tuple[str, PatchType | None]]:
    return [(action.subresource, action.patch_type) for action in chain]
