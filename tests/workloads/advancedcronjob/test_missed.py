"""Managers that are away and clocks that jump, over ten years: which runs there are, against an oracle."""

from __future__ import annotations

from bisect import bisect_right
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from kruise.machinery.client.requests import Verb
from kruise.machinery.plan import Outcome
from kruise.machinery.runs import MOST_MISSED
from tests.support.cron_oracle import SCHEDULES, ZONES, moments
from tests.support.examples import story_settings
from tests.support.modelled import START
from tests.workloads.advancedcronjob.modelled import BROADCAST, ModelledCron, document

LOOKS = st.lists(
    st.one_of(
        st.floats(1, 600),
        st.floats(600, 86400),
        st.floats(86400, 60 * 86400),
        st.floats(-3 * 86400, -1),
    ),
    min_size=1,
    max_size=40,
)
"""Seconds from one look to the next. Managers look when something is due; these come whenever they like."""


@story_settings(50)
@given(schedule=SCHEDULES, zone=st.sampled_from(ZONES), looks=LOOKS, deadline=st.sampled_from([None, 90, 7200]))
def test_which_runs_there_are(schedule: str, zone: str, looks: list[float], deadline: int | None) -> None:
    """ACJ-53, ACJ-55, ACJ-69, ACJ-82: of what was missed the latest, unless it was too much or is too late. A clock
    that is set back makes none a second time."""
    more = {} if deadline is None else {"startingDeadlineSeconds": deadline}
    model = ModelledCron(document(schedule, timeZone=zone, template=BROADCAST, **more))
    found = list(moments(schedule, zone, START, datetime(2040, 1, 1, tzinfo=UTC)))
    made: list[str] = []

    def wrote(outcome: Outcome) -> None:
        if outcome.action.verb is Verb.CREATE:
            made.append(outcome.action.target.name)

    expected: list[str] = []
    last = given_up = START
    for seconds in looks:
        model.pass_time(seconds)
        model.reconcile(wrote=wrote)
        base = max(last, given_up) if given_up <= model.now else last  # given up by a clock that was ahead
        if deadline is not None:
            base = max(last, model.now - timedelta(seconds=deadline))
        missed = found[bisect_right(found, base) : bisect_right(found, model.now)]
        if len(missed) > MOST_MISSED and deadline is None:
            given_up = model.now
        elif missed:
            last, given_up = missed[-1], START
            expected.append(f"cron-{int(last.timestamp())}")
        assert made == expected
