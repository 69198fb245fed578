"""Images of a DaemonSet's next revision, pulled ahead of the rollout (DS-80, DS-81)."""

from __future__ import annotations

from kruise.api.native.apps import ControllerRevision
from kruise.inplace import predownload
from kruise.machinery.plan import Phase
from kruise.workloads.daemonset.situation import Situation
from kruise.workloads.daemonset.status import Figures

GATE = "PreDownloadImageForDaemonSetUpdate"


def pull_images(situation: Situation, counted: Figures) -> tuple[Phase, ...]:
    """Before pods are replaced as well as before they are updated in place."""
    snapshot, daemon_set = situation.snapshot, situation.daemon_set
    if not predownload.is_on(snapshot.gates, served=snapshot.pull_jobs_served, gate=GATE):
        return ()
    if counted.updated == counted.desired:
        return predownload.cleanup(situation.owner, snapshot.pull_jobs).phases
    before = _before(situation)
    limits = situation.limits
    if before is None or limits.is_on_delete:
        return ()
    rollout = predownload.RolloutFacts(
        owner=situation.owner,
        current=before,
        update=situation.update,
        selector=daemon_set.spec.selector,
        replicas=counted.desired,
        updated_ready=0,
        updates_in_place=True,
        is_at_once=limits.partition == 0 and limits.unavailable >= counted.desired,
        can_be_in_place=lambda: True,
        too_few=0,
    )
    return predownload.pull_jobs(
        rollout, predownload.annotated_tuning(daemon_set.metadata.annotations, counted.desired)
    ).phases


def _before(situation: Situation) -> ControllerRevision | None:
    """The newest of the other revisions: nodes that have it need what is new since then."""
    update = situation.update.metadata.name
    return next((item for item in reversed(situation.history) if item.metadata.name != update), None)
