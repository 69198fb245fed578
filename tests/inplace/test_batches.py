"""Applying an update in batches: which containers come when, and what is kept for later."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.admission.launch_order import PRIORITY_ENV
from kruise.api.native.pod import Pod
from kruise.inplace import keys
from kruise.inplace.batches import carried_over, first_batch, grace_start, next_batch
from kruise.inplace.edits import PodEdit
from kruise.inplace.state import (
    BatchRecord,
    LastStatus,
    PreCheck,
    RefMetadata,
    Resources,
    UpdateSpec,
    UpdateState,
    grace_json,
    in_grace,
    state_json,
    update_state_of,
)
from tests.support.examples import EXAMPLES
from tests.support.inplace_objects import (
    barrier,
    container,
    drawn,
    image_id,
    pod,
    resources,
    revision,
    status,
    template,
)

NOW = datetime(2026, 11, 15, 12, 0, 0, tzinfo=UTC)
LATER = NOW + timedelta(seconds=5)
STATE, GRACE = keys.UPDATE_STATE_ANNOTATION, keys.UPDATE_GRACE_ANNOTATION


def state_in(edit: PodEdit) -> UpdateState:
    text = edit.annotations[STATE]
    assert text is not None
    found = update_state_of(pod(annotations={STATE: text}))
    assert found is not None
    return found


def after(found: Pod, edit: PodEdit) -> Pod:
    """The pod with the edit made and its containers restarted where their image changed."""
    containers: list[dict[str, Any]] = []
    for item in found.spec.containers:
        priority = [
            barrier(int(variable.value_from.config_map_key_ref.key.removeprefix("p_")))
            for variable in item.env
            if variable.value_from is not None and variable.value_from.config_map_key_ref is not None
        ]
        containers.append(container(item.name, edit.images.get(item.name, item.image), env=priority))

    def changed(present: dict[str, str], changes: Any) -> dict[str, str]:
        return {key: value for key, value in {**present, **changes}.items() if value is not None}

    return pod(
        *containers,
        labels=changed(found.metadata.labels, edit.labels),
        annotations=changed(found.metadata.annotations, edit.annotations),
    )


def prioritised(**priorities: int) -> list[dict[str, Any]]:
    return [container(name, f"{name}:1", env=[barrier(priority)]) for name, priority in priorities.items()]


# One batch


def test_one_image() -> None:
    """Recorded: the image of the only container."""
    edit = first_batch(
        pod(), UpdateSpec(revision="web-rev-2", container_images={"main": "nginx:1.26"}), now=NOW, previous=None
    )
    assert edit == PodEdit(
        annotations={
            STATE: '{"revision":"web-rev-2","updateTimestamp":"2026-11-15T12:00:00Z","lastContainerStatuses":'
            '{"main":{"imageID":"sha256-of-nginx:1.25"}},"updateImages":true,"containerBatchesRecord":'
            '[{"timestamp":"2026-11-15T12:00:00Z","containers":["main"]}]}'
        },
        images={"main": "nginx:1.26"},
        exact=True,
    )  # IPU-42, IPU-53


def test_metadata_alone() -> None:
    """Recorded: labels and annotations of the template; the user's own stay (IPU-35, IPU-50, regression 1)."""
    found = pod(labels={"tier": "a", "user": "kept"}, annotations={"note": "changed by user", "gone": "x"})
    patch = {"metadata": {"labels": {"tier": "b", "new": "y"}, "annotations": {"note": "2", "gone": None}}}
    edit = first_batch(found, UpdateSpec(revision="web-rev-2", meta_data_patch=patch), now=NOW, previous=None)
    assert edit == PodEdit(
        labels={"tier": "b", "new": "y"},
        annotations={
            "note": "2",
            "gone": None,
            STATE: '{"revision":"web-rev-2","updateTimestamp":"2026-11-15T12:00:00Z","lastContainerStatuses":null,'
            '"containerBatchesRecord":[{"timestamp":"2026-11-15T12:00:00Z","containers":[]}]}',
        },
        exact=True,
    )


def test_metadata_that_is_gone_already_is_not_removed_again() -> None:
    patch = {"metadata": {"labels": {"gone": None}, "annotations": {"gone": None}}}
    edit = first_batch(pod(), UpdateSpec(meta_data_patch=patch), now=NOW, previous=None)
    assert edit.labels == {}
    assert edit.annotations.keys() == {STATE}


def test_finalizers_of_the_template() -> None:
    patch = {
        "metadata": {
            "finalizers": ["x/new", "x/there"],
            "$deleteFromPrimitiveList/finalizers": ["x/old", "x/gone"],
            "$setElementOrder/finalizers": ["x/there", "x/new"],
        }
    }
    found = pod(finalizers=("x/there", "x/old", "x/users"))
    edit = first_batch(found, UpdateSpec(meta_data_patch=patch), now=NOW, previous=None)
    assert edit.add_finalizers == ("x/new",)
    assert edit.remove_finalizers == ("x/old",)


@pytest.mark.parametrize(
    "patch", [{}, {"metadata": None}, {"metadata": {"labels": None, "annotations": [], "name": "x", "finalizers": 1}}]
)
def test_strange_patches_change_nothing(patch: dict[str, Any]) -> None:
    """Another writer's grace annotation may hold them."""
    edit = first_batch(pod(labels={"a": "b"}), UpdateSpec(meta_data_patch=patch), now=NOW, previous=None)
    assert edit.labels == {}
    assert edit.annotations.keys() == {STATE}


def test_environment_is_written_with_the_batch() -> None:
    """Recorded: the label tier, which main reads, and the image of side (IPU-53)."""
    found = pod(container(), container("side", "busybox:1.36"), labels={"tier": "a"})
    spec = UpdateSpec(
        revision="web-rev-3",
        container_images={"side": "busybox:1.37"},
        container_ref_metadata={"main": RefMetadata(labels={"tier": "b"}, annotations={"n": "1"})},
        update_env_from_metadata=True,
    )
    edit = first_batch(found, spec, now=NOW, previous=None)
    assert edit == PodEdit(
        labels={"tier": "b"},
        annotations={
            "n": "1",
            STATE: '{"revision":"web-rev-3","updateTimestamp":"2026-11-15T12:00:00Z","lastContainerStatuses":{"side":'
            '{"imageID":"sha256-of-busybox:1.36"}},"updateEnvFromMetadata":true,"updateImages":true,'
            '"containerBatchesRecord":[{"timestamp":"2026-11-15T12:00:00Z","containers":["main","side"]}]}',
        },
        images={"side": "busybox:1.37"},
        exact=True,
    )


def test_resources_are_collected() -> None:
    wanted = {"main": Resources(limits={"cpu": "800m"})}
    edit = first_batch(pod(), UpdateSpec(container_resources=wanted), now=NOW, previous=None)
    assert edit.resources == wanted  # IPU-53, IPU-55
    assert state_in(edit).update_resources
    assert state_in(edit).last_container_statuses is None


def test_container_without_status_leaves_no_image_id() -> None:
    found = pod(statuses=[])
    edit = first_batch(found, UpdateSpec(container_images={"main": "nginx:1.26"}), now=NOW, previous=None)
    assert state_in(edit).last_container_statuses is None


def test_containers_that_the_pod_lacks_are_never_waited_for() -> None:
    spec = UpdateSpec(container_images={"main": "nginx:1.26", "ghost": "x:1"})
    edit = first_batch(pod(container(env=[barrier(0)])), spec, now=NOW, previous=None)
    assert edit.images == {"main": "nginx:1.26"}
    assert not state_in(edit).has_next


def test_new_update_replaces_the_state_as_a_whole() -> None:
    """IPU-38: nothing of the old state stays but what `carried_over` put into the spec."""
    old = UpdateState(
        revision="web-rev-1",
        update_timestamp=NOW - timedelta(hours=1),
        last_container_statuses={"side": LastStatus(image_id="x")},
        update_env_from_metadata=True,
        next_container_images={"side": "y:1"},
        pre_check_before_next=PreCheck(containers_required_ready=("main",)),
        container_batches_record=(BatchRecord(timestamp=NOW, containers=("main",)),),
    )
    found = pod(annotations={STATE: state_json(old)})
    edit = first_batch(found, UpdateSpec(revision="web-rev-2"), now=NOW, previous=None)
    assert state_in(edit) == UpdateState(
        revision="web-rev-2",
        update_timestamp=NOW,
        container_batches_record=(BatchRecord(timestamp=NOW, containers=()),),
    )


def test_old_spellings_and_grace_go_with_the_first_write() -> None:
    """IPU-42, regression 17."""
    found = pod(
        annotations={keys.OLD_UPDATE_STATE_ANNOTATION: "{}", keys.OLD_UPDATE_GRACE_ANNOTATION: "{}", GRACE: "{}"}
    )
    edit = first_batch(found, UpdateSpec(revision="r"), now=NOW, previous=None)
    assert {key for key, value in edit.annotations.items() if value is None} == {
        keys.OLD_UPDATE_STATE_ANNOTATION,
        keys.OLD_UPDATE_GRACE_ANNOTATION,
        GRACE,
    }


# Grace


def test_grace_only_notes_the_update_down() -> None:
    """Recorded: image and label with a grace period of 4 s (IPU-42)."""
    spec = UpdateSpec(
        revision="web-rev-3",
        container_images={"main": "nginx:1.27"},
        meta_data_patch={"metadata": {"labels": {"tier": "x"}}},
        grace_seconds=4,
    )
    assert grace_start(pod(), spec, now=NOW) == PodEdit(
        annotations={
            GRACE: '{"revision":"web-rev-3","containerImages":{"main":"nginx:1.27"},"metaDataPatch":'
            '"eyJtZXRhZGF0YSI6eyJsYWJlbHMiOnsidGllciI6IngifX19","graceSeconds":4}',
            STATE: '{"revision":"web-rev-3","updateTimestamp":"2026-11-15T12:00:00Z","lastContainerStatuses":null,'
            '"updateImages":true}',
        },
        exact=True,
    )


def test_grace_removes_old_spellings() -> None:
    found = pod(annotations={keys.OLD_UPDATE_STATE_ANNOTATION: "{}", keys.OLD_UPDATE_GRACE_ANNOTATION: "{}"})
    edit = grace_start(found, UpdateSpec(revision="r", grace_seconds=1), now=NOW)
    assert edit.annotations[keys.OLD_UPDATE_STATE_ANNOTATION] is None
    assert edit.annotations[keys.OLD_UPDATE_GRACE_ANNOTATION] is None


def test_end_of_grace_keeps_the_time_of_the_begin() -> None:
    """Recorded: the update is applied when the grace is over (section 7)."""
    spec = UpdateSpec(revision="web-rev-2", container_images={"main": "nginx:1.26"}, grace_seconds=4)
    waiting = after(pod(), grace_start(pod(), spec, now=NOW))
    assert in_grace(waiting)
    edit = first_batch(waiting, spec, now=LATER, previous=update_state_of(waiting))
    assert edit == PodEdit(
        annotations={
            GRACE: None,
            STATE: '{"revision":"web-rev-2","updateTimestamp":"2026-11-15T12:00:00Z","lastContainerStatuses":{"main":'
            '{"imageID":"sha256-of-nginx:1.25"}},"updateImages":true,"containerBatchesRecord":'
            '[{"timestamp":"2026-11-15T12:00:05Z","containers":["main"]}]}',
        },
        images={"main": "nginx:1.26"},
        exact=True,
    )
    assert not in_grace(after(waiting, edit))


# Priorities


def test_higher_priority_first() -> None:
    """IPU-51, IPU-54: redis before nginx, in two writes."""
    found = pod(*prioritised(nginx=0, redis=10))
    spec = UpdateSpec(revision="r", container_images={"nginx": "nginx:2", "redis": "redis:2"})
    first = first_batch(found, spec, now=NOW, previous=None)
    assert first.images == {"redis": "redis:2"}
    state = state_in(first)
    assert state.next_container_images == {"nginx": "nginx:2"}
    assert state.pre_check_before_next == PreCheck(containers_required_ready=("redis",))
    assert state.container_batches_record == (BatchRecord(timestamp=NOW, containers=("redis",)),)
    assert state.last_container_statuses == {"redis": LastStatus(image_id=image_id("redis:1"))}

    found = after(found, first)
    second = next_batch(found, state, now=LATER)
    assert second.images == {"nginx": "nginx:2"}
    assert state_in(second) == UpdateState(
        revision="r",
        update_timestamp=NOW,
        update_images=True,
        last_container_statuses={
            "redis": LastStatus(image_id=image_id("redis:1")),
            "nginx": LastStatus(image_id=image_id("nginx:1")),
        },
        container_batches_record=(
            BatchRecord(timestamp=NOW, containers=("redis",)),
            BatchRecord(timestamp=LATER, containers=("nginx",)),
        ),
    )


def test_containers_without_priority_go_with_the_first_batch() -> None:
    found = pod(*prioritised(low=-5, high=5), container("free", "free:1"))
    spec = UpdateSpec(container_images={name: f"{name}:2" for name in ("low", "high", "free")})
    assert first_batch(found, spec, now=NOW, previous=None).images == {"high": "high:2", "free": "free:2"}  # IPU-51


def test_priority_of_containers_that_do_not_change_does_not_count() -> None:
    found = pod(*prioritised(low=0, high=10))
    edit = first_batch(found, UpdateSpec(container_images={"low": "low:2"}), now=NOW, previous=None)
    assert edit.images == {"low": "low:2"}
    assert not state_in(edit).has_next


def test_equal_priorities_go_together() -> None:
    found = pod(*prioritised(a=1, b=1, c=0))
    spec = UpdateSpec(container_images={name: f"{name}:2" for name in "abc"})
    edit = first_batch(found, spec, now=NOW, previous=None)
    assert state_in(edit).container_batches_record[0].containers == ("a", "b")


@pytest.mark.parametrize(
    "variable",
    [
        {"name": keys.BARRIER_ENV, "value": "p_5"},
        {"name": keys.BARRIER_ENV, "valueFrom": {"configMapKeyRef": {"name": "b", "key": "5"}}},
        {"name": keys.BARRIER_ENV, "valueFrom": {"configMapKeyRef": {"name": "b", "key": "p_x"}}},
        {"name": PRIORITY_ENV, "value": "5"},
    ],
)
def test_what_is_no_priority(variable: dict[str, Any]) -> None:
    """IPU-51: only the barrier that the webhook injected counts."""
    found = pod(container("a", "a:1", env=[variable]), *prioritised(b=10))
    spec = UpdateSpec(container_images={"a": "a:2", "b": "b:2"})
    assert first_batch(found, spec, now=NOW, previous=None).images == {"a": "a:2", "b": "b:2"}


def test_resources_and_environment_wait_for_their_turn_too() -> None:
    found = pod(*prioritised(high=10, low=0))
    spec = UpdateSpec(
        container_images={"high": "high:2"},
        container_ref_metadata={"low": RefMetadata(labels={"tier": "b"})},
        container_resources={"low": Resources(limits={"cpu": "2"})},
        update_env_from_metadata=True,
    )
    first = first_batch(found, spec, now=NOW, previous=None)
    assert first.labels == {}
    assert first.resources == {}
    state = state_in(first)
    assert state.next_container_ref_metadata == spec.container_ref_metadata
    assert state.next_container_resources == spec.container_resources
    second = next_batch(after(found, first), state, now=LATER)
    assert second.labels == {"tier": "b"}
    assert second.resources == spec.container_resources
    assert not state_in(second).has_next


def test_batch_of_resources_alone() -> None:
    """IPU-71: the original never began such a batch."""
    found = pod(*prioritised(high=10, low=0))
    spec = UpdateSpec(container_resources={name: Resources(limits={"cpu": "2"}) for name in ("high", "low")})
    first = first_batch(found, spec, now=NOW, previous=None)
    assert first.resources.keys() == {"high"}
    second = next_batch(found, state_in(first), now=LATER)
    assert second.resources.keys() == {"low"}
    assert [record.containers for record in state_in(second).container_batches_record] == [("high",), ("low",)]


def test_readers_of_one_label_restart_together() -> None:
    """IPU-52, regression 12: directly and by way of others, whatever their priority."""
    found = pod(*prioritised(high=10, low=0, middle=5, other=1))
    spec = UpdateSpec(
        container_ref_metadata={
            "high": RefMetadata(annotations={"config": "2"}),
            "low": RefMetadata(annotations={"config": "2"}, labels={"tier": "b"}),
            "middle": RefMetadata(labels={"tier": "b"}),
            "other": RefMetadata(labels={"config": "2"}),
        },
        update_env_from_metadata=True,
    )
    edit = first_batch(found, spec, now=NOW, previous=None)
    state = state_in(edit)
    assert state.container_batches_record[0].containers == ("high", "low", "middle")
    assert state.next_container_ref_metadata.keys() == {"other"}, "a label is not the annotation of that name"
    assert edit.labels == {"tier": "b"}
    assert edit.annotations["config"] == "2"


# An update that a newer one overtakes


def left(**more: Any) -> UpdateState:
    return UpdateState(revision="web-rev-2", update_timestamp=NOW, **more)


def test_nothing_left_nothing_carried() -> None:
    spec = UpdateSpec(revision="web-rev-3", container_images={"main": "nginx:1.27"})
    assert carried_over(spec, left(update_images=True), revision(b"no template is read")) is spec


def test_waiting_containers_get_what_the_new_template_says() -> None:
    """IPU-38: the difference of the revisions does not mention them."""
    new = template(
        container("high", "high:3"),
        container("low", "low:2", env=[drawn("T", "labels", "tier")], resources=resources({"cpu": "2"}, {"cpu": "1"})),
        labels={"app": "web", "tier": "b"},
        annotations={"note": "2"},
    )
    previous = left(
        next_container_images={"low": "low:2", "gone": "x:1"},
        next_container_ref_metadata={
            "low": RefMetadata(labels={"tier": "b", "removed": "x"}, annotations={"note": "1"}),
            "high": RefMetadata(labels={"removed": "x"}),
        },
        next_container_resources={"low": Resources(limits={"cpu": "2", "memory": "1Gi"})},
    )
    spec = UpdateSpec(revision="web-rev-3", container_images={"high": "high:3"}, grace_seconds=3)
    assert carried_over(spec, previous, revision(new)) == UpdateSpec(
        revision="web-rev-3",
        container_images={"high": "high:3", "low": "low:2"},
        container_ref_metadata={"low": RefMetadata(labels={"tier": "b"}, annotations={"note": "2"})},
        container_resources={"low": Resources(limits={"cpu": "2"})},
        update_env_from_metadata=True,
        grace_seconds=3,
    )


def test_what_the_new_difference_says_wins() -> None:
    new = template(container("low", "low:3"), labels={"tier": "c"})
    previous = left(
        next_container_images={"low": "low:2"}, next_container_ref_metadata={"low": RefMetadata(labels={"tier": "b"})}
    )
    spec = UpdateSpec(
        container_images={"low": "low:3"},
        container_ref_metadata={"low": RefMetadata(labels={"tier": "c", "more": "x"})},
        update_env_from_metadata=True,
    )
    assert carried_over(spec, previous, revision(new)) == spec


def test_request_left_over_follows_the_limit() -> None:
    """As when the update was worked out: the template names no request."""
    new = template(container("low", "low:1", resources=resources({"cpu": "3"})))
    previous = left(next_container_resources={"low": Resources(limits={"cpu": "2"}, requests={"cpu": "2"})})
    assert carried_over(UpdateSpec(), previous, revision(new)).container_resources == {
        "low": Resources(limits={"cpu": "3"}, requests={"cpu": "3"})
    }


# Properties

NAMES = ["a", "b", "c", "d", "e"]
LABELS = st.dictionaries(st.sampled_from(["x", "y", "z"]), st.just("2"), min_size=1)


@st.composite
def updates(draw: st.DrawFn) -> tuple[Pod, UpdateSpec]:
    names = NAMES[: draw(st.integers(1, len(NAMES)))]
    containers = []
    for name in names:
        priority = draw(st.none() | st.integers(-2, 2))
        containers.append(container(name, f"{name}:1", env=[] if priority is None else [barrier(priority)]))
    some = st.sets(st.sampled_from(names))
    return pod(*containers), UpdateSpec(
        revision="r",
        container_images={name: f"{name}:2" for name in draw(some)},
        container_ref_metadata={
            name: RefMetadata(labels=draw(LABELS), annotations=draw(LABELS)) for name in draw(some)
        },
        container_resources={name: Resources(limits={"cpu": "2"}) for name in draw(some)},
    )


@settings(max_examples=40 * EXAMPLES)
@given(updates())
def test_batches_cover_everything_once_in_order(update: tuple[Pod, UpdateSpec]) -> None:
    """IPU-51 to IPU-53: each container in one batch, priorities never rise, readers of a label never apart."""
    found, spec = update
    concerned = spec.container_images.keys() | spec.container_ref_metadata.keys() | spec.container_resources.keys()
    priorities = {
        item.name: int(item.env[0].value_from.config_map_key_ref.key.removeprefix("p_"))
        for item in found.spec.containers
        if item.env and item.env[0].value_from and item.env[0].value_from.config_map_key_ref
    }
    edit = first_batch(found, spec, now=NOW, previous=None)
    edits = [edit]
    while (state := state_in(edit)).has_next:
        assert state.pre_check_before_next is not None
        assert state.pre_check_before_next.containers_required_ready == state.container_batches_record[-1].containers
        found = after(found, edit)
        edit = next_batch(found, state, now=LATER)
        edits.append(edit)
        assert len(edits) <= len(NAMES)
    assert state.pre_check_before_next is None
    batches = [record.containers for record in state.container_batches_record]
    assert sorted(name for batch in batches for name in batch) == sorted(concerned)
    assert {k: v for one in edits for k, v in one.images.items()} == spec.container_images
    assert {k: v for one in edits for k, v in one.resources.items()} == spec.container_resources
    assert (state.last_container_statuses or {}).keys() == spec.container_images.keys()
    for number, batch in enumerate(batches):
        remaining = {name for rest in batches[number:] for name in rest}
        highest = max((priorities[name] for name in remaining if name in priorities), default=None)
        assert {name for name in remaining if priorities.get(name, highest) == highest} <= set(batch)
    for part in ("labels", "annotations"):
        for key in "xyz":
            readers = {name for name, drawn_ in spec.container_ref_metadata.items() if key in getattr(drawn_, part)}
            assert sum(1 for batch in batches if readers & set(batch)) <= 1


@settings(max_examples=40)
@given(updates())
def test_grace_changes_when_but_not_what(update: tuple[Pod, UpdateSpec]) -> None:
    found, spec = update
    at_once = first_batch(found, spec, now=NOW, previous=None)
    waiting = after(found, grace_start(found, spec, now=NOW))
    assert waiting.metadata.annotations[GRACE] == grace_json(spec)
    later = first_batch(waiting, spec, now=NOW, previous=update_state_of(waiting))
    assert (later.images, later.resources, later.labels) == (at_once.images, at_once.resources, at_once.labels)
    assert state_in(later).next_container_images == state_in(at_once).next_container_images


def test_status_of_the_moment_is_recorded() -> None:
    """The image id before the change, not the one of the template (section 7)."""
    found = pod(statuses=[status(container(), imageID="sha256:really-running")])
    edit = first_batch(found, UpdateSpec(container_images={"main": "nginx:1.26"}), now=NOW, previous=None)
    assert state_in(edit).last_container_statuses == {"main": LastStatus(image_id="sha256:really-running")}
