"""How the daemon watches pods, and looks at their containers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping

from kruise.api.meta import Key, key_of
from kruise.daemon.containers.decide import Decisions
from kruise.daemon.containers.report import is_watched, needs_report, reported, with_own_variables
from kruise.daemon.containers.situation import Delay, Job, Restart, Seen, Snapshot, seen_container
from kruise.daemon.killing import kill
from kruise.daemon.parts import Part, Place, Scene
from kruise.daemon.pods import PODS, Pod
from kruise.daemon.runtime import CallError, Container, ContainerState, Runtime, split_id
from kruise.inplace.keys import CONTAINERS_META_ANNOTATION
from kruise.machinery.codec import Struct
from kruise.machinery.plan import JobState
from kruise.machinery.spec import ControllerSpec, Source, Stores, View

log = logging.getLogger(__name__)

GATE = "DaemonWatchingPod"
ENVIRONMENT_GATE = "InPlaceUpdateEnvFromMetadata"
REPORT_SECONDS = 1.0
"""How long news of a pod are gathered before its containers are looked at (DMN-70)."""
EXEC_SECONDS = 3.0


def _reads_environment(gates: Mapping[str, bool]) -> bool:
    return gates.get(ENVIRONMENT_GATE, True)


class _Pods:
    def __init__(self, place: Place) -> None:
        self._pods = place.pods.resource
        self._reads_environment = _reads_environment(place.settings.gates)

    def keys(self, old: Pod | None, new: Pod | None, stores: Stores) -> Iterable[Key]:
        """Only pods of ours whose report may be out of date: all others cost nothing."""
        if new is None or not is_watched(new) or (old is None and not self.is_reported(new)):
            return ()
        return (key_of(new),) if needs_report(new, reads_environment=self._reads_environment) else ()

    @staticmethod
    def is_reported(pod: Pod) -> bool:
        """A daemon that comes to a full node does not report all its pods at once: one without a report is looked at
        when something happens to it (DMN-70)."""
        return CONTAINERS_META_ANNOTATION in pod.metadata.annotations

    def snapshot(self, view: View, key: Key) -> Snapshot | None:
        pod = view.store(self._pods).get(*key)
        jobs = tuple(_job(name, state) for name, state in view.jobs.items())
        if pod is None or not is_watched(pod) or pod.metadata.deletion_timestamp is not None:
            return None
        if not jobs and not needs_report(pod, reads_environment=self._reads_environment):
            return None
        return Snapshot(
            pod=pod,
            node=pod.spec.node_name,
            seen=view.outside,
            now=view.now,
            reads_environment=self._reads_environment,
            jobs=jobs,
        )


def _job(name: str, state: JobState) -> Job:
    call = state.call
    if not isinstance(call, Delay | Restart):
        raise TypeError(f"not a call of this part: {call}")
    return Job(
        name=name,
        is_kill=isinstance(call, Restart),
        container_id=call.container_id,
        container=call.container if isinstance(call, Restart) else "",
        seconds=call.seconds if isinstance(call, Delay) else 0.0,
        ended=state.ended is not None,
        error=state.error,
        hook_error=getattr(state.result, "hook_error", ""),
    )


def node_of(stores: Stores, key: Key) -> str:
    pod = stores.store(PODS).get(*key)
    return pod.spec.node_name if pod is not None else ""


async def look(scene: Scene, key: Key) -> Seen | None:
    pod = scene.stores.store(scene.place.pods.resource).get(*key)
    if pod is None or not is_watched(pod):
        return None
    node = scene.node(pod.spec.node_name)
    identity = next((status.container_id for status in pod.status.container_statuses if status.container_id), "")
    if node is None or not identity:
        return None
    try:
        name, _ = split_id(identity)
    except ValueError as error:
        log.warning("containers not reported", extra={"pod": str(key), "error": str(error)})
        return None
    runtime = node.runtimes.get(name)
    if runtime is None:
        log.warning("containers not reported: no such runtime here", extra={"pod": str(key), "runtime": name})
        return None
    newest: dict[str, Container] = {}
    for container in await runtime.list_containers(pod_uid=pod.metadata.uid):
        known = newest.get(container.container_name)
        if known is None or container.created_at > known.created_at:
            newest[container.container_name] = container
    read = {entry.container_id for entry in reported(pod).containers if entry.hashes.extracted_env_from_metadata_hash}
    wanted = {container.name: container for container in pod.spec.containers}
    found = []
    for container in newest.values():
        environment = None
        asks = container.container_name in wanted and f"{name}://{container.id}" not in read
        if asks and container.state is ContainerState.RUNNING and _reads_environment(scene.place.settings.gates):
            told = await read_environment(runtime, container.id)
            environment = with_own_variables(wanted[container.container_name], told)
        found.append(seen_container(container, environment))
    return Seen(runtime=name, containers=tuple(found))


async def read_environment(runtime: Runtime, container_id: str) -> dict[str, str] | None:
    """As the runtime tells it; from a command in the container where it does not (DMN-75)."""
    try:
        told = (await runtime.container_status(container_id, verbose=True)).environment
        if told is not None:
            return told
        # A value may hold line breaks, so these do not end it.
        answer = await runtime.exec_sync(container_id, ("env", "-0"), EXEC_SECONDS)
    except CallError as error:
        log.info("environment not read", extra={"container": container_id, "error": str(error)})
        return None
    if answer.exit_code != 0:
        return None
    entries = answer.stdout.decode(errors="replace").split("\0")
    return {name: value for name, separator, value in (entry.partition("=") for entry in entries) if separator}


async def perform(scene: Scene, call: Struct) -> Struct | None:
    if isinstance(call, Restart):
        return await kill(scene, call)
    if isinstance(call, Delay):
        await asyncio.sleep(call.seconds)
        return None
    raise TypeError(f"not a call of this part: {call}")


def spec(place: Place) -> ControllerSpec[Snapshot]:
    pods, decisions = _Pods(place), Decisions(place.pods.resource)
    return ControllerSpec(
        name="runtime_container_meta",
        subject=place.pods.resource,
        sources=(Source(place.pods, pods.keys),),
        snapshot=pods.snapshot,
        decide=decisions.decide,
        conclude=decisions.conclude,
        snapshot_type=Snapshot,
        workers=5,
        at_start=pods.is_reported,
    )


PART = Part(
    name="runtime_container_meta",
    component="kruise-daemon-containermeta",
    gates=(GATE,),
    spec=spec,
    look=look,
    perform=perform,
    node_of=node_of,
    window=REPORT_SECONDS,
)
