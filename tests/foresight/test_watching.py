"""Moves and waves, from nothing but the changes of pods: the same for a forecast and for a cluster."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from kruise.api.native.pod import Pod
from kruise.foresight.forecast import How
from kruise.foresight.watching import Watcher
from kruise.foresight.waves import waves_of
from kruise.machinery import codec
from kruise.workloads.cloneset.forecast import FORECAST
from tests.support.clonesets import NEW, NOW, OLD, make_cloneset, make_pod


class Story:
    """Pods by their ids, and what happens to them when."""

    def __init__(self, replicas: int, **spec: Any) -> None:
        self.watcher = Watcher(FORECAST, make_cloneset(replicas=replicas, **spec), replicas, NOW)
        self.pods: dict[str, Pod] = {}

    def starts_with(self, *names: str) -> Story:
        for name in names:
            self.pods[name] = make_pod(name, old=True)
            self.watcher.prime(self.pods[name])
        return self

    def at(self, seconds: float, name: str, **change: Any) -> None:
        before = self.pods.get(name)
        after = make_pod(name, **change)
        self.pods[name] = after
        self.watcher.saw(NOW + timedelta(seconds=seconds), before, after)

    def updates(self, begin: float, end: float | None, name: str) -> list[tuple[float, str, dict[str, Any]]]:
        """The three steps of an update in place: out of service, another revision, back in service."""
        since = (NOW + timedelta(seconds=end or 0)).isoformat()
        steps = [(begin, name, {"old": True, "ready": False}), (begin, name, {"ready": False})]
        return [*steps, (end, name, {"ready_since": since})] if end is not None else steps

    def play(self, *stories: list[tuple[float, str, dict[str, Any]]]) -> Story:
        for seconds, name, change in sorted((step for story in stories for step in story), key=lambda step: step[0]):
            self.at(seconds, name, **change)
        return self

    def waves(self) -> list[set[str]]:
        return [{move.pod.removeprefix("web-") for move in wave.moves} for wave in waves_of(self.watcher)]


def test_pods_that_finish_a_little_apart_are_in_one_wave() -> None:
    story = Story(4).starts_with("a", "b", "c", "d")
    story.play(
        story.updates(0.0, 5.0, "a"),
        story.updates(0.1, 5.4, "b"),
        story.updates(5.1, 10.3, "c"),
        story.updates(5.5, 10.1, "d"),
    )
    assert story.waves() == [{"a", "b"}, {"c", "d"}]
    waves = waves_of(story.watcher)
    assert [wave.fewest_available for wave in waves] == [2, 2]
    assert [wave.begins for wave in waves] == [0.0, 5.1]
    assert [move.until_available for move in waves[0].moves] == [5.0, 5.3]
    assert story.watcher.fewest_available == 2
    assert story.watcher.last_change == 10.3


def test_a_pod_that_never_comes_back() -> None:
    story = Story(3).starts_with("a", "b", "c")
    story.play(story.updates(0.0, None, "a"), story.updates(0.0, 4.0, "b"), story.updates(4.0, 8.0, "c"))
    assert story.waves() == [{"a", "b"}, {"c"}]
    assert waves_of(story.watcher)[0].moves[0].until_available is None
    assert waves_of(story.watcher)[1].fewest_available == 1


def test_what_a_wave_costs_is_not_told_of_the_one_before() -> None:
    """The pod that moves next is out of service a moment before its revision changes."""
    story = Story(4).starts_with("a", "b", "c", "d")
    story.play(story.updates(0.0, 5.0, "a"), story.updates(6.0, 9.0, "b"), story.updates(6.0, 9.0, "c"))
    assert story.waves() == [{"a"}, {"b", "c"}]
    assert [wave.fewest_available for wave in waves_of(story.watcher)] == [3, 2]


def test_a_rebuilt_pod_and_its_successor_are_one_move() -> None:
    story = Story(2).starts_with("a", "b")
    story.at(0.0, "a", old=True, terminating=True)
    story.at(0.2, "x", ready=False, phase="Pending", node="")
    story.at(4.0, "x")
    (wave,) = waves_of(story.watcher)
    (move,) = wave.moves
    assert (move.how, move.pod, move.until_available) == (How.RECREATE, "web-a", 4.0)
    assert move.revision == NEW.metadata.name
    assert wave.fewest_available == 1


def test_a_pod_that_came_before_another_goes() -> None:
    story = Story(2).starts_with("a", "b")
    story.at(0.0, "x", ready=False)
    story.at(5.0, "x")
    story.at(5.1, "b", old=True, terminating=True)
    (wave,) = waves_of(story.watcher)
    assert [(move.how, move.pod, move.until_available) for move in wave.moves] == [(How.RECREATE, "web-b", 0.0)]
    assert story.watcher.most_pods == 3
    assert story.watcher.fewest_available == 2


def test_too_many_and_too_few_pods() -> None:
    story = Story(2).starts_with("a", "b", "c")
    story.at(0.0, "c", old=True, terminating=True)
    assert [move.move.how for move in story.watcher.moved()] == [How.DELETE]
    other = Story(3).starts_with("a")
    other.at(0.0, "x", ready=False)
    other.at(0.0, "y", ready=False)
    assert [move.move.how for move in other.watcher.moved()] == [How.CREATE, How.CREATE]


def test_time_alone_makes_a_pod_available() -> None:
    story = Story(1, minReadySeconds=10).starts_with("a")
    story.play(story.updates(0.0, 3.0, "a"))
    assert story.watcher.available == 0
    story.watcher.tick(NOW + timedelta(seconds=20))
    assert story.watcher.available == 1
    assert waves_of(story.watcher)[0].moves[0].until_available == 20.0


def test_pods_of_others_count_for_nothing() -> None:
    story = Story(1).starts_with("a")
    stranger = make_pod("z")
    alone = codec.evolve(stranger, metadata=codec.evolve(stranger.metadata, owner_references=()))
    story.watcher.saw(NOW, None, alone)
    story.watcher.saw(NOW, alone, None)
    assert story.watcher.there == 1
    assert not story.watcher.moved()


def test_a_pod_that_is_let_go_counts_as_gone() -> None:
    story = Story(1).starts_with("a")
    pod = story.pods["a"]
    story.watcher.saw(NOW, pod, codec.evolve(pod, metadata=codec.evolve(pod.metadata, owner_references=())))
    assert story.watcher.there == 0
    assert story.watcher.available == 0
    assert story.watcher.moved()[0].before == OLD.metadata.name
