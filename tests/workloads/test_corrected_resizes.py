"""Resources that one node grants and another one does not: a correction reaches the pod that lacks them, though it
serves, and though others stand before it. These wait for it, since it counts as down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.native.pod import Container
from kruise.inplace.resizing import DEFERRED, INFEASIBLE, RefusedResize
from kruise.model.world import Json
from tests.support.kubelets_by_hand import Kubelets
from tests.support.modelled import ModelledWorkload
from tests.workloads.cloneset.modelled import ModelledCloneSet
from tests.workloads.daemonset import modelled as daemons
from tests.workloads.statefulset import modelled as sets

GATES = {"InPlaceWorkloadVerticalScaling": True}
IN_PLACE = {"podUpdatePolicy": "InPlaceIfPossible"}
Make = Callable[[], ModelledWorkload[Any]]


def template() -> Json:
    made = sets.template()
    made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    return made


def cloneset(rolling: Mapping[str, Any]) -> Make:
    document = {
        "apiVersion": CLONE_SETS.api_version,
        "kind": CLONE_SETS.kind,
        "metadata": {"name": "web", "namespace": "demo"},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template(),
            "updateStrategy": {"rollingUpdate": {**IN_PLACE, **rolling}},
        },
    }
    return lambda: ModelledCloneSet(document, gates=GATES)


def stateful(rolling: Mapping[str, Any], *, parallel: bool) -> Make:
    document = sets.document(3, parallel=parallel, rolling={**IN_PLACE, **rolling}, template=template())
    return lambda: sets.ModelledStatefulSet(document, gates=GATES)


def daemon() -> ModelledWorkload[Any]:
    rolling = {"maxUnavailable": 1, "rollingUpdateType": "InPlaceIfPossible"}
    return daemons.ModelledDaemonSet(daemons.document(rolling, template=template()), gates=GATES)


CASES: Mapping[str, Make] = {
    "cloneset": cloneset({"maxUnavailable": 1}),
    "cloneset that surges": cloneset({"maxUnavailable": 0, "maxSurge": 1}),
    "statefulset in order": stateful({}, parallel=False),
    "statefulset all at once": stateful({"maxUnavailable": 1}, parallel=True),
    "statefulset without order": stateful({"maxUnavailable": 1, "unorderedUpdate": {}}, parallel=True),
    "daemonset": daemon,
}


def cpus(model: ModelledWorkload[Any]) -> list[str]:
    """What the pods have, not what they ask for."""
    found = [status.resources for pod in model.pods for status in pod.status.container_statuses]
    return sorted(str(has.requests["cpu"]) for has in found if has is not None)


@pytest.mark.parametrize("reason", [INFEASIBLE, DEFERRED])
@pytest.mark.parametrize("case", CASES)
def test_the_correction_reaches_the_pod_that_lacks_its_resources(case: str, reason: str) -> None:  # ST-75, CS-102
    model = CASES[case]()
    model.settle(20)

    def refuse(container: Container) -> RefusedResize | None:
        return RefusedResize(reason, "no room") if container.resources.requests["cpu"] == "2" else None

    model.set_cpus("2")
    while "2" not in cpus(model):
        model.settle(1)
    model.kubelets = Kubelets(model.world, grants=refuse)
    model.settle(20)
    assert cpus(model).count("2") == 1
    model.set_cpus("3")
    model.settle(60, seconds=5)
    assert set(cpus(model)) == {"3"}
