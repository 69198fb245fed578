"""Pods and revisions for tests of the in-place engine, made from plain values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kruise.api.meta import ObjectMeta
from kruise.api.native.apps import ControllerRevision
from kruise.api.native.pod import Pod
from kruise.machinery import codec
from kruise.machinery.codec import Raw
from kruise.machinery.revisions import template_data


def template(
    *containers: Mapping[str, Any],
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    finalizers: tuple[str, ...] = (),
    **spec: Any,
) -> dict[str, Any]:
    metadata: dict[str, Any] = {"labels": {"app": "web"} if labels is None else dict(labels)}
    if annotations is not None:
        metadata["annotations"] = dict(annotations)
    if finalizers:
        metadata["finalizers"] = list(finalizers)
    return {
        "metadata": metadata,
        "spec": {"containers": [dict(container) for container in containers or (container(),)], **spec},
    }


def container(name: str = "main", image: str = "nginx:1.25", **more: Any) -> dict[str, Any]:
    return {"name": name, "image": image, **more}


def drawn(name: str, part: str, key: str, **more: Any) -> dict[str, Any]:
    """A variable that takes its value from a label or annotation."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.{part}['{key}']"}}, **more}


def barrier(priority: int) -> dict[str, Any]:
    """The variable that the pod webhook injects for container launch priority."""
    reference = {"name": "pod-barrier", "key": f"p_{priority}"}
    return {"name": "KRUISE_CONTAINER_BARRIER", "valueFrom": {"configMapKeyRef": reference}}


def resources(limits: Mapping[str, Any] | None = None, requests: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {name: dict(found) for name, found in (("limits", limits), ("requests", requests)) if found is not None}


def revision(
    found: Mapping[str, Any] | bytes, name: str = "web-rev-2", annotations: Mapping[str, str] | None = None
) -> ControllerRevision:
    data = found if isinstance(found, bytes) else template_data(found)
    return ControllerRevision(metadata=ObjectMeta(name=name, annotations=dict(annotations or {})), data=Raw(data))


def pod(
    *containers: Mapping[str, Any],
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    finalizers: tuple[str, ...] = (),
    statuses: list[dict[str, Any]] | None = None,
) -> Pod:
    """A pod that runs what its containers say, unless `statuses` tell otherwise."""
    found = [dict(item) for item in containers or (container(),)]
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "web-abcde",
            "namespace": "demo",
            "uid": "uid-1",
            "labels": dict(labels or {}),
            "annotations": dict(annotations or {}),
            "finalizers": list(finalizers),
        },
        "spec": {"nodeName": "node-1", "containers": found},
        "status": {
            "phase": "Running",
            "containerStatuses": statuses if statuses is not None else [status(item) for item in found],
        },
    }
    return codec.decode(json.dumps(document), Pod)


def status(found: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "name": found["name"],
        "image": found["image"],
        "imageID": image_id(found["image"]),
        "containerID": f"containerd://{found['name']}-1",
        "ready": True,
        "restartCount": 0,
        **more,
    }


def image_id(image: str) -> str:
    return f"sha256-of-{image}"
