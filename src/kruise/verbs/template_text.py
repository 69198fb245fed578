"""A pod template as text, in the layout of `kubectl describe`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kruise.machinery.documents import Json, value_at

_NONE = "<none>"


def described(template: Json) -> list[str]:
    """`Pod Template:` and what it holds, one entry a line."""
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    lines = ["Pod Template:", *_pairs("  Labels", metadata.get("labels"), "=")]
    if metadata.get("annotations"):
        lines += _pairs("  Annotations", metadata["annotations"], ": ")
    if spec.get("serviceAccountName"):
        lines.append(f"  Service Account:  {spec['serviceAccountName']}")
    if spec.get("initContainers"):
        lines += _containers("Init Containers", spec["initContainers"])
    lines += _containers("Containers", spec.get("containers") or ())
    lines += _volumes(spec.get("volumes") or ())
    if spec.get("priorityClassName"):
        lines.append(f"  Priority Class Name:  {spec['priorityClassName']}")
    lines += _pairs("  Node-Selectors", spec.get("nodeSelector"), "=")
    lines += _several("  Tolerations", [_toleration(one) for one in spec.get("tolerations") or ()])
    return lines


def _pairs(title: str, pairs: Mapping[str, str] | None, between: str) -> list[str]:
    return _several(title, [f"{name}{between}{value}" for name, value in sorted((pairs or {}).items())])


def _several(title: str, texts: list[str]) -> list[str]:
    first, *others = texts or [_NONE]
    return [f"{title}:  {first}", *(f"{' ' * (len(title) + 3)}{text}" for text in others)]


def _containers(title: str, containers: Iterable[Json]) -> list[str]:
    lines = [f"  {title}:"]
    for container in containers:
        lines.append(f"   {container.get('name')}:")
        lines += [f"    {line}" for line in _container(container)]
    return lines


def _container(container: Json) -> list[str]:
    ports = container.get("ports") or ()
    rows: list[tuple[str, str]] = [
        ("Image", str(container.get("image", ""))),
        _plural("Port", [_port(port, "containerPort") for port in ports]),
        _plural("Host Port", [_port(port, "hostPort") for port in ports]),
    ]
    for title, field in (("Command", "command"), ("Args", "args")):
        if container.get(field):
            rows.append((title, " ".join(str(word) for word in container[field])))
    for title, field in (("Limits", "limits"), ("Requests", "requests")):
        amounts = value_at(container, ("resources", field), {})
        if amounts:
            rows.append((title, ", ".join(f"{name}={amount}" for name, amount in sorted(amounts.items()))))
    for title, field in (("Liveness", "livenessProbe"), ("Readiness", "readinessProbe"), ("Startup", "startupProbe")):
        if container.get(field):
            rows.append((title, _probe(container[field])))
    width = max(len(title) for title, _ in rows) + 3
    lines = [f"{title + ':':<{width}}{text}" for title, text in rows]
    return [*lines, *_environment(container.get("env") or ()), *_mounts(container.get("volumeMounts") or ())]


def _plural(title: str, texts: list[str]) -> tuple[str, str]:
    return (f"{title}s" if len(texts) > 1 else title, ", ".join(texts) or _NONE)


def _port(port: Json, field: str) -> str:
    name = f" ({port['name']})" if port.get("name") else ""
    return f"{port.get(field, 0)}/{port.get('protocol', 'TCP')}{name}"


def _probe(probe: Json) -> str:
    action = "unknown"
    if "exec" in probe:
        action = f"exec {probe['exec'].get('command') or []}"
    elif "httpGet" in probe:
        get = probe["httpGet"]
        address = f"{get.get('host', '')}:{get.get('port')}{get.get('path', '/')}"
        action = f"http-get {get.get('scheme', 'HTTP').lower()}://{address}"
    elif "tcpSocket" in probe:
        action = f"tcp-socket {probe['tcpSocket'].get('host', '')}:{probe['tcpSocket'].get('port')}"
    elif "grpc" in probe:
        action = f"grpc <pod>:{probe['grpc'].get('port')}"
    figures = (
        f"delay={probe.get('initialDelaySeconds', 0)}s timeout={probe.get('timeoutSeconds', 1)}s "
        f"period={probe.get('periodSeconds', 10)}s #success={probe.get('successThreshold', 1)} "
        f"#failure={probe.get('failureThreshold', 3)}"
    )
    return f"{action} {figures}"


def _environment(variables: Iterable[Json]) -> list[str]:
    lines = [f"  {one.get('name')}:  {_variable(one)}" for one in variables]
    return ["Environment:", *lines] if lines else [f"Environment:  {_NONE}"]


def _variable(variable: Json) -> str:
    source: dict[str, Any] = variable.get("valueFrom") or {}
    if not source:
        return str(variable.get("value", ""))
    if "secretKeyRef" in source:
        return (
            f"<set to the key '{source['secretKeyRef'].get('key')}' in secret '{source['secretKeyRef'].get('name')}'>"
        )
    if "configMapKeyRef" in source:
        reference = source["configMapKeyRef"]
        return f"<set to the key '{reference.get('key')}' of config map '{reference.get('name')}'>"
    if "fieldRef" in source:
        return f"({source['fieldRef'].get('apiVersion', 'v1')}:{source['fieldRef'].get('fieldPath')})"
    return f"({value_at(source, ('resourceFieldRef', 'resource'), 'unknown')})"


def _mounts(mounts: Iterable[Json]) -> list[str]:
    lines = [
        f"  {one.get('mountPath')} from {one.get('name')} ({'ro' if one.get('readOnly') else 'rw'})"
        for one in sorted(mounts, key=lambda one: str(one.get("mountPath")))
    ]
    return ["Mounts:", *lines] if lines else [f"Mounts:       {_NONE}"]


def _volumes(volumes: Iterable[Json]) -> list[str]:
    lines = []
    for volume in volumes:
        kinds = [name for name in volume if name != "name"]
        lines.append(f"   {volume.get('name')}:  {', '.join(kinds) or _NONE}")
    return ["  Volumes:", *lines] if lines else [f"  Volumes:  {_NONE}"]


def _toleration(toleration: Json) -> str:
    value = f"={toleration['value']}" if toleration.get("value") else ""
    effect = f":{toleration['effect']}" if toleration.get("effect") else ""
    operator = " op=Exists" if toleration.get("operator") == "Exists" and not toleration.get("value") else ""
    seconds = toleration.get("tolerationSeconds")
    return f"{toleration.get('key', '')}{value}{effect}{operator}{f' for {seconds}s' if seconds is not None else ''}"
