"""Whose pods a plan of a SidecarSet is about, and that pods are called by their names in every namespace."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.foresight.forecast import Forecast
from kruise.foresight.rendering.data import as_data
from kruise.foresight.rendering.lines import lines
from kruise.foresight.rendering.markdown import markdown
from kruise.foresight.rendering.report import Report
from kruise.foresight.whose import ALONE, Share, shares, workload_of
from kruise.sidecars.sidecarset.forecast import FORECAST
from tests.foresight.test_sidecarsets import NEW, OLD, TWO, pods, scene
from tests.support.sidecarsets import SIDE, pod, read, sidecar_set

Json = dict[str, Any]


def owned(whole: Json, kind: str, name: str, **labels: str) -> Json:
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "u", "controller": True}
    metadata = {**whole["metadata"], "ownerReferences": [reference]}
    return {**whole, "metadata": {**metadata, "labels": {**metadata["labels"], **labels}}}


@pytest.mark.parametrize(
    ("whole", "workload"),
    [
        (pod(), ALONE),
        (owned(pod(), "CloneSet", "web"), "cloneset/web"),
        (owned(pod(), "ReplicaSet", "web-5b6c", **{"pod-template-hash": "5b6c"}), "deployment/web"),
        (owned(pod(), "ReplicaSet", "web-5b6c"), "replicaset/web-5b6c"),
        (owned(pod(), "ReplicaSet", "web", **{"pod-template-hash": "5b6c"}), "replicaset/web"),
    ],
)
def test_the_workload_of_a_pod(whole: Json, workload: str) -> None:
    assert workload_of(read(whole)) == workload


def report(manifest: Json) -> Report:
    there = [owned(one, "CloneSet", "web") for one in pods(OLD, *TWO)] + pods(OLD, ("two", "alone"))
    found = scene(OLD, *there).foresee(manifest)
    return _report(found, there)


def _report(found: Forecast, there: list[Json]) -> Report:
    known = [read(one) for one in there]
    names = frozenset(map(FORECAST.name_of, known))
    return Report(subject="sidecarset/logs", forecast=found, pods=names, shares=shares(known, FORECAST, found))


def test_pods_are_named_and_counted_by_workload() -> None:
    """SCS-91: which pods, in which order, and whose they are."""
    told = report(NEW)
    assert told.shares == (
        Share(workload="cloneset/web", namespace="one", changing=1, staying=0),
        Share(workload="cloneset/web", namespace="two", changing=1, staying=0),
        Share(workload=ALONE, namespace="two", changing=1, staying=0),
    )
    text = "\n".join(lines(told))
    assert "Workloads:   cloneset/web in one (1 changes), cloneset/web in two (1 changes), no workload in two" in text
    assert "one/web-1" in text
    assert "new pod" not in text
    data = as_data(told)
    assert all(move["exists"] for wave in data["waves"] for move in wave["moves"])
    assert data["workloads"][0] == {"workload": "cloneset/web", "namespace": "one", "changing": 1, "staying": 0}
    assert markdown(told).startswith("### Plan for `sidecarset/logs`\n")


def test_pods_that_cannot_be_updated_are_counted_by_workload() -> None:
    """SCS-95."""
    changed = sidecar_set(containers=[{**SIDE, "image": "nginx:1.26", "env": [{"name": "A", "value": "b"}]}])
    assert [(one.changing, one.staying) for one in report(changed).shares] == [(0, 1)] * 3
