"""Answers that are kept with their object."""

from __future__ import annotations

import gc
import weakref

from kruise.api.meta import ObjectMeta
from kruise.api.native.pod import Pod
from kruise.machinery import codec
from kruise.machinery.remembered import once_per_object


def test_an_object_is_asked_once() -> None:
    asked: list[str] = []

    @once_per_object
    def name_of(pod: Pod) -> str:
        asked.append(pod.metadata.name)
        return pod.metadata.name

    @once_per_object
    def length_of(pod: Pod) -> int:
        return len(name_of(pod))

    first, second = (Pod(metadata=ObjectMeta(name=name)) for name in ("web-1", "web-22"))
    assert [(name_of(pod), length_of(pod)) for pod in (first, second, first)] == [
        ("web-1", 5),
        ("web-22", 6),
        ("web-1", 5),
    ]
    assert asked == ["web-1", "web-22"]


def test_a_changed_copy_is_asked_anew_and_nothing_of_it_is_written() -> None:
    @once_per_object
    def name_of(pod: Pod) -> str:
        return pod.metadata.name

    pod = Pod(metadata=ObjectMeta(name="web-1"))
    plain = codec.encode(pod)
    assert name_of(pod) == "web-1"
    assert name_of(codec.evolve(pod, metadata=ObjectMeta(name="web-2"))) == "web-2"
    assert codec.encode(pod) == plain
    assert pod == Pod(metadata=ObjectMeta(name="web-1"))


def test_answers_go_with_their_object() -> None:
    class Answer:
        pass

    @once_per_object
    def answer_of(_: Pod) -> Answer:
        return Answer()

    pod = Pod(metadata=ObjectMeta(name="web-1"))
    answer = weakref.ref(answer_of(pod))
    assert answer() is not None
    del pod
    gc.collect()
    assert answer() is None
