"""CloneSets with their pods and claims for tests of pure code, made from the few facts that a test is about.

A CloneSet here is called `web` and lives in `demo`. Its *old* revision has another image than the template.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from kruise.api.apps.cloneset import CLONE_SETS, CloneSet
from kruise.api.native.apps import ControllerRevision
from kruise.api.native.pod import Pod
from kruise.api.native.storage import PersistentVolumeClaim
from kruise.inplace import keys
from kruise.machinery import codec, revision_names, revisions
from kruise.machinery.ownership import Owner
from kruise.machinery.pending import Pending
from kruise.workloads.cloneset.claims import INSTANCE_ID_LABEL
from kruise.workloads.cloneset.situation import Situation, Snapshot, situation_of

NOW = datetime(2030, 1, 1, 12, 0, 0, tzinfo=UTC)
UID = "5a1b0b67-0000-4000-8000-000000000001"
TEMPLATE: Mapping[str, Any] = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {
        "containers": [
            {
                "name": "main",
                "image": "nginx:1.25",
                "imagePullPolicy": "Always",
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }
        ],
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    },
}
DATA_CLAIM: Mapping[str, Any] = {
    "metadata": {"creationTimestamp": None, "name": "data"},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "manual",
    },
    "status": {"phase": "Pending"},
}


def make_cloneset(
    *,
    replicas: int = 3,
    template: Mapping[str, Any] = TEMPLATE,
    rolling: Mapping[str, Any] | None = None,
    scale: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    deleting: bool = False,
    **spec: Any,
) -> CloneSet:
    """`rolling` and `scale` are the fields of `rollingUpdate` and `scaleStrategy`; `spec` holds further fields."""
    metadata = {"name": "web", "namespace": "demo", "uid": UID, "resourceVersion": "1", "generation": 1}
    if deleting:
        metadata["deletionTimestamp"] = "2030-01-01T11:59:00Z"
    document = {
        "apiVersion": CLONE_SETS.api_version,
        "kind": CLONE_SETS.kind,
        "metadata": metadata,
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template,
            "scaleStrategy": dict(scale or {}),
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "20%", **(rolling or {})}},
            **spec,
        },
        "status": dict(status or {}),
    }
    return codec.decode(codec.encode(document), CloneSet)


def make_revision(template: Mapping[str, Any], number: int = 1) -> ControllerRevision:
    owner = Owner(CLONE_SETS, "demo", "web", UID)
    data = revisions.template_data(template)
    made = revisions.choose(owner, (), data, labels={"app": "web"}).revision
    metadata = codec.evolve(made.metadata, uid=f"uid-{made.metadata.name}", resource_version="1")
    return codec.evolve(made, revision=number, metadata=metadata)


def _older(template: Mapping[str, Any]) -> dict[str, Any]:
    older = copy.deepcopy(dict(template))
    older["spec"]["containers"][0]["image"] = "nginx:1.24"
    return older


NEW = make_revision(TEMPLATE, 2)
OLD = make_revision(_older(TEMPLATE), 1)


def make_pod(
    instance_id: str,
    *,
    old: bool = False,
    state: str = "Normal",
    ready: bool = True,
    ready_since: str = "2030-01-01T10:00:00Z",
    phase: str = "Running",
    node: str = "node-1",
    terminating: bool = False,
    specified: bool = False,
    labels: Mapping[str, str] | None = None,
    finalizers: Sequence[str] = (),
    claims: Iterable[str] = (),
) -> Pod:
    """A pod of the CloneSet that runs and is available, but for what is said otherwise."""
    revision = (OLD if old else NEW).metadata.name
    metadata: dict[str, Any] = {
        "name": f"web-{instance_id}",
        "namespace": "demo",
        "uid": f"uid-{instance_id}",
        "resourceVersion": "7",
        "creationTimestamp": "2030-01-01T10:00:00Z",
        "labels": {
            "app": "web",
            INSTANCE_ID_LABEL: instance_id,
            keys.REVISION_LABEL: revision,
            keys.TEMPLATE_HASH_LABEL: revision_names.short_hash(revision),
            keys.STATE_LABEL: state,
            **({keys.SPECIFIED_DELETE_LABEL: "true"} if specified else {}),
            **(labels or {}),
        },
        "finalizers": list(finalizers),
        "ownerReferences": [Owner(CLONE_SETS, "demo", "web", UID).reference()],
    }
    if terminating:
        metadata["deletionTimestamp"] = "2030-01-01T11:59:50Z"
    gates = ["InPlaceUpdateReady", "KruisePodReady"]
    conditions = [{"type": gate, "status": "True"} for gate in gates]
    conditions.append({"type": "ContainersReady", "status": "True"})
    conditions.append({"type": "Ready", "status": str(ready), "lastTransitionTime": ready_since})
    volumes = [
        {"name": template, "persistentVolumeClaim": {"claimName": f"{template}-web-{instance_id}"}}
        for template in claims
    ]
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "nodeName": node,
            "containers": [{"name": "main", "image": "nginx:1.24" if old else "nginx:1.25"}],
            "readinessGates": [{"conditionType": gate} for gate in gates],
            "volumes": volumes,
        },
        "status": {"phase": phase, "conditions": conditions},
    }
    return codec.decode(codec.encode(document), Pod)


def make_claim(
    instance_id: str,
    *,
    template: str = "data",
    terminating: bool = False,
    labelled: bool = True,
    annotations: Mapping[str, str] | None = None,
) -> PersistentVolumeClaim:
    metadata: dict[str, Any] = {
        "name": f"{template}-web-{instance_id}",
        "namespace": "demo",
        "uid": f"uid-{template}-{instance_id}",
        "resourceVersion": "9",
        "labels": {"app": "web", **({INSTANCE_ID_LABEL: instance_id} if labelled else {})},
        "ownerReferences": [Owner(CLONE_SETS, "demo", "web", UID).reference()],
    }
    if terminating:
        metadata["deletionTimestamp"] = "2030-01-01T11:59:50Z"
    if annotations:
        metadata["annotations"] = dict(annotations)
    return codec.convert({"metadata": metadata, "spec": DATA_CLAIM["spec"]}, PersistentVolumeClaim)


def make_situation(
    cloneset: CloneSet | None = None,
    pods: Iterable[Pod] = (),
    claims: Iterable[PersistentVolumeClaim] = (),
    *,
    gates: Mapping[str, bool] | None = None,
    seed: int = 1,
    rollout: bool = False,
    exclude_preparing_delete: bool = False,
) -> Situation:
    """`rollout`: the old revision is the current one."""
    cloneset = cloneset or make_cloneset()
    known = [make_revision(codec.decode(bytes(cloneset.spec.template), dict), 2)]
    if rollout:
        known.append(OLD)
        status = codec.evolve(cloneset.status, current_revision=OLD.metadata.name)
        cloneset = codec.evolve(cloneset, status=status)
    return situation_of(
        Snapshot(
            cloneset=cloneset,
            now=NOW,
            pods=tuple(pods),
            claims=tuple(claims),
            revisions=tuple(known),
            gates=dict(gates or {}),
            exclude_preparing_delete=exclude_preparing_delete,
            seed=seed,
        )
    )


def make_pending(marks: Mapping[str, str], **more: Any) -> Pending:
    """Writes to pods, by name."""
    return Pending(marks={f"demo/{name}": mark for name, mark in marks.items()}, **more)
