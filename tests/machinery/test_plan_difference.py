"""Differences of plans, told so that none is missed."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.api.native.pod import PODS
from kruise.machinery.causes import Catalogue
from kruise.machinery.codec import Struct, canonical
from kruise.machinery.digest import plan_to_data
from kruise.machinery.plan import Held, Plan, Target, Wake, create, delete, patch, single
from kruise.machinery.plan_difference import Change, differences
from kruise.workloads.shared.causes import SHARED
from tests.support.examples import EXAMPLES


def target(name: str) -> Target:
    return Target(PODS, "ns", name)


class Counted(Struct):
    figures: dict[str, int]
    order: tuple[str, ...]


def plan(*, image: str = "nginx:1", code: str = "partition", extra: bool = False) -> dict[str, Any]:
    body = {"metadata": {"name": "web-a", "namespace": "ns"}, "spec": {"containers": [{"image": image}]}}
    removals = [delete(target("web-b"), uid="u", reason="surplus")] if extra else []
    return plan_to_data(
        Plan(
            phases=(
                single("scale", create(PODS, body, reason="0 of 1 pods are there"), *removals),
                single("update", patch(target("web-c"), {"x": 1}, uid="u", reason="in place", subresource="status")),
            ),
            held=(Held(target=target("web-d"), causes=(Catalogue(SHARED).meaning(code, "").cause("kept back"),)),),
            wakes=(Wake(after=1.5, reason="later"),),
            memo=Counted(figures={"updated": 1}, order=("a", "b")),
        )
    )


def told(before: Any, after: Any) -> list[str]:
    return [line for one in differences(before, after) for line in one.lines]


def test_equal_plans_have_none() -> None:
    assert differences(plan(), plan()) == ()


def test_actions_that_come_go_and_change() -> None:
    assert told(plan(), plan(extra=True)) == ["+ action scale: delete pods ns/web-b: surplus"]
    assert told(plan(extra=True), plan()) == ["- action scale: delete pods ns/web-b: surplus"]
    assert told(plan(), plan(image="nginx:2")) == [
        "~ action scale: create pods ns/web-a",
        '    body.spec.containers[0].image: "nginx:1" -> "nginx:2"',
    ]


def test_causes_wakes_and_the_memo() -> None:
    assert told(plan(), plan(code="paused")) == ["~ held pods ns/web-d", "    partition -> paused"]
    other = plan()
    other["held"][0]["causes"][0]["message"] = "kept"
    other["wakes"] = []
    other["memo"]["figures"] = {"updated": 2}
    del other["memo"]["order"]
    assert told(plan(), other) == [
        "~ held pods ns/web-d",
        '    [0].message: "kept back" -> "kept"',
        "- wake after 1.5 s: later",
        "~ memo figures",
        "    updated: 1 -> 2",
        "- memo order",
    ]


def test_order_and_settings_of_phases() -> None:
    other = plan(extra=True)
    other["phases"][0]["slowStart"] = not other["phases"][0]["slowStart"]
    assert told(plan(extra=True), other)[0] == "~ phase scale"
    turned = plan(extra=True)
    turned["phases"].reverse()
    [one] = differences(plan(extra=True), turned)
    assert (one.change, one.part) == (Change.CHANGED, "plan")


def test_the_same_action_twice_and_data() -> None:
    twice = plan()
    twice["phases"][1]["chains"] *= 2
    [one] = differences(plan(), twice)
    assert one.what == "update: patch pods/status ns/web-c (number 2): in place"
    data = one.to_data()
    assert (data["change"], "before" in data, data["after"]["verb"]) == ("added", False, "patch")


def test_plans_of_another_shape_are_told_as_a_whole() -> None:
    assert told({"held": [{"target": 7}]}, plan())[0] == "~ plan as a whole"
    assert told({}, plan())[0].startswith("+ action")


LEAVES = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.text(max_size=3))


@st.composite
def disturbed(draw: st.DrawFn) -> dict[str, Any]:
    """A plan in which something, somewhere, is another."""
    found = copy.deepcopy(plan(extra=True))
    place: Any = found
    for _ in range(draw(st.integers(1, 8))):
        steps = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not steps:
            break
        step = draw(st.sampled_from(steps))
        if not isinstance(place[step], dict | list) or draw(st.integers(0, 3)) == 0:
            place[step] = draw(LEAVES)
            break
        place = place[step]
    if isinstance(place, list) and draw(st.booleans()):
        place.reverse()
    return found


@settings(max_examples=75 * EXAMPLES, deadline=None)
@given(before=disturbed(), after=disturbed())
def test_what_differs_is_always_told(before: dict[str, Any], after: dict[str, Any]) -> None:
    found = differences(before, after)
    assert bool(found) == (canonical(before) != canonical(after))
    for one in found:
        assert all(one.lines)
        canonical(one.to_data())
