"""Logs of simulated containers: made when they are read, from what the container's command would have printed.

Implements the local server's `LogSource`. Nothing is kept but the commands, so logs cost no memory; what a container
printed before its last restart can be read as well, with `previous`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Protocol

from kruise.local.apicore import errors
from kruise.local.nodes.containers import Instance, Record
from kruise.local.nodes.lifecycle import PodMachine
from kruise.machinery.clock import Clock
from kruise.machinery.times import format_micro_time

FOLLOW_SECONDS = 0.5

Line = tuple[float, str]


class Machines(Protocol):
    clock: Clock

    def machine(self, namespace: str, name: str) -> PodMachine | None: ...


class ContainerLogs:
    def __init__(self, model: Machines) -> None:
        self._model = model

    async def read(
        self,
        namespace: str,
        pod: str,
        container: str,
        *,
        previous: bool = False,
        tail: int | None = None,
        since: datetime | None = None,
        limit: int | None = None,
        timestamps: bool = False,
    ) -> bytes:
        instance = self._instance(namespace, pod, container, previous)
        lines = self._lines(instance, since)
        return _text(lines if tail is None else _last(lines, tail), timestamps, limit)

    async def follow(
        self,
        namespace: str,
        pod: str,
        container: str,
        *,
        previous: bool = False,
        tail: int | None = None,
        since: datetime | None = None,
        limit: int | None = None,
        timestamps: bool = False,
    ) -> AsyncIterator[bytes]:
        instance = self._instance(namespace, pod, container, previous)
        lines = self._lines(instance, since)
        seen = max((moment for moment, _ in lines), default=instance.started_at - 1.0)
        count = sum(moment == seen for moment, _ in lines)
        rest = limit
        piece = _text(lines if tail is None else _last(lines, tail), timestamps, rest)
        while True:
            over = not instance.running
            if piece:
                yield piece
            if rest is not None:
                rest -= len(piece)
            if over or rest == 0:
                return
            await asyncio.sleep(FOLLOW_SECONDS)
            fresh = [line for line in self._lines(instance, since) if line[0] >= seen]
            new = [line for line in fresh if line[0] > seen]
            # Lines of one moment come in their order: those that were shown are the first of them.
            new = [line for line in fresh if line[0] == seen][count:] + new
            if new:
                seen = new[-1][0]
                count = sum(moment == seen for moment, _ in fresh)
            piece = _text(new, timestamps, rest)

    def _lines(self, instance: Instance, since: datetime | None) -> list[Line]:
        end = instance.finished_at if instance.finished_at is not None else self._model.clock.now().timestamp()
        began = instance.started_at
        lines = [(began + at, text) for at, text in instance.program.output(max(0.0, end - began))]
        return lines if since is None else [line for line in lines if line[0] >= since.timestamp()]

    def _instance(self, namespace: str, pod: str, container: str, previous: bool) -> Instance:
        machine = self._model.machine(namespace, pod)
        record = machine.records.get(container, Record()) if machine is not None else Record()
        if previous:
            last = record.previous if record.running is not None or record.previous is not None else record.exited
            if record.current is not None and not record.current.running and record.trouble is not None:
                last = record.current  # it waits to be started again: the one before is the one that has ended
            if last is None:
                raise errors.bad_request(f'previous terminated container "{container}" in pod "{pod}" not found')
            return last
        if record.current is None:
            reason = record.trouble.reason if record.trouble is not None else "ContainerCreating"
            if machine is not None and record.trouble is None and machine.pod.spec.init_containers:
                reason = "PodInitializing"
            waiting = "trying and failing to pull image" if "Image" in reason else f"waiting to start: {reason}"
            raise errors.bad_request(f'container "{container}" in pod "{pod}" is {waiting}')
        return record.current


def _last(lines: list[Line], count: int) -> list[Line]:
    return lines[-count:] if count else []


def _text(lines: list[Line], timestamps: bool, limit: int | None) -> bytes:
    shown = [f"{_stamp(moment)} {text}\n" if timestamps else f"{text}\n" for moment, text in lines]
    data = "".join(shown).encode()
    return data if limit is None else data[:limit]


def _stamp(moment: float) -> str:
    # Nanoseconds, as container runtimes write them.
    return format_micro_time(datetime.fromtimestamp(moment, UTC)).removesuffix("Z") + "000Z"
