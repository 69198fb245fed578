"""How a part of the daemon is run: looks, jobs, retries, nodes that die and return."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator
from random import Random
from typing import Any, cast

import pytest

from kruise.api.meta import Key, key_of
from kruise.daemon.daemon import Daemon
from kruise.daemon.parts import Part, Place, Scene, Settings, parts
from kruise.daemon.runtime import CallError, ContainerState, first_runtime, newest, pod_containers, split_id
from kruise.local.nodes.pods import BOUND, BOUND_PODS
from kruise.machinery.codec import Struct
from kruise.machinery.plan import Conclusion, EventNote, Job, JobState, Outcomes, Plan, Wake
from kruise.machinery.spec import ControllerSpec, Source, Stores, View
from kruise.machinery.watched import Watched
from tests.local.nodes import world as worlds
from tests.local.nodes.world import World, status

WANTED = "toy/stop"


class Stop(Struct):
    node: str
    id: str
    grace: int = 5


class Seen(Struct):
    id: str
    running: bool


class Snapshot(Struct):
    node: str
    uid: str
    wanted: str
    container: Seen
    state: str = ""
    error: str = ""


def state_of(state: JobState | None) -> str:
    if state is None:
        return "none"
    return "running" if state.ended is None else "ended"


def snapshot(view: View, key: Key) -> Snapshot | None:
    pod = view.store(BOUND_PODS).get(*key)
    if pod is None:
        return None
    job = view.jobs.get("stop")
    return Snapshot(
        node=pod.spec.node_name,
        uid=pod.metadata.uid,
        wanted=pod.metadata.annotations.get(WANTED, ""),
        container=view.outside,
        state=state_of(job),
        error=job.error if job is not None else "",
    )


def decide(seen: Snapshot) -> Plan:
    if seen.state == "ended" and seen.error:
        return Plan(drops=("stop",), wakes=(Wake(after=30, reason="it failed"),))
    if seen.wanted != seen.container.id:
        return Plan(drops=("stop",) if seen.state == "ended" else ())
    if seen.state == "none" and seen.container.running:
        call = Stop(node=seen.node, id=seen.container.id)
        return Plan(jobs=(Job(name="stop", call=call, seconds=60),))
    return Plan()


def conclude(seen: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    notes = [EventNote(reason="Stopping", message="stops", field_path="spec.containers{app}") for _ in plan.jobs]
    return Conclusion(events=tuple(notes))


def spec(place: Place) -> ControllerSpec[Snapshot]:
    return ControllerSpec(
        name="toy",
        subject=BOUND_PODS,
        sources=(Source(cast(Any, place.pods), own),),
        snapshot=snapshot,
        decide=decide,
        conclude=conclude,
        snapshot_type=Snapshot,
    )


def own(old: Any, new: Any, stores: Stores) -> tuple[Key, ...]:
    return (key_of(new),) if new is not None else ()


def node_of(stores: Stores, key: Key) -> str:
    pod = stores.store(BOUND_PODS).get(*key)
    return pod.spec.node_name if pod is not None else ""


async def look(scene: Scene, key: Key) -> Seen | None:
    pod = scene.stores.store(BOUND_PODS).get(*key)
    node = scene.node(pod.spec.node_name) if pod is not None else None
    if pod is None or node is None:
        return None
    found = newest(await pod_containers(first_runtime(node), pod.metadata.uid), "app")
    return Seen(id=found.id, running=found.state is ContainerState.RUNNING) if found is not None else None


async def perform(scene: Scene, call: Struct) -> Struct | None:
    assert isinstance(call, Stop)
    node = scene.node(call.node)
    assert node is not None
    await first_runtime(node).stop_container(call.id, call.grace)
    return None


PART = Part(name="toy", component="kruise-daemon-toy", spec=spec, look=look, perform=perform, node_of=node_of)


@contextlib.asynccontextmanager
async def running(world: World, part: Part[Any] = PART) -> AsyncIterator[Daemon]:
    daemon = Daemon(
        [part],
        place=Place(settings=Settings(), pods=cast(Any, Watched(BOUND_PODS, fields=BOUND))),
        nodes=world.model,
        client=world.client,
        cache=world.cache,
        clock=world.clock,
        random=Random(1),
    )
    task = asyncio.create_task(daemon.run())
    try:
        yield daemon
    finally:
        task.cancel()
        await asyncio.wait({task})


def listening(world: World) -> set[tuple[str, str]]:
    """What is asked of the API, and under which name."""
    heard: set[tuple[str, str]] = set()
    transport: Any = world.transport
    send = transport.send

    async def told(request: Any) -> Any:
        heard.add((request.resource.plural if request.resource is not None else "", request.user_agent))
        return await send(request)

    transport.send = told
    return heard


async def stop_it(world: World) -> str:
    """Have the container of the pod stopped; its id."""
    identity = split_id(status(await world.until_ready())["containerID"])[1]
    await world.patch({"metadata": {"annotations": {WANTED: identity}}})
    return identity


def test_a_job_runs_in_the_background_once() -> None:
    """DMN-9: told with component and node, under the name of the part."""

    async def scenario(world: World) -> None:
        async with running(world) as daemon:
            heard = listening(world)
            await world.create()
            await stop_it(world)
            found = await world.until(lambda found: status(found)["restartCount"] == 1)
            await asyncio.sleep(60)
            assert status(await world.pod())["restartCount"] == 1
            await daemon.flush_events()
            [event] = [item for item in await world.events() if item["reason"] == "Stopping"]
            assert event["source"] == {"component": "kruise-daemon-toy", "host": found["spec"]["nodeName"]}
            assert ("events", "kruise-daemon/kruise-daemon-toy") in heard
            assert event["involvedObject"]["fieldPath"] == "spec.containers{app}"
            plans = [entry["plan"] for entry in daemon.journal.entries("toy")]
            assert [plan["jobs"] for plan in plans if "jobs" in plan] == [["stop"]]

    worlds.virtually(scenario)


def test_a_job_that_fails_is_told_and_can_be_begun_again() -> None:
    async def scenario(world: World) -> None:
        async with running(world):
            await world.create(annotations={"sim.kruise.io/stop-error": "no"})
            await stop_it(world)
            await asyncio.sleep(50)
            assert status(await world.pod())["restartCount"] == 0
            await world.patch({"metadata": {"annotations": {"sim.kruise.io/stop-error": None}}})
            await world.until(lambda found: status(found)["restartCount"] == 1)

    worlds.virtually(scenario)


def test_a_look_that_fails_is_tried_again() -> None:
    """DMN-2."""
    failures = [CallError("Unavailable", "the runtime starts")] * 3

    async def troubled(scene: Scene, key: Key) -> Seen | None:
        if failures:
            raise failures.pop()
        return await look(scene, key)

    async def scenario(world: World) -> None:
        async with running(world, dataclasses.replace(PART, look=troubled)) as daemon:
            await world.create()
            await stop_it(world)
            await world.until(lambda found: status(found)["restartCount"] == 1)
            errors = [entry["error"] for entry in daemon.journal.entries("toy") if entry["error"]]
            assert errors == ["rpc error: code = Unavailable desc = the runtime starts"] * 3

    worlds.virtually(scenario)


@pytest.mark.parametrize("moment", [0.0, 0.05, 0.5, 3.0])
def test_a_daemon_that_dies_and_returns_goes_on(moment: float) -> None:
    async def scenario(world: World) -> None:
        async with running(world) as daemon:
            await world.create(annotations={"sim.kruise.io/stop-seconds": "2"})
            await stop_it(world)
            await asyncio.sleep(moment)
            world.model.without_daemon.add("node-1")
            daemon.node_died()
            await asyncio.sleep(20)
            world.model.without_daemon.clear()
            daemon.node_returned("node-1")
            await world.until(lambda found: status(found)["restartCount"] == 1)
            await asyncio.sleep(60)
            assert status(await world.pod())["restartCount"] == 1

    worlds.virtually(scenario)


def test_a_node_without_daemon_does_nothing() -> None:
    async def scenario(world: World) -> None:
        world.model.without_daemon.add("node-1")
        async with running(world):
            await world.create()
            await stop_it(world)
            await asyncio.sleep(60)
            assert status(await world.pod())["restartCount"] == 0

    worlds.virtually(scenario)


def test_watches_are_narrowed_to_the_node() -> None:
    """DMN-8, DMN-20."""
    place = Place.of("node-7", Settings())
    assert place.pods.fields == "spec.nodeName=node-7"
    assert place.own(BOUND_PODS).fields == "metadata.name=node-7"
    requests = place.labelled(BOUND_PODS, "crr.apps.kruise.io/node-name", also="crr.apps.kruise.io/active=true")
    assert requests.labels == "crr.apps.kruise.io/node-name=node-7,crr.apps.kruise.io/active=true"
    everywhere = dataclasses.replace(place, node="")
    assert everywhere.own(BOUND_PODS).fields == ""
    assert everywhere.labelled(BOUND_PODS, "a", also="b=c").labels == "b=c"


def test_a_gate_switches_a_part_off() -> None:
    """DMN-1, DMN-3."""
    gated = dataclasses.replace(PART, gates=("DaemonWatchingPod",))
    globals()["PART"], kept = gated, PART
    try:
        assert parts({"DaemonWatchingPod": False}, (__name__,)) == ()
        assert parts({}, (__name__,)) == (gated,)
    finally:
        globals()["PART"] = kept


def test_ids_without_a_runtime_are_refused() -> None:
    assert split_id("containerd://abc") == ("containerd", "abc")
    for text in ("abc", "://abc", "containerd://", ""):
        with pytest.raises(ValueError, match="is not a container id"):
            split_id(text)
