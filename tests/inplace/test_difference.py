"""What lies between two revisions, and what of it can be done in a running pod."""

from __future__ import annotations

import copy
from typing import Any

import jsonpatch
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.inplace import keys
from kruise.inplace.difference import InPlaceOptions, Operation, Refusal, compare, operations
from kruise.inplace.state import RefMetadata, Resources, UpdateSpec
from kruise.machinery.patches.json_patch import pointer
from tests.support.examples import EXAMPLES
from tests.support.inplace_objects import container, drawn, resources, revision, template

EVERYTHING = InPlaceOptions(env_from_metadata=True, vertical_scaling=True, compare_claim_templates=True)
NO_GATES = InPlaceOptions(env_from_metadata=False, vertical_scaling=False, compare_claim_templates=False)


def between(old: dict[str, Any], new: dict[str, Any], options: InPlaceOptions = EVERYTHING) -> UpdateSpec | Refusal:
    return compare(revision(old, "web-rev-1"), revision(new, "web-rev-2"), options)


def spec_between(old: dict[str, Any], new: dict[str, Any], options: InPlaceOptions = EVERYTHING) -> UpdateSpec:
    found = between(old, new, options)
    assert isinstance(found, UpdateSpec), found
    return found


def refusal_between(old: dict[str, Any], new: dict[str, Any], options: InPlaceOptions = EVERYTHING) -> Refusal:
    found = between(old, new, options)
    assert isinstance(found, Refusal), found
    return found


# InPlaceOptions


def test_options_follow_the_gates() -> None:
    gates = {
        "InPlaceUpdateEnvFromMetadata": True,
        "InPlaceWorkloadVerticalScaling": True,
        "RecreatePodWhenChangeVCTInCloneSetGate": True,
    }
    assert InPlaceOptions.of(gates) == EVERYTHING
    assert not InPlaceOptions.of(gates, ignore_claim_templates=True).compare_claim_templates  # IPU-31, InPlaceOnly
    assert InPlaceOptions.of({}) == NO_GATES


# Missing and unreadable revisions


def test_missing_revision_is_refused() -> None:
    there = revision(template())
    for old, new in ((None, there), (there, None), (None, None)):
        found = compare(old, new, EVERYTHING)
        assert isinstance(found, Refusal)  # IPU-30
        assert "exist" in found.message


@pytest.mark.parametrize(
    "data",
    [b"{", b"[]", b"{}", b'{"spec":{"template":[]}}', b'{"spec":{"template":{"spec":{"containers":"none"}}}}'],
)
def test_unreadable_revision_is_refused_by_name(data: bytes) -> None:
    broken, sound = revision(data, "web-broken"), revision(template())
    for old, new in ((broken, sound), (sound, broken)):
        found = compare(old, new, EVERYTHING)
        assert isinstance(found, Refusal)  # IPU-30
        assert "web-broken" in found.message


# Claim templates


@pytest.mark.parametrize(
    ("old", "new", "refused"),
    [
        ("1", "2", True),
        ("1", "1", False),
        ("", "", False),
        ("", "1", True),
        (None, "1", False),
        ("1", None, False),
        (None, None, False),
    ],
)
def test_changed_claim_templates(old: str | None, new: str | None, refused: bool) -> None:
    """IPU-31: only where both revisions tell."""

    def at(hashed: str | None, name: str) -> Any:
        return revision(template(), name, {} if hashed is None else {keys.CLAIM_TEMPLATES_HASH: hashed})

    found = compare(at(old, "web-rev-1"), at(new, "web-rev-2"), EVERYTHING)
    assert isinstance(found, Refusal) is refused
    assert isinstance(compare(at(old, "a"), at(new, "b"), NO_GATES), UpdateSpec), "with the gate off nobody looks"


# Images


def test_image_of_one_container() -> None:
    """Recorded: two containers, the image of the second changes."""
    old = template(container(), container("side", "busybox:1.36"))
    new = template(container(), container("side", "busybox:1.37"))
    assert spec_between(old, new, NO_GATES) == UpdateSpec(
        revision="web-rev-2", container_images={"side": "busybox:1.37"}
    )  # IPU-32, IPU-37


def test_images_of_all_containers() -> None:
    old = template(container(), container("side", "busybox:1.36"))
    new = template(container(image="nginx:1.26"), container("side", "busybox:1.37"))
    assert spec_between(old, new).container_images == {"main": "nginx:1.26", "side": "busybox:1.37"}


def test_revision_can_be_named_otherwise() -> None:
    """IPU-37: a DaemonSet's pods carry the bare hash."""
    found = compare(revision(template(), "a"), revision(template(), "b"), EVERYTHING, revision="rev-2")
    assert found == UpdateSpec(revision="rev-2")


def test_templates_that_mean_the_same_have_no_difference() -> None:
    """IPU-11: quantities and empty values may be written in several ways."""
    old = template(container(resources=resources({"cpu": "1000m"}), env=[]))
    new = template(container(resources=resources({"cpu": 1})))
    assert between(old, new) == UpdateSpec(revision="web-rev-2")


VOLUME = {"name": "data", "emptyDir": {}}
REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    "environment": (
        template(container(env=[{"name": "A", "value": "1"}])),
        template(container(env=[{"name": "A", "value": "2"}])),
        "/spec/containers/0/env/0/value",
        "replace",
    ),
    "first variable": (
        template(),
        template(container(env=[{"name": "A", "value": "1"}])),
        "/spec/containers/0/env",
        "add",
    ),
    "command": (
        template(container(command=["a"])),
        template(container(command=["b"])),
        "/spec/containers/0/command/0",
        "replace",
    ),
    "ports": (
        template(container(ports=[{"containerPort": 80}])),
        template(container(ports=[{"containerPort": 80}, {"containerPort": 81}])),
        "/spec/containers/0/ports/1",
        "add",
    ),
    "volume": (template(volumes=[VOLUME]), template(), "/spec/volumes", "remove"),
    "init container's image": (
        template(initContainers=[container("init", "i:1")]),
        template(initContainers=[container("init", "i:2")]),
        "/spec/initContainers/0/image",
        "replace",
    ),
    "container added": (
        template(container()),
        template(container(), container("side")),
        "/spec/containers/1",
        "add",
    ),
    "container removed": (
        template(container(), container("side")),
        template(container()),
        "/spec/containers/1",
        "remove",
    ),
    "container renamed": (
        template(container("main")),
        template(container("other")),
        "/spec/containers/0/name",
        "replace",
    ),
    "containers in another order": (
        template(container("a", "i:1"), container("b", "i:1")),
        template(container("b", "i:1"), container("a", "i:1")),
        "/spec/containers/0/name",
        "replace",
    ),
    "image removed": (
        template(container()),
        template({"name": "main"}),
        "/spec/containers/0/image",
        "remove",
    ),
    "host network": (template(), template(hostNetwork=True), "/spec/hostNetwork", "add"),
    "resource added": (
        template(container(resources=resources({"cpu": "1"}))),
        template(container(resources=resources({"cpu": "1", "memory": "1Gi"}))),
        "/spec/containers/0/resources/limits/memory",
        "add",
    ),
    "resource removed": (
        template(container(resources=resources({"cpu": "1", "memory": "1Gi"}))),
        template(container(resources=resources({"cpu": "1"}))),
        "/spec/containers/0/resources/limits/memory",
        "remove",
    ),
    "limits added": (
        template(container(resources=resources(None, {"cpu": "1"}))),
        template(container(resources=resources({"cpu": "1"}, {"cpu": "1"}))),
        "/spec/containers/0/resources/limits",
        "add",
    ),
    "another resource": (
        template(container(resources=resources({"ephemeral-storage": "1Gi"}))),
        template(container(resources=resources({"ephemeral-storage": "2Gi"}))),
        "/spec/containers/0/resources/limits/ephemeral-storage",
        "replace",
    ),
    "resources of an init container": (
        template(initContainers=[container("init", "i:1", resources=resources({"cpu": "1"}))]),
        template(initContainers=[container("init", "i:1", resources=resources({"cpu": "2"}))]),
        "/spec/initContainers/0/resources/limits/cpu",
        "replace",
    ),
}


@pytest.mark.parametrize(("old", "new", "path", "operation"), REFUSED.values(), ids=REFUSED.keys())
def test_what_needs_a_new_pod(old: dict[str, Any], new: dict[str, Any], path: str, operation: str) -> None:
    """IPU-32, IPU-33: all of it, with every gate on, and also beside a change that alone could be made."""
    found = refusal_between(old, new)
    assert (found.path, found.operation) == (path, operation)
    assert found.message
    new = copy.deepcopy(new)
    new["metadata"]["labels"]["tier"] = "x"
    assert isinstance(between(old, new), Refusal)
    assert isinstance(between(old, new, NO_GATES), Refusal)


def test_refusal_speaks_of_containers_by_name() -> None:
    old, new, *_ = REFUSED["environment"]
    message = refusal_between(old, new).message
    assert message.startswith("spec.containers[main].env[A].value has changed: only images of containers")


# Resources


def scaled(cpu: str, *, request: str | None = None, **more: str) -> dict[str, Any]:
    limits = {"cpu": cpu, **more}
    return template(container(resources=resources(limits, None if request is None else {"cpu": request})))


def test_resources_with_the_gate_off() -> None:
    found = refusal_between(scaled("1", request="500m"), scaled("800m", request="500m"), InPlaceOptions())
    assert "InPlaceWorkloadVerticalScaling" in found.message  # IPU-32


def test_limit_changes_in_place() -> None:
    """Regression 13."""
    found = spec_between(scaled("1", request="500m"), scaled("800m", request="500m"))
    assert found == UpdateSpec(
        revision="web-rev-2", container_resources={"main": Resources(limits={"cpu": "800m"})}
    )  # IPU-33, IPU-37


def test_only_changed_amounts_are_told() -> None:
    old = template(
        container(resources=resources({"cpu": "2", "memory": "2Gi"}, {"cpu": "1", "memory": "1Gi"})),
        container("side", resources=resources({"cpu": "1"}, {"cpu": "500m"})),
    )
    new = template(
        container(resources=resources({"cpu": "2", "memory": "3Gi"}, {"cpu": "1500m", "memory": "1Gi"})),
        container("side", resources=resources({"cpu": "1"}, {"cpu": "500m"})),
    )
    assert spec_between(old, new).container_resources == {
        "main": Resources(limits={"memory": "3Gi"}, requests={"cpu": "1500m"})
    }


def test_request_follows_the_limit_where_the_template_has_none() -> None:
    """The API server made the request of the pod from the limit, and refuses a limit below it."""
    found = spec_between(scaled("1"), scaled("800m"))
    assert found.container_resources == {"main": Resources(limits={"cpu": "800m"}, requests={"cpu": "800m"})}


@pytest.mark.parametrize(
    ("old", "new", "classes"),
    [
        (
            resources({"cpu": "1", "memory": "1Gi"}, {"cpu": "500m", "memory": "1Gi"}),
            resources({"cpu": "1", "memory": "1Gi"}, {"cpu": "1", "memory": "1Gi"}),
            ("Burstable", "Guaranteed"),
        ),
        (
            resources({"cpu": "1", "memory": "1Gi"}, {"cpu": "1", "memory": "1Gi"}),
            resources({"cpu": "2", "memory": "1Gi"}, {"cpu": "1", "memory": "1Gi"}),
            ("Guaranteed", "Burstable"),
        ),
        (resources({"cpu": "0"}), resources({"cpu": "1"}), ("BestEffort", "Burstable")),
    ],
)
def test_class_of_service_is_for_life(old: dict[str, Any], new: dict[str, Any], classes: tuple[str, str]) -> None:
    """IPU-33, regression 13."""
    found = refusal_between(template(container(resources=old)), template(container(resources=new)))
    assert f"from {classes[0]} to {classes[1]}" in found.message


def test_guaranteed_by_limits_alone_stays_guaranteed() -> None:
    """What the template leaves to the API server counts as it will be in the pod."""
    found = spec_between(scaled("1", memory="1Gi"), scaled("2", memory="1Gi"))
    assert found.container_resources == {"main": Resources(limits={"cpu": "2"}, requests={"cpu": "2"})}


# Metadata


def test_metadata_alone_is_an_update() -> None:
    """Recorded: labels and annotations added, changed, removed (IPU-35, IPU-36, regression 1)."""
    old = template(labels={"app": "web", "tier": "a"}, annotations={"note": "1", "gone": "x"})
    new = template(labels={"app": "web", "tier": "b", "new": "y"}, annotations={"note": "2"})
    assert spec_between(old, new) == UpdateSpec(
        revision="web-rev-2",
        meta_data_patch={
            "metadata": {"labels": {"tier": "b", "new": "y"}, "annotations": {"note": "2", "gone": None}},
        },
    )


def test_whole_maps_come_and_go_by_key() -> None:
    """IPU-35: a pod's own annotations stay when the template loses its last one."""
    with_map, without = template(annotations={"a": "1"}), template()
    assert spec_between(with_map, without).meta_data_patch == {"metadata": {"annotations": {"a": None}}}
    assert spec_between(without, with_map).meta_data_patch == {"metadata": {"annotations": {"a": "1"}}}


def test_finalizers_change_in_place() -> None:
    found = spec_between(template(finalizers=("x/a", "x/b")), template(finalizers=("x/b", "x/c")))
    assert found.meta_data_patch == {
        "metadata": {"finalizers": ["x/c"], "$deleteFromPrimitiveList/finalizers": ["x/a"]}
    }  # IPU-32


def test_other_metadata_of_a_template_says_nothing_about_its_pods() -> None:
    old, new = template(), template()
    new["metadata"] |= {"name": "ignored", "namespace": "ignored"}
    assert spec_between(old, new) == UpdateSpec(revision="web-rev-2")


# Environment from metadata


def reader(name: str = "main", part: str = "labels", key: str = "tier", **more: Any) -> dict[str, Any]:
    return container(name, env=[drawn("TIER", part, key, **more)])


def test_label_that_an_environment_reads() -> None:
    """Recorded: env from the label tier, which changes (IPU-34)."""
    old = template(reader(), container("side", "busybox:1.36"), labels={"app": "web", "tier": "a"})
    new = template(reader(), container("side", "busybox:1.36"), labels={"app": "web", "tier": "b"})
    assert spec_between(old, new) == UpdateSpec(
        revision="web-rev-2",
        container_ref_metadata={"main": RefMetadata(labels={"tier": "b"})},
        update_env_from_metadata=True,
    )


def test_environment_beside_plain_metadata_and_image() -> None:
    containers = (reader(), reader("side", "annotations", "a/b~c"))
    old = template(*containers, labels={"app": "web", "tier": "a"}, annotations={"a/b~c": "1", "n": "1"})
    new = template(*containers, labels={"app": "web", "tier": "b"}, annotations={"a/b~c": "2", "n": "2"})
    new["spec"]["containers"][1]["image"] = "nginx:1.26"
    assert spec_between(old, new) == UpdateSpec(
        revision="web-rev-2",
        container_images={"side": "nginx:1.26"},
        container_ref_metadata={
            "main": RefMetadata(labels={"tier": "b"}),
            "side": RefMetadata(annotations={"a/b~c": "2"}),
        },
        meta_data_patch={"metadata": {"annotations": {"n": "2"}}},
        update_env_from_metadata=True,
    )


def test_all_readers_of_a_key_get_it() -> None:
    containers = (reader(), reader("side"), container("other"))
    old, new = (template(*containers, labels={"app": "web", "tier": tier}) for tier in "ab")
    wanted = RefMetadata(labels={"tier": "b"})
    assert spec_between(old, new).container_ref_metadata == {"main": wanted, "side": wanted}


def test_key_that_is_new_in_its_map_restarts_its_readers() -> None:
    old, new = template(reader(), labels={"app": "web"}), template(reader(), labels={"app": "web", "tier": "b"})
    found = spec_between(old, new)
    assert found.container_ref_metadata == {"main": RefMetadata(labels={"tier": "b"})}
    assert found.meta_data_patch == {}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (template(reader(), labels={"app": "web", "tier": "a"}), template(reader(), labels={"app": "web"})),
        (
            template(reader(part="annotations")),
            template(reader(part="annotations"), annotations={"tier": "a"}),
        ),
        (
            template(container(env=[drawn("SIDECARSET_VERSION", "labels", "tier")]), labels={"tier": "a"}),
            template(container(env=[drawn("SIDECARSET_VERSION", "labels", "tier")]), labels={"tier": "b"}),
        ),
        (
            template(reader(value="literal"), labels={"tier": "a"}),
            template(reader(value="literal"), labels={"tier": "b"}),
        ),
        (
            template(reader(part="annotations"), labels={"tier": "a"}),
            template(reader(part="annotations"), labels={"tier": "b"}),
        ),
        (
            template(initContainers=[reader("init")], labels={"tier": "a"}),
            template(initContainers=[reader("init")], labels={"tier": "b"}),
        ),
    ],
    ids=["removed", "whole map added", "sidecar set", "literal value", "annotation of that name", "init container"],
)
def test_what_restarts_nobody(old: dict[str, Any], new: dict[str, Any]) -> None:
    """IPU-34: it is written as plain metadata."""
    found = spec_between(old, new)
    assert not found.update_env_from_metadata
    assert found.container_ref_metadata == {}
    assert found.meta_data_patch


def test_environment_with_the_gate_off() -> None:
    old = template(reader(), labels={"tier": "a"})
    new = template(reader(), labels={"tier": "b"})
    found = spec_between(old, new, NO_GATES)
    assert found == UpdateSpec(revision="web-rev-2", meta_data_patch={"metadata": {"labels": {"tier": "b"}}})


# The difference itself

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(alphabet="ab/~", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(alphabet="ab/~", max_size=2), inner, max_size=4)
    ),
    max_leaves=12,
)


def as_patch(found: list[Operation]) -> list[dict[str, Any]]:
    return [
        {"op": kind, "path": pointer(*path)} | ({} if kind == "remove" else {"value": value})
        for kind, path, value in found
    ]


@settings(max_examples=50 * EXAMPLES)
@given(JSON, JSON)
def test_operations_lead_from_one_value_to_the_other(before: Any, after: Any) -> None:
    """Checked with another implementation of RFC 6902."""
    found = list(operations(before, after))
    assert jsonpatch.apply_patch(copy.deepcopy(before), as_patch(found)) == after


@settings(max_examples=50)
@given(JSON)
def test_equal_values_have_no_difference(value: Any) -> None:
    assert list(operations(value, copy.deepcopy(value))) == []


def test_lists_are_compared_by_position() -> None:
    """IPU-32: an element in front changes all that follow."""
    assert list(operations([{"n": "a"}], [{"n": "b"}, {"n": "a"}])) == [
        Operation("replace", (0, "n"), "b"),
        Operation("add", (1,), {"n": "a"}),
    ]


def test_objects_without_a_common_key_are_compared_by_key() -> None:
    assert list(operations({"a": 1}, {"b": 2})) == [Operation("remove", ("a",), None), Operation("add", ("b",), 2)]


IMAGES = st.sampled_from(["i:1", "i:2", "i:3"])
LABELS = st.dictionaries(st.sampled_from(["a", "b", "x/y", "t~"]), st.sampled_from(["1", "2"]))


@settings(max_examples=60)
@given(st.data())
def test_any_change_of_images_and_metadata_is_possible(data: st.DataObject) -> None:
    """And the spec holds exactly what differs: nothing is lost, nothing is told twice."""
    names = ["c0", "c1", "c2"][: data.draw(st.integers(1, 3))]
    env = [drawn("L", "labels", data.draw(st.sampled_from(["a", "b", "x/y"])))]
    labels = (data.draw(LABELS), data.draw(LABELS))
    images = tuple({name: data.draw(IMAGES) for name in names} for _ in range(2))
    old, new = (
        template(*(container(name, images[i][name], env=env) for name in names), labels=labels[i]) for i in range(2)
    )
    found = spec_between(old, new)
    assert found.container_images == {name: images[1][name] for name in names if images[0][name] != images[1][name]}
    patched = dict(labels[0])
    for key, value in found.meta_data_patch.get("metadata", {}).get("labels", {}).items():
        if value is None:
            del patched[key]
        else:
            patched[key] = value
    drawn_labels = {k: v for reference in found.container_ref_metadata.values() for k, v in reference.labels.items()}
    assert patched | drawn_labels == labels[1]
    assert found.update_env_from_metadata == bool(drawn_labels)
    assert not drawn_labels.keys() & found.meta_data_patch.get("metadata", {}).get("labels", {}).keys()
