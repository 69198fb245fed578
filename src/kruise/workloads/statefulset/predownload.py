"""Images of a StatefulSet's next revision, pulled ahead of the rollout (ST-110)."""

from __future__ import annotations

from kruise.inplace.difference import InPlaceOptions
from kruise.inplace.predownload import annotated_tuning
from kruise.machinery.plan import Phase
from kruise.workloads.shared import predownload
from kruise.workloads.statefulset.limits import strategy_of
from kruise.workloads.statefulset.situation import Situation


def pull_images(situation: Situation, updated_ready: int) -> tuple[Phase, ...]:
    snapshot, limits = situation.snapshot, situation.limits
    spec, metadata = situation.statefulset.spec, situation.statefulset.metadata
    return predownload.pull_images(
        situation,
        jobs=snapshot.pull_jobs,
        served=snapshot.pull_jobs_served,
        selector=spec.selector,
        replicas=situation.replicas,
        updated_ready=updated_ready,
        policy="" if limits.is_on_delete else strategy_of(spec).pod_update_policy,
        is_at_once=limits.partition == 0 and limits.max_unavailable >= situation.replicas,
        options=InPlaceOptions.of(snapshot.gates),
        tuning=annotated_tuning(metadata.annotations, situation.replicas),
    )
