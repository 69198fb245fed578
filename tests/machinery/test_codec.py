"""The codec: slim, tolerant of Go's nulls, strict about shapes, and clear about what is wrong."""

from __future__ import annotations

import contextlib
import gc
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.api.meta import ObjectMeta
from kruise.api.native.apps import ControllerRevision
from kruise.api.native.config import Secret
from kruise.api.native.pod import Pod
from kruise.machinery import codec

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def test_unknown_fields_are_skipped_and_names_follow_the_wire() -> None:
    pod = codec.decode(
        b'{"kind":"Pod","metadata":{"name":"a","managedFields":[{"x":1}]},'
        b'"status":{"podIP":"10.0.0.1","containerStatuses":[{"name":"c","imageID":"i@sha256:1","containerID":"d"}]}}',
        Pod,
    )
    assert pod.status.pod_ip == "10.0.0.1"
    assert pod.status.container_statuses[0].image_id == "i@sha256:1"
    assert codec.to_builtins(pod)["status"]["podIP"] == "10.0.0.1"


def test_null_counts_as_absent_wherever_go_writes_it() -> None:
    pod = codec.decode(
        b'{"metadata":{"name":"a","creationTimestamp":null,"labels":null},"spec":{"containers":null},"status":null}',
        Pod,
    )
    assert pod.metadata.labels == {}
    assert pod.spec.containers == ()
    assert pod == codec.decode(b'{"metadata":{"name":"a"}}', Pod)


def test_a_wrong_type_is_refused_with_its_place() -> None:
    with pytest.raises(
        codec.DecodeError, match=r"Expected `int`, got `str` - at `\$.status.containerStatuses\[0\].restartCount`"
    ):
        codec.decode(b'{"status":{"containerStatuses":[{"restartCount":"two"}]}}', Pod)


@pytest.mark.parametrize("data", [b"", b"{", b'{"metadata":', b"\xff\xfe", b"<html>", b"[" * 5000])
def test_what_is_no_json_is_refused(data: bytes) -> None:
    with pytest.raises(codec.DecodeError, match=r".+"):
        codec.decode(data, Pod)


@given(st.binary(max_size=200))
def test_no_bytes_make_it_fail_otherwise(data: bytes) -> None:
    with contextlib.suppress(codec.DecodeError):
        assert isinstance(codec.decode(data, ObjectMeta), ObjectMeta)


def test_the_bound_decoder_takes_the_same_two_ways() -> None:
    run = codec.decoder(Pod)
    data = b'{"metadata":{"name":"a","labels":null}}'
    assert run(data) == codec.decode(data, Pod)
    with pytest.raises(codec.DecodeError):
        run(b'{"metadata":1}')


def test_objects_are_frozen_and_invisible_to_the_garbage_collector() -> None:
    pod = codec.decode(b'{"metadata":{"name":"a","labels":{"x":"y"}},"spec":{"containers":[{"name":"c"}]}}', Pod)
    with pytest.raises(AttributeError):
        pod.metadata.name = "b"  # type: ignore[misc]
    assert not any(
        gc.is_tracked(item) for item in (pod, pod.metadata, pod.metadata.labels, pod.spec, pod.spec.containers[0])
    )


def test_times_are_read_with_any_offset_and_written_in_utc() -> None:
    meta = codec.decode(b'{"creationTimestamp":"2026-11-15T10:00:00.5+02:00"}', ObjectMeta)
    assert meta.creation_timestamp == datetime(2026, 11, 15, 8, 0, 0, 500000, tzinfo=UTC)


def test_secret_data_is_decoded() -> None:
    assert codec.decode(b'{"data":{"tls.crt":"aGk="}}', Secret).data == {"tls.crt": b"hi"}


def test_templates_stay_raw() -> None:
    revision = codec.decode(b'{"revision":3,"data":{"spec": {"b":1,"a":2}}}', ControllerRevision)
    assert bytes(revision.data) == b'{"spec": {"b":1,"a":2}}'


@given(json_values)
def test_canonical_bytes_depend_on_the_value_alone(value: object) -> None:
    def backwards(item: object) -> object:
        if isinstance(item, dict):
            return {key: backwards(item[key]) for key in reversed(item)}
        return [backwards(part) for part in item] if isinstance(item, list) else item

    assert codec.canonical(value) == codec.canonical(backwards(value))
    assert codec.decode(codec.canonical(value), object) == codec.decode(codec.encode(value), object)


def test_evolve_leaves_the_original_alone() -> None:
    before = ObjectMeta(name="a")
    after = codec.evolve(before, name="b")
    assert (before.name, after.name) == ("a", "b")
