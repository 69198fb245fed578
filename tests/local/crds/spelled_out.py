"""A schema and an object in the manner of a CloneSet whose template is spelled out."""

from __future__ import annotations

from typing import Any

from tests.local.crds.cases import INT_OR_STRING, LIST_KEYS, LIST_TYPE, PRESERVE, with_spec


def workload() -> tuple[dict[str, Any], dict[str, Any]]:
    text, number, flag = {"type": "string"}, {"type": "integer", "format": "int32"}, {"type": "boolean"}
    either = {INT_OR_STRING: True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
    labels = {"type": "object", "additionalProperties": text}
    quantity = {**either, "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))([KMGTPE]i|[numkMGTPE])?$"}

    def keyed(key: str, **properties: Any) -> dict[str, Any]:
        item = {"type": "object", "required": [key], "properties": {key: text, **properties}}
        return {"type": "array", LIST_TYPE: "map", LIST_KEYS: [key], "items": item}

    probe = {
        "type": "object",
        "properties": {
            "httpGet": {"type": "object", "required": ["port"], "properties": {"path": text, "port": either}},
            "periodSeconds": {**number, "default": 10},
            "timeoutSeconds": {**number, "default": 1},
            "failureThreshold": {**number, "minimum": 1, "default": 3},
        },
    }
    amounts = {"type": "object", "additionalProperties": quantity}
    container = keyed(
        "name",
        image=text,
        command={"type": "array", "items": text},
        env=keyed("name", value=text, valueFrom={"type": "object", PRESERVE: True}),
        ports=keyed(
            "name", containerPort={**number, "minimum": 1, "maximum": 65535}, protocol={**text, "default": "TCP"}
        ),
        resources={"type": "object", "properties": {"limits": amounts, "requests": amounts}},
        readinessProbe=probe,
        livenessProbe=probe,
        volumeMounts=keyed("mountPath", name=text, readOnly=flag),
        imagePullPolicy={**text, "enum": ["Always", "IfNotPresent", "Never"]},
    )
    template = {
        "type": "object",
        "properties": {
            "metadata": {"type": "object", PRESERVE: True},
            "spec": {"type": "object", "properties": {"containers": container, "nodeSelector": labels}},
        },
    }
    strategy = {
        "type": "object",
        "properties": {
            "type": {**text, "enum": ["ReCreate", "InPlaceIfPossible", "InPlaceOnly"], "default": "ReCreate"},
            "partition": {**either, "default": 0},
            "maxUnavailable": {**either, "default": "20%"},
            "paused": flag,
        },
    }
    schema = with_spec(
        {
            "replicas": {**number, "minimum": 0},
            "selector": {"type": "object", "properties": {"matchLabels": labels}},
            "template": template,
            "updateStrategy": {**strategy, "default": {}},
            "minReadySeconds": number,
        },
        required=["selector", "template"],
    )
    one = {
        "name": "main",
        "image": "registry.example.com/team/app:1.2.3",
        "command": ["/bin/app", "--flag", "value", "--other=1"],
        "env": [{"name": f"VARIABLE_{position}", "value": "some value"} for position in range(10)],
        "ports": [{"name": "http", "containerPort": 8080}, {"name": "metrics", "containerPort": 9090}],
        "resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}},
        "livenessProbe": {"httpGet": {"path": "/live", "port": "http"}, "periodSeconds": 20},
        "volumeMounts": [{"mountPath": f"/mnt/{position}", "name": "data"} for position in range(3)],
        "imagePullPolicy": "IfNotPresent",
    }
    containers = [{**one, "name": name} for name in ("main", "sidecar", "agent")]
    obj = {
        "apiVersion": "apps.kruise.io/v1alpha1",
        "kind": "CloneSet",
        "metadata": {"name": "sample", "namespace": "default", "labels": {"app": "sample"}},
        "spec": {
            "replicas": 5,
            "selector": {"matchLabels": {"app": "sample"}},
            "template": {"metadata": {"labels": {"app": "sample"}}, "spec": {"containers": containers}},
            "updateStrategy": {"type": "InPlaceIfPossible", "maxUnavailable": "20%"},
        },
    }
    return schema, obj
