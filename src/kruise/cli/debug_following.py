"""Following the containers of `kruise debug` until they run or have ended."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterable, Sequence

import click

from kruise.api.apps.ephemeraljob import EPHEMERAL_JOBS, EphemeralJob
from kruise.api.native.pod import PODS, is_active
from kruise.cli.session import Session
from kruise.machinery.client.errors import NotFoundError
from kruise.machinery.documents import Json
from kruise.machinery.wording import namespace_flag, plural
from kruise.workloads.ephemeraljob.pods import OVER, Seen, State, obstacle, seen
from kruise.workloads.ephemeraljob.status import DEADLINE_EXCEEDED

FAILED, NOT_IN_TIME = 1, 3
_EVERY = 0.3
_SILENCE = 10.0
"""Seconds without any container after which it is told where to look."""
_FOR_GOOD = ("ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
"""An image that cannot be had is tried again and again, but nobody should wait for it here."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """The job that was made."""

    name: str
    uid: str
    container: Json
    at_once: int
    """So many shells run at a time; 0: the containers are no shells, and end."""


class Follower:
    """Tells of each pod once what has become of its container."""

    def __init__(self, session: Session, selector: str, *, replicas: int | None, attach: bool) -> None:
        """`replicas`: so many pods are to get it; None: all."""
        self._session = session
        self._selector = selector
        self._replicas = replicas
        self._attach = attach
        self._told: dict[str, str] = {}
        self._there: dict[str, str] = {}
        """The pods that were waited for at the last look: names by uid."""
        self._has_failed = False
        self._flags = namespace_flag(session.namespace)

    async def run(self, job: Json, seconds: float) -> int:
        """`seconds`: at most so long; 0: as long as it takes."""
        spec, name = job["spec"], str(job["metadata"]["name"])
        container = spec["template"]["ephemeralContainers"][0]
        wanted = _Wanted(
            name=name,
            uid=str(job["metadata"]["uid"]),
            container=container,
            at_once=0 if "command" in container else spec["parallelism"],
        )
        why = f"see kruise why ejob/{name}{self._flags}"
        clock = self._session.clock
        begin = clock.monotonic()
        is_silence_told = False
        while True:
            # The job first: of one that has ended, the pods show all that there is to see.
            now = await self._job(wanted)
            pods = await self._pods(wanted)
            self._tell_of(pods)
            if (code := self._result(pods, wanted, now)) is not None:
                return code
            if not is_silence_told and clock.monotonic() - begin > _SILENCE and not any(one.is_served for one in pods):
                is_silence_told = True
                click.echo(f"no pod has got a container yet: {why}", err=True)
            if seconds and clock.monotonic() > begin + seconds:
                click.echo(f"not all containers got there in time: {why}", err=True)
                return NOT_IN_TIME
            await asyncio.sleep(_EVERY)

    async def _job(self, wanted: _Wanted) -> EphemeralJob | None:
        """None: it is not there any more."""
        try:
            found = await self._session.client.get(EPHEMERAL_JOBS, wanted.name, self._session.namespace)
        except NotFoundError:
            return None
        is_same = found.metadata.uid == wanted.uid and found.metadata.deletion_timestamp is None
        return found if is_same else None

    async def _pods(self, wanted: _Wanted) -> list[Seen]:
        """Those that have the container or can get it, as many as are wanted. Some come, and some go."""
        listed = await self._session.client.list(PODS, self._session.namespace, labels=self._selector)
        found = [seen(pod, wanted.uid) for pod in listed.items if is_active(pod)]
        served = [one for one in found if one.is_served]
        free = [one for one in found if not one.is_served and obstacle(one.pod, [wanted.container]) is None]
        return [*served, *free][: self._replicas]

    def _result(self, pods: Sequence[Seen], wanted: _Wanted, job: EphemeralJob | None) -> int | None:
        """None: it goes on."""
        if any(_cannot_start(one) for one in pods):
            return FAILED
        if not pods:
            click.echo("no pod is left that could get the container", err=True)
            return FAILED
        left = sum(one.state not in OVER for one in pods)
        running = sum(one.state is State.RUNNING for one in pods)
        if running < min(left, wanted.at_once) if wanted.at_once else left > 0:
            return self._end_without(job, left, running)
        if running < left and wanted.at_once:
            more = plural(left - running, "more pod", "gets its shell", "get their shells")
            click.echo(f"{more} when one has ended (--parallelism {wanted.at_once})")
        return FAILED if self._has_failed else 0

    def _end_without(self, job: EphemeralJob | None, left: int, running: int) -> int | None:
        """Pods are left, and the job is over: nobody serves them any more."""
        if job is not None and job.status.completion_time is None:
            return None
        end = "was deleted" if job is None else f"has ended: {_end_of(job)}"
        click.echo(f"the job {end}{_left(left - running, running)}", err=True)
        return FAILED

    def _tell_of(self, pods: Iterable[Seen]) -> None:
        there = {one.pod.metadata.uid: one.name for one in pods}
        for uid, name in self._there.items():
            if uid not in there:
                click.echo(f"pod/{name}: is gone, and nobody waits for it any more")
        self._there = there
        for one in pods:
            self._has_failed |= one.state is State.FAILED
            words = self._words(one) if one.is_served else ""
            if words and self._told.get(one.pod.metadata.uid) != words:
                self._told[one.pod.metadata.uid] = words
                click.echo(f"pod/{one.name}: {words}")

    def _words(self, one: Seen) -> str:
        name = one.own[0]
        if (stuck := one.stuck) is not None and stuck.state.waiting is not None:
            waiting = stuck.state.waiting
            return f"container {name} cannot start: {waiting.reason}: {waiting.message}"
        if one.state is State.RUNNING:
            if self._attach:
                return f"runs; attach: kubectl attach -it {one.name} -c {name}{self._flags}"
            return "runs"
        if one.state is State.SUCCEEDED:
            return f"ended well; output: kubectl logs {one.name} -c {name}{self._flags}"
        if one.state is State.FAILED:
            ended = next((status.state.terminated for status in one.statuses if status.state.terminated), None)
            code = f" with exit code {ended.exit_code}" if ended is not None else ""
            return f"failed{code}; output: kubectl logs {one.name} -c {name}{self._flags}"
        return ""


def _end_of(job: EphemeralJob) -> str:
    late = any(one.reason == DEADLINE_EXCEEDED for one in job.status.conditions)
    return f"{job.status.phase}, since its deadline is over" if late else job.status.phase


def _cannot_start(one: Seen) -> bool:
    waiting = one.stuck.state.waiting if one.stuck is not None else None
    return waiting is not None and waiting.reason in _FOR_GOOD


def _left(unserved: int, running: int) -> str:
    """Nobody can stop a container that was added."""
    told = f"; {plural(unserved, 'pod', 'was', 'were')} not served" if unserved else ""
    return f"{told}; in {plural(running, 'pod')} the container runs on" if running else told
