"""Why image jobs wait: every cause can come up, and names the nodes and what to do."""

from __future__ import annotations

from typing import Any

from kruise.api.apps.images import (
    FAILED,
    PULLING,
    SUCCEEDED,
    FailedImageStatus,
    ImageListPullJob,
    ImageListPullJobSpec,
    ImageListPullJobStatus,
    ImagePullJobStatus,
    ImageStatus,
    NodeImageStatus,
    TagStatus,
)
from kruise.api.meta import ObjectMeta
from kruise.machinery.causes import Act, Cause
from kruise.machinery.codec import evolve
from kruise.operations.images.listjob import causes as of_lists
from kruise.operations.images.listjob.decide import HASH_LABEL, hash_of, template_of
from kruise.operations.images.listjob.decide import Snapshot as ListSnapshot
from kruise.operations.images.listjob.decide import decide as decide_list
from kruise.operations.images.nodeimage.holding import held
from kruise.operations.images.pulljob.decide import decide
from kruise.operations.images.pulljob.face import FACE
from tests.operations.images.objects import NOW, entry, job, node_image, snapshot, spread, task, told_of


def causes(*nodes: Any, **fields: Any) -> dict[str, Cause]:
    spec = fields.pop("spec", {})
    wanted = fields.pop("wanted", None) or job(**spec)
    plan = decide(snapshot(wanted, *nodes, **fields))
    return {cause.code: cause for held in plan.held for cause in held.causes}


def test_every_cause_of_a_job_comes_up_with_a_remedy_where_somebody_must_act() -> None:
    [silent] = spread(job(), node_image("a"))
    pulling = told_of(silent, TagStatus(tag="1", phase=PULLING, progress=40))
    failed = told_of(silent, TagStatus(tag="1", phase=FAILED, completion_time=NOW, message="x: not found"))
    full = node_image("f", images={f"i{number}": entry(task()) for number in range(256)})
    found = {
        **causes(silent, node_image("b")),
        **causes(pulling),
        **causes(failed, node_image("b")),
        **causes(full),
        **causes(node_image("b"), spec={"parallelism": 0}),
        **causes(node_image("b"), awaited_secrets=("s",)),
        **causes(node_image("b"), awaited_secrets=("s",), missing_exchange="x"),
        **causes(node_image("b"), missing_secrets=("s",)),
        **causes(spec={"completionPolicy": {"type": "Never"}}),
        **causes(spec={"image": "Bad"}),
    }
    assert set(found) == {one.code for one in FACE.causes}
    for cause in found.values():
        assert cause.remedy or cause.meaning.act is Act.NOBODY, cause
    assert found["pull-failed"].message == "1 node could not pull nginx:1: a: x: not found"
    assert "correct the name or the tag" in found["pull-failed"].remedy
    assert found["pulling"].message == "1 node pulls nginx:1: a (Pulling 40%)"
    assert found["no-daemon"].details == {"nodes": ["a"]}


def test_a_job_that_is_over_still_names_the_nodes_that_failed() -> None:
    status = ImagePullJobStatus(start_time=NOW, completion_time=NOW, failed=2, failed_nodes=("a", "gone"))
    [node] = spread(job(), node_image("a"))
    node = told_of(node, TagStatus(tag="1", phase=FAILED, completion_time=NOW, message="denied"))
    plan = decide(snapshot(job(status=status), node))
    texts = [cause.message for held in plan.held for cause in held.causes]
    assert texts == ["1 node could not pull nginx:1: a: denied", "1 node could not pull nginx:1: gone"]


def test_a_job_that_went_well_waits_for_nothing() -> None:
    [node] = spread(job(), node_image("a"))
    node = told_of(node, TagStatus(tag="1", phase=SUCCEEDED, completion_time=NOW))
    assert causes(node) == {}


def listed(parallelism: int | None = None, **status: Any) -> ImageListPullJob:
    return ImageListPullJob(
        metadata=ObjectMeta(name="l", namespace="demo", uid="uid-l"),
        spec=ImageListPullJobSpec(images=("nginx:1", "redis:7"), parallelism=parallelism),
        status=ImageListPullJobStatus(start_time=NOW, **status),
    )


def test_every_cause_of_a_list_comes_up() -> None:
    child = evolve(
        job("l-abc", status=ImagePullJobStatus(start_time=NOW, desired=2, failed=1, failed_nodes=("a",))),
        metadata=ObjectMeta(name="l-abc", namespace="demo", uid="c"),
    )

    def found(one: ImageListPullJob, *children: Any) -> dict[str, Cause]:
        held = decide_list(ListSnapshot(job=one, children=children, now=NOW, seed=1)).held
        return {cause.code: cause for each in held for cause in each.causes}

    def belongs(one: ImageListPullJob) -> Any:
        """As the list itself would have made it."""
        labels = {HASH_LABEL: hash_of(template_of(one.spec))}
        return evolve(child, metadata=evolve(child.metadata, labels=labels))

    plain, held = listed(), listed(parallelism=0)
    told = {**found(plain, belongs(plain)), **found(held, belongs(held))}
    assert set(told) == {one.code for one in of_lists.CAUSES}
    assert told["image-failed"].message == "1 node could not pull nginx:1: a"
    assert told["image-failed"].remedy == "kruise why imagepulljob/l-abc -n demo says what the nodes said"
    over = listed(completion_time=NOW, failed_image_statuses=(FailedImageStatus(name="redis:7", image_pull_job="x"),))
    assert set(found(over)) == {"image-failed"}


def test_a_node_tells_what_it_waits_for() -> None:
    """NI-22: what failed in the words of the registry, what is under way, and what nobody has answered."""
    image = node_image("a", images={"nginx": entry(task("1"), task("2"), task("3"), task("4"))})
    statuses = (
        TagStatus(tag="1", phase=SUCCEEDED, completion_time=NOW),
        TagStatus(tag="2", phase=FAILED, completion_time=NOW, message="x: not found"),
        TagStatus(tag="3", phase=PULLING, progress=40),
        TagStatus(tag="4", phase=SUCCEEDED, completion_time=NOW, version=9),
    )
    status = NodeImageStatus(desired=4, image_statuses={"nginx": ImageStatus(tags=statuses)})
    [about] = held(evolve(image, status=status))
    assert [(one.code, one.message) for one in about.causes] == [
        ("pull-failed", "nginx:2 could not be pulled: x: not found"),
        ("pulling", "the node is at 1 image: nginx:3 (Pulling 40%)"),
        ("no-daemon", "the node has not answered yet: nginx:4"),
    ]
    assert "correct the name or the tag" in about.causes[0].remedy
    assert held(node_image("b")) == ()
