"""Images of a DaemonSet's next revision, pulled ahead of the rollout (DS-80, DS-81)."""

from __future__ import annotations

import dataclasses

from kruise.api.native.apps import ControllerRevision
from kruise.inplace import predownload
from kruise.machinery.plan import Phase
from kruise.machinery.revision_names import short_hash
from kruise.workloads.daemonset.situation import Situation, worn_hash
from kruise.workloads.daemonset.status import Figures

GATE = "PreDownloadImageForDaemonSetUpdate"


def pull_images(situation: Situation, counted: Figures) -> tuple[Phase, ...]:
    """Before pods are replaced as well as before they are updated in place."""
    snapshot, daemon_set = situation.snapshot, situation.daemon_set
    if not predownload.is_on(snapshot.gates, served=snapshot.pull_jobs_served, gate=GATE):
        return ()
    if counted.updated == counted.desired:
        return predownload.cleanup(situation.owner, snapshot.pull_jobs).phases
    before, limits = _before(situation), situation.limits
    if not before or limits.is_on_delete or limits.partition >= counted.desired:
        return ()
    rollout = predownload.RolloutFacts(
        owner=situation.owner,
        current=before[0],
        older=tuple(before[1:]),
        update=situation.update,
        selector=daemon_set.spec.selector,
        replicas=counted.desired,
        updated_ready=0,
        updates_in_place=True,
        is_at_once=limits.partition == 0 and limits.unavailable >= counted.desired,
        can_be_in_place=lambda: True,
        too_few=0,
    )
    tuning = predownload.annotated_tuning(daemon_set.metadata.annotations, counted.desired)
    # Of pods that are updated and ready a DaemonSet asks nothing (DS-80).
    return predownload.pull_jobs(rollout, dataclasses.replace(tuning, min_updated_ready=0)).phases


def _before(situation: Situation) -> list[ControllerRevision]:
    """The revisions that pods still have beside the present one, the newest first: their nodes need what is new since
    then."""
    worn = {worn_hash(fact.pod) for fact in situation.facts}
    update = situation.update.metadata.name
    others = (item for item in reversed(situation.history) if item.metadata.name != update)
    return [item for item in others if short_hash(item.metadata.name) in worn]
