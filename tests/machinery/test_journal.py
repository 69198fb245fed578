"""The decision journal: records, digests, dumps and replay."""

from __future__ import annotations

import dataclasses
import gc
import weakref
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.api.meta import Key, ObjectMeta
from kruise.api.native.pod import PODS, Pod
from kruise.machinery.client.requests import PatchType
from kruise.machinery.codec import Raw, Struct, canonical, decode, encode, evolve
from kruise.machinery.digest import digest, plan_to_data
from kruise.machinery.journal import SHOWN, Journal, ReplayError, replay
from kruise.machinery.plan import (
    Conclusion,
    EventNote,
    Held,
    Outcome,
    Plan,
    Result,
    Target,
    Wake,
    create,
    delete,
    patch,
    single,
)
from kruise.workloads.shared.causes import PARTITION
from tests.support.examples import EXAMPLES

KEY = Key("ns", "web")
NOW = datetime(2030, 1, 1, tzinfo=UTC)


class Seen(Struct):
    pods: tuple[Pod, ...] = ()
    now: datetime = NOW
    seed: int = 0
    limits: dict[str, int] = {}  # noqa: RUF012 - msgspec copies it
    template: Raw = Raw(b"{}")
    ratio: float = 0.5


def pod(name: str, version: int = 1, **labels: str) -> Pod:
    metadata = ObjectMeta(name=name, namespace="ns", uid=f"uid-{name}", resource_version=str(version), labels=labels)
    return Pod(metadata=metadata)


class Memo(Struct):
    limits: dict[str, int]
    now: datetime
    order: tuple[str, ...]


def decide(seen: Seen) -> Plan:
    """Uses everything, the order of mappings included."""
    targets = [Target(PODS, "ns", one.metadata.name) for one in seen.pods]
    removals = [
        delete(target, uid=one.metadata.uid, reason="surplus") for target, one in zip(targets, seen.pods, strict=True)
    ]
    change = [{"op": "test", "path": "/a", "value": list(seen.limits)}]
    body = {"metadata": {"name": f"web-{seen.seed}", "namespace": "ns"}, "spec": seen.template}
    return Plan(
        phases=(
            single("delete", *removals),
            single("make", create(PODS, body, reason="missing", owner_uid="o1"), slow_start=True),
            single("patch", *(patch(t, change, uid="u", reason="x", patch_type=PatchType.JSON) for t in targets[:1])),
        ),
        held=tuple(Held(target=t, causes=(PARTITION.cause("kept"),)) for t in targets),
        wakes=(Wake(after=seen.ratio, reason="later"),),
        memo=Memo(limits=seen.limits, now=seen.now, order=tuple(seen.limits)),
    )


@dataclasses.dataclass(frozen=True)
class Toy:
    name: str = "toy"
    snapshot_type: Any = Seen

    @staticmethod
    def decide(seen: Seen) -> Plan:
        return decide(seen)


def note(journal: Journal, seen: Seen | None = None, *, key: Key = KEY, number: int = 0, **more: Any) -> None:
    plan = decide(seen) if seen is not None else None
    journal.record(
        controller=more.pop("controller", "toy"),
        key=key,
        reconcile_id=f"id-{number}",
        time=NOW + timedelta(seconds=number),
        duration=0.25,
        snapshot=seen,
        plan=plan,
        **more,
    )


def test_entries_are_builtins_newest_first_and_can_be_narrowed() -> None:
    journal = Journal()
    seen = Seen(pods=(pod("a"), pod("b")))
    plan = decide(seen)
    actions = list(plan.actions())
    outcomes = (
        Outcome(action=actions[0], result=Result.DONE),
        Outcome(action=actions[1], result=Result.FAILED, error="no", error_code=403, error_reason="Forbidden"),
        *(Outcome(action=action, result=Result.SKIPPED) for action in actions[2:]),
    )
    conclusion = Conclusion(events=(EventNote(reason="FailedDelete", message="no"),), retry="delete failed")
    note(journal, seen, number=1, outcomes=outcomes, conclusion=conclusion)
    note(journal, seen, key=Key("ns", "other"), number=2)
    note(journal, None, controller="second", number=3, error="ValueError: x")
    entries = journal.entries()
    assert [entry["reconcile_id"] for entry in entries] == ["id-3", "id-2", "id-1"]
    assert journal.controllers() == ["second", "toy"]
    encode(entries)  # JSON
    (first,) = journal.entries("toy", KEY)
    assert first["key"] == {"namespace": "ns", "name": "web"}
    assert first["digest"] == digest(seen)
    assert first["plan"]["counts"] == {"delete pods": 2, "create pods": 1, "patch pods": 1}
    assert first["plan"]["actions"][0] == {"phase": "delete", "action": "delete pods ns/a", "reason": "surplus"}
    assert first["plan"]["heldBy"] == {"partition": 2}
    assert first["outcomes"] == {"done": 1, "failed": 1, "skipped": 2}
    assert first["troubles"] == [{"action": "delete pods ns/b", "result": "failed", "error": "no"}]
    assert first["conclusion"]["retry"] == "delete failed"
    assert first["time"] == "2030-01-01T00:00:01Z"
    assert entries[0]["error"] == "ValueError: x"
    assert journal.entries(limit=1) == entries[:1]
    assert journal.entries("unknown") == []


def test_the_ring_is_bounded_and_so_is_each_record() -> None:
    journal = Journal(capacity=10, snapshots=3)
    many = Seen(pods=tuple(pod(f"p{i}") for i in range(200)))
    for number in range(50):
        note(journal, many, key=Key("ns", f"k{number}"), number=number)
    entries = journal.entries(limit=1000)
    assert len(entries) == 10
    assert len(entries[0]["plan"]["actions"]) == SHOWN
    assert len(entries[0]["plan"]["held"]) == SHOWN
    assert entries[0]["plan"]["counts"]["delete pods"] == 200
    assert [key.name for _, key in journal.dumps()] == ["k47", "k48", "k49"]


def test_the_journal_keeps_only_the_latest_snapshot_of_a_key_alive() -> None:
    @dataclasses.dataclass(frozen=True)
    class Tracked:
        pods: tuple[Pod, ...] = ()

    journal = Journal()
    references = []
    for number in range(5):
        seen = Tracked(pods=(pod("a", number + 1),))
        references.append(weakref.ref(seen))
        journal.record(controller="toy", key=KEY, reconcile_id="x", time=NOW, duration=0, snapshot=seen, plan=Plan())
        del seen
    gc.collect()
    assert [reference() is not None for reference in references] == [False, False, False, False, True]
    journal.drop("toy", KEY)
    gc.collect()
    assert references[-1]() is None


def test_a_digest_changes_with_every_part_of_a_snapshot() -> None:
    base = Seen(pods=(pod("a"), pod("b")), limits={"x": 1})
    assert digest(base) == digest(Seen(pods=(pod("a"), pod("b")), limits={"x": 1}))
    others = [
        evolve(base, pods=(pod("a"), pod("b", 2))),
        evolve(base, pods=(pod("b"), pod("a"))),
        evolve(base, pods=(pod("a"),)),
        evolve(base, pods=()),
        evolve(base, seed=1),
        evolve(base, now=NOW + timedelta(microseconds=1)),
        evolve(base, limits={"x": 2}),
        evolve(base, limits={"y": 1}),
        evolve(base, template=Raw(b'{"a":1}')),
        evolve(base, ratio=0.25),
        # Objects that no server has seen are taken whole.
        evolve(base, pods=(Pod(metadata=ObjectMeta(name="a")),)),
        evolve(base, pods=(Pod(metadata=ObjectMeta(name="b")),)),
    ]
    digests = {digest(one) for one in [base, *others]}
    assert len(digests) == len(others) + 1


def test_digests_of_dataclasses_sets_and_plain_values() -> None:
    @dataclasses.dataclass(frozen=True)
    class Inner:
        names: frozenset[str] = frozenset()
        key: Key = KEY

    first, second = Inner(frozenset({"a", "b", "c"})), Inner(frozenset({"c", "b", "a"}))
    assert digest(first) == digest(second)
    assert digest(first) != digest(Inner(frozenset({"a", "b"})))
    assert digest((first, None, True, "x")) != digest((first, None, False, "x"))
    assert digest(((1, 2), ())) != digest(((1,), (2,)))


def test_dump_and_replay_decide_the_same_again() -> None:
    journal = Journal()
    seen = Seen(pods=(pod("b", x="1"), pod("a")), limits={"z": 1, "a": 2}, template=Raw(b'{ "b": 1,\n"a": 2}'), seed=7)
    note(journal, seen)
    dump = journal.dump("toy", KEY)
    document = decode(dump, dict[str, Any])
    assert (document["controller"], document["namespace"], document["name"]) == ("toy", "ns", "web")
    assert document["version"]
    again = replay(dump, [Toy()])
    assert again.plan_equal
    assert again.digest_equal
    assert again.snapshot == seen
    assert canonical(again.plan) == canonical(plan_to_data(decide(seen)))


def test_replay_shows_that_the_code_decides_otherwise_today() -> None:
    @dataclasses.dataclass(frozen=True)
    class Changed(Toy):
        @staticmethod
        def decide(seen: Seen) -> Plan:
            return dataclasses.replace(decide(seen), wakes=())

    journal = Journal()
    note(journal, Seen())
    again = replay(journal.dump("toy", KEY), [Changed()])
    assert not again.plan_equal
    assert again.plan["wakes"] == []
    assert again.recorded["wakes"] == [{"after": 0.5, "reason": "later"}]


def test_what_cannot_be_dumped_or_replayed_is_said_plainly() -> None:
    journal = Journal()
    with pytest.raises(LookupError, match="no snapshot of ns/web"):
        journal.dump("toy", KEY)
    note(journal, Seen())
    dump = journal.dump("toy", KEY)
    with pytest.raises(ReplayError, match="known here: none"):
        replay(dump, [])
    for bad in (b"", b"{}", b"not json", dump.replace(b'"snapshot":{', b'"snapshot":{"pods":7,')):
        with pytest.raises(ReplayError, match="does not fit"):
            replay(bad, [Toy()])


TEXT = st.text(max_size=8)
PODS_SEEN = st.lists(
    st.builds(
        lambda name, version, labels: evolve(pod(name), metadata=evolve(pod(name, version).metadata, labels=labels)),
        TEXT,
        st.integers(1, 99),
        st.dictionaries(TEXT, TEXT, max_size=2),
    ),
    max_size=4,
).map(tuple)


@settings(max_examples=50 * EXAMPLES, deadline=None)
@given(
    pods=PODS_SEEN,
    now=st.datetimes(timezones=st.just(UTC)),
    seed=st.integers(0, 2**53 - 1),
    limits=st.dictionaries(TEXT, st.integers(-(2**40), 2**40), max_size=4),
    ratio=st.floats(allow_nan=False, allow_infinity=False),
)
def test_any_decision_is_replayed_bit_for_bit(
    pods: tuple[Pod, ...], now: datetime, seed: int, limits: dict[str, int], ratio: float
) -> None:
    seen = Seen(pods=pods, now=now, seed=seed, limits=limits, ratio=ratio, template=Raw(encode(limits)))
    journal = Journal()
    note(journal, seen)
    again = replay(journal.dump("toy", KEY), [Toy()])
    assert again.plan_equal
    assert again.digest_equal
    assert again.snapshot == seen
    assert list(again.snapshot.limits) == list(limits)


def test_a_snapshot_that_could_not_be_decided_about_is_kept_with_the_error() -> None:
    """It is the one that a bug report needs most."""

    @dataclasses.dataclass(frozen=True)
    class Broken(Toy):
        message: str = "no such thing"

        def decide(self, seen: Seen) -> Plan:  # type: ignore[override]
            raise ValueError(self.message)

    journal = Journal()
    error = "ValueError: no such thing"
    journal.record(
        controller="toy", key=KEY, reconcile_id="x", time=NOW, duration=0, snapshot=Seen(seed=3), error=error
    )
    dump = journal.dump("toy", KEY)
    assert decode(dump, dict[str, Any])["error"] == error
    same = replay(dump, [Broken()])
    assert (same.plan_equal, same.error, same.recorded_error) == (True, error, error)
    assert (same.key, same.reconcile_id, same.snapshot.seed) == (KEY, "x", 3)
    other = replay(dump, [Broken(message="another thing")])
    assert (other.plan_equal, other.error) == (False, "ValueError: another thing")
    mended = replay(dump, [Toy()])
    assert (mended.plan_equal, mended.error) == (False, "")


def test_an_error_after_the_decision_leaves_the_plan() -> None:
    journal = Journal()
    note(journal, Seen(), error="OSError: later")
    assert "error" not in decode(journal.dump("toy", KEY), dict[str, Any])
    assert replay(journal.dump("toy", KEY), [Toy()]).plan_equal
