"""The upkeep of NodeImages, and the copies of secrets."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kruise.api.apps.images import (
    FAILED,
    PULLING,
    SUCCEEDED,
    ImageSpec,
    NodeImage,
    ReferenceObject,
    TagPullPolicy,
    TagStatus,
    TaskOwner,
)
from kruise.api.meta import Condition, ObjectMeta
from kruise.api.native.config import Secret
from kruise.api.native.nodes import Node, NodeStatus
from kruise.machinery.codec import evolve
from kruise.machinery.plan import Conclusion, Outcomes, Plan
from kruise.operations.images.nodeimage.conclude import conclude
from kruise.operations.images.nodeimage.decide import LATE, NO_ANSWER, Snapshot, decide
from kruise.operations.images.pulljob import secrets
from tests.operations.images.objects import NOW, after, applied, entry, node_image, task, told, told_of, written

JOB = TaskOwner(api_version="apps.kruise.io/v1beta1", kind="ImagePullJob", namespace="demo", name="j", uid="uid-j")
POD = TaskOwner(api_version="v1", kind="Pod", namespace="demo", name="p", uid="uid-p")


def node(*, ready: float | None = 60, **labels: str) -> Node:
    conditions = ()
    if ready is not None:
        conditions = (Condition(type="Ready", status="True", last_transition_time=after(-ready)),)
    return Node(metadata=ObjectMeta(name="node-1", uid="n", labels=labels), status=NodeStatus(conditions=conditions))


def seen(found: NodeImage | None, there: Node | None = None, **fields: Any) -> Snapshot:
    given = {"jobs": frozenset({"uid-j"}), "gone_secrets": frozenset[str](), "now": NOW, **fields}
    return Snapshot(name="node-1", node_image=found, node=there, **given)


def phases(plan: Plan) -> list[str]:
    return [phase.name for phase in plan.phases]


def kept(images: dict[str, ImageSpec], *statuses: TagStatus, **fields: Any) -> dict[str, ImageSpec]:
    """What is left of the tasks of a node after one look at it."""
    before = node_image(images=images, statuses=told(*statuses) if statuses else {})
    plan = decide(seen(before, node(), **fields))
    writes = written(plan, "upkeep")
    return applied(before, writes[-1]).spec.images if writes else images


def test_a_node_gets_one_when_it_has_been_ready_for_a_while() -> None:  # NI-15, NI-18, IPJ-23
    assert phases(decide(seen(None, node(ready=30), creation_delay=30))) == ["create"]
    early = decide(seen(None, node(ready=20), creation_delay=30))
    assert (phases(early), [wake.after for wake in early.wakes]) == ([], [10.0])
    assert phases(decide(seen(None, node(ready=None)))) == []
    assert phases(decide(seen(None, node(type="virtual-kubelet")))) == []
    [create] = written(decide(seen(None, node(zone="a"))), "create")
    assert (create.body["metadata"], create.body["spec"]) == ({"name": "node-1", "labels": {"zone": "a"}}, {})


def test_it_goes_with_its_node_unless_it_is_a_fake() -> None:  # NI-17
    assert phases(decide(seen(node_image()))) == ["delete"]
    fake = evolve(node_image(), metadata=ObjectMeta(name="x", uid="u", labels={"apps.kruise.io/fake-nodeimage": ""}))
    assert phases(decide(seen(fake))) == []


def test_one_that_goes_is_left_alone() -> None:  # NI-19
    leaving = evolve(node_image(), metadata=ObjectMeta(name="node-1", uid="u", deletion_timestamp=NOW))
    assert phases(decide(seen(leaving))) == []


def test_labels_are_those_of_the_node() -> None:  # NI-20
    by_hand = evolve(node_image(), metadata=evolve(node_image().metadata, labels={"hand": "1", "zone": "b"}))
    [write] = written(decide(seen(by_hand, node(zone="a"))), "upkeep")
    assert write.body == {"metadata": {"labels": {"hand": None, "zone": "a"}}}


def test_a_task_leaves_when_its_time_is_over() -> None:  # NI-20
    done = TagStatus(tag="1", phase=SUCCEEDED, completion_time=NOW)
    images = {"nginx": entry(task(ttl=10))}
    assert kept(images, done, now=after(9.9)) == images
    assert kept(images, done, now=after(10)) == {}
    assert kept(images, evolve(done, version=3), now=after(100)) == images


def test_a_task_stays_while_a_job_still_counts_it() -> None:
    """NI-20, IPJ-44: a job on a thousand nodes takes longer than its tasks are kept; the first nodes would pull once
    more before the last ones have, and it would never end."""
    done = TagStatus(tag="1", phase=SUCCEEDED, completion_time=NOW)
    images = {"nginx": entry(task(ttl=10, owner_references=(JOB,)))}
    assert kept(images, done, now=after(10**6), open_jobs=frozenset({"uid-j"})) == images
    assert kept(images, done, now=after(10**6), open_jobs=frozenset({"another"})) == {}


@pytest.mark.parametrize("behind", [-1.0, -3600.0])
def test_a_node_whose_clock_is_behind_keeps_its_tasks(behind: float) -> None:
    """NI-20: a task that was made again does not end before it was made; else it would be made again and again."""
    done = TagStatus(tag="1", phase=SUCCEEDED, version=1, completion_time=after(behind))
    images = {"nginx": entry(task(ttl=10, version=1))}
    assert kept(images, done, now=after(9.9)) == images
    assert kept(images, done, now=after(10)) == {}


def test_who_sets_the_end_of_a_first_task_back_has_the_node_pull_once_more() -> None:  # NI-20
    done = TagStatus(tag="1", phase=SUCCEEDED, completion_time=after(-3600))
    assert kept({"nginx": entry(task(ttl=10))}, done, now=after(0)) == {}


def test_when_it_is_looked_at_again() -> None:  # NI-24
    done = TagStatus(tag="1", phase=SUCCEEDED, completion_time=NOW)
    found = node_image(images={"nginx": entry(task(ttl=10))}, statuses=told(done))
    assert [wake.after for wake in decide(seen(found, node())).wakes] == [10.0]
    assert [wake.after for wake in decide(seen(found, node(), now=after(9))).wakes] == [3.0]


def test_a_task_leaves_with_its_last_job() -> None:  # NI-20, section 11 no. 2 and 3
    images = {"nginx": entry(task(owner_references=(JOB, evolve(JOB, uid="other"))))}
    left = kept(images)
    assert [owner.uid for owner in left["nginx"].tags[0].owner_references] == ["uid-j"]
    assert kept(images, jobs=frozenset()) == {}


def test_tasks_without_jobs_and_of_other_owners_stay() -> None:  # NI-13, NI-20
    images = {"nginx": entry(task("1"), task("2", owner_references=(POD,)))}
    assert kept(images, jobs=frozenset()) == images


def test_a_task_that_never_began_leaves() -> None:  # NI-20
    assert kept({"nginx": entry(task(created=None))}) == {}


def test_secrets_that_are_gone_leave_but_not_copies() -> None:  # NI-21
    gone, copy = ReferenceObject(namespace="a", name="b"), ReferenceObject(namespace="a", name="c", mode="batch")
    images = {"nginx": entry(task(), pull_secrets=(gone, copy))}
    left = kept(images, gone_secrets=frozenset({"a/b", "a/c"}))
    assert left["nginx"].pull_secrets == (copy,)


def concluded(found: NodeImage, **fields: Any) -> Conclusion:
    looked_at = seen(found, node(), **fields)
    return conclude(looked_at, decide(looked_at), Outcomes())


def test_a_node_that_does_not_answer_has_failed() -> None:  # NI-22, NI-23
    found = node_image(images={"nginx": entry(task(owner_references=(JOB,)))}, statuses=told(image="old"))
    assert concluded(found, now=after(599)).status is None
    conclusion = concluded(found, now=after(600))
    assert conclusion.status is not None
    status = conclusion.status.body[0]["value"]
    assert (status["desired"], status["failed"], set(status["imageStatuses"])) == (1, 1, {"nginx"})
    [tag] = status["imageStatuses"]["nginx"]["tags"]
    assert (tag["phase"], tag["message"]) == (FAILED, NO_ANSWER)
    message = f"Failed to pull image nginx:1 on node node-1 for {NO_ANSWER}"
    assert [(note.reason, note.message) for note in conclusion.events] == [("PullImageFailed", message)] * 2
    assert [note.uid for note in conclusion.events] == ["uid-j", ""]


def test_a_node_that_pulls_for_too_long_has_failed() -> None:  # NI-22
    policy = TagPullPolicy(ttl_seconds_after_finished=5, active_deadline_seconds=60)
    found = told_of(node_image(images={"nginx": entry(task(policy=policy))}), TagStatus(tag="1", phase=PULLING))
    assert concluded(found, now=after(659)).status is None
    conclusion = concluded(found, now=after(660))
    assert conclusion.status is not None
    assert conclusion.status.body[0]["value"]["imageStatuses"]["nginx"]["tags"][0]["message"] == LATE
    endless = told_of(node_image(images={"nginx": entry(task())}), TagStatus(tag="1", phase=PULLING))
    assert concluded(endless, now=NOW + timedelta(days=1)).status is None


# Copies of secrets


def secret(name: str = "reg", *, namespace: str = "demo", data: bytes = b"v1", **annotations: str) -> Secret:
    metadata = ObjectMeta(name=name, namespace=namespace, uid=f"uid-{name}", resource_version="3", labels={"own": "1"})
    return Secret(metadata=evolve(metadata, annotations=annotations), type="Opaque", data={"k": data})


def copy_of(name: str, *users: str, data: bytes = b"v1") -> Secret:
    marks = {
        "imagepulljobs.kruise.io/source-key": "demo/reg",
        "imagepulljobs.kruise.io/references": ",".join(users),
        "imagepulljobs.kruise.io/mode": "batch",
    }
    return secret(name, namespace="kruise-daemon-config", data=data, **marks)


def copies(*found: Secret, source: Secret | None, jobs: tuple[str, ...]) -> Plan:
    return secrets.decide(
        secrets.Snapshot(
            namespace="demo",
            name="reg",
            source=source,
            copies=found,
            jobs=jobs,
            exchange="kruise-daemon-config",
        )
    )


def test_a_copy_says_where_it_is_from_and_whom_for() -> None:  # IPJ-36, IPJ-37
    [create] = written(copies(source=secret(x="y"), jobs=("demo/one",)), "copies")
    metadata = create.body["metadata"]
    assert metadata["annotations"] == {
        "x": "y",
        "imagepulljobs.kruise.io/source-key": "demo/reg",
        "imagepulljobs.kruise.io/references": "demo/one",
        "imagepulljobs.kruise.io/mode": "batch",
    }
    assert (metadata["labels"], metadata["namespace"]) == ({"own": "1"}, "kruise-daemon-config")
    assert metadata["name"][:4] == "reg-"
    assert len(metadata["name"]) == 10
    assert (create.body["type"], create.body["data"]) == ("Opaque", {"k": "djE="})


def test_jobs_share_a_copy_that_follows_its_source() -> None:  # IPJ-37, IPJ-38
    jobs = ("demo/one", "demo/two")
    [write] = written(copies(copy_of("reg-1", "demo/one"), source=secret(data=b"v2"), jobs=jobs), "copies")
    assert write.body["metadata"] == {"annotations": {"imagepulljobs.kruise.io/references": "demo/one,demo/two"}}
    assert write.body["data"] == {"k": "djI="}
    assert written(copies(copy_of("reg-1", *jobs), source=secret(), jobs=jobs), "copies") == []


def test_a_copy_leaves_with_its_last_job_and_not_with_its_source() -> None:  # IPJ-40
    [gone] = written(copies(copy_of("reg-1", "demo/one"), source=secret(), jobs=()), "copies")
    assert gone.verb.value == "delete"
    assert written(copies(copy_of("reg-1", "demo/one"), source=None, jobs=("demo/one",)), "copies") == []


@pytest.mark.parametrize("order", [("reg-1", "reg-2"), ("reg-2", "reg-1")])
def test_of_several_copies_one_is_used(order: tuple[str, str]) -> None:  # IPJ-37
    found = [copy_of("reg-1") if name == "reg-1" else copy_of("reg-2", "demo/one") for name in order]
    [gone] = written(copies(*found, source=secret(), jobs=("demo/one",)), "copies")
    assert (gone.verb.value, gone.target.name) == ("delete", "reg-1")


def test_what_kubectl_keeps_is_not_copied() -> None:
    marks = {"kubectl.kubernetes.io/last-applied-configuration": "{...}"}
    [create] = written(copies(source=secret(**marks), jobs=("demo/one",)), "copies")
    assert not any(key.startswith("kubectl") for key in create.body["metadata"]["annotations"])


def test_a_deadline_may_be_any_number() -> None:
    policy = TagPullPolicy(active_deadline_seconds=2**63 - 1)
    status = TagStatus(tag="1", phase="Pulling")
    found = node_image(images={"nginx": entry(task(policy=policy, owner_references=(JOB,)))}, statuses=told(status))
    assert any(wake.after > 10**11 for wake in decide(seen(found, node())).wakes)
