"""The two readiness conditions, their several writers, and `Ready`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.api.meta import Condition
from kruise.api.native.pod import Pod
from kruise.inplace import keys, readiness
from kruise.inplace.edits import PodEdit, writes
from kruise.inplace.readiness import PRE_DELETE, PRE_UPDATE, Writer
from kruise.inplace.state import RefMetadata, Resources, UpdateSpec
from tests.inplace.acting import BOTH_GATES, NOW, conditions_of, decoded, played, pod, pod_body

RUNNING = {"ContainersReady": "True", "Ready": "True"}
BOTH_TRUE = {keys.IN_PLACE_READY: "True", keys.KRUISE_POD_READY: "True"}
LIFECYCLE = '[{"userAgent":"Lifecycle","key":"preDeleteHook"}]'


def by_type(edit: PodEdit | None) -> dict[str, Condition]:
    assert edit is not None
    return {item.type: item for item in edit.conditions}


def test_not_ready_says_why_and_takes_ready_along() -> None:  # IPU-40, IPU-93
    found = by_type(readiness.not_ready(pod(conditions=RUNNING | BOTH_TRUE), now=NOW))
    wanted = found[keys.IN_PLACE_READY]
    assert (wanted.status, wanted.reason, wanted.message) == ("False", "StartInPlaceUpdate", "")
    assert wanted.last_transition_time == NOW
    ready = found["Ready"]
    assert (ready.status, ready.reason, ready.last_transition_time) == ("False", "ReadinessGatesNotReady", None)
    assert ready.message == 'the status of pod readiness gate "InPlaceUpdateReady" is not "True", but False'


def test_not_ready_is_written_although_it_looks_false() -> None:  # IPU-40, IPU-73, regression 7
    seen = pod(conditions=RUNNING | {keys.IN_PLACE_READY: "False"})
    edit = readiness.not_ready(seen, now=NOW)
    assert len(writes(seen, edit, reason="test")) == 1
    wanted = by_type(edit)[keys.IN_PLACE_READY]
    assert wanted.status == "False"
    assert wanted.last_transition_time is not None
    assert wanted.last_transition_time < NOW  # the status did not change, so neither does its time


def test_not_ready_is_one_plain_write_that_nothing_can_refuse() -> None:
    """A kubelet that writes at the same moment must not delay it."""
    seen = pod(conditions=RUNNING | BOTH_TRUE, labels={keys.REVISION_LABEL: "r"})
    (action,) = writes(seen, readiness.not_ready(seen, now=NOW), reason="test")
    assert (action.subresource, action.resource_version) == ("status", "")
    assert set(action.body) == {"status"}


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        (
            RUNNING | {keys.IN_PLACE_READY: "True"},
            'the status of pod readiness gate "InPlaceUpdateReady" is not "True", but False, '
            'corresponding condition of pod readiness gate "KruisePodReady" does not exist.',
        ),
        (
            RUNNING | {keys.KRUISE_POD_READY: "Unknown"},
            'the status of pod readiness gate "InPlaceUpdateReady" is not "True", but False, '
            'the status of pod readiness gate "KruisePodReady" is not "True", but Unknown',
        ),
    ],
)
def test_ready_names_every_failing_gate(conditions: dict[str, Any], message: str) -> None:  # IPU-93
    assert by_type(readiness.not_ready(pod(conditions=conditions), now=NOW))["Ready"].message == message


@pytest.mark.parametrize(
    "conditions",
    [
        {"Ready": "True"},
        {"Ready": "True", "ContainersReady": "False"},
        {"ContainersReady": "True"},
        {"ContainersReady": "True", "Ready": "False"},
    ],
)
def test_ready_is_left_alone_where_the_kubelet_has_said_all(conditions: dict[str, Any]) -> None:  # IPU-93, IPU-73
    assert set(by_type(readiness.not_ready(pod(conditions=conditions), now=NOW))) == {keys.IN_PLACE_READY}


def test_nothing_ever_moves_ready_to_true() -> None:  # IPU-74
    told = {"status": "False", "message": LIFECYCLE}
    seen = pod(
        conditions={"ContainersReady": "True", "Ready": "False", keys.IN_PLACE_READY: "False"}
        | {keys.KRUISE_POD_READY: told}
    )
    for edit in (readiness.ready(seen, now=NOW), readiness.remove_writer(seen, PRE_DELETE, now=NOW)):
        assert "Ready" not in by_type(edit)


def test_ready_again_after_an_update_is_exact() -> None:  # IPU-72, regression 8
    told = {"status": "False", "reason": "StartInPlaceUpdate"}
    edit = readiness.ready(pod(conditions={keys.IN_PLACE_READY: told}), now=NOW)
    wanted = by_type(edit)[keys.IN_PLACE_READY]
    assert (wanted.status, wanted.reason, wanted.message) == ("True", "", "")
    assert edit is not None
    assert edit.exact


def test_a_new_pod_becomes_ready() -> None:  # IPU-72
    edit = readiness.ready(pod(), now=NOW)
    assert by_type(edit)[keys.IN_PLACE_READY] == Condition(
        type=keys.IN_PLACE_READY, status="True", last_transition_time=NOW
    )
    assert edit is not None
    assert not edit.exact  # there was no update that another one could have overtaken


def test_ready_has_nothing_to_write() -> None:  # IPU-72, IPU-73, IPU-75
    assert readiness.ready(pod(conditions={keys.IN_PLACE_READY: "True"}), now=NOW) is None
    odd = {"status": "True", "reason": "SomebodyElse", "message": "x"}
    assert readiness.ready(pod(conditions={keys.IN_PLACE_READY: odd}), now=NOW) is None
    assert readiness.ready(pod(gates=()), now=NOW) is None


def test_kruise_ready_for_a_pod_with_the_gate_and_no_condition() -> None:  # IPU-81
    edit = readiness.kruise_ready(pod(), now=NOW)
    assert by_type(edit)[keys.KRUISE_POD_READY] == Condition(
        type=keys.KRUISE_POD_READY, status="True", last_transition_time=NOW
    )
    assert readiness.kruise_ready(pod(conditions={keys.KRUISE_POD_READY: "False"}), now=NOW) is None
    assert readiness.kruise_ready(pod(gates=(keys.IN_PLACE_READY,)), now=NOW) is None


def updating(**options: Any) -> UpdateSpec:
    return UpdateSpec(revision="r", **options)


IMAGES = updating(container_images={"main": "x"})
METADATA = updating(meta_data_patch={"metadata": {"labels": {"a": "b"}}})
CPU = updating(container_resources={"main": Resources(limits={"cpu": "2"})})


@pytest.mark.parametrize("vertical", [False, True])
@pytest.mark.parametrize("spec", [IMAGES, METADATA, updating()])
def test_an_update_takes_the_pod_out_of_service(spec: UpdateSpec, vertical: bool) -> None:  # IPU-36, IPU-41
    assert readiness.needs_unready(pod(), spec, vertical_scaling=vertical)
    assert not readiness.needs_unready(pod(gates=()), spec, vertical_scaling=vertical)


def with_policy(**policy: str) -> Pod:
    body = pod_body()
    body["spec"]["containers"][0]["resizePolicy"] = [
        {"resourceName": name, "restartPolicy": wanted} for name, wanted in policy.items()
    ]
    return decoded(body)


def test_a_resize_without_restart_keeps_the_pod_in_service() -> None:  # IPU-41, regression 14
    both = updating(
        container_resources={"main": Resources(requests={"memory": "1Gi"})},
        meta_data_patch={"metadata": {"labels": {"a": "b"}}},
    )
    assert not readiness.needs_unready(pod(), CPU, vertical_scaling=True)
    assert not readiness.needs_unready(with_policy(cpu="NotRequired"), CPU, vertical_scaling=True)
    assert not readiness.needs_unready(with_policy(memory="RestartContainer"), CPU, vertical_scaling=True)
    assert readiness.needs_unready(with_policy(cpu="RestartContainer"), CPU, vertical_scaling=True)
    assert readiness.needs_unready(with_policy(memory="RestartContainer"), both, vertical_scaling=True)
    assert not readiness.needs_unready(with_policy(cpu="RestartContainer"), both, vertical_scaling=True)
    # Without vertical scaling, or with anything else beside it, every update does.
    assert readiness.needs_unready(pod(), CPU, vertical_scaling=False)
    env = updating(
        container_resources=CPU.container_resources,
        container_ref_metadata={"main": RefMetadata(labels={"a": "b"})},
        update_env_from_metadata=True,
    )
    assert readiness.needs_unready(pod(), env, vertical_scaling=True)


def test_the_first_writer() -> None:  # IPU-82, IPU-83, IPU-93
    seen = pod(conditions=RUNNING | BOTH_TRUE)
    found = by_type(readiness.add_writer(seen, PRE_UPDATE, now=NOW))
    wanted = found[keys.KRUISE_POD_READY]
    assert (wanted.status, wanted.message) == ("False", '[{"userAgent":"Lifecycle","key":"preUpdateHook"}]')
    assert wanted.last_transition_time == NOW
    assert found["Ready"].message == 'the status of pod readiness gate "KruisePodReady" is not "True", but False'


def test_a_writer_makes_the_condition_with_a_status() -> None:  # IPU-82
    assert by_type(readiness.add_writer(pod(), PRE_DELETE, now=NOW))[keys.KRUISE_POD_READY].status == "False"


def test_writers_are_sorted_and_kept() -> None:  # IPU-82, IPU-83, regression 18
    body = pod_body(conditions={keys.KRUISE_POD_READY: "True"})
    for writer in (PRE_UPDATE, Writer("ContainerRecreateRequest", "ns/crr"), PRE_DELETE):
        edit = readiness.add_writer(decoded(body), writer, now=NOW)
        assert edit is not None
        body = played(body, writes(decoded(body), edit, reason="test"))
    assert conditions_of(body)[keys.KRUISE_POD_READY]["message"] == (
        '[{"userAgent":"ContainerRecreateRequest","key":"ns/crr"},'
        '{"userAgent":"Lifecycle","key":"preDeleteHook"},{"userAgent":"Lifecycle","key":"preUpdateHook"}]'
    )
    for number, writer in enumerate((PRE_DELETE, Writer("ContainerRecreateRequest", "ns/crr"), PRE_UPDATE)):
        edit = readiness.remove_writer(decoded(body), writer, now=NOW)
        assert edit is not None
        body = played(body, writes(decoded(body), edit, reason="test"))
        assert conditions_of(body)[keys.KRUISE_POD_READY]["status"] == ("True" if number == 2 else "False")
    assert conditions_of(body)[keys.KRUISE_POD_READY]["message"] == "[]"


def test_a_writer_that_is_there_has_nothing_to_write() -> None:  # IPU-82
    told = {"status": "False", "message": LIFECYCLE}
    seen = pod(conditions={keys.KRUISE_POD_READY: told})
    assert readiness.add_writer(seen, PRE_DELETE, now=NOW) is None
    assert readiness.remove_writer(seen, PRE_UPDATE, now=NOW) is None
    # Listed, but the condition is True: somebody turned it by hand.
    turned = pod(conditions={keys.KRUISE_POD_READY: {**told, "status": "True"}})
    assert by_type(readiness.add_writer(turned, PRE_DELETE, now=NOW))[keys.KRUISE_POD_READY].status == "False"


def test_without_the_gate_there_are_no_writers() -> None:  # IPU-82
    seen = pod(gates=(), conditions={keys.KRUISE_POD_READY: {"status": "False", "message": LIFECYCLE}})
    assert readiness.add_writer(seen, PRE_UPDATE, now=NOW) is None
    assert readiness.remove_writer(seen, PRE_DELETE, now=NOW) is None


@pytest.mark.parametrize("message", ["", "null", "[]", "not a list", "{}", '[{"userAgent":1}]', "[null]"])
def test_a_message_that_is_no_list_names_nobody(message: str) -> None:
    seen = pod(conditions={keys.KRUISE_POD_READY: {"status": "False", "message": message}})
    assert [writer for writer in readiness.writers_of(seen) if writer != Writer("", "")] == []
    assert by_type(readiness.add_writer(seen, PRE_DELETE, now=NOW))[keys.KRUISE_POD_READY].status == "False"


WRITERS = st.sampled_from([PRE_DELETE, PRE_UPDATE, Writer("ContainerRecreateRequest", "ns/a"), Writer("Other", 'q"')])


@settings(max_examples=100, deadline=None)
@given(steps=st.lists(st.tuples(st.booleans(), WRITERS), max_size=12))
def test_the_pod_is_ready_exactly_while_nobody_objects(steps: list[tuple[bool, Writer]]) -> None:  # IPU-82
    body = pod_body(gates=BOTH_GATES, conditions={keys.KRUISE_POD_READY: "True"})
    objecting: set[Writer] = set()
    for number, (adds, writer) in enumerate(steps):
        now = NOW + timedelta(seconds=number)
        act = readiness.add_writer if adds else readiness.remove_writer
        objecting = objecting | {writer} if adds else objecting - {writer}
        edit = act(decoded(body), writer, now=now)
        if edit is not None:
            body = played(body, writes(decoded(body), edit, reason="test"))
        assert set(readiness.writers_of(decoded(body))) == objecting
        assert conditions_of(body)[keys.KRUISE_POD_READY]["status"] == ("False" if objecting else "True")
