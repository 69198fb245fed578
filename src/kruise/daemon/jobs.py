"""The small shell around a part: it looks at the node for a pass, and carries out the jobs of plans in the background.

Nothing is stored on disk. A daemon that starts again knows no jobs: what they have done is seen on the node.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kruise.api.meta import Key
from kruise.daemon.parts import Part, Scene
from kruise.daemon.runtime import CallError
from kruise.machinery.clock import Clock
from kruise.machinery.controller import OutsideError
from kruise.machinery.plan import Job, JobState, Plan

log = logging.getLogger(__name__)

GIVEN_UP = "given up"


@dataclasses.dataclass(slots=True, eq=False)
class _Running:
    job: Job
    state: JobState
    task: asyncio.Task[None] | None = None
    wanted: bool = True
    """Whether somebody will ask how it ended."""


class Jobs:
    """Implements `kruise.machinery.controller.Outside` for one part. `wake` has a key looked at again."""

    def __init__(self, part: Part[Any], scene: Scene, *, clock: Clock, wake: Callable[[Key, str], None]) -> None:
        self._part = part
        self._scene = scene
        self._clock = clock
        self._wake = wake
        self._jobs: dict[Key, dict[str, _Running]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def look(self, key: Key, /) -> Any:
        try:
            return await self._part.look(self._scene, key)
        except (CallError, OSError) as error:
            raise OutsideError(str(error) or type(error).__name__) from error

    def jobs(self, key: Key, /) -> Mapping[str, JobState]:
        return {name: running.state for name, running in self._jobs.get(key, {}).items() if running.wanted}

    def carry_out(self, key: Key, plan: Plan, /) -> None:
        self.drop(key, plan.drops)
        for job in plan.jobs:
            self._begin(key, job)

    def drop(self, key: Key, names: Iterable[str], /) -> None:
        for name in names:
            self._drop(key, name)

    def forget(self, key: Key, /) -> None:
        self.drop(key, tuple(self._jobs.get(key, ())))

    def _begin(self, key: Key, job: Job) -> None:
        jobs = self._jobs.setdefault(key, {})
        if job.name in jobs:
            jobs[job.name].wanted = True
            return
        running = jobs[job.name] = _Running(job, JobState(call=job.call, began=self._clock.now()))
        running.task = asyncio.create_task(self._run(key, running), name=f"{self._part.name} {key} {job.name}")
        self._tasks.add(running.task)
        running.task.add_done_callback(self._tasks.discard)

    def _drop(self, key: Key, name: str) -> None:
        jobs = self._jobs.get(key, {})
        running = jobs.get(name)
        if running is None:
            return
        if running.job.to_the_end and running.state.ended is None:
            running.wanted = False
            return
        del jobs[name]
        if not jobs:
            self._jobs.pop(key, None)
        if running.task is not None:
            running.task.cancel()

    async def _run(self, key: Key, running: _Running) -> None:
        result, error, timed_out = None, "", False
        limit = asyncio.timeout(running.job.seconds)
        try:
            async with limit:
                result = await self._perform(running.job)
        except TimeoutError as raised:
            timed_out = limit.expired()
            error = str(raised) or (f"not done within {running.job.seconds:g} s" if timed_out else "timed out")
        except (CallError, OSError) as raised:
            error = str(raised) or type(raised).__name__
        except Exception as raised:
            # A fault of ours fails this job, and no other.
            error = f"{type(raised).__name__}: {raised}"
            log.exception("job failed by an error of the daemon", extra={"part": self._part.name, "job": str(key)})
        running.state = dataclasses.replace(
            running.state, ended=self._clock.now(), result=result, error=error, timed_out=timed_out
        )
        running.task = None
        if running.wanted:
            self._wake(key, f"{running.job.name} has ended")
        else:
            self._drop(key, running.job.name)

    async def _perform(self, job: Job) -> Any:
        if self._part.perform is None:
            raise TypeError(f"{self._part.name} plans jobs and cannot perform them")
        return await self._part.perform(self._scene, job.call)

    # Ends

    def abandon(self, lives: Callable[[Key], bool]) -> None:
        """A node has died: its jobs die with it. `lives` tells whether the node of a key is still there."""
        for key in [key for key in self._jobs if not lives(key)]:
            for running in self._jobs.pop(key).values():
                if running.task is not None:
                    running.task.cancel()

    async def stop(self, grace: float) -> None:
        """The daemon ends. What must be carried out to its end has `grace` seconds for it."""
        last = []
        for jobs in self._jobs.values():
            for running in jobs.values():
                if running.task is not None and running.job.to_the_end:
                    last.append(running.task)
                elif running.task is not None:
                    running.task.cancel()
        if last:
            await asyncio.wait(last, timeout=grace)
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
