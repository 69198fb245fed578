"""The manager killed at every write in turn: whatever was half done, the next one goes on from there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kruise.inplace import keys
from kruise.machinery.client.requests import Verb
from kruise.machinery.plan import Outcome, Result
from kruise.model.world import Json
from tests.support.killed import Killed
from tests.support.modelled import BROKEN
from tests.workloads.statefulset.modelled import CLAIM, IN_PLACE, ModelledStatefulSet, document

Change = Callable[[ModelledStatefulSet], None]
DELETE_BOTH = {"whenDeleted": "Delete", "whenScaled": "Delete"}


def _image(image: str) -> Change:
    return lambda model: model.set_image(image)


def _spec(**fields: Any) -> Change:
    return lambda model: model.edit_spec(lambda spec: spec.update(fields))


STORIES: dict[str, tuple[Json, Change]] = {
    "created": (document(0, volumeClaimTemplates=[CLAIM]), _spec(replicas=3)),
    "recreated": (document(3, volumeClaimTemplates=[CLAIM]), _image("nginx:2")),
    "updated in place": (document(3, rolling=IN_PLACE), _image("nginx:2")),
    "scaled away": (
        document(3, volumeClaimTemplates=[CLAIM], persistentVolumeClaimRetentionPolicy=DELETE_BOTH),
        _spec(replicas=1),
    ),
    "all at once": (document(4, parallel=True, rolling={"maxUnavailable": "50%"}), _image("nginx:2")),
    "moved": (document(3, volumeClaimTemplates=[CLAIM]), _spec(reserveOrdinals=[1])),
}


def play(story: str, dies_at: int | None) -> Killed:
    given, change = STORIES[story]
    model = ModelledStatefulSet(given)
    model.settle(40)
    change(model)

    def wrote(outcome: Outcome) -> None:
        if outcome.result is not Result.DONE or outcome.action.target.resource.plural != "pods":
            return
        names = model.names
        assert len(names) == len(set(names)), f"two pods of one name: {names}"
        if outcome.action.verb is Verb.CREATE:
            pod = model.pod(outcome.action.target.name)
            assert pod is not None
            assert pod.metadata.deletion_timestamp is None

    killed = Killed(model, dies_at, wrote=wrote)
    killed.run()
    return killed


def _state(killed: Killed) -> tuple[Any, ...]:
    model = killed.model
    assert isinstance(model, ModelledStatefulSet)
    status = model.statefulset.status
    return (
        model.images,
        {pod.metadata.name: pod.metadata.labels[keys.STATE_LABEL] for pod in model.pods},
        {claim.metadata.name: [ref.kind for ref in claim.metadata.owner_references] for claim in model.claims},
        (status.replicas, status.available_replicas, status.updated_replicas, status.current_revision),
    )


@pytest.mark.parametrize("story", STORIES)
def test_a_manager_may_die_at_every_write(story: str) -> None:  # ST-131
    undisturbed = play(story, None)
    assert BROKEN not in {pod.spec.containers[0].image for pod in undisturbed.model.pods}
    for place in range(undisturbed.writes):
        killed = play(story, place)
        assert killed.died
        assert _state(killed) == _state(undisturbed), f"killed at write {place}"
