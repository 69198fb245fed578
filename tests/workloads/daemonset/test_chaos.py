"""The manager killed at every write in turn: whatever was half done, the next one goes on from there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from kruise.api.native.daemon_pods import target_node
from kruise.api.native.pod import is_active
from kruise.machinery.plan import Outcome
from kruise.model.world import Json
from tests.support.killed import Killed
from tests.workloads.daemonset.modelled import ModelledDaemonSet, document
from tests.workloads.daemonset.test_rules import IN_PLACE
from tests.workloads.daemonset.test_rules_more import ALONE, tainted

Change = Callable[[ModelledDaemonSet], None]
HOOK = {"preDelete": {"labelsHandler": {"example.io/hold": "true"}}}


def _image(model: ModelledDaemonSet) -> None:
    model.set_image("nginx:2")


def _nodes(model: ModelledDaemonSet) -> None:
    model.add_node("node-3")
    model.add_node("node-4")
    tainted(model, "node-0", ALONE)


STORIES: dict[str, tuple[Json, Change, int]] = {
    "created": (document(), lambda model: None, 1),
    "made anew": (document(), _image, 1),
    "in place": (document(IN_PLACE), _image, 1),
    "surging": (document({"maxSurge": 2, "maxUnavailable": 0}), _image, 2),
    "nodes come and go": (document(lifecycle=HOOK), _nodes, 1),
}


def play(story: str, dies_at: int | None) -> Killed:
    given, change, most = STORIES[story]
    model = ModelledDaemonSet(given)
    if story != "created":
        model.settle(12)
    change(model)

    def wrote(outcome: Outcome) -> None:
        alive = Counter(target_node(pod) for pod in model.pods if is_active(pod))
        assert max(alive.values(), default=0) <= most, f"too many pods on a node: {alive}"

    killed = Killed(model, dies_at, wrote=wrote)
    killed.run(50)
    return killed


def state(killed: Killed) -> tuple[Any, ...]:
    model = killed.model
    assert isinstance(model, ModelledDaemonSet)
    status = model.daemon_set.status
    return (
        sorted(model.images.items()),
        len(model.revisions),
        (status.desired_number_scheduled, status.number_available, status.updated_number_scheduled),
        status.observed_generation,
    )


@pytest.mark.parametrize("story", STORIES)
def test_a_manager_may_die_at_every_write(story: str) -> None:  # DS-37
    undisturbed = play(story, None)
    assert undisturbed.writes > 3
    for place in range(undisturbed.writes):
        killed = play(story, place)
        assert killed.died
        assert state(killed) == state(undisturbed), f"killed at write {place}"
