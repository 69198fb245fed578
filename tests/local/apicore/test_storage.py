"""The storage: one counter, consistent old states, compaction."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.local.apicore.storage import ADDED, DELETED, MODIFIED, CompactedError, Having, Key, MemoryStorage
from tests.support.examples import EXAMPLES

Writes = list[tuple[str, str, str | None]]


def obj(value: Any = 0) -> dict[str, Any]:
    return {"metadata": {"name": "x"}, "value": value}


def test_one_counter_for_all_resources() -> None:
    storage = MemoryStorage()
    versions = [
        storage.put("pods", ("a", "x"), obj()).version,
        storage.put("nodes", ("", "x"), obj()).version,
        storage.put("pods", ("a", "x"), obj(1)).version,
        storage.delete("pods", ("a", "x")).version,
    ]
    assert versions == [1, 2, 3, 4]
    assert storage.version == 4


def test_events_know_before_and_after() -> None:
    """A deletion carries the last state with the version of the deletion."""
    storage = MemoryStorage()
    first = storage.put("pods", ("a", "x"), obj(1))
    second = storage.put("pods", ("a", "x"), obj(2))
    third = storage.delete("pods", ("a", "x"))
    assert [event.type for event in (first, second, third)] == [ADDED, MODIFIED, DELETED]
    assert second.previous is first.object
    assert third.previous is second.object
    assert third.object == {"metadata": {"name": "x", "resourceVersion": "3"}, "value": 2}
    assert storage.since("pods", 1) == [second, third]


def test_what_is_put_in_is_not_changed() -> None:
    storage = MemoryStorage()
    given_object = obj({"deep": 1})
    stored = storage.put("pods", ("a", "x"), given_object).object
    assert "resourceVersion" not in given_object["metadata"]
    assert stored["value"] is given_object["value"], "unchanged parts are shared"


def test_scan_is_in_path_order_and_by_namespace() -> None:
    storage = MemoryStorage()
    keys = [("b", "x"), ("a", "z"), ("a-b", "y"), ("a", "b"), ("a0", "v")]
    for key in keys:
        storage.put("pods", key, obj())
    every = [key for key, _ in storage.scan("pods", "", "", storage.version)]
    assert every == [("a-b", "y"), ("a", "b"), ("a", "z"), ("a0", "v"), ("b", "x")], "a dash sorts before a slash"
    assert [key for key, _ in storage.scan("pods", "a", "", storage.version)] == [("a", "b"), ("a", "z")]
    assert [key for key, _ in storage.scan("pods", "", "a/c", storage.version)] == [("a", "z"), ("a0", "v"), ("b", "x")]
    assert list(storage.scan("pods", "none", "", storage.version)) == []
    assert list(storage.scan("nodes", "", "", storage.version)) == []


_WRITES = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.sampled_from([None, "1", "2", ""])))


@settings(max_examples=100)
@given(before=_WRITES, after=_WRITES)
def test_those_with_a_value_are_found_without_looking_at_all(before: Writes, after: Writes) -> None:
    storage, read = MemoryStorage(), lambda obj: obj["value"]

    def write(writes: Writes) -> None:
        for namespace, name, value in writes:
            if value is not None:
                storage.put("pods", (namespace, name), obj(value))
            elif storage.get("pods", (namespace, name)) is not None:
                storage.delete("pods", (namespace, name))

    def check(version: int) -> None:
        for value, namespace, start in itertools.product(["1", "2", "", "none"], ["", "a"], ["", "a/y"]):
            every = storage.scan("pods", namespace, start, version)
            having = Having("value", read, value)
            found = list(storage.scan("pods", namespace, start, version, having=having))
            wanted = [(key, one) for key, one in every if read(one) == value]
            assert [(key, one) for key, one in found if read(one) == value] == wanted
            assert version < storage.version or found == wanted, "of the newest state there are no others"

    write(before)
    seen = storage.version
    check(seen)
    write(after)
    check(seen)
    check(storage.version)


def test_history_is_bounded_per_resource() -> None:
    storage = MemoryStorage(history=3)
    storage.put("nodes", ("", "n"), obj())
    for value in range(5):
        storage.put("pods", ("a", "x"), obj(value))
    assert len(storage.since("pods", 3)) == 3
    with pytest.raises(CompactedError) as refused:
        storage.since("pods", 2)
    assert (refused.value.asked, refused.value.oldest) == (2, 3)
    assert len(storage.since("nodes", 0)) == 1, "a quiet resource keeps its history"


def test_compaction_holds_for_all_resources_also_new_ones() -> None:
    storage = MemoryStorage()
    for value in range(4):
        storage.put("pods", ("a", "x"), obj(value))
    storage.compact(3)
    for resource in ("pods", "nodes"):
        with pytest.raises(CompactedError):
            storage.since(resource, 2)
    assert [event.version for event in storage.since("pods", 3)] == [4]
    with pytest.raises(CompactedError):
        list(storage.scan("pods", "", "", 2))
    storage.compact(99)
    assert storage.since("pods", 4) == [], "only what has happened can be compacted"


def test_what_is_trimmed_is_missed_only_by_those_who_have_not_seen_it() -> None:
    storage = MemoryStorage()
    storage.put("nodes", ("", "n"), obj())
    for value in range(4):
        storage.put("pods", ("a", "x"), obj(value))
    storage.trim(3)
    assert [event.version for event in storage.since("pods", 3)] == [4, 5]
    assert storage.since("nodes", 1) == [], "nothing has happened since"
    for resource, version in (("pods", 2), ("nodes", 0)):
        with pytest.raises(CompactedError):
            storage.since(resource, version)
    with pytest.raises(CompactedError):
        list(storage.scan("pods", "", "", 2))


def test_subscribers_are_woken_until_they_leave() -> None:
    storage = MemoryStorage()
    woken: list[str] = []
    leave = storage.subscribe("pods", lambda: woken.append("pods"))
    storage.subscribe("nodes", lambda: woken.append("nodes"))
    storage.put("pods", ("a", "x"), obj())
    leave()
    leave()
    storage.put("pods", ("a", "x"), obj(1))
    assert woken == ["pods"]


CHANGES = st.lists(
    st.tuples(st.sampled_from(["put", "delete"]), st.sampled_from("ab"), st.sampled_from("xyz"), st.integers(0, 3)),
    max_size=30,
)


@settings(max_examples=50 * EXAMPLES, deadline=None)
@given(CHANGES, st.integers(0, 30))
def test_every_old_state_can_be_read_again(changes: list[tuple[str, str, str, int]], compacted: int) -> None:
    """The state at each version that is kept is the state that there was."""
    storage = MemoryStorage()
    state: dict[Key, int] = {}
    states = [dict(state)]
    for action, namespace, name, value in changes:
        key = (namespace, name)
        if action == "put":
            storage.put("pods", key, obj(value))
            state[key] = value
        elif key in state:
            storage.delete("pods", key)
            del state[key]
        else:
            continue
        states.append(dict(state))
    storage.compact(compacted)
    for version, expected in enumerate(states):
        if version < min(compacted, storage.version):
            with pytest.raises(CompactedError):
                list(storage.scan("pods", "", "", version))
            continue
        found = {key: item["value"] for key, item in storage.scan("pods", "", "", version)}
        assert found == expected
        for event in storage.since("pods", version):
            if event.type == DELETED:
                del found[event.key]
            else:
                found[event.key] = event.object["value"]
        assert found == state
