"""The cells of pods: one word for everything that a pod's status says."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from kruise.local.apicore.errors import Json
from kruise.local.kinds.columns.durations import since

NONE = "<none>"


class _Summary(NamedTuple):
    ready: int
    total: int
    reason: str
    restarts: int
    last_restart: str


def _summary(pod: Json) -> _Summary:
    spec, status = pod["spec"], pod.get("status") or {}
    sidecars = {one["name"] for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"}
    begun = _initialization(pod, sidecars)
    reason, ready = begun.reason, begun.ready
    restarts, last_restart = begun.restarts, begun.last_restart
    if not begun.unfinished or _is_true(status, "Initialized"):
        restarts, last_restart = begun.sidecar_restarts, begun.last_sidecar_restart
        runs = False
        for container in reversed(status.get("containerStatuses") or ()):
            restarts += container.get("restartCount", 0)
            last_restart = max(last_restart, _restarted(container))
            state = container.get("state") or {}
            waiting, terminated = state.get("waiting"), state.get("terminated")
            if waiting is not None and waiting.get("reason"):
                reason = waiting["reason"]
            elif terminated is not None:
                reason = terminated.get("reason") or _end(terminated)
            elif container.get("ready") and state.get("running") is not None:
                runs = True
                ready += 1
        if reason == "Completed" and runs:
            reason = "Running" if _is_true(status, "Ready") else "NotReady"
    if "deletionTimestamp" in pod["metadata"]:
        if status.get("reason") == "NodeLost":
            reason = "Unknown"
        elif status.get("phase") not in ("Failed", "Succeeded"):
            reason = "Terminating"
    return _Summary(ready, len(spec.get("containers") or ()) + len(sidecars), reason, restarts, last_restart)


class _Initialization(NamedTuple):
    unfinished: bool
    reason: str
    ready: int
    restarts: int
    last_restart: str
    sidecar_restarts: int
    last_sidecar_restart: str


def _initialization(pod: Json, sidecars: set[str]) -> _Initialization:
    """What the init containers say, up to the first that has not done its part."""
    status = pod.get("status") or {}
    reason = status.get("reason") or status.get("phase", "")
    if any(
        item.get("type") == "PodScheduled" and item.get("reason") == "SchedulingGated"
        for item in status.get("conditions") or ()
    ):
        reason = "SchedulingGated"
    ready = restarts = sidecar_restarts = 0
    last = last_sidecar = ""
    for position, container in enumerate(status.get("initContainerStatuses") or ()):
        count, restarted, is_sidecar = (
            container.get("restartCount", 0),
            _restarted(container),
            container["name"] in sidecars,
        )
        restarts, last = restarts + count, max(last, restarted)
        if is_sidecar:
            sidecar_restarts, last_sidecar = sidecar_restarts + count, max(last_sidecar, restarted)
        state = container.get("state") or {}
        waiting, terminated = state.get("waiting"), state.get("terminated")
        if terminated is not None and terminated.get("exitCode", 0) == 0:
            continue
        if is_sidecar and container.get("started"):
            ready += bool(container.get("ready"))
            continue
        if terminated is not None:
            reason = f"Init:{terminated.get('reason') or _end(terminated)}"
        elif waiting is not None and waiting.get("reason") not in (None, "", "PodInitializing"):
            reason = f"Init:{waiting['reason']}"
        else:
            reason = f"Init:{position}/{len(pod['spec'].get('initContainers') or ())}"
        return _Initialization(True, reason, ready, restarts, last, sidecar_restarts, last_sidecar)
    return _Initialization(False, reason, ready, restarts, last, sidecar_restarts, last_sidecar)


def _end(terminated: Json) -> str:
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _restarted(container: Json) -> str:
    return ((container.get("lastState") or {}).get("terminated") or {}).get("finishedAt") or ""


def _is_true(status: Json, kind: str) -> bool:
    conditions = status.get("conditions") or ()
    return any(item.get("type") == kind and item.get("status") == "True" for item in conditions)


def ready(pod: Json, now: datetime) -> str:
    summary = _summary(pod)
    return f"{summary.ready}/{summary.total}"


def status(pod: Json, now: datetime) -> str:
    return _summary(pod).reason


def restarts(pod: Json, now: datetime) -> str:
    summary = _summary(pod)
    if summary.restarts and summary.last_restart:
        return f"{summary.restarts} ({since(summary.last_restart, now)} ago)"
    return str(summary.restarts)


def address(pod: Json, now: datetime) -> str:
    addresses = (pod.get("status") or {}).get("podIPs") or ()
    return addresses[0].get("ip") or NONE if addresses else NONE


def node(pod: Json, now: datetime) -> str:
    return pod["spec"].get("nodeName") or NONE


def nominated_node(pod: Json, now: datetime) -> str:
    return (pod.get("status") or {}).get("nominatedNodeName") or NONE


def readiness_gates(pod: Json, now: datetime) -> str:
    gates = pod["spec"].get("readinessGates") or ()
    if not gates:
        return NONE
    status = pod.get("status") or {}
    return f"{sum(_is_true(status, gate['conditionType']) for gate in gates)}/{len(gates)}"
