"""What a forecast takes for granted, said in so many words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kruise.foresight.failing import Failures
from kruise.machinery.wording import listed
from kruise.model.times import Times

_STEPS = {
    "schedule": "to get a node",
    "start": "to start",
    "ready": "from start to ready",
    "restart": "to restart in place",
    "stop": "to stop",
}


def of(times: Times, failures: Failures, *, has_looked_for_room: bool, hooks: bool, is_cut: bool) -> tuple[str, ...]:
    """`hooks`: some held pods, and were answered."""
    return tuple(_all(times, failures, has_looked_for_room, hooks, is_cut))


def _all(times: Times, failures: Failures, has_looked_for_room: bool, hooks: bool, is_cut: bool) -> Iterator[str]:
    learnt = [name for name in _STEPS if name in times.learnt]
    assumed = [name for name in _STEPS if name not in times.learnt]
    if learnt:
        yield f"a pod takes {_durations(times, learnt)}: the median of its pods"
    if assumed:
        yield f"a pod takes {_durations(times, assumed)}: assumed, no pod tells"
    if has_looked_for_room:
        yield "every new or changed pod that finds a node becomes ready, and nobody else takes room or makes some"
    else:
        yield "every new or changed pod finds a node and becomes ready"
    if failures.broken:
        yield f"pods that are down now stay down until they are changed: {listed(failures.broken)}"
    if failures.revisions:
        names = ", ".join(sorted(failures.revisions))
        yield f"no pod of revision {names} is ready now, so others of it are taken to fail as well"
    if failures.images:
        yield f"images that cannot be pulled now stay so: {', '.join(sorted(failures.images))}"
    if hooks:
        yield "hooks are answered at once"
    if is_cut:
        yield "the rollout has more steps than a forecast plays: the rest is taken to go on at the same pace"


def _durations(times: Times, names: Iterable[str]) -> str:
    return ", ".join(f"{getattr(times, name):.3g} s {_STEPS[name]}" for name in names)
