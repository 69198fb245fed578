"""How long things take here: learnt from the timestamps of the pods that run now.

Times on objects have whole seconds; the median of many is close all the same.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterable, Iterator
from datetime import datetime

from kruise.api.native.pod import Pod, condition
from kruise.inplace.state import BrokenAnnotation, UpdateState, update_state_of
from kruise.model import podstates
from kruise.model.times import Times

_LONGEST = 3600.0
"""Seconds. What took longer was held up by something else: a flapping pod, a person, a full cluster."""
_LATEST = 200
"""How many pods are asked, the youngest first: what took place last tells most."""
_SHORTEST = 0.1
_USUAL = Times()


def learn(pods: Iterable[Pod], *, usual: Times = _USUAL) -> Times:
    """The typical times of these pods; what none of them tells is as usual."""
    youngest = sorted(pods, key=_age, reverse=True)[:_LATEST]
    samples: dict[str, list[float]] = {}
    for pod in youngest:
        for name, seconds in _observed_times(pod):
            if 0 <= seconds <= _LONGEST:
                samples.setdefault(name, []).append(seconds)
    found = {name: _typical(name, values) for name, values in samples.items()}
    if "restart" not in found and "start" in found:
        found["restart"] = found["start"]  # the better guess: the same containers, the same registry
    return dataclasses.replace(usual, **found, learnt=frozenset(found))


def _typical(name: str, values: list[float]) -> float:
    """Never nothing: a pod that restarts in no time would seem not to restart at all. Only a node may be found at once,
    as times on objects have whole seconds."""
    return statistics.median(values) if name == "schedule" else max(_SHORTEST, statistics.median(values))


def _age(pod: Pod) -> float:
    created = pod.metadata.creation_timestamp
    return created.timestamp() if created is not None else 0.0


def _observed_times(pod: Pod) -> Iterator[tuple[str, float]]:
    started = podstates.started_at(pod.status.container_statuses)
    if started is None or len(pod.status.container_statuses) != len(pod.spec.containers):
        return
    ready = condition(pod, "Ready")
    if ready is not None and ready.status == "True" and ready.last_transition_time is not None:
        yield "ready", _between(started, ready.last_transition_time)
    try:
        state = update_state_of(pod)
    except BrokenAnnotation:
        return
    if state is not None:
        yield from _of_update(pod, state)
    elif not any(status.restart_count for status in pod.status.container_statuses):
        yield from _of_start(pod, started)


def _of_start(pod: Pod, started: datetime) -> Iterator[tuple[str, float]]:
    scheduled, created = condition(pod, "PodScheduled"), pod.metadata.creation_timestamp
    if scheduled is None or scheduled.status != "True" or scheduled.last_transition_time is None:
        return
    if created is not None:
        yield "schedule", _between(created, scheduled.last_transition_time)
    yield "start", _between(scheduled.last_transition_time, started)


def _of_update(pod: Pod, state: UpdateState) -> Iterator[tuple[str, float]]:
    """The last batch of the last update, where each of its containers started once since."""
    batch = state.container_batches_record[-1] if state.container_batches_record else None
    if batch is None or not batch.containers or not state.update_images:
        return
    statuses = [status for status in pod.status.container_statuses if status.name in batch.containers]
    started = podstates.started_at(statuses)
    if started is None:
        return
    yield "restart", _between(batch.timestamp, started)
    ended = [
        status.last_state.terminated.finished_at for status in statuses if status.last_state.terminated is not None
    ]
    known = [moment for moment in ended if moment is not None]
    if known and len(known) == len(statuses):
        yield "stop", _between(batch.timestamp, max(known))


def _between(begin: datetime, end: datetime) -> float:
    return (end - begin).total_seconds()
