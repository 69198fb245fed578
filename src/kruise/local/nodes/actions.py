"""What has to be done so that the containers of a pod are as its spec wants them: decided, not done."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from kruise.api.native.container_reasons import NO_IMAGE
from kruise.local.nodes.containers import Instance, Record, should_restart
from kruise.local.nodes.pods import Container, Pod


@dataclasses.dataclass(frozen=True, slots=True)
class Stop:
    container: Container
    message: str
    grace: int | None
    """Seconds; None: those of the pod."""


@dataclasses.dataclass(slots=True)
class Actions:
    """In the order of the fields."""

    stop: list[Stop] = dataclasses.field(default_factory=list)
    start_ephemeral: list[Container] = dataclasses.field(default_factory=list)
    start_init: list[Container] = dataclasses.field(default_factory=list)
    resize: list[Container] = dataclasses.field(default_factory=list)
    start: list[Container] = dataclasses.field(default_factory=list)


def actions_for(pod: Pod, records: Mapping[str, Record]) -> Actions:
    actions = Actions()
    for container in pod.spec.ephemeral_containers:
        known = records.get(container.name)
        if known is None or (known.current is None and _is_without_image(known)):
            actions.start_ephemeral.append(container)
    if not _initialize(pod, records, actions):
        return actions
    for container in pod.spec.containers:
        record = records.get(container.name) or Record()
        instance = record.running
        if instance is None:
            if should_restart(pod, container, record):
                actions.start.append(container)
            continue
        restart = pod.spec.restart_policy != "Never"
        if instance.asked != container.image:
            # Whatever the policy says: the definition is another one.
            message, restart, grace = f"Container {container.name} definition changed", True, None
        elif (failed := _failed_probe(instance)) is not None:
            message, grace = f"Container {container.name} failed {failed} probe", _probe_grace(container, failed)
        elif _needs_restart_to_resize(container, record, instance):
            actions.stop.append(Stop(container, f"Container {container.name} resize requires restart", None))
            actions.start.append(container)
            continue
        else:
            if record.allocated is not None and record.allocated != instance.resources:
                actions.resize.append(container)
            continue
        if restart:
            message = f"{message}, will be restarted"
            actions.start.append(container)
        actions.stop.append(Stop(container, message, grace))
    return actions


def _is_without_image(record: Record) -> bool:
    """An image is asked for again; a container that was made and could not be started is left alone."""
    return record.trouble is None or record.trouble.reason in NO_IMAGE


def _initialize(pod: Pod, records: Mapping[str, Record], actions: Actions) -> bool:
    """Init containers one after the other; sidecars are kept running. Returns whether main containers may run."""
    containers = pod.spec.init_containers
    if not containers:
        return True
    before = any(
        (record := records.get(item.name)) is not None and record.running is not None for item in pod.spec.containers
    )
    done = before
    previously = before
    starts: list[int] = []
    for index in range(len(containers) - 1, -1, -1):
        container = containers[index]
        record = records.get(container.name)
        instance = record.current if record is not None else None
        if record is None or instance is None:
            if previously and container.is_sidecar:
                starts.append(index)
            continue
        if previously and not container.is_sidecar:
            continue
        last = index == len(containers) - 1
        initialized = False
        if not instance.running:
            if container.is_sidecar or instance.exit_code != 0:
                starts.append(index)
            else:
                initialized = True
        elif container.is_sidecar:
            initialized = _care_for_sidecar(container, record, instance, index, starts, actions)
        if initialized:
            if last:
                done = True
            elif not previously or not container.is_sidecar:
                starts.append(index + 1)
        previously = True
    if not previously:
        starts.append(0)
    actions.start_init = [containers[index] for index in sorted(set(starts))]
    return done


def _care_for_sidecar(
    container: Container, record: Record, instance: Instance, index: int, starts: list[int], actions: Actions
) -> bool:
    """Restart a running sidecar where that is needed. Returns whether the next container may start."""
    name = container.name
    if container.startup_probe is not None and not instance.has_started:
        if _failed_probe(instance) == "startup":
            grace = _probe_grace(container, "startup")
            actions.stop.append(Stop(container, f"Init container {name} failed startup probe", grace))
            starts.append(index)
        return False
    if instance.asked != container.image:
        actions.stop.append(Stop(container, f"Init container {name} definition changed", None))
        starts.append(index)
    elif _failed_probe(instance) == "liveness":
        grace = _probe_grace(container, "liveness")
        actions.stop.append(Stop(container, f"Init container {name} failed liveness probe", grace))
        starts.append(index)
    elif _needs_restart_to_resize(container, record, instance):
        actions.stop.append(Stop(container, f"Container {name} resize requires restart", None))
        starts.append(index)
    elif record.allocated is not None and record.allocated != instance.resources:
        actions.resize.append(container)
    return True


def _failed_probe(instance: Instance) -> str | None:
    if instance.liveness is not None and instance.liveness.result is False:
        return "liveness"
    if instance.startup is not None and instance.startup.result is False:
        return "startup"
    return None


def _probe_grace(container: Container, kind: str) -> int | None:
    probe = container.liveness_probe if kind == "liveness" else container.startup_probe
    return probe.termination_grace_period_seconds if probe is not None else None


def _needs_restart_to_resize(container: Container, record: Record, instance: Instance) -> bool:
    if record.allocated is None or record.allocated == instance.resources:
        return False
    restarting = {item.resource_name for item in container.resize_policy if item.restart_policy == "RestartContainer"}
    for part in ("requests", "limits"):
        wanted, has = record.allocated.get(part, {}), instance.resources.get(part, {})
        if any(wanted.get(name) != has.get(name) for name in restarting):
            return True
    return False
