"""What to report of a pod's containers, and which ones to stop (DMN-72 to DMN-78). Pure."""

from __future__ import annotations

from typing import Any

from kruise.api.resource import Resource
from kruise.daemon.containers.report import report, reported, to_restart
from kruise.daemon.containers.situation import Delay, Job, Restart, SeenContainer, Snapshot
from kruise.daemon.kills import failed_hook_note, killing_note
from kruise.daemon.runtime import split_id
from kruise.inplace import keys
from kruise.inplace.hashes import ContainersMeta, containers_meta_json
from kruise.machinery import plan as plans
from kruise.machinery.client.requests import PatchType
from kruise.machinery.plan import Conclusion, EventNote, Outcomes, Plan, Target, Wake

RESTART_SECONDS, LONGEST_PAUSE = 3.0, 600.0
"""How long a container with an old environment has until it is stopped (DMN-76). Where it cannot be stopped, the next
try is twice as far away, and so on (DMN-2)."""
RETRY_SECONDS = 3.0
"""When an environment that could not be read is tried again (DMN-74)."""
DELAY, KILL = "delay/", "kill/"


class Decisions:
    """`pods` is the resource by which the pods are watched."""

    def __init__(self, pods: Resource[Any]) -> None:
        self._pods = pods

    def decide(self, seen: Snapshot) -> Plan:
        meta = report(seen.pod, seen.seen, reads_environment=seen.reads_environment)
        phases: tuple[plans.Phase, ...] = ()
        if meta.containers and meta != reported(seen.pod):
            phases = (plans.single("report", self._write(seen, containers_meta_json(meta))),)
        wakes: tuple[Wake, ...] = ()
        if seen.reads_environment and any(_is_unread(entry, seen) for entry in meta.containers):
            wakes = (Wake(after=RETRY_SECONDS, reason="the environment of a container could not be read"),)
        jobs, drops = self._restarts(seen, meta) if seen.reads_environment else ((), ())
        return Plan(phases=phases, wakes=wakes, jobs=jobs, drops=drops)

    def conclude(self, seen: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
        if any(outcome.result is not plans.Result.DONE for outcome in outcomes):
            return Conclusion()
        notes: list[EventNote] = []
        metadata = seen.pod.metadata
        about = (self._pods, metadata.namespace, metadata.name, metadata.uid)
        for job in plan.jobs:
            if isinstance(job.call, Restart):
                # The id would say nothing to anybody (DMN-56).
                text = f"Stopping containerID {job.call.container} by container meta restarter"
                notes.append(killing_note(*about, job.call.container, text))
        for known in seen.jobs:
            if known.name in plan.drops and known.hook_error:
                notes.append(failed_hook_note(*about, known.container, known.hook_error))
        return Conclusion(events=tuple(notes))

    def _write(self, seen: Snapshot, text: str) -> plans.Action:
        """Through the status, which is all that the daemon may write (DMN-78)."""
        return plans.patch(
            Target.of(self._pods, seen.pod),
            {"metadata": {"annotations": {keys.CONTAINERS_META_ANNOTATION: text}}},
            uid=seen.pod.metadata.uid,
            reason="containers are others than reported",
            patch_type=PatchType.STRATEGIC,
            subresource="status",
        )

    def _restarts(self, seen: Snapshot, meta: ContainersMeta) -> tuple[tuple[plans.Job, ...], tuple[str, ...]]:
        """First a delay, then the kill; each container once, and none that has ended by itself meanwhile (DMN-77). Both
        begin anew after a kill that failed."""
        running = {container.id: container for container in seen.seen.containers if container.running}
        wanted = [identity for entry in to_restart(seen.pod, meta) if (identity := split_id(entry.container_id)[1])]
        known = {job.name: job for job in seen.jobs}
        jobs: list[plans.Job] = []
        failed = {job.container_id for job in seen.jobs if job.is_kill and job.ended and job.error}
        drops = [job.name for job in seen.jobs if job.container_id in failed or _is_done(job, wanted, running)]
        for identity in wanted:
            delay, kill = known.get(DELAY + identity), known.get(KILL + identity)
            if identity not in running or (kill is not None and identity not in failed):
                continue
            if delay is None or identity in failed:
                pause = min(2 * delay.seconds, LONGEST_PAUSE) if delay is not None else RESTART_SECONDS
                jobs.append(plans.Job(name=DELAY + identity, call=Delay(container_id=identity, seconds=pause)))
            elif delay.ended:
                jobs.append(plans.Job(name=KILL + identity, call=_kill(seen, running[identity]), to_the_end=True))
        return tuple(jobs), tuple(drops)


def _is_unread(entry: Any, seen: Snapshot) -> bool:
    here = next((one for one in seen.seen.containers if entry.container_id.endswith(one.id)), None)
    return here is not None and here.running and not entry.hashes.extracted_env_from_metadata_hash


def _is_done(job: Job, wanted: list[str], running: dict[str, SeenContainer]) -> bool:
    if job.is_kill:
        return job.ended and job.container_id not in running
    return job.container_id not in wanted or job.container_id not in running


def _kill(seen: Snapshot, container: SeenContainer) -> Restart:
    metadata = seen.pod.metadata
    return Restart(
        node=seen.node,
        runtime=seen.seen.runtime,
        container_id=container.id,
        container=container.name,
        grace=container.grace,
        hook=container.hook,
        ports=container.ports,
        pod_ip=seen.pod.status.pod_ip,
        pod_namespace=metadata.namespace,
        pod_name=metadata.name,
        pod_uid=metadata.uid,
    )
