"""Changes to pods: bases that are created, and merge patches over them."""

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
}

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


# Name -> base and merge patch. Lists are replaced by a merge patch, so containers are given in full.
UPDATES: dict[str, tuple[str, dict[str, Any]]] = {
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
