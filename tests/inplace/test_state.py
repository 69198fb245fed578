"""The annotations that keep an update on its pod: exact JSON, old spellings, broken texts."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.inplace import keys
from kruise.inplace import state as states
from kruise.inplace.state import (
    BatchRecord,
    BrokenAnnotation,
    LastStatus,
    PreCheck,
    RefMetadata,
    Resources,
    UpdateSpec,
    UpdateState,
)
from tests.support.inplace_objects import pod

TIME = datetime(2026, 11, 15, 12, 0, 0, tzinfo=UTC)
TEXT = "2026-11-15T12:00:00Z"
OLD_MAIN = {"main": LastStatus(image_id="sha256-of-nginx:1.25")}
OLD_SIDE = {"side": LastStatus(image_id="sha256-of-busybox:1.36")}


def record(*containers: str) -> BatchRecord:
    return BatchRecord(timestamp=TIME, containers=containers)


# Texts that were recorded with the original, with times and image ids put in.
RECORDED: dict[str, tuple[UpdateState, str]] = {
    "one image": (
        UpdateState(
            revision="web-rev-2",
            update_timestamp=TIME,
            last_container_statuses=OLD_MAIN,
            update_images=True,
            container_batches_record=(record("main"),),
        ),
        '{"revision":"web-rev-2","updateTimestamp":"<time>","lastContainerStatuses":{"main":{"imageID":'
        '"sha256-of-nginx:1.25"}},"updateImages":true,"containerBatchesRecord":[{"timestamp":"<time>","containers":'
        '["main"]}]}',
    ),
    "two images at once": (
        UpdateState(
            revision="web-rev-3",
            update_timestamp=TIME,
            last_container_statuses={"side": LastStatus(image_id="sha256-of-busybox:1.37"), **OLD_MAIN},
            update_images=True,
            container_batches_record=(record("main", "side"),),
        ),
        '{"revision":"web-rev-3","updateTimestamp":"<time>","lastContainerStatuses":{"main":{"imageID":'
        '"sha256-of-nginx:1.25"},"side":{"imageID":"sha256-of-busybox:1.37"}},"updateImages":true,'
        '"containerBatchesRecord":[{"timestamp":"<time>","containers":["main","side"]}]}',
    ),
    "first of two batches": (
        UpdateState(
            revision="web-rev-2",
            update_timestamp=TIME,
            last_container_statuses=OLD_SIDE,
            update_images=True,
            next_container_images={"main": "nginx:1.26"},
            pre_check_before_next=PreCheck(containers_required_ready=("side",)),
            container_batches_record=(record("side"),),
        ),
        '{"revision":"web-rev-2","updateTimestamp":"<time>","lastContainerStatuses":{"side":{"imageID":'
        '"sha256-of-busybox:1.36"}},"updateImages":true,"nextContainerImages":{"main":"nginx:1.26"},'
        '"preCheckBeforeNext":{"containersRequiredReady":["side"]},"containerBatchesRecord":[{"timestamp":"<time>",'
        '"containers":["side"]}]}',
    ),
    "second of two batches": (
        UpdateState(
            revision="web-rev-2",
            update_timestamp=TIME,
            last_container_statuses={**OLD_SIDE, **OLD_MAIN},
            update_images=True,
            container_batches_record=(record("side"), record("main")),
        ),
        '{"revision":"web-rev-2","updateTimestamp":"<time>","lastContainerStatuses":{"main":{"imageID":'
        '"sha256-of-nginx:1.25"},"side":{"imageID":"sha256-of-busybox:1.36"}},"updateImages":true,'
        '"containerBatchesRecord":[{"timestamp":"<time>","containers":["side"]},{"timestamp":"<time>","containers":'
        '["main"]}]}',
    ),
    "environment alone": (
        UpdateState(
            revision="web-rev-2",
            update_timestamp=TIME,
            update_env_from_metadata=True,
            container_batches_record=(record("main"),),
        ),
        '{"revision":"web-rev-2","updateTimestamp":"<time>","lastContainerStatuses":null,'
        '"updateEnvFromMetadata":true,"containerBatchesRecord":[{"timestamp":"<time>","containers":["main"]}]}',
    ),
    "environment and image": (
        UpdateState(
            revision="web-rev-3",
            update_timestamp=TIME,
            last_container_statuses=OLD_SIDE,
            update_env_from_metadata=True,
            update_images=True,
            container_batches_record=(record("main", "side"),),
        ),
        '{"revision":"web-rev-3","updateTimestamp":"<time>","lastContainerStatuses":{"side":{"imageID":'
        '"sha256-of-busybox:1.36"}},"updateEnvFromMetadata":true,"updateImages":true,"containerBatchesRecord":'
        '[{"timestamp":"<time>","containers":["main","side"]}]}',
    ),
    "in grace": (
        UpdateState(revision="web-rev-2", update_timestamp=TIME, update_images=True),
        '{"revision":"web-rev-2","updateTimestamp":"<time>","lastContainerStatuses":null,"updateImages":true}',
    ),
    "metadata alone": (
        UpdateState(revision="web-rev-2", update_timestamp=TIME, container_batches_record=(record(),)),
        '{"revision":"web-rev-2","updateTimestamp":"<time>","lastContainerStatuses":null,"containerBatchesRecord":'
        '[{"timestamp":"<time>","containers":[]}]}',
    ),
}


@pytest.mark.parametrize(("state", "text"), RECORDED.values(), ids=RECORDED.keys())
def test_recorded_states_are_written_and_read(state: UpdateState, text: str) -> None:
    """Section 7, letter by letter."""
    text = text.replace("<time>", TEXT)
    assert states.state_json(state) == text
    assert states.update_state_of(pod(annotations={keys.UPDATE_STATE_ANNOTATION: text})) == state


def test_all_members_in_their_order() -> None:
    """Section 7: the order of the members, maps sorted by name, empty parts left out."""
    state = UpdateState(
        revision="web-rev-2",
        update_timestamp=TIME,
        last_container_statuses=OLD_MAIN,
        update_env_from_metadata=True,
        update_resources=True,
        update_images=True,
        next_container_images={"z": "i:2", "a": "i:3"},
        next_container_ref_metadata={
            "z": RefMetadata(annotations={"b": "<&>", "a": "2"}, labels={"x": "y"}),
            "a": RefMetadata(labels={"x": "y"}),
        },
        next_container_resources={"z": Resources(limits={"cpu": "800m"}, requests={"memory": "1Gi"})},
        pre_check_before_next=PreCheck(containers_required_ready=("main",)),
        container_batches_record=(record("main"),),
    )
    assert states.state_json(state) == (
        f'{{"revision":"web-rev-2","updateTimestamp":"{TEXT}","lastContainerStatuses":{{"main":{{"imageID":'
        '"sha256-of-nginx:1.25"}},"updateEnvFromMetadata":true,"updateResources":true,"updateImages":true,'
        '"nextContainerImages":{"a":"i:3","z":"i:2"},"nextContainerRefMetadata":{"a":{"labels":{"x":"y"}},'
        '"z":{"labels":{"x":"y"},"annotations":{"a":"2","b":"\\u003c\\u0026\\u003e"}}},'
        '"nextContainerResources":{"z":{"limits":{"cpu":"800m"},"requests":{"memory":"1Gi"}}},'
        '"preCheckBeforeNext":{"containersRequiredReady":["main"]},'
        f'"containerBatchesRecord":[{{"timestamp":"{TEXT}","containers":["main"]}}]}}'
    )


def test_times_have_whole_seconds() -> None:
    state = UpdateState(revision="r", update_timestamp=TIME.replace(microsecond=999_999))
    assert f'"updateTimestamp":"{TEXT}"' in states.state_json(state)


def test_reference_metadata_with_a_null_time_is_read() -> None:
    """Section 7: writers in Go put a null creationTimestamp into it."""
    text = '{"revision":"r","nextContainerRefMetadata":{"a":{"creationTimestamp":null,"labels":{"x":"y"}}}}'
    state = states.update_state_of(pod(annotations={keys.UPDATE_STATE_ANNOTATION: text}))
    assert state is not None
    assert state.next_container_ref_metadata == {"a": RefMetadata(labels={"x": "y"})}
    assert state.has_next


def test_old_spellings_are_read() -> None:
    """IPU section 2, regression 17."""
    state = '{"revision":"old","updateTimestamp":"2026-11-15T12:00:00Z","lastContainerStatuses":null}'
    found = pod(
        annotations={
            keys.OLD_UPDATE_STATE_ANNOTATION: state,
            keys.OLD_UPDATE_GRACE_ANNOTATION: '{"revision":"old","graceSeconds":3}',
        }
    )
    assert states.update_state_of(found) == UpdateState(revision="old", update_timestamp=TIME)
    assert states.grace_of(found) == UpdateSpec(revision="old", grace_seconds=3)
    assert states.in_grace(found)


def test_new_spelling_wins() -> None:
    found = pod(
        annotations={
            keys.OLD_UPDATE_STATE_ANNOTATION: '{"revision":"old"}',
            keys.UPDATE_STATE_ANNOTATION: '{"revision":"new"}',
            keys.OLD_UPDATE_GRACE_ANNOTATION: '{"revision":"old"}',
            keys.UPDATE_GRACE_ANNOTATION: '{"revision":"new"}',
        }
    )
    state, grace = states.update_state_of(found), states.grace_of(found)
    assert state is not None
    assert grace is not None
    assert (state.revision, grace.revision) == ("new", "new")


def test_pod_without_annotations() -> None:
    found = pod()
    assert states.update_state_of(found) is None
    assert states.grace_of(found) is None
    assert not states.in_grace(found)


def test_empty_annotations_count_for_nothing() -> None:
    """Only a grace annotation with a text in it is a grace period (IPU section 8)."""
    found = pod(annotations={keys.UPDATE_STATE_ANNOTATION: "", keys.UPDATE_GRACE_ANNOTATION: ""})
    assert states.update_state_of(found) is None
    assert states.grace_of(found) is None
    assert not states.in_grace(found)


def test_missing_or_null_time_is_long_ago() -> None:
    for text in ('{"revision":"r"}', '{"revision":"r","updateTimestamp":null}'):
        state = states.update_state_of(pod(annotations={keys.UPDATE_STATE_ANNOTATION: text}))
        assert state is not None
        assert state.update_timestamp == states.LONG_AGO


@pytest.mark.parametrize("text", ["{", "[]", '"x"', '{"revision":1}', '{"updateTimestamp":"2026-11-15T12:00:00"}'])
def test_broken_state_names_pod_annotation_and_remedy(text: str) -> None:
    with pytest.raises(BrokenAnnotation, match=r"pod demo/web-abcde: annotation .*inplace-update-state.*remove"):
        states.update_state_of(pod(annotations={keys.UPDATE_STATE_ANNOTATION: text}))


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"metaDataPatch":"%"}', '{"metaDataPatch":"W10="}', '{"metaDataPatch":"e30"}', '{"graceSeconds":"4"}'],
)
def test_broken_grace_names_pod_annotation_and_remedy(text: str) -> None:
    found = pod(annotations={keys.UPDATE_GRACE_ANNOTATION: text})
    assert states.in_grace(found), "the presence alone counts"
    with pytest.raises(BrokenAnnotation, match=r"pod demo/web-abcde: annotation .*inplace-update-grace.*remove"):
        states.grace_of(found)


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (
            UpdateSpec(revision="web-rev-2", container_images={"main": "nginx:1.26"}, grace_seconds=4),
            '{"revision":"web-rev-2","containerImages":{"main":"nginx:1.26"},"graceSeconds":4}',
        ),
        (
            UpdateSpec(
                revision="web-rev-3",
                container_images={"main": "nginx:1.27"},
                meta_data_patch={"metadata": {"labels": {"tier": "x"}}},
                grace_seconds=4,
            ),
            '{"revision":"web-rev-3","containerImages":{"main":"nginx:1.27"},'
            '"metaDataPatch":"eyJtZXRhZGF0YSI6eyJsYWJlbHMiOnsidGllciI6IngifX19","graceSeconds":4}',
        ),
        (
            UpdateSpec(
                revision="r",
                container_ref_metadata={"b": RefMetadata(labels={"x": "y"}), "a": RefMetadata(annotations={"n": "1"})},
                container_resources={"a": Resources(requests={"cpu": "1"})},
                update_env_from_metadata=True,
                grace_seconds=1,
            ),
            '{"revision":"r","containerRefMetadata":{"a":{"annotations":{"n":"1"}},"b":{"labels":{"x":"y"}}},'
            '"containerResources":{"a":{"requests":{"cpu":"1"}}},"updateEnvFromMetadata":true,"graceSeconds":1}',
        ),
    ],
    ids=["recorded: image", "recorded: image and label", "everything else"],
)
def test_grace_annotation_is_written_and_read(spec: UpdateSpec, text: str) -> None:
    """Section 8, letter by letter."""
    assert states.grace_json(spec) == text
    assert states.grace_of(pod(annotations={keys.UPDATE_GRACE_ANNOTATION: text})) == spec


def test_empty_patch_of_others_is_read() -> None:
    """IPU-35: the patch may be `{}`."""
    text = f'{{"revision":"r","metaDataPatch":"{base64.b64encode(b"{}").decode()}"}}'
    assert states.grace_of(pod(annotations={keys.UPDATE_GRACE_ANNOTATION: text})) == UpdateSpec(revision="r")


NAMES = st.text(alphabet="abc-/é<&\u2028", min_size=1, max_size=6)
STRINGS = st.dictionaries(NAMES, NAMES, max_size=3)
REFERENCES = st.dictionaries(NAMES, st.builds(RefMetadata, labels=STRINGS, annotations=STRINGS), max_size=3)
AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory"]), st.sampled_from(["1", "500m", "1Gi"]))
RESOURCES = st.dictionaries(NAMES, st.builds(Resources, limits=AMOUNTS, requests=AMOUNTS), max_size=3)
TIMES = st.datetimes(min_value=datetime(1, 1, 1), timezones=st.just(UTC)).map(lambda t: t.replace(microsecond=0))  # noqa: DTZ001 - hypothesis wants it bare
STATES = st.builds(
    UpdateState,
    revision=NAMES,
    update_timestamp=TIMES,
    last_container_statuses=st.none()
    | st.dictionaries(NAMES, st.builds(LastStatus, image_id=st.text(max_size=5)), min_size=1, max_size=3),
    update_env_from_metadata=st.booleans(),
    update_resources=st.booleans(),
    update_images=st.booleans(),
    next_container_images=STRINGS,
    next_container_ref_metadata=REFERENCES,
    next_container_resources=RESOURCES,
    pre_check_before_next=st.none()
    | st.builds(PreCheck, containers_required_ready=st.lists(NAMES, max_size=3).map(tuple)),
    container_batches_record=st.lists(
        st.builds(BatchRecord, timestamp=TIMES, containers=st.lists(NAMES, max_size=3).map(tuple)), max_size=3
    ).map(tuple),
)
SPECS = st.builds(
    UpdateSpec,
    revision=NAMES,
    container_images=STRINGS,
    container_ref_metadata=REFERENCES,
    container_resources=RESOURCES,
    meta_data_patch=st.just({})
    | st.fixed_dictionaries({"metadata": st.fixed_dictionaries({"labels": st.dictionaries(NAMES, st.none() | NAMES)})}),
    update_env_from_metadata=st.booleans(),
    grace_seconds=st.integers(min_value=0, max_value=2**31 - 1),
)


@settings(max_examples=60)
@given(STATES)
def test_any_state_survives_its_annotation(state: UpdateState) -> None:
    text = states.state_json(state)
    json.loads(text)
    assert states.update_state_of(pod(annotations={keys.UPDATE_STATE_ANNOTATION: text})) == state
    assert "<" not in text
    assert "&" not in text


@settings(max_examples=60)
@given(SPECS)
def test_any_spec_survives_its_annotation(spec: UpdateSpec) -> None:
    text = states.grace_json(spec)
    json.loads(text)
    assert states.grace_of(pod(annotations={keys.UPDATE_GRACE_ANNOTATION: text})) == spec
