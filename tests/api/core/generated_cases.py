"""Random templates drawn from the table of types. The same seed gives the same template.

Values come from small pools of sound and odd values, by the name of the field, so that a good part of the templates is
accepted and the rest is refused for every kind of reason.
"""

from __future__ import annotations

import random
import re
from typing import Any

from kruise.api.core import defaults, schema, validation

_NAMES = ("a", "b", "main", "v", "c")
_ODD_TEXTS = ("", "A", "a b", "a.b", "-x", "a/b", "..", "../x", "/x", "ü", "x" * 64, "a=b", "1", "true")
_AMOUNTS = ("0", "1", "500m", "0.5", "1Gi", "1.5Gi", "128Mi", "1k", 2, "100u", "-1", "3Mi")
_RESOURCES = ("cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "example.com/gpu", "storage", "gpu")
_LABELS = ("app", "x.io/y", "k", "a b", "pod-template-hash")
_WORDS: dict[str, tuple[Any, ...]] = {
    "image": ("nginx", "nginx:1", "nginx:latest", "a/b@sha256:" + "0" * 64, "Bad", " x", ""),
    "imagePullPolicy": ("", "Always", "IfNotPresent", "Never", "x"),
    "pullPolicy": ("", "Always", "x"),
    "restartPolicy": ("Always", "OnFailure", "Never", "", "NotRequired", "RestartContainer", "x"),
    "dnsPolicy": ("", "ClusterFirst", "Default", "ClusterFirstWithHostNet", "None", "x"),
    "protocol": ("", "TCP", "UDP", "SCTP", "x"),
    "scheme": ("", "HTTP", "HTTPS", "x"),
    "path": ("a", "a/b", "/a", "", "../a", "..a"),
    "mountPath": ("/a", "/b", "/c", ""),
    "devicePath": ("/a", "/d", "/../x"),
    "subPath": ("", "a", "/a", "../a"),
    "subPathExpr": ("", "$(A)", "/a"),
    "mountPropagation": ("None", "HostToContainer", "Bidirectional", "x"),
    "recursiveReadOnly": ("Disabled", "Enabled", "IfPossible", "x"),
    "terminationMessagePolicy": ("", "File", "FallbackToLogsOnError", "x"),
    "operator": ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Equal", "", "x"),
    "effect": ("", "NoSchedule", "NoExecute", "PreferNoSchedule", "x"),
    "key": ("a", "app", "metadata.name", "a b", ""),
    "fieldPath": ("metadata.name", "metadata.labels['app']", "status.podIP", "metadata.labels", "spec.foo", ""),
    "resource": ("limits.cpu", "requests.memory", "limits.hugepages-2Mi", "x", ""),
    "divisor": ("0", "1", "1m", "1Mi", "2"),
    "apiVersion": ("", "v1", "v2"),
    "topologyKey": ("zone", "kubernetes.io/hostname", ""),
    "whenUnsatisfiable": ("DoNotSchedule", "ScheduleAnyway", "x"),
    "nodeAffinityPolicy": ("Honor", "Ignore", "x"),
    "nodeTaintsPolicy": ("Honor", "Ignore", "x"),
    "conditionType": ("InPlaceUpdateReady", "x.io/y", "a b"),
    "type": ("", "Directory", "Localhost", "RuntimeDefault", "Unconfined", "x"),
    "procMount": ("Default", "Unmasked", "x"),
    "fsGroupChangePolicy": ("Always", "OnRootMismatch", "x"),
    "supplementalGroupsPolicy": ("Merge", "Strict", "x"),
    "seLinuxChangePolicy": ("Recursive", "MountOption"),
    "resourceName": ("cpu", "memory", "x"),
    "ip": ("1.2.3.4", "::1", "x"),
    "nameservers": ("1.1.1.1", "::1", "x"),
    "searches": ("a.b", ".", "a_b.c", "A"),
    "medium": ("", "Memory"),
    "volumeMode": ("Filesystem", "Block", "x"),
    "accessModes": ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteOncePod", "x"),
    "cachingMode": ("None", "ReadOnly", "x"),
    "kind": ("Shared", "Managed", "Dedicated", "PersistentVolumeClaim", "x"),
    "diskURI": ("https://a", "/subscriptions/a", "x"),
    "iqn": ("iqn.2001-04.com.example:storage", "eui.0123456789abcdef", "x", ""),
    "initiatorName": ("iqn.2001-04.com.example:storage", "x"),
    "registry": ("a:1", "a:1,b:2", "x", ""),
    "runAsUserName": ("user", "D\\user", "a\\b\\c", ""),
    "containerName": ("main", ""),
    "weight": (1, 50, 100, 0, 101),
    "containerPort": (80, 81, 8080, 0, 70000),
    "hostPort": (0, 80, 81, 70000),
    "port": (80, 0, 70000),
    "expirationSeconds": (600, 3600, 1),
    "lun": (0, 1, 256),
    "partition": (0, 1, 256),
    "seconds": (0, 5, 31),
    "defaultMode": (0, 420, 511, 512, -1),
    "mode": (0, 420, 512),
    "serviceAccountName": ("", "sa"),
    "serviceAccount": ("", "sa"),
    "schedulerName": ("", "mine"),
    "add": ("NET_ADMIN", "CAP_SYS_ADMIN"),
    "stopSignal": ("SIGTERM", "x"),
}
# Admission plugins answer these before validation does, or they bring in other kinds.
_LEFT_OUT = frozenset(
    {"priority", "preemptionPolicy", "overhead", "runtimeClassName", "priorityClassName", "managedFields"}
)
_RARE = frozenset(
    {
        "ephemeralContainers", "os", "hostUsers", "resourceClaims", "claims", "windowsOptions", "hostnameOverride",
        "restartPolicyRules", "fileKeyRef", "image", "podCertificate", "clusterTrustBundle", "ownerReferences",
    }
)  # fmt: skip


class _Maker:
    def __init__(self, seed: int, oddness: float) -> None:
        self.random = random.Random(seed)
        self.oddness = oddness

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def odd(self) -> bool:
        return self.chance(self.oddness)

    def struct(self, name: str, depth: int, wanted: frozenset[str] = frozenset()) -> dict[str, Any]:
        result: dict[str, Any] = {}
        fields = list(schema.struct_type(name).fields)
        if name == "core.Volume":
            sources = [field for field in fields if field.name not in ("name", "image")]
            chosen = self.random.sample(sources, 2 if self.odd() else self.random.choice((0, 1, 1, 1)))
            fields = [field for field in fields if field.name == "name" or field in chosen]
            wanted = frozenset(field.name for field in fields)
        for field in fields:
            if field.name in _LEFT_OUT:
                continue
            probability = 0.9 if not field.omit_empty else 0.35 if depth < 2 else 0.3
            if field.name in _RARE and field.name not in wanted and name != "core.Container":
                probability = 0.03
            if field.name in wanted or self.chance(probability):
                result[field.name] = self.value(field.name, field.type, depth + 1, name)
        if self.chance(0.02):
            result["unknownField"] = {"x": 1}
        if self.chance(0.03) and result:
            result[self.random.choice(sorted(result))] = None
        return result

    def value(self, field: str, wire_type: str, depth: int, owner: str) -> Any:
        if wire_type.startswith(schema.LIST):
            count = self.random.choice((0, 1, 1, 2) if depth < 8 else (0, 1))
            if field == "containers":
                count = self.random.choice((1, 1, 2))
            return [self.value(field, wire_type[2:], depth + 1, owner) for _ in range(count)]
        if wire_type.startswith(schema.MAP):
            return self.map(field, wire_type[2:])
        if schema.is_struct(wire_type):
            wanted = frozenset({"name", "image"}) if wire_type == "core.Container" and not self.odd() else frozenset()
            return self.struct(wire_type, depth, wanted)
        return self.leaf(field, wire_type)

    def map(self, field: str, element: str) -> dict[str, Any]:
        if element == "quantity":
            names = self.random.sample(_RESOURCES if self.odd() else _RESOURCES[:3], self.random.choice((0, 1, 2)))
            return {name: self.leaf("", "quantity") for name in names}
        keys = self.random.sample(_LABELS if self.odd() else _LABELS[:3], self.random.choice((0, 1, 2)))
        return {key: self.random.choice(_ODD_TEXTS if self.odd() else _NAMES) for key in keys}

    def leaf(self, field: str, wire_type: str) -> Any:
        pool = _WORDS.get(field)
        if pool and (wire_type == "string" or not isinstance(pool[0], str)):
            return self.random.choice(pool if self.odd() else pool[: max(1, len(pool) // 2)])
        if wire_type == "string":
            return self.random.choice(_ODD_TEXTS if self.odd() else _NAMES)
        if wire_type == "bool":
            return self.chance(0.3)
        if wire_type in ("int32", "int64"):
            return self.random.choice((-1, 0, 2**31 - 1)) if self.odd() else self.random.choice((1, 1, 2, 5))
        if wire_type == "quantity":
            return self.random.choice(_AMOUNTS if self.odd() else _AMOUNTS[:8])
        if wire_type == "intorstring":
            return self.random.choice((80, "http", 0, "A")) if self.odd() else self.random.choice((80, "http"))
        if wire_type == "time":
            return "2024-01-02T03:04:05Z"
        return None


def _repaired(template: dict[str, Any]) -> dict[str, Any]:
    """Without the parts that the model finds fault with, so that what is left should be accepted."""
    for _ in range(40):
        errors = validation.validate_pod_template(defaults.stored_template(template), "")
        if not errors:
            break
        for error in errors:
            _remove(template, error.path)
        if not template["spec"].get("containers"):
            template["spec"]["containers"] = [{"name": "main", "image": "nginx:1"}]
    return template


def _remove(template: dict[str, Any], path: str) -> None:
    """Removes the deepest part on the path that exists. A missing field is the fault of what lacks it."""
    parts = re.findall(r"[^.\[\]]+", path.replace("template.", "", 1))
    if parts[0] in ("labels", "annotations"):
        template["metadata"].pop(parts[0], None)
        return
    holders: list[tuple[Any, Any]] = []
    current: Any = template
    for part in parts:
        key: Any = int(part) if isinstance(current, list) and part.isdigit() else part
        exists = key < len(current) if isinstance(current, list) and isinstance(key, int) else key in (current or ())
        if not exists or not isinstance(current, dict | list):
            break
        holders.append((current, key))
        current = current[key]
    if len(holders) > 1:
        holder, key = holders[-1]
        del holder[key]


def generated_template(seed: int) -> dict[str, Any]:
    """Two of three templates are repaired, so that they are nearly always accepted."""
    maker = _Maker(seed, oddness=(0.0, 0.05, 0.15)[seed % 3])
    spec = maker.struct(schema.POD_SPEC, 0, frozenset({"containers"}))
    # Go tells an empty list from none in these two places, and nowhere else.
    for holder in (spec.get("resources") or {}, *(spec.get("ephemeralContainers") or ())):
        for name in [name for name, value in holder.items() if value == []]:
            del holder[name]
    meta = {"labels": maker.map("labels", "string"), "annotations": maker.map("annotations", "string")}
    made = {"metadata": meta, "spec": spec}
    return _repaired(made) if seed % 3 < 2 else made


def generated_cases(count: int, start: int = 0) -> dict[str, dict[str, Any]]:
    return {f"generated {seed}": generated_template(seed) for seed in range(start, start + count)}
