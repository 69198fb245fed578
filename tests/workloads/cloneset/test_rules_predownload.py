"""When a CloneSet has images pulled ahead of its rollout (IPU-150 to IPU-154)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kruise.api.meta import PartialObject
from kruise.machinery import codec
from kruise.machinery.client.requests import Verb
from kruise.machinery.plan import Action
from kruise.workloads.cloneset.decide import decide
from tests.support.clonesets import NEW, UID, make_cloneset, make_pod, make_situation

GATES = {"KruiseDaemon": True, "PreDownloadImageForInPlaceUpdate": True}
IN_PLACE = {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 1}
JOB = f"{NEW.metadata.name}-main"


def pulls(
    *,
    rolling: Mapping[str, Any] = IN_PLACE,
    gates: Mapping[str, bool] = GATES,
    served: bool = True,
    rollout: bool = True,
    ready: int = 0,
    jobs: tuple[PartialObject, ...] = (),
    **spec: Any,
) -> list[Action]:
    """What is done about images for five pods, `ready` of which are updated and ready."""
    pods = [make_pod(name, old=rollout and number >= ready) for number, name in enumerate("abcde")]
    found = make_situation(make_cloneset(replicas=5, rolling=rolling, **spec), pods, gates=gates, rollout=rollout)
    status = codec.evolve(found.cloneset.status, update_revision=NEW.metadata.name, updated_ready_replicas=ready)
    cloneset = codec.evolve(found.cloneset, status=status)
    plan = decide(codec.evolve(found.snapshot, cloneset=cloneset, pull_jobs_served=served, pull_jobs=jobs))
    return [
        action
        for phase in plan.phases
        if phase.name.startswith("pull-jobs")
        for chain in phase.chains
        for action in chain
    ]


def labels_of(actions: list[Action]) -> dict[str, str]:
    """Labels that the revision gets."""
    [patch] = [action for action in actions if action.target.resource.plural == "controllerrevisions"]
    labels: dict[str, str] = patch.body["metadata"]["labels"]
    return labels


def created(actions: list[Action]) -> list[str]:
    return [action.target.name for action in actions if action.verb is Verb.CREATE]


@pytest.mark.parametrize("paused", [False, True])
def test_a_job_for_each_new_image(paused: bool) -> None:  # IPU-150, IPU-152, IPU-153, CS-69: also while paused
    found = pulls(rolling={**IN_PLACE, "paused": paused})
    assert created(found) == [JOB]
    assert labels_of(found) == {"apps.kruise.io/pre-predownload-created": "true"}


@pytest.mark.parametrize(
    "rolling",
    [
        {"podUpdatePolicy": "ReCreate", "maxUnavailable": 1},
        {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": "100%"},
    ],
)
def test_it_is_given_up_for_good_where_it_cannot_help(rolling: dict[str, Any]) -> None:  # IPU-151
    found = pulls(rolling=rolling)
    assert created(found) == []
    assert labels_of(found) == {"apps.kruise.io/image-predownload-ignored": "true"}


@pytest.mark.parametrize(
    "options",
    [
        {"served": False},
        {"gates": {**GATES, "KruiseDaemon": False}},
        {"gates": {**GATES, "PreDownloadImageForInPlaceUpdate": False}},
    ],
)
def test_nothing_without_gates_and_kind(options: dict[str, Any]) -> None:  # IPU-150
    assert pulls(**options) == []


def test_it_waits_for_pods_that_are_updated_and_ready() -> None:  # IPU-150, IPU-154
    strategy = {"imagePreDownloadMinUpdatedReadyPods": 2, "imagePreDownloadParallelism": 3}
    rolling = {**IN_PLACE, "inPlaceUpdateStrategy": strategy}
    assert pulls(rolling=rolling, ready=1) == []
    [job, _] = pulls(rolling=rolling, ready=2)
    assert (job.target.name, job.body["spec"]["parallelism"]) == (JOB, 3)


def test_jobs_go_when_the_rollout_is_over() -> None:  # IPU-150
    reference = {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "CloneSet",
        "name": "web",
        "uid": UID,
        "controller": True,
    }
    metadata = {"name": JOB, "namespace": "demo", "uid": "uid-job", "ownerReferences": [reference]}
    job = codec.convert({"metadata": metadata}, PartialObject)
    [gone] = pulls(rollout=False, jobs=(job,))
    assert (gone.verb, gone.target.name, gone.uid) == (Verb.DELETE, JOB, "uid-job")
