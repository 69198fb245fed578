"""Events: counted when repeated, combined when similar, cut off when too many, and never in the way."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.api.native.events import EVENTS, ObjectReference
from kruise.local.apicore.core import ApiCore
from kruise.local.inprocess import InProcessTransport
from kruise.local.kinds import native_registry
from kruise.machinery import events
from kruise.machinery.client.client import Client
from kruise.machinery.client.requests import Verb
from kruise.machinery.clock import VIRTUAL_EPOCH, VirtualClock, run_virtual
from kruise.machinery.events import EventCorrelator, EventRecorder
from tests.support.faults import Delay, Rule
from tests.support.inprocess import InProcess

POD = ObjectReference(api_version="v1", kind="Pod", namespace="default", name="web-0", uid="u0", resource_version="7")
NOW = VIRTUAL_EPOCH


def test_an_event_looks_as_client_go_writes_it() -> None:
    write = EventCorrelator("cloneset-controller").correlate(POD, "Normal", "SuccessfulCreate", "created", NOW)
    assert write is not None
    assert write.body == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"web-0.{int(NOW.timestamp()) * 10**9:x}", "namespace": "default"},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "default",
            "name": "web-0",
            "uid": "u0",
            "resourceVersion": "7",
        },
        "type": "Normal",
        "reason": "SuccessfulCreate",
        "message": "created",
        "source": {"component": "cloneset-controller"},
        "reportingComponent": "cloneset-controller",
        "reportingInstance": "",
        "firstTimestamp": "2030-01-01T00:00:00Z",
        "lastTimestamp": "2030-01-01T00:00:00Z",
        "count": 1,
    }


def test_events_about_cluster_scoped_objects_go_to_the_default_namespace() -> None:
    node = ObjectReference(api_version="v1", kind="Node", name="n1", uid="u1")
    write = EventCorrelator("c").correlate(node, "Normal", "R", "m", NOW)
    assert write is not None
    assert write.namespace == "default"
    assert "namespace" not in write.body["involvedObject"]


def test_a_repeated_event_is_counted_under_its_first_name() -> None:
    correlator = EventCorrelator("c")
    first = correlator.correlate(POD, "Normal", "R", "m", NOW)
    later = correlator.correlate(POD, "Normal", "R", "m", NOW + timedelta(minutes=5))
    assert first is not None
    assert later is not None
    assert (later.name, later.count) == (first.name, 2)
    assert later.body["firstTimestamp"] == "2030-01-01T00:00:00Z"
    assert later.body["lastTimestamp"] == "2030-01-01T00:05:00Z"


def test_a_newer_version_of_the_object_is_the_same_object() -> None:
    correlator = EventCorrelator("c")
    correlator.correlate(POD, "Normal", "R", "m", NOW)
    newer = ObjectReference(
        api_version="v1", kind="Pod", namespace="default", name="web-0", uid="u0", resource_version="8"
    )
    again = correlator.correlate(newer, "Normal", "R", "m", NOW)
    assert again is not None
    assert again.count == 2


def test_the_tenth_different_message_is_combined_with_all_further_ones() -> None:
    correlator = EventCorrelator("c")
    writes = [correlator.correlate(POD, "Warning", "Failed", f"try {number}", NOW) for number in range(12)]
    messages = [write.body["message"] for write in writes if write is not None]
    assert messages[:9] == [f"try {number}" for number in range(9)]
    assert messages[9:] == [f"(combined from similar events): try {number}" for number in (9, 10, 11)]
    assert [write.count for write in writes[9:] if write is not None] == [1, 2, 3]


def test_after_ten_quiet_minutes_messages_stand_for_themselves_again() -> None:
    correlator = EventCorrelator("c")
    for number in range(12):
        correlator.correlate(POD, "Warning", "Failed", f"try {number}", NOW)
    later = correlator.correlate(POD, "Warning", "Failed", "fresh", NOW + timedelta(minutes=11))
    assert later is not None
    assert later.body["message"] == "fresh"


def test_an_object_may_say_a_thing_25_times_and_then_once_in_five_minutes() -> None:
    correlator = EventCorrelator("c")
    said = [correlator.correlate(POD, "Normal", "R", "m", NOW) for _ in range(30)]
    assert [write is not None for write in said] == [True] * 25 + [False] * 5
    assert correlator.correlate(POD, "Normal", "R", "late", NOW + timedelta(seconds=301)) is not None
    assert correlator.correlate(POD, "Normal", "R", "too late", NOW + timedelta(seconds=302)) is None
    other = ObjectReference(api_version="v1", kind="Pod", namespace="default", name="web-1", uid="u1")
    assert correlator.correlate(other, "Normal", "R", "m", NOW) is not None


@pytest.mark.parametrize(("minutes", "left"), [(21, 4), (60, 12), (124, 24), (125, 25), (180, 25)])
def test_a_pause_gives_back_what_its_time_is_worth(minutes: int, left: int) -> None:
    """However many others speak meanwhile: an emptied bucket takes two hours to be full."""
    correlator = EventCorrelator("c")
    for _ in range(events.BURST):
        correlator.correlate(POD, "Normal", "R", "m", NOW)
    for minute in range(minutes):
        other = ObjectReference(kind="Pod", name=f"p{minute}", uid=str(minute))
        correlator.correlate(other, "Normal", "R", "m", NOW + timedelta(minutes=minute))
    later = NOW + timedelta(minutes=minutes)
    said = [correlator.correlate(POD, "Normal", "R", "m", later) for _ in range(30)]
    assert [write is not None for write in said] == [True] * left + [False] * (30 - left)


def test_a_long_message_is_cut_to_what_the_server_takes() -> None:
    write = EventCorrelator("c").correlate(POD, "Normal", "R", "x" * 5000, NOW)
    assert write is not None
    assert len(write.body["message"]) == 1024
    assert write.body["message"].endswith("...")


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 40), st.integers(0, 900)), max_size=80))
def test_names_are_unique_and_counts_only_grow(said: list[tuple[str, int, int]]) -> None:
    correlator = EventCorrelator("c")
    now = NOW
    counts: dict[str, int] = {}
    for reason, message, pause in said:
        now += timedelta(seconds=pause)
        write = correlator.correlate(POD, "Normal", reason, f"m{message}", now)
        if write is not None:
            assert write.count > counts.get(write.name, 0)
            counts[write.name] = write.count


def test_memory_is_bounded() -> None:
    correlator = EventCorrelator("c")
    for number in range(events.MAX_REMEMBERED + 100):
        reference = ObjectReference(kind="Pod", name=f"p{number}", uid=str(number))
        correlator.correlate(reference, "Normal", "R", "m", NOW)
    assert len(correlator._written) == len(correlator._buckets) == events.MAX_REMEMBERED


def test_nothing_is_remembered_of_objects_that_have_been_silent_for_long() -> None:
    correlator = EventCorrelator("c")
    first = correlator.correlate(POD, "Normal", "R", "m", NOW)
    for minute in range(60):
        reference = ObjectReference(kind="Pod", name=f"p{minute}", uid=str(minute))
        correlator.correlate(reference, "Normal", "R", "m", NOW + timedelta(minutes=minute))
    assert len(correlator._written) == len(correlator._similar) == 21
    assert len(correlator._buckets) == 6, "the others are full again"
    again = correlator.correlate(POD, "Normal", "R", "m", NOW + timedelta(minutes=60))
    assert first is not None
    assert again is not None
    assert (again.count, again.name == first.name) == (1, False)


def test_what_is_said_now_and_then_is_remembered_however_long_it_goes_on() -> None:
    correlator = EventCorrelator("c")
    writes = [correlator.correlate(POD, "Warning", "R", "m", NOW + timedelta(minutes=19 * turn)) for turn in range(9)]
    assert [write.count for write in writes if write is not None] == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert len({write.name for write in writes if write is not None}) == 1


def test_the_recorder_writes_counts_and_recreates() -> None:
    async def main() -> None:
        clock = VirtualClock(asyncio.get_running_loop())
        client = Client(InProcessTransport(ApiCore(native_registry(), clock=clock)), clock=clock)
        recorder = EventRecorder(client, component="toy", clock=clock)
        running = asyncio.create_task(recorder.run())
        recorder.record(POD, "Normal", "R", "m")
        recorder.record(POD, "Normal", "R", "m")
        await recorder.flush()
        [event] = (await client.list(EVENTS, "default")).items
        assert (event.count, event.reason, event.source.component) == (2, "R", "toy")
        await client.delete(EVENTS, event.metadata.name, "default")  # as the server does after an hour
        recorder.record(POD, "Normal", "R", "m")
        await recorder.flush()
        [event] = (await client.list(EVENTS, "default")).items
        assert event.count == 3
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    run_virtual(main())


def test_recording_never_blocks_and_drops_when_full() -> None:
    async def main() -> int:
        clock = VirtualClock(asyncio.get_running_loop())
        client = Client(InProcessTransport(ApiCore(native_registry(), clock=clock)), clock=clock)
        recorder = EventRecorder(client, component="toy", clock=clock, capacity=10)
        for number in range(20):
            reference = ObjectReference(kind="Pod", name=f"p{number}", namespace="default", uid=str(number))
            recorder.record(reference, "Normal", "R", "m")
        return recorder.dropped

    assert run_virtual(main()) == 10


def test_writers_of_one_event_that_overtake_each_other_lose_nothing() -> None:
    """The count comes before the event itself is there, and the other way round."""

    async def main() -> None:
        env = InProcess([Rule(Delay(1.0), verbs={Verb.CREATE}, calls={1})])
        recorder = EventRecorder(env.client, component="c", clock=env.clock, writers=2)
        writing = asyncio.create_task(recorder.run())
        for _ in range(2):
            recorder.record(POD, "Normal", "Reason", "said twice")
        await recorder.flush()
        [event] = (await env.direct.list(EVENTS, "default")).items
        assert (event.count, recorder.dropped) == (2, 0)
        writing.cancel()

    run_virtual(main())


def test_a_reason_that_floods_does_not_drown_the_others() -> None:
    correlator = EventCorrelator("c")
    floods = [correlator.correlate(POD, "Warning", "ScaleUpLimited", "limit: 0", NOW) for _ in range(40)]
    assert sum(write is not None for write in floods) == events.BURST
    assert correlator.correlate(POD, "Normal", "SuccessfulUpdatePodInPlace", "updated", NOW) is not None
