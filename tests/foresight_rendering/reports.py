"""Reports made by hand."""

from __future__ import annotations

import dataclasses
from typing import Any

from kruise.foresight.forecast import FieldChange, Forecast, How, Move, Staying, Stop, Warning, Wave
from kruise.foresight.rendering.report import Report
from kruise.workloads.shared import causes

IMAGE = "image of main changes"
PARTITION = "partition keeps 3 pods at their old revision"
LOWER = "lower updateStrategy.rollingUpdate.partition"


def forecast(**changes: Any) -> Forecast:
    """Seven of ten pods go in place, two or one at a time; a partition keeps the rest."""
    waves = []
    left = [f"web-{name}" for name in "abcdefg"]
    for number in range(1, 5):
        going, left = left[:2], left[2:]
        begins = (number - 1) * 6.0
        moves = tuple(
            Move(pod=pod, how=How.IN_PLACE, at=begins, why=IMAGE, revision="web-new", until_available=5.6)
            for pod in going
        )
        waves.append(Wave(number=number, begins=begins, moves=moves, fewest_available=10 - len(going)))
    base = Forecast(
        kind="CloneSet",
        namespace="default",
        name="web",
        changes=(
            FieldChange(path="spec.template.spec.containers[0].image", before='"nginx:1.25"', after='"nginx:1.26"'),
        ),
        from_revision="web-old",
        to_revision="web-new",
        waves=tuple(waves),
        stops=(
            Stop(meaning=causes.PARTITION, at=23.6, message=PARTITION, remedy=LOWER, pods=("web-h", "web-i", "web-j")),
        ),
        staying=tuple(
            Staying(pod=f"web-{name}", revision="web-old", meaning=causes.PARTITION, message=PARTITION, remedy=LOWER)
            for name in "hij"
        ),
        warnings=(
            Warning(code="rounding", message="15% of 10 pods are 2, rounded up", remedy="write 1 if 1 is meant"),
        ),
        assumptions=("a container starts within 2s, as the last ones did",),
        replicas=10,
        available_before=10,
        fewest_available=8,
        fewest_allowed=8,
        most_pods=10,
        most_allowed=10,
        available_after=10,
        by_revision={"web-new": 7, "web-old": 3},
        seconds=23.6,
        is_complete=False,
    )
    return dataclasses.replace(base, **changes)


def report(*, live: str = "abcdefghij", is_new: bool = False, **changes: Any) -> Report:
    more = {name: changes.pop(name) for name in ("notes", "drifted", "pods") if name in changes}
    return Report(
        subject="cloneset.apps.kruise.io/web",
        forecast=forecast(**changes),
        is_new=is_new,
        **{"pods": frozenset(f"web-{name}" for name in live), **more},
    )


def many(count: int, *, at_a_time: int = 1) -> Report:
    """A forecast in which many pods are rebuilt."""
    pods = [f"web-{number:04}" for number in range(count)]
    waves = tuple(
        Wave(
            number=index + 1,
            begins=index * 10.0,
            moves=tuple(
                Move(pod=pod, how=How.RECREATE, at=index * 10.0, why="args change", until_available=9.0)
                for pod in pods[index * at_a_time : (index + 1) * at_a_time]
            ),
            fewest_available=count - at_a_time,
        )
        for index in range(count // at_a_time)
    )
    changes: dict[str, Any] = {
        "waves": waves,
        "stops": (),
        "staying": (),
        "warnings": (),
        "replicas": count,
        "is_complete": True,
        "seconds": len(waves) * 10.0,
    }
    return report(pods=frozenset(pods), **changes)
