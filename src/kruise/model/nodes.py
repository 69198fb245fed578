"""What scheduler, kubelet and node agent do to pods, told in the few steps that controllers can see.

A new pod gets a node, starts and becomes ready. A container whose image changed, or whose environment did, restarts;
its pod is not ready meanwhile. `Ready` follows from the containers and the readiness gates, as a kubelet has it. A
deleted pod ends after a while. Each step takes its typical time, the same for every pod. One that finds no node waits
until another one leaves, and so does one that asks for more than its node has left.

Pods that are down in the beginning stay down until they are changed. One that only began lately goes on.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta

from kruise.api.native.container_reasons import NO_IMAGE
from kruise.api.native.pod import (
    PODS,
    Container,
    ContainerStateWaiting,
    ContainerStatus,
    Pod,
    PodStatus,
    ResourceRequirements,
    condition,
)
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim
from kruise.inplace import keys
from kruise.inplace.completion import same_resources
from kruise.inplace.hashes import metadata_env
from kruise.inplace.resizing import RESIZE_IN_PROGRESS, RefusedResize, refused_resize
from kruise.machinery import codec
from kruise.machinery.quantity import parse_quantity
from kruise.model import agent, kubelet, podstates
from kruise.model.images import ImageIds
from kruise.model.room import EndlessRoom, NoRoomError, Room, takes_room
from kruise.model.times import Times
from kruise.model.volumes import Volumes
from kruise.model.world import World

_APART = 0.02
"""Seconds between pods that become ready together."""
_MANY = 100


class Nodes:
    """`failure_of` is asked at each start why a pod like this is known not to become ready; empty: it does. `room` says
    where new pods go."""

    def __init__(
        self,
        world: World,
        times: Times,
        *,
        failure_of: Callable[[Pod], str],
        reports: bool,
        room: Room | None = None,
        volumes: Volumes | None = None,
    ) -> None:
        self._world = world
        self._times = times
        self._failure_of = failure_of
        self._reports = reports
        """There is an agent on the nodes that tells what containers were made from."""
        self._images = ImageIds()
        self._restarts: dict[str, _Restart] = {}
        """By uid: restarts under way. A newer one takes the place of an older one."""
        self._unreported: set[str] = set()
        """Uids of pods whose containers are newer than what the agent has told of them."""
        self._last_start: tuple[datetime | None, int] = (None, 0)
        """When a pod was last set going, and how many before it together with it."""
        self._room = room or EndlessRoom()
        self._volumes = volumes or Volumes(world, are_known=False)
        self._homeless: dict[str, Pod] = {}
        """Pods that found no node, by uid; tried again when another one leaves."""
        self._ungranted: dict[str, _Ungranted] = {}
        """Pods that lack the resources that they ask for, by uid; those that were put off are tried again, too."""
        self._tries_again = False

    def begin(self) -> None:
        """Take over what is there, and hear of everything from now on."""
        pods = self._world.store(PODS)
        for pod in pods.list():
            self._images.learn(pod)
        pods.subscribe(self._noticed)
        self._world.add(PERSISTENT_VOLUME_CLAIMS).subscribe(self._claim_noticed)

    # News

    def _noticed(self, old: Pod | None, new: Pod | None) -> None:
        if old is None and new is not None and self._is_refused(new):
            return
        if self._room.saw(old, new):
            self._look_again()
        if new is None:
            if old is not None:
                self._restarts.pop(old.metadata.uid, None)
                self._unreported.discard(old.metadata.uid)
                self._homeless.pop(old.metadata.uid, None)
                self._ungranted.pop(old.metadata.uid, None)
            return
        if old is None:
            self._came(new)
            return
        if new.metadata.deletion_timestamp is not None:
            if old.metadata.deletion_timestamp is None and new.spec.node_name:
                self._later(self._stop_seconds(new), self._ended, new)
            return
        if old.spec is not new.spec and new.spec.node_name:
            if not old.spec.node_name:
                self._later(self._times.start + self._times.ready + self._apart(), self._started, new)
                return
            self._changed(old, new)
        if old.status is not new.status and podstates.with_readiness(new, self._world.now) is not new:
            self._later(0.0, self._synced, new)
        if self._reports and old.metadata is not new.metadata:
            self._metadata_changed(old, new)

    def _came(self, pod: Pod) -> None:
        if pod.metadata.deletion_timestamp is not None:
            self._later(self._rest_of_end(pod), self._ended, pod)
        elif pod.status.phase in ("Succeeded", "Failed"):
            return
        elif not pod.spec.node_name:
            if podstates.is_hopeful(pod, self._world.now):
                self._later(self._times.schedule, self._bound, pod)
            else:
                self._homeless[pod.metadata.uid] = pod
        elif not pod.status.container_statuses or podstates.is_starting(pod):
            if podstates.is_hopeful(pod, self._world.now):
                self._later(self._times.start + self._times.ready, self._started, pod)
        else:
            self._take_over(pod)

    def _take_over(self, pod: Pod) -> None:
        """A pod that runs: what was changed and did not happen yet goes on, what lately began becomes ready."""
        stale = [container.name for container in pod.spec.containers if not self._images.runs(pod, container)]
        if stale and podstates.is_hopeful(pod, self._world.now):
            self._restart(pod, stale)
        elif not podstates.containers_ready(pod):
            seconds = podstates.until_ready(pod, self._times.ready, self._world.now)
            if seconds is not None:
                self._later(seconds, self._answered, pod)
        elif podstates.with_readiness(pod, self._world.now) is not pod:
            self._later(0.0, self._synced, pod)
        if self._reports and not stale:
            self._metadata_changed(pod, pod)
        if _lacks_resources(pod):
            if refusal := refused_resize(pod):
                self._ungranted[pod.metadata.uid] = _Ungranted(pod, _resources(pod), refusal)
            elif _is_being_resized(pod):
                self._later(0.0, self._resize, pod)

    def _changed(self, old: Pod, new: Pod) -> None:
        before = {container.name: container for container in old.spec.containers}
        kept = [container for container in new.spec.containers if container.name in before]
        restarting = [container.name for container in kept if before[container.name].image != container.image]
        if restarting:
            self._restart(new, restarting)
        if any(before[container.name].resources != container.resources for container in kept):
            self._resize(new, _resources(old))

    def _resize(self, pod: Pod, holding: Mapping[str, ResourceRequirements] | None = None) -> None:
        """Ask the node for what the spec says now. `holding`: what the containers have, where their status does not
        tell."""
        if pod.metadata.deletion_timestamp is not None or not takes_room(pod):
            return
        before = self._ungranted.pop(pod.metadata.uid, None)
        held = before.holding if before is not None else holding or _resources(pod)
        refusal = self._room.resize(pod)
        if refusal is not None:
            self._ungranted[pod.metadata.uid] = _Ungranted(pod, held, refusal)
        else:
            restarting = [
                container.name
                for container in pod.spec.containers
                if podstates.restarts_for(held.get(container.name, container.resources), container)
            ]
            if restarting:
                self._restart(pod, restarting)
        self._later(self._times.resize, self._resized, pod)

    def _metadata_changed(self, old: Pod, new: Pod) -> None:
        """The node agent stops containers whose environment is not what the pod's metadata say, during an update."""
        if not any(metadata_env(container) for container in new.spec.containers):
            return
        ready = condition(new, keys.IN_PLACE_READY)
        if ready is None or ready.status != "False":
            return
        under_way = self._restarts.get(new.metadata.uid)
        if new.metadata.uid in self._unreported:
            return  # what the agent told is of the containers before; its next report comes back to this
        stale = [name for name in agent.out_of_date(new) if under_way is None or name not in under_way.names]
        if stale:
            self._restart(new, stale, after=self._times.agent)

    def _claim_noticed(self, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim | None) -> None:
        if new is None or new.metadata.deletion_timestamp is not None:
            return
        if new.status.phase != "Bound":
            if old is None:
                self._world.after(0.0, lambda: self._serve_claim(new))
            return
        if old is not None and old.status.phase != "Bound":
            self._look_again()
        if _asks_for_more(new) and (old is None or not _asks_for_more(old)):
            self._world.after(self._times.resize, lambda: self._serve_claim(new))

    def _serve_claim(self, claim: PersistentVolumeClaim) -> None:
        found = self._world.store(PERSISTENT_VOLUME_CLAIMS).get(claim.metadata.namespace, claim.metadata.name)
        if found is not None:
            self._volumes.serve(found)

    # Steps of a pod

    def _apart(self) -> float:
        """How much later than the one before it a pod becomes ready that starts together with it.

        In a cluster no two pods become ready at the very same moment: controllers see the first one alone, and what
        they make of it may be all that they can do. Among very many pods this is left out; each moment costs a pass.
        """
        now, (before, count) = self._world.now, self._last_start
        self._last_start = (now, count + 1 if before == now else 0)
        if len(self._world.store(PODS)) > _MANY:
            return 0.0
        return _APART * self._last_start[1]

    def _later(self, seconds: float, step: Callable[[Pod], None], pod: Pod) -> None:
        self._world.after(seconds, functools.partial(self._take, step, pod.metadata.uid, pod))

    def _take(self, step: Callable[[Pod], None], uid: str, seen: Pod) -> None:
        pod = self._world.store(PODS).get(seen.metadata.namespace, seen.metadata.name)
        if pod is not None and pod.metadata.uid == uid:
            step(pod)

    def _bound(self, pod: Pod) -> None:
        if pod.spec.node_name or pod.metadata.deletion_timestamp is not None or pod.spec.scheduling_gates:
            return
        try:
            node = self._room.find(pod)
        except NoRoomError as error:
            self._homeless[pod.metadata.uid] = pod
            self._refuse(pod, str(error))
        else:
            self._homeless.pop(pod.metadata.uid, None)
            self._volumes.placed(pod, node)
            self._world.put(PODS, kubelet.bound(pod, node, self._world.now))

    def _look_again(self) -> None:
        """Something is free that was not before: those who wait for it are tried again."""
        if self._somebody_waits and not self._tries_again:
            self._tries_again = True
            self._world.after(self._times.schedule, self._try_again)

    def _try_again(self) -> None:
        self._tries_again = False
        for waiting in list(self._ungranted.values()):
            if not waiting.refusal.is_final:
                self._take(self._resize, waiting.pod.metadata.uid, waiting.pod)
        for pod in list(self._homeless.values()):
            self._take(self._bound, pod.metadata.uid, pod)

    @property
    def _somebody_waits(self) -> bool:
        return bool(self._homeless) or any(not waiting.refusal.is_final for waiting in self._ungranted.values())

    def _is_refused(self, pod: Pod) -> bool:
        """A new pod that names its node itself, which does not take it."""
        if not pod.spec.node_name or pod.status.start_time is not None or pod.status.conditions:
            return False
        try:
            self._room.check(pod)
        except NoRoomError as error:
            self._later(0.0, functools.partial(self._refuse, message=str(error)), pod)
            return True
        return False

    def _refuse(self, pod: Pod, message: str) -> None:
        after = kubelet.unscheduled(pod, message, self._world.now)
        if after.status != pod.status:
            self._world.put(PODS, after)

    def _started(self, pod: Pod) -> None:
        """A new pod runs and is ready: nothing that anybody decides lies between the two."""
        if pod.metadata.deletion_timestamp is not None:
            return
        failure = self._failure(pod, pod.spec.init_containers)
        statuses = tuple(
            self._running(pod, container, None, _Restart(since=self._world.now), failure)
            for container in sorted(pod.spec.containers, key=lambda container: container.name)
        )
        is_running = all(status.image_id for status in statuses)
        status = kubelet.with_containers(pod, statuses, self._world.now, is_running=is_running)
        self._put_status(pod, status, report=True)

    def _restart(self, pod: Pod, names: Iterable[str], *, after: float = 0.0) -> None:
        """Replace containers, along with those that were about to be replaced anyhow."""
        under_way = self._restarts.get(pod.metadata.uid, _Restart(since=self._world.now))
        restart = _Restart(since=self._world.now, names=under_way.names | set(names))
        self._restarts[pod.metadata.uid] = restart
        self._later(after, functools.partial(self._stopped, restart.names), pod)
        until_ready = after + self._times.restart + self._times.ready + self._apart()
        self._later(until_ready, functools.partial(self._restarted, restart), pod)

    def _stopped(self, names: frozenset[str], pod: Pod) -> None:
        """The kubelet ends the containers that are to be replaced: they serve nobody from now on."""
        if pod.metadata.deletion_timestamp is not None or not any(
            status.ready for status in pod.status.container_statuses if status.name in names
        ):
            return
        self._put_status(pod, kubelet.stopped(pod, names))

    def _restarted(self, restart: _Restart, pod: Pod) -> None:
        if self._restarts.get(pod.metadata.uid) is not restart:
            return
        del self._restarts[pod.metadata.uid]
        failure = self._failure(pod)
        if pod.metadata.deletion_timestamp is not None or (failure is not None and failure.reason in NO_IMAGE):
            return
        containers = {container.name: container for container in pod.spec.containers}
        statuses = tuple(
            self._running(pod, containers[status.name], status, restart, failure)
            if status.name in containers and status.name in restart.names
            else status
            for status in pod.status.container_statuses
        )
        status = kubelet.with_containers(pod, statuses, self._world.now)
        self._put_status(pod, status, report=True)

    def _failure(self, pod: Pod, first: Iterable[Container] = ()) -> ContainerStateWaiting | None:
        """Why none of its containers becomes ready: one that must run `first` cannot, or others like the pod do not."""
        reason = self._failure_of(pod)
        others = ContainerStateWaiting(reason=reason, message="as others like it") if reason else None
        return kubelet.unreadable(first) or others

    def _running(
        self,
        pod: Pod,
        container: Container,
        before: ContainerStatus | None,
        restart: _Restart,
        failure: ContainerStateWaiting | None,
    ) -> ContainerStatus:
        """A container that has been started and is ready, in the place of the one before it; or one that fails."""
        unreadable = kubelet.unreadable((container,))
        if unreadable is not None and before is not None:
            return kubelet.without_image(before, unreadable, restart.since + timedelta(seconds=self._times.stop))
        failure = unreadable or failure
        began = max(restart.since, self._world.now - timedelta(seconds=self._times.ready))
        return kubelet.started(
            pod,
            container,
            before,
            began=began,
            ended=min(began, restart.since + timedelta(seconds=self._times.stop)),
            image_id="" if failure is not None and failure.reason in NO_IMAGE else self._images.id_of(container.image),
            resources=self._granted(pod, container),
            is_ready=failure is None,
            failure=failure,
        )

    def _answered(self, pod: Pod) -> None:
        """All containers that run are ready."""
        if pod.metadata.deletion_timestamp is not None:
            return
        statuses = tuple(
            codec.evolve(status, ready=True, started=True)
            if status.state.running is not None and not status.ready and self._images.runs_status(pod, status)
            else status
            for status in pod.status.container_statuses
        )
        self._put_status(pod, codec.evolve(pod.status, container_statuses=statuses))

    def _granted(self, pod: Pod, container: Container) -> ResourceRequirements:
        waiting = self._ungranted.get(pod.metadata.uid)
        return waiting.holding.get(container.name, container.resources) if waiting is not None else container.resources

    def _resized(self, pod: Pod) -> None:
        """The resources apply, or the node tells why they do not."""
        waiting = self._ungranted.get(pod.metadata.uid)
        if waiting is None:
            self._put_status(pod, kubelet.resized(pod))
        else:
            self._put_status(pod, kubelet.not_resized(pod, waiting.refusal, self._world.now))

    def _synced(self, pod: Pod) -> None:
        self._put_status(pod, pod.status)

    def _put_status(self, pod: Pod, status: PodStatus, *, report: bool = False) -> None:
        """Write a status, with the conditions that follow from it; and what the node agent reports of it."""
        after = podstates.with_readiness(codec.evolve(pod, status=status), self._world.now)
        if report and self._reports:
            if any(metadata_env(container) for container in pod.spec.containers):
                # Somebody waits for this report, so it must not come too early.
                self._unreported.add(pod.metadata.uid)
                self._later(max(self._times.report - self._times.ready, 0.0), self._report, pod)
            else:
                after = agent.reporting(after)
        if after.status != pod.status:
            self._world.put(PODS, after)

    # The end

    def _stop_seconds(self, pod: Pod) -> float:
        grace = pod.metadata.deletion_grace_period_seconds
        return self._times.stop if grace is None else min(self._times.stop, float(grace))

    def _rest_of_end(self, pod: Pod) -> float:
        ends = pod.metadata.deletion_timestamp
        grace = pod.metadata.deletion_grace_period_seconds or 0
        if ends is None:
            return 0.0
        passed = (self._world.now - ends).total_seconds() + grace
        return max(0.0, self._stop_seconds(pod) - passed)

    def _ended(self, pod: Pod) -> None:
        self._world.pod_ended(pod)

    # The node agent

    def _report(self, pod: Pod) -> None:
        self._unreported.discard(pod.metadata.uid)
        after = agent.reporting(pod)
        if after is not pod and pod.metadata.deletion_timestamp is None:
            self._world.put(PODS, after)


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Restart:
    """Containers of a pod that are replaced."""

    since: datetime
    names: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True)
class _Ungranted:
    """A pod that does not have the resources that it asks for."""

    pod: Pod
    holding: Mapping[str, ResourceRequirements]
    """What its containers have, by name."""
    refusal: RefusedResize


def _resources(pod: Pod) -> dict[str, ResourceRequirements]:
    """What the containers have, by name; what they ask for, where their status does not tell."""
    known = {status.name: status.resources for status in pod.status.container_statuses}
    return {container.name: known.get(container.name) or container.resources for container in pod.spec.containers}


def _lacks_resources(pod: Pod) -> bool:
    held = _resources(pod)
    return any(not same_resources(container.resources, held[container.name]) for container in pod.spec.containers)


def _asks_for_more(claim: PersistentVolumeClaim) -> bool:
    """Than its volume has; of one whose size nobody told nothing is known."""
    has, wants = (amounts.get("storage") for amounts in (claim.status.capacity, claim.spec.resources.requests))
    return has is not None and wants is not None and parse_quantity(wants) > parse_quantity(has)


def _is_being_resized(pod: Pod) -> bool:
    """Its kubelet is at it, or has not looked yet. Otherwise a runtime only tells its own way of counting."""
    under_way = condition(pod, RESIZE_IN_PROGRESS)
    is_new = pod.status.observed_generation < pod.metadata.generation
    return is_new or (under_way is not None and under_way.status == "True")
