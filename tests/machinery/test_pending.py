"""What a snapshot knows of writes that have not ended, and what the loop remembers of a key."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kruise.api.meta import Key, ObjectMeta, PartialObject
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS
from kruise.machinery.codec import decode, encode
from kruise.machinery.key_state import KeyStates
from kruise.machinery.pending import CREATION, Pending, revision_of
from kruise.machinery.plan import Target, patch
from kruise.machinery.spec import View
from tests.support.clonesets import NOW

MARKS = st.dictionaries(
    st.tuples(st.sampled_from(["", "a", "b"]), st.sampled_from(["x", "y", "z"])),
    st.sampled_from(["", CREATION, "web-1", "web-2"]),
)


@given(MARKS, st.integers(0, 9))
def test_what_is_pending_is_known_by_namespace_and_name(marks: dict[tuple[str, str], str], capacity: int) -> None:
    targets = {Target(PODS, *place): mark for place, mark in marks.items()}
    others = {Target(NODES, "", "x"): "web-9"}
    view = View(None, now=NOW, seed=0, gates={}, server_version=None, pending=targets | others, capacity=capacity)  # type: ignore[arg-type]
    pending = view.pending(PODS)
    for namespace in ("", "a", "b"):
        for name in ("x", "y", "z"):
            mark = marks.get((namespace, name))
            assert pending.mark_of(PartialObject(metadata=ObjectMeta(namespace=namespace, name=name))) == mark
            assert pending.has(namespace, name) == (mark is not None)
            assert pending.creates(namespace, name) == (mark == CREATION)
            assert revision_of(mark) == (mark if mark in ("web-1", "web-2") else "")
    assert pending.room_to_move == capacity - sum(mark != "" for mark in marks.values())
    assert pending.room_to_touch == capacity - sum(mark == "" for mark in marks.values())
    assert decode(encode(pending), Pending) == pending  # a dump holds it


def test_the_first_failure_of_the_phases_asked_for() -> None:
    pending = Pending(failures={"refresh": "gone", "update": "refused"})
    assert pending.failure("update", "refresh") == "refused"
    assert pending.failure("scale", "refresh") == "gone"
    assert pending.failure("scale") == ""


def test_a_key_with_nothing_to_remember_has_no_state() -> None:
    states, key = KeyStates(), Key("demo", "web")
    chain = (patch(Target(PODS, "demo", "web-a"), {}, uid="u", reason="r"),)
    states.of(key).add_pending(chain, "web-1")
    states.of(key).failures["update"] = "refused"
    states.tidy(key)
    state = states.get(key)
    assert state is not None
    assert state.take_failures() == {"update": "refused"}
    assert state.take_failures() == {}
    state.stale = 2
    state.forget()
    states.tidy(key)
    assert states.get(key) is state, "the object is gone, but a write to it has not ended"
    state.remove_pending(chain)
    states.tidy(key)
    assert states.get(key) is None
    assert len(states) == 0
