"""The status of a pod as the kubelet of Kubernetes 1.34 writes it, made from what the node knows.

Pure. `container_statuses` and `conditions` describe; `status_patch` says what of it the server does not have yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from kruise.api.core.pod_resources import qos_class
from kruise.api.native.pod import condition as seen_condition
from kruise.inplace.resizing import RESIZE_IN_PROGRESS, RESIZE_PENDING
from kruise.local.nodes.containers import Instance, Record, should_restart
from kruise.local.nodes.pods import TERMINAL, Container, Pod, amounts
from kruise.machinery.times import format_time

Json = dict[str, Any]

RESIZE_CONDITIONS = (RESIZE_PENDING, RESIZE_IN_PROGRESS)
_LOST = {
    "exitCode": 137,
    "reason": "ContainerStatusUnknown",
    "message": "The container could not be located when the pod was terminated",
    "startedAt": None,
    "finishedAt": None,
}


def moment(seconds: float) -> str:
    return format_time(datetime.fromtimestamp(seconds, UTC))


# Containers


def container_statuses(
    pod: Pod, records: Mapping[str, Record], containers: Sequence[Container], init: bool
) -> list[Json]:
    """Init containers stay in their order, the others are sorted by name."""
    waiting = "PodInitializing" if pod.spec.init_containers else "ContainerCreating"
    shown = [_container_status(pod, container, records.get(container.name), waiting, init) for container in containers]
    return shown if init else sorted(shown, key=lambda status: str(status["name"]))


def _container_status(pod: Pod, container: Container, record: Record | None, waiting: str, init: bool) -> Json:
    instance = record.current if record is not None else None
    status: Json = {
        "name": container.name,
        "state": {"waiting": {"reason": waiting}},
        "lastState": {},
        "ready": False,
        "restartCount": 0,
        "image": container.image,
        "imageID": "",
        "started": False,
    }
    if container.volume_mounts:
        status["volumeMounts"] = [_mount(mount) for mount in container.volume_mounts]
    if record is None:
        return status
    if instance is not None:
        status |= {
            "state": _state(instance),
            "restartCount": instance.attempt,
            "image": instance.image,
            "imageID": instance.image_id,
            "containerID": f"containerd://{instance.id}",
            "resources": instance.resources if instance.running else record.allocated or {},
        }
        if record.allocated and record.allocated.get("requests"):
            status["allocatedResources"] = record.allocated["requests"]
        if record.previous is not None:
            status["lastState"] = _state(record.previous)
    if record.trouble is not None and _may_wait(pod, container, record, init):
        if instance is not None and not instance.running:
            status["lastState"] = status["state"]
        status["state"] = {"waiting": {"reason": record.trouble.reason, "message": record.trouble.message}}
    return status


def _may_wait(pod: Pod, container: Container, record: Record, init: bool) -> bool:
    instance = record.current
    if init and not container.is_sidecar and instance is not None and not instance.running and instance.exit_code == 0:
        return False
    return should_restart(pod, container, record)


def _mount(mount: Any) -> Json:
    shown: Json = {"name": mount.name, "mountPath": mount.mount_path}
    if mount.read_only:
        shown |= {"readOnly": True, "recursiveReadOnly": "Disabled"}
    return shown


def _state(instance: Instance) -> Json:
    if instance.finished_at is None:
        return {"running": {"startedAt": moment(instance.started_at)}}
    ended: Json = {
        "exitCode": instance.exit_code,
        "reason": instance.reason,
        "startedAt": moment(instance.started_at),
        "finishedAt": moment(instance.finished_at),
        "containerID": f"containerd://{instance.id}",
    }
    if instance.message:
        ended["message"] = instance.message
    return {"terminated": ended}


def with_lost_containers(statuses: Sequence[Json]) -> list[Json]:
    """For a pod that is over: a container that cannot be said to have ended is said to have failed."""
    return [
        status if "terminated" in status["state"] else {**status, "state": {"terminated": _LOST}, "ready": False}
        for status in statuses
    ]


# Phase


def phase(pod: Pod, shown: Mapping[str, Json], *, over: bool) -> str:
    """`over`: nothing will be started any more."""
    spec = pod.spec
    pending = failed_for_good = waiting = running = stopped = succeeded = unknown = 0
    begun = any(
        "running" in shown[item.name]["state"] or "terminated" in shown[item.name]["state"]
        for item in spec.containers
        if item.name in shown
    )
    for container in spec.init_containers:
        status = shown.get(container.name)
        if container.is_sidecar:
            if status is None:
                unknown += 1
            elif "running" in status["state"]:
                running += 1
                pending += 0 if status.get("started") or begun else 1
            elif "waiting" in status["state"] and "terminated" not in status["lastState"]:
                waiting += 1
            continue
        ended = _ended(status)
        if ended is None:
            pending += 1
        elif ended["exitCode"] != 0 and spec.restart_policy == "Never":
            failed_for_good += 1
    for container in spec.containers:
        status = shown.get(container.name)
        if status is None:
            unknown += 1
        elif "running" in status["state"]:
            running += 1
        elif "terminated" in status["state"]:
            stopped += 1
            succeeded += status["state"]["terminated"]["exitCode"] == 0
        elif "terminated" in status["lastState"]:
            stopped += 1
        else:
            waiting += 1
    if failed_for_good:
        return "Failed"
    if pending or waiting:
        return "Pending"
    if running and not unknown:
        return "Running"
    if not running and stopped and not unknown:
        if over:
            return "Succeeded" if stopped == succeeded else "Failed"
        if spec.restart_policy == "Always":
            return "Running"
        if stopped == succeeded:
            return "Succeeded"
        return "Failed" if spec.restart_policy == "Never" else "Running"
    return "Pending"


def _ended(status: Json | None) -> Json | None:
    """How a container ended last, where it does not run."""
    if status is None or "running" in status["state"]:
        return None
    if "terminated" in status["state"]:
        ended: Json = status["state"]["terminated"]
        return ended
    last: Json | None = status["lastState"].get("terminated")
    return last


# Conditions

Condition = tuple[str, str, str, str]
"""Type, status, reason, message."""


def conditions(pod: Pod, shown: Mapping[str, Json], stage: str, *, sandbox: bool) -> list[Condition]:
    """The conditions that the kubelet owns, in its order."""
    containers_ready = _containers_ready(pod, shown, stage)
    return [
        ("PodReadyToStartContainers", "True" if sandbox else "False", "", ""),
        _initialized(pod, shown, stage),
        _ready(pod, containers_ready),
        containers_ready,
        ("PodScheduled", "True", "", ""),
    ]


def _list(names: Sequence[str]) -> str:
    return f"[{' '.join(names)}]"


def _containers_ready(pod: Pod, shown: Mapping[str, Json], stage: str) -> Condition:
    kind = "ContainersReady"
    if stage in TERMINAL:
        return (kind, "False", "PodCompleted" if stage == "Succeeded" else "PodFailed", "")
    counted = [container.name for container in pod.spec.init_containers if container.is_sidecar]
    counted += [container.name for container in pod.spec.containers]
    unknown = [name for name in counted if name not in shown]
    unready = [name for name in counted if name in shown and not shown[name]["ready"]]
    messages = []
    if unknown:
        messages.append(f"containers with unknown status: {_list(unknown)}")
    if unready:
        messages.append(f"containers with unready status: {_list(unready)}")
    if messages:
        return (kind, "False", "ContainersNotReady", ", ".join(messages))
    return (kind, "True", "", "")


def _ready(pod: Pod, containers_ready: Condition) -> Condition:
    _, status, reason, message = containers_ready
    if status != "True":
        return ("Ready", status, reason, message)
    messages = []
    for gate in pod.spec.readiness_gates:
        found = seen_condition(pod, gate.condition_type)  # type: ignore[arg-type]
        if found is None:
            messages.append(f'corresponding condition of pod readiness gate "{gate.condition_type}" does not exist.')
        elif found.status != "True":
            messages.append(
                f'the status of pod readiness gate "{gate.condition_type}" is not "True", but {found.status}'
            )
    if messages:
        return ("Ready", "False", "ReadinessGatesNotReady", ", ".join(messages))
    return ("Ready", "True", "", "")


def _initialized(pod: Pod, shown: Mapping[str, Json], stage: str) -> Condition:
    kind = "Initialized"
    if stage == "Succeeded":
        return (kind, "True", "PodCompleted", "")
    if not pod.spec.init_containers or _any_main_started(pod, shown):
        return (kind, "True", "", "")
    missing = [container.name for container in pod.spec.init_containers if container.name not in shown]
    incomplete = [
        container.name
        for container in pod.spec.init_containers
        if container.name in shown and not shown[container.name]["started" if container.is_sidecar else "ready"]
    ]
    messages = []
    if missing:
        messages.append(f"containers with unknown status: {_list(missing)}")
    if incomplete:
        messages.append(f"containers with incomplete status: {_list(incomplete)}")
    if messages:
        return (kind, "False", "ContainersNotInitialized", ", ".join(messages))
    return (kind, "True", "", "")


def _any_main_started(pod: Pod, shown: Mapping[str, Json]) -> bool:
    for container in pod.spec.containers:
        status = shown.get(container.name)
        if status is not None and (
            "running" in status["state"] or "terminated" in status["state"] or "terminated" in status["lastState"]
        ):
            return True
    return False


# What to write


def quality_of_service(pod: Pod) -> str:
    spec: Json = {
        "containers": [{"resources": amounts(item.resources)} for item in pod.spec.containers],
        "initContainers": [{"resources": amounts(item.resources)} for item in pod.spec.init_containers],
    }
    if pod.spec.resources is not None:
        spec["resources"] = amounts(pod.spec.resources)
    return qos_class(spec)


def condition_patches(pod: Pod, wanted: Sequence[Condition], now: float) -> list[Json]:
    """The conditions that the server does not have like this. Transition times move only with the status."""
    generation = pod.metadata.generation
    seen = {item.type: item for item in pod.status.conditions}
    changed: list[Json] = []
    for kind, status, reason, message in wanted:
        known = seen.get(kind)
        same = known is not None and (known.status, known.reason, known.message) == (status, reason, message)
        if same and known is not None and (not generation or known.observed_generation == generation):
            continue
        item: Json = {"type": kind, "status": status}
        if known is None or known.status != status or known.last_transition_time is None:
            item["lastTransitionTime"] = moment(now)
        if known is not None:
            # A strategic merge keeps what is not mentioned.
            item |= {"reason": reason or None, "message": message or None}
        else:
            item |= {"lastProbeTime": None}
            item |= {key: value for key, value in (("reason", reason), ("message", message)) if value}
        if generation:
            item["observedGeneration"] = generation
        changed.append(item)
    kinds = {kind for kind, *_ in wanted}
    changed += [{"$patch": "delete", "type": kind} for kind in RESIZE_CONDITIONS if kind in seen and kind not in kinds]
    return changed


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> Json:
    """Top-level fields of a status that changed; those that went are null."""
    changed = {key: value for key, value in after.items() if before.get(key) != value}
    return changed | {key: None for key in before if key not in after}
