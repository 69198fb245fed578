"""Workloads of all kinds, in the mix of a busy cluster: what the benchmarks of scale and churn make.

They come team by team. A team is a namespace with a hundred objects, a thousand pods and fifty nodes of its own.
Pure: manifests, and what of a status tells that an object has all it wants.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from kruise.api.apps.advancedcronjob import ADVANCED_CRON_JOBS
from kruise.api.apps.broadcastjob import BROADCAST_JOBS
from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.daemonset import DAEMON_SETS
from kruise.api.apps.ephemeraljob import EPHEMERAL_JOBS
from kruise.api.apps.images import IMAGE_PULL_JOBS
from kruise.api.apps.persistentpodstate import PERSISTENT_POD_STATES
from kruise.api.apps.probes import POD_PROBE_MARKERS
from kruise.api.apps.resourcedistribution import RESOURCE_DISTRIBUTIONS
from kruise.api.apps.sidecarset import SIDECAR_SETS
from kruise.api.apps.statefulset import STATEFUL_SETS
from kruise.api.apps.uniteddeployment import UNITED_DEPLOYMENTS
from kruise.api.apps.workloadspread import WORKLOAD_SPREADS
from kruise.api.native.apps import DEPLOYMENTS
from kruise.api.policy.podunavailablebudget import POD_UNAVAILABLE_BUDGETS
from kruise.api.resource import Resource

Json = dict[str, Any]

GATES = "ImagePullJobGate=true,ResourceDistributionGate=true"
"""What is off by default and belongs to the mix."""
TEAM_LABEL = "bench/team"
"""Of a node and of a namespace: whose it is."""
NODES_PER_TEAM = 50
PODS_PER_TEAM = 1000
OBJECTS_PER_TEAM = 100
_BASE, _ZONES = 10, ("a", "b", "c")
_CLONE_SETS, _STATEFUL_SETS, _DEPLOYMENTS = 47, 15, 15
_MESHED, _SPREAD, _BUDGETS = 5, 3, 5


@dataclasses.dataclass(frozen=True, slots=True)
class Member:
    """One object of a fleet."""

    resource: Resource[Any]
    namespace: str
    body: Json
    pods: int = 0

    @property
    def name(self) -> str:
        return str(self.body["metadata"]["name"])


def team_name(number: int) -> str:
    return f"team-{number}"


def members(team: str) -> Iterator[Member]:
    """The objects of a team; those that admission looks up when pods are made come first."""
    yield from _policies(team)
    for number in range(_CLONE_SETS):
        labels = {"mesh": "yes"} if number < _MESHED else {}
        yield Member(CLONE_SETS, team, clone_set(f"web-{number:02}", _BASE, labels=labels), _BASE)
    for number in range(_STATEFUL_SETS):
        yield Member(STATEFUL_SETS, team, stateful_set(f"db-{number:02}", 8), 8)
    for number in range(_DEPLOYMENTS):
        yield Member(DEPLOYMENTS, team, deployment(f"shop-{number:02}", _BASE), _BASE)
    for number in range(2):
        yield Member(DAEMON_SETS, team, daemon_set(f"agent-{number}", team), NODES_PER_TEAM)
        yield Member(UNITED_DEPLOYMENTS, team, united_deployment(f"wide-{number}", 30), 30)
        yield Member(BROADCAST_JOBS, team, broadcast_job(f"check-{number}", team), NODES_PER_TEAM)


def _policies(team: str) -> Iterator[Member]:
    yield Member(SIDECAR_SETS, "", sidecar_set(f"mesh-{team}", team))
    yield Member(RESOURCE_DISTRIBUTIONS, "", distribution(f"pull-{team}", team))
    for number in range(_SPREAD):
        yield Member(WORKLOAD_SPREADS, team, spread(f"web-{_MESHED + number:02}"))
    for number in range(_BUDGETS):
        yield Member(POD_UNAVAILABLE_BUDGETS, team, budget(f"shop-{number:02}"))
    for number in range(2):
        yield Member(ADVANCED_CRON_JOBS, team, cron(f"yearly-{number}"))
        yield Member(IMAGE_PULL_JOBS, team, pull_job(f"ahead-{number}", team))
    yield Member(POD_PROBE_MARKERS, team, probe_marker("probe", "web-10"))
    yield Member(PERSISTENT_POD_STATES, team, persistent_state("db-00"))
    yield Member(EPHEMERAL_JOBS, team, look("look", "web-11"))


def pod_template(labels: Mapping[str, str], image: str = "nginx:1", **spec: Any) -> Json:
    """As people write them: two probes' worth of settings, resources, a few variables and a volume."""
    timing = {"periodSeconds": 10, "failureThreshold": 3}
    container = {
        "name": "main",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "args": ["--config=/etc/app/config.yaml"],
        "ports": [{"name": "http", "containerPort": 8080}],
        "env": [
            *({"name": f"SETTING_{number}", "value": f"value-{number}"} for number in range(6)),
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        ],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8080}, **timing},
        "livenessProbe": {"httpGet": {"path": "/livez", "port": 8080}, **timing},
        "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
    }
    return {
        "metadata": {"labels": dict(labels), "annotations": {"prometheus.io/scrape": "true"}},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
            "volumes": [{"name": "scratch", "emptyDir": {}}],
            **spec,
        },
    }


def _document(resource: Resource[Any], name: str, spec: Json) -> Json:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}, "spec": spec}


def _workload(resource: Resource[Any], name: str, replicas: int, labels: Mapping[str, str], **spec: Any) -> Json:
    own = {"app": name, **labels}
    selector = {"matchLabels": {"app": name}}
    return _document(
        resource, name, {"replicas": replicas, "selector": selector, "template": pod_template(own), **spec}
    )


def clone_set(name: str, replicas: int, *, labels: Mapping[str, str] | None = None) -> Json:
    rolling = {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": "20%"}
    return _workload(CLONE_SETS, name, replicas, labels or {}, updateStrategy={"rollingUpdate": rolling})


def stateful_set(name: str, replicas: int) -> Json:
    rolling = {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 2}
    further = {"serviceName": name, "podManagementPolicy": "Parallel"}
    document = _workload(STATEFUL_SETS, name, replicas, {}, updateStrategy={"rollingUpdate": rolling}, **further)
    document["spec"]["template"]["spec"]["readinessGates"] = [{"conditionType": "InPlaceUpdateReady"}]
    return document


def deployment(name: str, replicas: int) -> Json:
    return _workload(DEPLOYMENTS, name, replicas, {})


def daemon_set(name: str, team: str) -> Json:
    document = _workload(DAEMON_SETS, name, 0, {})
    del document["spec"]["replicas"]
    document["spec"]["template"]["spec"]["nodeSelector"] = {TEAM_LABEL: team}
    return document


def united_deployment(name: str, replicas: int) -> Json:
    labels = {"app": name}
    selector = {"matchLabels": labels}
    rolling = {"podUpdatePolicy": "InPlaceIfPossible"}
    inner = {"selector": selector, "template": pod_template(labels), "updateStrategy": {"rollingUpdate": rolling}}
    zones = [{"name": f"zone-{zone}", "nodeSelectorTerm": {"matchExpressions": [_in_zone(zone)]}} for zone in _ZONES]
    spec = {
        "replicas": replicas,
        "selector": selector,
        "template": {"cloneSetTemplate": {"metadata": {"labels": labels}, "spec": inner}},
        "topology": {"subsets": zones},
    }
    return _document(UNITED_DEPLOYMENTS, name, spec)


def _in_zone(zone: str) -> Json:
    return {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}


def broadcast_job(name: str, team: str) -> Json:
    template = pod_template({"job": name}, "busybox:1", restartPolicy="Never", nodeSelector={TEAM_LABEL: team})
    main = template["spec"]["containers"][0]
    del main["readinessProbe"], main["livenessProbe"]
    main["command"], main["args"] = ["sh", "-c", "sleep 1"], []
    return _document(BROADCAST_JOBS, name, {"completionPolicy": {"type": "Always"}, "template": template})


def cron(name: str) -> Json:
    pods = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox:1"}]}
    template = {"jobTemplate": {"spec": {"template": {"spec": pods}}}}
    return _document(ADVANCED_CRON_JOBS, name, {"schedule": "@yearly", "template": template})


def pull_job(name: str, team: str) -> Json:
    selector = {"matchLabels": {TEAM_LABEL: team}}
    policy = {"type": "Always", "activeDeadlineSeconds": 1200}
    spec = {"image": f"{name}:1", "parallelism": 10, "selector": selector, "completionPolicy": policy}
    return _document(IMAGE_PULL_JOBS, name, spec)


def sidecar_set(name: str, team: str) -> Json:
    sidecar = {"name": "proxy", "image": "proxy:1", "podInjectPolicy": "BeforeAppContainer"}
    spec = {
        "selector": {"matchLabels": {"mesh": "yes"}},
        "namespaceSelector": {"matchLabels": {TEAM_LABEL: team}},
        "containers": [{**sidecar, "shareVolumePolicy": {"type": "disabled"}}],
    }
    return _document(SIDECAR_SETS, name, spec)


def distribution(name: str, team: str) -> Json:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "registry"}, "type": "Opaque"}
    targets = {"namespaceSelector": {"matchLabels": {TEAM_LABEL: team}}}
    spec = {"resource": {**secret, "stringData": {"password": "not-told"}}, "targets": targets}
    return _document(RESOURCE_DISTRIBUTIONS, name, spec)


def spread(target: str) -> Json:
    reference = {"apiVersion": CLONE_SETS.api_version, "kind": "CloneSet", "name": target}
    first = {"name": "a", "maxReplicas": 4, "requiredNodeSelectorTerm": {"matchExpressions": [_in_zone("a")]}}
    second = {"name": "b", "requiredNodeSelectorTerm": {"matchExpressions": [_in_zone("b")]}}
    return _document(WORKLOAD_SPREADS, target, {"targetRef": reference, "subsets": [first, second]})


def budget(target: str) -> Json:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}
    return _document(POD_UNAVAILABLE_BUDGETS, target, {"targetRef": reference, "maxUnavailable": "20%"})


def probe_marker(name: str, app: str) -> Json:
    probe = {"exec": {"command": ["sh", "-c", "echo well"]}, "periodSeconds": 600}
    policy = [{"state": "Succeeded", "labels": {"well": "yes"}}]
    one = {"name": "well", "containerName": "main", "probe": probe, "podConditionType": "bench.example/well"}
    spec = {"selector": {"matchLabels": {"app": app}}, "probes": [{**one, "markerPolicy": policy}]}
    return _document(POD_PROBE_MARKERS, name, spec)


def persistent_state(target: str) -> Json:
    reference = {"apiVersion": STATEFUL_SETS.api_version, "kind": "StatefulSet", "name": target}
    required = {"keys": ["topology.kubernetes.io/zone"]}
    return _document(PERSISTENT_POD_STATES, target, {"targetRef": reference, "requiredPersistentTopology": required})


def look(name: str, app: str) -> Json:
    container = {
        "name": "look",
        "image": "busybox:1",
        "imagePullPolicy": "IfNotPresent",
        "terminationMessagePolicy": "File",
        "targetContainerName": "main",
        "command": ["sh", "-c", "sleep 1"],
    }
    template = {"ephemeralContainers": [container]}
    spec = {"selector": {"matchLabels": {"app": app}}, "replicas": 2, "parallelism": 1, "template": template}
    return _document(EPHEMERAL_JOBS, name, spec)


def is_settled(document: Mapping[str, Any], pods: int) -> bool:
    """Whether a workload has all its pods, updated and ready."""
    status, spec = document.get("status", {}), document["spec"]
    if document["kind"] == "BroadcastJob":
        return bool(status.get("phase") == "completed")
    if status.get("observedGeneration") != document["metadata"]["generation"]:
        return False
    if document["kind"] == "DaemonSet":
        return bool(status.get("numberReady") == status.get("updatedNumberScheduled") == pods)
    wanted = spec["replicas"]
    return wanted == 0 or bool(status.get("readyReplicas") == status.get("updatedReplicas") == wanted)
