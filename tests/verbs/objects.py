"""Whole objects for tests of the verbs, made from the few facts that a test is about."""

from __future__ import annotations

import copy
from typing import Any

from kruise.api.native.pod import Pod
from kruise.machinery import codec
from kruise.machinery.documents import Json

UID = "5a1b0b67-0000-4000-8000-000000000001"


def container(name: str = "main", image: str = "nginx:1.25", **fields: Any) -> Json:
    return {"name": name, "image": image, **fields}


def template(*containers: Json, labels: Json | None = None, **spec: Any) -> Json:
    return {
        "metadata": {"labels": labels or {"app": "web"}},
        "spec": {"containers": [copy.deepcopy(one) for one in containers or (container(),)], **spec},
    }


def _workload(api_version: str, kind: str, name: str, spec: Json, status: Json | None, generation: int) -> Json:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": "demo",
            "uid": UID,
            "resourceVersion": "7",
            "generation": generation,
            "labels": {"app": "web"},
        },
        "spec": spec,
        "status": {"observedGeneration": generation, **(status or {})},
    }


def cloneset(
    *,
    name: str = "web",
    replicas: int = 3,
    rolling: Json | None = None,
    pods: Json | None = None,
    status: Json | None = None,
    generation: int = 1,
    **spec: Any,
) -> Json:
    """`rolling` are the fields of `rollingUpdate`, `pods` is the template."""
    return _workload(
        "apps.kruise.io/v1beta1",
        "CloneSet",
        name,
        {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": pods or template(),
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling or {}},
            **spec,
        },
        status,
        generation,
    )


def native(
    kind: str,
    *,
    replicas: int = 3,
    status: Json | None = None,
    pods: Json | None = None,
    generation: int = 1,
    **spec: Any,
) -> Json:
    """A Deployment, StatefulSet or DaemonSet called `web`."""
    fields = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": pods or template(), **spec}
    return _workload("apps/v1", kind, "web", fields, status, generation)


def owned(document: Json, uid: str = UID) -> Json:
    metadata = {
        **document["metadata"],
        "ownerReferences": [{"uid": uid, "controller": True, "kind": "x", "name": "web"}],
    }
    return {**document, "metadata": metadata}


def controller_revision(number: int, pods: Json, name: str = "", cause: str = "") -> Json:
    metadata: Json = {"name": name or f"web-{number}", "namespace": "demo", "labels": {"app": "web"}}
    if cause:
        metadata["annotations"] = {"kubernetes.io/change-cause": cause}
    return owned(
        {"metadata": metadata, "revision": number, "data": {"spec": {"template": {**pods, "$patch": "replace"}}}}
    )


def replica_set(number: int, pods: Json, **annotations: str) -> Json:
    labelled = copy.deepcopy(pods)
    labelled["metadata"]["labels"]["pod-template-hash"] = f"hash{number}"
    metadata = {
        "name": f"web-hash{number}",
        "namespace": "demo",
        "uid": f"rs-{number}",
        "annotations": {"deployment.kubernetes.io/revision": str(number), **annotations},
    }
    return owned({"metadata": metadata, "spec": {"template": labelled}})


def pod(name: str, *, revision: str = "web-2", owner: str = UID, ready: bool = True, **fields: Any) -> Pod:
    """A pod that runs; `fields` are `labels`, `phase`, `node`, `terminating`, `waiting`, `conditions`."""
    conditions = [{"type": "Ready", "status": str(ready)}, *fields.get("conditions", ())]
    state = {"waiting": {"reason": fields["waiting"], "message": "why"}} if "waiting" in fields else {"running": {}}
    metadata: Json = {
        "name": name,
        "namespace": "demo",
        "labels": {"app": "web", "controller-revision-hash": revision, **fields.get("labels", {})},
        "creationTimestamp": "2030-01-01T10:00:00Z",
        "ownerReferences": [{"uid": owner, "controller": True}],
    }
    if fields.get("terminating"):
        metadata["deletionTimestamp"] = "2030-01-01T11:00:00Z"
    document = {
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": fields.get("node", "node-1"), "containers": [{"name": "main"}]},
        "status": {
            "phase": fields.get("phase", "Running"),
            "conditions": conditions,
            "containerStatuses": [{"name": "main", "ready": ready, "restartCount": 1, "state": state}],
        },
    }
    return codec.convert(document, Pod)
