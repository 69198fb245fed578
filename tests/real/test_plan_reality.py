"""Forecasts against a real control plane: with simulated nodes, and on three real nodes.

The cases are those of `tests/foresight_reality` that suit real time. They are compared wave by wave as there: the order
within a wave is free, since pods of one wave take times of their own.
"""

from __future__ import annotations

import asyncio
import itertools
import traceback
from collections.abc import Callable, Iterator

import pytest

from kruise.api.native.nodes import NODES
from kruise.manager.options import Options
from tests.foresight_reality.cases import Case, make_case, suits_real_nodes, suits_real_time
from tests.foresight_reality.comparison import Verdict, differences, report, told
from tests.foresight_reality.local import SHARE, judge, share
from tests.foresight_reality.reality import Patience, play
from tests.support.kruisecluster import KruiseCluster
from tests.support.realnodes import RealNodes

ON_SIMULATED_NODES = 20
ON_REAL_NODES = 5
AT_A_TIME = 4
ON_VIRTUAL_TIME = 400


def _chosen(suits: Callable[[Case], bool], count: int) -> list[Case]:
    return list(itertools.islice(filter(suits, map(make_case, itertools.count())), count))


def _patience(case: Case) -> Patience:
    """Longer than anything that a case waits for by itself: a pull, a start, minReadySeconds, a grace period."""
    spec = case.manifest["spec"]
    rolling = spec["updateStrategy"]["rollingUpdate"]
    grace = (rolling.get("inPlaceUpdateStrategy") or {}).get("gracePeriodSeconds", 0)
    slow = (spec["template"]["metadata"].get("annotations") or {}).get("sim.kruise.io/slow-start", 0)
    changed = sum(edit.value for edit in case.change if edit.what == "min-ready")
    calm = 10.0 + grace + float(slow) + max(spec.get("minReadySeconds", 0), changed)
    return Patience(calm=calm, most=300.0, every=0.5)


async def _play(cluster: KruiseCluster, case: Case, namespace: str) -> str:
    """What differed, in words; empty: nothing."""
    await asyncio.to_thread(cluster.plane.create_namespace, namespace)
    try:
        async with cluster.world(namespace) as world:
            outcome = await play(world, case, Options(), _patience(case))
            return told(outcome) if differences(outcome) else ""
    except Exception:  # noqa: BLE001 - each test tells its own failure, whatever it is
        return f"{case.text()}\n{traceback.format_exc()}"
    finally:
        await asyncio.to_thread(cluster.plane.delete_namespace, namespace)


class Results:
    """Cases are played side by side when the first of them is asked for."""

    def __init__(self, cluster: KruiseCluster, cases: list[Case]) -> None:
        self._cluster = cluster
        self._cases = cases
        self._found: dict[int, str] = {}

    def of(self, case: Case) -> str:
        if not self._found:
            asyncio.run(self._play_all())
        return self._found[case.seed]

    async def _play_all(self) -> None:
        turns = asyncio.Semaphore(AT_A_TIME)

        async def take_turn(case: Case) -> None:
            async with turns:
                self._found[case.seed] = await _play(self._cluster, case, f"case-{case.seed}")

        async with self._cluster.world("default") as world:

            async def nodes_are_there() -> None:
                assert len((await world.client.list(NODES)).items) >= 4

            await world.until(nodes_are_there)
        async with asyncio.TaskGroup() as group:
            for case in self._cases:
                group.create_task(take_turn(case), name=f"case {case.seed}")


_SIMULATED = _chosen(suits_real_time, ON_SIMULATED_NODES)
_REAL = _chosen(suits_real_nodes, ON_REAL_NODES)


@pytest.fixture(scope="module")
def simulated() -> Iterator[Results]:
    # Nobody else wants to lead here, and a busy machine must not cost it the lead.
    with KruiseCluster(nodes=4, flags=("--enable-leader-election=false",)) as cluster:
        yield Results(cluster, _SIMULATED)


@pytest.mark.parametrize("case", _SIMULATED, ids=lambda case: f"case-{case.seed}")
def test_a_forecast_comes_true_on_a_real_control_plane(simulated: Results, case: Case) -> None:
    wrong = simulated.of(case)
    assert not wrong, wrong


@pytest.mark.nodes
@pytest.mark.parametrize("case", _REAL, ids=lambda case: f"case-{case.seed}")
def test_a_forecast_comes_true_on_real_nodes(
    kruise_on_nodes: KruiseCluster, real_nodes: RealNodes, nodes_namespace: str, case: Case
) -> None:
    wrong = asyncio.run(_on_nodes(kruise_on_nodes, case, nodes_namespace))
    assert not wrong, f"{wrong}\n{real_nodes.kubectl('get', 'pods', '--all-namespaces', '--output=wide')}"


async def _on_nodes(cluster: KruiseCluster, case: Case, namespace: str) -> str:
    async with cluster.world(namespace) as world:
        outcome = await play(world, case, Options(), _patience(case))
        return told(outcome) if differences(outcome) else ""


def test_hundreds_of_forecasts_come_true_on_virtual_time() -> None:
    """More than `make test` has time for; it needs no cluster. The share is printed with every case that differed."""
    verdicts: list[Verdict] = judge(range(ON_VIRTUAL_TIME))
    print(report(verdicts))
    assert len(verdicts) >= 300
    assert share(verdicts) >= SHARE, report(verdicts)
