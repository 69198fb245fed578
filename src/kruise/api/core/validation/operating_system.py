"""What a pod may not set because of the operating system it names."""

from __future__ import annotations

from kruise.api.core.field_errors import Path, forbidden, invalid, not_supported, required
from kruise.api.core.validation import common
from kruise.api.core.validation.common import Errors, Rules, Struct

_NOT_ON_WINDOWS = "cannot be set for a windows pod"
_POD_CONTEXT_LINUX = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
)
_CONTAINER_CONTEXT_LINUX = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)


def operating_system(path: Path, spec: Struct) -> Errors:
    system = spec.get("os")
    if system is None:
        return
    name = system["name"]
    if not name:
        yield required(path.child("os", "name"))
    elif name == "linux":
        yield from _linux(path, spec)
    elif name == "windows":
        yield from _windows(path, spec)
    else:
        yield not_supported(path.child("os"), name, ("linux", "windows"))


def _linux(path: Path, spec: Struct) -> Errors:
    contexts = [(path, spec), *common.containers_of(spec, path)]
    for where, holder in contexts:
        if (holder.get("securityContext") or {}).get("windowsOptions") is not None:
            at = where.child("securityContext", "windowsOptions")
            yield forbidden(at, "windows options cannot be set for a linux pod")


def _windows(path: Path, spec: Struct) -> Errors:
    for field in ("hostUsers", "shareProcessNamespace"):
        if spec.get(field) is not None:
            yield forbidden(path.child(field), _NOT_ON_WINDOWS)
    for field in ("hostPID", "hostIPC"):
        if spec.get(field):
            yield forbidden(path.child(field), _NOT_ON_WINDOWS)
    for field in _POD_CONTEXT_LINUX:
        if (spec.get("securityContext") or {}).get(field) is not None:
            yield forbidden(path.child("securityContext", field), _NOT_ON_WINDOWS)
    for where, container in common.containers_of(spec, path):
        for field in _CONTAINER_CONTEXT_LINUX:
            if (container.get("securityContext") or {}).get(field) is not None:
                yield forbidden(where.child("securityContext", field), _NOT_ON_WINDOWS)


def host_process(path: Path, spec: Struct, rules: Rules) -> Errors:
    """Windows host process containers: all or none, and only on the host's network."""
    of_pod = _is_host_process(spec)
    containers = tuple(common.containers_of(spec, path))
    count = 0
    for where, container in containers:
        own = _is_host_process(container)
        if of_pod is not None and own is not None and own != of_pod:
            shown = "true" if of_pod else "false"
            words = f"pod hostProcess value must be identical if both are specified, was {shown}"
            yield invalid(where.child("securityContext", "windowsOptions", "hostProcess"), own, words)
        count += bool(own if own is not None else of_pod)
    if not count:
        return
    if count != len(containers):
        words = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        yield invalid(path, "", words)
    if not spec.get("hostNetwork"):
        words = "hostNetwork must be true if pod contains any hostProcess containers"
        yield invalid(path.child("hostNetwork"), False, words)
    if not rules.allow_privileged:
        yield forbidden(path, "hostProcess containers are disallowed by cluster policy")


def _is_host_process(holder: Struct) -> bool | None:
    options = (holder.get("securityContext") or {}).get("windowsOptions") or {}
    found: bool | None = options.get("hostProcess")
    return found
