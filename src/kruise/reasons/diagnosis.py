"""What is wrong with a pod itself: read off the pod, its node and its warnings, as a person would with kubectl. Pure.

The first level that shows a trouble is told, since everything behind it follows from it: a pod without a node cannot
pull an image, one that cannot pull fails no probe.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from kruise import kinds
from kruise.api.native.container_reasons import CRASH_LOOP, GOING_WELL, NO_IMAGE
from kruise.api.native.events import Event
from kruise.api.native.nodes import Node
from kruise.api.native.pod import ContainerStatus, Pod, condition
from kruise.inplace import keys
from kruise.inplace.availability import is_available, is_update_ready, seconds_until_available
from kruise.inplace.barriers import priority_of, waits_for_turn
from kruise.inplace.state import BrokenAnnotation, update_state_of
from kruise.machinery.ages import age
from kruise.machinery.causes import Act, Meaning
from kruise.machinery.codec import Struct
from kruise.machinery.wording import namespace_flag, shortened
from kruise.reasons import causes
from kruise.reasons.links import Link
from kruise.sidecars.launch_priority.barrier import lets_others_start
from kruise.sidecars.terminator.containers import is_due, request_name, sidecars_of
from kruise.workloads.shared import causes as shared

_START_TROUBLES = frozenset({"FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox", "FailedMapVolume"})
_TOLD_BY_EVENTS = (causes.STARTING, causes.PROBE)
_PREEMPTION = re.compile(r"\.? (no new claims to deallocate, )?preemption: .*$", re.DOTALL)
"""What a scheduler adds about pods that it could put out, mostly in vain."""
_LONGEST = 300
_WRAPPING = re.compile(
    r'(Back-off pulling image "[^"]*"|ErrImagePull|rpc error|code = \w+ desc = failed to pull and unpack image "[^"]*"'
    r'|code = \w+ desc = Error response from daemon|failed to resolve reference "[^"]*"): '
)


class Place(Struct):
    """How the workload is named on the command line: for remedies. Empty for a pod that nobody controls."""

    target: str = ""
    flags: str = ""
    """` -n demo`, where it is needed."""
    can_undo: bool = False


class Surroundings(Struct):
    """What is known about a pod besides the pod."""

    node: Node | None = None
    is_node_gone: bool = False
    events: Sequence[Event] = ()
    """Its warnings."""


NOTHING_KNOWN = Surroundings()


def diagnose(
    pod: Pod, *, min_ready_seconds: int, now: datetime, around: Surroundings = NOTHING_KNOWN, place: Place
) -> tuple[Link, ...]:
    """Why a pod does not serve; empty where it does."""
    if pod.metadata.deletion_timestamp is None and is_available(pod, min_ready_seconds, now):
        return ()
    looked = _Look(pod, min_ready_seconds, now, around, place)
    for level in looked.levels():
        found = tuple(level())
        if found:
            return found
    return (looked.unknown(),)


def needs_events(pod: Pod, now: datetime) -> bool:
    """Whether the pod itself does not say what is wrong with it."""
    found = diagnose(pod, min_ready_seconds=0, now=now, place=Place())
    return any(link.meaning in _TOLD_BY_EVENTS for link in found)


class _Look:
    """One pod, looked at from the outside in."""

    def __init__(self, pod: Pod, min_ready_seconds: int, now: datetime, around: Surroundings, place: Place) -> None:
        self._pod = pod
        self._name = pod.metadata.name
        self._min_ready_seconds = min_ready_seconds
        self._now = now
        self._around = around
        self._place = place

    def levels(self) -> tuple[Callable[[], Iterator[Link]], ...]:
        return (
            self._finished,
            self._terminating,
            self._placing,
            self._node,
            self._sidecars,
            self._containers,
            self._gates,
            self._waiting_for_time,
            self._state,
        )

    # The levels

    def _terminating(self) -> Iterator[Link]:
        metadata = self._pod.metadata
        until = metadata.deletion_timestamp
        if until is None:
            return
        finalizers = metadata.finalizers
        if until > self._now:
            left = age(self._now, until)
            yield self._link(
                shared.TERMINATING, f"it is being deleted; its containers have {left} to end", "wait for that"
            )
            return
        yield from self._node()
        held = f"finalizers hold it: {', '.join(finalizers)}" if finalizers else "its node has not reported its end"
        remedy = (
            "whoever put the finalizers there must take them away when their work is done"
            if finalizers
            else f"see its node: kubectl describe node {self._pod.spec.node_name}"
        )
        since = age(until, self._now)
        message = f"it is being deleted, and its time was over {since} ago; {held}"
        yield self._link(shared.TERMINATING, message, remedy, act=Act.SOMEBODY, alike=held)

    def _finished(self) -> Iterator[Link]:
        status = self._pod.status
        if status.phase not in ("Succeeded", "Failed") or self._pod.metadata.deletion_timestamp is not None:
            return
        if status.phase == "Succeeded" and self._pod.spec.restart_policy in ("Never", "OnFailure"):
            yield self._link(causes.FINISHED, "it has done what it was made for (Succeeded)", "", act=Act.NOBODY)
            return
        told = " ".join(text for text in (status.reason, status.message) if text)
        message = f"it has ended ({status.phase}{': ' if told else ''}{_short(told)})"
        yield self._link(
            causes.FINISHED, message, f"see why, then delete it: kubectl delete pod {self._name}{self._flags}"
        )

    def _placing(self) -> Iterator[Link]:
        if self._pod.spec.node_name:
            return
        gates = [gate.name for gate in self._pod.spec.scheduling_gates]
        if gates:
            message = f"scheduling gates hold it: {', '.join(gates)}"
            yield self._link(causes.SCHEDULING_GATE, message, "whoever put them there must take them away")
            return
        scheduled = condition(self._pod, "PodScheduled")
        if scheduled is None or not scheduled.message:
            message = "it has no node yet: no scheduler has looked at it"
            remedy = f"if this lasts, see whether scheduler {self._scheduler} runs"
            yield self._link(shared.UNSCHEDULED, message, remedy, act=Act.NOBODY)
            return
        message = f"no node takes it: {_short(_PREEMPTION.sub('', scheduled.message))}"
        remedy = "make room, add a node that fits, or correct what the pod asks for (resources, node selector, ...)"
        annotations = self._pod.metadata.annotations
        for policy in [face.placement_of(annotations, self._flags) for face in kinds.faces()] if annotations else ():
            message += f"; {policy}" if policy else ""
        yield self._link(shared.UNSCHEDULED, message, remedy + self._undo())

    def _node(self) -> Iterator[Link]:
        name, around = self._pod.spec.node_name, self._around
        if around.is_node_gone:
            remedy = (
                f"the pod goes when the cluster notices; at once: kubectl delete pod {self._name}{self._flags} --force"
            )
            yield self._link(causes.NODE_GONE, f"its node {name} is gone", remedy)
            return
        if around.node is None:
            return
        ready = next((item for item in around.node.status.conditions if item.type == "Ready"), None)
        if ready is None or ready.status == "True":
            return
        told = _short(ready.message) or "no reason is told"
        message = f"its node {name} is not ready: {told}"
        yield self._link(causes.NODE_NOT_READY, message, f"bring the node back, or see: kubectl describe node {name}")

    def _containers(self) -> Iterator[Link]:
        status = self._pod.status
        images = {one.name: one.image for one in (*self._pod.spec.init_containers, *self._pod.spec.containers)}
        starting: list[str] = []
        for one in status.init_container_statuses:
            yield from self._container(one, images, starting, is_init=True)
        for one in status.container_statuses:
            yield from self._container(one, images, starting)
        if not status.container_statuses and status.phase in ("", "Pending"):
            starting.append("its containers")
        if starting:
            yield from self._starting(starting)

    def _container(
        self, status: ContainerStatus, images: dict[str, str], starting: list[str], *, is_init: bool = False
    ) -> Iterator[Link]:
        state, name = status.state, status.name
        what = f"{'init container' if is_init else 'container'} {name}"
        if status.ready or (is_init and state.terminated is not None and state.terminated.exit_code == 0):
            return
        waiting = state.waiting
        if waiting is not None and waiting.reason in NO_IMAGE:
            image = images.get(name) or status.image
            yield self._no_image(name, what, image, waiting.message or waiting.reason)
        elif waiting is not None and waiting.reason == CRASH_LOOP:
            if not self._is_replaced(status):
                # Between two tries to get the new image, a kubelet calls the end of the old container a crash.
                yield from self._not_replaced(name, what, images.get(name, ""), starting)
            else:
                yield self._crash(status, what)
        elif waits_for_turn(self._pod, status):
            yield self._behind(name, what)
        elif waiting is not None and waiting.reason not in GOING_WELL:
            message = f"{what} cannot be started: {waiting.reason}: {_short(waiting.message)}"
            yield self._link(causes.CONTAINER_ERROR, message, self._correct("what the message names"))
        elif self._ends_again_and_again(status):
            yield self._crash(status, what)
        elif is_init or state.running is None:
            starting.append(what)
        else:
            yield self._not_passing(status, what)

    def _behind(self, container: str, what: str) -> Link:
        priorities = {one.name: priority_of(one) for one in self._pod.spec.containers}
        own = priorities[container]
        statuses = {status.name: status for status in self._pod.status.container_statuses}
        before = [
            (name, priority)
            for name, priority in priorities.items()
            if priority is not None
            and own is not None
            and priority > own
            and not lets_others_start(self._pod, statuses.get(name))
        ]
        if failed := [name for name, _ in before if self._is_over(statuses.get(name))]:
            message = f"{what} (priority {own}) never starts: {', '.join(failed)} failed, and is not started again"
            remedy = f"see why it failed, then: kubectl delete pod {self._name}{self._flags}"
            return self._link(causes.CONTAINER_ERROR, message, remedy)
        if before:
            named = ", ".join(f"{name} (priority {priority})" for name, priority in before)
            message = f"{what} (priority {own}) starts when {named} is ready"
            return self._link(causes.LAUNCH_ORDER, message, "wait for that; nothing ends it but readiness")
        remedy = "wait for its kubelet to look again; if this lasts, see whether the manager runs"
        return self._link(causes.LAUNCH_ORDER, f"{what} (priority {own}) may start", remedy)

    def _is_over(self, status: ContainerStatus | None) -> bool:
        """It has ended, and its kubelet does not start it again."""
        return status is not None and status.state.terminated is not None and self._pod.spec.restart_policy == "Never"

    def _sidecars(self) -> Iterator[Link]:
        """A pod that is done, but for sidecars."""
        if not is_due(self._pod):
            return
        ended = {one.name for one in self._pod.status.container_statuses if one.state.terminated is not None}
        names = [sidecar.name for sidecar in sidecars_of(self._pod) if sidecar.name not in ended]
        request = f"kubectl get containerrecreaterequest {request_name(self._pod)}{self._flags}"
        remedy = (
            f"wait for them to be stopped; if this lasts, see the request ({request}), whether gate SidecarTerminator "
            f"is on, and whether node {self._pod.spec.node_name} has a daemon"
        )
        message = f"its main containers are done, and sidecars still run: {', '.join(names)}"
        yield self._link(causes.SIDECAR_RUNS, message, remedy)

    def _no_image(self, container: str, what: str, image: str, told: str) -> Link:
        message = f"{what} cannot get its image {image}: {_without_wrapping(told)}"
        return self._link(causes.IMAGE_PULL, message, self._correct_image(container), alike=f"{container} {image}")

    def _is_replaced(self, status: ContainerStatus) -> bool:
        """Whether it ever ran what the pod asks for now, as far as one can tell."""
        try:
            state = update_state_of(self._pod)
        except BrokenAnnotation:
            state = None
        last = ((state.last_container_statuses if state is not None else None) or {}).get(status.name)
        before = (last.image_id if last is not None else "", *_images_before(self._pod, status.name))
        return status.restart_count > 0 and status.image_id not in filter(None, before)

    def _not_replaced(self, container: str, what: str, image: str, starting: list[str]) -> Iterator[Link]:
        failure = f'Failed to pull image "{image}": '
        told = next((event.message for event in self._around.events if event.message.startswith(failure)), "")
        if told:
            yield self._no_image(container, what, image, told.removeprefix(failure))
        else:
            starting.append(what)

    def _ends_again_and_again(self, status: ContainerStatus) -> bool:
        """Restarted more than once, and the last time not by us: an in-place update restarts a container once."""
        last = status.last_state.terminated or status.state.terminated
        return status.restart_count > 1 and last is not None and last.exit_code != 0

    def _crash(self, status: ContainerStatus, what: str) -> Link:
        last = status.last_state.terminated or status.state.terminated
        times = f"{status.restart_count} restarts" if status.restart_count != 1 else "1 restart"
        how = "it ended"
        if last is not None:
            reason = f" ({last.reason})" if last.reason not in ("", "Error", "Completed") else ""
            how = f"it ended with exit code {last.exit_code}{reason}"
            if last.message:
                how += f": {_short(last.message)}"
        logs = f"kubectl logs {self._name}{self._flags} -c {status.name} --previous"
        owner, _ = contributor_of(self._pod, status.name)
        correct = f"correct it in {owner}, to which it belongs" if owner else self._correct("the template")
        return self._link(
            causes.CRASH_LOOP,
            f"{what} crashes: {how}; {times} so far",
            f"see what it said: {logs}; then {correct}",
            alike=f"{what} {how}",
        )

    def _not_passing(self, status: ContainerStatus, what: str) -> Link:
        running = status.state.running
        since = running.started_at if running is not None else None
        probe = "startup probe" if status.started is False else "readiness probe"
        told = next((_short(event.message) for event in self._around.events if event.reason == "Unhealthy"), "")
        message = f"{what} runs, but has not passed its {probe}{': ' if told else ''}{told}"
        if since is None or (self._now - since).total_seconds() < causes.PROBE.patience:
            ran = age(since, self._now) if since is not None else "a moment"
            remedy = f"wait: it has been running for {ran}"
            return self._link(causes.PROBE, message, remedy, act=Act.NOBODY, alike=f"{what} {probe} new")
        logs = f"kubectl logs {self._name}{self._flags} -c {status.name}"
        remedy = f"see why it does not answer: {logs}; then {self._correct('the probe or the program')}"
        return self._link(causes.PROBE, message, remedy, alike=f"{what} {probe}")

    def _starting(self, what: list[str]) -> Iterator[Link]:
        trouble = next((event for event in self._around.events if event.reason in _START_TROUBLES), None)
        if trouble is not None:
            message = f"its node cannot start it: {trouble.reason}: {_short(trouble.message)}"
            yield self._link(
                causes.NOT_STARTING, message, self._correct("what the message names"), alike=trouble.reason
            )
            return
        message = f"{', '.join(what)} {'are' if len(what) > 1 or what[0] == 'its containers' else 'is'} being started"
        yield self._link(causes.STARTING, message, "wait for that")

    def _gates(self) -> Iterator[Link]:
        for gate in self._pod.spec.readiness_gates:
            found = condition(self._pod, gate.condition_type)
            if found is not None and found.status == "True":
                continue
            is_ours = gate.condition_type in (keys.IN_PLACE_READY, keys.KRUISE_POD_READY)
            if is_ours and found is None:
                message = f"the manager has not opened its readiness gate {gate.condition_type} yet"
                yield self._link(causes.LIFECYCLE_STATE, message, "it does so at its next look at the pod")
            elif gate.condition_type == keys.IN_PLACE_READY:
                yield self._link(shared.UPDATING, "its in-place update is not over", "wait for that")
            elif gate.condition_type == keys.KRUISE_POD_READY and found is not None:
                yield self._kept_unready(found.reason)
            else:
                shown = f"it is {found.status}" if found is not None else "nobody has set it"
                message = f"readiness gate {gate.condition_type} is shut: {shown}"
                yield self._link(
                    causes.READINESS_GATE, message, "whoever answers this gate must set the condition to True"
                )

    def _kept_unready(self, reason: str) -> Link:
        from kruise.inplace.readiness import PRE_DELETE, PRE_UPDATE, writers_of  # rare, and much is loaded with it

        writers = writers_of(self._pod)
        others = [one for one in writers if one not in (PRE_DELETE, PRE_UPDATE)]
        if writers and not others:
            hooks = " and ".join(one.key.removesuffix("Hook") for one in writers)
            message = f"the {hooks} hook of its workload keeps it out of service"
            return self._link(causes.LIFECYCLE_STATE, message, "it serves again, or goes, when the hook is answered")
        why = ", ".join(f"{one.user_agent} ({one.key})" for one in others) or reason or "no reason is told"
        return self._link(
            causes.READINESS_GATE, f"somebody keeps it unready: {why}", "whoever has that reason must take it back"
        )

    def _waiting_for_time(self) -> Iterator[Link]:
        left = seconds_until_available(self._pod, self._min_ready_seconds, self._now)
        if left is not None:
            message = f"it is ready, and available after minReadySeconds {self._min_ready_seconds}: in {left:.0f} s"
            yield self._link(causes.MIN_READY, message, "wait for that", alike="min-ready")

    def _state(self) -> Iterator[Link]:
        state = self._pod.metadata.labels.get(keys.STATE_LABEL, "")
        if is_update_ready(self._pod, 0, self._now) and state not in ("", "Normal"):
            message = f"it is ready, but in lifecycle state {state}"
            yield self._link(causes.LIFECYCLE_STATE, message, "the manager moves it on when nothing holds it")

    def unknown(self) -> Link:
        ready = condition(self._pod, "Ready")
        told = " ".join(text for text in ((ready.reason, ready.message) if ready is not None else ()) if text)
        message = f"it is not ready{': ' if told else ''}{_short(told)}"
        return self._link(causes.NOT_READY, message, f"see more: kubectl describe pod {self._name}{self._flags}")

    # Remedies

    @property
    def _flags(self) -> str:
        """Of commands about the pod, which may be in a namespace although its workload is in none."""
        return self._place.flags or namespace_flag(self._pod.metadata.namespace)

    @property
    def _scheduler(self) -> str:
        return self._pod.spec.scheduler_name or "default-scheduler"

    def _undo(self) -> str:
        place = self._place
        return f", or go back: kruise rollout undo {place.target}{place.flags}" if place.can_undo else ""

    def _correct(self, what: str) -> str:
        return f"correct {what}{self._undo()}"

    def _correct_image(self, container: str) -> str:
        place = self._place
        owner, name = contributor_of(self._pod, container)
        if owner:
            command = f"kruise set image {owner} {name}=IMAGE"
            return (
                f"the container belongs to {owner}: correct the image there, or the access to its registry "
                f"({command}), or go back: kruise rollout undo {owner}"
            )
        if not place.target:
            command = f"kubectl set image pod/{self._name}{self._flags} {container}=IMAGE"
            return f"correct the image or the access to its registry ({command})"
        command = f"kruise set image {place.target}{place.flags} {container}=IMAGE"
        return f"correct the image or the access to its registry ({command}){self._undo()}"

    def _link(self, why: Meaning, message: str, remedy: str, *, act: Act | None = None, alike: str = "") -> Link:
        return Link(meaning=why, message=message, act=act or why.act, remedy=remedy, alike=alike)


def contributor_of(pod: Pod, container: str) -> tuple[str, str]:
    """Who has put a container into a pod of somebody else, as commands name it, and what it is called there; empty: it
    is the pod's own."""
    for face in kinds.REGISTRY.built_in:
        if face.contribution is not None:
            found = face.contribution.owner_of(pod.metadata.annotations, container)
            if found is not None:
                return f"{face.word}/{found[0]}", found[1]
    return "", ""


def _images_before(pod: Pod, container: str) -> Iterator[str]:
    for face in kinds.REGISTRY.built_in:
        if face.contribution is not None:
            yield face.contribution.ran_before(pod.metadata.annotations, container)


def _without_wrapping(text: str) -> str:
    """What is behind the layers that each repeat the name of the image."""
    short = _short(text)
    while (wrapping := _WRAPPING.match(short)) is not None:
        short = short[wrapping.end() :]
    return short


def _short(text: str) -> str:
    """On one line, and no longer than a person reads."""
    return shortened(" ".join(text.split()), _LONGEST)
