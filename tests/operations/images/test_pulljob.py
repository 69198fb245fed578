"""The decisions of ImagePullJobs: who gets a task, what it says, when the job is over."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.api.apps.images import (
    FAILED,
    PULLING,
    SUCCEEDED,
    ImagePullJobStatus,
    NodeImage,
    ReferenceObject,
    SandboxConfig,
    TagStatus,
    TaskOwner,
)
from kruise.api.core.images import ImageReference, reference_of
from kruise.machinery.codec import evolve
from kruise.machinery.plan import Outcome, Outcomes, PhaseOutcomes, Plan, Result
from kruise.operations.images.pulljob.conclude import conclude
from kruise.operations.images.pulljob.controller import DEFAULT_TTL
from kruise.operations.images.pulljob.decide import Memo, Snapshot, decide, nodes_of
from kruise.operations.images.tasks import COUNTED
from tests.operations.images.objects import (
    NOW,
    after,
    applied,
    entry,
    job,
    node_image,
    snapshot,
    spread,
    task,
    told_of,
    written,
)

IMAGE = ImageReference("nginx", "1")


def done(plan: Plan) -> Outcomes:
    return Outcomes(
        tuple(
            PhaseOutcomes(
                phase.name,
                tuple(tuple(Outcome(action=one, result=Result.DONE) for one in chain) for chain in phase.chains),
            )
            for phase in plan.phases
        )
    )


def status_after(seen: Snapshot) -> dict[str, Any]:
    plan = decide(seen)
    conclusion = conclude(seen, plan, done(plan))
    assert conclusion.status is not None
    status: dict[str, Any] = conclusion.status.body[0]["value"]
    return status


def nodes(*names: str) -> list[NodeImage]:
    return [node_image(name) for name in names]


def test_as_many_nodes_begin_as_may_by_name() -> None:  # IPJ-45
    begun = spread(job(parallelism=2), *nodes("a", "b", "c"))
    assert [one.metadata.name for one in begun] == ["a", "b"]


@pytest.mark.parametrize(("given_", "many"), [(None, 1), (0, 0), ("2", 2), (5, 3)])
def test_parallelism_is_one_unless_given_and_may_be_a_text(given_: Any, many: int) -> None:  # IPJ-18, IPJ-50
    assert len(spread(job(parallelism=given_), *nodes("a", "b", "c"))) == many


def test_only_nodes_that_pull_count_against_the_limit() -> None:  # IPJ-45, section 11 no. 18
    wanted = job(parallelism=2)
    first, second = spread(wanted, *nodes("a", "b", "c", "d"))
    assert spread(wanted, first, second, *nodes("c", "d")) == []
    finished = told_of(first, TagStatus(tag="1", phase=SUCCEEDED, completion_time=NOW))
    assert [one.metadata.name for one in spread(wanted, finished, second, *nodes("c", "d"))] == ["c"]


def test_a_new_task_says_all_that_the_job_says() -> None:  # IPJ-46, IPJ-47
    wanted = job(
        imagePullPolicy="Always",
        sandboxConfig={"labels": {"l": "1"}},
        pullPolicy={"timeoutSeconds": 30, "backoffLimit": 2},
        completionPolicy={"type": "Always", "activeDeadlineSeconds": 700, "ttlSecondsAfterFinished": 5},
    )
    ref = ReferenceObject(namespace="kruise-daemon-config", name="s-123456", mode="batch")
    [node] = spread(wanted, node_image(), secrets=(ref,), seed=311)
    found = node.spec.images["nginx"]
    assert found.sandbox_config == SandboxConfig(labels={"l": "1"})
    assert found.pull_secrets == (ref,)
    [written_task] = found.tags
    assert (written_task.tag, written_task.version, written_task.image_pull_policy) == ("1", 0, "Always")
    assert written_task.created_at == NOW
    assert written_task.owner_references == (
        TaskOwner(api_version="apps.kruise.io/v1beta1", kind="ImagePullJob", namespace="demo", name="j", uid="uid-j"),
    )
    policy = written_task.pull_policy
    assert policy is not None
    assert (policy.timeout_seconds, policy.backoff_limit, policy.active_deadline_seconds) == (30, 2, 700)
    assert policy.ttl_seconds_after_finished == 5 + 300 + 11


@pytest.mark.parametrize(
    ("spec", "lowest", "highest", "deadline"),
    [
        ({}, 2100, 2399, None),
        ({"pullPolicy": {"timeoutSeconds": 20, "backoffLimit": 0}}, 300, 599, None),
        ({"completionPolicy": {"type": "Always", "activeDeadlineSeconds": 700}}, 1000, 1299, 700),
        ({"completionPolicy": {"type": "Never"}}, 85800, 86999, 1800),
        ({"completionPolicy": {"type": "Never"}, "pullPolicy": {"timeoutSeconds": 4000}}, 85800, 86999, 4000),
    ],
)
@settings(max_examples=10)
@given(seed=st.integers(0, 2**53 - 1))
def test_how_long_a_task_stays(
    spec: dict[str, Any], lowest: int, highest: int, deadline: int | None, seed: int
) -> None:
    """IPJ-48."""
    [node] = spread(job(**spec), node_image(), seed=seed)
    policy = node.spec.images["nginx"].tags[0].pull_policy
    assert policy is not None
    assert policy.ttl_seconds_after_finished is not None
    assert lowest <= policy.ttl_seconds_after_finished <= highest
    assert policy.active_deadline_seconds == deadline


def test_a_second_job_has_the_node_look_again_and_takes_nothing_from_the_first() -> None:  # section 11 no. 1
    first = job("one", uid="uid-1")
    [node] = spread(first, node_image())
    node = told_of(node, TagStatus(tag="1", phase=SUCCEEDED, completion_time=NOW))
    second = job("two", uid="uid-2", imagePullPolicy="Always")
    [node] = spread(second, node, now=after(5))
    [shared] = node.spec.images["nginx"].tags
    assert (shared.version, shared.image_pull_policy, shared.created_at) == (1, "Always", after(5))
    assert [(owner.uid, owner.field_path) for owner in shared.owner_references] == [("uid-1", COUNTED), ("uid-2", "")]
    pulling = told_of(node, TagStatus(tag="1", phase=PULLING, version=1))
    assert status_after(snapshot(first, pulling))["succeeded"] == 1
    assert status_after(snapshot(second, pulling))["active"] == 1


def test_a_node_that_failed_for_one_job_gets_another_chance() -> None:
    [node] = spread(job("one", uid="uid-1"), node_image())
    node = told_of(node, TagStatus(tag="1", phase=FAILED, completion_time=NOW))
    [node] = spread(job("two", uid="uid-2"), node)
    assert [owner.field_path for owner in node.spec.images["nginx"].tags[0].owner_references] == ["", ""]


def test_a_task_that_is_added_again_has_a_higher_version() -> None:  # IPJ-46.4, IPJ-49
    node = told_of(node_image(), TagStatus(tag="1", phase=SUCCEEDED, version=3, completion_time=NOW))
    [node] = spread(job(), node)
    assert node.spec.images["nginx"].tags[0].version == 4


def test_other_tasks_of_the_image_stay_and_tags_are_sorted() -> None:  # NI-11
    [node] = spread(job(), node_image(images={"nginx": entry(task("0"), task("2")), "redis": entry(task("7"))}))
    assert [one.tag for one in node.spec.images["nginx"].tags] == ["0", "1", "2"]
    assert "redis" in node.spec.images


def test_a_node_whose_status_answers_another_version_is_active() -> None:  # IPJ 4.9
    [node] = spread(job(), node_image())
    node = told_of(node, TagStatus(tag="1", phase=SUCCEEDED, version=7, completion_time=NOW))
    assert len(nodes_of((node,), IMAGE, "uid-j").active) == 1


def test_progress_in_words() -> None:  # IPJ-42, section 11 no. 11
    wanted = job(parallelism=0)
    first, *_ = spread(job(), *nodes("a", "b", "c"))
    first = told_of(first, TagStatus(tag="1", phase=FAILED, completion_time=NOW, message="denied"))
    status = status_after(snapshot(wanted, first, *nodes("b", "c")))
    assert status == {
        "startTime": "2030-01-01T12:00:00Z",
        "desired": 3,
        "active": 0,
        "succeeded": 0,
        "failed": 1,
        "failedNodes": ("a",),
        "message": "job is running, progress 33.3%",
    }


def test_a_job_without_nodes_completes_at_once_unless_it_never_ends() -> None:  # IPJ-42, section 11 no. 9
    status = status_after(snapshot(job()))
    assert (status["message"], status["completionTime"]) == ("job has completed", "2030-01-01T12:00:00Z")
    status = status_after(snapshot(job(completionPolicy={"type": "Never"})))
    assert (status["message"], "completionTime" in status) == ("job is running, no progress", False)


def test_after_the_deadline_all_that_are_not_done_have_failed() -> None:  # IPJ-41, section 11 no. 10
    wanted = job(completionPolicy={"type": "Always", "activeDeadlineSeconds": 6}, pullPolicy={"timeoutSeconds": 5})
    begun, *_ = spread(wanted, *nodes("b", "c"))
    early = snapshot(wanted, begun, *nodes("c"), now=after(5.9))
    assert decide(early).memo_as(Memo).completion_time is None
    [wake] = decide(early).wakes
    assert wake.after == 1.0
    status = status_after(snapshot(wanted, begun, *nodes("c"), now=after(6)))
    assert (status["failed"], status["failedNodes"], status["active"]) == (2, ("b", "c"), 0)
    assert status["message"] == "job exceeds activeDeadlineSeconds"
    assert written(decide(snapshot(wanted, begun, *nodes("c"), now=after(6))), "spread") == []


def test_a_job_that_is_over_gives_its_secrets_back_and_goes_in_time() -> None:  # IPJ-31, IPJ-60
    ended = ImagePullJobStatus(start_time=NOW, completion_time=NOW)
    wanted = job(completionPolicy={"type": "Always", "ttlSecondsAfterFinished": 10}, status=ended)
    held = decide(snapshot(wanted, has_copies=True))
    assert [phase.name for phase in held.phases] == []
    free = decide(snapshot(wanted, now=after(9)))
    assert [phase.name for phase in free.phases] == ["finalizer"]
    assert [wake.after for wake in free.wakes] == [1.0]
    assert [phase.name for phase in decide(snapshot(wanted, now=after(10))).phases] == ["finalizer", "delete"]


def test_nodes_wait_for_copies_of_secrets_and_do_without_missing_ones() -> None:  # IPJ-38
    wanted = job(pullSecrets=["a"])
    assert spread(wanted, node_image(), awaited_secrets=("a",)) == []
    assert len(spread(wanted, node_image(), missing_secrets=("a",))) == 1


def test_a_secret_that_comes_later_reaches_nodes_that_still_pull() -> None:  # IPJ-38
    wanted = job(pullSecrets=["a"])
    [node] = spread(wanted, node_image())
    ref = ReferenceObject(namespace="kruise-daemon-config", name="a-1", mode="batch")
    [write] = written(decide(snapshot(wanted, node, secrets=(ref,))), "secrets")
    late = applied(node, write)
    assert late.spec.images["nginx"].pull_secrets == (ref,)
    assert written(decide(snapshot(wanted, late, secrets=(ref,))), "secrets") == []


def test_a_full_node_is_passed_over_and_told_of() -> None:
    full = node_image("a", images={f"i{number}": entry(task()) for number in range(256)})
    plan = decide(snapshot(job(), full, node_image("b")))
    assert [action.target.name for action in written(plan, "spread")] == ["b"]
    assert "node-full" in {cause.code for held in plan.held for cause in held.causes}


@settings(max_examples=40)
@given(
    states=st.lists(st.sampled_from(["", PULLING, SUCCEEDED, FAILED]), max_size=8),
    parallelism=st.integers(0, 9),
)
def test_never_more_nodes_at_a_time_than_allowed(states: list[str], parallelism: int) -> None:
    """And every node is counted once."""
    wanted, known = job(parallelism=parallelism), []
    for number, state in enumerate(states):
        node = node_image(f"n{number}")
        if state:
            [node] = spread(job(), node)
            ended = None if state == PULLING else NOW
            node = told_of(node, TagStatus(tag="1", phase=state, completion_time=ended))
        known.append(node)
    seen = snapshot(wanted, *known)
    plan = decide(seen)
    found = nodes_of(seen.node_images, IMAGE, "uid-j")
    assert len(written(plan, "spread")) == max(0, min(parallelism - len(found.active), len(found.not_synced)))
    assert found.unfinished + len(found.succeeded) + len(found.failed) == len(states)
    assert decide(seen) == plan


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("nginx", ("nginx", "latest")),
        ("docker.io/library/nginx:1.19", ("nginx", "1.19")),
        ("index.docker.io/nginx", ("nginx", "latest")),
        ("docker.io/foo/bar", ("foo/bar", "latest")),
        ("localhost:5000/a/b:v1", ("localhost:5000/a/b", "v1")),
        ("reg.io/x/y:1@sha256:" + "a" * 64, ("reg.io/x/y", "sha256:" + "a" * 64)),
        ("Nginx", None),
        ("", None),
        ("a" * 64, None),
    ],
)
def test_an_image_is_known_by_name_and_tag(image: str, expected: tuple[str, str] | None) -> None:  # IMG-10 to IMG-12
    assert reference_of(image) == expected


def test_a_digest_is_joined_as_runtimes_want_it() -> None:  # DMN-43
    assert str(ImageReference("nginx", "sha256:" + "a" * 64)) == "nginx@sha256:" + "a" * 64


def test_two_writers_of_one_node_cannot_undo_each_other() -> None:
    """Who decided over an older spec is refused by the server, and decides anew."""
    node = node_image()
    [mine] = written(decide(snapshot(job("one", uid="uid-1"), node)), "spread")
    [theirs] = written(decide(snapshot(job("two", uid="uid-2"), node)), "spread")
    changed = applied(node, mine)
    with pytest.raises(AssertionError):
        applied(changed, theirs)
    assert evolve(changed, metadata=node.metadata) == evolve(applied(node, mine), metadata=node.metadata)


def test_a_deadline_may_be_any_number() -> None:
    wanted = job(completionPolicy={"type": "Always", "activeDeadlineSeconds": 10**12})
    assert [wake.after > 10**11 for wake in decide(snapshot(wanted, node_image())).wakes] == [True]


@pytest.mark.parametrize(("text", "seconds"), [("0", 0), ("300", 300), ("2678400", 2678400)])
def test_how_long_finished_tasks_stay_can_be_told(text: str, seconds: int) -> None:  # IMG-4
    assert DEFAULT_TTL.default == 300
    assert DEFAULT_TTL.flag.parse(text) == seconds
    for bad in ("-1", "2678401", "x"):
        with pytest.raises(ValueError, match=r"\S"):
            DEFAULT_TTL.flag.parse(bad)
