"""Forecasts of UnitedDeployments: children and their rollouts are played, and subsets are told with their reasons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kruise import kinds
from kruise.api.apps.uniteddeployment import UNITED_DEPLOYMENTS, UnitedDeployment
from kruise.api.meta import Key
from kruise.api.native.nodes import NODES, Node
from kruise.api.native.pod import Pod
from kruise.feature import Feature
from kruise.foresight import ForesightError, foresee, needed
from kruise.foresight.forecast import Forecast
from kruise.local.workloads.controllers import CHILDREN
from kruise.machinery.codec import convert
from kruise.manager.options import Options
from kruise.spread.uniteddeployment import keys
from kruise.spread.uniteddeployment.forecast import FORECAST
from tests.spread.uniteddeployment.objects import NOW

OPTIONS = Options()
DECIDING = (CHILDREN, *kinds.features())


def manifest(**spec: Any) -> dict[str, Any]:
    labels = {"app": "shop"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "nginx:1.25"}]}}
    inner = {"selector": {"matchLabels": labels}, "template": pod}
    return {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "UnitedDeployment",
        "metadata": {"name": "shop", "namespace": "default"},
        "spec": {
            "replicas": 6,
            "selector": {"matchLabels": labels},
            "template": {"cloneSetTemplate": {"metadata": {"labels": labels}, "spec": inner}},
            "topology": {"subsets": [{"name": "a", "replicas": 1}, {"name": "b", "replicas": "50%"}, {"name": "c"}]},
            **spec,
        },
    }


def nodes(count: int) -> tuple[Node, ...]:
    amounts = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    return tuple(
        convert({"metadata": {"name": f"n{n}", "uid": f"n{n}"}, "status": {"allocatable": amounts}}, Node)
        for n in range(count)
    )


def over(member: str, **more: Any) -> dict[str, Any]:
    """The same over workloads of another kind."""
    body = manifest()
    inner = body["spec"]["template"]["cloneSetTemplate"]["spec"]
    body["spec"]["template"] = {member: {"metadata": {"labels": {"app": "shop"}}, "spec": {**inner, **more}}}
    return body


def foreseen(body: dict[str, Any], features: Sequence[Feature] = DECIDING) -> Forecast:
    needs = needed(UNITED_DEPLOYMENTS, body, features=features, settings=OPTIONS)
    assert {"clonesets", "pods", "persistentvolumeclaims", "controllerrevisions"} <= {n.resource.plural for n in needs}
    return foresee(
        UNITED_DEPLOYMENTS,
        Key("default", "shop"),
        body,
        {**{need.resource: () for need in needs}, NODES: nodes(3)},
        features=features,
        settings=OPTIONS,
        now=NOW,
    )


def test_a_new_one_is_played_through() -> None:
    """Its children's own decisions make the pods; each subset is told with its size and its reason."""
    forecast = foreseen(manifest())
    assert forecast.is_complete
    assert (forecast.replicas, forecast.available_after, forecast.most_pods) == (6, 6, 6)
    assert forecast.parts == (
        "a: 1 pod (replicas 1)",
        "b: 3 pods (replicas 50% of 6)",
        "c: 2 pods (an even share of the 2 that no subset asks for, among 1)",
    )
    assert len(forecast.moves) == 6


def test_a_mark_that_comes_and_goes_is_not_looked_at_for_ever() -> None:
    """UD-61: a subset that keeps its minimum without nodes is tried again and again. The forecast ends and tells it."""
    nowhere = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["nowhere"]}]}
    adaptive = {"rescheduleCriticalSeconds": 10, "unschedulableDuration": 10}
    subsets = [{"name": "a", "nodeSelectorTerm": nowhere, "minReplicas": 1, "maxReplicas": 2}, {"name": "b"}]
    schedule = {"type": "Adaptive", "adaptive": adaptive}
    forecast = foreseen(manifest(topology={"subsets": subsets, "scheduleStrategy": schedule}))
    assert not forecast.is_cut
    assert forecast.parts == (
        "a: 1 pod (its pods find no node: it keeps the 0 that are ready, and minReplicas 1)",
        "b: 5 pods (minReplicas 0, no maxReplicas, in the order of the subsets)",
    )
    assert {stop.code for stop in forecast.stops} == {"subset-unschedulable", "unscheduled"}


@pytest.mark.parametrize(
    ("member", "more", "first"),
    [
        ("deploymentTemplate", {}, 6),
        ("statefulSetTemplate", {}, 3),
        ("statefulSetTemplate", {"podManagementPolicy": "Parallel"}, 6),
        ("advancedStatefulSetTemplate", {}, 3),
    ],
)
def test_children_of_all_kinds_are_played(member: str, more: dict[str, Any], first: int) -> None:
    """Those of Kubernetes, too: pods of StatefulSets come one after the other, each subset for itself."""
    forecast = foreseen(over(member, **more))
    assert forecast.is_complete, forecast.stops
    assert (forecast.replicas, forecast.available_after, forecast.most_pods) == (6, 6, 6)
    assert len(forecast.waves[0].moves) == first
    assert len(forecast.moves) == 6


def test_nothing_is_foreseen_where_nobody_decides_about_the_children() -> None:
    """No figure is printed that nobody has foreseen."""
    with pytest.raises(ForesightError, match=r"nobody here decides about statefulsets\.apps"):
        foreseen(over("deploymentTemplate"), features=kinds.features())


def test_workloads_of_others_are_not_read() -> None:
    """Their pods are not either, and so they would be made anew in a forecast, and take room on the nodes."""
    needs = needed(UNITED_DEPLOYMENTS, manifest(), features=DECIDING, settings=OPTIONS)
    found = {(need.resource.group, need.resource.plural): need.selector for need in needs}
    workloads = [("apps.kruise.io", "clonesets"), ("apps.kruise.io", "statefulsets")]
    workloads += [("apps", plural) for plural in ("deployments", "replicasets", "statefulsets")]
    assert [found[one] for one in workloads] == ["app=shop"] * 5


def test_the_pods_of_another_one_whose_name_begins_alike_are_not_its_own() -> None:
    united = convert(manifest(), UnitedDeployment)
    for revision, wanted in (("shop-5d9c", True), ("shop-2-5d9c", False), ("", False)):
        pod = convert({"metadata": {"name": "p", "labels": {keys.REVISION: revision}}}, Pod)
        assert FORECAST.owns(united, pod) is wanted
