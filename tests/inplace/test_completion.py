"""When an in-place update has arrived, and what it waits for until then."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kruise.api.native.pod import Pod
from kruise.inplace import keys
from kruise.inplace.completion import is_complete, unfinished
from kruise.inplace.hashes import (
    ContainerHashes,
    ContainerMeta,
    ContainersMeta,
    containers_meta_json,
    env_hash,
    plain_hash,
)
from kruise.inplace.state import BatchRecord, LastStatus, UpdateState, state_json
from kruise.machinery.codec import evolve
from tests.support.inplace_objects import container, drawn, image_id, pod, resources, status

META = keys.CONTAINERS_META_ANNOTATION
STATE, GRACE = keys.UPDATE_STATE_ANNOTATION, keys.UPDATE_GRACE_ANNOTATION
FROM_1_25 = UpdateState(
    revision="r", update_images=True, last_container_statuses={"main": LastStatus(image_id=image_id("nginx:1.25"))}
)
NEW = container(image="nginx:1.26")


def reported(found: Pod, **changes: Any) -> str:
    """What the node agent reports about the pod's containers when all is in order."""
    return containers_meta_json(
        ContainersMeta(
            containers=tuple(
                ContainerMeta(
                    name=item.name,
                    container_id=changes.get("container_id", f"containerd://{item.name}-1"),
                    hashes=ContainerHashes(
                        plain_hash=changes.get("plain", plain_hash(item.name, item.image)),
                        extracted_env_from_metadata_hash=changes.get("env", env_hash(item, found.metadata)),
                    ),
                )
                for item in found.spec.containers
                if item.name != changes.get("without")
            )
        )
    )


# The pod as a whole


def test_pod_that_was_never_updated_is_complete() -> None:
    assert is_complete(pod(), vertical_scaling=False)  # IPU-60


def test_grace_is_not_complete() -> None:
    for key in (GRACE, keys.OLD_UPDATE_GRACE_ANNOTATION):
        assert not is_complete(pod(annotations={key: "{}"}), vertical_scaling=False)  # IPU-60


@pytest.mark.parametrize(
    "waiting",
    [
        '"nextContainerImages":{"side":"x:1"}',
        '"nextContainerRefMetadata":{"side":{"labels":{"a":"b"}}}',
        '"nextContainerResources":{"side":{"limits":{"cpu":"1"}}}',
    ],
)
def test_later_batches_are_not_complete(waiting: str) -> None:
    found = pod(annotations={STATE: f'{{"revision":"r","lastContainerStatuses":null,{waiting}}}'})
    assert not is_complete(found, vertical_scaling=False)  # IPU-60


def test_unreadable_state_is_not_complete() -> None:
    assert not is_complete(pod(annotations={STATE: "{"}), vertical_scaling=False)


def test_pod_follows_its_containers() -> None:
    text = state_json(FROM_1_25)
    assert is_complete(pod(NEW, annotations={STATE: text}), vertical_scaling=False)
    still = pod(NEW, annotations={STATE: text}, statuses=[status(container())])
    assert not is_complete(still, vertical_scaling=False)


def test_metadata_alone_is_complete_at_once() -> None:
    assert unfinished(pod(statuses=[]), UpdateState(revision="r"), vertical_scaling=True) == ""


# Images


@pytest.mark.parametrize("state", [{"waiting": {"reason": "ErrImagePull"}}, {"terminated": {"exitCode": 0}}])
def test_a_container_that_has_stopped_runs_nothing(state: dict[str, Any]) -> None:
    found = pod(NEW, statuses=[{**status(container()), "state": state}])
    told = "container main has stopped, and not started with nginx:1.26 yet"
    assert unfinished(found, FROM_1_25, vertical_scaling=False) == told


@pytest.mark.parametrize(
    ("wanted", "running", "running_id", "awaited"),
    [
        ("nginx:1.26", "nginx:1.26", "sha256-of-nginx:1.26", ""),
        ("nginx:1.26", "nginx:1.25", "sha256-of-nginx:1.25", "container main still runs nginx:1.25"),
        ("nginx:1.26", "nginx:1.25", "another", ""),  # the image id changed: that is proof enough
        ("nginx:same", "nginx:same", "sha256-of-nginx:1.25", ""),  # two tags, one image: the name tells
        ("busybox", "busybox:latest", "sha256-of-nginx:1.25", ""),  # regression 4
        ("busybox", "busybox:1", "sha256-of-nginx:1.25", "container main still runs busybox:1"),
        ("nginx:same", "docker.io/library/nginx:same", "sha256-of-nginx:1.25", ""),
        ("team/app:1", "docker.io/team/app:1", "sha256-of-nginx:1.25", ""),
        ("team/app", "docker.io/team/app:latest", "sha256-of-nginx:1.25", ""),
        ("host:5000/app", "host:5000/app:latest", "sha256-of-nginx:1.25", ""),
        ("example.com/app:1", "example.com/app:1", "sha256-of-nginx:1.25", ""),
        ("example.com/app:1", "docker.io/app:1", "sha256-of-nginx:1.25", "container main still runs docker.io/app:1"),
        ("app@sha256:12", "app@sha256:12", "sha256-of-nginx:1.25", ""),
        ("nginx:1.26", "", "sha256-of-nginx:1.25", "container main has no image"),
    ],
)
def test_images_without_a_report(wanted: str, running: str, running_id: str, awaited: str) -> None:
    """IPU-61.5."""
    found = pod(container(image=wanted), statuses=[status(container(image=running), imageID=running_id)])
    assert unfinished(found, FROM_1_25, vertical_scaling=False) == awaited


def test_container_without_status() -> None:
    found = pod(NEW, statuses=[])
    assert unfinished(found, FROM_1_25, vertical_scaling=False) == "container main has not started"  # IPU-61.5


def test_only_changed_containers_count() -> None:
    """Another container may run whatever it runs."""
    other = container("side", "busybox:2")
    found = pod(NEW, other, statuses=[status(NEW), status(container("side", "busybox:1"))])
    assert unfinished(found, FROM_1_25, vertical_scaling=False) == ""


def test_report_proves_a_new_tag_of_the_same_image() -> None:
    """IPU-61.4, regression 3: neither image id nor name in the status has changed."""
    statuses = [status(container())]
    bare = pod(NEW, statuses=statuses)
    assert unfinished(bare, FROM_1_25, vertical_scaling=False) != ""
    found = pod(NEW, statuses=statuses, annotations={META: reported(bare)})
    assert unfinished(found, FROM_1_25, vertical_scaling=False) == ""


CHANGED = datetime(2030, 1, 1, 12, 0, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("ended", "started", "seen", "is_new"),
    [
        (10, 10, 2, True),  # all within the second of the change
        (11, 12, 2, True),
        (11, 12, 0, True),  # kubelets before 1.33 do not tell which generation they have seen
        (11, 12, 1, False),  # the kubelet does not know of the change: it restarted for another reason
        (9, 12, 2, False),
        (9, 9, 2, False),
        (None, 10, 2, False),  # the first container of a young pod
        (11, None, 2, False),  # stopped, and nothing runs yet
    ],
)
def test_times_prove_a_new_tag_of_the_same_image(
    ended: int | None, started: int | None, seen: int, is_new: bool
) -> None:
    """IPU-61.5, regression 3: containerd may report either name of the image for whichever container."""

    def at(second: int) -> str:
        return f"2030-01-01T12:00:{second:02}Z"

    found = status(
        container(),
        state={} if started is None else {"running": {"startedAt": at(started)}},
        lastState={} if ended is None else {"terminated": {"finishedAt": at(ended)}},
    )
    bare = pod(NEW, statuses=[found])
    replaced = evolve(
        bare,
        metadata=evolve(bare.metadata, generation=2),
        status=evolve(bare.status, observed_generation=seen),
    )
    batches = (BatchRecord(timestamp=CHANGED, containers=("main",)),)
    state = evolve(FROM_1_25, update_timestamp=CHANGED - timedelta(seconds=5), container_batches_record=batches)
    awaited = "" if is_new else "container main still runs nginx:1.25"
    assert unfinished(replaced, state, vertical_scaling=False) == awaited
    # A node that reports has better proof, and lacks it here.
    annotations = {META: reported(bare, container_id="containerd://before")}
    told = evolve(replaced, metadata=evolve(replaced.metadata, annotations=annotations))
    assert unfinished(told, state, vertical_scaling=False) == "container main still runs nginx:1.25"


@pytest.mark.parametrize(
    "changes",
    [{"plain": plain_hash("main", "nginx:1.25")}, {"container_id": "containerd://before"}, {"without": "main"}],
    ids=["old hash", "old container", "not reported"],
)
def test_stale_report_leaves_it_to_the_image_ids(changes: dict[str, Any]) -> None:
    """IPU-61.5, IPU-62: it neither proves nor blocks."""
    bare = pod(NEW)
    for statuses, awaited in (
        ([status(NEW)], ""),
        ([status(container())], "container main still runs nginx:1.25"),
    ):
        found = pod(NEW, statuses=statuses, annotations={META: reported(bare, **changes)})
        assert unfinished(found, FROM_1_25, vertical_scaling=False) == awaited


def test_unreadable_report_is_waited_for() -> None:
    """IPU-61.1."""
    found = pod(NEW, annotations={META: "{"})
    assert META in unfinished(found, FROM_1_25, vertical_scaling=False)


# Environment

ENV_STATE = UpdateState(revision="r", update_env_from_metadata=True)
READER = container(env=[drawn("TIER", "labels", "tier")])


def test_environment_needs_the_report() -> None:
    """IPU-61.2. Recorded: without a node agent such an update never ends."""
    awaited = unfinished(pod(READER, labels={"tier": "b"}), ENV_STATE, vertical_scaling=False)
    assert awaited.startswith("the node has not told")
    assert META in awaited


def test_environment_of_every_container_counts() -> None:
    """IPU-61.2, IPU-162: injected containers too, also when their own update was not asked for."""
    bare = pod(READER, container("injected"), labels={"tier": "b"})
    in_order = reported(bare)
    found = pod(READER, container("injected"), labels={"tier": "b"}, annotations={META: in_order})
    assert unfinished(found, ENV_STATE, vertical_scaling=False) == ""
    partly = pod(
        READER,
        container("injected"),
        labels={"tier": "b"},
        annotations={META: reported(bare, without="injected")},
    )
    assert "container injected" in unfinished(partly, ENV_STATE, vertical_scaling=False)


@pytest.mark.parametrize(
    "changes", [{"env": 0}, {"env": 17}, {"container_id": "containerd://before"}], ids=["unknown", "old", "replaced"]
)
def test_environment_that_is_not_there_yet(changes: dict[str, Any]) -> None:
    """IPU-61.2: image ids and plain hashes do not help."""
    bare = pod(READER, labels={"tier": "b"})
    found = pod(READER, labels={"tier": "b"}, annotations={META: reported(bare, **changes)})
    assert (
        unfinished(found, ENV_STATE, vertical_scaling=False)
        == "container main has not restarted with its new environment"
    )


def test_environment_hash_is_of_the_values_now() -> None:
    before = reported(pod(READER, labels={"tier": "a"}))
    found = pod(READER, labels={"tier": "b"}, annotations={META: before})
    assert "environment" in unfinished(found, ENV_STATE, vertical_scaling=False)


def test_environment_and_image_both_count() -> None:
    reader = container(image="nginx:1.26", env=READER["env"])
    state = UpdateState(
        revision="r", update_env_from_metadata=True, last_container_statuses=FROM_1_25.last_container_statuses
    )
    bare = pod(reader, labels={"tier": "b"})
    old_image = reported(bare, plain=plain_hash("main", "nginx:1.25"))
    found = pod(reader, labels={"tier": "b"}, annotations={META: old_image}, statuses=[status(container())])
    assert unfinished(found, state, vertical_scaling=False) == "container main still runs nginx:1.25"


# Resources

RESIZED = container(resources=resources({"cpu": "800m"}, {"cpu": "500m"}))
RESIZE_STATE = UpdateState(revision="r", update_resources=True)


@pytest.mark.parametrize(
    ("present", "awaited"),
    [
        (resources({"cpu": "0.8"}, {"cpu": "500m"}), ""),
        (resources({"cpu": "1"}, {"cpu": "500m"}), "container main does not have its new resources yet"),
        (resources({"cpu": "800m"}, {"cpu": "1"}), "container main does not have its new resources yet"),
        (resources({"cpu": "800m"}), "container main does not have its new resources yet"),
        (resources({"cpu": "what"}, {"cpu": "500m"}), "container main does not have its new resources yet"),
        (None, "the resources of container main are not known yet"),
    ],
)
def test_resources(present: dict[str, Any] | None, awaited: str) -> None:
    """IPU-61.3: equal as quantities."""
    more = {} if present is None else {"resources": present}
    found = pod(RESIZED, statuses=[status(RESIZED, **more)])
    assert unfinished(found, RESIZE_STATE, vertical_scaling=True) == awaited


def test_resources_with_the_gate_off_are_not_waited_for() -> None:
    assert unfinished(pod(RESIZED), RESIZE_STATE, vertical_scaling=False) == ""  # IPU-61.3


def test_resources_need_a_status_of_each_container() -> None:
    """IPU-61.3: as many statuses as containers."""
    sized = status(RESIZED, resources=RESIZED["resources"])
    missing = pod(RESIZED, container("side"), statuses=[sized])
    assert "container side" in unfinished(missing, RESIZE_STATE, vertical_scaling=True)
    surplus = pod(RESIZED, statuses=[sized, status(container("ghost"), resources={})])
    assert unfinished(surplus, RESIZE_STATE, vertical_scaling=True) == "the containers are not all known yet"


def test_container_without_resources_reports_empty_ones() -> None:
    sized = status(RESIZED, resources=RESIZED["resources"])
    found = pod(RESIZED, container("side"), statuses=[sized, status(container("side"), resources={})])
    assert unfinished(found, RESIZE_STATE, vertical_scaling=True) == ""
