"""Controllers over a world: the manager's loop without a server, tasks or waiting.

Any number of controllers, of whatever kinds. Keys come from their own sources. A pass is the kind's own snapshot,
decide and conclude, and the world carries out what was decided. Nothing runs by itself: whoever has a `Loop` takes a
key (`take`), has it looked at (`run`), and moves time on to the next moment at which something is due (`advance`).

    while True:
        loop.settle()                  # everything that happens now
        if not loop.advance():         # time moves on; False: nothing is due any more
            break

For tests of promises, `run` lets somebody look at the decision before it is carried out, or change the world meanwhile
(the plan is stale then), hear of every single write, and kill the manager at any of them.
"""

from __future__ import annotations

import dataclasses
import hashlib
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from kruise.api.meta import Key, key_of
from kruise.api.resource import Resource
from kruise.machinery.plan import Action, Conclusion, Outcome, Outcomes, Plan, Result
from kruise.machinery.spec import ControllerSpec, Source, View
from kruise.model.world import World

_STALE_TRIES = 20
"""So many passes in a row whose writes did not fit are tried again at once. Where nobody else writes, a write that
never fits what it was decided about must not be tried for ever."""
_HAIR = timedelta(milliseconds=1)
"""Rounding must not wake anybody a moment too early, to look in vain."""

Decided = Callable[[Any, Plan], None]
Wrote = Callable[[Outcome], None]


class DeathError(Exception):
    """The manager dies in the middle of a pass, as it was to."""


@dataclasses.dataclass(slots=True, eq=False)
class Controller:
    """A kind's controller, and what it has to do."""

    spec: ControllerSpec[Any]
    queue: dict[Key, None] = dataclasses.field(default_factory=dict)
    later: dict[Key, None] = dataclasses.field(default_factory=dict)
    """Keys of which only their own status changed: looked at with the next reason, and at the end."""
    wakes: dict[Key, datetime] = dataclasses.field(default_factory=dict)
    plans: dict[Key, Plan] = dataclasses.field(default_factory=dict)
    """The last plan about each object."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One look at an object, and what came of it."""

    snapshot: Any
    plan: Plan
    outcomes: Outcomes = dataclasses.field(default_factory=Outcomes)
    conclusion: Conclusion = dataclasses.field(default_factory=Conclusion)
    died: bool = False
    """The manager died before the end; outcomes and conclusion are nobody's."""


class Loop:
    """`served`: kinds that the cluster has, of those that controllers can do without."""

    def __init__(
        self,
        world: World,
        specs: Iterable[ControllerSpec[Any]],
        *,
        gates: Mapping[str, bool],
        server_version: Any = None,
        seed: int = 0,
        served: Collection[Resource[Any]] = (),
    ) -> None:
        self._world = world
        self._gates = gates
        self._server_version = server_version
        self._seed = seed
        self._is_own_status = False
        self._stale = 0
        self.passes = 0
        self.writes = 0
        """Writes that the controllers tried."""
        self.told = 0
        """Versions of the world that only tell something: a controller wrote the status of its own object."""
        self.controllers = [Controller(spec) for spec in specs]
        for controller in self.controllers:
            world.is_decided_about(controller.spec.subject)
            for source in controller.spec.all_sources:
                if not source.optional or source.resource in served:
                    world.add(source.kind)
                else:
                    # Nobody serves it, but others may look for its objects: there are none.
                    world.store(source.resource).add_indexes(source.watched)

    def begin(self) -> None:
        """Hear of every change from now on; everything that is there is looked at."""
        for controller in self.controllers:
            for source in controller.spec.all_sources:
                self._world.store(source.resource).subscribe(self._handler(controller, source))

    def _handler(self, controller: Controller, source: Source[Any]) -> Callable[[Any, Any], None]:
        is_subject = source.resource == controller.spec.subject

        def on_change(old: Any, new: Any) -> None:
            waits = self._is_own_status and is_subject
            for key in source.keys(old, new, self._world):
                (controller.later if waits else controller.queue)[key] = None

        return on_change

    # In order of time

    def settle(self) -> None:
        """Everything that happens now: what the nodes do, then passes, then what the nodes make of that."""
        self._world.settle()
        while (found := self.take()) is not None:
            self.run(*found)
            self._world.settle()

    def advance(self) -> bool:
        """Move on to the next moment at which something is due. False: nothing is."""
        upcoming = self.upcoming
        if upcoming is None:
            return self.look_again()
        self._world.now = max(upcoming, self._world.now)
        self._wake()
        return True

    @property
    def upcoming(self) -> datetime | None:
        """When something is due next: a step of a pod, or a wish of a controller to look again."""
        moments = [moment for controller in self.controllers for moment in controller.wakes.values()]
        if self._world.next_moment is not None:
            moments.append(self._world.next_moment)
        return min(moments, default=None)

    def take(self) -> tuple[Controller, Key] | None:
        """What is to be looked at next."""
        for controller in self.controllers:
            if controller.queue:
                key = next(iter(controller.queue))
                del controller.queue[key]
                controller.later.pop(key, None)
                return controller, key
        return None

    def look_again(self) -> bool:
        """Enqueue what changed nothing but its own status. Whether there was any."""
        found = False
        for controller in self.controllers:
            found = found or bool(controller.later)
            controller.queue.update(controller.later)
            controller.later.clear()
        return found

    def _wake(self) -> None:
        for controller in self.controllers:
            for key in [key for key, moment in controller.wakes.items() if moment <= self._world.now]:
                del controller.wakes[key]
                controller.queue[key] = None

    # A pass

    def snapshot(self, controller: Controller, key: Key) -> Any:
        """What a pass would see now; None: there is nothing to look at."""
        self.passes += 1
        view = View(
            self._world,
            now=self._world.now,
            seed=_mixed(self._seed, self.passes),
            gates=self._gates,
            server_version=self._server_version,
            capacity=sys.maxsize,  # writes cost no time here
        )
        return controller.spec.snapshot(view, key)

    def run(
        self,
        controller: Controller,
        key: Key,
        *,
        decided: Decided | None = None,
        wrote: Wrote | None = None,
        die_at: int | None = None,
    ) -> Pass | None:
        """One pass; None: there is nothing to look at.

        `decided` is called after the decision and before the first write. Whatever it does to the world, the plan was
        made before. `wrote` hears of each write, the status among them. `die_at`: the write, counted from 0, that is
        not done any more.
        """
        spec = controller.spec
        controller.wakes.pop(key, None)
        snapshot = self.snapshot(controller, key)
        if snapshot is None:
            controller.plans.pop(key, None)
            return None
        plan = controller.plans[key] = spec.decide(snapshot)
        if decided is not None:
            decided(snapshot, plan)
        last = None if die_at is None else self.writes + die_at

        def write(action: Action) -> Outcome:
            if self.writes == last:
                raise DeathError
            self.writes += 1
            outcome = self._world.write(action)
            if wrote is not None:
                wrote(outcome)
            return outcome

        try:
            outcomes = self._world.carry_out(plan, write)
            conclusion = spec.conclude(snapshot, plan, outcomes)
            self._write_status(conclusion, write)
        except DeathError:
            self._restart()
            return Pass(snapshot=snapshot, plan=plan, died=True)
        self._note_wakes(controller, key, plan, conclusion)
        self._decide_again(controller, key, outcomes)
        return Pass(snapshot=snapshot, plan=plan, outcomes=outcomes, conclusion=conclusion)

    def _write_status(self, conclusion: Conclusion, write: Callable[[Action], Outcome]) -> None:
        if conclusion.status is None:
            return
        self._is_own_status = True
        before = self._world.version
        try:
            write(conclusion.status)
        finally:
            self._is_own_status = False
            self.told += self._world.version - before

    def _note_wakes(self, controller: Controller, key: Key, plan: Plan, conclusion: Conclusion) -> None:
        after = min((wake.after for wake in (*plan.wakes, *conclusion.wakes)), default=None)
        if after is not None:
            controller.wakes[key] = self._world.now + timedelta(seconds=max(after, 0.0)) + _HAIR

    def _decide_again(self, controller: Controller, key: Key, outcomes: Outcomes) -> None:
        stale = bool(outcomes.of(Result.MOVED) or outcomes.of(Result.GONE))
        self._stale = self._stale + 1 if stale else 0
        if stale and self._stale <= _STALE_TRIES:
            controller.queue[key] = None

    def _restart(self) -> None:
        """The next manager remembers nothing, and looks at everything."""
        for controller in self.controllers:
            subjects = self._world.store(controller.spec.subject).list()
            controller.queue = dict.fromkeys(map(key_of, subjects))
            controller.later.clear()
            controller.wakes.clear()
            controller.plans.clear()


def _mixed(seed: int, number: int) -> int:
    digest = hashlib.blake2b(f"{seed}/{number}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 11
