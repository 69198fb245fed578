"""Objects as OpenKruise 1.9 leaves them behind, with their revisions and pods: as recordings show them."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from kruise.api.meta import PartialObject
from kruise.api.native.apps import CONTROLLER_REVISIONS
from kruise.api.native.config import CONFIG_MAPS, SECRETS
from kruise.api.native.extensions import CUSTOM_RESOURCE_DEFINITIONS
from kruise.api.native.nodes import NAMESPACES, NODES
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.machinery.client.client import Client
from kruise.machinery.client.requests import PatchType
from kruise.manager.installation.installer import identity
from tests.support.installed import DEFINITIONS
from tests.support.openkruise import (
    LATEST,
    NAMESPACE,
    Json,
    certificates,
    configurations,
    definitions,
    installation,
    is_only_alpha,
)

DEMO = "demo"


def fnv_name(data: str, collisions: int = 0) -> str:
    """IPU-12, written down once more: the recordings' raw names are compared with it."""
    value = 0x811C9DC5
    for byte in f"{data}{collisions}".encode():
        value = (value * 0x01000193) & 0xFFFFFFFF
        value ^= byte
    return "".join("bcdfghjklmnpqrstvwxz2456789"[ord(char) % 27] for char in str(value))


def template(image: str, labels: Mapping[str, str], pull: str = "Always", **pod: Any) -> Json:
    """A pod template with its defaults: only its DaemonSet asks for the tag (CS-31)."""
    container = {
        "image": image,
        "imagePullPolicy": pull,
        "name": "main",
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }
    spec = {
        "containers": [container],
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    }
    return {"metadata": {"creationTimestamp": None, "labels": dict(labels)}, "spec": {**spec, **pod}}


def revision_text(body: Mapping[str, Any]) -> str:
    data = {"spec": {"template": {**body, "$patch": "replace"}}}
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def kind(plural: str, version: str) -> Resource[PartialObject]:
    spec = next(one["spec"] for one in DEFINITIONS.values() if one["spec"]["names"]["plural"] == plural)
    names, scope = spec["names"], spec["scope"]
    return Resource(spec["group"], version, plural, names["kind"], scope == "Namespaced", PartialObject)


@dataclasses.dataclass
class OpenKruise:
    """Fills a cluster."""

    client: Client
    now: datetime
    release: str = LATEST
    sockets: str = "/run/k3s"

    def kind(self, plural: str, version: str) -> Resource[PartialObject]:
        """In the version that release 1.9 has, or the one that an older one has."""
        return kind(plural, "v1alpha1" if is_only_alpha(plural, self.release) else version)

    async def install(self) -> None:
        secret = certificates(self.now)
        for body in (*definitions(self.release), *installation(secret, self.release, self.sockets)):
            resource, namespace, _ = identity(body)
            await self.client.create(resource, body, namespace)
        await self._established()

    async def intercept(self) -> None:
        """Its webhooks: nobody answers them here, so objects come before."""
        secret = await self.client.get(SECRETS, "kruise-webhook-certs", NAMESPACE)
        for body in configurations(secret.data["ca-cert.pem"]):
            resource, _, _ = identity(body)
            await self.client.create(resource, body)

    async def _established(self) -> None:
        for _ in range(100):
            found = (await self.client.list(CUSTOM_RESOURCE_DEFINITIONS)).items
            if all(any(c.type == "Established" and c.status == "True" for c in one.status.conditions) for one in found):
                return
            await asyncio.sleep(0.2)
        raise AssertionError("definitions are not established")

    # One of each

    async def made(
        self, plural: str, version: str, body: Json, status: Json | None = None, namespace: str = DEMO
    ) -> PartialObject:
        resource = self.kind(plural, version)
        body = {"apiVersion": resource.api_version, "kind": resource.kind, **body}
        made = await self.client.create(resource, body, namespace if resource.namespaced else "")
        if status is not None:
            about = made.metadata
            await self.client.patch(resource, about.name, {"status": status}, about.namespace, subresource="status")
        return made

    def owner(self, owner: PartialObject, version: str) -> list[Json]:
        known = self.kind(f"{owner.kind.lower()}s", version)
        reference = {"apiVersion": known.api_version, "kind": owner.kind, "name": owner.metadata.name}
        return [{**reference, "uid": owner.metadata.uid, "controller": True, "blockOwnerDeletion": True}]

    async def revision(
        self, owner: PartialObject, version: str, body: Json, number: int, *, namespace: str = DEMO, **metadata: Any
    ) -> str:
        text = revision_text(body)
        digest = metadata.pop("digest", "") or fnv_name(text)
        label = metadata.pop("label", "controller.kubernetes.io/hash")
        labels = {**metadata.pop("labels", {}), label: digest}
        name = f"{owner.metadata.name}-{digest}"
        revision = {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {
                "name": name,
                "labels": labels,
                "ownerReferences": self.owner(owner, version),
                **metadata,
            },
            "data": json.loads(text),
            "revision": number,
        }
        await self.client.create(CONTROLLER_REVISIONS, revision, namespace)
        return name

    async def pods(self, owner: PartialObject, version: str, body: Json, those: Mapping[str, Json]) -> None:
        """By name, with what each has more in its metadata and `spec`; all run."""
        for name, more in those.items():
            more = copy.deepcopy(more)
            spec = {**body["spec"], **more.pop("spec", {})}
            spec["readinessGates"] = [{"conditionType": "InPlaceUpdateReady"}, {"conditionType": "KruisePodReady"}]
            labels = {**body["metadata"]["labels"], **more.pop("labels", {})}
            metadata = {"name": name, "generateName": f"{owner.metadata.name}-", "labels": labels, **more}
            metadata["ownerReferences"] = self.owner(owner, version)
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
            await self.client.create(PODS, pod, DEMO)
        for name in those:
            await self.running(name)
            await self.condition(name, InPlaceUpdateReady="True", KruisePodReady="True")

    async def condition(self, name: str, **conditions: str) -> None:
        found = [{"type": kind, "status": status} for kind, status in conditions.items()]
        await self.client.patch(
            PODS,
            name,
            {"status": {"conditions": found}},
            DEMO,
            subresource="status",
            patch_type=PatchType.STRATEGIC,
        )

    async def running(self, name: str, image: str = "", restarts: int = 0) -> str:
        """Waits for its container; the ID of the image."""
        for _ in range(600):
            statuses = (await self.client.get(PODS, name, DEMO)).status.container_statuses
            if statuses and all(one.state.running for one in statuses):
                first = statuses[0]
                if first.restart_count >= restarts and (not image or first.image.endswith(image)):
                    return first.image_id
            await asyncio.sleep(0.2)
        raise AssertionError(f"{name} does not run")

    async def updated_in_place(self, name: str, revision: str, image: str, **labels: str) -> None:
        """As the engine leaves a pod behind (IPU section 6, recorded in cloneset-inplace-image)."""
        before = await self.running(name)
        at = self.now.strftime("%Y-%m-%dT%H:%M:%SZ")
        state = {
            "revision": revision,
            "updateTimestamp": at,
            "lastContainerStatuses": {"main": {"imageID": before}},
            "updateImages": True,
            "containerBatchesRecord": [{"timestamp": at, "containers": ["main"]}],
        }
        annotations = {"apps.kruise.io/inplace-update-state": json.dumps(state, separators=(",", ":"))}
        metadata = {"labels": {"controller-revision-hash": revision, **labels}, "annotations": annotations}
        change = [{"op": "replace", "path": "/spec/containers/0/image", "value": image}]
        await self.client.patch(PODS, name, {"metadata": metadata}, DEMO)
        await self.client.patch(PODS, name, change, DEMO, patch_type=PatchType.JSON)
        await self.running(name, image, 1)

    async def clone_set(self, name: str) -> None:
        """cloneset-inplace-image: five pods, of which the last one was just being updated."""
        labels = {"app": name}
        old, new = template("nginx:1.25", labels), template("nginx:1.26", labels)
        spec = {
            "replicas": 5,
            "revisionHistoryLimit": 10,
            "scaleStrategy": {},
            "selector": {"matchLabels": labels},
            "template": new,
            "updateStrategy": {
                "inPlaceUpdateStrategy": {},
                "maxSurge": 0,
                "maxUnavailable": "20%",
                "partition": 0,
                "type": "InPlaceIfPossible",
            },
        }
        owner = await self.made("clonesets", "v1alpha1", {"metadata": {"name": name}, "spec": spec})
        marks: Json = {"labels": labels, "annotations": {"kruise.io/cloneset-volumeclaimtemplate-hash": ""}}
        first = await self.revision(owner, "v1alpha1", old, 1, **copy.deepcopy(marks))
        last = await self.revision(owner, "v1alpha1", new, 2, **copy.deepcopy(marks))
        assert first == "web-cd5565c86", "the raw name of the recording"
        ids = ("4fscj", "6r84t", "klnst", "jskqk", "b2wx7")
        state = "lifecycle.apps.kruise.io/state"
        short = last.rpartition("-")[2]
        at = {"lifecycle.apps.kruise.io/timestamp": self.now.strftime("%Y-%m-%dT%H:%M:%SZ")}
        those = {
            f"{name}-{one}": {
                "labels": {
                    "apps.kruise.io/cloneset-instance-id": one,
                    "controller-revision-hash": first,
                    state: "Normal",
                    "pod-template-hash": first.rpartition("-")[2],
                },
                "annotations": at,
            }
            for one in ids
        }
        await self.pods(owner, "v1alpha1", old, those)
        for pod in those:
            is_last = pod == f"{name}-{ids[-1]}"
            if is_last:
                await self.condition(pod, InPlaceUpdateReady="False")
            now_in = {state: "Updating" if is_last else "Normal"}
            await self.updated_in_place(pod, last, "nginx:1.26", **{"pod-template-hash": short, **now_in})
        status = {
            "availableReplicas": 4,
            "collisionCount": 0,
            "currentRevision": first,
            "expectedUpdatedReplicas": 5,
            "labelSelector": f"app={name}",
            "observedGeneration": 1,
            "readyReplicas": 4,
            "replicas": 5,
            "updateRevision": last,
            "updatedAvailableReplicas": 4,
            "updatedReadyReplicas": 4,
            "updatedReplicas": 5,
        }
        await self.client.patch(
            self.kind("clonesets", "v1alpha1"), name, {"status": status}, DEMO, subresource="status"
        )

    async def stateful_set(self) -> None:
        """statefulset-inplace-partition: two of four are updated."""
        name, labels = "db", {"app": "db"}
        gates = [{"conditionType": "InPlaceUpdateReady"}]
        old = template("nginx:1.25", labels, readinessGates=gates)
        new = template("nginx:1.26", labels, readinessGates=gates)
        spec = {
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
            "podManagementPolicy": "Parallel",
            "replicas": 4,
            "revisionHistoryLimit": 10,
            "selector": {"matchLabels": labels},
            "serviceName": "svc",
            "template": new,
            "updateStrategy": {
                "rollingUpdate": {
                    "maxUnavailable": 2,
                    "minReadySeconds": 0,
                    "partition": 2,
                    "podUpdatePolicy": "InPlaceIfPossible",
                },
                "type": "RollingUpdate",
            },
            "volumeClaimUpdateStrategy": {},
        }
        owner = await self.made("statefulsets", "v1beta1", {"metadata": {"name": name}, "spec": spec})
        first = await self.revision(owner, "v1beta1", old, 1, labels=labels)
        last = await self.revision(owner, "v1beta1", new, 2, labels=labels)
        body = copy.deepcopy(old)
        those = {
            f"{name}-{ordinal}": {
                "labels": {
                    "apps.kubernetes.io/pod-index": str(ordinal),
                    "controller-revision-hash": first,
                    "lifecycle.apps.kruise.io/state": "Normal",
                    "statefulset.kubernetes.io/pod-name": f"{name}-{ordinal}",
                },
                "annotations": {"kruise.io/related-pub": "pub"},
                "spec": {"hostname": f"{name}-{ordinal}", "subdomain": "svc"},
            }
            for ordinal in range(4)
        }
        await self.pods(owner, "v1beta1", body, those)
        for ordinal in (3, 2):
            await self.updated_in_place(f"{name}-{ordinal}", last, "nginx:1.26")
        status = {
            "availableReplicas": 4,
            "collisionCount": 0,
            "currentReplicas": 2,
            "currentRevision": first,
            "labelSelector": f"app={name}",
            "observedGeneration": 1,
            "readyReplicas": 4,
            "replicas": 4,
            "updateRevision": last,
            "updatedAvailableReplicas": 2,
            "updatedReadyReplicas": 2,
            "updatedReplicas": 2,
        }
        await self.client.patch(
            self.kind("statefulsets", "v1beta1"), name, {"status": status}, DEMO, subresource="status"
        )

    async def daemon_set(self) -> None:
        """daemonset-inplace: the hash alone in labels, no lifecycle."""
        name, labels = "agent", {"app": "agent"}
        chosen = {"nodeSelector": {"topology.kubernetes.io/zone": "a"}}
        old, new = (template(f"nginx:1.2{minor}", labels, "IfNotPresent", **chosen) for minor in (5, 6))
        rolling = {"maxUnavailable": 2, "rollingUpdateType": "InPlaceIfPossible"}
        spec = {
            "burstReplicas": 250,
            "revisionHistoryLimit": 10,
            "selector": {"matchLabels": labels},
            "template": new,
            "updateStrategy": {"rollingUpdate": rolling, "type": "RollingUpdate"},
        }
        owner = await self.made("daemonsets", "v1beta1", {"metadata": {"name": name}, "spec": spec})
        mark: Json = {"labels": labels, "label": "controller-revision-hash"}
        # Its hashes are others than ours (DS-23): raw names of recordings.
        first = await self.revision(owner, "v1beta1", old, 1, digest="8545c99d65", **copy.deepcopy(mark))
        last = await self.revision(owner, "v1beta1", new, 2, digest="74c6b5774c", **copy.deepcopy(mark))
        nodes = [
            node.metadata.name
            for node in (await self.client.list(NODES)).items
            if node.metadata.labels.get("topology.kubernetes.io/zone") == "a"
        ]
        those = {}
        for index, node in enumerate(nodes):
            field = {"key": "metadata.name", "operator": "In", "values": [node]}
            required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
            there = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
            tolerations = [
                {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": effect}
                for key, effect in (
                    ("not-ready", "NoExecute"),
                    ("unreachable", "NoExecute"),
                    ("disk-pressure", "NoSchedule"),
                    ("memory-pressure", "NoSchedule"),
                    ("pid-pressure", "NoSchedule"),
                    ("unschedulable", "NoSchedule"),
                )
            ]
            those[f"{name}-dkw7{index}"] = {
                "labels": {"controller-revision-hash": first.rpartition("-")[2]},
                "spec": {"affinity": there, "tolerations": tolerations},
            }
        await self.pods(owner, "v1beta1", old, those)
        for pod in those:
            await self.updated_in_place(pod, last.rpartition("-")[2], "nginx:1.26")
        count = len(nodes)
        status = {
            "currentNumberScheduled": count,
            "desiredNumberScheduled": count,
            "numberAvailable": count,
            "numberMisscheduled": 0,
            "numberReady": count,
            "observedGeneration": 1,
            "updateRevision": last.rpartition("-")[2],
            "updatedNumberScheduled": count,
        }
        await self.client.patch(
            self.kind("daemonsets", "v1beta1"), name, {"status": status}, DEMO, subresource="status"
        )

    async def sidecar_set(self) -> None:
        """sidecarset-injection, with the hashes that were recorded."""
        digest = "b6v4w64b684fd5669d74zxbxx96xcvdcwdwxff8bv22f4c47c7fc6c498w94x8dd"
        without_image = "dzz2ddc8bxzdv7875c4z6446xv464c8xf9257w4z6bzv4vcf2c7f5fb4vc946945"
        usual = {
            "imagePullPolicy": "IfNotPresent",
            "resources": {},
            "shareVolumePolicy": {"type": "disabled"},
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
            "upgradeStrategy": {"upgradeType": "ColdUpgrade"},
        }
        before = {
            **usual,
            "name": "s-before",
            "image": "busybox:1.36",
            "podInjectPolicy": "BeforeAppContainer",
            "env": [{"name": "OWN", "value": "1"}],
            "volumeMounts": [{"name": "shared", "mountPath": "/s"}],
        }
        after = {
            **usual,
            "name": "s-after",
            "image": "envoy:1",
            "podInjectPolicy": "AfterAppContainer",
            "shareVolumePolicy": {"type": "enabled"},
            "transferEnv": [{"sourceContainerName": "main", "envName": "FOO"}],
        }
        first = {**usual, "name": "s-init", "image": "busybox:1.36", "podInjectPolicy": "AfterAppContainer"}
        content: Json = {
            "containers": [before, after],
            "imagePullSecrets": [{"name": "reg"}],
            "initContainers": [first],
            "volumes": [{"name": "shared", "emptyDir": {}}],
        }
        spec = {
            **content,
            "injectionStrategy": {},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": DEMO}},
            "revisionHistoryLimit": 10,
            "selector": {"matchLabels": {"app": "injected"}},
            "updateStrategy": {"maxUnavailable": 1, "partition": 0, "type": "RollingUpdate"},
        }
        name = "side-injection"
        hashes_of = {
            "kruise.io/sidecarset-hash": digest,
            "kruise.io/sidecarset-hash-without-image": without_image,
        }
        body = {"metadata": {"name": name, "annotations": hashes_of}, "spec": spec}
        owner = await self.made("sidecarsets", "v1beta1", body)
        data = {"spec": {**content, "patchPodMetadata": None, "$patch": "replace"}}
        revision = f"{name}-67f64d59b8"
        await self.client.create(
            CONTROLLER_REVISIONS,
            {
                "apiVersion": "apps/v1",
                "kind": "ControllerRevision",
                "metadata": {
                    "name": revision,
                    "labels": {"controller.kubernetes.io/hash": "67f64d59b8", "kruise.io/sidecarset-name": name},
                    "annotations": hashes_of,
                    "ownerReferences": self.owner(owner, "v1beta1"),
                },
                "data": data,
                "revision": 1,
            },
            NAMESPACE,
        )
        at = self.now.strftime("%Y-%m-%dT%H:%M:%SZ")
        entry = {"updateTimestamp": at, "sidecarSetName": name, "sidecarList": ["s-after", "s-before"]}
        injected = {"name": "IS_INJECTED", "value": "true"}
        main = {"name": "main", "image": "nginx:1.25", "env": [{"name": "FOO", "value": "bar"}]}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "p1",
                "labels": {"app": "injected"},
                "annotations": {
                    "kruise.io/sidecarset-hash": json.dumps(
                        {name: {**entry, "hash": digest, "controllerRevision": revision}}
                    ),
                    "kruise.io/sidecarset-hash-without-image": json.dumps({name: {**entry, "hash": without_image}}),
                    "kruise.io/sidecarset-injected-list": name,
                },
            },
            "spec": {
                "containers": [
                    {
                        "name": "s-before",
                        "image": "busybox:1.36",
                        # Where it was recorded nothing ends by itself.
                        "command": ["sleep", "infinity"],
                        "env": [{"name": "OWN", "value": "1"}, injected],
                        "volumeMounts": [{"name": "shared", "mountPath": "/s"}],
                    },
                    main,
                    {"name": "s-after", "image": "envoy:1", "env": [injected, {"name": "FOO", "value": "bar"}]},
                ],
                "initContainers": [{"name": "s-init", "image": "busybox:1.36", "env": [injected]}],
                "volumes": [{"name": "shared", "emptyDir": {}}],
            },
        }
        await self.client.create(PODS, pod, DEMO)
        await self.running("p1")
        status = {
            "collisionCount": 0,
            "latestRevision": revision,
            "matchedPods": 1,
            "observedGeneration": 1,
            "readyPods": 1,
            "updatedPods": 1,
            "updatedReadyPods": 1,
        }
        await self.client.patch(self.kind("sidecarsets", "v1beta1"), name, {"status": status}, subresource="status")

    async def united_deployment(self) -> None:
        """uniteddeployment-cloneset, with two subsets; its revision has not the labels of the template."""
        name, labels = "ud", {"app": "web"}
        main = {"image": "nginx:1.25", "name": "main", "resources": {}}
        bare = {"metadata": {"creationTimestamp": None, "labels": labels}, "spec": {"containers": [main]}}
        inner = {
            "scaleStrategy": {},
            "selector": {"matchLabels": labels},
            "template": bare,
            "updateStrategy": {},
        }
        body = {"cloneSetTemplate": {"metadata": {"creationTimestamp": None, "labels": labels}, "spec": inner}}
        subsets = [
            {
                "name": zone,
                "nodeSelectorTerm": {
                    "matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}]
                },
                **({"replicas": 1} if zone == "a" else {}),
            }
            for zone in ("a", "b")
        ]
        spec = {
            "replicas": 3,
            "revisionHistoryLimit": 10,
            "selector": {"matchLabels": labels},
            "template": body,
            "topology": {"scheduleStrategy": {}, "subsets": subsets},
            "updateStrategy": {"manualUpdate": {}, "type": "Manual"},
        }
        owner = await self.made("uniteddeployments", "v1alpha1", {"metadata": {"name": name}, "spec": spec})
        revision = await self.revision(owner, "v1alpha1", body, 1)
        assert revision == "ud-86b956f596", "the raw name of the recording"
        for subset, suffix, count in ((subsets[0], "vchb4", 1), (subsets[1], "fcqzk", 2)):
            await self._subset(owner, revision, subset, suffix, count)
        status = {
            "currentRevision": revision,
            "labelSelector": "app=web",
            "observedGeneration": 1,
            "readyReplicas": 3,
            "replicas": 3,
            "subsetReplicas": {"a": 1, "b": 2},
            "updateStatus": {"currentPartitions": {"a": 0, "b": 0}, "updatedRevision": revision},
            "updatedReadyReplicas": 3,
            "updatedReplicas": 3,
        }
        resource = self.kind("uniteddeployments", "v1alpha1")
        await self.client.patch(resource, name, {"status": status}, DEMO, subresource="status")

    async def _subset(self, united: PartialObject, revision: str, subset: Json, suffix: str, count: int) -> None:
        marks = {"app": "web", "apps.kruise.io/subset-name": subset["name"]}
        labels = {**marks, "apps.kruise.io/controller-revision-hash": revision}
        required = {"nodeSelectorTerms": [subset["nodeSelectorTerm"]]}
        there = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        body = template("nginx:1.25", labels, affinity=there)
        strategy = {"maxSurge": 0, "maxUnavailable": "20%", "partition": 0, "type": "ReCreate"}
        spec = {
            "replicas": count,
            "revisionHistoryLimit": 10,
            "scaleStrategy": {},
            "selector": {"matchLabels": marks},
            "template": body,
            "updateStrategy": strategy,
        }
        name = f"{united.metadata.name}-{subset['name']}-{suffix}"
        metadata: Json = {
            "name": name,
            "generateName": f"ud-{subset['name']}-",
            "labels": labels,
            "annotations": {"apps.kruise.io/subset-patch": ""},
            "ownerReferences": self.owner(united, "v1alpha1"),
        }
        owner = await self.made("clonesets", "v1alpha1", {"metadata": metadata, "spec": spec})
        annotations = {"apps.kruise.io/subset-patch": "", "kruise.io/cloneset-volumeclaimtemplate-hash": ""}
        own = await self.revision(owner, "v1alpha1", body, 1, labels=labels, annotations=annotations)
        those = {
            f"{name}-98qb{index}": {
                "labels": {
                    "apps.kruise.io/cloneset-instance-id": f"98qb{index}",
                    "controller-revision-hash": own,
                    "lifecycle.apps.kruise.io/state": "Normal",
                    "pod-template-hash": own.rpartition("-")[2],
                }
            }
            for index in range(count)
        }
        await self.pods(owner, "v1alpha1", body, those)
        names = "availableReplicas readyReplicas replicas updatedAvailableReplicas updatedReadyReplicas updatedReplicas"
        status = {
            **dict.fromkeys((*names.split(), "expectedUpdatedReplicas"), count),
            "collisionCount": 0,
            "currentRevision": own,
            "updateRevision": own,
            "labelSelector": ",".join(f"{key}={value}" for key, value in sorted(marks.items())),
            "observedGeneration": 1,
        }
        await self.client.patch(
            self.kind("clonesets", "v1alpha1"), name, {"status": status}, DEMO, subresource="status"
        )

    async def others(self) -> None:
        """Objects without revisions, as scenarios show them at their end."""
        at = self.now.strftime("%Y-%m-%dT%H:%M:%SZ")
        await self._nodes()
        labels = {"matchLabels": {"app": "db"}}
        budget = {"metadata": {"name": "pub"}, "spec": {"maxUnavailable": 1, "selector": labels}}
        counts = {"currentAvailable": 4, "desiredAvailable": 3, "totalReplicas": 4, "unavailableAllowed": 1}
        await self.made("podunavailablebudgets", "v1alpha1", budget, {**counts, "observedGeneration": 1})
        await self._persistent_pod_state()
        await self._distribution(at)
        done = {
            "active": 0,
            "completionTime": at,
            "conditions": [
                {
                    "type": "Complete",
                    "status": "True",
                    "reason": "Complete",
                    "message": "Job completed, 2 pods succeeded, 0 pods failed",
                    "lastProbeTime": at,
                    "lastTransitionTime": at,
                }
            ],
            "desired": 2,
            "failed": 0,
            "phase": "completed",
            "startTime": at,
            "succeeded": 2,
        }
        of_job = template("busybox:1.36", {}, restartPolicy="Never", nodeSelector={"pool": "hand"})
        of_job["metadata"] = {"creationTimestamp": None}
        job: Json = {
            "completionPolicy": {"type": "Always"},
            "failurePolicy": {"type": "FailFast"},
            "parallelism": 1,
            "template": of_job,
        }
        await self.made("broadcastjobs", "v1beta1", {"metadata": {"name": "job"}, "spec": job}, done)
        cron = {
            "concurrencyPolicy": "Allow",
            "failedJobsHistoryLimit": 1,
            "paused": False,
            "schedule": "0 0 31 12 *",
            "successfulJobsHistoryLimit": 3,
            "template": {
                "broadcastJobTemplate": {
                    "metadata": {},
                    "spec": {"completionPolicy": {}, "failurePolicy": {}, "template": of_job},
                }
            },
        }
        await self.made(
            "advancedcronjobs", "v1beta1", {"metadata": {"name": "acj"}, "spec": cron}, {"type": "BroadcastJob"}
        )
        pull = {
            "completionPolicy": {"activeDeadlineSeconds": 700, "type": "Always"},
            "image": "nginx:1.29",
            "imagePullPolicy": "Always",
            "parallelism": 2,
            "pullPolicy": {"backoffLimit": 2, "timeoutSeconds": 30},
            "selector": {"names": ["node-1"]},
        }
        pulled = {
            "active": 0,
            "completionTime": at,
            "desired": 1,
            "failed": 0,
            "message": "job has completed",
            "startTime": at,
            "succeeded": 1,
        }
        metadata = {"name": "pull", "finalizers": ["apps.kruise.io/deletion-protection"]}
        await self.made("imagepulljobs", "v1beta1", {"metadata": metadata, "spec": pull}, pulled)
        pod = await self.client.get(PODS, "p1", DEMO)
        request = {
            "metadata": {
                "name": "r5",
                "labels": {
                    "crr.apps.kruise.io/node-name": pod.spec.node_name,
                    "crr.apps.kruise.io/pod-uid": pod.metadata.uid,
                },
            },
            "spec": {
                "activeDeadlineSeconds": 4,
                "containers": [
                    {"name": "main", "statusContext": {"containerID": "containerd://gone", "restartCount": 0}},
                ],
                "podName": "p1",
                "strategy": {"failurePolicy": "Ignore", "orderedRecreate": True, "terminationGracePeriodSeconds": 30},
            },
        }
        ended = {
            "completionTime": at,
            "message": "recreating has exceeded the activeDeadlineSeconds",
            "phase": "Completed",
        }
        await self.made("containerrecreaterequests", "v1alpha1", request, ended)

    async def _nodes(self) -> None:
        for node in (await self.client.list(NODES)).items:
            metadata = {"name": node.metadata.name, "labels": dict(node.metadata.labels)}
            await self.made("nodeimages", "v1beta1", {"metadata": metadata, "spec": {}})
            await self.made("nodepodprobes", "v1alpha1", {"metadata": {"name": node.metadata.name}, "spec": {}})

    async def _persistent_pod_state(self) -> None:
        """persistentpodstate-statefulset."""
        keys = ("kubernetes.io/hostname", "topology.kubernetes.io/zone")
        spec = {
            "preferredPersistentTopology": [{"preference": {"nodeTopologyKeys": [keys[0]]}, "weight": 100}],
            "requiredPersistentTopology": {"nodeTopologyKeys": [keys[1]]},
            "targetRef": {"apiVersion": "apps.kruise.io/v1beta1", "kind": "StatefulSet", "name": "db"},
        }
        states = {}
        for ordinal in range(4):
            pod = await self.client.get(PODS, f"db-{ordinal}", DEMO)
            node = await self.client.get(NODES, pod.spec.node_name)
            labels = {key: node.metadata.labels[key] for key in keys if key in node.metadata.labels}
            states[pod.metadata.name] = {"nodeName": node.metadata.name, "nodeTopologyLabels": labels}
        status = {"observedGeneration": 1, "podStates": states}
        await self.made("persistentpodstates", "v1alpha1", {"metadata": {"name": "pps"}, "spec": spec}, status)

    async def _distribution(self, at: str) -> None:
        """resourcedistribution-configmap, with the hash that was recorded."""
        for name in ("team-1", "team-2", "team-3"):
            labels = {"group": "test"}
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
            await self.client.create(NAMESPACES, body)
        marks = {"annotations": {"note": "x"}, "labels": {"a": "b"}, "name": "cfg"}
        config_map = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v1"}}
        targets = {
            "excludedNamespaces": {"list": [{"name": "team-3"}]},
            "includedNamespaces": {"list": [{"name": "team-1"}]},
            "namespaceLabelSelector": {"matchLabels": {"group": "test"}},
        }
        troubles = ["GetResource", "CreateResource", "UpdateResource", "DeleteResource"]
        types = [*(f"{one}Failed" for one in troubles), "ConflictOccurred", "NamespaceNotExists"]
        conditions = [
            {"type": one, "status": "False", "reason": "Succeeded", "lastTransitionTime": at} for one in types
        ]
        status = {"conditions": conditions, "desired": 2, "observedGeneration": 1, "succeeded": 2}
        spec = {"resource": {**config_map, "metadata": marks}, "targets": targets}
        owner = await self.made("resourcedistributions", "v1alpha1", {"metadata": {"name": "rd"}, "spec": spec}, status)
        annotations = {
            "kruise.io/resourcedistribution.resource.from": "rd",
            "kruise.io/resourcedistribution.resource.hashcode": (
                "762774892b2f7190b9df3e7823580f9c33158c3d60f24feab3c53ffc3507f8e4"
            ),
            "note": "x",
        }
        for name in ("team-1", "team-2"):
            metadata = {**marks, "annotations": annotations, "ownerReferences": self.owner(owner, "v1alpha1")}
            await self.client.create(CONFIG_MAPS, {**config_map, "metadata": metadata}, name)
