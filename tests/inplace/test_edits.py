"""Edits of a pod: how few requests they take, and what stays untouched when the pod has moved on."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.api.meta import Condition
from kruise.inplace import keys
from kruise.inplace.edits import NO_EDIT, PodEdit, writes
from kruise.inplace.state import Resources
from kruise.machinery.apply import Applier
from kruise.machinery.client.requests import PatchType
from kruise.machinery.clock import run_virtual
from kruise.machinery.patches.errors import PatchError
from kruise.machinery.plan import Result
from tests.inplace.acting import NOW, conditions_of, decoded, doors, played, pod, pod_body
from tests.support.examples import EXAMPLES
from tests.support.inprocess import InProcess

REVISION = {keys.REVISION_LABEL: "web-1"}
STATE = {keys.UPDATE_STATE_ANNOTATION: '{"revision":"web-1"}'}
TRUE_NOW = "2026-03-04T05:06:07Z"


def made(kind: str, status: str = "True", message: str = "") -> Condition:
    return Condition(type=kind, status=status, message=message, last_transition_time=NOW)


def applied(body: dict[str, Any], edit: PodEdit, **options: Any) -> dict[str, Any]:
    return played(body, writes(decoded(body), edit, reason="test", **options))


def test_nothing_to_change_is_no_request() -> None:
    seen = pod(labels={"a": "1"}, finalizers=["x"])
    nothing = PodEdit(labels={"a": "1", "b": None}, add_finalizers=("x",), remove_finalizers=("y",), exact=True)
    assert writes(seen, nothing, reason="test") == ()
    assert writes(seen, NO_EDIT, reason="test") == ()
    assert NO_EDIT.is_empty
    assert not nothing.is_empty


def test_metadata_alone_is_one_strategic_patch_of_the_pod() -> None:  # IPU-100
    body = pod_body(labels={"a": "1", "gone": "x"}, finalizers=["keep", "drop"])
    edit = PodEdit(
        labels={"a": "2", "gone": None},
        annotations={"n": "1"},
        add_finalizers=("new",),
        remove_finalizers=("drop",),
    )
    chain = writes(decoded(body), edit, reason="test")
    assert doors(chain) == [("", PatchType.STRATEGIC)]
    metadata = played(body, chain)["metadata"]
    assert metadata["labels"] == {"a": "2"}
    assert metadata["annotations"] == {"n": "1"}
    assert sorted(metadata["finalizers"]) == ["keep", "new"]


def test_conditions_take_the_metadata_along() -> None:
    """Two conditions, a label, an annotation and a finalizer: one request."""
    body = pod_body(conditions={"Ready": "True"}, labels={"a": "1"})
    edit = PodEdit(
        labels={"a": "2"},
        annotations={"n": "1"},
        add_finalizers=("f",),
        conditions=(made(keys.IN_PLACE_READY), made(keys.KRUISE_POD_READY)),
    )
    chain = writes(decoded(body), edit, reason="test")
    assert doors(chain) == [("status", PatchType.STRATEGIC)]
    result = played(body, chain)
    assert result["metadata"]["labels"] == {"a": "2"}
    assert result["metadata"]["annotations"] == {"n": "1"}
    assert result["metadata"]["finalizers"] == ["f"]
    assert set(conditions_of(result)) == {"Ready", keys.IN_PLACE_READY, keys.KRUISE_POD_READY}
    assert conditions_of(result)[keys.IN_PLACE_READY] == {
        "type": keys.IN_PLACE_READY,
        "status": "True",
        "lastTransitionTime": TRUE_NOW,
    }


def test_a_merged_condition_loses_its_old_reason_and_message() -> None:
    body = pod_body(conditions={keys.IN_PLACE_READY: {"status": "False", "reason": "Old", "message": "old"}})
    result = conditions_of(applied(body, PodEdit(conditions=(made(keys.IN_PLACE_READY),))))[keys.IN_PLACE_READY]
    assert (result["status"], result["reason"], result["message"]) == ("True", "", "")


def test_an_image_is_changed_by_place_and_the_place_is_tested() -> None:
    body = pod_body(images={"a": "one:1", "b": "two:1"}, labels=REVISION, annotations=STATE)
    edit = PodEdit(images={"b": "two:2", "absent": "x"}, labels={keys.REVISION_LABEL: "web-2"})
    chain = writes(decoded(body), edit, reason="test")
    assert doors(chain) == [("", PatchType.JSON)]
    result = played(body, chain)
    assert [item["image"] for item in result["spec"]["containers"]] == ["one:1", "two:2"]
    assert result["metadata"]["labels"] == {keys.REVISION_LABEL: "web-2"}
    reordered = copy.deepcopy(body)
    reordered["spec"]["containers"].reverse()
    with pytest.raises(PatchError):
        played(reordered, chain)


def test_conditions_resources_and_images_go_in_this_order() -> None:  # IPU-55
    body = pod_body(labels=REVISION, annotations=STATE, conditions={keys.IN_PLACE_READY: "True"})
    body["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1", "memory": "1Gi"}}
    edit = PodEdit(
        conditions=(made(keys.IN_PLACE_READY, "False"),),
        resources={"main": Resources(limits={"cpu": "800m", "memory": "1024Mi"})},
        images={"main": "nginx:1.26"},
        labels={keys.REVISION_LABEL: "web-2"},
    )
    chain = writes(decoded(body), edit, reason="test")
    assert doors(chain) == [("status", PatchType.STRATEGIC), ("resize", PatchType.STRATEGIC), ("", PatchType.JSON)]
    # Only what differs: 1024Mi is the 1Gi that the pod has.
    assert chain[1].body == {"spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": "800m"}}}]}}
    result = played(body, chain)
    assert result["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "800m", "memory": "1Gi"}
    assert result["spec"]["containers"][0]["image"] == "nginx:1.26"
    # The second try after a break finds the resources done (IPU-55).
    again = writes(decoded(played(body, chain[:2])), edit, reason="test")
    assert [action.subresource for action in again] == ["status", ""]


def test_resources_and_metadata_without_images_are_exact() -> None:
    """The revision label comes after the resize: a chain that broke off in between is begun anew."""
    body = pod_body(labels=REVISION, annotations=STATE)
    body["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    edit = PodEdit(
        resources={"main": Resources(requests={"cpu": "2"})},
        labels={keys.REVISION_LABEL: "web-2"},
        conditions=(made(keys.IN_PLACE_READY, "False"),),
    )
    chain = writes(decoded(body), edit, reason="test")
    assert doors(chain) == [("status", PatchType.STRATEGIC), ("resize", PatchType.STRATEGIC), ("", PatchType.JSON)]
    assert "metadata" not in chain[0].body
    assert played(body, chain)["metadata"]["labels"] == {keys.REVISION_LABEL: "web-2"}


def test_older_servers_get_resources_with_the_pod() -> None:  # IPU-55
    body = pod_body(labels=REVISION, annotations=STATE)
    body["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1", "memory": "1Gi"}}
    edit = PodEdit(resources={"main": Resources(limits={"cpu": "800m"}, requests={"cpu": "400m"})})
    chain = writes(decoded(body), edit, reason="test", resize_subresource=False)
    assert doors(chain) == [("", PatchType.JSON)]
    assert played(body, chain)["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "800m", "memory": "1Gi"},
        "requests": {"cpu": "400m"},
    }


MOVED_ON: dict[str, dict[str, Any]] = {
    "another revision": {"labels": {keys.REVISION_LABEL: "web-2"}, "annotations": STATE},
    "another update": {"labels": REVISION, "annotations": {keys.UPDATE_STATE_ANNOTATION: "{}"}},
    "state gone": {"labels": REVISION, "annotations": {"other": "1"}},
    "all annotations gone": {"labels": REVISION},
    "all labels gone": {"annotations": STATE},
}


@pytest.mark.parametrize("found", MOVED_ON)
@pytest.mark.parametrize("door", ["status", "pod"])
def test_an_exact_edit_refuses_a_pod_that_moved_on(found: str, door: str) -> None:  # IPU-72, regression 8
    seen = pod_body(labels=REVISION, annotations=STATE, conditions={keys.IN_PLACE_READY: "False"})
    conditions = (made(keys.IN_PLACE_READY),) if door == "status" else ()
    edit = PodEdit(conditions=conditions, labels={"x": "y"}, exact=True)
    chain = writes(decoded(seen), edit, reason="test")
    assert doors(chain) == [("status" if door == "status" else "", PatchType.JSON)]
    assert played(seen, chain)["metadata"]["labels"]["x"] == "y"
    moved = pod_body(**MOVED_ON[found], conditions={keys.IN_PLACE_READY: "False"})
    with pytest.raises(PatchError):
        played(moved, chain)


def test_an_exact_edit_of_a_pod_without_labels_or_annotations() -> None:
    """Maps that are not there are made, but never over somebody else's head."""
    body = pod_body()
    edit = PodEdit(labels={"a": "1"}, annotations={"b/c": "2"}, add_finalizers=("f",), exact=True)
    chain = writes(decoded(body), edit, reason="test")
    metadata = played(body, chain)["metadata"]
    assert (metadata["labels"], metadata["annotations"], metadata["finalizers"]) == ({"a": "1"}, {"b/c": "2"}, ["f"])
    for name, value in (("labels", {"z": "1"}), ("annotations", {"z": "1"}), ("finalizers", ["z"])):
        with pytest.raises(PatchError):
            played(pod_body(**{name: value}), chain)


def test_exact_conditions_are_replaced_in_place() -> None:
    told = {"status": "False", "reason": "StartInPlaceUpdate"}
    body = pod_body(
        labels=REVISION, annotations=STATE, conditions={"Ready": "False", keys.IN_PLACE_READY: told, "Mine": "True"}
    )
    chain = writes(decoded(body), PodEdit(conditions=(made(keys.IN_PLACE_READY),), exact=True), reason="test")
    result = played(body, chain)
    assert [item["type"] for item in result["status"]["conditions"]] == ["Ready", keys.IN_PLACE_READY, "Mine"]
    assert conditions_of(result)[keys.IN_PLACE_READY] == {
        "type": keys.IN_PLACE_READY,
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": TRUE_NOW,
    }
    moved = copy.deepcopy(body)
    moved["status"]["conditions"].reverse()
    moved["status"]["conditions"].append(moved["status"]["conditions"].pop(0))
    with pytest.raises(PatchError):
        played(moved, chain)


def test_an_exact_edit_that_needs_a_new_condition_is_guarded_by_the_version() -> None:
    """A JSON patch could append a second condition of the same type beside somebody else's."""
    body = pod_body(labels=REVISION, annotations=STATE, conditions={keys.IN_PLACE_READY: "False"})
    edit = PodEdit(conditions=(made(keys.IN_PLACE_READY), made(keys.KRUISE_POD_READY)), labels={"a": "b"}, exact=True)
    (action,) = writes(decoded(body), edit, reason="test")
    assert (action.subresource, action.patch_type, action.resource_version) == ("status", PatchType.STRATEGIC, "7")
    assert set(conditions_of(played(body, [action]))) == {keys.IN_PLACE_READY, keys.KRUISE_POD_READY}


def test_the_message_of_several_writers_is_tested() -> None:  # IPU-82
    told = {"status": "False", "message": "[1]"}
    body = pod_body(conditions={keys.KRUISE_POD_READY: told})
    (action,) = writes(decoded(body), PodEdit(conditions=(made(keys.KRUISE_POD_READY, "True", "[]"),)), reason="test")
    assert (action.subresource, action.patch_type) == ("status", PatchType.JSON)
    assert conditions_of(played(body, [action]))[keys.KRUISE_POD_READY]["message"] == "[]"
    other = pod_body(conditions={keys.KRUISE_POD_READY: {**told, "message": "[1,2]"}})
    with pytest.raises(PatchError):
        played(other, [action])


def test_the_first_message_of_a_condition_that_is_there_is_tested() -> None:
    body = pod_body(conditions={keys.KRUISE_POD_READY: "True"})
    chain = writes(decoded(body), PodEdit(conditions=(made(keys.KRUISE_POD_READY, "False", "[1]"),)), reason="test")
    assert conditions_of(played(body, chain))[keys.KRUISE_POD_READY]["message"] == "[1]"
    with pytest.raises(PatchError):
        played(pod_body(conditions={keys.KRUISE_POD_READY: {"status": "False", "message": "[2]"}}), chain)


def test_the_first_message_of_a_missing_condition_is_guarded_by_the_version() -> None:
    (action,) = writes(pod(), PodEdit(conditions=(made(keys.KRUISE_POD_READY, "False", "[1]"),)), reason="test")
    assert (action.patch_type, action.resource_version) == (PatchType.STRATEGIC, "7")


def test_conditions_of_a_pod_that_has_none() -> None:
    body = pod_body()
    result = applied(body, PodEdit(conditions=(made(keys.KRUISE_POD_READY),)))
    assert set(conditions_of(result)) == {keys.KRUISE_POD_READY}


def test_a_condition_without_a_time_is_written_without_one() -> None:  # IPU-93
    body = pod_body(conditions={"Ready": "True"})
    edit = PodEdit(conditions=(Condition(type="Ready", status="False", reason="R", message="m"),))
    assert conditions_of(applied(body, edit))["Ready"].get("lastTransitionTime") is None


def test_every_write_is_guarded_by_the_uid() -> None:
    body = pod_body(labels=REVISION)
    body["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1"}}
    edit = PodEdit(conditions=(made("X"),), images={"main": "x"}, resources={"main": Resources(limits={"cpu": "2"})})
    chain = writes(decoded(body), edit, reason="why")
    assert len(chain) == 3
    assert {(action.uid, action.reason) for action in chain} == {(body["metadata"]["uid"], "why")}


NAMES = st.sampled_from(["a", "b", "c/d", "e~f"])
VALUES = st.none() | st.sampled_from(["1", "2"])
TEXTS = st.sampled_from(["1", "2"])
KINDS = st.sampled_from(["Ready", keys.IN_PLACE_READY, "Other"])
EDITS = st.builds(
    PodEdit,
    labels=st.dictionaries(NAMES, VALUES, max_size=3),
    annotations=st.dictionaries(NAMES, VALUES, max_size=3),
    add_finalizers=st.lists(NAMES, unique=True, max_size=2).map(tuple),
    conditions=st.dictionaries(KINDS, st.sampled_from(["True", "False"]), max_size=2).map(
        lambda told: tuple(made(kind, status) for kind, status in told.items())
    ),
    images=st.dictionaries(st.sampled_from(["one", "two"]), TEXTS, max_size=2),
    exact=st.booleans(),
)
BODIES = st.builds(
    pod_body,
    labels=st.dictionaries(NAMES, TEXTS, max_size=3),
    annotations=st.dictionaries(NAMES, TEXTS, max_size=3),
    finalizers=st.lists(NAMES, unique=True, max_size=3),
    conditions=st.dictionaries(KINDS, st.sampled_from(["True", "False"]), max_size=3),
    images=st.just({"one": "1", "two": "1"}),
)


def facts_of(body: dict[str, Any]) -> dict[str, Any]:
    metadata = body["metadata"]
    return {
        "labels": metadata.get("labels", {}),
        "annotations": metadata.get("annotations", {}),
        "finalizers": set(metadata.get("finalizers", ())),
        "conditions": {kind: item["status"] for kind, item in conditions_of(body).items()},
        "images": {item["name"]: item["image"] for item in body["spec"]["containers"]},
    }


def wanted_of(body: dict[str, Any], edit: PodEdit) -> dict[str, Any]:
    facts = facts_of(body)

    def changed(seen: dict[str, str], changes: Any) -> dict[str, str]:
        return {name: value for name, value in {**seen, **changes}.items() if value is not None}

    return {
        "labels": changed(facts["labels"], edit.labels),
        "annotations": changed(facts["annotations"], edit.annotations),
        "finalizers": (facts["finalizers"] - set(edit.remove_finalizers)) | set(edit.add_finalizers),
        "conditions": facts["conditions"] | {item.type: item.status for item in edit.conditions},
        "images": facts["images"] | {name: image for name, image in edit.images.items() if name in facts["images"]},
    }


@settings(max_examples=50 * EXAMPLES, deadline=None)
@given(body=BODIES, edit=EDITS)
def test_writes_make_exactly_the_edit(body: dict[str, Any], edit: PodEdit) -> None:
    chain = writes(decoded(body), edit, reason="test")
    assert facts_of(played(body, chain)) == wanted_of(body, edit)
    assert len(chain) <= 2
    if not edit.images:
        assert len(chain) <= 1


@settings(max_examples=100, deadline=None)
@given(body=BODIES, first=EDITS, second=EDITS)
def test_merged_edits_are_both_edits_with_the_second_on_top(
    body: dict[str, Any], first: PodEdit, second: PodEdit
) -> None:
    merged = first.merged(second)
    assert facts_of(applied(body, merged)) == wanted_of(applied(body, first), second)
    assert merged.exact == (first.exact or second.exact)


def test_merged_finalizers_follow_the_second() -> None:
    merged = PodEdit(add_finalizers=("a", "b")).merged(PodEdit(remove_finalizers=("a",), add_finalizers=("c",)))
    assert (merged.add_finalizers, merged.remove_finalizers) == (("b", "c"), ("a",))
    back = PodEdit(remove_finalizers=("a",)).merged(PodEdit(add_finalizers=("a",)))
    assert (back.add_finalizers, back.remove_finalizers) == (("a",), ())


def test_the_local_server_takes_and_refuses_edits_as_a_real_one() -> None:
    """The same steps as on a real server: everything in one request, then refused where the pod moved on."""

    async def main() -> None:
        scene = InProcess()
        applier = Applier(scene.client, None, clock=scene.clock)
        seen = await scene.add_pod("a", labels=REVISION, annotations=STATE, finalizers=["example.com/drop"])
        first = PodEdit(
            labels={"x": "1"},
            remove_finalizers=("example.com/drop",),
            add_finalizers=("example.com/new",),
            conditions=(made(keys.IN_PLACE_READY, "False"), made(keys.KRUISE_POD_READY)),
        )
        (action,) = writes(seen, first, reason="test")
        answer = await applier.carry_out(action)
        seen = answer.object
        assert answer.result is Result.DONE
        assert (seen.metadata.labels["x"], seen.metadata.finalizers) == ("1", ("example.com/new",))
        ready = PodEdit(conditions=(made(keys.IN_PLACE_READY),), labels={"x": None}, exact=True)
        image = PodEdit(images={"main": "app:2"}, labels={keys.REVISION_LABEL: "web-2"})
        late, update = writes(seen, ready, reason="test"), writes(seen, image, reason="test")
        results = [(await applier.carry_out(action)).result for action in (*update, *late)]
        assert results == [Result.DONE, Result.MOVED]

    run_virtual(main())
