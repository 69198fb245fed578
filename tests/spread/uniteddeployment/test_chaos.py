"""The manager killed at every write in turn: whatever was half done, the next one goes on from there; and what a pass
over many subsets costs."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.uniteddeployment import UnitedDeployment
from kruise.api.native.apps import CONTROLLER_REVISIONS, DEPLOYMENTS
from kruise.manager.options import Options
from kruise.model.world import Json
from kruise.spread.uniteddeployment import keys
from kruise.spread.uniteddeployment.controller import controllers
from kruise.spread.uniteddeployment.memo import Memo
from tests.spread.uniteddeployment.objects import child, look, pods, united
from tests.support.killed import Killed
from tests.support.modelled import Modelled

LABELS = {"app": "web"}


def document(**spec: Any) -> Json:
    pod = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "main", "image": "i:1"}]}}
    inner = {"selector": {"matchLabels": LABELS}, "template": pod}
    return {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "UnitedDeployment",
        "metadata": {"name": "web", "namespace": "demo"},
        "spec": {
            "replicas": 7,
            "selector": {"matchLabels": LABELS},
            "template": {"cloneSetTemplate": {"metadata": {"labels": LABELS}, "spec": inner}},
            "topology": {"subsets": [{"name": "a", "replicas": 1}, {"name": "b"}, {"name": "c"}]},
            **spec,
        },
    }


class ModelledUnited(Modelled[UnitedDeployment]):
    """Its children do nothing by themselves."""

    def __init__(self) -> None:
        [spec] = controllers(Options())
        super().__init__(spec, document())

    @property
    def sizes(self) -> dict[str, int]:
        found = self.world.store(CLONE_SETS).list()
        return {one.metadata.labels[keys.SUBSET]: one.spec.replicas or 0 for one in found}


def _nothing(spec: Json) -> None:
    return None


def _scaled(spec: Json) -> None:
    spec["replicas"] = 9


def _another_image(spec: Json) -> None:
    inner = spec["template"]["cloneSetTemplate"]["spec"]["template"]["spec"]
    inner["containers"] = [{"name": "main", "image": "i:2"}]


def _other_subsets(spec: Json) -> None:
    spec["topology"]["subsets"] = [{"name": "b"}, {"name": "d", "replicas": 2}]


def _another_kind(spec: Json) -> None:
    inner = spec["template"].pop("cloneSetTemplate")
    inner["spec"].pop("selector")
    spec["template"]["deploymentTemplate"] = inner


STORIES = {
    "created": _nothing,
    "scaled": _scaled,
    "updated": _another_image,
    "other subsets": _other_subsets,
    "another kind": _another_kind,
}


def play(story: str, dies_at: int | None) -> Killed:
    model = ModelledUnited()
    if story != "created":
        Killed(model, None).run(6)
        model.edit_spec(STORIES[story])

    def wrote(outcome: Any) -> None:
        found = model.world.store(CLONE_SETS).list()
        per_subset = Counter(one.metadata.labels[keys.SUBSET] for one in found)
        assert max(per_subset.values(), default=0) <= 1, "a subset has two workloads"

    killed = Killed(model, dies_at, wrote=wrote)
    killed.run(8)
    return killed


def state(killed: Killed) -> tuple[Any, ...]:
    model = killed.model
    assert isinstance(model, ModelledUnited)
    worn = {one.metadata.labels[keys.REVISION] for one in model.world.store(CLONE_SETS).list()}
    revisions = sorted(one.revision for one in model.world.store(CONTROLLER_REVISIONS).list())
    deployments = len(model.world.store(DEPLOYMENTS).list())
    return model.sizes, len(worn), revisions, deployments, model.subject.status.updated_revision


@pytest.mark.parametrize("story", list(STORIES))
def test_whatever_was_half_done_is_finished(story: str) -> None:
    """UD-50, UD-52, UD-53, UD-78: the same end, and never two workloads of one subset."""
    whole = play(story, None)
    assert whole.writes
    for number in range(whole.writes):
        cut = play(story, number)
        assert cut.died
        assert state(cut) == state(whole), f"killed at write {number + 1} of {whole.writes}"


def test_once_there_nothing_is_written() -> None:
    """UD-78, UD-84."""
    model = ModelledUnited()
    Killed(model, None).run(6)
    assert model.sizes == {"a": 1, "b": 3, "c": 3}
    before = model.writes
    Killed(model, None).run(6)
    assert model.writes == before


def test_many_subsets() -> None:
    """50 subsets with 2,000 pods: what is counted is right, and those that are as they should be are not written to."""
    subject = united([{"name": f"s{number:02d}"} for number in range(50)], replicas=2000)
    children = [child(subject, f"s{number:02d}", 40) for number in range(50)]
    members = [pod for one in children for pod in pods(one, 40)]
    _, plan = look(subject, children, members)
    assert list(plan.actions()) == []
    memo = plan.memo_as(Memo)
    assert (memo.replicas, memo.ready, memo.updated) == (2000, 2000, 2000)
