"""The life of a pod on a node: what a kubelet and a container runtime do with it, as a state machine.

`PodMachine.step(pod, now)` is the only door. It takes the pod as the server has it and the time, and answers with the
status to write, the events to tell, whether the pod can be removed, and when to call again. There is no clock, no
network and no chance in it: the same calls give the same answers.

Work that takes time (making the sandbox, pulling, starting, stopping) is written as generators that yield the moment
until which they wait, so that the code reads in the order in which a kubelet works: one `_sync` at a time for each
pod, containers one after the other, and no news in the status before it is over. A deletion interrupts it.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, Protocol

from kruise.api.core.images import problem
from kruise.inplace.resizing import RefusedResize
from kruise.local.nodes import status as reporting
from kruise.local.nodes import takeover
from kruise.local.nodes.actions import Actions, Stop, actions_for
from kruise.local.nodes.commands import FOREVER, handler_ending, hook_output, program, variables
from kruise.local.nodes.containers import Instance, Record, Trouble, container_id, fraction, should_restart
from kruise.local.nodes.images import Image, NodeImages, Refusal, find, unavailable
from kruise.local.nodes.knobs import Knobs
from kruise.local.nodes.notes import Note
from kruise.local.nodes.pods import TERMINAL, Container, Handler, Pod, amounts, full_name
from kruise.local.nodes.probes import LIVENESS, READINESS, STARTUP, Health, ProbeWorker, first_tick, health
from kruise.local.nodes.resizing import Resize
from kruise.local.nodes.spec import NodeSpec
from kruise.machinery.times import format_go_duration

Json = dict[str, Any]
Work = Generator[float, None, None]

SETTLE_SECONDS = 1.0
"""How soon a kubelet looks again at a pod whose container could not be started."""
UNREADABLE_SECONDS = 10.0
"""How soon it looks again at an image whose name it cannot read."""
CONFIG_SECONDS = 1.0
"""How soon it looks again whether a ConfigMap has what a container needs."""
DEFERRED_SECONDS = 30.0
"""How often it looks whether a resize has become possible."""
MINIMUM_GRACE = 2.0
USUAL_GRACE = 30
QUIET_TERMINATION = 5.0
"""A termination that is over within so many seconds is told in one status, not in two."""
SIGKILLED = 137
SIGTERMED = 143


class Node(Protocol):
    """The part of a node that its pods share."""

    spec: NodeSpec
    images: NodeImages

    def image_tables(self) -> Sequence[Mapping[str, Any]]: ...

    def take_address(self) -> str: ...

    def config(self, namespace: str, name: str) -> Mapping[str, str] | None:
        """What a ConfigMap holds; None: there is none."""

    def room_for(self, pod: Pod) -> RefusedResize | None:
        """Why the pod's requests do not fit; None where they do."""


@dataclasses.dataclass(slots=True)
class Step:
    """What has to be done after a step."""

    patch: Json | None = None
    """A strategic merge patch of the pod's status."""
    events: list[Note] = dataclasses.field(default_factory=list)
    remove: bool = False
    """Everything has ended and is reported: the object can go."""
    wake: float = FOREVER


class PodMachine:
    def __init__(self, node: Node, pod: Pod, *, seed: int, now: float) -> None:
        self.pod = pod
        self.node = node
        self.records: dict[str, Record] = {}
        self.address = ""
        self.sandbox = False
        self.start_time = now
        self.finished = False
        self.new_images = False
        """An image came to the node since this was set to False."""
        self._seed = seed
        self._now = now
        self._began = now
        self._knobs = Knobs(pod.metadata.annotations)
        self._notes: list[Note] = []
        self._work: Work | None = None
        self._resume_at = FOREVER
        self._dirty = True
        self._retry_at = FOREVER
        self._terminating = False
        self._grace: float = 0.0
        self._quiet_until = 0.0
        self._ending: tuple[str, str] = ("", "")
        self._resize = Resize()
        self._shown: dict[str, list[Json]] = {}
        self._shown_sandbox = False
        self._shown_address = ""
        self._shown_generation = 0
        """What the last sync began with: the spec of later ones may be there, but nobody has looked at it."""
        self._reported: Json = {}
        if takeover.has_run(pod):
            self._take_over(now)

    # The door

    def step(self, pod: Pod, now: float) -> Step:
        # Clocks round and are set back; what has happened stays in the past.
        self._now = max(self._now, now)
        self._notice(pod)
        self._advance()
        step = Step(events=self._notes)
        self._notes = []
        step.patch = self._patch()
        step.remove = self.finished and pod.metadata.deletion_timestamp is not None
        step.wake = self._next_wake()
        return step

    def written(self, patch: Json) -> None:
        """The server has taken this patch."""
        for key, value in patch.items():
            if value is None:
                self._reported.pop(key, None)
            elif key != "conditions":
                self._reported[key] = value

    @property
    def knobs(self) -> Knobs:
        return self._knobs

    def stop_container(self, name: str, identity: str, now: float, grace: float | None = None) -> bool:
        """Somebody else on the node has the runtime stop a container; the kubelet learns of it when it has ended.
        A runtime knows no hooks: with `grace` only the signal is sent.

        Returns whether it runs at all.
        """
        self._now = max(self._now, now)
        for container, instance in self._running():
            if (container.name, instance.id) == (name, identity):
                hook = grace is None
                allowed = float(self._usual_grace()) if grace is None else grace
                ends = self._stopping(container, instance, allowed, self._now, 0.0, hook=hook)
                instance.ends_at, instance.ends_with = ends
                return True
        return False

    # What comes from outside

    def _notice(self, pod: Pod) -> None:
        before, self.pod = self.pod, pod
        if pod.metadata.generation != before.metadata.generation or pod.spec != before.spec:
            self._dirty = True
        if pod.metadata.annotations != before.metadata.annotations:
            knobs = Knobs(pod.metadata.annotations)
            if knobs != self._knobs:
                self._knobs = knobs
                for _, instance in self._running():
                    instance.answers_at = self._answers_at(instance, self._container_of(instance))
                    for worker in instance.workers():
                        worker.wake(self._now)
        if self.finished:
            return
        if pod.metadata.deletion_timestamp is not None:
            grace = pod.metadata.deletion_grace_period_seconds
            self._terminate(float(USUAL_GRACE if grace is None else grace))
        elif not self._terminating and pod.status.phase in TERMINAL:
            self._terminate(float(self._usual_grace()))  # somebody has ended it: what still runs is stopped
        elif not self._terminating and self._deadline() <= self._now:
            text = "Pod was active on the node longer than the specified deadline"
            self._note("Normal", "DeadlineExceeded", text)
            self._ending = ("DeadlineExceeded", text)
            self._terminate(float(self._usual_grace()))

    def _deadline(self) -> float:
        limit = self.pod.spec.active_deadline_seconds
        return FOREVER if limit is None else self.start_time + limit

    def _terminate(self, grace: float) -> None:
        """Stop everything, or stop it sooner than was said before."""
        if self._terminating and grace >= self._grace:
            return
        silent = self._terminating
        self._terminating, self._grace = True, grace
        self._shown_generation = self.pod.metadata.generation
        self._begin(self._stop_all(grace, silent=silent))

    # Running on

    def _advance(self) -> None:
        """Everything that is due by now, in turns until nothing is."""
        for _ in range(1000):
            moved = self._containers_end()
            moved = self._probe() or moved
            if self._work is None:
                if self._retry_at <= self._now:
                    self._retry_at, self._dirty = FOREVER, True
                if not self._dirty or self.finished:
                    if not moved:
                        return
                    continue
                self._dirty = False
                self._show()
                self._shown_generation = self.pod.metadata.generation
                if self._over():
                    self._terminating = True
                    self._begin(self._stop_all(float(self._usual_grace()), silent=False))
                else:
                    self._begin(self._sync())
            elif self._resume_at > self._now:
                if not moved:
                    return
                continue
            self._continue()
        raise RuntimeError(f"pod {full_name(self.pod)} does not come to rest at {self._now}")

    def _begin(self, work: Work) -> None:
        if self._work is not None:
            self._work.close()
        self._work, self._resume_at = work, self._now

    def _continue(self) -> None:
        while self._work is not None and self._resume_at <= self._now:
            try:
                self._resume_at = next(self._work)
            except StopIteration:
                self._work, self._resume_at = None, FOREVER
                self._show()

    def _over(self) -> bool:
        """All has ended that was to run, and nothing will be started again: sidecars alone keep no pod alive."""
        main = [(item, self.records.get(item.name)) for item in self.pod.spec.containers]
        if all(
            record is not None and record.running is None and not should_restart(self.pod, item, record)
            for item, record in main
        ):
            return True
        shown = {status["name"]: status for part in self._shown.values() for status in part}
        return reporting.phase(self.pod, shown, over=False) in TERMINAL

    def _containers_end(self) -> bool:
        ended = False
        for container, instance in self._running():
            if instance.ends_at <= self._now:
                instance.finish(instance.ends_at, instance.ends_with)
                instance.message = self._last_words(container, instance)
                self._dirty = ended = True
        return ended

    def _last_words(self, container: Container, instance: Instance) -> str:
        return "" if instance.exit_code == 0 else self._knobs.text("termination-message", container.name)

    def _next_wake(self) -> float:
        wake = self._resume_at if self._work is not None else self._retry_at
        if self.finished:
            return FOREVER
        for _, instance in self._running():
            wake = min(wake, instance.ends_at)
            if instance.answers_at > self._now and instance.readiness is None:
                wake = min(wake, instance.answers_at)
            if not self._terminating:
                for worker in instance.workers():
                    if worker.kind == STARTUP or instance.has_started:
                        wake = min(wake, worker.next_at)
        return wake if self._terminating else min(wake, self._deadline())

    # Containers

    def _every(self) -> Iterator[Container]:
        spec = self.pod.spec
        yield from spec.init_containers
        yield from spec.containers
        yield from spec.ephemeral_containers

    def _running(self) -> Iterator[tuple[Container, Instance]]:
        for container in self._every():
            record = self.records.get(container.name)
            if record is not None and record.running is not None:
                yield container, record.running

    def _container_of(self, instance: Instance) -> Container:
        return next(item for item in self._every() if self._record(item).current is instance)

    def _record(self, container: Container) -> Record:
        return self.records.setdefault(container.name, Record())

    def _usual_grace(self) -> int:
        grace = self.pod.spec.termination_grace_period_seconds
        return USUAL_GRACE if grace is None else grace

    def _about(self, seconds: float, *words: object) -> float:
        """So many seconds, more or less."""
        return seconds * (0.75 + 0.5 * fraction(self._seed, self.pod.metadata.uid, *words))

    def _note(self, kind: str, reason: str, message: str, container: Container | None = None) -> None:
        path = ""
        if container is not None:
            spec = self.pod.spec
            part = "containers"
            if container in spec.init_containers:
                part = "initContainers"
            elif container in spec.ephemeral_containers:
                part = "ephemeralContainers"
            path = f"spec.{part}{{{container.name}}}"
        self._notes.append(Note(kind, reason, message, path))

    # One pass of a kubelet

    def _sync(self) -> Work:
        if not self.sandbox:
            yield self._now + self._about(self.node.spec.sandbox_seconds, "sandbox")
            self.sandbox = True
            self.address = self.node.spec.address if self.pod.spec.host_network else self.node.take_address()
        self._resize.allocate(self.pod, self.records, self.node.room_for)
        if self._resize.is_deferred:
            self._retry_at = min(self._retry_at, self._now + DEFERRED_SECONDS)
        if self._resize.in_progress(self.pod, self.records):
            self._show()
        actions = actions_for(self.pod, self.records)
        waited = self._crash_waits()
        exited = {name: record.exited for name, record in self.records.items()}
        for stop in actions.stop:
            yield from self._stop(stop)
        for container in actions.start_ephemeral:
            yield from self._start(container, None)
        for container in actions.start_init:
            started = yield from self._start(container, exited.get(container.name))
            if container.is_sidecar:
                # What comes after it can start now, or when its startup probe says so.
                self._dirty = self._dirty or started
            elif not started:
                return
        yield from self._resize_running(actions)
        for container in actions.start:
            yield from self._start(container, exited.get(container.name))
        if self._crash_waits() - waited:
            # That it waits is told at the next look; until then the status says how the container ended.
            yield self._now + SETTLE_SECONDS

    def _crash_waits(self) -> set[str]:
        return {
            name
            for name, record in self.records.items()
            if record.trouble is not None and record.trouble.reason == "CrashLoopBackOff"
        }

    def _resize_running(self, actions: Actions) -> Work:
        if not self._resize.started:
            return
        if actions.resize:
            yield self._now + self._about(self.node.spec.start_seconds, "resize", self.pod.metadata.generation)
            for container in actions.resize:
                record = self._record(container)
                if error := self._knobs.text("resize-error", container.name):
                    self._resize.error = error
                    self._retry_at = min(self._retry_at, self._now + DEFERRED_SECONDS)
                    return
                if record.running is not None and record.allocated is not None:
                    record.running.resources = record.allocated
        if not self._resize.in_progress(self.pod, self.records):
            self._note("Normal", "ResizeCompleted", self._resize.finish(self.pod))

    def _stop(self, stop: Stop) -> Work:
        record = self._record(stop.container)
        instance = record.running
        if instance is None:
            return
        self._note("Normal", "Killing", stop.message, stop.container)
        grace = self._usual_grace() if stop.grace is None else stop.grace
        ends, code = self._stopping(stop.container, instance, float(grace), self._now, 0.0)
        yield ends
        if instance.running:
            instance.finish(ends, code)

    def _stopping(
        self, container: Container, instance: Instance, grace: float, now: float, turn: float, *, hook: bool = True
    ) -> tuple[float, int]:
        """When a container ends that is told to stop now, and how. Its signal comes at `turn` at the earliest."""
        deadline = now + grace
        signal = now
        if hook and container.lifecycle is not None and container.lifecycle.pre_stop is not None and grace > 0:
            seconds, _ = handler_ending(container.lifecycle.pre_stop)
            signal = min(now + seconds, deadline)
        signal = max(signal, min(turn, deadline))
        deadline = max(deadline, signal + MINIMUM_GRACE)
        asked = self._knobs.seconds("stop-seconds", container.name)
        usual = self._about(self.node.spec.stop_seconds, container.name, instance.attempt, "stop")
        # With a shared process namespace the sandbox has process 1, and signals end everything else.
        if asked is None and instance.program.is_deaf and not self.pod.spec.share_process_namespace:
            asked = FOREVER
        ends = signal + (usual if asked is None else asked)
        code = self._knobs.number("stop-exit-code", container.name)
        if code is None:
            code = SIGTERMED if instance.program.is_deaf else instance.program.stops_with
        if ends > deadline:
            ends, code = deadline, SIGKILLED
        return (ends, code) if ends <= instance.ends_at else (instance.ends_at, instance.ends_with)

    def _stop_all(self, grace: float, *, silent: bool) -> Work:
        """Stop every container: main ones at once, then the sidecars from the last to the first."""
        ends: list[tuple[float, Instance, int]] = []
        sidecars = [item for item in self.pod.spec.init_containers if item.is_sidecar]
        others = [item for item in self._every() if item not in sidecars]
        turn = 0.0
        for container in others:
            turn = max(turn, self._end_of(container, grace, 0.0, silent, ends))
        for container in reversed(sidecars):
            turn = max(turn, self._end_of(container, grace, turn, silent, ends))
        last = max((moment for moment, _, _ in ends), default=self._now)
        if last - self._now <= QUIET_TERMINATION:
            self._quiet_until = last
        for moment, instance, code in sorted(ends, key=lambda item: item[0]):
            yield moment
            if instance.running:
                instance.finish(moment, code)
        for record in self.records.values():
            if record.current is not None:
                record.trouble = None
        self.sandbox = False
        self.finished = True
        self._shown_generation = self.pod.metadata.generation

    def _end_of(
        self, container: Container, grace: float, turn: float, silent: bool, ends: list[tuple[float, Instance, int]]
    ) -> float:
        record = self.records.get(container.name)
        if record is None or record.running is None:
            return 0.0
        if not silent:
            self._note("Normal", "Killing", f"Stopping container {container.name}", container)
        moment, code = self._stopping(container, record.running, grace, self._now, turn)
        ends.append((moment, record.running, code))
        return moment

    # Starting a container

    def _start(self, container: Container, exited: Instance | None) -> Generator[float, None, bool]:
        record = self._record(container)
        if exited is not None and self._backs_off(container, record, exited):
            return False
        image = yield from self._image(container, record)
        if image is None:
            return False
        if lacking := self._lacks(container):
            self._note("Warning", "Failed", f"Error: {lacking}", container)
            record.trouble = Trouble("CreateContainerConfigError", lacking)
            self._retry_at = min(self._retry_at, self._now + CONFIG_SECONDS)
            return False
        yield self._now + self._about(self.node.spec.start_seconds, container.name, "start", record_attempts(record))
        instance = self._new_instance(container, record, image)
        if record.current is not None:
            record.previous = record.current
        record.current = instance
        record.allocated = record.allocated if record.allocated is not None else amounts(container.resources)
        instance.resources = record.allocated
        record.trouble = None
        self._note("Normal", "Created", f"Created container: {container.name}", container)
        self._note("Normal", "Started", f"Started container {container.name}", container)
        return (yield from self._post_start(container, record, instance))

    def _lacks(self, container: Container) -> str:
        """Which ConfigMap, or which key of one, the environment of a container needs and does not find."""
        namespace = self.pod.metadata.namespace
        for item in container.env:
            reference = item.value_from.config_map_key_ref if item.value_from is not None else None
            if reference is None or reference.optional:
                continue
            data = self.node.config(namespace, reference.name)
            if data is None:
                return f'configmap "{reference.name}" not found'
            if reference.key not in data:
                return f"couldn't find key {reference.key} in ConfigMap {namespace}/{reference.name}"
        return ""

    def _new_instance(self, container: Container, record: Record, image: Image) -> Instance:
        attempt = record.current.attempt + 1 if record.current is not None else 0
        instance = Instance(
            id=container_id(self._seed, self.pod, container.name, attempt),
            image=image.name,
            image_id=image.id,
            asked=container.image,
            attempt=attempt,
            started_at=self._now,
            program=program(self.pod, container),
            environment=variables(self.pod, container),
        )
        self._plan_end(container, instance)
        instance.answers_at = self._answers_at(instance, container)
        self._add_probes(container, instance)
        return instance

    def _plan_end(self, container: Container, instance: Instance) -> None:
        seconds, code = instance.program.ending()
        instance.ends_at, instance.ends_with = instance.started_at + seconds, code
        told = self._knobs.ending(container.name)
        limit = self._knobs.number("crash-count", container.name)
        if told is not None and (limit is None or instance.attempt < limit):
            instance.ends_at = instance.started_at + max(0.05, told.after)
            instance.ends_with = told.code

    def _answers_at(self, instance: Instance, container: Container) -> float:
        return instance.started_at + (self._knobs.seconds("slow-start", container.name) or 0.0)

    def _add_probes(self, container: Container, instance: Instance) -> None:
        started = instance.started_at
        if container.startup_probe is not None:
            first = first_tick(container.startup_probe, self._began, started, at_once=False)
            instance.startup = ProbeWorker(STARTUP, container.startup_probe, first)
        if container.readiness_probe is not None:
            first = first_tick(container.readiness_probe, self._began, started, at_once=True)
            instance.readiness = ProbeWorker(READINESS, container.readiness_probe, first)
        if container.liveness_probe is not None:
            first = first_tick(container.liveness_probe, self._began, started, at_once=False)
            instance.liveness = ProbeWorker(LIVENESS, container.liveness_probe, first)

    def _backs_off(self, container: Container, record: Record, exited: Instance) -> bool:
        key = f"{container.image}/{amounts(container.resources)}"
        if record.crash_key != key:
            record.crash_key = key
            record.crash.delay = 0.0
        since = exited.finished_at or 0.0
        until = record.crash.active_until(since)
        if self._now < until:
            name = full_name(self.pod)
            text = f"Back-off restarting failed container {container.name} in pod {name}"
            self._note("Warning", "BackOff", text, container)
            delay = format_go_duration(record.crash.delay)
            text = f"back-off {delay} restarting failed container={container.name} pod={name}"
            record.trouble = Trouble("CrashLoopBackOff", text)
            self._retry_at = min(self._retry_at, until)
            return True
        record.crash.grow(since, self._now)
        return False

    def _image(self, container: Container, record: Record) -> Generator[float, None, Image | None]:
        image, policy = container.image, container.image_pull_policy
        text = problem(image)
        if text:
            self._note("Warning", "InspectFailed", text, container)
            self._no_image(container, record, "InvalidImageName", text, self._now + UNREADABLE_SECONDS)
            return None
        here = self.node.images.get(image)
        if here is not None and policy != "Always":
            self._note("Normal", "Pulled", f'Container image "{image}" already present on machine', container)
            return here
        if policy == "Never":
            text = f'Container image "{image}" is not present with pull policy of Never'
            self._note("Warning", "ErrImageNeverPull", text, container)
            self._no_image(container, record, "ErrImageNeverPull", text, self._now + 60.0)
            return None
        if record.pull_key != image:
            record.pull_key, record.pull_error = image, ""
            record.pull.delay = 0.0
        until = record.pull.active_until(record.pull.at)
        if self._now < until:
            text = f'Back-off pulling image "{image}"'
            self._note("Normal", "BackOff", text, container)
            message = f"{text}: {record.pull_error}" if record.pull_error else text
            self._no_image(container, record, "ImagePullBackOff", message, until)
            return None
        return (yield from self._pull(container, record))

    def _pull(self, container: Container, record: Record) -> Generator[float, None, Image | None]:
        image = container.image
        self._note("Normal", "Pulling", f'Pulling image "{image}"', container)
        found = self._find(container)
        began = self._now
        pull = self.node.images.begin(found, began)
        yield pull.ends
        if isinstance(found, Refusal):
            self._note("Warning", "Failed", f'Failed to pull image "{image}": {found.text}', container)
            record.pull.grow(self._now, self._now)
            record.pull_error = f"ErrImagePull: {found.text}"
            self._no_image(container, record, "ErrImagePull", found.text, self._now + SETTLE_SECONDS)
            return None
        self.new_images = self.node.images.arrived(found) or self.new_images
        took, waited = _duration(pull.ends - pull.begins), _duration(pull.ends - began)
        times = f"in {took} ({waited} including waiting)"
        text = f'Successfully pulled image "{image}" {times}. Image size: {found.size} bytes.'
        self._note("Normal", "Pulled", text, container)
        return found

    def _find(self, container: Container) -> Image | Refusal:
        error = self._knobs.text("pull-error", container.name)
        if error and error.lower() != "false":
            return Refusal(unavailable(container.image, "" if error.lower() in ("true", "yes") else error))
        tables = [self._knobs.images(), *self.node.image_tables()]
        return find(container.image, tables, self._knobs.size("image-size", container.name))

    def _no_image(self, container: Container, record: Record, reason: str, message: str, again: float) -> None:
        self._note("Warning", "Failed", f"Error: {reason}", container)
        record.trouble = Trouble(reason, message)
        self._retry_at = min(self._retry_at, again)

    def _post_start(self, container: Container, record: Record, instance: Instance) -> Generator[float, None, bool]:
        """The hook holds up everything else in the pod, and its failure ends the container."""
        if container.lifecycle is None or container.lifecycle.post_start is None:
            return True
        seconds, code = handler_ending(container.lifecycle.post_start)
        if seconds:
            yield self._now + seconds
        if code == 0:
            return True
        self._note("Warning", "FailedPostStartHook", "PostStartHook failed", container)
        yield from self._stop(Stop(container, "FailedPostStartHook", None))
        text = self._failed_hook(container, container.lifecycle.post_start, code)
        record.trouble = Trouble("PostStartHookError", text)
        self._retry_at = min(self._retry_at, self._now + SETTLE_SECONDS)
        return False

    def _failed_hook(self, container: Container, hook: Handler, code: int) -> str:
        if hook.exec is None:
            return "PostStartHook failed"
        command, output = " ".join(hook.exec.command), json.dumps(hook_output(hook.exec), ensure_ascii=False)
        return (
            f'Exec lifecycle hook ([{command}]) for Container "{container.name}" in Pod "{full_name(self.pod)}" failed'
            f" - error: command '{command}' exited with {code}: , message: {output}"
        )

    # Probes

    def _probe(self) -> bool:
        """Every probe that is due. Returns whether one came to another result."""
        if self._terminating or self.finished:
            return False
        changed = False
        for container, instance in self._running():
            for worker in instance.workers():
                if worker.next_at > self._now or (worker.kind != STARTUP and not instance.has_started):
                    continue
                found = self._health(container, instance, worker)
                if not found.well:
                    text = f"{worker.kind} probe failed: {found.says}"
                    self._note("Warning", "Unhealthy", text, container)
                if worker.tick(found, self._now):
                    changed = True
                    if worker.kind != READINESS:
                        self._dirty = True
        return changed

    def _health(self, container: Container, instance: Instance, worker: ProbeWorker) -> Health:
        return health(
            worker.kind,
            container,
            worker.probe,
            self._knobs,
            instance.started_at,
            instance.answers_at,
            self.address,
            self._now,
        )

    # What is told

    def _show(self) -> None:
        """Take a new look at the containers. Between two looks the status tells only of readiness."""
        spec = self.pod.spec
        self._shown_sandbox, self._shown_address = self.sandbox, self.address
        self._shown = {
            "containerStatuses": reporting.container_statuses(self.pod, self.records, spec.containers, False)
        }
        if spec.init_containers:
            statuses = reporting.container_statuses(self.pod, self.records, spec.init_containers, True)
            self._shown["initContainerStatuses"] = statuses
        if spec.ephemeral_containers:
            statuses = reporting.container_statuses(self.pod, self.records, spec.ephemeral_containers, False)
            self._shown["ephemeralContainerStatuses"] = statuses

    def _with_readiness(self, part: str, statuses: Sequence[Json]) -> list[Json]:
        result = []
        for status in statuses:
            container = next(item for item in self._every() if item.name == status["name"])
            started, ready = self._readiness(container, status, part == "initContainerStatuses")
            if (status["started"], status["ready"]) != (started, ready):
                status = {**status, "started": started, "ready": ready}
            result.append(status)
        return result

    def _readiness(self, container: Container, status: Json, init: bool) -> tuple[bool, bool]:
        state = status["state"]
        if init and not container.is_sidecar:
            return "running" in state, "terminated" in state and state["terminated"]["exitCode"] == 0
        instance = self._record(container).running
        if instance is None or "running" not in state or status.get("containerID") != f"containerd://{instance.id}":
            # It has ended, although the status does not say so yet: what answered a probe does not any more.
            gone = "running" in state and container.readiness_probe is None
            return gone, gone
        if not instance.has_started:
            return False, False
        told = self._now >= instance.answers_at and not self._knobs.flag("never-ready", container.name)
        return True, told and (instance.readiness is None or instance.readiness.result is True)

    def _patch(self) -> Json | None:
        if not self._shown or (self._terminating and not self.finished and self._now < self._quiet_until):
            return None
        if self.finished and self._reported.get("phase") in TERMINAL:
            # Its last word is spoken: whatever else is written into it is none of the kubelet's business.
            return None
        wanted = self._status()
        shown = {item["name"]: item for key in self._shown for item in wanted.get(key, ())}
        facts = reporting.conditions(self.pod, shown, wanted["phase"], sandbox=self._shown_sandbox)
        facts = [*self._resize.conditions(), *facts]
        changed = reporting.difference(self._reported, wanted)
        if wanted["phase"] == self.pod.status.phase and not (self.finished and len(changed) > 1):
            changed.pop("phase", None)
        patches = reporting.condition_patches(self.pod, facts, self._now)
        if patches:
            changed["conditions"] = patches
        return changed or None

    def _status(self) -> Json:
        parts = {key: self._with_readiness(key, statuses) for key, statuses in self._shown.items()}
        shown = {status["name"]: status for statuses in parts.values() for status in statuses}
        stage = reporting.phase(self.pod, shown, over=self.finished)
        if self.finished:
            stage, parts = self._last_stage(stage, parts)
        elif stage in TERMINAL:
            # Not before the last container has stopped.
            stage = self.pod.status.phase or "Pending"
        if self.pod.status.phase in TERMINAL:
            stage = self.pod.status.phase  # no pod leaves a terminal phase
        status: Json = {"phase": stage, **parts}
        if self._shown_generation:
            status["observedGeneration"] = self._shown_generation
        status["startTime"] = reporting.moment(self.start_time)
        status["hostIP"] = self.node.spec.address
        status["hostIPs"] = [{"ip": self.node.spec.address}]
        if self._shown_address:
            status["podIP"] = self._shown_address
            status["podIPs"] = [{"ip": self._shown_address}]
        status["qosClass"] = self._reported.get("qosClass") or reporting.quality_of_service(self.pod)
        if self._ending[0] and stage == "Failed":
            status["reason"], status["message"] = self._ending
        return status

    def _last_stage(self, stage: str, parts: dict[str, list[Json]]) -> tuple[str, dict[str, list[Json]]]:
        initialized = all(
            item["ready"] or item["lastState"] or "terminated" in item["state"]
            for item in parts.get("initContainerStatuses", ())
        )
        if initialized:
            lost = reporting.with_lost_containers(parts["containerStatuses"])
            parts = {**parts, "containerStatuses": lost}
        if self._ending[0] or stage not in TERMINAL:
            stage = "Failed"
        return stage, parts

    # Going on with what runs already

    def _take_over(self, now: float) -> None:
        pod = self.pod
        self.records = takeover.records(pod, now)
        self.address = pod.status.pod_ip
        self.sandbox = bool(self.address)
        if pod.status.start_time is not None:
            self.start_time = pod.status.start_time.timestamp()
        for container, instance in self._running():
            self._plan_end(container, instance)
            instance.answers_at = self._answers_at(instance, container)
            self._add_probes(container, instance)
            takeover.settle_probes(pod, container, instance)
        if pod.status.phase in TERMINAL:
            self.finished = self._terminating = True
            self.sandbox = False
        self._show()
        self._shown_generation = pod.status.observed_generation
        # The status is there already: only what changes from now on has to be written.
        self._reported = self._status()


def record_attempts(record: Record) -> int:
    return record.current.attempt + 1 if record.current is not None else 0


def _duration(seconds: float) -> str:
    return format_go_duration(round(seconds, 3))
