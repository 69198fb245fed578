"""What a node says of a resize that it does not grant."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.api.native.pod import Pod
from kruise.inplace import engine, keys
from kruise.inplace.difference import InPlaceOptions
from kruise.inplace.resizing import RefusedResize, is_resizing, refused_resize
from kruise.inplace.state import UpdateState, state_json
from kruise.machinery import codec
from tests.support.clonesets import NOW

PENDING = {"type": "PodResizePending", "status": "True", "reason": "Infeasible", "message": "not enough cpu"}
UNDER_WAY = {"type": "PodResizeInProgress", "status": "True"}


def resized(**status: Any) -> Pod:
    state = UpdateState(revision="web-2", update_resources=True)
    asked = {"requests": {"cpu": "2"}}
    document = {
        "metadata": {
            "name": "web-a",
            "generation": 3,
            "annotations": {keys.UPDATE_STATE_ANNOTATION: state_json(state)},
        },
        "spec": {"nodeName": "node-1", "containers": [{"name": "main", "image": "nginx:1", "resources": asked}]},
        "status": {
            "containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
            **status,
        },
    }
    return codec.convert(document, Pod)


@pytest.mark.parametrize(
    ("status", "found"),
    [
        ({}, None),
        ({"conditions": [PENDING]}, RefusedResize("Infeasible", "not enough cpu")),
        ({"conditions": [{**PENDING, "reason": "Deferred"}]}, RefusedResize("Deferred", "not enough cpu")),
        ({"conditions": [{**PENDING, "observedGeneration": 3}]}, RefusedResize("Infeasible", "not enough cpu")),
        ({"conditions": [{**PENDING, "observedGeneration": 2}]}, None),
        ({"conditions": [{**PENDING, "status": "False"}]}, None),
        ({"resize": "Infeasible"}, RefusedResize("Infeasible", "")),
        ({"resize": "Deferred"}, RefusedResize("Deferred", "")),
        ({"resize": "InProgress"}, None),
        ({"conditions": [UNDER_WAY]}, None),
        ({"conditions": [{**UNDER_WAY, "reason": "Error", "message": "busy"}]}, RefusedResize("Error", "busy")),
    ],
)
def test_both_ways_to_say_it(status: dict[str, Any], found: RefusedResize | None) -> None:
    assert refused_resize(resized(**status)) == found


def test_what_is_granted_and_not_there_yet_is_under_way() -> None:
    assert is_resizing(resized(conditions=[UNDER_WAY]))
    assert is_resizing(resized(resize="InProgress"))
    assert not is_resizing(resized(conditions=[PENDING]))
    assert not is_resizing(resized(conditions=[{**UNDER_WAY, "observedGeneration": 2}]))


def test_a_look_tells_what_the_node_said() -> None:
    options = InPlaceOptions.of({"InPlaceWorkloadVerticalScaling": True})
    seen = engine.refresh(resized(conditions=[PENDING]), options=options, now=NOW)
    assert seen.refused == RefusedResize("Infeasible", "not enough cpu")
    assert seen.awaiting == "the node refuses the new resources (Infeasible: not enough cpu)"
    waiting = engine.refresh(resized(), options=options, now=NOW)
    assert waiting.refused is None
    assert waiting.awaiting == "container main does not have its new resources yet"
