"""An update that another one overtakes before its containers have arrived (IPU-38).

Whatever the first one still waits for, the second one waits for as well: a pod must not count as available while a
container of it is about to restart.
"""

from __future__ import annotations

import copy
import itertools
from datetime import timedelta
from typing import Any

import pytest

from kruise.api.native.apps import ControllerRevision
from kruise.inplace import edits, engine, keys
from kruise.inplace.completion import is_complete
from kruise.inplace.difference import InPlaceOptions, compare
from kruise.inplace.hashes import ContainerHashes, ContainerMeta, ContainersMeta, containers_meta_json, plain_hash
from kruise.inplace.lifecycle import State
from kruise.inplace.resizing import INFEASIBLE
from kruise.inplace.state import LastStatus, UpdateSpec, UpdateState, state_json, update_state_of
from kruise.machinery.times import format_time
from tests.inplace.acting import NOW, conditions_of, decoded, played, pod_body
from tests.support.inplace_objects import barrier, container, drawn, resources, revision, template

OPTIONS = InPlaceOptions(vertical_scaling=True)
CONDITIONS = {"ContainersReady": "True", "Ready": "True", keys.IN_PLACE_READY: "True", keys.KRUISE_POD_READY: "True"}


def at(number: int, *containers: dict[str, Any], **metadata: Any) -> ControllerRevision:
    return revision(template(*containers, **metadata), f"web-{number}")


def running(given: ControllerRevision, containers: list[dict[str, Any]], **metadata: Any) -> dict[str, Any]:
    """A pod that has arrived at a revision."""
    labels = {"app": "web", **metadata.get("labels", {})}
    labels |= {keys.REVISION_LABEL: given.metadata.name, keys.STATE_LABEL: "Normal"}
    body = pod_body(conditions=CONDITIONS, labels=labels)
    body["metadata"]["generation"] = 1
    body["spec"]["containers"] = copy.deepcopy(containers)
    return restarted(body)


def moved(body: dict[str, Any], old: ControllerRevision, new: ControllerRevision) -> dict[str, Any]:
    spec = compare(old, new, OPTIONS)
    assert isinstance(spec, UpdateSpec)
    labels = {keys.REVISION_LABEL: new.metadata.name}
    chain = engine.begin(decoded(body), spec, labels=labels, state=State.UPDATING, options=OPTIONS, now=NOW, new=new)
    after = played(body, chain)
    after["metadata"]["generation"] = body["metadata"]["generation"] + 1
    return after


def refreshed(body: dict[str, Any]) -> dict[str, Any]:
    """After a look at the pod that carries its update on."""
    pod = decoded(body)
    looked = engine.refresh(pod, options=OPTIONS, now=NOW)
    assert looked.stepped, looked
    after = played(body, edits.writes(pod, looked.edit, reason="refresh"))
    after["metadata"]["generation"] = body["metadata"]["generation"] + 1
    return after


def restarted(body: dict[str, Any], **images: str) -> dict[str, Any]:
    """Its containers run what the spec says, or these images; the node has seen the spec."""
    statuses = []
    for item in body["spec"]["containers"]:
        image = images.get(item["name"], item["image"])
        told = {"name": item["name"], "image": image, "imageID": f"id of {image}", "ready": True}
        statuses.append({**told, "resources": item.get("resources", {})})
    seen = {"containerStatuses": statuses, "observedGeneration": body["metadata"]["generation"]}
    return {**body, "status": {**body["status"], **seen}}


def complete(body: dict[str, Any]) -> bool:
    return is_complete(decoded(body), vertical_scaling=True)


def state_of(body: dict[str, Any]) -> UpdateState:
    state = update_state_of(decoded(body))
    assert state is not None
    return state


def test_a_change_of_labels_waits_for_the_image_before_it() -> None:
    first, second = at(1), at(2, container(image="nginx:1.26"))
    third = at(3, container(image="nginx:1.26"), labels={"app": "web", "team": "b"})
    body = moved(moved(running(first, [container()]), first, second), second, third)
    assert body["metadata"]["labels"]["team"] == "b"
    assert not complete(body)
    looked = engine.refresh(decoded(body), options=OPTIONS, now=NOW)
    assert looked.awaiting == "container main still runs nginx:1.25"
    assert conditions_of(body)[keys.IN_PLACE_READY]["status"] == "False"
    assert complete(restarted(body))


def test_what_has_arrived_is_not_waited_for_again() -> None:
    first, second = at(1), at(2, container(image="nginx:1.26"))
    third = at(3, container(image="nginx:1.26"), labels={"app": "web", "team": "b"})
    body = moved(restarted(moved(running(first, [container()]), first, second)), second, third)
    assert complete(body)
    state = state_of(body)
    assert state.last_container_statuses is None
    assert not state.update_images
    assert [record.containers for record in state.container_batches_record] == [()]


def test_a_container_that_is_changed_again_has_not_arrived_with_the_image_in_between() -> None:
    """Its kubelet may have been about to start that one."""
    images = [container(), container(image="nginx:1.26"), container(image="nginx:1.27")]
    first, second, third = (at(number, image) for number, image in enumerate(images, 1))
    body = moved(moved(running(first, images[:1]), first, second), second, third)
    assert state_of(body).last_container_statuses == {
        "main": LastStatus(image_id="id of nginx:1.25", overtaken=("nginx:1.26",))
    }
    assert not complete(restarted(body, main="nginx:1.26"))
    assert complete(restarted(body))
    assert complete(restarted(body, main="registry.example/by-another-name:1"))


def test_a_container_that_goes_back_has_arrived_when_its_node_has_seen_it() -> None:
    first, second = at(1), at(2, container(image="nginx:1.26"))
    body = moved(moved(running(first, [container()]), first, second), second, first)
    assert not complete(body)  # the node may be about to start nginx:1.26
    assert not complete(restarted(body, main="nginx:1.26"))
    assert complete(restarted(body))


def replaced(body: dict[str, Any], *, seconds: float) -> dict[str, Any]:
    """The container ended, and started again, so long after the last change."""
    (status,) = body["status"]["containerStatuses"]
    moment = format_time(NOW + timedelta(seconds=seconds))
    status["lastState"] = {"terminated": {"finishedAt": moment}}
    status["state"] = {"running": {"startedAt": moment}}
    return body


def overtaken_by(last: str) -> dict[str, Any]:
    images = [container(image="app:1"), container(image="app:2"), container(image=last)]
    first, second, third = (at(number, image) for number, image in enumerate(images, 1))
    return moved(moved(running(first, images[:1]), first, second), second, third)


def test_the_last_image_may_be_the_one_in_between_under_another_name() -> None:
    """containerd tells any name of an image: times tell that the container was replaced since the last change."""
    body = restarted(overtaken_by("app:2-same"), main="app:2")
    assert not complete(body)
    assert not complete(replaced(body, seconds=-2))
    assert complete(replaced(body, seconds=2))


def test_the_last_image_may_be_the_first_one_under_another_name() -> None:
    body = restarted(overtaken_by("app:1-same"), main="app:1")
    assert not complete(body)
    assert not complete(replaced(body, seconds=-2))
    assert complete(replaced(body, seconds=2))


@pytest.mark.parametrize(
    ("made_from", "arrives"),
    [
        pytest.param("app:2-same", True, id="the last image"),
        pytest.param("app:2", False, id="the one in between"),
        pytest.param("", True, id="a number of kubelets before 1.31, which says nothing"),
    ],
)
def test_what_the_node_tells_of_the_container_counts_for_more_than_times(made_from: str, arrives: bool) -> None:
    body = replaced(restarted(overtaken_by("app:2-same"), main="app:2"), seconds=2)
    assert complete(made(body, plain_hash("main", made_from) if made_from else 12345)) is arrives


def made(body: dict[str, Any], number: int) -> dict[str, Any]:
    """The daemon tells what the container was made from."""
    (status,) = body["status"]["containerStatuses"]
    status["containerID"] = "containerd://1"
    hashes = ContainerHashes(plain_hash=number)
    meta = ContainersMeta(containers=(ContainerMeta(name="main", container_id="containerd://1", hashes=hashes),))
    body["metadata"].setdefault("annotations", {})[keys.CONTAINERS_META_ANNOTATION] = containers_meta_json(meta)
    return body


def test_what_the_daemon_tells_does_not_count_while_the_kubelet_is_behind() -> None:
    """It tells of the container that is about to be stopped, which happens to be what the last update wants."""
    first, second = at(1), at(2, container(image="nginx:1.26"))
    started = made(running(first, [container()]), plain_hash("main", "nginx:1.25"))
    back = moved(moved(started, first, second), second, first)
    assert not complete(back)
    again = moved(back, first, second)
    assert not complete(restarted(again, main="nginx:1.25"))
    ran = state_of(again).last_container_statuses
    assert ran is not None
    assert ran["main"].overtaken == ("nginx:1.25",)
    assert complete(restarted(back))


def test_of_several_overtaken_images_none_counts() -> None:
    images = [container(image=f"nginx:{number}") for number in range(4)]
    steps = [at(number, image) for number, image in enumerate(images)]
    body = running(steps[0], images[:1])
    for old, new in itertools.pairwise(steps):
        body = moved(body, old, new)
    assert not complete(restarted(body, main="nginx:1"))
    assert not complete(restarted(body, main="nginx:2"))
    assert complete(restarted(body))


@pytest.mark.parametrize("change", ["labels", "image"])
def test_a_resize_that_was_refused_is_not_forgotten(change: str) -> None:
    """Neither by a change of metadata nor by a new image, as long as the same is asked for."""
    sized = [container(resources=resources(requests={"cpu": amount})) for amount in ("1", "500")]
    first, second = (at(number, item) for number, item in enumerate(sized, 1))
    third = (
        at(3, sized[1], labels={"app": "web", "team": "b"})
        if change == "labels"
        else at(3, {**sized[1], "image": "nginx:1.26"})
    )
    body = moved(moved(running(first, sized[:1]), first, second), second, third)
    body = restarted(body)
    body["status"]["containerStatuses"][0]["resources"] = sized[0]["resources"]
    body["status"]["conditions"].append({"type": "PodResizePending", "status": "True", "reason": INFEASIBLE})
    assert not complete(body)
    looked = engine.refresh(decoded(body), options=OPTIONS, now=NOW)
    assert looked.refused is not None
    fourth = at(4, {**container(image="nginx:1.26"), "resources": resources(requests={"cpu": "2"})})
    assert complete(restarted(moved(body, third, fourth)))


@pytest.mark.parametrize("is_reported", [True, False])
def test_an_environment_that_was_not_taken_over_yet_is_not_forgotten(is_reported: bool) -> None:
    """Where no node tells of environments nobody could wait for it."""
    reading = container(env=[drawn("TEAM", "labels", "team")])
    first, second, third = (
        at(number, reading, labels={"app": "web", "team": team}, annotations={"note": note})
        for number, (team, note) in enumerate((("a", "1"), ("b", "1"), ("b", "2")), 1)
    )
    body = running(first, [reading], labels={"team": "a"})
    if is_reported:
        body["status"]["containerStatuses"][0]["containerID"] = "containerd://1"
        hashes = ContainerHashes(plain_hash=plain_hash("main", "nginx:1.25"), extracted_env_from_metadata_hash=1)
        told = ContainersMeta(containers=(ContainerMeta(name="main", container_id="containerd://1", hashes=hashes),))
        body["metadata"]["annotations"] = {keys.CONTAINERS_META_ANNOTATION: containers_meta_json(told)}
    body = moved(body, first, second)
    assert not complete(body)
    body = moved(body, second, third)
    assert state_of(body).update_env_from_metadata is is_reported
    assert complete(body) is not is_reported


def test_overtaken_images_stand_in_the_annotation_only_where_there_are_some() -> None:
    plain = UpdateState(revision="web-1", last_container_statuses={"main": LastStatus(image_id="a")})
    assert '"lastContainerStatuses":{"main":{"imageID":"a"}}' in state_json(plain)
    last = {"main": LastStatus(image_id="a", overtaken=("nginx:1", "nginx:2"))}
    text = state_json(UpdateState(revision="web-1", last_container_statuses=last))
    assert '{"main":{"imageID":"a","overtaken":["nginx:1","nginx:2"]}}' in text


def test_only_the_last_overtaken_images_are_remembered() -> None:
    """A container that never starts is changed again and again, and annotations have an end."""
    revisions = [at(number, container(image=f"nginx:{number}")) for number in range(40)]
    body = running(revisions[0], [container(image="nginx:0")])
    for before, after in itertools.pairwise(revisions):
        body = moved(body, before, after)
    last = state_of(body).last_container_statuses
    assert last == {
        "main": LastStatus(image_id="id of nginx:0", overtaken=tuple(f"nginx:{number}" for number in range(19, 39)))
    }


def by_priority(low: dict[str, Any], high: dict[str, Any]) -> list[dict[str, Any]]:
    return [container("low", **low, env=[barrier(0)]), container("high", **high, env=[barrier(10)])]


def test_a_container_that_was_broken_holds_up_no_batch_before_its_own() -> None:
    """IPU-54: the batch that repairs it comes after that of a container with a higher priority."""
    images = [("low:1", "high:1"), ("low:broken", "high:1"), ("low:2", "high:2")]
    all_containers = [by_priority({"image": low}, {"image": high}) for low, high in images]
    first, second, third = (at(number, *containers) for number, containers in enumerate(all_containers, 1))
    body = moved(moved(running(first, all_containers[0]), first, second), second, third)
    body = refreshed(restarted(body, low="low:1"))  # the image in between cannot be pulled
    assert [item["image"] for item in body["spec"]["containers"]] == ["low:2", "high:2"]
    assert not complete(body)
    assert not complete(restarted(body, low="low:1"))
    assert complete(restarted(body))


def test_resources_that_are_refused_hold_up_no_batch_before_their_correction() -> None:
    """The node grants what a pod asks for in all, or nothing of it."""
    amounts = [("1", "1"), ("500", "1"), ("2", "3")]
    all_containers = [
        by_priority(*({"resources": resources(requests={"cpu": amount})} for amount in pair)) for pair in amounts
    ]
    all_containers[2][0]["image"] = all_containers[2][1]["image"] = "nginx:1.26"
    first, second, third = (at(number, *containers) for number, containers in enumerate(all_containers, 1))
    body = restarted(moved(running(first, all_containers[0]), first, second))
    body["status"]["containerStatuses"][0]["resources"] = all_containers[0][0]["resources"]
    body["status"]["conditions"].append({"type": "PodResizePending", "status": "True", "reason": INFEASIBLE})
    body = moved(body, second, third)
    assert [item["resources"]["requests"]["cpu"] for item in body["spec"]["containers"]] == ["2", "3"]
    assert [item["image"] for item in body["spec"]["containers"]] == ["nginx:1.25", "nginx:1.26"]  # in their order
    body["status"]["conditions"].pop()
    body = refreshed(restarted(body))
    assert [item["image"] for item in body["spec"]["containers"]] == ["nginx:1.26", "nginx:1.26"]
    assert complete(restarted(body))
