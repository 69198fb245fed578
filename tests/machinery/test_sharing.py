"""Equal parts of stored objects are one value, and nobody can tell but by `is`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.pods import stored_pod
from kruise.api.meta import ObjectMeta, PartialObject
from kruise.api.native.config import CONFIG_MAPS, Secret
from kruise.api.native.pod import PODS, LocalObjectReference, Pod, Volume
from kruise.machinery.cache import Cache
from kruise.machinery.clock import RealClock
from kruise.machinery.codec import (
    UNSET,
    Raw,
    Struct,
    UnsetType,
    decode,
    encode,
    evolve,
    field,
    is_struct,
    struct_fields,
)
from kruise.machinery.sharing import Sharing, Table
from kruise.machinery.store import Store
from tests.support.store_model import config_map


class Parts(Struct):
    """Fields whose JSON may be the same while they are not."""

    texts: dict[str, str] = field(default_factory=dict)
    documents: dict[str, Raw] = field(default_factory=dict)
    volumes: tuple[Volume, ...] = ()
    secrets: tuple[LocalObjectReference, ...] = ()
    named: dict[str, Volume] = field(default_factory=dict)
    named_too: dict[str, LocalObjectReference] = field(default_factory=dict)
    raw: Raw = Raw(b"{}")


class Thing(Struct):
    metadata: ObjectMeta = ObjectMeta()
    parts: Parts = Parts()


def pod(number: int, version: int = 1, **status: Any) -> Pod:
    document = stored_pod(number, str(version))
    return decode(encode(document | {"status": document["status"] | status}), Pod)


def parts_of(value: Any) -> Iterator[Any]:
    """Everything inside that takes memory of its own."""
    if not value and not is_struct(value):
        return
    if isinstance(value, str | tuple | dict) or is_struct(value):
        yield value
    if is_struct(value):
        for name, _, _ in struct_fields(type(value)):
            yield from parts_of(getattr(value, name))
    elif isinstance(value, tuple):
        for item in value:
            yield from parts_of(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from parts_of(item)


class TestOtherObjects:
    def test_pods_of_one_workload_share_all_but_their_own_texts(self) -> None:
        sharing, first, second = Sharing(), pod(0), pod(1)
        sharing.share(first)
        sharing.share(second)
        assert second.metadata.labels is first.metadata.labels
        assert second.metadata.owner_references is first.metadata.owner_references
        assert second.spec.containers is first.spec.containers
        assert second.spec.tolerations is first.spec.tolerations
        assert second.status.conditions is first.status.conditions
        assert second.status.container_statuses[0].image_id is first.status.container_statuses[0].image_id
        for key in ("checksum/config", "prometheus.io/port"):
            assert second.metadata.annotations[key] is first.metadata.annotations[key]
        assert (first, second) == (pod(0), pod(1))

    def test_a_pod_adds_only_what_no_other_has(self) -> None:
        """So a field that pods take from their template costs nothing for each of them, whoever reads it."""
        sharing, first, second = Sharing(), pod(3), pod(5)
        sharing.share(first)
        sharing.share(second)
        known = {id(part) for part in parts_of(first)}
        own = [part for part in parts_of(second) if id(part) not in known]
        document = stored_pod(5, "1")
        metadata, status = document["metadata"], document["status"]
        assert sorted(part for part in own if isinstance(part, str)) == sorted(
            [
                metadata["name"],
                metadata["uid"],
                metadata["resourceVersion"],
                metadata["annotations"]["example.com/trace"],
                document["spec"]["nodeName"],
                status["podIP"],
                status["hostIP"],
                *(item["containerID"] for item in status["containerStatuses"]),
            ]
        )
        assert Counter(type(part).__name__ for part in own if not isinstance(part, str)) == {
            "Pod": 1, "ObjectMeta": 1, "PodSpec": 1, "PodStatus": 1, "ContainerStatus": 2, "tuple": 1, "dict": 1
        }  # fmt: skip

    def test_texts_and_times_are_shared_wherever_they_stand(self) -> None:
        sharing, first, second = Sharing(), pod(0), pod(200)
        sharing.share(first)
        sharing.share(second)
        assert second.spec.node_name is first.spec.node_name
        assert first.status.start_time is first.metadata.creation_timestamp is second.metadata.creation_timestamp

    def test_equal_json_of_different_types_stays_apart(self) -> None:
        document = {"texts": {"a": "b"}, "documents": {"a": "b"}, "raw": {"a": "b"}}
        named = {"volumes": [{"name": "a"}], "secrets": [{"name": "a"}], "named": {"a": {}}, "namedToo": {"a": {}}}
        data = encode({"parts": document | named})
        sharing = Sharing()
        for _ in range(3):
            thing = decode(data, Thing)
            sharing.share(thing)
            assert thing == decode(data, Thing)
            assert type(thing.parts.documents["a"]) is Raw
            assert type(thing.parts.secrets[0]) is LocalObjectReference
            assert type(thing.parts.named_too["a"]) is LocalObjectReference

    def test_raw_parts_do_not_keep_what_they_were_read_from(self) -> None:
        data = encode({"parts": {"raw": {"a": 1}, "documents": {"b": [1, 2]}}})
        before = sys.getrefcount(data)
        first, second = decode(data, Thing), decode(data, Thing)
        assert sys.getrefcount(data) > before
        sharing = Sharing()
        sharing.share(first)
        sharing.share(second)
        assert sys.getrefcount(data) == before
        assert second.parts.raw is first.parts.raw
        assert bytes(first.parts.raw) == b'{"a":1}'


class TestTheVersionBefore:
    def test_what_is_equal_is_taken_over(self) -> None:
        sharing, old = Sharing(), pod(0)
        sharing.share(old)
        new = pod(0, 2)
        sharing.share(new, old)
        assert new.spec.containers is old.spec.containers
        assert new.metadata.annotations is old.metadata.annotations
        assert new.metadata.uid is old.metadata.uid
        assert new.metadata.resource_version == "2"
        assert old == pod(0)

    def test_one_condition_changes_and_the_others_stay(self) -> None:
        sharing, old = Sharing(), pod(0)
        sharing.share(old)
        conditions = stored_pod(0, "2")["status"]["conditions"]
        conditions[3] = conditions[3] | {"status": "False", "reason": "Broken"}
        new = pod(0, 2, conditions=[*conditions, {"type": "More", "status": "True"}])
        sharing.share(new, old)
        kept = [one is two for one, two in zip(new.status.conditions, old.status.conditions, strict=False)]
        assert kept == [True, True, True, False, True, True]
        changed = new.status.conditions[3]
        assert (changed.status, changed.reason) == ("False", "Broken")
        assert changed.type is old.status.conditions[3].type
        assert new.status.conditions[6].status is old.status.conditions[0].status
        assert old.status.conditions[3].status == "True"

    def test_an_object_of_another_struct_is_no_version_before(self) -> None:
        sharing, thing = Sharing(), decode(b'{"parts":{"texts":{"a":"b"}}}', Thing)
        sharing.share(thing, pod(0))
        assert thing.parts.texts == {"a": "b"}


class TestTables:
    def test_what_is_asked_for_stays_and_the_rest_is_forgotten(self) -> None:
        table = Table(room=1600)
        table.put("often", "often")
        for number in range(10_000):
            table.put(f"{number:010d}", "")
            assert table.get("often") == "often"
            assert len(table) <= 2 * 1600 // 10
        assert table.get(f"{0:010d}") is None

    def test_a_large_value_pushes_nothing_out(self) -> None:
        table = Table(room=1600)
        table.put("small", "small")
        for number in range(100):
            table.put(f"{number:0200d}", "large")
        assert len(table) == 1

    def test_a_full_table_costs_copies_only(self) -> None:
        sharing = Sharing(room=2000)
        for number in range(200):
            made = pod(number)
            sharing.share(made)
            assert made == pod(number)


class Anything(PartialObject):
    part: dict[str, Any] = field(default_factory=dict)
    maybe: str | UnsetType = UNSET
    inner: tuple[str, ...] = ()


class TestWhatIsLeftAlone:
    """Where anything may stand, equal values may differ: 1 and true are equal, and JSON tells them apart."""

    def test_a_part_that_may_be_anything_is_what_came_last(self) -> None:
        sharing = Sharing()
        old = Anything(part={"x": 1}, inner=("a long enough text",))
        new = Anything(part={"x": True}, inner=("a long enough text",))
        sharing.share(old)
        sharing.share(new, old)
        assert encode(new.part) == b'{"x":true}'
        assert new.inner is old.inner

    def test_a_field_that_is_absent_now_is_absent(self) -> None:
        sharing = Sharing()
        new = Anything(part={})
        sharing.share(new, Anything(maybe="here"))
        assert new.maybe is UNSET


class TestStores:
    def test_an_object_that_cannot_be_shared_is_stored_and_told_of(self, monkeypatch: pytest.MonkeyPatch) -> None:
        told: list[str] = []
        sharing = Sharing()
        monkeypatch.setattr(Sharing, "share", lambda self, new, old=None: 1 / 0)
        store: Store[Pod] = Store(PODS, sharing=sharing, report=lambda what, error: told.append(what))
        store.event("ADDED", pod(2, 11))
        assert len(store) == 1
        assert len(told) == 1

    def test_a_list_an_event_and_an_answer_are_shared(self) -> None:
        store: Store[Pod] = Store(PODS, sharing=Sharing())
        store.replace(store.prepare([pod(0, 1), pod(1, 2)]), 10, prepared=True)
        store.event("ADDED", pod(2, 11))
        store.event("MODIFIED", pod(1, 12))
        store.written(pod(0, 13))
        first, *others = sorted(store.list(), key=lambda item: item.metadata.resource_version)
        assert [item.metadata.resource_version for item in (first, *others)] == ["11", "12", "13"]
        assert all(item.spec.containers is first.spec.containers for item in others)

    def test_the_stores_of_a_cache_share_with_each_other(self) -> None:
        cache = Cache(None, clock=RealClock())  # type: ignore[arg-type]
        pods, maps = cache.add(PODS), cache.add(CONFIG_MAPS)
        namespace = pod(0).metadata.namespace
        pods.event("ADDED", pod(0))
        one = config_map("a", 2)
        maps.event("ADDED", evolve(one, metadata=evolve(one.metadata, namespace=namespace)))
        assert maps.list()[0].metadata.namespace is pods.list()[0].metadata.namespace


def _some(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


_texts = _some("", "a", "b", "True", "a longer text, with spaces")
_maps = st.dictionaries(_some("a", "b", "c"), _texts, max_size=3)
_times = _some(None, "2030-01-01T00:00:00Z", "2030-01-01T00:00:01.5Z")
_amounts = st.dictionaries(_some("cpu", "memory"), _some("1", "2", 1, 2.5), max_size=2)
_containers = st.fixed_dictionaries(
    {"name": _texts},
    optional={
        "image": _texts,
        "env": st.lists(st.fixed_dictionaries({"name": _texts, "value": _texts}), max_size=2),
        "resources": st.fixed_dictionaries({}, optional={"limits": _amounts, "requests": _amounts}),
    },
)
_conditions = st.fixed_dictionaries({"type": _texts, "status": _texts}, optional={"lastTransitionTime": _times})
_pods = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {"name": _texts, "labels": _maps},
            optional={"annotations": _maps, "creationTimestamp": _times, "finalizers": st.lists(_texts, max_size=2)},
        ),
        "spec": st.fixed_dictionaries(
            {"containers": st.lists(_containers, max_size=3)},
            optional={
                "nodeName": _texts,
                "priority": _some(None, 0, 1),
                "volumes": st.lists(st.fixed_dictionaries({"name": _texts}), max_size=2),
                "affinity": _some({}, {"nodeAffinity": {}}),
            },
        ),
    },
    optional={
        "status": st.fixed_dictionaries(
            {},
            optional={
                "conditions": st.lists(_conditions, max_size=3),
                "containerStatuses": st.lists(_containers, max_size=2),
            },
        ),
    },
)


@given(st.lists(st.tuples(_pods, st.integers(0, 20)), max_size=8), _some(100, 2000, 1 << 20))
def test_objects_are_the_same_with_and_without_sharing(steps: list[tuple[Any, int]], room: int) -> None:
    sharing = Sharing(room)
    shared: list[Pod] = []
    for document, chosen in steps:
        made = decode(encode(document), Pod)
        sharing.share(made, shared[chosen] if chosen < len(shared) else None)
        shared.append(made)
    plain = [decode(encode(document), Pod) for document, _ in steps]
    assert shared == plain
    # Equal by type, too: a document with empty parts and one without them are read into the same.
    assert [decode(encode(item), Pod) for item in shared] == plain


def test_bytes_are_left_as_they_are() -> None:
    """A Secret has decoded values, which are worth no table."""
    secret = decode(b'{"metadata":{"name":"s"},"data":{"k":"aHVudGVyMg=="}}', Secret)
    Sharing().share(secret)
    assert secret.data == {"k": b"hunter2"}
