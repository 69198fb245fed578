"""How a change works out, in one word and one sentence."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable

from kruise.foresight.forecast import Forecast, How, Move, Stop
from kruise.foresight.rendering.report import Report
from kruise.foresight.rendering.words import duration
from kruise.machinery.causes import Act
from kruise.machinery.wording import plural, shortened


class Verdict(enum.StrEnum):
    UNCHANGED = "unchanged"
    """No pod changes."""
    COMPLETE = "complete"
    """Every pod gets where the change wants it."""
    STOPS = "stops"
    """It stops where somebody wants it to stop, and goes on when that person says so."""
    STUCK = "stuck"
    """It stops by itself, and nobody asked for that."""
    UNFINISHED = "unfinished"
    """It was still under way when the time that the forecast looks at was over."""


RESULTS = {
    Verdict.UNCHANGED: "unchanged",
    Verdict.COMPLETE: "complete",
    Verdict.STOPS: "stops as asked",
    Verdict.STUCK: "stuck",
    Verdict.UNFINISHED: "unfinished",
}
"""For people."""

_DEADLOCK = "deadlock"
_REASON_LENGTH = 120
_DONE = {
    How.IN_PLACE: "{} updated in place",
    How.RECREATE: "{} rebuilt",
    How.CREATE: "{} created",
    How.DELETE: "{} deleted",
}


def verdict_of(forecast: Forecast) -> Verdict:
    ends = {stop.meaning for stop in last_stops(forecast)}
    if any(end.is_wanted and end.act is Act.SOMEBODY for end in ends):
        # Who waits for the pods that a hook holds goes on when the hook is answered.
        ends = {end for end in ends if not end.waits_for_others}
    elif any(warning.code == _DEADLOCK for warning in forecast.warnings) and not forecast.is_complete:
        return Verdict.STUCK
    if not ends and not forecast.is_complete:
        if forecast.is_cut or forecast.seconds is None:
            return Verdict.UNFINISHED
        ends = {pod.meaning for pod in forecast.staying}
        if not ends:
            return Verdict.STUCK
    if not forecast.is_complete and not all(end.is_wanted for end in ends):
        return Verdict.STUCK
    if ends and (forecast.staying or not forecast.is_complete):
        return Verdict.STOPS
    return Verdict.COMPLETE if forecast.moves else Verdict.UNCHANGED


def last_stops(forecast: Forecast) -> tuple[Stop, ...]:
    """Where it ends; what is behind other stops comes first."""
    ends = (stop for stop in forecast.stops if stop.is_last)
    return tuple(sorted(ends, key=lambda stop: (stop.meaning.waits_for_others, stop.meaning.is_wanted)))


def counts_of(moves: Iterable[Move]) -> dict[How, int]:
    """How many pods change in which way; in the order of the ways."""
    found = Counter(move.how for move in moves)
    return {how: found[how] for how in How if found[how]}


def counts_text(moves: Iterable[Move]) -> str:
    """`7 updated in place, 2 rebuilt`."""
    return ", ".join(_DONE[how].format(count) for how, count in counts_of(moves).items())


def headline(report: Report) -> str:
    """The whole forecast in a sentence."""
    forecast = report.forecast
    verdict = verdict_of(forecast)
    if not forecast.moves:
        changes = "no pod changes"
    else:
        waves = plural(len(forecast.waves), "wave")
        changes = f"{plural(len(forecast.moves), 'pod')} in {waves}: {counts_text(forecast.moves)}"
    match verdict:
        case Verdict.UNCHANGED:
            return changes
        case Verdict.COMPLETE:
            return f"{changes}; done after {about(forecast.seconds)}"
        case Verdict.UNFINISHED:
            return f"{changes}; then there is more to come than was looked at"
    reason = _reason(forecast, verdict)
    ends = "it stops" if verdict is Verdict.STOPS else "it gets stuck"
    if not forecast.moves:
        return f"{changes}, {ends} at once: {reason}"
    return f"{changes}; then {ends}, after {about(forecast.seconds)}: {reason}"


def _reason(forecast: Forecast, verdict: Verdict) -> str:
    """Why it ends there: what is behind everything else."""
    ends = last_stops(forecast)
    if verdict is Verdict.STUCK:
        ends = tuple(stop for stop in ends if not stop.meaning.is_wanted) or ends
    ends = tuple(stop for stop in ends if not stop.meaning.waits_for_others) or ends
    said = [stop.message for stop in ends] or [pod.message for pod in forecast.staying] or ["nothing moves any more"]
    return "; ".join(shortened(text, _REASON_LENGTH) for text in dict.fromkeys(said))


def about(seconds: float | None) -> str:
    return "an unknown time" if seconds is None else f"about {duration(seconds)}"
