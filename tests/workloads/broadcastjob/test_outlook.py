"""What `kruise plan` tells of a BroadcastJob: its nodes, in their order."""

from __future__ import annotations

from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS
from kruise.faces.outlook import Seen
from kruise.machinery import codec
from kruise.model.world import Json
from kruise.workloads.broadcastjob.outlook import OUTLOOK
from tests.workloads.broadcastjob.modelled import ModelledJob, document


def rows(model: ModelledJob) -> list[tuple[str, ...]]:
    given: Json = codec.to_builtins(model.job)
    seen = Seen(now=model.now, objects={NODES: model.world.store(NODES).list(), PODS: model.pods})
    return list(OUTLOOK.tell(given, seen).rows)


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
