"""Outcomes of plans that nobody carried out."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kruise.machinery.plan import Action, Outcome, Outcomes, PhaseOutcomes, Plan


def carried_out(plan: Plan, write: Callable[[Action], Outcome]) -> Outcomes:
    """Every action of a plan, one after the other, whatever becomes of those before."""
    return grouped(plan, (write(action) for action in plan.actions()))


def grouped(plan: Plan, outcomes: Iterable[Outcome]) -> Outcomes:
    """By phase and chain: one for each action, in plan order."""
    remaining = iter(outcomes)
    phases = tuple(
        PhaseOutcomes(phase.name, tuple(tuple(next(remaining) for _ in chain) for chain in phase.chains))
        for phase in plan.phases
    )
    assert next(remaining, None) is None, "more outcomes than actions"
    return Outcomes(phases)
