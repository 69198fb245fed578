"""Images pulled ahead of an in-place rollout (IPU-150 to IPU-155)."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from kruise.api.apps import shared
from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.images import IMAGE_PULL_JOBS
from kruise.api.apps.shared import InPlaceUpdateStrategy
from kruise.api.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta, OwnerReference, PartialObject
from kruise.api.native.apps import CONTROLLER_REVISIONS, ControllerRevision
from kruise.inplace import keys
from kruise.inplace.predownload import NOTHING, RolloutFacts, Tuning, cleanup, is_on, pull_jobs, tuning_of
from kruise.machinery.client.requests import Verb
from kruise.machinery.codec import Raw
from kruise.machinery.ownership import Owner
from kruise.machinery.plan import OnError
from kruise.machinery.revisions import template_data
from tests.support.pods import NOW

OWNER = Owner(CLONE_SETS, "demo", "web", "uid-web")


def revision(name: str, *containers: tuple[str, str], **extra: Any) -> ControllerRevision:
    template = {
        "metadata": {"labels": {"app": "web"}, **extra.get("metadata", {})},
        "spec": {
            "containers": [{"name": container, "image": image} for container, image in containers],
            **extra.get("spec", {}),
        },
    }
    labels = {"app": "web", "controller.kubernetes.io/hash": name.rpartition("-")[2], **extra.get("labels", {})}
    metadata = ObjectMeta(name=name, namespace="demo", uid=extra.get("uid", f"uid-{name}"), labels=labels)
    return ControllerRevision(metadata=metadata, data=Raw(template_data(template)))


def never() -> bool:
    raise AssertionError("the templates are compared although the answer is known without")


PLAIN = RolloutFacts(
    owner=OWNER,
    current=revision("web-old", ("main", "nginx:1.25"), ("side", "envoy:1")),
    update=revision("web-new", ("main", "nginx:1.26"), ("side", "envoy:1")),
    selector=LabelSelector(match_labels={"app": "web"}),
    replicas=4,
    updated_ready=0,
    updates_in_place=True,
    is_at_once=False,
    can_be_in_place=lambda: True,
)


def changed(**changes: Any) -> RolloutFacts:
    return dataclasses.replace(PLAIN, **changes)


def test_a_job_for_the_container_that_changes() -> None:
    # IPU-152, the whole body; IMG-20
    (action,) = pull_jobs(PLAIN, Tuning()).jobs
    assert (action.verb, action.owner_uid) == (Verb.CREATE, "uid-web")
    assert action.target.resource == IMAGE_PULL_JOBS
    assert action.body == {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "ImagePullJob",
        "metadata": {
            "name": "web-new-main",
            "namespace": "demo",
            "labels": {"app": "web", "controller.kubernetes.io/hash": "new"},
            "ownerReferences": [
                {
                    "apiVersion": "apps.kruise.io/v1beta1",
                    "kind": "CloneSet",
                    "name": "web",
                    "uid": "uid-web",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "image": "nginx:1.26",
            "podSelector": {
                "matchLabels": {"app": "web"},
                "matchExpressions": [
                    {"key": "controller-revision-hash", "operator": "NotIn", "values": ["web-new", "new"]}
                ],
            },
            "parallelism": 1,
            "pullPolicy": {"backoffLimit": 1, "timeoutSeconds": 300},
            "completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": 600},
            "sandboxConfig": {"labels": {"app": "web", "controller.kubernetes.io/hash": "new"}},
        },
    }


def test_what_the_template_adds() -> None:
    # IPU-152: pull secrets by name, the template's annotations, the rest of the selector.
    update = revision(
        "web-new",
        ("main", "nginx:1.26"),
        metadata={"annotations": {"team": "blue"}},
        spec={"imagePullSecrets": [{"name": "one"}, {"name": "two"}]},
    )
    expression = LabelSelectorRequirement(key="tier", operator="Exists")
    selector = LabelSelector(match_expressions=(expression,))
    (action,) = pull_jobs(changed(update=update, selector=selector), Tuning()).jobs
    spec = action.body["spec"]
    assert spec["pullSecrets"] == ["one", "two"]
    assert spec["sandboxConfig"]["annotations"] == {"team": "blue"}
    assert spec["podSelector"] == {
        "matchExpressions": [
            {"key": "tier", "operator": "Exists"},
            {"key": "controller-revision-hash", "operator": "NotIn", "values": ["web-new", "new"]},
        ]
    }


def test_a_job_per_changed_or_new_container() -> None:
    # IPU-152: compared by name, not by position.
    update = revision("web-new", ("side", "envoy:2"), ("more", "redis:7"), ("main", "nginx:1.25"))
    jobs = pull_jobs(changed(update=update), Tuning()).jobs
    assert {job.target.name: job.body["spec"]["image"] for job in jobs} == {
        "web-new-side": "envoy:2",
        "web-new-more": "redis:7",
    }


def test_the_revision_is_marked_after_the_jobs() -> None:
    # IPU-153: also when a job could not be created; a rollout does not wait for any of it.
    jobs, mark = pull_jobs(PLAIN, Tuning()).phases
    assert [phase.on_error for phase in (jobs, mark)] == [OnError.CONTINUE, OnError.CONTINUE]
    assert jobs.name == "pull-jobs"
    ((action,),) = mark.chains
    assert action.target.resource == CONTROLLER_REVISIONS
    assert (action.target.name, action.uid) == ("web-new", "uid-web-new")
    assert action.body == {"metadata": {"labels": {"apps.kruise.io/pre-predownload-created": "true"}}}


def test_without_a_changed_image_only_the_mark() -> None:
    update = revision("web-new", ("main", "nginx:1.25"), ("side", "envoy:1"), metadata={"annotations": {"a": "b"}})
    pulled = pull_jobs(changed(update=update), Tuning())
    assert pulled.jobs == ()
    assert [phase.name for phase in pulled.phases] == ["pull-jobs-mark"]


@pytest.mark.parametrize(
    ("rollout", "reason"),
    [
        (changed(updates_in_place=False, can_be_in_place=never), "policy"),
        (changed(replicas=3, can_be_in_place=never), "replicas"),
        (changed(is_at_once=True, can_be_in_place=never), "at once"),
        (changed(can_be_in_place=lambda: False), "cannot be made in place"),
    ],
)
def test_decided_against_for_good(rollout: RolloutFacts, reason: str) -> None:
    # IPU-151
    pulled = pull_jobs(rollout, Tuning())
    assert reason in pulled.ignored
    assert pulled.jobs == ()
    (mark,) = pulled.marks
    assert mark.body == {"metadata": {"labels": {"apps.kruise.io/image-predownload-ignored": "true"}}}
    assert mark.target.name == "web-new"


@pytest.mark.parametrize("label", [keys.PREDOWNLOAD_CREATED_LABEL, keys.PREDOWNLOAD_IGNORED_LABEL])
def test_decided_already(label: str) -> None:
    # IPU-151: once per revision.
    update = revision("web-new", ("main", "nginx:1.26"), labels={label: "true"})
    assert pull_jobs(changed(update=update, can_be_in_place=never), Tuning()) == NOTHING


def test_a_revision_that_does_not_exist_yet_waits() -> None:
    update = revision("web-new", ("main", "nginx:1.26"), uid="")
    assert pull_jobs(changed(update=update, can_be_in_place=never), Tuning()) == NOTHING


@pytest.mark.parametrize(("ready", "begins"), [(0, False), (1, False), (2, True), (3, True)])
def test_some_pods_must_be_updated_and_ready_first(ready: int, begins: bool) -> None:
    # IPU-150: until then nothing is decided, not even against.
    tuning = Tuning(min_updated_ready=2)
    assert bool(pull_jobs(changed(updated_ready=ready), tuning).jobs) is begins
    assert bool(pull_jobs(changed(updated_ready=ready, replicas=1), tuning).marks) is begins


def test_tuning_reaches_the_job() -> None:
    (action,) = pull_jobs(PLAIN, Tuning(parallelism="5", timeout_seconds=60)).jobs
    assert action.body["spec"]["parallelism"] == "5"
    assert action.body["spec"]["pullPolicy"] == {"backoffLimit": 1, "timeoutSeconds": 60}


def test_a_revision_without_hash_label() -> None:
    update = revision("web-new", ("main", "nginx:1.26"), labels={"controller.kubernetes.io/hash": ""})
    (action,) = pull_jobs(changed(update=update), Tuning()).jobs
    assert action.body["metadata"]["labels"]["controller.kubernetes.io/hash"] == "new"


def job(name: str, *, owner: str = "uid-web", controller: bool = True, deleted: bool = False) -> PartialObject:
    reference = OwnerReference(kind="CloneSet", name="web", uid=owner, controller=controller)
    metadata = ObjectMeta(
        name=name,
        namespace="demo",
        uid=f"uid-{name}",
        owner_references=(reference,),
        deletion_timestamp=NOW if deleted else None,
    )
    return PartialObject(metadata=metadata)


def test_jobs_go_when_the_rollout_is_over() -> None:
    # IPU-150, IMG-21: only those that the workload controls, and each once.
    jobs = [job("a"), job("b", owner="other"), job("c", controller=False), job("d", deleted=True)]
    pulled = cleanup(OWNER, jobs)
    assert [(action.verb, action.target.name, action.uid) for action in pulled.jobs] == [(Verb.DELETE, "a", "uid-a")]
    assert cleanup(OWNER, []).phases == ()


@pytest.mark.parametrize(
    ("gates", "served", "wanted"),
    [
        ({"KruiseDaemon": True, "PreDownloadImageForInPlaceUpdate": True}, True, True),
        ({"KruiseDaemon": True, "PreDownloadImageForInPlaceUpdate": True}, False, False),
        ({"KruiseDaemon": False, "PreDownloadImageForInPlaceUpdate": True}, True, False),
        ({"KruiseDaemon": True, "PreDownloadImageForInPlaceUpdate": False}, True, False),
        ({}, True, False),
    ],
)
def test_what_it_takes(gates: dict[str, bool], served: bool, wanted: bool) -> None:
    # IPU section 17
    assert is_on(gates, served=served) is wanted


def test_tuning_from_the_strategy() -> None:
    # IPU-154, and the defaults of the shared type
    strategy = InPlaceUpdateStrategy(
        image_pre_download_parallelism="4",
        image_pre_download_timeout_seconds=30,
        image_pre_download_min_updated_ready_pods=2,
    )
    annotations = {shared.PREDOWNLOAD_MIN_READY: "50%", shared.PREDOWNLOAD_PARALLELISM: "9"}
    assert tuning_of(strategy, annotations, 10) == Tuning(parallelism="4", timeout_seconds=30, min_updated_ready=2)
    assert tuning_of(InPlaceUpdateStrategy(), {}, 10) == Tuning(parallelism=1, timeout_seconds=300)
    assert tuning_of(None, {}, 10) == Tuning()


def test_zero_is_a_value() -> None:
    strategy = InPlaceUpdateStrategy(image_pre_download_parallelism=0, image_pre_download_min_updated_ready_pods=0)
    tuning = tuning_of(strategy, {shared.PREDOWNLOAD_MIN_READY: "7"}, 10)
    assert (tuning.parallelism, tuning.min_updated_ready) == (0, 0)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("2", 2), ("20%", 1), ("0.5%", 1), ("100%", 5), ("0%", 0), ("", 0), ("x", 0), ("-3", 0), ("-9%", 0), ("x%", 0)],
)
def test_the_minimum_from_its_annotation(text: str, wanted: int) -> None:
    # IPU-155: number or percentage of the replicas, rounded up.
    assert tuning_of(None, {shared.PREDOWNLOAD_MIN_READY: text}, 5).min_updated_ready == wanted
