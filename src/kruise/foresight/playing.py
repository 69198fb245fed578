"""Playing a rollout: the kind's own decisions, carried out in the model of a cluster until nothing more happens.

Each moment is played to its end before time moves on: what the nodes do, then a pass of every controller that has
something to look at, then what the nodes make of that, and the answers of hooks, until all is quiet. Then the clock
jumps to the next moment at which something is due.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import timedelta
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
from kruise.kinds import face_of
from kruise.machinery.plan import Action, Cause, Outcome, Plan, Result
from kruise.machinery.revision_names import short_hash
from kruise.machinery.spec import ControllerSpec
from kruise.model.loop import Controller, Loop
from kruise.model.world import World
from kruise.workloads.shared.causes import HOOK

_IDLE_WAKES = 50
"""So many looks in a row that change nothing, and nothing ever will."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How far a forecast looks. Beyond, it is cut, and says so."""

    looks: int = 200_000
    """Looks at pods: passes times pods. What a pass costs grows with the pods."""
    passes: int = 20_000
    horizon: timedelta = timedelta(days=7)


@dataclasses.dataclass(slots=True)
class AnsweredHook:
    """A hook that held pods and was answered."""

    cause: Cause
    at: float
    pods: dict[str, None]


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
        self._answers = answer_hooks
        self._bounds = bounds
        self._began = world.now
        self._looks = 0
        self._leaving: dict[str, Pod] = {}
        """Pods with finalizers whose deletion has begun, by uid."""
        self._answered: set[tuple[str, str]] = set()
        self.is_cut = False
        self.hooks: dict[str, AnsweredHook] = {}
        """Hooks that were answered, by what they asked for."""
        self.failures: dict[str, str] = {}
        """Writes that were refused: what and why."""
        self.revisions: dict[str, ControllerRevision] = {}
        """Every revision that was there at some time, by its hash."""
        self.dropped: list[str] = []
        """Names of revisions that left the history."""
        self._loop = Loop(
            world,
            _controllers(kind, features, settings),
            gates=settings.gates,
            server_version=server_version,
            seed=seed,
            served=served,
        )

    def begin(self) -> None:
        """Hear of every change from now on; everything that is there is looked at."""
        self._loop.begin()
        self._world.store(PODS).subscribe(self._pod_changed)
        self._world.add(CONTROLLER_REVISIONS).subscribe(self._revision_changed)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        self._watcher.saw(self._world.now, old, new, self._world.reason)
        if new is not None and new.metadata.deletion_timestamp is not None and new.metadata.finalizers:
            self._leaving[new.metadata.uid] = new

    def _revision_changed(self, old: ControllerRevision | None, new: ControllerRevision | None) -> None:
        if new is not None:
            self.revisions[short_hash(new.metadata.name)] = new
        elif old is not None:
            self.dropped.append(old.metadata.name)

    # The course of it

    def play(self) -> None:
        idle = 0
        while True:
            done = self._done
            self._moment()
            idle = 0 if self._done != done else idle + 1
            upcoming = self._loop.upcoming
            if upcoming is None or (idle > _IDLE_WAKES and self._world.next_moment is None):
                if not self._loop.look_again() or self._is_exhausted():
                    return
                continue
            if self._is_exhausted() or upcoming - self._began > self._bounds.horizon:
                self.is_cut = True
                return
            self._loop.advance()
            self._watcher.tick(self._world.now)

    @property
    def _done(self) -> int:
        """Another one whenever more happens than that a status is written: a mark may come and go for ever."""
        return self._world.version - self._loop.told

    def _moment(self) -> None:
        """Everything that happens now."""
        self._world.settle()
        while not self._is_exhausted():
            found = self._loop.take()
            if found is not None:
                self._pass(*found)
                self._world.settle()
            elif not (self._answers and self._answer_hooks()):
                return

    def _is_exhausted(self) -> bool:
        return self._loop.passes >= self._bounds.passes or self._looks >= self._bounds.looks

    def _pass(self, controller: Controller, key: Key) -> None:
        if controller.spec.subject == self._kind.resource:
            self._looks += len(self._world.store(PODS))
        done = self._loop.run(controller, key)
        for outcome in done.outcomes.failed if done is not None else ():
            self.failures.setdefault(_what(outcome), outcome.error)

    # Hooks

    @property
    def plan(self) -> Plan:
        """The last plan about the subject."""
        for controller in self._loop.controllers:
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
            self.hooks.setdefault(cause.message, AnsweredHook(cause, at, {})).pods[self._kind.name_of(pod)] = None
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


def _controllers(kind: ForecastFacts, features: Sequence[Feature], settings: Settings) -> list[ControllerSpec[Any]]:
    """Who decides about the pods that admission lets in is asked first: that is how it was counted when a pod comes.
    Who puts something into the pods of others does not change those that are there, unless the plan is about that: it
    would see too few of its pods to know how far it is."""
    first: list[ControllerSpec[Any]] = []
    others: list[ControllerSpec[Any]] = []
    for feature in features:
        shapes_pods = bool(feature.pod_mutations(settings))
        for spec in feature.controllers(settings):
            face = face_of(spec.subject.group, spec.subject.kind)
            is_about = spec.subject == kind.resource
            if is_about or face is None or face.contribution is None:
                (first if shapes_pods else others).append(spec)
    return [*first, *others]


def _what(outcome: Outcome) -> str:
    action: Action = outcome.action
    return f"{action.verb.value} of {action.target.resource.kind}"
