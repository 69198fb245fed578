"""What `kruise plan` tells of a BroadcastJob: its nodes, in their order."""

from __future__ import annotations

from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS
from kruise.faces.outlook import Outlook, Seen
from kruise.machinery import codec
from kruise.model.world import Json
from kruise.workloads.broadcastjob.outlook import OUTLOOK
from tests.workloads.broadcastjob.modelled import ModelledJob, document


def outlook(model: ModelledJob) -> Outlook:
    given: Json = codec.to_builtins(model.job)
    seen = Seen(now=model.now, objects={NODES: model.world.store(NODES).list(), PODS: model.pods})
    return OUTLOOK.outlook(given, seen)


def rows(model: ModelledJob) -> list[tuple[str, ...]]:
    return list(outlook(model).rows)


def test_nodes_in_turn() -> None:  # BJ-61
    model = ModelledJob(document(parallelism=2), nodes=5)
    model.reconcile()
    model.end("node-0")
    assert [row[:3] for row in rows(model)] == [
        ("node-0", "-", "succeeded"),
        ("node-1", "-", "active"),
        ("node-2", "1", "to come"),
        ("node-3", "2", "to come"),
        ("node-4", "2", "to come"),
    ]


def test_a_node_that_does_not_suit_any_more_is_named_though_its_pod_is_not_placed() -> None:  # BJ-21, BJ-25
    model = ModelledJob(nodes=2)
    model.reconcile()
    assert not model.on("node-1").spec.node_name
    model.edit_node("node-1", lambda doc: doc.update(spec={"unschedulable": True}))
    assert rows(model)[-1] == ("node-1", "-", "left out", "it is cordoned")


def test_one_that_never_completes_and_has_failed_serves_no_more_nodes() -> None:  # BJ-51
    model = ModelledJob(document(parallelism=1, completionPolicy={"type": "Never"}))
    model.reconcile()
    model.end("node-0", "Failed")
    model.reconcile()
    assert [row[:2] for row in rows(model)] == [("node-0", "-"), ("node-1", "never"), ("node-2", "never")]
    assert outlook(model).notes == ("it is failed: no more pods are made",)


def test_a_failed_pod_that_pauses_it_is_named() -> None:  # BJ-39
    model = ModelledJob(document(parallelism=1, failurePolicy={"type": "Pause"}))
    model.reconcile()
    model.end("node-0", "Failed")
    model.reconcile()
    name = model.on("node-0").metadata.name
    assert outlook(model).notes == (f"a failed pod pauses it ({name}): no pods are made until it is deleted",)
