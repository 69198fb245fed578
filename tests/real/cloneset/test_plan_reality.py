"""Forecasts against a real control plane: with simulated nodes, and on three real nodes.

The cases are those of `tests/foresight_reality`: the first ones that suit real time and have two waves or more, whether
they come true or not. They are compared wave by wave as there: the order within a wave is free, since pods of one wave
take times of their own.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence

import pytest

from kruise.api.native.nodes import NODES
from kruise.foresight.forecast import Forecast
from kruise.manager.options import Options
from tests.foresight_reality.cases import Case, make_case, suits_real_nodes, suits_real_time
from tests.foresight_reality.comparison import Difference, Verdict, differences, report, told
from tests.foresight_reality.local import SHARE, judge, share
from tests.foresight_reality.reality import Patience, play
from tests.support.examples import EXAMPLES
from tests.support.kruisecluster import ALONE, KruiseCluster
from tests.support.realnodes import RealNodes

ON_SIMULATED_NODES = (4, 37, 46, 72, 73, 75, 79, 81, 89, 99, 102, 112, 114, 116, 123, 125, 128, 133, 140, 141)
ON_REAL_NODES = (174, 219, 221, 321, 324)
ON_VIRTUAL_TIME = 100 * EXAMPLES

pytestmark = pytest.mark.spread


def _patience(case: Case) -> Patience:
    """Longer than anything that a case waits for by itself: a pull, a start, minReadySeconds, a grace period."""
    spec = case.manifest["spec"]
    rolling = spec["updateStrategy"]["rollingUpdate"]
    grace = (rolling.get("inPlaceUpdateStrategy") or {}).get("gracePeriodSeconds", 0)
    slow = (spec["template"]["metadata"].get("annotations") or {}).get("sim.kruise.io/slow-start", 0)
    changed = sum(edit.value for edit in case.change if edit.what == "min-ready")
    calm = 10.0 + grace + float(slow) + max(spec.get("minReadySeconds", 0), changed)
    return Patience(calm=calm, most=300.0, every=0.5)


async def _judged(cluster: KruiseCluster, case: Case, namespace: str) -> Verdict:
    await asyncio.to_thread(cluster.plane.create_namespace, namespace)
    try:
        async with cluster.world(namespace) as world:
            outcome = await play(world, case, Options(), _patience(case))
    finally:
        await asyncio.to_thread(cluster.plane.delete_namespace, namespace)
    found = tuple(differences(outcome))
    if not (isinstance(outcome.forecast, Forecast) and len(outcome.forecast.waves) > 1):
        found = (*found, Difference("waves to compare", "two or more", outcome.forecast))
    if found:
        print(told(outcome))
    return Verdict(case, found)


async def _judge_all(cluster: KruiseCluster, cases: Sequence[Case], *, nodes: int, at_a_time: int) -> list[Verdict]:
    turns = asyncio.Semaphore(at_a_time)

    async def take_turn(case: Case) -> Verdict:
        async with turns:
            return await _judged(cluster, case, f"plan-{case.seed}-{uuid.uuid4().hex[:8]}")

    async with cluster.world("default") as world:

        async def nodes_are_there() -> None:
            assert len((await world.client.list(NODES)).items) >= nodes

        await world.until(nodes_are_there)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(take_turn(case), name=f"case {case.seed}") for case in cases]
    # Connections that were cut in the middle of a watch need a moment to close.
    await asyncio.sleep(0.5)
    return [task.result() for task in tasks]


def _check(verdicts: list[Verdict], *, chance: int) -> None:
    print(report(verdicts))
    assert sum(bool(verdict.differences) for verdict in verdicts) <= chance, report(verdicts)


_SIMULATED = [make_case(seed) for seed in ON_SIMULATED_NODES]
_REAL = [make_case(seed) for seed in ON_REAL_NODES]


@pytest.mark.long
def test_forecasts_come_true_on_a_real_control_plane() -> None:
    """With simulated nodes. Two may differ: where pods become available around a full second, or in another order, a
    rollout with surge or scattering chooses other pods next."""
    with KruiseCluster(nodes=4, flags=ALONE) as cluster:
        verdicts = asyncio.run(_judge_all(cluster, _SIMULATED, nodes=4, at_a_time=10))
    _check(verdicts, chance=2)


@pytest.mark.nodes
@pytest.mark.long
def test_forecasts_come_true_on_real_nodes(kruise_on_nodes: KruiseCluster, real_nodes: RealNodes) -> None:
    """Containers, pulls and probes are real; one may differ, for the same reason."""
    _check(asyncio.run(_judge_all(kruise_on_nodes, _REAL, nodes=3, at_a_time=3)), chance=1)


def test_the_cases_suit_a_real_cluster() -> None:
    assert all(map(suits_real_time, _SIMULATED))
    assert all(map(suits_real_nodes, _REAL))
    assert (len(_SIMULATED), len(_REAL)) == (20, 5)


def test_many_forecasts_come_true_on_virtual_time() -> None:
    """More than `make test` has time for; it needs no cluster. The share is printed with every case that differed."""
    verdicts: list[Verdict] = judge(range(ON_VIRTUAL_TIME))
    print(report(verdicts))
    assert len(verdicts) == ON_VIRTUAL_TIME
    assert share(verdicts) >= SHARE, report(verdicts)
