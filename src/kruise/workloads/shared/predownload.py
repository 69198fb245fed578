"""Images of a workload's next revision, pulled ahead of the rollout (IPU-150 to IPU-154)."""

from __future__ import annotations

from collections.abc import Iterable

from kruise.api.apps.shared import IN_PLACE_POLICIES
from kruise.api.meta import LabelSelector, PartialObject
from kruise.inplace import predownload
from kruise.inplace.difference import InPlaceOptions, compare
from kruise.inplace.predownload import Tuning
from kruise.inplace.state import UpdateSpec
from kruise.machinery.plan import Phase
from kruise.workloads.shared.situation import WorkloadSituation


def pull_images(
    situation: WorkloadSituation,
    *,
    jobs: Iterable[PartialObject],
    served: bool,
    selector: LabelSelector,
    replicas: int,
    updated_ready: int,
    policy: str,
    is_at_once: bool,
    options: InPlaceOptions,
    tuning: Tuning,
) -> tuple[Phase, ...]:
    """`jobs` are those that the workload controls; `served`: the cluster knows the kind; `policy` is podUpdatePolicy"""
    if not predownload.is_on(situation.gates, served=served):
        return ()
    if situation.is_at_one_revision:
        return predownload.cleanup(situation.owner, jobs).phases
    rollout = predownload.RolloutFacts(
        owner=situation.owner,
        current=situation.current,
        update=situation.update,
        selector=selector,
        replicas=replicas,
        updated_ready=updated_ready,
        updates_in_place=policy in IN_PLACE_POLICIES,
        is_at_once=is_at_once,
        can_be_in_place=lambda: isinstance(compare(situation.current, situation.update, options), UpdateSpec),
    )
    return predownload.pull_jobs(rollout, tuning).phases
