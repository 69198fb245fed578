"""The store under every interleaving of answers, events, lists and restarted watches.

Small histories are explored without a gap: every schedule is walked, and where two schedules lead to the same state,
what follows is walked once. Larger ones are drawn at random. `KRUISE_EXAMPLES` multiplies the random examples. Run
with `-s` to see how many interleavings that were, and how long they took.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import os
import time
from collections import deque
from collections.abc import Callable, Iterable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kruise.api.native.config import ConfigMap
from kruise.machinery.store import Store
from tests.support.store_model import World, Write

EXAMPLES = int(os.environ.get("KRUISE_EXAMPLES", "1"))


@dataclasses.dataclass
class Walk:
    states: int
    transitions: int
    schedules: int


def explore(make: Callable[[], World]) -> Walk:
    """Make every step from every state that can be reached, and count the complete schedules on the way."""
    first = make()
    start = first.signature()
    following: dict[object, list[object]] = {}
    complete: dict[object, bool] = {}
    known = {start}
    queue: deque[tuple[object, World, tuple[str, ...]]] = deque([(start, first, ())])
    while queue:
        here, world, path = queue.popleft()
        complete[here] = world.complete
        following[here] = []
        for step in world.steps():
            after = world.fork()
            try:
                after.do(step)
            except AssertionError as error:
                raise AssertionError(f"after {[*path, step]}: {error}") from error
            reached = after.signature()
            following[here].append(reached)
            if reached not in known:
                known.add(reached)
                queue.append((reached, after, (*path, step)))
        assert following[here] or complete[here], f"stuck after {path}"

    counts: dict[object, int] = {}
    stack = [start]
    while stack:
        here = stack[-1]
        missing = [state for state in following[here] if state not in counts]
        if missing:
            stack.extend(missing)
        else:
            counts[here] = complete[here] + sum(counts[state] for state in following[here])
            stack.pop()
    return Walk(len(known), sum(map(len, following.values())), counts[start])


def enumerate_plainly(make: Callable[[], World]) -> int:
    """The same without merging states or copying worlds: every schedule is walked from its start."""
    schedules = 0
    stack: list[tuple[str, ...]] = [()]
    while stack:
        path = stack.pop()
        world = make()
        for step in path:
            world.do(step)
        schedules += world.complete
        stack.extend((*path, step) for step in world.steps())
    return schedules


def own(verb: str, name: str = "a", answer: str = "object") -> Write:
    return Write(verb, name, answer)


SCRIPTS = {
    "create and update": (own("create"), own("update"), Write("update")),
    "others update between our writes": (Write("create"), own("update"), Write("update"), own("update")),
    "delete at once, answered with the object": (own("create"), own("update"), own("delete")),
    "delete at once, answered with the uid": (own("create"), Write("update"), own("delete", answer="status")),
    "graceful delete": (own("create"), own("terminate"), own("update"), own("finalize")),
    "graceful delete, ended by others": (Write("create"), own("terminate", answer="status"), Write("finalize")),
    "recreated by us": (own("create"), own("delete"), own("create"), own("update")),
    "recreated by others": (own("create"), Write("delete"), Write("create"), own("update"), Write("delete")),
    "deleted by others before our answer": (Write("create"), own("update"), Write("delete"), Write("other")),
    "two objects": (own("create"), own("create", "b"), own("update"), own("delete", "b")),
    "two objects, one of others": (Write("create", "b"), own("create"), Write("delete", "b"), own("delete")),
}
BUDGETS: dict[str, dict[str, int]] = {
    "lists": {"lists": 2},
    "bookmarks and cuts": {"lists": 1, "bookmarks": 1, "cuts": 1},
    "repeated events": {"lists": 1, "repeats": 1},
    "restarts": {"lists": 0, "restarts": 1},
}
TOTAL = Walk(0, 0, 0)
SPENT: list[float] = []


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("script", SCRIPTS)
def test_every_interleaving_of_a_small_history(
    script: str, budget: str, record_property: Callable[[str, object], None]
) -> None:
    """All promises hold after each step of each schedule, and each schedule ends with the server's state."""
    begun = time.perf_counter()
    walk = explore(lambda: World(SCRIPTS[script], **BUDGETS[budget]))
    seconds = time.perf_counter() - begun
    record_property("interleavings", walk.schedules)
    record_property("transitions", walk.transitions)
    record_property("seconds", round(seconds, 2))
    TOTAL.states += walk.states
    TOTAL.transitions += walk.transitions
    TOTAL.schedules += walk.schedules
    SPENT.append(seconds)
    print(
        f"\n{script}, {budget}: {walk.schedules:,} interleavings, {walk.transitions:,} distinct steps, {seconds:.2f} s"
    )
    print(f"so far: {TOTAL.schedules:,} interleavings, {TOTAL.transitions:,} distinct steps, {sum(SPENT):.1f} s")
    assert walk.schedules > 100


@pytest.mark.parametrize("script", ["create and update", "delete at once, answered with the uid"])
def test_merging_equal_states_leaves_no_schedule_out(script: str) -> None:
    """Walked one by one, without merging, there are exactly as many schedules."""
    short = SCRIPTS[script][:2]

    def make() -> World:
        return World(short, lists=1, bookmarks=1)

    assert enumerate_plainly(make) == explore(make).schedules


VERBS: dict[str, tuple[str, ...]] = {
    "": ("create", "other"),
    "live": ("update", "delete", "terminate", "other"),
    "terminating": ("update", "finalize", "other"),
}


@st.composite
def scripts(draw: st.DrawFn, most: int = 14) -> tuple[Write, ...]:
    """Writes on three names that make sense in their order."""
    states = {"a": "", "b": "", "c": ""}
    writes = []
    for _ in range(draw(st.integers(2, most))):
        name = draw(st.sampled_from("abc"))
        verb = draw(st.sampled_from(VERBS[states[name]]))
        kinds = ("", "object", "status") if verb in ("delete", "terminate") else ("", "object", "object")
        writes.append(Write(verb, name, draw(st.sampled_from(kinds))))
        if verb == "terminate":
            states[name] = "terminating"
        elif verb in ("delete", "finalize"):
            states[name] = ""
        elif verb == "create":
            states[name] = "live"
    return tuple(writes)


COUNTED = itertools.count(1)
STEPS = itertools.count(1)


@settings(
    max_examples=700 * EXAMPLES, deadline=None, derandomize=EXAMPLES == 1, suppress_health_check=[HealthCheck.too_slow]
)
@given(script=scripts(), data=st.data())
def check_schedule(script: tuple[Write, ...], data: st.DataObject) -> None:
    world = World(script, lists=3, bookmarks=3, cuts=3, repeats=2, restarts=1)
    next(COUNTED)
    while not world.complete:
        world.do(data.draw(st.sampled_from(sorted(world.steps()))))
        next(STEPS)
    world.do("list")
    world.do("swap")
    assert world.shown() == world.server(world.version)


def test_random_interleavings_of_larger_histories(record_property: Callable[[str, object], None]) -> None:
    """Up to 14 writes on three names, with lists, bookmarks, cuts and repetitions at any moment."""
    begun = time.perf_counter()
    check_schedule()
    seconds = time.perf_counter() - begun
    examples, steps = next(COUNTED) - 1, next(STEPS) - 1
    record_property("examples", examples)
    record_property("steps", steps)
    record_property("seconds", round(seconds, 1))
    print(f"\nrandom schedules: {examples:,} examples, {steps:,} steps, {seconds:.1f} s")
    assert examples >= 700


@settings(max_examples=250 * EXAMPLES, deadline=None, derandomize=EXAMPLES == 1)
@given(script=scripts(), data=st.data())
def test_events_out_of_order_end_in_the_servers_state(script: tuple[Write, ...], data: st.DataObject) -> None:
    """No server does that, but if one did, nothing would be lost: what cannot be placed leads to a new list."""
    world = World(script)
    for step in ("list", "swap", *["write"] * len(script)):
        world.do(step)
    events = data.draw(st.permutations(world.history))
    placed = [world.store.event(record.type, record.object) for record in events]
    if not all(placed):
        world.store.replace([record.object for record in world.live.values()], world.version)
    assert world.shown() == world.server(world.version)


class TakesOldAnswers(Store[ConfigMap]):
    def written(self, obj: ConfigMap) -> None:
        watermark, self._watermark = self._watermark, 0
        super().written(obj)
        self._watermark = watermark


class MovesTheWatermarkByAnswers(Store[ConfigMap]):
    def written(self, obj: ConfigMap) -> None:
        super().written(obj)
        self.bookmark(int(obj.metadata.resource_version))


class DropsWhatTheListDoesNotHave(Store[ConfigMap]):
    def replace(self, items: Iterable[ConfigMap], version: int, *, prepared: bool = False) -> None:
        if version >= self.watermark:
            for obj in self.list():
                self.event("DELETED", obj)
        super().replace(items, max(version, self.watermark), prepared=prepared)


class TakesStaleLists(Store[ConfigMap]):
    def replace(self, items: Iterable[ConfigMap], version: int, *, prepared: bool = False) -> None:
        self._watermark = 0
        super().replace(items, version, prepared=prepared)


class TakesLateEvents(Store[ConfigMap]):
    def event(self, type: str, obj: ConfigMap) -> bool:
        if not super().event(type, obj):
            self._come(obj, int(obj.metadata.resource_version))
        return True


class DeletesOnlyWhatIsOlder(Store[ConfigMap]):
    def event(self, type: str, obj: ConfigMap) -> bool:
        stored = self.get(obj.metadata.namespace, obj.metadata.name)
        same = stored is not None and stored.metadata.resource_version == obj.metadata.resource_version
        if type == "DELETED" and same:
            self.bookmark(int(obj.metadata.resource_version))
            return True
        return super().event(type, obj)


class DeletesByName(Store[ConfigMap]):
    def event(self, type: str, obj: ConfigMap) -> bool:
        entry = self._namespaces["ns"].entries.get(obj.metadata.name) if "ns" in self._namespaces else None
        if type == "DELETED" and entry is not None:
            entry.version = 0
        return super().event(type, obj)


class ForgetsDeletes(Store[ConfigMap]):
    def delete_answered(self, uid: str = "", obj: ConfigMap | None = None) -> None:
        if obj is not None:
            self.written(obj)


class ForgetsDeletesOfUnknownObjects(Store[ConfigMap]):
    def delete_answered(self, uid: str = "", obj: ConfigMap | None = None) -> None:
        if uid in self._uids:
            super().delete_answered(uid, obj)


class RepeatsEchoes(Store[ConfigMap]):
    def event(self, type: str, obj: ConfigMap) -> bool:
        stored = self.get(obj.metadata.namespace, obj.metadata.name)
        same = stored is not None and stored.metadata.resource_version == obj.metadata.resource_version
        if type != "DELETED" and same:
            self._notify(stored, obj)
        return super().event(type, obj)


TELLING = (
    ("recreated by others", "repeated events"),
    ("recreated by us", "restarts"),
    ("two objects, one of others", "restarts"),
    ("create and update", "lists"),
)


@pytest.mark.parametrize(
    "broken",
    [
        TakesOldAnswers,
        MovesTheWatermarkByAnswers,
        DropsWhatTheListDoesNotHave,
        TakesStaleLists,
        TakesLateEvents,
        DeletesOnlyWhatIsOlder,
        DeletesByName,
        ForgetsDeletes,
        ForgetsDeletesOfUnknownObjects,
        RepeatsEchoes,
    ],
)
def test_a_store_that_breaks_one_rule_is_noticed(broken: type[Store[ConfigMap]]) -> None:
    """The exploration would see it: each rule is there because some schedule needs it."""

    def explore_some() -> None:
        for script, budget in TELLING:
            explore(functools.partial(World, SCRIPTS[script], store=broken, **BUDGETS[budget]))

    with pytest.raises(AssertionError, match="after"):
        explore_some()
