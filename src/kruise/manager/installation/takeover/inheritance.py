"""What of the settings of OpenKruise's manager and daemon ours are started with. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from kruise.machinery.documents import value_at
from kruise.manager import gates
from kruise.manager.installation.daemon import MOUNTED_AT
from kruise.manager.installation.documents import Json, arguments, gates_text
from kruise.manager.installation.takeover.standing import Standing, is_original

_GATES = "--feature-gates"
_OF_OURS = {
    "--enable-leader-election",
    "--health-probe-addr",
    "--leader-election-namespace",
    "--logtostderr",
    "--metrics-addr",
    "--rest-config-qps",
    "--sync-period",
    "--v",
}
"""Arguments that the original's installations give by themselves, and that ours have of their own."""
_OF_OUR_DAEMONS = {"--addr", "--logtostderr", "--socket-file", "--v", "--enable-pprof", "--pprof-addr"}


@dataclasses.dataclass(frozen=True, slots=True)
class Inheritance:
    values: Mapping[str, Any]
    """Of an installation, by path."""
    unknown_gates: tuple[str, ...] = ()
    """Which we do not have: they are left out, or nothing would start."""
    left: tuple[str, ...] = ()
    """Arguments for which there is no value."""


def inherited(standing: Standing) -> Inheritance:
    """Gates, replicas and where pods may run. On the second run of a takeover, of what the note has kept."""
    manager = _of_original(standing, "Deployment", standing.deployment)
    daemon = _of_original(standing, "DaemonSet", standing.daemon_set)
    values: dict[str, Any] = {}
    unknown: tuple[str, ...] = ()
    left: list[str] = []
    if manager is not None:
        values["featureGates"], unknown = _gates(gates_text(manager))
        if replicas := int(value_at(manager, ("spec", "replicas"), 1)):
            values["manager.replicas"] = replicas
        pod = value_at(manager, ("spec", "template", "spec"), {})
        _take(pod, values, {"nodeSelector": "manager.nodeSelector", "tolerations": "manager.tolerations"})
        _take(pod, values, {"imagePullSecrets": "imagePullSecrets", "hostNetwork": "manager.hostNetwork"})
        left += [text for text in arguments(manager) if _flag(text) not in _OF_OURS | {_GATES}]
    if daemon is not None:
        pod = value_at(daemon, ("spec", "template", "spec"), {})
        _take(pod, values, {"nodeSelector": "daemon.nodeSelector"})
        for text in arguments(daemon):
            if _flag(text) == "--socket-file":
                values["daemon.socketFile"] = text.partition("=")[2]
        if directory := _directory_of_sockets(pod):
            values["daemon.socketLocation"] = directory
        left += [text for text in arguments(daemon) if _flag(text) not in _OF_OUR_DAEMONS | {_GATES}]
    return Inheritance(values, unknown, tuple(left))


def _of_original(standing: Standing, kind: str, live: Json | None) -> Json | None:
    """As it was before anything was changed."""
    noted = standing.note.documents.items() if standing.note is not None else ()
    kept = (document for name, document in noted if name.kind == kind and is_original(document))
    return next(kept, live if is_original(live) else None)


def _directory_of_sockets(pod: Json) -> str:
    mounts = [mount for container in pod.get("containers") or () for mount in container.get("volumeMounts") or ()]
    names = {mount.get("name") for mount in mounts if mount.get("mountPath") == MOUNTED_AT}
    volumes = [volume for volume in pod.get("volumes") or () if volume.get("name") in names]
    return str(value_at(volumes[0], ("hostPath", "path"), "")) if volumes else ""


def _gates(text: str) -> tuple[str, tuple[str, ...]]:
    """The text without gates that we do not know, and their names."""
    known, unknown = [], []
    for part in text.split(","):
        name = part.partition("=")[0].strip()
        if not name:
            continue
        try:
            gates.parse(part)
        except gates.FeatureGateError:
            unknown.append(name)
        else:
            known.append(part.strip())
    return ",".join(known), tuple(unknown)


def _take(pod: Json, values: dict[str, Any], paths: Mapping[str, str]) -> None:
    values.update({path: pod[name] for name, path in paths.items() if pod.get(name)})


def _flag(text: str) -> str:
    return text.partition("=")[0]
