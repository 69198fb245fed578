"""Playing a rollout: the kind's own decisions, carried out in a model of the cluster until nothing more happens.

Each moment is played to its end before time moves on: what the nodes do, then a pass of every controller that has
something to look at, then what the nodes make of that, until all is quiet. Then the clock jumps to the next moment at
which something is due: a step of a pod, or a wish of a controller to look again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import sys
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from kruise.api.apps.shared import Lifecycle
from kruise.api.meta import Key
from kruise.api.native.apps import CONTROLLER_REVISIONS, ControllerRevision
from kruise.api.native.pod import PODS, Pod
from kruise.api.resource import Resource
from kruise.faces.forecast import ForecastFacts
from kruise.feature import Feature, Settings
from kruise.foresight import hooks
from kruise.foresight.watching import Watcher
from kruise.inplace import edits
from kruise.machinery.plan import Action, Cause, Conclusion, Outcome, Plan, Result
from kruise.machinery.revision_names import short_hash
from kruise.machinery.spec import ControllerSpec, Source, View
from kruise.model.world import World
from kruise.workloads.causes import HOOK

_IDLE_WAKES = 50
"""So many looks in a row that change nothing, and nothing ever will."""
_OVERTAKEN = 20
"""Nobody else writes here: a write that never fits what it was decided about is not tried for ever."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How far a forecast looks. Beyond, it is cut, and says so."""

    looks: int = 200_000
    """Looks at pods: passes times pods. What a pass costs grows with the pods."""
    passes: int = 20_000
    horizon: timedelta = timedelta(days=7)


@dataclasses.dataclass(slots=True)
class Waiting:
    """A hook that held pods and was answered."""

    cause: Cause
    at: float
    pods: dict[str, None]


@dataclasses.dataclass(slots=True)
class _Controller:
    spec: ControllerSpec[Any]
    queue: dict[Key, None] = dataclasses.field(default_factory=dict)
    later: dict[Key, None] = dataclasses.field(default_factory=dict)
    """Keys of which only their own status changed: looked at with the next reason, and at the end."""
    wakes: dict[Key, datetime] = dataclasses.field(default_factory=dict)
    plans: dict[Key, Plan] = dataclasses.field(default_factory=dict)


class Playing:
    """One rollout. `play` runs it; the other attributes tell what came of it."""

    def __init__(
        self,
        kind: ForecastFacts,
        key: Key,
        world: World,
        watcher: Watcher,
        *,
        features: Sequence[Feature],
        settings: Settings,
        seed: int,
        answer_hooks: bool,
        server_version: Any,
        bounds: Bounds,
        served: frozenset[Resource[Any]],
    ) -> None:
        self._kind = kind
        self._key = key
        self._world = world
        self._watcher = watcher
        self._settings = settings
        self._seed = seed
        self._answers = answer_hooks
        self._server_version = server_version
        self._bounds = bounds
        self._began = world.now
        self._is_own_status = False
        self._passes = 0
        self._looks = 0
        self._overtaken = 0
        self._leaving: dict[str, Pod] = {}
        """Pods with finalizers whose deletion has begun, by uid."""
        self._answered: set[tuple[str, str]] = set()
        self.is_cut = False
        self.hooks: dict[str, Waiting] = {}
        """Hooks that were answered, by what they asked for."""
        self.failures: dict[str, str] = {}
        """Writes that were refused: what and why."""
        self.revisions: dict[str, ControllerRevision] = {}
        """Every revision that was there at some time, by its hash."""
        self.dropped: list[str] = []
        """Names of revisions that left the history."""
        self._controllers = [_Controller(spec) for feature in features for spec in feature.controllers(settings)]
        for controller in self._controllers:
            for source in controller.spec.all_sources:
                if not source.optional or source.resource in served:
                    world.add(source.kind)

    def begin(self) -> None:
        """Hear of every change from now on; everything that is there is looked at."""
        for controller in self._controllers:
            for source in controller.spec.all_sources:
                self._world.store(source.resource).subscribe(self._handler(controller, source))
        self._world.store(PODS).subscribe(self._pod_changed)
        self._world.add(CONTROLLER_REVISIONS).subscribe(self._revision_changed)

    def _handler(self, controller: _Controller, source: Source[Any]) -> Callable[[Any, Any], None]:
        is_subject = source.resource == controller.spec.subject

        def on_change(old: Any, new: Any) -> None:
            waits = self._is_own_status and is_subject
            for key in source.keys(old, new, self._world):
                (controller.later if waits else controller.queue)[key] = None

        return on_change

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        self._watcher.saw(self._world.now, old, new, self._world.reason)
        if new is not None and new.metadata.deletion_timestamp is not None and new.metadata.finalizers:
            self._leaving[new.metadata.uid] = new

    def _revision_changed(self, old: ControllerRevision | None, new: ControllerRevision | None) -> None:
        if new is not None:
            self.revisions[short_hash(new.metadata.name)] = new
        elif old is not None:
            self.dropped.append(old.metadata.name)

    # The loop

    def play(self) -> None:
        idle = 0
        while True:
            version = self._world.version
            self._moment()
            idle = 0 if self._world.version != version else idle + 1
            upcoming = self._upcoming()
            if upcoming is None or (idle > _IDLE_WAKES and self._world.next_moment is None):
                if not self._look_again():
                    return
                continue
            if self._is_exhausted() or upcoming - self._began > self._bounds.horizon:
                self.is_cut = True
                return
            self._world.now = max(upcoming, self._world.now)
            self._wake()
            self._watcher.tick(self._world.now)

    def _moment(self) -> None:
        """Everything that happens now."""
        self._world.settle()
        while not self._is_exhausted():
            found = self._next()
            if found is not None:
                self._pass(*found)
                self._world.settle()
            elif not (self._answers and self._answer_hooks()):
                return

    def _is_exhausted(self) -> bool:
        return self._passes >= self._bounds.passes or self._looks >= self._bounds.looks

    def _next(self) -> tuple[_Controller, Key] | None:
        for controller in self._controllers:
            if controller.queue:
                key = next(iter(controller.queue))
                del controller.queue[key]
                controller.later.pop(key, None)
                return controller, key
        return None

    def _look_again(self) -> bool:
        """Nothing is due any more: look once more at what changed nothing but its own status."""
        found = False
        for controller in self._controllers:
            found = found or bool(controller.later)
            controller.queue.update(controller.later)
            controller.later.clear()
        return found and not self._is_exhausted()

    def _upcoming(self) -> datetime | None:
        moments = [moment for controller in self._controllers for moment in controller.wakes.values()]
        if self._world.next_moment is not None:
            moments.append(self._world.next_moment)
        return min(moments, default=None)

    def _wake(self) -> None:
        for controller in self._controllers:
            for key in [key for key, moment in controller.wakes.items() if moment <= self._world.now]:
                del controller.wakes[key]
                controller.queue[key] = None

    # A pass

    def _pass(self, controller: _Controller, key: Key) -> None:
        spec, world = controller.spec, self._world
        self._passes += 1
        if spec.subject == self._kind.resource:
            self._looks += len(world.store(PODS))
        view = View(
            world,
            now=world.now,
            seed=_mixed(self._seed, self._passes),
            gates=self._settings.gates,
            server_version=self._server_version,
            capacity=sys.maxsize,  # writes cost no time here
        )
        controller.wakes.pop(key, None)
        snapshot = spec.snapshot(view, key)
        if snapshot is None:
            controller.plans.pop(key, None)
            return
        plan = controller.plans[key] = spec.decide(snapshot)
        outcomes = world.carry_out(plan)
        conclusion = spec.conclude(snapshot, plan, outcomes)
        if conclusion.status is not None:
            self._is_own_status = True
            try:
                world.write(conclusion.status)
            finally:
                self._is_own_status = False
        for outcome in outcomes.failed:
            self.failures.setdefault(_what(outcome), outcome.error)
        self._note_wakes(controller, key, plan, conclusion)
        overtaken = bool(outcomes.of(Result.MOVED) or outcomes.of(Result.GONE))
        self._overtaken = self._overtaken + 1 if overtaken else 0
        if overtaken and self._overtaken <= _OVERTAKEN:
            controller.queue[key] = None

    def _note_wakes(self, controller: _Controller, key: Key, plan: Plan, conclusion: Conclusion) -> None:
        after = min((wake.after for wake in (*plan.wakes, *conclusion.wakes)), default=None)
        if after is not None:
            # A hair later than asked for: rounding must not bring anybody a moment too early, to look in vain.
            controller.wakes[key] = self._world.now + timedelta(seconds=max(after, 0.0), milliseconds=1)

    # Hooks

    @property
    def plan(self) -> Plan:
        """The last plan about the subject."""
        for controller in self._controllers:
            if controller.spec.subject == self._kind.resource and self._key in controller.plans:
                return controller.plans[self._key]
        return Plan()

    @property
    def subject(self) -> Any:
        return self._world.store(self._kind.resource).get(*self._key)

    def _answer_hooks(self) -> bool:
        """Do what the hooks wait for. Whether there was anything to do."""
        lifecycle = self._kind.lifecycle(self.subject) if self.subject is not None else None
        if lifecycle is None:
            return False
        done = self._let_go(lifecycle)
        for held in self.plan.held:
            cause = next((cause for cause in held.causes if cause.meaning == HOOK), None)
            pod = self._world.store(PODS).get(*held.target.key) if held.target.resource == PODS else None
            if cause is None or pod is None:
                continue
            edit = hooks.answer(pod, lifecycle)
            asked = (pod.metadata.uid, pod.metadata.resource_version)
            if edit.is_empty or asked in self._answered:
                continue
            self._answered.add(asked)
            at = (self._world.now - self._began).total_seconds()
            self.hooks.setdefault(cause.message, Waiting(cause, at, {})).pods[pod.metadata.name] = None
            for action in edits.writes(pod, edit, reason="the hook is answered"):
                done = self._world.write(action).result is Result.DONE or done
        self._world.settle()
        return done

    def _let_go(self, lifecycle: Lifecycle) -> bool:
        """Pods on their way out that only a hook's finalizer keeps."""
        leaving, self._leaving = self._leaving, {}
        done = False
        for pod in leaving.values():
            found = self._world.store(PODS).get(pod.metadata.namespace, pod.metadata.name)
            if found is None or found.metadata.uid != pod.metadata.uid:
                continue
            edit = hooks.let_go(found, lifecycle)
            for action in edits.writes(found, edit, reason="the hook lets it go") if not edit.is_empty else ():
                done = self._world.write(action).result is Result.DONE or done
        return done


def _what(outcome: Outcome) -> str:
    action: Action = outcome.action
    return f"{action.verb.value} of {action.target.resource.kind}"


def _mixed(seed: int, number: int) -> int:
    digest = hashlib.blake2b(f"{seed}/{number}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 11
