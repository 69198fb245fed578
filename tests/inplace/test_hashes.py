"""The numbers that tell whether a running container is the one its pod asks for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.api.native.pod import Container
from kruise.inplace import hashes, keys
from kruise.inplace.hashes import ContainerHashes, ContainerMeta, ContainersMeta
from kruise.inplace.state import BrokenAnnotation
from kruise.machinery import codec
from tests.support.inplace_objects import container, drawn, pod

# From the kubelet's own tests: one container, the number of kubelets since 1.31 and that of older ones.
KUBELET_SAMPLE: dict[str, Any] = {
    "name": "test_container",
    "image": "foo/image:v1",
    "command": ["/bin/testcmd"],
    "args": ["/bin/sh", "-c", "echo abc"],
    "ports": [{"containerPort": 8001}],
    "env": [
        {"name": "ENV_FOO", "value": "bar"},
        {"name": "ENV_BAR", "valueFrom": {"secretKeyRef": {"name": "foo", "key": "bar", "optional": True}}},
    ],
    "resources": {"limits": {"foo": "1G"}, "requests": {"foo": "500M"}},
}


def typed(document: dict[str, Any]) -> Container:
    return codec.convert(document, Container)


def test_plain_hash_of_kubelets_since_1_31() -> None:
    assert hashes.plain_hash("test_container", "foo/image:v1") == 0x8E45CBD0  # IPU-64


def test_plain_hash_of_older_kubelets() -> None:
    assert hashes.full_container_hash(KUBELET_SAMPLE) == 0x311670A  # IPU-65


@pytest.mark.parametrize(
    ("data", "expected"), [(b"null", 86995377), (b'[{"name":"A","value":"x"}]', 496662434)], ids=["none", "one"]
)
def test_deep_hash_vectors(data: bytes, expected: int) -> None:
    assert hashes.deep_hash(data) == expected  # IPU-64, IPU-66, DMN-68


@given(st.binary(max_size=64))
def test_deep_hash_is_fnv_of_what_go_prints(data: bytes) -> None:
    """Against a second, plain reading of the rule."""
    expected = 0x811C9DC5
    for character in "([]uint8)[" + " ".join(map(str, data)) + "]":
        expected = (expected ^ ord(character)) * 0x01000193 % 2**32
    assert hashes.deep_hash(data) == expected


def test_env_hash_takes_values_from_the_metadata() -> None:
    found = pod(labels={"tier": "b"}, annotations={"note/x": "y"})
    reader = typed(container(env=[drawn("Z", "labels", "tier"), drawn("A", "annotations", "note/x")]))
    expected = hashes.deep_hash(b'[{"name":"A","value":"y"},{"name":"Z","value":"b"}]')
    assert hashes.env_hash(reader, found.metadata) == expected  # IPU-66


def test_env_hash_leaves_out_empty_values() -> None:
    """A label that is missing and one that is empty read the same in a container."""
    reader = typed(container(env=[drawn("TIER", "labels", "tier")]))
    expected = hashes.deep_hash(b'[{"name":"TIER"}]')
    assert hashes.env_hash(reader, pod(labels={}).metadata) == expected
    assert hashes.env_hash(reader, pod(labels={"tier": ""}).metadata) == expected


@pytest.mark.parametrize(
    "variable",
    [
        {"name": "A", "value": "literal"},
        drawn("A", "labels", "tier", value="literal wins"),
        drawn("SIDECARSET_VERSION", "annotations", "tier"),
        drawn("SIDECARSET_VERSION_ALT", "annotations", "tier"),
        {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels"}}},
        {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "metadata.labels['tier']"}}},
    ],
)
def test_env_hash_of_nothing_drawn(variable: dict[str, Any]) -> None:
    found = pod(labels={"tier": "b"}, annotations={"tier": "b"})
    assert hashes.env_hash(typed(container(env=[variable])), found.metadata) == 86995377  # IPU-66


def test_running_side_takes_values_from_the_environment() -> None:
    """Both sides agree when the container runs with the values that the pod has now."""
    reader = typed(container(env=[drawn("TIER", "labels", "tier"), {"name": "HOME", "value": "/"}]))
    metadata = pod(labels={"tier": "b"}).metadata
    assert hashes.running_env_hash(reader, {"TIER": "b", "HOME": "/x"}) == hashes.env_hash(reader, metadata)
    assert hashes.running_env_hash(reader, {"TIER": "a"}) != hashes.env_hash(reader, metadata)
    assert hashes.running_env_hash(reader, {}) == hashes.deep_hash(b'[{"name":"TIER"}]')


def test_go_escapes_count_in_hashes() -> None:
    reader = typed(container(env=[drawn("A", "annotations", "note")]))
    expected = hashes.deep_hash(b'[{"name":"A","value":"\\u003cb\\u003e\\u0026"}]')
    assert hashes.env_hash(reader, pod(annotations={"note": "<b>&"}).metadata) == expected


META_JSON = (
    '{"containers":[{"name":"main","containerID":"containerd://1","restartCount":0,"hashes":{"plainHash":123,'
    '"extractedEnvFromMetadataHash":456}},{"name":"side","containerID":"containerd://2","restartCount":3,'
    '"hashes":{"plainHash":7}}]}'
)
META = ContainersMeta(
    containers=(
        ContainerMeta(
            name="main",
            container_id="containerd://1",
            hashes=ContainerHashes(plain_hash=123, extracted_env_from_metadata_hash=456),
        ),
        ContainerMeta(
            name="side", container_id="containerd://2", restart_count=3, hashes=ContainerHashes(plain_hash=7)
        ),
    )
)


def test_shape_of_the_report() -> None:
    """An unknown environment hash is left out, a restart count never (IPU-63)."""
    assert hashes.containers_meta_json(META) == META_JSON
    assert hashes.containers_meta_of(pod(annotations={keys.CONTAINERS_META_ANNOTATION: META_JSON})) == META


def test_no_report() -> None:
    assert hashes.containers_meta_of(pod()) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"containers":[{"hashes":{"plainHash":"x"}}]}'])
def test_broken_report_names_pod_annotation_and_remedy(text: str) -> None:
    with pytest.raises(BrokenAnnotation, match=r"pod demo/web-abcde: annotation .*runtime-containers-meta.*remove"):
        hashes.containers_meta_of(pod(annotations={keys.CONTAINERS_META_ANNOTATION: text}))


def test_report_is_plain_json() -> None:
    assert json.loads(hashes.containers_meta_json(ContainersMeta())) == {"containers": []}
