"""The container runtime of a simulated node, as the node daemon speaks to one, and the network of the node.

It works beside the kubelet: it shows the containers that the pods' machines have, and stops them; the kubelet learns of
it when they have ended. Calls take as long as on a real node, on whatever clock the loop has.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from urllib.parse import urlsplit

from kruise.api.core.images import reference_problem
from kruise.daemon import runtime as cri
from kruise.daemon.runtime import CallError, ContainerState
from kruise.inplace.hashes import plain_hash
from kruise.local.nodes import images
from kruise.local.nodes.commands import FOREVER, hook_ending, hook_output
from kruise.local.nodes.containers import Instance
from kruise.local.nodes.lifecycle import PodMachine
from kruise.local.nodes.node import SimulatedNode
from kruise.local.nodes.pods import Container, ExecAction, Handler
from kruise.machinery.clock import Clock
from kruise.machinery.codec import encode, evolve

RUNTIME = "containerd"
STOP_CHECK_SECONDS = 0.5
NANO = 1_000_000_000


class SimulatedRuntime:
    """Implements `kruise.daemon.runtime.Runtime`. `wake` has the kubelet look at a pod by its uid; `pulled` tells that
    an image has come."""

    name = RUNTIME

    def __init__(
        self, node: SimulatedNode, *, clock: Clock, wake: Callable[[str], None], pulled: Callable[[SimulatedNode], None]
    ) -> None:
        self._node = node
        self._clock = clock
        self._wake = wake
        self._pulled = pulled

    def _now(self) -> float:
        return self._clock.now().timestamp()

    # Containers

    async def list_containers(self, *, pod_uid: str = "", container_id: str = "") -> Sequence[cri.Container]:
        if pod_uid:
            machine = self._node.machines.get(pod_uid)
            found = list(self._of(machine)) if machine is not None else []
        else:
            found = list(self._every())
        return [
            self._shown(machine, container, instance, cri.Container)
            for machine, container, instance in found
            if container_id in ("", instance.id)
        ]

    async def container_status(self, container_id: str, *, verbose: bool = False) -> cri.ContainerStatus:
        machine, container, instance = self._find(container_id)
        ended = self._ended_at(instance)
        shown = self._shown(machine, container, instance, cri.ContainerStatus)
        assert isinstance(shown, cri.ContainerStatus)
        return evolve(
            shown,
            started_at=_nano(instance.started_at),
            finished_at=_nano(ended) if ended is not None else 0,
            exit_code=instance.exit_code if not instance.running else instance.ends_with if ended is not None else 0,
            reason=instance.reason,
            message=instance.message,
            environment=dict(instance.environment) if verbose else None,
        )

    def _every(self) -> Iterator[tuple[PodMachine, Container, Instance]]:
        for machine in self._node.machines.values():
            yield from self._of(machine)

    def _of(self, machine: PodMachine) -> Iterator[tuple[PodMachine, Container, Instance]]:
        spec = machine.pod.spec
        for container in (*spec.init_containers, *spec.containers, *spec.ephemeral_containers):
            record = machine.records.get(container.name)
            for instance in (record.current, record.previous) if record is not None else ():
                if instance is not None:
                    yield machine, container, instance

    def _find(self, container_id: str) -> tuple[PodMachine, Container, Instance]:
        for found in self._every():
            if found[2].id == container_id:
                return found
        raise CallError("NotFound", f'an error occurred when try to find container "{container_id}": not found')

    def _ended_at(self, instance: Instance) -> float | None:
        """The kubelet may not have noticed yet."""
        if instance.finished_at is not None:
            return instance.finished_at
        return instance.ends_at if instance.ends_at <= self._now() else None

    def _shown(
        self, machine: PodMachine, container: Container, instance: Instance, kind: type[cri.Container]
    ) -> cri.Container:
        pod = machine.pod
        ended = self._ended_at(instance) is not None
        annotations = {
            cri.CONTAINER_HASH: f"{plain_hash(container.name, instance.asked):x}",
            cri.RESTART_COUNT: str(instance.attempt),
        }
        grace = pod.spec.termination_grace_period_seconds
        if grace is not None:
            annotations[cri.TERMINATION_GRACE] = str(grace)
        if pod.metadata.deletion_grace_period_seconds is not None:
            annotations[cri.DELETION_GRACE] = str(pod.metadata.deletion_grace_period_seconds)
        hook = container.lifecycle.pre_stop if container.lifecycle is not None else None
        if hook is not None:
            annotations[cri.PRE_STOP_HANDLER] = _handler(hook)
        if container.ports:
            annotations[cri.CONTAINER_PORTS] = encode(container.ports).decode()
        return kind(
            id=instance.id,
            name=container.name,
            attempt=instance.attempt,
            state=ContainerState.EXITED if ended else ContainerState.RUNNING,
            created_at=_nano(instance.started_at),
            image=instance.image,
            image_ref=instance.image_id,
            labels={
                cri.POD_NAME: pod.metadata.name,
                cri.POD_NAMESPACE: pod.metadata.namespace,
                cri.POD_UID: pod.metadata.uid,
                cri.CONTAINER_NAME: container.name,
            },
            annotations=annotations,
        )

    async def stop_container(self, container_id: str, grace: int) -> None:
        machine, container, instance = self._find(container_id)
        error = machine.knobs.text("stop-error", container.name)
        if error:
            raise CallError("Unknown", error if error.lower() not in ("true", "yes") else "the container does not stop")
        if machine.stop_container(container.name, container_id, self._now(), float(grace)):
            self._wake(machine.pod.metadata.uid)
        await self._until_ended(instance)
        self._wake(machine.pod.metadata.uid)

    async def _until_ended(self, instance: Instance) -> None:
        # Somebody else may make the end come sooner.
        while instance.running and (left := instance.ends_at - self._now()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(min(left, STOP_CHECK_SECONDS))

    async def exec_sync(self, container_id: str, command: Sequence[str], seconds: float = 0) -> cri.ExecResult:
        machine, container, instance = self._find(container_id)
        if self._ended_at(instance) is not None:
            raise CallError("Unknown", f'failed to exec in container: container "{container_id}" is not running')
        if tuple(command) == ("env",):
            text = "".join(f"{name}={value}\n" for name, value in instance.environment)
            return cri.ExecResult(stdout=text.encode())
        if told := machine.knobs.text("exec", container.name):
            return _told_result(told)
        action = ExecAction(command=tuple(command))
        takes, code = hook_ending(action)
        if seconds and takes > seconds:
            await asyncio.sleep(seconds)
            raise CallError("DeadlineExceeded", f"failed to exec in container: timeout {seconds:g}s exceeded")
        if takes == FOREVER:
            await asyncio.get_running_loop().create_future()
        await asyncio.sleep(takes)
        output = hook_output(action).encode()
        return cri.ExecResult(exit_code=code, stdout=output, stderr=output if code else b"")

    # Images

    async def list_images(self) -> Sequence[cri.Image]:
        return [
            cri.Image(id=_digest(item), repo_tags=_tags(item), repo_digests=(item.id,), size=item.size)
            for item in self._node.images.present
        ]

    async def pull_image(self, reference: str, *, sandbox: cri.SandboxConfig, auth: cri.Auth | None = None) -> str:
        if reason := reference_problem(reference):
            quoted = json.dumps(reference, ensure_ascii=False)
            raise CallError("Unknown", f"failed to parse image reference {quoted}: {reason}")  # containerd's words
        found = images.find(reference, self._node.image_tables())
        pull = self._node.images.begin(found, self._now())
        await asyncio.sleep(max(0.0, pull.ends - self._now()))
        if isinstance(found, images.Refusal):
            code, separator, text = found.text.removeprefix("rpc error: code = ").partition(" desc = ")
            raise CallError(code, text) if separator else CallError("Unknown", found.text)
        if self._node.images.arrived(found):
            self._pulled(self._node)
        return _digest(found)


class SimulatedNetwork:
    """Implements `kruise.daemon.runtime.Network`: pods answer at their addresses as their annotations say."""

    def __init__(self, node: SimulatedNode, *, clock: Clock) -> None:
        self._node = node
        self._clock = clock

    async def connect(self, host: str, port: int, seconds: float) -> None:
        await asyncio.sleep(0.001)
        if not self._listening(host, port):
            raise ConnectionRefusedError(f"dial tcp {host}:{port}: connect: connection refused")

    async def get(self, url: str, headers: Sequence[tuple[str, str]], seconds: float) -> cri.HttpAnswer:
        await asyncio.sleep(0.001)
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        answers = self._listening(host, port)
        if not answers:
            raise ConnectionRefusedError(f'Get "{url}": dial tcp {host}:{port}: connect: connection refused')
        return max(answers, key=lambda answer: answer.status)

    def _listening(self, host: str, port: int) -> list[cri.HttpAnswer]:
        """What the containers say that listen there: the one that declares the port, else all of the pod."""
        now = self._clock.now().timestamp()
        for machine in self._node.machines.values():
            if machine.address != host or machine.finished:
                continue
            running = [
                (container, record.running)
                for container in machine.pod.spec.containers
                if (record := machine.records.get(container.name)) is not None and record.running is not None
            ]
            declaring = [pair for pair in running if any(item.container_port == port for item in pair[0].ports)]
            return [
                _answer(machine, container, instance, now)
                for container, instance in declaring or running
                if instance.answers_at <= now < instance.ends_at
                and str(port) not in machine.knobs.text("closed-ports", container.name).split()
            ]
        return []


def _answer(machine: PodMachine, container: Container, instance: Instance, now: float) -> cri.HttpAnswer:
    if _is_unwell(machine, container, instance, now):
        return cri.HttpAnswer(status=503, body=b"unhealthy")
    code, _, words = machine.knobs.text("http", container.name).strip().partition(" ")
    if not (code.isascii() and code.isdecimal()):
        return cri.HttpAnswer(status=200, body=b"ok")
    return cri.HttpAnswer(status=int(code), body=f"{words}\n".encode() if words else b"")


def _is_unwell(machine: PodMachine, container: Container, instance: Instance, now: float) -> bool:
    sick = machine.knobs.seconds("unhealthy-after", container.name)
    never = machine.knobs.flag("never-ready", container.name)
    return never or (sick is not None and now >= instance.started_at + sick)


class DaemonNode:
    """Implements `kruise.daemon.runtime.Node`."""

    def __init__(self, node: SimulatedNode, runtime: SimulatedRuntime, network: SimulatedNetwork) -> None:
        self.simulated = node
        self.runtimes: Mapping[str, SimulatedRuntime] = {runtime.name: runtime}
        self.network = network

    @property
    def name(self) -> str:
        return self.simulated.spec.name


def _handler(hook: Handler) -> str:
    return json.dumps(json.loads(encode(hook)), separators=(",", ":"))


def _told_result(text: str) -> cri.ExecResult:
    """`3 it is busy`: the exit code, and what is printed."""
    code, _, words = text.strip().partition(" ")
    number = int(code) if code.isascii() and code.isdecimal() else 1
    output = f"{words}\n".encode() if words else b""
    return cri.ExecResult(exit_code=number, stdout=output, stderr=output)


def _digest(image: images.Image) -> str:
    return image.id.partition("@")[2] or image.id


def _tags(image: images.Image) -> tuple[str, ...]:
    return () if "@" in image.name else (image.name,)


def _nano(seconds: float) -> int:
    return round(seconds * NANO)
