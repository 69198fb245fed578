"""Changes to pods and their subresources: bases that are created, and merge patches over them."""

from __future__ import annotations

from typing import Any

from tests.api.core.accepted_cases import container

BASES: dict[str, dict[str, Any]] = {
    "plain": {
        "containers": [container("a"), container("b", "redis:7")],
        "initContainers": [container("i", "busybox:1")],
        "tolerations": [{"key": "t", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 10}],
        "nodeSelector": {"a": "1"},
    },
    "deadline": {"containers": [container("a")], "activeDeadlineSeconds": 100},
    "gated": {
        "containers": [container("a")],
        "schedulingGates": [{"name": "x/one"}, {"name": "x/two"}],
        "nodeSelector": {"a": "1"},
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "k", "operator": "In", "values": ["1"]}]}]
                }
            }
        },
    },
    "gated without affinity": {"containers": [container("a")], "schedulingGates": [{"name": "x/one"}]},
    "sized": {
        "containers": [
            container("a", resources={"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}}),
            container("b", resources={"limits": {"ephemeral-storage": "1Gi"}}),
        ],
        "initContainers": [
            container("i", resources={"requests": {"cpu": "1"}}),
            container("s", restartPolicy="Always", resources={"requests": {"cpu": "1"}}),
        ],
    },
    "sized as a whole": {"containers": [container("a")], "resources": {"requests": {"cpu": "1"}}},
    "ended": {
        "containers": [container("a"), container("b")],
        "initContainers": [container("i")],
        "restartPolicy": "OnFailure",
    },
}


def _ended(name: str, code: int) -> dict[str, Any]:
    fields = {"image": "", "imageID": "", "ready": False, "restartCount": 0}
    return {"name": name, **fields, "state": {"terminated": {"exitCode": code}}}


# What is written to the status and the ephemeral containers of some bases after they were created.
STATUSES: dict[str, dict[str, Any]] = {
    "ended": {
        "containerStatuses": [_ended("a", 0), _ended("b", 1)],
        "initContainerStatuses": [_ended("i", 0)],
        "podIPs": [{"ip": "1.2.3.4"}],
    }
}
EPHEMERAL: dict[str, list[dict[str, Any]]] = {"ended": [{"name": "e", "image": "busybox:1"}]}

# Admission gives every pod the last two.
_TOLERATIONS = [
    *BASES["plain"]["tolerations"],
    *(
        {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for name in ("not-ready", "unreachable")
    ),
]
_RESOURCES = {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}
_TERMS = "requiredDuringSchedulingIgnoredDuringExecution"


def _node_affinity(*terms: Any) -> dict[str, Any]:
    return {"affinity": {"nodeAffinity": {_TERMS: {"nodeSelectorTerms": list(terms)}}}}


def _expression(key: str, value: str = "1") -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": [value]}


def _plain(**spec: Any) -> tuple[str, dict[str, Any]]:
    return "plain", {"spec": spec}


def _gated(**spec: Any) -> tuple[str, dict[str, Any]]:
    return "gated", {"spec": spec}


def _resized(first: dict[str, Any], second: dict[str, Any] | None = None, **spec: Any) -> tuple[str, dict[str, Any]]:
    """The pod `sized` with other resources in its containers."""
    a, b = BASES["sized"]["containers"]
    changed = [{**a, "resources": first}, b if second is None else {**b, "resources": second}]
    return "sized", {"spec": {"containers": changed, **spec}}


def _resized_init(first: dict[str, Any], sidecar: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    i, s = BASES["sized"]["initContainers"]
    return "sized", {"spec": {"initContainers": [{**i, "resources": first}, {**s, "resources": sidecar}]}}


def _running(name: str) -> dict[str, Any]:
    return {**_ended(name, 0), "state": {"running": {}}}


# Name -> base and merge patch. Lists are replaced by a merge patch, so containers are given in full.
_UPDATES: dict[str, tuple[str, dict[str, Any]]] = {
    "nothing": ("plain", {}),
    "label": ("plain", {"metadata": {"labels": {"x": "y"}}}),
    "bad label": ("plain", {"metadata": {"labels": {"a b": "y z"}}}),
    "annotation": ("plain", {"metadata": {"annotations": {"x": "y"}}}),
    "mirror annotation": ("plain", {"metadata": {"annotations": {"kubernetes.io/config.mirror": "y"}}}),
    "image": _plain(containers=[container("a", "nginx:2"), container("b", "redis:8")]),
    "empty image": _plain(containers=[container("a", ""), container("b", " redis:8")]),
    "init image": _plain(initContainers=[container("i", "busybox:2")]),
    "fewer containers": _plain(containers=[container("a")]),
    "more containers": _plain(containers=[container("a"), container("b"), container("c")]),
    "fewer init containers": _plain(initContainers=None),
    "renamed container": _plain(containers=[container("a"), container("c", "redis:7")]),
    "env": _plain(containers=[container("a", env=[{"name": "A", "value": "1"}]), container("b", "redis:7")]),
    "resources": _plain(containers=[container("a", resources=_RESOURCES), container("b", "redis:7")]),
    "deadline added": _plain(activeDeadlineSeconds=5),
    "deadline bad": _plain(activeDeadlineSeconds=-5),
    "deadline lower": ("deadline", {"spec": {"activeDeadlineSeconds": 50}}),
    "deadline higher": ("deadline", {"spec": {"activeDeadlineSeconds": 150}}),
    "deadline removed": ("deadline", {"spec": {"activeDeadlineSeconds": None}}),
    "toleration added": _plain(tolerations=[*_TOLERATIONS, {"key": "u", "operator": "Exists"}]),
    "bad toleration added": _plain(tolerations=[*_TOLERATIONS, {"key": "u v"}]),
    "toleration shortened": _plain(tolerations=[{**_TOLERATIONS[0], "tolerationSeconds": 1}, *_TOLERATIONS[1:]]),
    "toleration removed": _plain(tolerations=_TOLERATIONS[1:]),
    "toleration changed": _plain(tolerations=[{**_TOLERATIONS[0], "key": "z"}, *_TOLERATIONS[1:]]),
    "grace period": _plain(terminationGracePeriodSeconds=5),
    "node selector": _plain(nodeSelector={"b": "1"}),
    "node name": _plain(nodeName="n"),
    "volumes": _plain(volumes=[{"name": "v"}]),
    "host network": _plain(hostNetwork=True),
    "restart policy": _plain(restartPolicy="Never"),
    "gate added": _plain(schedulingGates=[{"name": "x/one"}]),
    "priority": _plain(priority=5),
    "service account": _plain(serviceAccountName="sa", serviceAccount="sa"),
    "ephemeral container": _plain(ephemeralContainers=[{"name": "e", "image": "i"}]),
    "scheduler": _plain(schedulerName="mine"),
    "finalizer": ("plain", {"metadata": {"finalizers": ["x"]}}),
    "owner without uid": (
        "plain",
        {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "", "name": "", "uid": ""}]}},
    ),
    "two controllers": (
        "plain",
        {
            "metadata": {
                "ownerReferences": [
                    {"apiVersion": "apps/v1", "kind": "A", "name": "a", "uid": "1", "controller": True},
                    {"apiVersion": "apps/v1", "kind": "B", "name": "b", "uid": "2", "controller": True},
                ]
            }
        },
    ),
    "gate removed": _gated(schedulingGates=[{"name": "x/two"}]),
    "all gates removed": _gated(schedulingGates=None),
    "gate replaced": _gated(schedulingGates=[{"name": "x/three"}]),
    "gated selector added": _gated(nodeSelector={"b": "2"}),
    "gated selector changed": _gated(nodeSelector={"a": "2"}),
    "gated selector removed": _gated(nodeSelector=None),
    "gated expression added": _gated(**_node_affinity({"matchExpressions": [_expression("k"), _expression("l")]})),
    "gated expression changed": _gated(**_node_affinity({"matchExpressions": [_expression("k", "2")]})),
    "gated term added": _gated(**_node_affinity({"matchExpressions": [_expression("k")]}, {})),
    "gated affinity removed": _gated(affinity=None),
    "gated pod affinity": _gated(affinity={"podAffinity": {}}),
    "gated image": _gated(containers=[container("a", "nginx:3")]),
    "gated affinity set": (
        "gated without affinity",
        {"spec": _node_affinity({"matchExpressions": [_expression("k")]})},
    ),
    "gated selector set": ("gated without affinity", {"spec": {"nodeSelector": {"a": "1"}}}),
    "gated pod affinity set": ("gated without affinity", {"spec": {"affinity": {"podAffinity": {}}}}),
}

_SIZE = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}}
_RESIZES: dict[str, tuple[str, dict[str, Any]]] = {
    "nothing": ("sized", {}),
    "more cpu": _resized({**_SIZE, "limits": {"cpu": "3"}}),
    "memory limit added": _resized({**_SIZE, "limits": {"cpu": "2", "memory": "2Gi"}}),
    "request above limit": _resized({**_SIZE, "requests": {"cpu": "3", "memory": "1Gi"}}),
    "request removed": _resized({"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}),
    "limits removed": _resized({"requests": {"cpu": "1", "memory": "1Gi"}}),
    "other resource": _resized(
        _SIZE, {"limits": {"ephemeral-storage": "2Gi"}, "requests": {"ephemeral-storage": "1Gi"}}
    ),
    "other resource added": _resized({**_SIZE, "limits": {"cpu": "2", "ephemeral-storage": "1Gi"}}),
    "image is ignored": (
        "sized",
        {"spec": {"containers": [{**one, "image": "x"} for one in BASES["sized"]["containers"]]}},
    ),
    "label is ignored": ("sized", {"metadata": {"labels": {"a b": "c"}}}),
    "resize policy": (
        "sized",
        {
            "spec": {
                "containers": [
                    {**one, "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}
                    for one in BASES["sized"]["containers"]
                ]
            }
        },
    ),
    "container removed": ("sized", {"spec": {"containers": BASES["sized"]["containers"][:1]}}),
    "containers reordered": ("sized", {"spec": {"containers": BASES["sized"]["containers"][::-1]}}),
    "sidecar": _resized_init({"requests": {"cpu": "1"}}, {"requests": {"cpu": "2"}}),
    "sidecar request removed": _resized_init({"requests": {"cpu": "1"}}, {}),
    "init container": _resized_init({"requests": {"cpu": "2"}}, {"requests": {"cpu": "1"}}),
    "quality of service": (
        "plain",
        {"spec": {"containers": [container("a", resources=_RESOURCES), container("b", "redis:7")]}},
    ),
    "pod level": ("sized as a whole", {}),
}
_EPHEMERAL_CHANGES: dict[str, tuple[str, dict[str, Any]]] = {
    "added": ("plain", {"spec": {"ephemeralContainers": [{"name": "e", "image": "i", "targetContainerName": "a"}]}}),
    "added badly": (
        "plain",
        {
            "spec": {
                "ephemeralContainers": [
                    {"name": "a", "image": ""},
                    {"name": "e", "image": "i", "targetContainerName": "x", "ports": [{"containerPort": 1}]},
                ]
            }
        },
    ),
    "removed": ("ended", {"spec": {"ephemeralContainers": None}}),
    "changed": ("ended", {"spec": {"ephemeralContainers": [{"name": "e", "image": "busybox:2"}]}}),
    "another": ("ended", {"spec": {"ephemeralContainers": [*EPHEMERAL["ended"], {"name": "f", "image": "i"}]}}),
    "other changes are ignored": ("plain", {"spec": {"nodeName": "x", "containers": []}}),
}
_STATUS_CHANGES: dict[str, tuple[str, dict[str, Any]]] = {
    "condition": ("plain", {"status": {"conditions": [{"type": "InPlaceUpdateReady", "status": "True"}]}}),
    "bad condition": (
        "plain",
        {"status": {"conditions": [{"type": "a b", "status": "True", "observedGeneration": -1}]}},
    ),
    "label too": ("plain", {"metadata": {"labels": {"a": "b"}}, "status": {"phase": "Running"}}),
    "bad label": ("plain", {"metadata": {"labels": {"a b": "b"}}}),
    "spec is ignored": ("plain", {"spec": {"nodeName": "x"}, "status": {"phase": "Running"}}),
    "quality of service": ("plain", {"status": {"qosClass": "Guaranteed"}}),
    "quality of service lost": ("plain", {"status": {"qosClass": None}}),
    "nominated node": ("plain", {"status": {"nominatedNodeName": "A_"}}),
    "addresses": ("plain", {"status": {"podIPs": [{"ip": "1.1.1.1"}, {"ip": "2.2.2.2"}], "podIP": "1.1.1.1"}}),
    "dual stack": ("plain", {"status": {"podIPs": [{"ip": "1.1.1.1"}, {"ip": "::1"}], "podIP": "1.1.1.1"}}),
    "no address": ("plain", {"status": {"podIPs": [{"ip": "x"}], "podIP": "x"}}),
    "success runs again": ("ended", {"status": {"containerStatuses": [_running("a"), _ended("b", 1)]}}),
    "failure runs again": ("ended", {"status": {"containerStatuses": [_ended("a", 0), _running("b")]}}),
    "init runs again": ("ended", {"status": {"initContainerStatuses": [_running("i")]}}),
    "status gone": ("ended", {"status": {"containerStatuses": None}}),
}

# Name -> base, subresource and merge patch.
UPDATES: dict[str, tuple[str, str, dict[str, Any]]] = {
    f"{subresource} {name}".strip(): (base, subresource, patch)
    for subresource, cases in (
        ("", _UPDATES),
        ("resize", _RESIZES),
        ("ephemeralcontainers", _EPHEMERAL_CHANGES),
        ("status", _STATUS_CHANGES),
    )
    for name, (base, patch) in cases.items()
}
