"""What a CloneSet needs, decided from a snapshot (CS-63 to CS-69).

The phases in order: the revision of the template, pods that are let go, claims that are cleaned up, images pulled
ahead, scaling, updating (only if scaling changed nothing), beside them pods under way, and the bookkeeping in the end.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from kruise.inplace import keys
from kruise.machinery.plan import OnError, Phase, Plan, single
from kruise.machinery.revisions import truncate
from kruise.workloads.cloneset import scale, update
from kruise.workloads.cloneset.claims import clean_claims
from kruise.workloads.cloneset.predownload import pull_images
from kruise.workloads.cloneset.situation import Situation, Snapshot, situation_of
from kruise.workloads.cloneset.status import figures


def decide(snapshot: Snapshot) -> Plan:
    situation = situation_of(snapshot)
    notes: dict[str, Any] = {"figures": figures(situation)}
    if situation.owner.is_deleted:
        return Plan(notes=notes)
    scaling = scale.scale(situation)
    updating = update.update(situation, touched=scaling.touched)
    phases = (
        _revision(situation),
        scale.release(situation),
        clean_claims(situation),
        *pull_images(situation, notes["figures"].updated_ready),
        *_pods(scaling.phase, updating),
        update.spec_write(situation),
        _history(situation),
    )
    notes["events"] = scaling.notes
    notes["update_error"] = updating.error
    notes["moves"] = updating.moves
    notes["target_revision"] = updating.target.metadata.name
    return Plan(
        phases=tuple(phase for phase in phases if phase is not None and phase.chains),
        held=(*scaling.held, *updating.held),
        wakes=updating.wakes,
        notes=notes,
    )


def _pods(scaling: Phase | None, updating: update.UpdateStep) -> tuple[Phase, ...]:
    """Pods under way are refreshed while others are made, deleted or moved: neither has to wait for the other."""
    if scaling is not None:
        return scaling, dataclasses.replace(updating.refresh, alongside=True), updating.update
    if updating.update.chains:
        return updating.update, dataclasses.replace(updating.refresh, alongside=True)
    return (updating.refresh,)


def _revision(situation: Situation) -> Phase | None:
    action = situation.choice.action
    return single("revision", action) if action is not None else None


def _history(situation: Situation) -> Phase:
    """Revisions that nothing uses any more (IPU-19). Terminating pods keep theirs: they may still be looked at."""
    pods = [*(fact.pod for fact in situation.facts), *situation.inactive]
    deletes = truncate(
        situation.history,
        keep={situation.current.metadata.name, situation.update.metadata.name},
        pod_labels=[pod.metadata.labels.get(keys.REVISION_LABEL, "") for pod in pods],
        limit=situation.cloneset.spec.revision_history_limit,
    )
    return single("history", *deletes, on_error=OnError.CONTINUE)
