"""Images of a CloneSet's next revision, pulled ahead of the rollout; also while it is paused (CS-69)."""

from __future__ import annotations

from kruise.api.apps.shared import IN_PLACE_ONLY
from kruise.inplace.difference import InPlaceOptions
from kruise.inplace.predownload import tuning_of
from kruise.machinery.plan import Phase
from kruise.workloads.cloneset.numbers import updates_everything_at_once
from kruise.workloads.cloneset.situation import Situation
from kruise.workloads.shared import predownload


def pull_images(situation: Situation, updated_ready: int) -> tuple[Phase, ...]:
    snapshot, cloneset, rolling = situation.snapshot, situation.cloneset, situation.rolling
    policy = rolling.pod_update_policy if rolling is not None else ""
    strategy = rolling.in_place_update_strategy if rolling is not None else None
    return predownload.pull_images(
        situation,
        jobs=snapshot.pull_jobs,
        served=snapshot.pull_jobs_served,
        selector=cloneset.spec.selector,
        replicas=situation.replicas,
        updated_ready=updated_ready,
        policy=policy,
        is_at_once=updates_everything_at_once(cloneset.spec),
        options=InPlaceOptions.of(snapshot.gates, ignore_claim_templates=policy == IN_PLACE_ONLY),
        tuning=tuning_of(strategy, cloneset.metadata.annotations, situation.replicas),
    )
