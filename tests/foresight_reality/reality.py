"""Playing a case: the workload comes to its start, the change is foreseen, then made, and what happens is written down.

outcome = await play(world, case)
outcome.forecast, outcome.reality
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from kruise.api.meta import Key
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.foresight.errors import RefusedError
from kruise.foresight.forecast import Forecast
from kruise.foresight.foreseeing import foresee
from kruise.foresight.needs import needed
from kruise.kinds import face_of, features
from kruise.machinery import codec
from kruise.machinery.client.errors import InvalidError as RefusedByServerError
from kruise.machinery.client.errors import NotFoundError
from kruise.machinery.client.requests import PatchType
from kruise.machinery.documents import value_at
from kruise.manager.options import Options
from tests.foresight_reality.cases import NAME, Case, Step, edited
from tests.foresight_reality.people import People
from tests.support.rollout_log import RolloutLog, Sign, is_leaving, revision_of, watching
from tests.support.world import LocalWorld, World, resource_of

Json = dict[str, Any]
_LABELS = f"app={NAME}"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long nothing must happen before we believe that nothing will, and how long we wait for that at most."""

    calm: float = 120.0
    most: float = 3600.0
    every: float = 5.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Reality:
    """What a cluster did."""

    signs: tuple[Sign, ...]
    start: tuple[str, ...]
    """The names of the pods at the beginning that were not on their way out."""
    fewest_available: int
    most_pods: int
    available_after: int
    by_revision: Mapping[str, int]
    survivors: tuple[str, ...]
    """The names of the pods of the beginning that are there in the end: the very same, not others of that name."""
    pods: Mapping[str, str]
    """In the end: the revision of each pod."""
    seconds: float
    """Until the last sign."""
    causes: Mapping[str, tuple[str, ...]] | None = None
    """Why pods are held in the end, as the manager's last decision has it, by their names; None: nobody asked it."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`forecast` or `reality` is a text where the change was refused."""

    case: Case
    forecast: Forecast | str
    reality: Reality | str


class _Player:
    def __init__(self, world: World, case: Case, options: Options, patience: Patience) -> None:
        self._world = world
        self._case = case
        self._resource = resource_of(case.manifest)
        self._options = options
        self._patience = patience
        lifecycle = case.manifest["spec"].get("lifecycle") or {}
        self._people = People(world.client, world.namespace, _LABELS, lifecycle)

    async def play(self) -> Outcome:
        async with self._people.at_work():
            await self._come_to_the_start()
            self._people.answers = self._case.answers_hooks
            async with watching(self._world.client, self._world.namespace, _LABELS, self._world.clock) as log:
                live = await self._world.get(self._resource, NAME)
                changed = edited(live, self._case.change, await self._pod_names())
                forecast = await self._foresee(live, changed)
                try:
                    await self._write(changed)
                except RefusedByServerError as error:
                    return Outcome(case=self._case, forecast=forecast, reality=error.message)
                await self._calm(log)
            return Outcome(case=self._case, forecast=forecast, reality=self._seen(log, changed))

    # To the start

    async def _come_to_the_start(self) -> None:
        async with watching(self._world.client, self._world.namespace, _LABELS, self._world.clock) as log:
            await self._world.create(self._case.manifest)
            await self._calm(log)
            for step in self._case.steps:
                await self._take(step)
                if step.wait is None:
                    await self._calm(log)
                else:
                    await asyncio.sleep(step.wait)

    async def _take(self, step: Step) -> None:
        names = await self._pod_names()
        if step.edits:
            live = await self._world.get(self._resource, NAME)
            try:
                await self._write(edited(live, step.edits, names))
            except RefusedByServerError:
                return  # it stays as it was
        metadata: Json = {"labels": dict(step.labels), "annotations": dict(step.annotations)}
        for position in step.pods:
            if position < len(names):
                await self._world.patch(PODS, names[position], {"metadata": metadata})

    async def _calm(self, log: RolloutLog) -> None:
        """Wait until nothing has happened for a while."""
        clock, patience = self._world.clock, self._patience
        ends = clock.monotonic() + patience.most
        quiet_since = clock.now()
        while clock.monotonic() < ends:
            await asyncio.sleep(patience.every)
            quiet = (clock.now() - max(log.last_news, quiet_since)).total_seconds()
            if quiet >= patience.calm:
                return
        raise AssertionError(f"it does not come to rest: {self._case.text()}")

    async def _pod_names(self) -> list[str]:
        return [str(pod["metadata"]["name"]) for pod in await self._world.pods(_LABELS)]

    async def _write(self, document: Mapping[str, Any]) -> None:
        change = [{"op": "replace", "path": "/spec", "value": document["spec"]}]
        await self._world.patch(self._resource, NAME, change, patch_type=PatchType.JSON)

    # What is foreseen

    async def _foresee(self, live: Json, changed: Json) -> Forecast | str:
        objects: dict[Resource[Any], tuple[Any, ...]] = {self._resource: (codec.convert(live, self._resource.type),)}
        for need in needed(self._resource, live, features=features(), settings=self._options):
            try:
                listed = await self._world.client.list(need.resource, need.namespace, labels=need.selector)
            except NotFoundError:
                if not need.optional:
                    raise
                continue
            objects[need.resource] = (*objects.get(need.resource, ()), *listed.items)
        try:
            return foresee(
                self._resource,
                Key(self._world.namespace, NAME),
                changed,
                objects,
                features=features(),
                settings=self._options,
                now=self._world.clock.now(),
                answer_hooks=self._case.answers_hooks,
            )
        except RefusedError as error:
            return str(error)

    # What happened

    def _seen(self, log: RolloutLog, changed: Mapping[str, Any]) -> Reality:
        face = face_of(self._resource.group, self._resource.kind)
        assert face is not None
        min_ready = int(value_at(changed, face.min_ready, 0) or 0)
        there = {pod.metadata.name: pod for pod in log.pods}
        return Reality(
            signs=tuple(log.signs),
            start=tuple(sorted(pod.metadata.name for pod in log.start.values() if not is_leaving(pod))),
            fewest_available=log.fewest_available(min_ready),
            most_pods=log.most_pods(),
            available_after=log.available(min_ready, self._world.clock.now()),
            by_revision=log.by_revision(),
            survivors=tuple(sorted(name for name, pod in there.items() if pod.metadata.uid in log.start)),
            pods={name: revision_of(pod) for name, pod in there.items()},
            seconds=log.signs[-1].at if log.signs else 0.0,
            causes=_causes(self._world, face.controller) if isinstance(self._world, LocalWorld) else None,
        )


def _causes(world: LocalWorld, controller: str) -> dict[str, tuple[str, ...]]:
    dump = json.loads(world.journal.dump(controller, Key(world.namespace, NAME)))
    found: dict[str, tuple[str, ...]] = {}
    for held in dump["plan"]["held"]:
        codes = tuple(str(cause["code"]) for cause in held["causes"])
        found[str(held["target"]["name"])] = codes
    return found


async def play(world: World, case: Case, options: Options, patience: Patience | None = None) -> Outcome:
    """`options` are those that the cluster's manager runs with."""
    return await _Player(world, case, options, patience or Patience()).play()
