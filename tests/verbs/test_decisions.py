"""Journal entries as people read them."""

from __future__ import annotations

from typing import Any

from kruise.verbs import decisions

KINDS = {"cloneset-controller": "cloneset"}
ENTRY: dict[str, Any] = {
    "time": "2030-01-01T00:00:01.020Z",
    "controller": "cloneset-controller",
    "key": {"namespace": "shop", "name": "web"},
    "reconcile_id": "1a0f41a3d708be",
    "digest": "26dcd3499591b00fcc052f97d71cfb15",
    "plan": {
        "actions": [
            {"phase": "revision", "action": "create controllerrevisions.apps shop/web-67c5", "reason": "it is new"},
            {"phase": "update", "action": "patch pods/status shop/web-a", "reason": "out of service"},
        ],
        "counts": {"create controllerrevisions.apps": 1, "patch pods/status": 5},
        "held": [{"target": "pods shop/web-b", "causes": ["2 of 3 are moving", "partition 1 keeps it"]}],
        "heldBy": {"max-unavailable": 3},
        "wakes": [{"after": 12.0, "reason": "what waits counts as stuck"}],
    },
    "outcomes": {"done": 5, "failed": 1},
    "troubles": [{"action": "patch pods shop/web-a", "result": "failed", "error": "no"}],
    "conclusion": {
        "status": "the status changed",
        "events": ["Normal SuccessfulCreate: web-a"],
        "wakes": [{"after": 0.25, "reason": "minReadySeconds"}],
        "retry": "1 write failed",
    },
    "error": "",
    "duration": 0.0123,
}  # fmt: skip


def test_a_row_for_each_pass() -> None:
    header, line = decisions.lines([ENTRY], kinds=KINDS, with_object=True)
    assert line == (
        "2030-01-01T00:00:01.020Z   cloneset shop/web   26dcd349   1 create controllerrevisions, 5 patch pods/status   "
        "3 max-unavailable   5 done, 1 failed   12.3ms   1a0f41a3d708be"
    )
    assert header.split() == ["TIME", "OBJECT", "DIGEST", "ACTIONS", "HELD", "OUTCOME", "TOOK", "ID"]
    assert header.index("ACTIONS") == line.index("1 create")
    row = decisions.row(ENTRY, kinds={}, with_object=True)
    assert row[1] == "cloneset-controller shop/web"
    assert "OBJECT" not in decisions.header(with_object=False)


def test_a_pass_that_did_nothing_or_failed() -> None:
    calm = {**ENTRY, "plan": {}, "outcomes": {}, "conclusion": {}, "duration": 2.25}
    assert decisions.row(calm, kinds=KINDS, with_object=False)[2:6] == ("-", "-", "-", "2.2s")
    failed = {**calm, "digest": "", "error": "ValueError: x"}
    assert decisions.outcome(failed) == "error: ValueError: x"
    assert decisions.row(failed, kinds=KINDS, with_object=False)[1] == "-"
    assert [decisions.is_trouble(one) for one in (ENTRY, calm, failed)] == [True, False, True]


def test_times_are_always_as_long() -> None:
    assert decisions.milliseconds("2030-01-01T00:00:01Z") == "2030-01-01T00:00:01.000Z"
    assert decisions.milliseconds("2030-01-01T00:00:01.020456Z") == "2030-01-01T00:00:01.020Z"
    assert decisions.milliseconds("") == "-"


def test_one_pass_in_full() -> None:
    assert decisions.described(ENTRY, kinds=KINDS) == [
        "Decision:   1a0f41a3d708be",
        "Object:     cloneset shop/web",
        "Controller: cloneset-controller",
        "Time:       2030-01-01T00:00:01.020Z",
        "Took:       12.3ms",
        "Snapshot:   26dcd3499591b00fcc052f97d71cfb15",
        "Actions:    1 create controllerrevisions.apps, 5 patch pods/status",
        "  revision: create controllerrevisions.apps shop/web-67c5: it is new",
        "  update: patch pods/status shop/web-a: out of service",
        "  and 4 more",
        "Held:       3 max-unavailable",
        "  pods shop/web-b: 2 of 3 are moving",
        "  pods shop/web-b: partition 1 keeps it",
        "  and 2 more",
        "Outcome:    5 done, 1 failed",
        "  patch pods shop/web-a: failed: no",
        "Status:     written: the status changed",
        "Events:",
        "  Normal SuccessfulCreate: web-a",
        "Looks again:",
        "  in 12 s: what waits counts as stuck",
        "  in 0.25 s: minReadySeconds",
        "Tries again: 1 write failed",
    ]


def test_an_entry_of_a_manager_that_says_less() -> None:
    assert decisions.described({"reconcile_id": "x"}, kinds={})[0] == "Decision:   x"
    assert decisions.row({}, kinds={}, with_object=True)[0] == "-"
