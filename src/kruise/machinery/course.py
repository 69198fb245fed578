"""How a plan goes on after what has happened so far: which phases are begun, and which chains of them. Pure.

`apply` follows it with a server, `kruise.model` without one.
"""

from __future__ import annotations

from collections.abc import Sequence

from kruise.machinery.plan import Action, Chain, ChainOutcomes, OnError, Outcome, Phase, PhaseOutcomes, Result

NOT_SUCCEEDED = "not begun: an earlier phase did not succeed"
STALE = "not begun: an earlier phase changed what this was decided about"
ANOTHER_FAILED = "not begun: another chain failed"

_CHANGED = frozenset({Result.DONE, Result.UNKNOWN, Result.MOVED, Result.GONE, Result.PENDING})
"""After a write that ended so, the object may differ from the snapshot, by our doing or by somebody else's."""
_FINE = frozenset({Result.DONE, Result.PENDING})


class Course:
    """Where a plan is."""

    def __init__(self) -> None:
        self._changed: set[str] = set()
        self._goes_on = True

    def reason_to_skip(self, phase: Phase) -> str:
        """Why nothing of the phase is begun; empty: it is its turn."""
        if not self._goes_on:
            return NOT_SUCCEEDED
        return "" if self._changed.isdisjoint(phase.unless_done) else STALE

    def ended(self, phase: Phase, outcomes: PhaseOutcomes) -> None:
        """A phase that was begun is over, or goes on by itself."""
        results = {outcome.result for outcome in outcomes}
        if results & _CHANGED:
            self._changed.add(phase.name)
        if results - _FINE and phase.on_error is OnError.STOP_PLAN:
            self._goes_on = False


def ends_phase(phase: Phase, result: Result) -> bool:
    """Whether no further chain of the phase is begun after a write that ended so."""
    if phase.slow_start and result not in (Result.DONE, Result.DEFERRED):
        return True
    # A guard that failed in one chain says nothing against the others: each has guards of its own.
    return result in (Result.FAILED, Result.UNKNOWN) and phase.on_error is not OnError.CONTINUE


def together(phases: Sequence[Phase]) -> list[list[Phase]]:
    """The phases that begin at the same time."""
    groups: list[list[Phase]] = []
    for phase in phases:
        if phase.alongside and groups:
            groups[-1].append(phase)
        else:
            groups.append([phase])
    return groups


def not_begun(action: Action, result: Result, why: str) -> Outcome:
    return Outcome(action=action, result=result, error=why)


def skipped(chain: Chain, why: str) -> ChainOutcomes:
    return tuple(not_begun(action, Result.SKIPPED, why) for action in chain)


def skipped_phase(phase: Phase, why: str) -> PhaseOutcomes:
    return PhaseOutcomes(phase.name, tuple(skipped(chain, why) for chain in phase.chains))


def rest_of(chain: Chain, place: int) -> ChainOutcomes:
    """What becomes of the writes after the one at this place, which did not succeed."""
    action = chain[place]
    return skipped(chain[place + 1 :], f"not begun: {action.verb} of {action.target} did not succeed")
