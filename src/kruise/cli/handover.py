"""`kruise migrate` where the pods stay: the steps of `kruise.verbs.handover`, carried out."""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING

import click

from kruise.api.native.apps import CONTROLLER_REVISIONS
from kruise.api.native.pod import PODS
from kruise.cli import printing
from kruise.cli.flags import Writing
from kruise.cli.session import NotFinishedError, Session, selector_text
from kruise.faces.native import POD
from kruise.machinery.documents import Json, name_of, uid_of, value_at
from kruise.verbs import handover
from kruise.verbs.errors import VerbError
from kruise.verbs.handover import Act, Route, Seen, Step
from kruise.verbs.targets import Target

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_PAUSE = 1.0


async def hand_over(
    session: Session,
    route: Route,
    name: str,
    *,
    lossy: bool,
    gates: Mapping[str, bool],
    timeout_seconds: int,
    writing: Writing,
) -> None:
    """`gates` are the manager's."""
    work = _Handover(session, route, name, writing, functools.partial(handover.check, route, lossy=lossy, gates=gates))
    seen = await work.look()
    if seen.source is not None and not value_at(seen.source, ("metadata", "deletionTimestamp")):
        work.check(seen)
        # What the server would refuse is told before anything has changed.
        await work.try_out(seen.source)
    if writing.dry_run != "none":
        await work.preview(seen)
        return
    await work.run(seen, timeout_seconds=timeout_seconds)


class _Handover:
    def __init__(
        self, session: Session, route: Route, name: str, writing: Writing, check: Callable[[Seen], None]
    ) -> None:
        self.check = check
        """Whether the migration may begin."""
        self._session = session
        self._route = route
        self._source = Target(route.source, name)
        self._destination = Target(route.destination, name)
        self._writing = writing
        self._last_message = ""

    async def look(self) -> Seen:
        source, destination = await self._session.find(self._source), await self._session.find(self._destination)
        either = source or destination
        if either is None:
            either = await self._session.get(self._source)  # says what there is instead
        selector = selector_text(self._route.source, either)
        return Seen(
            source=source,
            destination=destination,
            pods=await self._session.items(PODS, selector=selector),
            revisions=await self._session.items(CONTROLLER_REVISIONS, selector=selector),
        )

    async def try_out(self, source: Json) -> Json:
        resource, trial = self._route.destination.resource, Writing(dry_run="server")
        await self._session.create(resource, handover.held(self._route, source), trial)
        return await self._session.create(resource, handover.manifest(self._route, source), trial)

    async def preview(self, seen: Seen) -> None:
        if seen.source is None:
            self._print_step(handover.next_step(self._route, seen))
            return
        made = handover.manifest(self._route, seen.source)
        if seen.destination is not None:
            made = handover.with_strategy(self._route, seen.source, seen.destination)
        elif self._writing.dry_run == "server":
            made = await self.try_out(seen.source)
        printing.report(self._route.destination, made, f"takes over from {self._source}", self._writing)

    async def run(self, seen: Seen, *, timeout_seconds: int) -> None:
        session, clock = self._session, self._session.clock
        deadline = clock.monotonic() + timeout_seconds if timeout_seconds >= 0 else None
        before = _running(seen)
        while (step := handover.next_step(self._route, seen)).act is not Act.DONE:
            self._print_step(step)
            await self._carry_out(step, seen)
            if deadline is not None and clock.monotonic() >= deadline:
                raise NotFinishedError(f"timed out after {timeout_seconds} s; the same command goes on from here")
            seen = await self.look()
            if step.act is Act.HOLD and seen.source is not None:
                await self._check_again(seen, seen.source)
        after = _running(seen)
        for pod in sorted(before.keys() - after.keys()):
            click.echo(f"pod {before[pod]} went meanwhile", err=True)
        if self._writing.output:
            printing.show(self._route.destination, await session.get(self._destination), self._writing)
        else:
            click.echo(step.message)

    async def _check_again(self, seen: Seen, source: Json) -> None:
        """A source that will not be let go must not keep the finalizer: nobody could delete it."""
        try:
            self.check(seen)
        except VerbError:
            await self._session.change(self._source, source, handover.without_finalizer, self._writing)
            raise

    async def _carry_out(self, step: Step, seen: Seen) -> None:
        session, route, source, made = self._session, self._route, seen.source, seen.destination
        if step.act is Act.WAIT:
            await asyncio.sleep(_PAUSE)
        elif step.act is Act.HOLD and source is not None:
            await session.change(self._source, source, handover.with_finalizer, self._writing)
        elif step.act is Act.LET_GO and source is not None:
            await session.delete(self._source, uid=uid_of(source), propagation="Orphan")
        elif step.act is Act.CREATE and source is not None:
            # Its controller must have heard that the pods are free, or it would make others beside them.
            await asyncio.sleep(_PAUSE)
            await session.create(route.destination.resource, handover.held(route, source), self._writing)
        elif step.act is Act.RELABEL:
            for pod in step.pods:
                await session.change(
                    Target(POD, name_of(pod)), pod, lambda one: handover.with_label(one, step.label), self._writing
                )
        elif step.act is Act.ROLL and source is not None and made is not None:
            strategy = lambda one: handover.with_strategy(route, source, one)  # noqa: E731
            await session.change(self._destination, made, strategy, self._writing)
        elif step.act is Act.DROP and source is not None:
            await session.change(self._source, source, handover.without_finalizer, self._writing)
        elif step.act is Act.UNMARK and made is not None:
            await session.change(self._destination, made, handover.without_mark, self._writing)

    def _print_step(self, step: Step) -> None:
        """Programs that read the object on the standard output are not disturbed."""
        if step.message != self._last_message and step.act is not Act.UNMARK:
            click.echo(step.message, err=bool(self._writing.output))
            self._last_message = step.message


def _running(seen: Seen) -> Mapping[str, str]:
    """Names of the pods by their uids, as far as they belong to one of both or to nobody."""
    return {uid_of(pod): name_of(pod) for pod in seen.pods}
