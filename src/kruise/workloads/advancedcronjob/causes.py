"""Causes that only AdvancedCronJob knows."""

from __future__ import annotations

from kruise.machinery.causes import MINUTE, Act, Meaning

SCHEDULED = Meaning(
    code="scheduled",
    says="its next run is not due yet",
    act=Act.INTENDED,
    field="spec.schedule",
    is_wanted=True,
    remedy="to see what follows: kruise plan {target}{flags}",
)
RUNS_PAUSED = Meaning(
    code="runs-paused",
    says="it is paused: no new runs start",
    act=Act.INTENDED,
    field="spec.paused",
    is_wanted=True,
    remedy="when it is to go on: kruise rollout resume {target}{flags}",
)
STILL_ACTIVE = Meaning(
    code="still-active",
    says="a run is due, and waits until the one before it has ended",
    act=Act.NOBODY,
    field="spec.concurrencyPolicy",
    waits_for_others=True,
)
RUNS_UNSEEN = Meaning(
    code="runs-unseen",
    says="the runs that there are have not been read yet, so none starts",
    act=Act.NOBODY,
    field="spec.template",
    patience=MINUTE,
)
BAD_SCHEDULE = Meaning(
    code="bad-schedule",
    says="its schedule cannot be read",
    act=Act.SOMEBODY,
    field="spec.schedule",
    patience=0,
)
NEVER_DUE = Meaning(
    code="never-due",
    says="its schedule matches no day for years",
    act=Act.SOMEBODY,
    field="spec.schedule",
    patience=0,
)
NO_TEMPLATE = Meaning(
    code="no-template", says="it has no template", act=Act.SOMEBODY, field="spec.template", patience=0
)
MISSED_TOO_MANY = Meaning(
    code="missed-too-many",
    says="it missed more than 100 runs, and none of them is made up for",
    act=Act.NOBODY,
    field="spec.startingDeadlineSeconds",
)
RUN_REFUSED = Meaning(
    code="run-refused",
    says="the API refuses a run that is due, or will refuse each one",
    act=Act.SOMEBODY,
    field="spec.template",
    patience=0,
)
GATE_OFF = Meaning(
    code="runs-gate-off",
    says="runs of its kind need a feature gate that is off",
    act=Act.SOMEBODY,
    field="spec.template",
    patience=0,
)
CLOCK_BEHIND = Meaning(
    code="clock-behind",
    says="its last run, or its creation, is in the future: a clock was set back",
    act=Act.NOBODY,
    field="status.lastScheduleTime",
)
NO_DEADLINE_LEFT = Meaning(
    code="no-deadline-left",
    says="startingDeadlineSeconds 0 lets no run start",
    act=Act.SOMEBODY,
    field="spec.startingDeadlineSeconds",
    patience=0,
)

CAUSES = (
    SCHEDULED,
    RUNS_PAUSED,
    STILL_ACTIVE,
    RUNS_UNSEEN,
    BAD_SCHEDULE,
    NEVER_DUE,
    NO_TEMPLATE,
    MISSED_TOO_MANY,
    RUN_REFUSED,
    GATE_OFF,
    CLOCK_BEHIND,
    NO_DEADLINE_LEFT,
)
