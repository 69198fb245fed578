"""One pod's way through an in-place update, from the first write to the last."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from kruise.api.meta import ObjectMeta
from kruise.api.native.apps import ControllerRevision
from kruise.inplace import completion, engine, keys, lifecycle, readiness
from kruise.inplace.difference import InPlaceOptions
from kruise.inplace.edits import PodEdit, writes
from kruise.inplace.engine import Refreshed
from kruise.inplace.lifecycle import State
from kruise.inplace.state import (
    LastStatus,
    RefMetadata,
    Resources,
    UpdateSpec,
    UpdateState,
    state_json,
    update_state_of,
)
from kruise.machinery.client.requests import PatchType
from kruise.machinery.codec import Raw
from kruise.machinery.patches.errors import PatchError
from kruise.machinery.plan import Chain
from kruise.machinery.revisions import template_data
from tests.inplace.acting import BOTH_GATES, NOW, conditions_of, decoded, doors, played, pod_body

OPTIONS = InPlaceOptions(env_from_metadata=True, vertical_scaling=False, compare_claim_templates=False)
VERTICAL = InPlaceOptions(env_from_metadata=True, vertical_scaling=True, compare_claim_templates=False)
LABELS = {keys.REVISION_LABEL: "web-new", keys.TEMPLATE_HASH_LABEL: "new"}
CONDITIONS = {"ContainersReady": "True", "Ready": "True", keys.IN_PLACE_READY: "True", keys.KRUISE_POD_READY: "True"}
IMAGE = UpdateSpec(revision="web-new", container_images={"main": "nginx:1.26"})
STATUS, SPEC, RESIZE = ("status", PatchType.STRATEGIC), ("", PatchType.JSON), ("resize", PatchType.STRATEGIC)


def revision(name: str = "web-new", **images: str) -> ControllerRevision:
    containers = [{"name": container, "image": image} for container, image in (images or {"main": "x"}).items()]
    return ControllerRevision(
        metadata=ObjectMeta(name=name), data=Raw(template_data({"spec": {"containers": containers}}))
    )


def running(**options: Any) -> dict[str, Any]:
    labels = {keys.REVISION_LABEL: "web-old", keys.STATE_LABEL: "Normal", **options.pop("labels", {})}
    return pod_body(**{"conditions": CONDITIONS, "labels": labels, **options})


def begun(body: dict[str, Any], spec: UpdateSpec, **options: Any) -> Chain:
    settings: dict[str, Any] = {"state": State.UPDATING, "options": OPTIONS, "now": NOW, "new": revision(), **options}
    return engine.begin(decoded(body), spec, labels=LABELS, **settings)


def looked_at(body: dict[str, Any], *, options: InPlaceOptions = OPTIONS, now: datetime = NOW) -> Refreshed:
    return engine.refresh(decoded(body), options=options, now=now)


def after(body: dict[str, Any], edit: PodEdit) -> dict[str, Any]:
    return played(body, writes(decoded(body), edit, reason="test"))


def restarted(body: dict[str, Any], *, ready: bool = True) -> dict[str, Any]:
    """What a kubelet reports when all containers run what the spec says."""
    statuses = [
        {"name": item["name"], "image": item["image"], "imageID": f"id of {item['image']}", "ready": ready}
        for item in body["spec"]["containers"]
    ]
    return {**body, "status": {**body["status"], "containerStatuses": statuses}}


def images_of(body: dict[str, Any]) -> dict[str, str]:
    return {item["name"]: item["image"] for item in body["spec"]["containers"]}


def test_an_image_update_is_three_writes_from_end_to_end() -> None:  # IPU-40, IPU-42, IPU-72
    body = running()
    chain = begun(body, IMAGE)
    assert doors(chain) == [STATUS, SPEC]

    unready = played(body, chain[:1])
    assert conditions_of(unready)[keys.IN_PLACE_READY]["reason"] == "StartInPlaceUpdate"
    assert conditions_of(unready)["Ready"]["status"] == "False"
    assert unready["metadata"] == body["metadata"]  # IPU-44: not ready, and otherwise as it was
    assert unready["spec"] == body["spec"]

    updating = played(body, chain)
    assert images_of(updating) == {"main": "nginx:1.26"}
    metadata = updating["metadata"]
    assert metadata["labels"] == {**LABELS, keys.STATE_LABEL: "Updating"}
    assert metadata["annotations"][keys.STATE_TIME_ANNOTATION] == "2026-03-04T05:06:07Z"
    assert metadata["annotations"][keys.UPDATE_STATE_ANNOTATION] == (
        '{"revision":"web-new","updateTimestamp":"2026-03-04T05:06:07Z",'
        '"lastContainerStatuses":{"main":{"imageID":"id of nginx:1.25"}},"updateImages":true,'
        '"containerBatchesRecord":[{"timestamp":"2026-03-04T05:06:07Z","containers":["main"]}]}'
    )
    waiting = looked_at(updating)
    assert waiting.edit.is_empty
    assert "nginx:1.25" in waiting.awaiting

    arrived = restarted(updating)
    done = looked_at(arrived)
    assert (done.awaiting, done.stepped, done.wake_after) == ("", False, None)
    target = lifecycle.refreshed(
        decoded(arrived),
        None,
        complete=lambda: completion.is_complete(decoded(arrived), vertical_scaling=False),
        at_update_revision=True,
    )
    assert target is State.NORMAL
    entered = lifecycle.enter(decoded(arrived), target, None, now=NOW)
    assert entered is not None
    last = writes(decoded(arrived), done.edit.merged(entered), reason="test")
    assert doors(last) == [("status", PatchType.JSON)]
    result = played(arrived, last)
    assert conditions_of(result)[keys.IN_PLACE_READY]["status"] == "True"
    assert result["metadata"]["labels"][keys.STATE_LABEL] == "Normal"
    assert looked_at(result) == Refreshed()


def test_the_spec_is_not_changed_when_the_pod_began_another_update() -> None:
    body = running()
    chain = begun(body, IMAGE)
    other = played(body, begun(body, UpdateSpec(revision="web-3", container_images={"main": "nginx:3"})))
    with pytest.raises(PatchError):
        played(other, chain)


def test_the_end_of_an_update_does_not_ready_a_pod_in_the_next_one() -> None:  # IPU-72, regression 8
    updating = restarted(played(running(), begun(running(), IMAGE)))
    late = writes(decoded(updating), looked_at(updating).edit, reason="test")
    later = {"now": NOW + timedelta(seconds=1), "new": revision("web-3")}
    again = begun(updating, UpdateSpec(revision="web-3", container_images={"main": "nginx:3"}), **later)
    with pytest.raises(PatchError):
        played(played(updating, again), late)


def test_a_pod_without_the_gate_is_updated_in_one_write() -> None:  # IPU-41, IPU-75
    body = running(gates=(), conditions={"Ready": "True"})
    chain = begun(body, IMAGE)
    assert doors(chain) == [SPEC]
    assert looked_at(restarted(played(body, chain))).edit.is_empty


def test_metadata_alone_goes_through_not_ready_too() -> None:  # IPU-36, regression 1
    patch = {"metadata": {"labels": {"team": "b", "old": None}, "annotations": {"note": "1"}}}
    spec = UpdateSpec(revision="web-new", meta_data_patch=patch)
    body = running(labels={"team": "a", "old": "x", "mine": "stays"})
    chain = begun(body, spec)
    assert doors(chain) == [STATUS, SPEC]
    result = played(body, chain)
    assert images_of(result) == images_of(body)
    assert {name: result["metadata"]["labels"].get(name) for name in ("team", "old", "mine")} == {
        "team": "b",
        "old": None,
        "mine": "stays",
    }
    done = looked_at(result)
    assert conditions_of(after(result, done.edit))[keys.IN_PLACE_READY]["status"] == "True"


def test_revision_labels_win_over_labels_of_the_template() -> None:
    spec = UpdateSpec(revision="web-new", meta_data_patch={"metadata": {"labels": {keys.REVISION_LABEL: "mine"}}})
    assert played(running(), begun(running(), spec))["metadata"]["labels"][keys.REVISION_LABEL] == "web-new"


def test_the_lifecycle_state_can_be_left_as_it_is() -> None:
    body = running(labels={keys.STATE_LABEL: "PreparingNormal"})
    assert played(body, begun(body, IMAGE, state=None))["metadata"]["labels"][keys.STATE_LABEL] == "PreparingNormal"


def test_an_old_spelling_of_the_state_is_replaced() -> None:  # regression 17
    old = UpdateState(revision="web-old", update_timestamp=NOW, last_container_statuses={"main": LastStatus()})
    body = running(annotations={keys.OLD_UPDATE_STATE_ANNOTATION: state_json(old)})
    annotations = played(body, begun(body, IMAGE))["metadata"]["annotations"]
    assert keys.OLD_UPDATE_STATE_ANNOTATION not in annotations
    assert '"revision":"web-new"' in annotations[keys.UPDATE_STATE_ANNOTATION]


# Resources


CPU = UpdateSpec(revision="web-new", container_resources={"main": Resources(limits={"cpu": "800m"})})


def sized(cpu: str = "1") -> dict[str, Any]:
    body = running()
    body["spec"]["containers"][0]["resources"] = {"limits": {"cpu": cpu}}
    return body


def test_a_resize_without_restart_never_turns_the_pod_unready() -> None:  # IPU-55, regressions 13 and 14
    body = sized()
    chain = begun(body, CPU, options=VERTICAL)
    assert doors(chain) == [RESIZE, SPEC]
    result = played(body, chain)
    assert result["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "800m"}
    assert conditions_of(result) == conditions_of(body)
    assert looked_at(result, options=VERTICAL).awaiting
    result["status"]["containerStatuses"][0]["resources"] = {"limits": {"cpu": "800m"}}
    assert looked_at(result, options=VERTICAL) == Refreshed()


def test_a_resize_that_broke_off_is_begun_again_without_resizing_twice() -> None:  # IPU-55
    body = sized()
    body["spec"]["containers"][0]["resizePolicy"] = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    chain = begun(body, CPU, options=VERTICAL)
    assert doors(chain) == [STATUS, RESIZE, SPEC]
    broken_off = played(body, chain[:2])
    again = begun(broken_off, CPU, options=VERTICAL)
    assert doors(again) == [STATUS, SPEC]
    assert played(broken_off, again)["metadata"]["labels"][keys.REVISION_LABEL] == "web-new"


def test_a_resize_on_an_older_server_is_part_of_the_pod() -> None:  # IPU-55
    assert doors(begun(sized(), CPU, options=VERTICAL, resize_subresource=False)) == [SPEC]


# Grace


GRACE = UpdateSpec(revision="web-new", container_images={"main": "nginx:1.26"}, grace_seconds=5)


def test_a_grace_period_holds_the_images_back() -> None:  # IPU-42, IPU-70
    body = running()
    held = played(body, begun(body, GRACE))
    assert images_of(held) == images_of(body)
    assert held["metadata"]["labels"][keys.REVISION_LABEL] == "web-new"
    assert held["metadata"]["labels"][keys.STATE_LABEL] == "Updating"
    assert conditions_of(held)[keys.IN_PLACE_READY]["status"] == "False"
    assert not completion.is_complete(decoded(held), vertical_scaling=False)
    early = looked_at(held, now=NOW + timedelta(seconds=2))
    assert (early.wake_after, early.edit.is_empty, early.stepped) == (3.0, True, False)
    assert "5 s" in early.awaiting

    over = looked_at(held, now=NOW + timedelta(seconds=5))
    assert (over.wake_after, over.stepped) == (None, True)
    chain = writes(decoded(held), over.edit, reason="test")
    assert doors(chain) == [SPEC]
    result = played(held, chain)
    assert images_of(result) == {"main": "nginx:1.26"}
    assert keys.UPDATE_GRACE_ANNOTATION not in result["metadata"]["annotations"]
    state = update_state_of(decoded(result))
    assert state is not None
    assert state.update_timestamp == NOW  # the begin of the whole update


@pytest.mark.parametrize("microsecond", [0, 1, 400_000, 999_999])
def test_a_grace_period_never_ends_early(microsecond: int) -> None:
    """Times on pods have whole seconds; the fraction must not be taken from the grace period."""
    began = NOW.replace(microsecond=microsecond)
    held = played(running(), begun(running(), GRACE, now=began))
    assert not looked_at(held, now=began + timedelta(seconds=5) - timedelta(microseconds=1)).stepped
    wait = looked_at(held, now=began).wake_after
    assert wait is not None
    assert 5.0 <= wait <= 6.0
    assert looked_at(held, now=began + timedelta(seconds=wait)).stepped


def test_a_pod_that_got_another_revision_in_its_grace_period_is_left_as_it_is() -> None:  # IPU-70, regression 5
    held = played(running(), begun(running(), GRACE))
    held["metadata"]["labels"][keys.REVISION_LABEL] = "web-other"
    found = looked_at(held, now=NOW + timedelta(seconds=60))
    assert found.stepped
    result = after(held, found.edit)
    assert images_of(result) == {"main": "nginx:1.25"}
    assert keys.UPDATE_GRACE_ANNOTATION not in result["metadata"]["annotations"]


def test_a_short_revision_label_is_the_same_revision() -> None:  # IPU-20
    held = played(running(), begun(running(), GRACE))
    held["metadata"]["labels"][keys.REVISION_LABEL] = "new"
    assert images_of(after(held, looked_at(held, now=NOW + timedelta(seconds=5)).edit)) == {"main": "nginx:1.26"}


def test_the_end_of_the_grace_period_is_not_applied_to_another_update() -> None:
    held = played(running(), begun(running(), GRACE))
    late = writes(decoded(held), looked_at(held, now=NOW + timedelta(seconds=5)).edit, reason="test")
    held["metadata"]["labels"][keys.REVISION_LABEL] = "web-other"
    with pytest.raises(PatchError):
        played(held, late)


def test_annotations_that_nobody_can_read_hold_only_their_pod() -> None:  # IPU-70
    alone = looked_at(running(annotations={keys.UPDATE_GRACE_ANNOTATION: '{"revision":"web-new"}'}))
    assert "demo/web-1" in alone.error
    assert keys.UPDATE_STATE_ANNOTATION in alone.error
    assert alone.edit.is_empty
    for name in (keys.UPDATE_STATE_ANNOTATION, keys.OLD_UPDATE_STATE_ANNOTATION):
        broken = looked_at(running(annotations={name: "{"}))
        assert name in broken.error
        assert broken.edit.is_empty
    # The next update replaces it.
    body = running(annotations={keys.UPDATE_STATE_ANNOTATION: "{"})
    assert update_state_of(decoded(played(body, begun(body, IMAGE)))) is not None


# Batches


def barrier(priority: int) -> list[dict[str, Any]]:
    source = {"configMapKeyRef": {"name": "web-1-barrier", "key": f"p_{priority}"}}
    return [{"name": keys.BARRIER_ENV, "valueFrom": source}]


def prioritised() -> dict[str, Any]:
    body = running(images={"nginx": "nginx:1", "redis": "redis:1"})
    for container, priority in zip(body["spec"]["containers"], (0, 10), strict=True):
        container["env"] = barrier(priority)
    return body


TWO = UpdateSpec(revision="web-new", container_images={"nginx": "nginx:2", "redis": "redis:2"})


def test_the_second_batch_waits_for_the_first_to_be_ready() -> None:  # IPU-54, IPU-71, regression 11
    body = prioritised()
    first = played(body, begun(body, TWO))
    assert images_of(first) == {"nginx": "nginx:1", "redis": "redis:2"}
    assert "redis" in looked_at(first).awaiting
    crashing = looked_at(restarted(first, ready=False))
    assert crashing.edit.is_empty
    assert crashing.awaiting == "container redis to be ready before the next batch"
    arrived = restarted(first)
    step = looked_at(arrived, now=NOW + timedelta(seconds=3))
    assert step.stepped
    second = played(arrived, writes(decoded(arrived), step.edit, reason="test"))
    assert images_of(second) == {"nginx": "nginx:2", "redis": "redis:2"}
    state = update_state_of(decoded(second))
    assert state is not None
    assert [record.containers for record in state.container_batches_record] == [("redis",), ("nginx",)]
    assert not state.has_next
    assert conditions_of(second)[keys.IN_PLACE_READY]["status"] == "False"
    assert "nginx" in looked_at(second).awaiting
    done = looked_at(restarted(second))
    assert [item.status for item in done.edit.conditions] == ["True"]


def test_a_batch_of_resources_alone_is_applied() -> None:  # IPU-71, the known gap closed
    body = prioritised()
    body["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    spec = UpdateSpec(
        revision="web-new",
        container_images={"redis": "redis:2"},
        container_resources={"nginx": Resources(requests={"cpu": "2"})},
    )
    first = played(body, begun(body, spec, options=VERTICAL))
    arrived = restarted(first)
    for status, container in zip(arrived["status"]["containerStatuses"], arrived["spec"]["containers"], strict=True):
        status["resources"] = container["resources"]
    step = looked_at(arrived, options=VERTICAL)
    assert step.stepped
    assert doors(writes(decoded(arrived), step.edit, reason="test")) == [RESIZE, SPEC]


def test_what_an_abandoned_update_left_is_taken_along() -> None:  # IPU-38
    body = prioritised()
    first = played(body, begun(body, TWO))
    third = UpdateSpec(revision="web-3", container_images={"redis": "redis:3"})
    chain = begun(first, third, new=revision("web-3", nginx="nginx:2", redis="redis:3"))
    second = played(first, chain)
    step = looked_at(restarted(second))
    assert images_of(after(restarted(second), step.edit)) == {"nginx": "nginx:2", "redis": "redis:3"}


def test_env_from_metadata_writes_what_the_container_reads() -> None:  # IPU-34, IPU-53
    spec = UpdateSpec(
        revision="web-new",
        container_ref_metadata={"main": RefMetadata(annotations={"config": "2"})},
        update_env_from_metadata=True,
    )
    body = running(annotations={"config": "1"})
    chain = begun(body, spec)
    assert doors(chain) == [STATUS, SPEC]
    result = played(body, chain)
    assert result["metadata"]["annotations"]["config"] == "2"
    assert keys.CONTAINERS_META_ANNOTATION in looked_at(result).awaiting


# New pods


def test_a_new_pod_gets_both_conditions_in_one_write_when_it_is_bound() -> None:  # IPU-72, IPU-81
    unbound = running(conditions={}, node="", labels={keys.STATE_LABEL: "PreparingNormal"})
    assert looked_at(unbound) == Refreshed()
    bound = running(conditions={"PodScheduled": "True"}, labels={keys.STATE_LABEL: "PreparingNormal"})
    found = looked_at(bound)
    entered = lifecycle.enter(decoded(bound), State.NORMAL, None, now=NOW)
    assert entered is not None
    chain = writes(decoded(bound), found.edit.merged(entered), reason="test")
    assert doors(chain) == [STATUS]
    assert chain[0].resource_version == ""  # the kubelet writes at the same time
    result = played(bound, chain)
    assert {kind: conditions_of(result)[kind]["status"] for kind in BOTH_GATES} == dict.fromkeys(BOTH_GATES, "True")
    assert result["metadata"]["labels"][keys.STATE_LABEL] == "Normal"
    assert looked_at(result) == Refreshed()


def test_refreshing_changes_nothing_the_second_time() -> None:
    body = running(conditions={**CONDITIONS, keys.IN_PLACE_READY: "False"})
    once = after(body, looked_at(body).edit)
    assert looked_at(once) == Refreshed()
    assert readiness.ready(decoded(once), now=NOW) is None
