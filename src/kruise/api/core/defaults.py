"""The defaults of pods and pod templates: those of the API server, and those of our own workloads.

The values come from the table, which found them by probing the API server's own defaulting code. What depends on
other fields is spelled out here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from kruise.api.core import images, pod_resources, schema, values
from kruise.api.core.pod_resources import amounts
from kruise.api.core.values import CLIENT_FORM, SERVER_FORM, Form, Value

_VOLUME_NAME = "name"
_PULLED = {"core.Container": "image", "core.EphemeralContainer": "image"}
_LEFT_OUT_FOR_WORKLOADS = frozenset(
    {
        "core.AzureDiskVolumeSource",
        "core.FileKeySelector",
        "core.GRPCAction",
        "core.ISCSIVolumeSource",
        "core.PersistentVolumeClaimSpec",
        "core.RBDVolumeSource",
        "core.ScaleIOVolumeSource",
    }
)


def default_template(template: Any, *, path: str = "") -> Value:
    """A template with the defaults that the API server gives it inside a native workload.

    All functions here raise TemplateTypeError for a value of the wrong type; `path` is where the template is.
    """
    return values.normalise(template, schema.POD_TEMPLATE_SPEC, path=path, form=_form("template", CLIENT_FORM))


def default_workload_template(template: Any, *, path: str = "", host_network_ports: bool = False) -> Value:
    """A template with the defaults of our own workloads (CS-31, BJ-14, ST-24).

    They differ from the API server's in that regular containers get the pull policy `Always` whatever their tag, and
    that the rarer volume sources and gRPC probes are left for the API server to default in the pod.
    `host_network_ports` is the gate DefaultHostNetworkHostPortsInPodTemplates.
    """
    form = _form("template", CLIENT_FORM, left_out=_LEFT_OUT_FOR_WORKLOADS)
    result = values.normalise(_pulled_always(template), schema.POD_TEMPLATE_SPEC, path=path, form=form)
    if host_network_ports:
        _host_ports(result["spec"])
    return result


def stored_template(template: Any) -> Value:
    """A template as a native workload has it after the API server took it in."""
    result = values.normalise(template, schema.POD_TEMPLATE_SPEC, form=_form("template", SERVER_FORM))
    _take_in(result)
    return result


def default_pod(pod: Any) -> Value:
    """A pod as the API server takes it in: defaults, deprecated aliases, and fields of features that are off dropped.

    Admission comes after this, and `creation` after that. Updates of pods are taken in the same way.
    """
    result = values.normalise(pod, schema.POD, form=_form("pod", SERVER_FORM))
    spec = result["spec"]
    _requests_from_limits(spec)
    _pod_level_resources(spec)
    _host_ports(spec)
    if spec["terminationGracePeriodSeconds"] < 0:
        spec["terminationGracePeriodSeconds"] = 1
    _take_in(result)
    return result


def default_claim(claim: Any, *, volume_mode: bool = True) -> Value:
    """A claim with its defaults. CloneSets leave the volume mode to the API server (CS-32)."""
    left_out = frozenset() if volume_mode else frozenset({"core.PersistentVolumeClaimSpec"})
    return values.normalise(claim, schema.CLAIM, form=_form("claim", CLIENT_FORM, left_out=left_out))


def _form(kind: str, written: Form, *, left_out: frozenset[str] = frozenset()) -> Form:
    rules = schema.defaults(kind)

    def fill_in(struct: str, value: Mapping[str, Any]) -> Mapping[str, Any]:
        wanted = rules.get(struct)
        if wanted is None or struct in left_out:
            return value
        fields = schema.struct_type(struct).by_name
        missing = {
            name: default
            for name, default in wanted.items()
            if _is_unset(value.get(name), pointer=fields[name].pointer)
        }
        if struct in _PULLED and "imagePullPolicy" in missing:
            image = value.get(_PULLED[struct])
            missing["imagePullPolicy"] = images.default_pull_policy(image if isinstance(image, str) else "")
        if struct == "core.Volume" and _has_source(value):
            missing.pop("emptyDir", None)
        return {**value, **missing} if missing else value

    return dataclasses.replace(written, fill_in=fill_in, round_quantities=True)


def _is_unset(given: Any, *, pointer: bool) -> bool:
    return given is None or (not pointer and given in ("", 0))


def _has_source(volume: Mapping[str, Any]) -> bool:
    known = schema.struct_type("core.Volume").by_name
    return any(volume[name] is not None for name in volume if name in known and name != _VOLUME_NAME)


def _pulled_always(template: Any) -> Any:
    """Regular containers without a pull policy, given `Always`. What has a wrong type is left for reading to refuse."""
    spec = template.get("spec") if isinstance(template, Mapping) else None
    if not isinstance(spec, Mapping) or not isinstance(spec.get("containers"), list | tuple):
        return template
    changed = [
        {**container, "imagePullPolicy": "Always"}
        if isinstance(container, Mapping) and not container.get("imagePullPolicy")
        else container
        for container in spec["containers"]
    ]
    return {**template, "spec": {**spec, "containers": changed}}


def _requests_from_limits(spec: Value) -> None:
    """Only pods get this: in a template the absence of requests stays visible."""
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        limits = amounts(container, "limits")
        if limits:
            merged = {**limits, **amounts(container, "requests")}
            _set(container["resources"], "requests", dict(sorted(merged.items())), "core.ResourceRequirements")


def _pod_level_resources(spec: Value) -> None:
    resources = spec.get("resources")
    if not resources:
        return
    limits, requests = dict(resources.get("limits") or {}), dict(resources.get("requests") or {})
    if limits or requests:
        for name, amount in pod_resources.aggregate(spec, "limits").items():
            if pod_resources.is_huge_pages(name) and name not in requests:
                limits.setdefault(name, amount)
    if limits:
        _set(resources, "limits", dict(sorted(limits.items())), "core.ResourceRequirements")
        for name, amount in pod_resources.aggregate(spec, "requests").items():
            if pod_resources.is_pod_level(name) and pod_resources.is_overcommit_allowed(name):
                requests.setdefault(name, amount)
        for name, amount in limits.items():
            if pod_resources.is_pod_level(name):
                requests.setdefault(name, amount)
        if requests:
            _set(resources, "requests", dict(sorted(requests.items())), "core.ResourceRequirements")


def _host_ports(spec: Value) -> None:
    """Containers on the host's network open their ports there, so the two numbers are the same."""
    if not spec.get("hostNetwork"):
        return
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        for port in container.get("ports") or ():
            if not port.get("hostPort") and port.get("containerPort"):
                _set(port, "hostPort", port["containerPort"], "core.ContainerPort")


def _set(struct: Value, field: str, value: Any, name: str) -> None:
    """Set a field in place and keep the struct order."""
    struct[field] = value
    rearranged = values.ordered(struct, name)
    struct.clear()
    struct.update(rearranged)


# What the API server does to every pod spec it takes in


_INIT_CONTAINER_ANNOTATIONS = (
    "pod.beta.kubernetes.io/init-containers",
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
    "pod.alpha.kubernetes.io/init-container-statuses",
)


def _take_in(holder: Value) -> None:
    """Aliases are made equal, and fields of features that are off in Kubernetes 1.34 are dropped."""
    annotations = holder["metadata"].get("annotations") or {}
    for key in _INIT_CONTAINER_ANNOTATIONS:
        annotations.pop(key, None)
    if not annotations:
        holder["metadata"].pop("annotations", None)
    spec = holder["spec"]
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = account
        _set(spec, "serviceAccount", account, schema.POD_SPEC)
    spec.pop("hostnameOverride", None)
    _drop_image_volumes(spec)
    for volume in spec.get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            source.pop("clusterTrustBundle", None)
            source.pop("podCertificate", None)
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        for container in spec.get(kind) or ():
            _drop_container_fields(container, is_init=kind == "initContainers")


def _drop_image_volumes(spec: Value) -> None:
    dropped = {volume["name"] for volume in spec.get("volumes") or () if "image" in volume}
    if not dropped:
        return
    _keep(spec, "volumes", [volume for volume in spec["volumes"] if "image" not in volume])
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        for container in spec.get(kind) or ():
            mounts = container.get("volumeMounts") or ()
            _keep(container, "volumeMounts", [mount for mount in mounts if mount["name"] not in dropped])


def _keep(holder: Value, field: str, remaining: list[Any]) -> None:
    if remaining:
        holder[field] = remaining
    else:
        holder.pop(field, None)


def _drop_container_fields(container: Value, *, is_init: bool) -> None:
    container.pop("restartPolicyRules", None)
    if not is_init or container.get("restartPolicy") != "Always":
        container.pop("restartPolicy", None)
    lifecycle = container.get("lifecycle")
    if lifecycle is not None and lifecycle.pop("stopSignal", None) is not None and not lifecycle:
        container.pop("lifecycle")
    for variable in container.get("env") or ():
        if variable.get("valueFrom"):
            variable["valueFrom"].pop("fileKeyRef", None)
