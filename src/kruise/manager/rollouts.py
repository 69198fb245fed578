"""Metrics of rollouts, of each workload: how far, how long, what it waited for, how it ended.

They are of the manager that leads: it sees every change of a workload, and decides what holds pods. When another one
takes over, counters begin anew, as Prometheus expects of them. The series of a workload go with it. There are as many
as workloads, times results, states and causes, all of which are few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from prometheus_client import CollectorRegistry, Histogram, Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from kruise.api.meta import Key, key_of
from kruise.faces.face import Face
from kruise.faces.progress import Phase, is_rolling
from kruise.machinery.clock import Clock
from kruise.machinery.codec import to_builtins
from kruise.machinery.documents import value_at
from kruise.machinery.plan import Plan
from kruise.machinery.store import Store
from kruise.manager.courses import Course, Courses

BUCKETS: Final = (5, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 86400)
STATES: Final = ("wanted", "expected", "updated", "ready", "available")
"""Fields of `Progress`."""
_OF_ONE: Final = ("kind", "namespace", "name")
_RESULTS: Final = {Phase.DONE: "done", Phase.FAILED: "failed"}


class Workload(NamedTuple):
    kind: str
    namespace: str
    name: str


def is_measured(face: Face) -> bool:
    """Kinds that bring revisions to pods."""
    return face.is_ours and face.progress is not None and face.history is not None


class Rollouts(Collector):
    def __init__(self, registry: CollectorRegistry, *, clock: Clock, per_workload: bool = True) -> None:
        """Without `per_workload` nothing is told that names a workload."""
        self._clock = clock
        self._per_workload = per_workload
        self._courses = Courses()
        self._kinds: dict[str, str] = {}
        """By the name of the controller."""
        self._followed: list[Callable[[], None]] = []
        self._durations = Histogram(
            "kruise_rollout_duration_seconds",
            "How long rollouts took, of all workloads of a kind.",
            ("kind",),
            buckets=BUCKETS,
            registry=registry,
        )
        registry.register(self)

    def follow(self, face: Face, controller: str, store: Store[Any]) -> None:
        """Look at every object of a kind, from now on."""
        kind = face.resource.kind
        self._kinds[controller] = kind
        self._durations.labels(kind)

        def changed(old: Any, new: Any) -> None:
            if new is None:
                self._courses.gone(Workload(kind, *key_of(old)))
            elif old is None or _tells_more(old, new):
                self._see(face, new)

        changed.__qualname__ = f"rollouts of {kind}s"
        self._followed.append(store.subscribe(changed))

    def forget(self) -> None:
        """Another manager leads."""
        for unsubscribe in self._followed:
            unsubscribe()
        self._followed.clear()
        self._kinds.clear()
        self._courses.clear()

    def decided(self, controller: str, key: Key, plan: Plan) -> None:
        """What a pass of a controller says holds pods."""
        kind = self._kinds.get(controller)
        course = self._courses.known(Workload(kind, *key)) if kind is not None else None
        if course is not None:
            course.hold({held.causes[0].code for held in plan.held if held.causes}, self._clock.monotonic())

    def _see(self, face: Face, obj: Any) -> None:
        assert face.progress is not None
        document = to_builtins(obj)
        workload = Workload(face.resource.kind, *key_of(obj))
        revision = str(value_at(document, face.revision_field, ""))
        course, progress, now = self._courses.of(workload), face.progress(document), self._clock.monotonic()
        if not is_rolling(document):
            course.rest(progress, revision, now)
            return
        ended = course.see(progress, revision, now)
        if ended is not None and ended.phase is Phase.DONE:
            self._durations.labels(workload.kind).observe(ended.seconds)

    def collect(self) -> Iterator[Metric]:
        families = _Families()
        if self._per_workload:
            now = self._clock.monotonic()
            for name, course in self._courses.items():
                assert isinstance(name, Workload)
                families.add(name, course, now)
        yield from families.all


class _Families:
    """What is told of each workload."""

    def __init__(self) -> None:
        self._ends = CounterMetricFamily("kruise_rollouts", "Rollouts that ended, by how.", labels=(*_OF_ONE, "result"))
        self._ages = GaugeMetricFamily(
            "kruise_rollout_age_seconds", "How long a rollout has been under way; absent where none is.", labels=_OF_ONE
        )
        self._pauses = GaugeMetricFamily(
            "kruise_rollout_paused", "Whether a rollout that is under way is paused.", labels=_OF_ONE
        )
        self._lasts = GaugeMetricFamily(
            "kruise_rollout_last_duration_seconds", "How long the latest rollout took that was done.", labels=_OF_ONE
        )
        self._waits = CounterMetricFamily(
            "kruise_rollout_waiting_seconds",
            "Seconds during which a cause held at least one pod of a workload while it rolled out.",
            labels=(*_OF_ONE, "cause"),
        )
        self._pods = GaugeMetricFamily(
            "kruise_workload_pods", "Pods of a workload, as its status counts them.", labels=(*_OF_ONE, "state")
        )
        self.all: Sequence[Metric] = (self._ends, self._ages, self._pauses, self._lasts, self._waits, self._pods)

    def add(self, name: Workload, course: Course, now: float) -> None:
        for phase, result in _RESULTS.items():
            self._ends.add_metric((*name, result), course.ends[phase])
        progress = course.progress
        if (age := course.age(now)) is not None:
            self._ages.add_metric(name, age)
            self._pauses.add_metric(name, float(progress.is_paused))
        if course.last is not None:
            self._lasts.add_metric(name, course.last)
        for cause, seconds in course.waited(now).items():
            self._waits.add_metric((*name, cause), seconds)
        for state in STATES:
            self._pods.add_metric((*name, state), getattr(progress, state))


def _tells_more(old: Any, new: Any) -> bool:
    return bool(old.metadata.generation != new.metadata.generation or old.status != new.status)
