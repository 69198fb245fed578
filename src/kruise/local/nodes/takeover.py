"""Going on with pods that run already: after a restart of the model, or imported from another cluster.

The status is all there is. What it says to run goes on running; nothing is started again without need.
"""

from __future__ import annotations

from collections.abc import Sequence

from kruise.api.native.pod import ContainerStateTerminated, ContainerStatus
from kruise.local.nodes import images
from kruise.local.nodes.commands import FOREVER, program, variables
from kruise.local.nodes.containers import Backoff, Instance, Record
from kruise.local.nodes.pods import TERMINAL, Container, Pod, amounts

_CRASH = "CrashLoopBackOff"


def has_run(pod: Pod) -> bool:
    """Whether some kubelet has cared for the pod before."""
    return pod.status.start_time is not None or pod.status.phase in TERMINAL


def records(pod: Pod, now: float) -> dict[str, Record]:
    status, spec = pod.status, pod.spec
    found: dict[str, Record] = {}
    parts: Sequence[tuple[Sequence[Container], Sequence[ContainerStatus]]] = (
        (spec.init_containers, status.init_container_statuses),
        (spec.containers, status.container_statuses),
        (spec.ephemeral_containers, status.ephemeral_container_statuses),
    )
    for containers, statuses in parts:
        by_name = {item.name: item for item in statuses}
        for container in containers:
            known = by_name.get(container.name)
            if known is not None and known.container_id:
                found[container.name] = _record(pod, container, known, now)
    return found


def settle_probes(pod: Pod, container: Container, instance: Instance) -> None:
    """What was found out before stays found out; the next probes come in their rhythm."""
    status = pod.status
    every = (*status.init_container_statuses, *status.container_statuses)
    known = next((item for item in every if item.name == container.name), None)
    if known is None:
        return
    if instance.startup is not None and known.started:
        instance.startup.result = instance.startup.last = True
        instance.startup.on_hold = True
        instance.startup.next_at = FOREVER
    if instance.readiness is not None and known.ready:
        instance.readiness.result = instance.readiness.last = True


def _record(pod: Pod, container: Container, status: ContainerStatus, now: float) -> Record:
    record = Record(allocated=amounts(container.resources))
    ended = status.state.terminated
    last = status.last_state.terminated
    if status.state.waiting is not None and last is not None:
        # Its last instance has ended, and the status shows what the next one waits for.
        ended, last = last, None
    instance = _instance(pod, container, status, ended)
    if ended is None and status.state.running is not None:
        began = status.state.running.started_at
        instance.started_at = began.timestamp() if began is not None else now
        if status.resources is not None:
            instance.resources = amounts(status.resources)
            record.allocated = dict(instance.resources)
    record.current = instance
    if last is not None:
        record.previous = _instance(pod, container, status, last)
    waiting = status.state.waiting
    if waiting is not None and waiting.reason == _CRASH and instance.finished_at is not None:
        record.crash = Backoff(min(300.0, 10.0 * 2 ** min(instance.attempt, 5)), instance.finished_at)
        record.crash_key = f"{container.image}/{amounts(container.resources)}"
    return record


def _instance(
    pod: Pod, container: Container, status: ContainerStatus, ended: ContainerStateTerminated | None
) -> Instance:
    identity = ended.container_id if ended is not None and ended.container_id else status.container_id
    instance = Instance(
        id=identity.removeprefix("containerd://"),
        image=status.image,
        image_id=status.image_id,
        asked=_asked(pod, container, status),
        attempt=status.restart_count,
        started_at=0.0,
        program=program(pod, container),
        environment=variables(pod, container),
        resources=amounts(container.resources),
    )
    if ended is not None:
        began, over = ended.started_at, ended.finished_at
        instance.started_at = began.timestamp() if began is not None else 0.0
        instance.finished_at = over.timestamp() if over is not None else instance.started_at
        instance.exit_code, instance.reason, instance.message = ended.exit_code, ended.reason, ended.message
    return instance


def _asked(pod: Pod, container: Container, status: ContainerStatus) -> str:
    """The image of the definition that the container was made from.

    A runtime may report another name for the same image, so a difference of names alone proves nothing where somebody
    else has written the status and says that it has seen this spec. Our own image ids follow from the names.
    """
    reported, wanted = images.full_name(status.image), images.full_name(container.image)
    if reported == wanted or not status.image or status.image.startswith("sha256:"):
        return container.image
    ours = images.find(status.image)
    is_ours = isinstance(ours, images.Image) and ours.id == status.image_id
    up_to_date = 0 < pod.metadata.generation <= pod.status.observed_generation
    return container.image if up_to_date and not is_ours else status.image
