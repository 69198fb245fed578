"""What an in-place update leaves alone, whatever it changes."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.inplace import engine, keys
from kruise.inplace.difference import InPlaceOptions, compare
from kruise.inplace.edits import PodEdit, writes
from kruise.inplace.state import Resources, UpdateSpec
from kruise.machinery.patches.errors import PatchError
from kruise.machinery.plan import Chain
from tests.inplace.acting import NOW, decoded, played, pod_body
from tests.support.inplace_objects import barrier, container, drawn, revision, template

OPTIONS = InPlaceOptions(env_from_metadata=True, vertical_scaling=True, compare_claim_templates=False)
NAMES = ("first", "second", "third")
CONDITIONS = {"ContainersReady": "True", "Ready": "True", keys.IN_PLACE_READY: "True", keys.KRUISE_POD_READY: "True"}


def begun(body: dict[str, Any], old: dict[str, Any], new: dict[str, Any]) -> Chain:
    target = revision(new)
    spec = compare(revision(old, "web-rev-1"), target, OPTIONS)
    assert isinstance(spec, UpdateSpec), spec
    labels = {keys.REVISION_LABEL: target.metadata.name}
    return engine.begin(decoded(body), spec, labels=labels, state="Updating", options=OPTIONS, now=NOW, new=target)


def restarted(body: dict[str, Any]) -> dict[str, Any]:
    statuses = [
        {
            "name": item["name"],
            "image": item["image"],
            "imageID": f"id of {item['image']}",
            "ready": True,
            "resources": item["resources"],
        }
        for item in body["spec"]["containers"]
    ]
    return {**body, "status": {**body["status"], "containerStatuses": statuses}}


def to_its_end(body: dict[str, Any], chain: Chain) -> dict[str, Any]:
    """Let the containers restart and every further batch follow."""
    body = restarted(played(body, chain))
    for _ in NAMES:
        look = engine.refresh(decoded(body), options=OPTIONS, now=NOW)
        body = restarted(played(body, writes(decoded(body), look.edit, reason="test")))
    return body


@st.composite
def updates(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """A pod with launch barriers, volumes and an injected container; its old template, and one to go to in place."""
    containers = [
        container(
            name,
            f"{name}:1",
            env=[drawn("TIER", "labels", "tier"), {"name": "KRUISE_CONTAINER_PRIORITY", "value": "1"}],
        )
        for name in NAMES
    ]
    old = template(*containers, labels={"app": "web", "tier": "a"})
    new = copy.deepcopy(old)
    for index in draw(st.sets(st.sampled_from(range(len(NAMES))))):
        new["spec"]["containers"][index]["image"] = f"{NAMES[index]}:2"
    new["metadata"]["annotations"] = {"note": draw(st.sampled_from(["", "x"]))}
    labels = {"app": "web", "tier": "a", keys.REVISION_LABEL: "web-rev-1", keys.STATE_LABEL: "Normal"}
    body = pod_body(labels=labels, annotations={"theirs": "stays"}, conditions=CONDITIONS, finalizers=["theirs/too"])
    body["spec"]["containers"] = [
        {**item, "env": [*item["env"], barrier(draw(st.integers(0, 2)))], "resources": {}} for item in containers
    ]
    body["spec"]["containers"].append({"name": "injected", "image": "proxy:1", "resources": {}})
    body["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-1"}}]
    return restarted(body), old, new


@given(updates())
@settings(max_examples=60, deadline=None)
def test_only_images_of_the_template_change(
    made: tuple[dict[str, Any], dict[str, Any], dict[str, Any]],
) -> None:  # IPU-162, IPU-163, IPU-164
    """Barriers, other variables, volumes, node and injected containers are as before; the images are the new ones."""
    body, old, new = made
    result = to_its_end(body, begun(body, old, new))
    images = [item["image"] for item in new["spec"]["containers"]]
    expected = copy.deepcopy(body["spec"])
    for item, image in zip(expected["containers"], [*images, "proxy:1"], strict=True):
        item["image"] = image
    assert result["spec"] == expected
    metadata = result["metadata"]
    assert (metadata["uid"], metadata["name"]) == (body["metadata"]["uid"], body["metadata"]["name"])
    assert metadata["finalizers"] == ["theirs/too"]
    assert metadata["annotations"]["theirs"] == "stays"


@given(updates())
@settings(max_examples=30, deadline=None)
def test_an_update_that_breaks_off_leaves_the_pod_as_it_was(
    made: tuple[dict[str, Any], dict[str, Any], dict[str, Any]],
) -> None:  # IPU-44
    """After the first write only the pod is unready; the same decision can be made again and ends the same way."""
    body, old, new = made
    chain = begun(body, old, new)
    halfway = played(body, chain[:1])
    assert (halfway["spec"], halfway["metadata"]) == (body["spec"], body["metadata"])
    again = to_its_end(halfway, begun(halfway, old, new))
    assert again["spec"] == to_its_end(body, chain)["spec"]


def test_metadata_goes_with_the_first_batch() -> None:  # IPU-50
    containers = [container("first", "first:1"), container("second", "second:1")]
    old = template(*containers, annotations={"note": "a"})
    new = template(container("first", "first:2"), container("second", "second:2"), annotations={"note": "b"})
    body = pod_body(annotations={"note": "a"}, labels={keys.REVISION_LABEL: "web-rev-1"}, conditions=CONDITIONS)
    body["spec"]["containers"] = [
        {**item, "env": [barrier(priority)], "resources": {}} for priority, item in enumerate(containers)
    ]
    halfway = played(restarted(body), begun(restarted(body), old, new))
    assert [item["image"] for item in halfway["spec"]["containers"]] == ["first:1", "second:2"]
    assert halfway["metadata"]["annotations"]["note"] == "b"
    # Somebody changes it meanwhile: the next batch has nothing to say about it.
    halfway["metadata"]["annotations"]["note"] = "theirs"
    look = engine.refresh(decoded(restarted(halfway)), options=OPTIONS, now=NOW)
    assert look.stepped
    assert "note" not in look.edit.annotations


def test_the_last_finalizer_goes_with_its_list() -> None:  # IPU-72: on the very pod that was looked at
    body = pod_body(finalizers=["example.com/hook"])
    edit = PodEdit(remove_finalizers=("example.com/hook",), exact=True)
    chain = writes(decoded(body), edit, reason="test")
    assert "finalizers" not in played(body, chain)["metadata"]
    with pytest.raises(PatchError):
        played(pod_body(finalizers=["example.com/hook", "theirs/too"]), chain)


def test_amounts_that_cannot_be_read_are_compared_as_they_are() -> None:  # IPU-55
    body = pod_body()
    body["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "many", "memory": "1Gi"}}
    wanted = Resources(limits={"cpu": "many", "memory": "1024Mi"})
    assert writes(decoded(body), PodEdit(resources={"main": wanted}), reason="test") == ()
    more = Resources(limits={"cpu": "more"})
    [resize] = writes(decoded(body), PodEdit(resources={"main": more}), reason="test")
    assert resize.subresource == "resize"
