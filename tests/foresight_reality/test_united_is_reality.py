"""Forecasts of UnitedDeployments are what the cluster then does, whoever decides about the workloads of subsets."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from kruise.api.apps.uniteddeployment import UNITED_DEPLOYMENTS
from kruise.api.meta import Key
from kruise.api.native.pod import Pod
from kruise.api.resource import Resource
from kruise.cli.plan_deciding import deciders
from kruise.foresight import foresee, needed
from kruise.foresight.forecast import Forecast
from kruise.machinery import codec
from kruise.machinery.client.requests import PatchType
from kruise.spread.uniteddeployment import keys
from tests.foresight_reality.cases import Case
from tests.foresight_reality.comparison import Verdict, differences, report
from tests.foresight_reality.reality import Outcome, Reality
from tests.scenarios.stage import Pace
from tests.scenarios.united import MEMBERS, NEW, UnitedStage
from tests.support.rollout_log import RolloutLog, is_leaving, watching
from tests.support.world import Json, LocalWorld, run_local

SIZES = {"a": 1, "b": 4, "c": 3}
LABELS = "app=web"
CALM = 180.0
"""Seconds after which all is over."""


def another_image(spec: Json, member: str) -> None:
    spec["template"][member]["spec"]["template"]["spec"]["containers"][0]["image"] = NEW


def an_image_for_some(spec: Json, member: str) -> None:
    another_image(spec, member)
    spec["updateStrategy"] = {"manualUpdate": {"partitions": {"a": 1, "b": 2}}}


def more_pods(spec: Json, member: str) -> None:
    spec["replicas"] = 13


def fewer_pods(spec: Json, member: str) -> None:
    spec["replicas"] = 4


CHANGES: list[Callable[[Json, str], None]] = [another_image, an_image_for_some, more_pods, fewer_pods]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("member", MEMBERS)
def test_forecasts_come_true(member: str, change: Callable[[Json, str], None]) -> None:
    """Order, final state, worst availability and most pods.

    One node for each subset: among several that are as good the scheduler draws one, and a ReplicaSet gives up pods by
    what else is on their nodes.
    """
    found: list[Outcome] = []

    async def scenario(world: LocalWorld) -> None:
        stage = UnitedStage(world, gates={}, pace=Pace(within=600.0))
        await stage.label_nodes()
        subsets = [stage.subset("a", replicas=1), stage.subset("b", replicas="50%"), stage.subset("c")]
        await stage.create(member=member, subsets=subsets, replicas=sum(SIZES.values()))
        await stage.settles(SIZES)
        await asyncio.sleep(CALM)
        async with watching(world.client, world.namespace, LABELS, world.clock) as log:
            live = await world.get(UNITED_DEPLOYMENTS, "web")
            changed: Json = codec.decode(codec.encode(live), dict[str, Any])
            change(changed["spec"], member)
            forecast = await foreseen(world, live, changed)
            body = [{"op": "replace", "path": "/spec", "value": changed["spec"]}]
            await world.patch(UNITED_DEPLOYMENTS, "web", body, patch_type=PatchType.JSON)
            await asyncio.sleep(CALM)
            case = Case(seed=0, manifest=live, steps=(), change=())
            found.append(Outcome(case=case, forecast=forecast, reality=seen(world, log)))

    run_local(scenario, nodes=3)
    [outcome] = found
    assert isinstance(outcome.forecast, Forecast)
    assert outcome.forecast.moves, "nothing was foreseen"
    wrong = tuple(differences(outcome))
    assert not wrong, report([Verdict(outcome.case, wrong)])


async def foreseen(world: LocalWorld, live: Json, changed: Json) -> Forecast:
    features = deciders(UNITED_DEPLOYMENTS, world.options)
    objects: dict[Resource[Any], Any] = {}
    for need in needed(UNITED_DEPLOYMENTS, live, features=features, settings=world.options):
        objects[need.resource] = (await world.client.list(need.resource, need.namespace, labels=need.selector)).items
    objects[UNITED_DEPLOYMENTS] = (codec.convert(live, UNITED_DEPLOYMENTS.type),)
    return foresee(
        UNITED_DEPLOYMENTS,
        Key(world.namespace, "web"),
        changed,
        objects,
        features=features,
        settings=world.options,
        now=world.clock.now(),
    )


def seen(world: LocalWorld, log: RolloutLog) -> Reality:
    there = {pod.metadata.name: pod for pod in log.pods}
    return Reality(
        signs=tuple(log.signs),
        start=tuple(sorted(pod.metadata.name for pod in log.start.values() if not is_leaving(pod))),
        fewest_available=log.fewest_available(0),
        most_pods=log.most_pods(),
        available_after=log.available(0, world.clock.now()),
        by_revision=Counter(map(revision_of, log.pods)),
        survivors=tuple(sorted(name for name, pod in there.items() if pod.metadata.uid in log.start)),
        pods={name: revision_of(pod) for name, pod in there.items()},
        seconds=log.signs[-1].at if log.signs else 0.0,
    )


def revision_of(pod: Pod) -> str:
    return pod.metadata.labels.get(keys.REVISION, "").rpartition("-")[2]
