"""The loop runs any controller: here the toy's, which the model has never heard of."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Any

from kruise.api.meta import Key, PartialObject
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.machinery import codec
from kruise.machinery.mapping import selected_by
from kruise.machinery.plan import Outcome, Plan, Result
from kruise.machinery.selector_index import Selects
from kruise.machinery.spec import Source, no_keys
from kruise.machinery.watched import Watched
from kruise.model.loop import Loop
from kruise.model.nodes import Nodes
from kruise.model.times import Times
from kruise.model.world import World
from tests.support.kubelets_by_hand import Kubelets
from tests.toy.controller import SPEC
from tests.toy.decide import TROUPES, Snapshot, Troupe

NOW = datetime(2030, 1, 1, 12, 0, 0, tzinfo=UTC)
KEY = Key("demo", "band")


def stage(replicas: int = 3, image: str = "nginx:1") -> tuple[World, Loop]:
    world = World(NOW)
    loop = Loop(world, [SPEC], gates={})
    document = {
        "metadata": {"name": "band", "namespace": "demo", "uid": "uid-band", "generation": 1},
        "spec": {"replicas": replicas, "image": image},
    }
    world.add(TROUPES, [codec.convert(document, Troupe)])
    return world, loop


def set_spec(world: World, **spec: Any) -> None:
    world.edit(TROUPES, KEY, lambda document: document["spec"].update(spec))


def images(world: World) -> dict[str, str]:
    return {pod.metadata.name: pod.spec.containers[0].image for pod in world.store(PODS).list()}


def play(loop: Loop) -> None:
    while True:
        loop.settle()
        if not loop.advance():
            return


def test_everything_happens_in_its_time_until_nothing_is_due() -> None:
    world, loop = stage()
    nodes = Nodes(world, Times(schedule=1.0, start=2.0, ready=3.0), failure_of=lambda pod: "", reports=False)
    nodes.begin()
    loop.begin()
    play(loop)
    assert images(world) == dict.fromkeys(("band-0", "band-1", "band-2"), "nginx:1")
    assert all(pod.status.phase == "Running" for pod in world.store(PODS).list())
    assert timedelta(seconds=6) <= world.now - NOW < timedelta(seconds=7)
    set_spec(world, replicas=1, image="nginx:2")
    play(loop)
    assert images(world) == {"band-0": "nginx:2"}
    troupe = world.store(TROUPES).get(*KEY)
    assert troupe is not None
    status = troupe.status
    assert (status.observed_generation, status.pods, status.ready, status.updated) == (2, 1, 1, 1)


def test_every_write_is_heard_of_and_any_may_be_the_last() -> None:
    """A manager that dies at whatever write leaves something that the next one ends."""
    world, loop = stage()
    heard: list[Outcome] = []
    done = loop.run(loop.controllers[0], KEY, wrote=heard.append)
    assert done is not None
    assert [outcome.action.target.name for outcome in heard] == ["band-0", "band-1", "band-2", "band"]
    assert tuple(heard[:3]) == tuple(done.outcomes)
    for place in range(4):
        world, loop = stage()
        loop.begin()
        cut = loop.run(loop.controllers[0], KEY, die_at=place)
        assert cut is not None
        assert cut.died
        assert loop.writes == len(images(world)) == place
        loop.settle()
        assert len(images(world)) == 3


def test_a_plan_that_comes_late_meets_the_guards() -> None:
    """Somebody replaces a pod between the decision and the writes: what was decided about it is not done to another."""
    world, loop = stage()
    kubelets = Kubelets(world)
    controller = loop.controllers[0]
    loop.run(controller, KEY)
    set_spec(world, image="nginx:2")

    def replaced(snapshot: Snapshot, plan: Plan) -> None:
        first, second, _ = world.store(PODS).list()
        for pod in (first, second):
            kubelets.step(world.delete(PODS, pod))
        world.put(PODS, codec.evolve(first, metadata=codec.evolve(first.metadata, uid="another")))

    done = loop.run(controller, KEY, decided=replaced)
    assert done is not None
    results = {(outcome.action.target.name, outcome.result) for outcome in done.outcomes}
    assert {("band-0", Result.MOVED), ("band-1", Result.GONE), ("band-2", Result.DONE)} <= results
    assert controller.queue == {KEY: None}


def test_a_kind_that_nobody_serves_can_be_looked_for() -> None:
    budgets: Resource[Any] = Resource("test.kruise.io", "v1", "budgets", "Budget", True, PartialObject)
    selecting = Watched(budgets, selectors={"pods": lambda budget: [Selects({}, "demo")]}, optional=True)
    sources = (*SPEC.sources, Source(selecting, no_keys), Source(PODS, selected_by(budgets, "pods")))
    world = World(NOW)
    loop = Loop(world, [dataclasses.replace(SPEC, sources=sources)], gates={})
    pod = {"metadata": {"name": "p", "namespace": "demo", "uid": "u", "resourceVersion": "1", "labels": {"a": "b"}}}
    world.add(PODS, [codec.convert(pod, PODS.type)])
    loop.begin()
    assert loop.take() is None
