"""Images of a CloneSet's next revision, pulled ahead of the rollout."""

from __future__ import annotations

from kruise.api.apps.shared import IN_PLACE_ONLY, IN_PLACE_POLICIES
from kruise.inplace import predownload
from kruise.inplace.difference import InPlaceOptions, compare
from kruise.inplace.state import UpdateSpec
from kruise.machinery.plan import Phase
from kruise.workloads.cloneset.numbers import updates_everything_at_once
from kruise.workloads.cloneset.situation import Situation


def pull_images(situation: Situation, updated_ready: int) -> tuple[Phase, ...]:
    """IPU-150 to IPU-154; also while the rollout is paused (CS-69)."""
    snapshot, cloneset = situation.snapshot, situation.cloneset
    if not predownload.is_on(snapshot.gates, served=snapshot.pull_jobs_served):
        return ()
    if situation.is_at_one_revision:
        return predownload.cleanup(situation.owner, snapshot.pull_jobs).phases
    rolling = situation.rolling
    policy = rolling.pod_update_policy if rolling is not None else ""
    options = InPlaceOptions.of(snapshot.gates, ignore_claim_templates=policy == IN_PLACE_ONLY)
    rollout = predownload.RolloutFacts(
        owner=situation.owner,
        current=situation.current,
        update=situation.update,
        selector=cloneset.spec.selector,
        replicas=situation.replicas,
        updated_ready=updated_ready,
        updates_in_place=policy in IN_PLACE_POLICIES,
        is_at_once=updates_everything_at_once(cloneset.spec),
        can_be_in_place=lambda: isinstance(compare(situation.current, situation.update, options), UpdateSpec),
    )
    strategy = rolling.in_place_update_strategy if rolling is not None else None
    return predownload.pull_jobs(
        rollout, predownload.tuning_of(strategy, cloneset.metadata.annotations, situation.replicas)
    ).phases
