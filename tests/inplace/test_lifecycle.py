"""Lifecycle states and hooks: every row of the table, as decisions over one pod (IPU section 13)."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.api.apps.shared import Lifecycle, LifecycleHook
from kruise.api.native.pod import Pod
from kruise.inplace import keys, lifecycle
from kruise.inplace.edits import PodEdit, writes
from kruise.inplace.lifecycle import State, Turn
from tests.inplace.acting import NOW, conditions_of, decoded, doors, played, pod, pod_body

LABEL = LifecycleHook(labels_handler={"hook": "true"})
FINALIZER = LifecycleHook(finalizers_handler=("example.com/hold",))
BOTH = LifecycleHook(labels_handler={"hook": "true"}, finalizers_handler=("example.com/hold",))
EMPTY = LifecycleHook()
MARKS = LifecycleHook(labels_handler={"hook": "true"}, mark_pod_not_ready=True)
HOOKED = {"hook": "true"}
READY = {"Ready": "True", "ContainersReady": "True", keys.IN_PLACE_READY: "True", keys.KRUISE_POD_READY: "True"}


def in_state(state: str, labels: dict[str, str] | None = None, **options: Any) -> Pod:
    return decoded(body_in(state, labels, **options))


def body_in(state: str, labels: dict[str, str] | None = None, **options: Any) -> dict[str, Any]:
    named = {keys.STATE_LABEL: state} if state else {}
    return pod_body(labels={**named, **(labels or {})}, **options)


@pytest.mark.parametrize(
    ("hook", "options", "hooked", "fully"),
    [
        (None, {}, False, False),
        (EMPTY, {}, False, True),
        (LABEL, {}, False, False),
        (LABEL, {"labels": {"hook": "false"}}, False, False),
        (LABEL, {"labels": HOOKED}, True, True),
        (FINALIZER, {"finalizers": ["example.com/hold"]}, True, True),
        (BOTH, {"labels": HOOKED}, True, False),
        (BOTH, {"finalizers": ["example.com/hold"]}, True, False),
        (BOTH, {"labels": HOOKED, "finalizers": ["example.com/hold"]}, True, True),
    ],
)
def test_hooked_and_fully_hooked(  # IPU-2
    hook: LifecycleHook | None, options: dict[str, Any], hooked: bool, fully: bool
) -> None:
    seen = pod(**options)
    assert lifecycle.is_hooked(seen, hook) is hooked
    assert lifecycle.is_fully_hooked(seen, hook) is fully


def test_what_a_hook_waits_for_in_words() -> None:
    seen = pod(labels=HOOKED, finalizers=["example.com/hold"])
    assert lifecycle.waiting_for(seen, LABEL) == "label hook=true must be removed"
    expected = "label hook=true and finalizer example.com/hold must be removed"
    assert lifecycle.waiting_for(seen, BOTH) == expected
    assert lifecycle.waiting_for(pod(labels=HOOKED), BOTH) == "label hook=true must be removed"
    assert lifecycle.lacking(pod(labels=HOOKED), BOTH) == "finalizer example.com/hold must be added"
    assert lifecycle.waiting_for(seen, None) == lifecycle.lacking(seen, BOTH) == ""


def test_a_state_is_one_patch_with_label_and_time() -> None:  # IPU-100
    seen = in_state("PreparingNormal")
    edit = lifecycle.enter(seen, State.NORMAL, None, now=NOW)
    assert edit == PodEdit(
        labels={keys.STATE_LABEL: "Normal"}, annotations={keys.STATE_TIME_ANNOTATION: "2026-03-04T05:06:07Z"}
    )
    assert [action.subresource for action in writes(seen, edit, reason="test")] == [""]
    assert lifecycle.enter(in_state("Normal"), State.NORMAL, None, now=NOW) is None


@pytest.mark.parametrize(
    ("state", "hooks", "key"),
    [
        (State.PREPARING_DELETE, Lifecycle(pre_delete=MARKS), "preDeleteHook"),
        (State.PREPARING_UPDATE, Lifecycle(in_place_update=MARKS), "preUpdateHook"),
    ],
)
def test_preparing_marks_the_pod_not_ready_in_the_same_write(  # IPU-83, IPU-100
    state: State, hooks: Lifecycle, key: str
) -> None:
    body = body_in("Normal", conditions=READY)
    edit = lifecycle.enter(decoded(body), state, hooks, now=NOW)
    assert edit is not None
    chain = writes(decoded(body), edit, reason="test")
    assert [action.subresource for action in chain] == ["status"]
    result = played(body, chain)
    assert result["metadata"]["labels"][keys.STATE_LABEL] == state
    condition = conditions_of(result)[keys.KRUISE_POD_READY]
    assert (condition["status"], condition["message"]) == ("False", f'[{{"userAgent":"Lifecycle","key":"{key}"}}]')
    assert conditions_of(result)["Ready"]["status"] == "False"
    # With the label right already, the readiness is still seen to.
    marked = {**body, "metadata": result["metadata"]}
    again = lifecycle.enter(decoded(marked), state, hooks, now=NOW)
    assert again is not None
    assert (dict(again.labels), [item.type for item in again.conditions]) == ({}, [keys.KRUISE_POD_READY, "Ready"])
    assert lifecycle.enter(decoded(result), state, hooks, now=NOW) is None


def test_hooks_without_mark_leave_readiness_alone() -> None:  # IPU-100
    seen = in_state("Normal", conditions=READY)
    hooks = Lifecycle(pre_delete=LABEL, in_place_update=LABEL)
    for state in (State.PREPARING_DELETE, State.PREPARING_UPDATE):
        edit = lifecycle.enter(seen, state, hooks, now=NOW)
        assert edit is not None
        assert edit.conditions == ()


UPDATE_ENTRY = {"status": "False", "message": '[{"userAgent":"Lifecycle","key":"preUpdateHook"}]'}
DELETE_ENTRY = {"status": "False", "message": '[{"userAgent":"Lifecycle","key":"preDeleteHook"}]'}


@pytest.mark.parametrize(
    ("before", "after", "entry"),
    [
        ("Updating", State.UPDATED, UPDATE_ENTRY),
        ("Updating", State.NORMAL, UPDATE_ENTRY),
        ("PreparingUpdate", State.NORMAL, UPDATE_ENTRY),
        ("PreparingDelete", State.PREPARING_NORMAL, DELETE_ENTRY),
    ],
)
@pytest.mark.parametrize("hooks", [None, Lifecycle(in_place_update=MARKS, pre_delete=MARKS)])
def test_a_state_that_is_left_takes_its_reason_with_it(  # IPU-100, IPU-101
    before: str, after: State, entry: dict[str, str], hooks: Lifecycle | None
) -> None:
    """Also where the hook is gone by now: nobody else would ever make the pod ready again."""
    body = body_in(before, conditions={keys.KRUISE_POD_READY: entry})
    edit = lifecycle.enter(decoded(body), after, hooks, now=NOW)
    assert edit is not None
    chain = writes(decoded(body), edit, reason="test")
    assert len(doors(chain)) == 1
    found = conditions_of(played(body, chain))[keys.KRUISE_POD_READY]
    assert (found["status"], found["message"]) == ("True", "[]")


def test_updated_keeps_a_reason_against_the_pod_that_is_not_its_own() -> None:  # IPU-82, IPU-100
    seen = in_state("Updating", conditions={keys.KRUISE_POD_READY: DELETE_ENTRY})
    edit = lifecycle.enter(seen, State.UPDATED, Lifecycle(in_place_update=MARKS), now=NOW)
    assert edit is not None
    assert edit.conditions == ()


IN_PLACE = Lifecycle(in_place_update=LABEL)
PRE_NORMAL = Lifecycle(pre_normal=BOTH)


@pytest.mark.parametrize(
    ("state", "hooks", "options", "complete", "at_revision", "expected"),
    [
        # New pods (IPU-104: not before they have a node)
        ("PreparingNormal", None, {}, True, True, State.NORMAL),
        ("PreparingNormal", None, {"node": ""}, True, True, None),
        ("PreparingNormal", Lifecycle(), {}, True, False, State.NORMAL),
        ("PreparingNormal", PRE_NORMAL, {}, True, True, None),
        ("PreparingNormal", PRE_NORMAL, {"labels": HOOKED}, True, True, None),
        (
            "PreparingNormal",
            PRE_NORMAL,
            {"labels": HOOKED, "finalizers": ["example.com/hold"]},
            True,
            True,
            State.NORMAL,
        ),
        # Updated while it still waited for preNormal: first the update, then normal
        ("PreparingNormal", None, {}, False, True, None),
        # Rolled back before it started (regression 9)
        ("PreparingUpdate", IN_PLACE, {"labels": HOOKED}, True, True, State.NORMAL),
        ("PreparingUpdate", IN_PLACE, {}, True, True, State.UPDATED),
        ("PreparingUpdate", None, {}, True, True, State.NORMAL),
        ("PreparingUpdate", IN_PLACE, {}, True, False, None),
        # Updating
        ("Updating", None, {}, False, True, None),
        ("Updating", None, {}, True, True, State.NORMAL),
        ("Updating", IN_PLACE, {}, False, True, None),
        ("Updating", IN_PLACE, {}, True, True, State.UPDATED),
        ("Updating", IN_PLACE, {"labels": HOOKED}, True, True, State.NORMAL),
        ("Updating", Lifecycle(in_place_update=EMPTY), {}, True, True, State.NORMAL),
        ("Updating", Lifecycle(pre_delete=LABEL), {}, True, True, State.NORMAL),  # IPU-102, one write saved
        # Updated
        ("Updated", IN_PLACE, {}, True, True, None),
        ("Updated", IN_PLACE, {"labels": HOOKED}, True, True, State.NORMAL),
        ("Updated", IN_PLACE, {"labels": HOOKED}, True, False, State.NORMAL),
        ("Updated", None, {}, True, True, State.NORMAL),
        ("Updated", Lifecycle(), {}, True, True, State.NORMAL),
        # At rest, or not ours to move
        ("Normal", IN_PLACE, {}, True, False, None),
        ("PreparingDelete", Lifecycle(pre_delete=LABEL), {}, True, True, None),
        ("", None, {}, True, True, None),
        ("Odd", None, {}, True, True, None),
    ],
)
def test_states_that_pods_go_to_by_themselves(
    state: str,
    hooks: Lifecycle | None,
    options: dict[str, Any],
    complete: bool,
    at_revision: bool,
    expected: State | None,
) -> None:
    seen = in_state(state, **options)
    assert lifecycle.refreshed(seen, hooks, complete=lambda: complete, at_update_revision=at_revision) is expected


def test_completion_is_asked_only_where_it_matters() -> None:
    """It reads annotations: thousands of normal pods must not pay for it."""

    def never() -> bool:
        raise AssertionError("asked for completion")

    for state in ("Normal", "Updated", "PreparingDelete", "PreparingUpdate", ""):
        assert lifecycle.refreshed(in_state(state), IN_PLACE, complete=never, at_update_revision=False) is None


@pytest.mark.parametrize(
    ("state", "hooks", "labels", "expected"),
    [
        ("", IN_PLACE, HOOKED, Turn.PREPARE),
        ("", IN_PLACE, {}, Turn.UPDATE),
        ("", None, HOOKED, Turn.UPDATE),
        ("Normal", IN_PLACE, HOOKED, Turn.PREPARE),
        ("Normal", IN_PLACE, {"hook": "false"}, Turn.UPDATE),
        ("Normal", Lifecycle(in_place_update=BOTH), HOOKED, Turn.PREPARE),
        ("PreparingNormal", IN_PLACE, HOOKED, Turn.PREPARE),
        ("PreparingNormal", IN_PLACE, {}, Turn.UPDATE),
        ("PreparingUpdate", IN_PLACE, HOOKED, Turn.HOLD),
        ("PreparingUpdate", IN_PLACE, {"hook": "false"}, Turn.UPDATE),
        ("PreparingUpdate", None, HOOKED, Turn.UPDATE),
        ("Updating", IN_PLACE, HOOKED, Turn.UPDATE),
        ("Updated", IN_PLACE, {}, Turn.REHOOK),
        ("Updated", IN_PLACE, HOOKED, Turn.REHOOK),
        ("Updated", None, {}, Turn.UPDATE),
        ("Updated", Lifecycle(in_place_update=EMPTY), {}, Turn.UPDATE),
        ("PreparingDelete", IN_PLACE, {}, Turn.REFUSE),  # IPU-103
        ("Odd", IN_PLACE, {}, Turn.REFUSE),  # IPU-103
    ],
)
def test_a_pod_that_was_picked_for_an_update(
    state: str, hooks: Lifecycle | None, labels: dict[str, str], expected: Turn
) -> None:
    assert lifecycle.before_update(in_state(state, labels), hooks) is expected


def test_an_update_does_not_carry_a_pod_past_the_pre_normal_hook() -> None:
    """The original does, and so makes a pod available that somebody wanted to hold."""
    hooks = Lifecycle(pre_normal=FINALIZER, in_place_update=LABEL)
    waiting = in_state("PreparingNormal", HOOKED)
    assert lifecycle.before_update(waiting, hooks) is Turn.UPDATE
    assert lifecycle.state_during_update(waiting, hooks) is None
    let_go = in_state("PreparingNormal", HOOKED, finalizers=["example.com/hold"])
    assert lifecycle.before_update(let_go, hooks) is Turn.PREPARE
    assert lifecycle.state_during_update(let_go, hooks) is State.UPDATING
    assert lifecycle.state_during_update(in_state("Normal"), hooks) is State.UPDATING


def test_an_update_does_not_make_a_pod_normal_that_has_no_node() -> None:  # IPU-104
    assert lifecycle.state_during_update(in_state("PreparingNormal", node=""), None) is None
    assert lifecycle.state_during_update(in_state("PreparingNormal"), None) is State.UPDATING


def test_the_hook_is_put_on_again_in_one_patch() -> None:  # regression 10
    body = body_in("Updated", {"hook": "false"}, finalizers=["other"])
    edit = lifecycle.rehook(decoded(body), Lifecycle(in_place_update=BOTH), now=NOW)
    chain = writes(decoded(body), edit, reason="test")
    assert len(chain) == 1
    metadata = played(body, chain)["metadata"]
    assert metadata["labels"] == {keys.STATE_LABEL: "PreparingUpdate", "hook": "true"}
    assert sorted(metadata["finalizers"]) == ["example.com/hold", "other"]
    assert metadata["annotations"] == {keys.STATE_TIME_ANNOTATION: "2026-03-04T05:06:07Z"}


def test_a_hook_that_is_put_on_again_marks_the_pod_not_ready() -> None:  # regression 10, IPU-100
    body = body_in("Updated", {"hook": "false"}, conditions=READY)
    edit = lifecycle.rehook(decoded(body), Lifecycle(in_place_update=MARKS), now=NOW)
    chain = writes(decoded(body), edit, reason="test")
    assert [action.subresource for action in chain] == ["status"]
    result = played(body, chain)
    assert result["metadata"]["labels"]["hook"] == "true"
    assert conditions_of(result)[keys.KRUISE_POD_READY]["status"] == "False"
