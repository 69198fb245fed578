"""One word and one sentence for each way in which a change may work out."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.foresight.forecast import How, Move, Staying, Stop, Warning, Wave
from kruise.foresight.rendering.verdict import Verdict, headline, verdict_of
from kruise.workloads.shared import causes
from tests.foresight_rendering.reports import report

NOTHING: dict[str, Any] = {"waves": (), "stops": (), "staying": (), "warnings": (), "seconds": 0.0}
PAUSED = Stop(meaning=causes.PAUSED, at=0.0, message="the update is paused")
BLOCKED = Stop(meaning=causes.IN_PLACE_ONLY, at=2.0, message="cannot be updated in place: args change")
FULL = Stop(meaning=causes.MAX_UNAVAILABLE, at=0.0, message="used up by web-a")
HELD = Stop(meaning=causes.HOOK, at=0.0, message="waits for somebody")
PARTITION = Stop(meaning=causes.PARTITION, at=0.0, message="kept back")
HOOK = Stop(meaning=causes.HOOK, at=1.0, message="waits for the hook", is_last=False)
STAYS = Staying(
    pod="web-a", revision="web-old", meaning=causes.MAX_UNAVAILABLE, message="maxUnavailable 0 allows 0 pods"
)
DONE: dict[str, Any] = {"stops": (), "staying": (), "is_complete": True, "seconds": 80.0}


@pytest.mark.parametrize(
    ("changes", "verdict", "sentence"),
    [
        pytest.param({**NOTHING, "is_complete": True}, Verdict.UNCHANGED, "no pod changes", id="nothing"),
        pytest.param(
            DONE, Verdict.COMPLETE, "7 pods in 4 waves: 7 updated in place; done after about 1m20s", id="complete"
        ),
        pytest.param(
            {},
            Verdict.STOPS,
            "7 pods in 4 waves: 7 updated in place; then it stops, after about 24s: "
            "partition keeps 3 pods at their old revision",
            id="partition",
        ),
        pytest.param(
            {**NOTHING, "stops": (PAUSED,)},
            Verdict.STOPS,
            "no pod changes, it stops at once: the update is paused",
            id="paused",
        ),
        pytest.param(
            {**DONE, "stops": (HOOK,)},
            Verdict.COMPLETE,
            "7 pods in 4 waves: 7 updated in place; done after about 1m20s",
            id="a hook that is answered",
        ),
        pytest.param(
            {"stops": (BLOCKED,)},
            Verdict.STUCK,
            "7 pods in 4 waves: 7 updated in place; then it gets stuck, after about 24s: "
            "cannot be updated in place: args change",
            id="refused in place",
        ),
        pytest.param(
            {**NOTHING, "staying": (STAYS,)},
            Verdict.STUCK,
            "no pod changes, it gets stuck at once: maxUnavailable 0 allows 0 pods",
            id="pods that wait without a stop",
        ),
        pytest.param(
            {**NOTHING, "stops": (PAUSED,), "warnings": (Warning(code="deadlock", message="never"),)},
            Verdict.STUCK,
            "no pod changes, it gets stuck at once: the update is paused",
            id="a deadlock is one, whatever else stops",
        ),
        pytest.param(
            {**NOTHING, "stops": (FULL, HELD), "warnings": (Warning(code="deadlock", message="never"),)},
            Verdict.STOPS,
            "no pod changes, it stops at once: waits for somebody",
            id="pods that wait for those that a hook holds",
        ),
        pytest.param(
            {**NOTHING, "stops": (FULL, BLOCKED)},
            Verdict.STUCK,
            "no pod changes, it gets stuck at once: cannot be updated in place: args change",
            id="the cause behind the others is named",
        ),
        pytest.param(
            {**NOTHING, "stops": (FULL, PARTITION)},
            Verdict.STUCK,
            "no pod changes, it gets stuck at once: used up by web-a",
            id="a partition does not explain a limit that is used up",
        ),
        pytest.param(
            {"stops": (), "staying": (), "is_cut": True, "seconds": None},
            Verdict.UNFINISHED,
            "7 pods in 4 waves: 7 updated in place; then there is more to come than was looked at",
            id="cut",
        ),
        pytest.param(
            {"stops": (BLOCKED,), "seconds": None},
            Verdict.STUCK,
            "7 pods in 4 waves: 7 updated in place; then it gets stuck, after an unknown time: "
            "cannot be updated in place: args change",
            id="unknown time",
        ),
    ],
)
def test_verdict_and_sentence(changes: dict[str, Any], verdict: Verdict, sentence: str) -> None:
    shown = report(**changes)
    assert (verdict_of(shown.forecast), headline(shown)) == (verdict, sentence)


def test_the_sentence_counts_pods_by_what_happens_to_them() -> None:
    moves = tuple(
        Move(pod=f"web-{name}", how=how, at=0.0, until_available=1.0)
        for name, how in zip("abcde", [How.DELETE, How.CREATE, How.IN_PLACE, How.RECREATE, How.CREATE], strict=True)
    )
    wave = Wave(number=1, begins=0.0, moves=moves, fewest_available=3)
    said = headline(report(**{**DONE, "waves": (wave,)}))
    assert said == "5 pods in 1 wave: 1 updated in place, 1 rebuilt, 2 created, 1 deleted; done after about 1m20s"
