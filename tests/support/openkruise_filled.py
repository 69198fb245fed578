"""A cluster full of what OpenKruise 1.9 leaves behind: one of each kind, and the kinds that belong to another one."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kruise.api.meta import PartialObject
from kruise.api.native.nodes import NAMESPACES, NODES
from kruise.api.resource import Resource
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import NotFoundError
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.kubeconfig import load
from tests.support.openkruise import Json
from tests.support.openkruise_objects import DEMO, OpenKruise, template

ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount", True, PartialObject)


@contextlib.asynccontextmanager
async def filled(kubeconfig: Path, *, nodes: int, **options: Any) -> AsyncIterator[Client]:
    """A cluster that OpenKruise has been at work in; `options` are those of `OpenKruise`."""
    async with Client(HttpTransport(load(kubeconfig))) as client:
        original = OpenKruise(client, datetime.now(UTC), **options)
        await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": DEMO}})
        await original.install()
        await _has(client, nodes)
        await fill(original)
        await original.intercept()
        yield client


async def _has(client: Client, count: int) -> None:
    """The nodes, and the account that pods need."""
    for _ in range(300):
        nodes = (await client.list(NODES)).items
        with contextlib.suppress(NotFoundError):
            await client.get(ACCOUNTS, "default", DEMO)
            if len(nodes) == count:
                return
        await asyncio.sleep(0.2)
    raise AssertionError("the cluster is not ready for pods")


async def fill(original: OpenKruise) -> None:
    await original.clone_set("web")
    await original.stateful_set()
    await original.daemon_set()
    await original.sidecar_set()
    await original.united_deployment()
    await original.others()
    await workload_spread(original)
    await probe_and_debugging(original)


async def workload_spread(original: OpenKruise) -> None:
    """workloadspread-cloneset: two pods each in two subsets, the first of which holds no more."""
    name, labels = "spread", {"app": "spread"}
    body = template("nginx:1.25", labels)
    spec = {
        "replicas": 4,
        "revisionHistoryLimit": 10,
        "scaleStrategy": {},
        "selector": {"matchLabels": labels},
        "template": body,
        "updateStrategy": {"maxSurge": 0, "maxUnavailable": "20%", "partition": 0, "type": "ReCreate"},
    }
    owner = await original.made("clonesets", "v1alpha1", {"metadata": {"name": name}, "spec": spec})
    annotations = {"kruise.io/cloneset-volumeclaimtemplate-hash": ""}
    revision = await original.revision(owner, "v1alpha1", body, 1, labels=labels, annotations=annotations)
    those = {}
    for zone, cost, ids in (("a", "200", ("bx2rb", "c4rl9")), ("b", "100", ("dp7fk", "g6tzm"))):
        required = {"nodeSelectorTerms": [_in_zone(zone)]}
        there: Json = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}
        if zone == "a":
            there["containers"] = [{**body["spec"]["containers"][0], "env": [{"name": "SUB", "value": "a"}]}]
        matched = {"name": "ws", "subset": f"subset-{zone}"}
        for one in ids:
            those[f"{name}-{one}"] = {
                "labels": {
                    "apps.kruise.io/cloneset-instance-id": one,
                    "controller-revision-hash": revision,
                    "lifecycle.apps.kruise.io/state": "Normal",
                    "pod-template-hash": revision.rpartition("-")[2],
                    **({"sub": "a"} if zone == "a" else {}),
                },
                "annotations": {
                    "apps.kruise.io/matched-workloadspread": json.dumps(matched, separators=(",", ":")),
                    "controller.kubernetes.io/pod-deletion-cost": cost,
                },
                "spec": there,
            }
    await original.pods(owner, "v1alpha1", body, those)
    patch = {
        "metadata": {"labels": {"sub": "a"}},
        "spec": {"containers": [{"name": "main", "env": [{"name": "SUB", "value": "a"}]}]},
    }
    subsets: list[dict[str, Any]] = [
        {"name": f"subset-{zone}", "requiredNodeSelectorTerm": _in_zone(zone)} for zone in ("a", "b")
    ]
    subsets[0] |= {"maxReplicas": 2, "patch": patch}
    target = {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "name": name}
    counts = [
        {"missingReplicas": 0, "name": "subset-a", "replicas": 2},
        {"missingReplicas": -1, "name": "subset-b", "replicas": 2},
    ]
    status = {
        "observedGeneration": 1,
        "subsetStatuses": counts,
        "versionedSubsetStatuses": {"versionIgnored": counts},
    }
    spread = {"metadata": {"name": "ws"}, "spec": {"subsets": subsets, "targetRef": target}}
    await original.made("workloadspreads", "v1alpha1", spread, status)


def _in_zone(zone: str) -> Json:
    return {"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}]}


async def probe_and_debugging(original: OpenKruise) -> None:
    """podprobemarker, of pods that are not there, and ephemeraljob, which has ended."""
    probe = {"exec": {"command": ["/idle.sh"]}, "periodSeconds": 5}
    one = {"containerName": "main", "name": "idle", "podConditionType": "example.com/idle", "probe": probe}
    marker = {"probes": [one], "selector": {"matchLabels": {"app": "probed"}}}
    metadata = {"name": "ppm", "finalizers": ["kruise.io/node-pod-probe-cleanup"]}
    status = {"matchedPods": 0, "observedGeneration": 1}
    await original.made("podprobemarkers", "v1alpha1", {"metadata": metadata, "spec": marker}, status)
    at = original.now.strftime("%Y-%m-%dT%H:%M:%SZ")
    debugger = {
        "image": "busybox:1.36",
        "imagePullPolicy": "IfNotPresent",
        "name": "debugger",
        "resources": {},
        "terminationMessagePolicy": "File",
    }
    job = {
        "parallelism": 1,
        "replicas": 2,
        "selector": {"matchLabels": {"app": "debugged"}},
        "template": {"ephemeralContainers": [debugger]},
    }
    succeeded = {
        "type": "JobSucceeded",
        "status": "True",
        "reason": "JobSucceeded",
        "message": "job success to run all tasks",
        "lastProbeTime": at,
        "lastTransitionTime": at,
    }
    ended = {
        "completionTime": at,
        "conditions": [succeeded],
        "failed": 0,
        "match": 2,
        "phase": "Succeeded",
        "running": 0,
        "startTime": at,
        "succeeded": 2,
        "waiting": 0,
    }
    metadata = {"name": "dbg", "finalizers": ["apps.kruise.io/ephemeralcontainers-cleanup"]}
    await original.made("ephemeraljobs", "v1alpha1", {"metadata": metadata, "spec": job}, ended)
