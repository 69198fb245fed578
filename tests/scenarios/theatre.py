"""Playing scenarios on a real control plane: API server, scheduler, garbage collector and claim binder are real.

Nodes are simulated, and the manager is a process of its own. Scenarios of one setting are played side by side, each in
a namespace of its own, the first time that one of them is asked for; each test then tells how its scenario went.
"""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import pytest

from kruise.api.native.nodes import NAMESPACES, NODES
from kruise.api.native.storage import PERSISTENT_VOLUMES, STORAGE_CLASSES
from tests.scenarios.settings import PRODUCT, Setting, gates_text, settings_for
from tests.scenarios.stage import Pace, Scenario
from tests.support.kruisecluster import ALONE, KruiseCluster
from tests.support.world import World

AT_A_TIME = 6
VOLUMES = 120
CLAIM_CLASS = "scenarios"
PACE = Pace(seconds=3, calm=3.0, within=120.0, every=0.3, slack=10.0)


class Theatre:
    """A cluster, and how the scenarios went that were played on it so far."""

    def __init__(self, cluster: KruiseCluster, wanted: Mapping[str, Sequence[Scenario]]) -> None:
        self._cluster = cluster
        self._wanted = wanted
        self._results: dict[str, dict[str, str]] = {}
        """By setting and scenario: what went wrong; empty: nothing."""

    def result(self, setting: Setting, scenario: Scenario) -> str:
        if setting.name not in self._results:
            self._cluster.stop_manager()
            asyncio.run(self._prepare(setting))
            self._cluster.start_manager(f"--feature-gates={gates_text(setting.chosen)}", *setting.flags)
            self._results[setting.name] = asyncio.run(self._play_all(setting))
        return self._results[setting.name][scenario.name]

    async def _prepare(self, setting: Setting) -> None:
        """What the scenarios find in the cluster before the manager starts."""
        async with self._cluster.world("default") as world:
            await _make_volumes(world, setting)

    async def _play_all(self, setting: Setting) -> dict[str, str]:
        turns = asyncio.Semaphore(AT_A_TIME)
        results: dict[str, str] = {}

        async def take_turn(number: int, scenario: Scenario) -> None:
            async with turns:
                results[scenario.name] = await self._play(setting, scenario, f"{setting.name}-{number}")

        async with asyncio.TaskGroup() as group:
            for number, scenario in enumerate(self._wanted[setting.name]):
                group.create_task(take_turn(number, scenario), name=scenario.name)
        return results

    async def _play(self, setting: Setting, scenario: Scenario, namespace: str) -> str:
        await asyncio.to_thread(self._cluster.plane.create_namespace, namespace)
        async with self._cluster.world(namespace) as world:
            stage = scenario.stage(world, gates=setting.gates, pace=PACE, claim_class=_class_of(setting))
            try:
                await scenario.play(stage)
            except Exception as error:  # noqa: BLE001 - each test tells its own failure, whatever it is
                return f"{traceback.format_exc()}\n{await _remains(world)}\n{error}"
            finally:
                await world.client.delete(NAMESPACES, namespace)
        return ""


def _class_of(setting: Setting) -> str:
    return f"{CLAIM_CLASS}-{setting.name}"


async def _make_volumes(world: World, setting: Setting) -> None:
    """Volumes for all claims: there is nobody who would make them on demand."""

    async def nodes_are_there() -> None:
        assert len((await world.client.list(NODES)).items) >= 6

    await world.until(nodes_are_there)
    name = _class_of(setting)
    head = {"apiVersion": STORAGE_CLASSES.api_version, "kind": STORAGE_CLASSES.kind}
    provisioner = {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "Immediate"}
    await world.client.create(STORAGE_CLASSES, {**head, "metadata": {"name": name}, **provisioner})

    async def make(number: int) -> None:
        spec: dict[str, Any] = {
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": name,
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": f"/volumes/{number}"},
        }
        head = {"apiVersion": PERSISTENT_VOLUMES.api_version, "kind": PERSISTENT_VOLUMES.kind}
        await world.client.create(PERSISTENT_VOLUMES, {**head, "metadata": {"name": f"{name}-{number}"}, "spec": spec})

    async with asyncio.TaskGroup() as group:
        for number in range(VOLUMES):
            group.create_task(make(number))


async def _remains(world: World) -> str:
    """What there was when it went wrong."""
    events = [f"{event['reason']}: {event.get('message', '')}" for event in await world.events()]
    return "\n".join(events[-20:])


def cases_of(scenarios: Iterable[Scenario], group: str = "scenarios") -> list[Any]:
    """Parameters `setting` and `scenario` of a test. Groups have a cluster each."""
    cases = []
    for scenario in scenarios:
        for setting in settings_for(scenario):
            # Each setting is one start of a manager, and has a worker with a cluster of its own.
            marks = [pytest.mark.long, pytest.mark.together(f"{group}-{setting.name}")]
            if scenario.is_smoke and setting is PRODUCT:
                marks.append(pytest.mark.smoke)
            cases.append((setting, scenario, marks))
    # One setting after the other, where there is one worker.
    cases.sort(key=lambda case: case[0].name)
    return [
        pytest.param(setting, scenario, id=f"{setting.name}-{scenario.name}", marks=marks)
        for setting, scenario, marks in cases
    ]


@contextlib.contextmanager
def theatre_for(request: pytest.FixtureRequest) -> Iterator[Theatre]:
    """A cluster for the scenarios that a module's tests ask for."""
    wanted: dict[str, list[Scenario]] = {}
    for item in request.session.items:
        if item.parent is request.node and isinstance(item, pytest.Function):
            chosen = item.callspec.params
            wanted.setdefault(cast(Setting, chosen["setting"]).name, []).append(cast(Scenario, chosen["scenario"]))
    with KruiseCluster(flags=ALONE) as cluster:
        yield Theatre(cluster, wanted)
