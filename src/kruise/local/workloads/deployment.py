"""Deployment: rolls ReplicaSets of one template after the other (decisions).

Sizes are worked out in `rollout`, the status in `deployment_status`. A pass may create the new ReplicaSet, resize some,
and delete those beyond the history limit; pods are the ReplicaSets' business.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from kruise.api.meta import NO_STRINGS
from kruise.local.workloads import deployment_status, rollout, templates
from kruise.local.workloads.objects import DEPLOYMENTS, REPLICA_SETS, Deployment, ReplicaSet
from kruise.local.workloads.pods import selector_of
from kruise.local.workloads.replicaset import is_namespace_end
from kruise.local.workloads.rollout import REVISION, REVISION_HISTORY, Group, Limits
from kruise.machinery import plan as plans
from kruise.machinery.client.requests import PatchType, Verb
from kruise.machinery.codec import Struct, to_builtins
from kruise.machinery.names import SUBDOMAIN_MAX
from kruise.machinery.ownership import Owner, adoption, claim, release
from kruise.machinery.plan import (
    Action,
    Conclusion,
    EventNote,
    EventType,
    OnError,
    Outcome,
    Outcomes,
    Phase,
    Plan,
    Result,
    Target,
    Wake,
    single,
)

_ROLLBACK_TO = "deprecated.deployment.rollback.to"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_NOT_COPIED = frozenset(
    {_LAST_APPLIED, REVISION, REVISION_HISTORY, rollout.DESIRED_REPLICAS, rollout.MAX_REPLICAS, _ROLLBACK_TO}
)
_HISTORY_LENGTH = 2000


class Snapshot(Struct):
    now: datetime
    deployment: Deployment
    replica_sets: tuple[ReplicaSet, ...]
    """Those that it controls."""
    orphans: tuple[ReplicaSet, ...]
    """Those that nobody controls, in its namespace."""
    busy: tuple[str, ...] = ()
    """Uids of the ReplicaSets that still have pods that are not finished; needed for Recreate only."""


@dataclasses.dataclass(slots=True)
class Rollout:
    """What a pass makes of the Deployment's ReplicaSets."""

    limits: Limits
    new: Group | None
    old: list[Group]
    resumes: bool = False
    """The whole status is written: no, a mere scaling or a pause estimates no progress."""
    superfluous: list[Group] = dataclasses.field(default_factory=list)

    @property
    def groups(self) -> list[Group]:
        return [*self.old, *([self.new] if self.new is not None else [])]

    @property
    def created(self) -> Group | None:
        return self.new if self.new is not None and self.new.known is None else None


def selects_all(deployment: Deployment) -> bool:
    selector = deployment.spec.selector
    return selector is not None and not selector.match_labels and not selector.match_expressions


def decide(snapshot: Snapshot) -> Plan:
    deployment = snapshot.deployment
    if selects_all(deployment):
        return Plan()
    owner = Owner.of(DEPLOYMENTS, deployment)
    claimed = claim(owner, (*snapshot.replica_sets, *snapshot.orphans), selector_of(deployment.spec.selector))
    phases: list[Phase] = []
    if claimed.to_adopt or claimed.to_release:
        chains = [adoption(owner, REPLICA_SETS, item) for item in claimed.to_adopt]
        chains += [(release(REPLICA_SETS, item, owner),) for item in claimed.to_release]
        phases.append(Phase(name="claim", chains=tuple(chains), on_error=OnError.STOP_PLAN))
    result = plan_rollout(snapshot)
    if result.created is not None:
        phases.append(single("create", _create(deployment, owner, result.created)))
    changed = [(group, rollout.changes(group)) for group in result.groups]
    resizes = [_resize(group, patch) for group, patch in changed if patch]
    if resizes:
        phases.append(single("resize", *resizes))
    if result.superfluous:
        removals = (
            plans.delete(Target.of(REPLICA_SETS, group.known), uid=group.uid, reason="beyond the history limit")
            for group in result.superfluous
            if group.known is not None
        )
        phases.append(single("history", *removals))
    return Plan(phases=tuple(phases))


def plan_rollout(snapshot: Snapshot) -> Rollout:
    """The groups with the sizes that they get in this pass."""
    deployment = snapshot.deployment
    owner = Owner.of(DEPLOYMENTS, deployment)
    claimed = claim(owner, (*snapshot.replica_sets, *snapshot.orphans), selector_of(deployment.spec.selector))
    groups = [Group.of(item) for item in (*claimed.owned, *claimed.to_adopt)]
    limits = Limits.of(deployment)
    new = _find_new(deployment, groups)
    old = [group for group in groups if group is not new]
    result = Rollout(limits, new, old)
    if new is not None:
        _sync_new(deployment, new, old)
    if owner.is_deleted:
        return result
    rolling = rollout.is_rolling(deployment)
    if deployment.spec.paused or rollout.is_scaling(groups, limits):
        rollout.scale(new, old, limits, rolling=rolling, actual=deployment.status.replicas)
        if deployment.spec.paused:
            result.superfluous = rollout.superfluous(old, deployment.spec.revision_history_limit)
        return result
    result.resumes = True
    if rolling:
        result.new = new = new or _new_group(deployment, old, limits)
        before = [group.size for group in result.groups]
        rollout.roll(new, old, limits)
        moved = before != [group.size for group in result.groups]
    else:
        moved = _recreate(snapshot, result)
    if not moved and deployment_status.is_complete(deployment, deployment.status, limits.replicas):
        result.superfluous = rollout.superfluous(old, deployment.spec.revision_history_limit)
    return result


def _recreate(snapshot: Snapshot, result: Rollout) -> bool:
    """Down with the old, then up with the new; whether anything moved or is waited for."""
    if rollout.recreate_down(result.old, result.limits):
        return True
    new_uid = result.new.uid if result.new is not None else ""
    still_there = any(group.known is not None and group.known.status.replicas > 0 for group in result.old)
    if still_there or any(uid != new_uid for uid in snapshot.busy):
        return True
    if result.new is None:
        result.new = _new_group(snapshot.deployment, result.old, result.limits)
        return True
    return rollout.resize(result.new, result.limits.replicas, result.limits)


def _find_new(deployment: Deployment, groups: list[Group]) -> Group | None:
    """The oldest ReplicaSet with the Deployment's template."""
    wanted = templates.identity(deployment.spec.template)
    for group in sorted(groups, key=lambda group: group.age_order):
        if group.known is not None and templates.identity(group.known.spec.template) == wanted:
            return group
    return None


def _sync_new(deployment: Deployment, new: Group, old: list[Group]) -> None:
    """Annotations, revision and minReadySeconds of the ReplicaSet that has the current template."""
    new.min_ready_seconds = deployment.spec.min_ready_seconds
    for key, text in deployment.metadata.annotations.items():
        if key not in _NOT_COPIED:
            new.annotations[key] = text
    current, next_one = new.revision, _next_revision(old)
    if current is None or current >= next_one:
        return
    before = new.annotations.get(REVISION)
    new.annotations[REVISION] = str(next_one)
    if before is not None:
        _remember(new, before)


def _next_revision(old: list[Group]) -> int:
    return 1 + max((group.revision or 0 for group in old), default=0)


def _remember(group: Group, revision: str) -> None:
    """A revision that a ReplicaSet had before it was rolled back to; the oldest are forgotten."""
    known = [item for item in group.annotations.get(REVISION_HISTORY, "").split(",") if item]
    known.append(revision)
    while len(",".join(known)) > _HISTORY_LENGTH and len(known) > 1:
        known.pop(0)
    group.annotations[REVISION_HISTORY] = ",".join(known)


def _new_group(deployment: Deployment, old: list[Group], limits: Limits) -> Group:
    suffix = f"-{_hash(deployment)}"
    rolling = rollout.is_rolling(deployment)
    copied = {key: text for key, text in deployment.metadata.annotations.items() if key not in _NOT_COPIED}
    return Group(
        name=deployment.metadata.name[: SUBDOMAIN_MAX - len(suffix)] + suffix,
        known=None,
        size=rollout.first_size(old, limits, rolling=rolling),
        annotations={**copied, REVISION: str(_next_revision(old)), **limits.annotations()},
        min_ready_seconds=deployment.spec.min_ready_seconds,
    )


def _hash(deployment: Deployment) -> str:
    return templates.template_hash(deployment.spec.template, deployment.status.collision_count)


def _create(deployment: Deployment, owner: Owner, group: Group) -> Action:
    label = {templates.TEMPLATE_HASH: _hash(deployment)}
    template = templates.parse(deployment.spec.template)
    metadata = dict(template.get("metadata") or {})
    labels = {**(metadata.get("labels") or {}), **label}
    template["metadata"] = {**metadata, "labels": labels}
    spec: dict[str, Any] = {"replicas": group.size, "selector": _selector(deployment, label), "template": template}
    if group.min_ready_seconds:
        spec["minReadySeconds"] = group.min_ready_seconds
    body = {
        "apiVersion": REPLICA_SETS.api_version,
        "kind": REPLICA_SETS.kind,
        "metadata": {
            "name": group.name,
            "namespace": owner.namespace,
            "labels": labels,
            "annotations": group.annotations,
            "ownerReferences": [owner.reference()],
        },
        "spec": spec,
    }
    return plans.create(REPLICA_SETS, body, reason="no ReplicaSet has this template", owner_uid=owner.uid)


def _selector(deployment: Deployment, label: Mapping[str, str]) -> dict[str, Any]:
    given = to_builtins(deployment.spec.selector) if deployment.spec.selector is not None else {}
    return {**given, "matchLabels": {**given.get("matchLabels", NO_STRINGS), **label}}


def _resize(group: Group, patch: dict[str, Any]) -> Action:
    assert group.known is not None
    reason = f"from {group.size_before} to {group.size}" if group.size != group.size_before else "metadata"
    return plans.patch(Target.of(REPLICA_SETS, group.known), patch, uid=group.uid, reason=reason)


# After the writes


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    deployment = snapshot.deployment
    if selects_all(deployment):
        return _nothing_selected(deployment)
    result = plan_rollout(snapshot)
    creation = next((item for item in outcomes if _is_creation(item)), None)
    facts = deployment_status.Facts(
        deployment=deployment,
        replicas=result.limits.replicas,
        fewest=result.limits.fewest,
        groups=_as_written(result, outcomes),
        new=result.new,
        estimates_progress=result.resumes,
        created=creation is not None and creation.result is Result.DONE and not _collides(snapshot, creation),
        creation_error=creation.error if creation is not None and _is_refused(creation) else "",
        collides=creation is not None and _collides(snapshot, creation),
        now=snapshot.now,
    )
    status = deployment_status.work_out(facts)
    annotations = _revision(deployment, facts)
    write = None
    if status != deployment.status or annotations:
        write = _write(deployment, deployment_status.to_json(status), annotations)
    wakes: tuple[Wake, ...] = ()
    after = deployment_status.next_progress_check(deployment, status, result.limits.replicas, snapshot.now)
    if after is not None and result.resumes:
        wakes = (Wake(after=after, reason="the deadline for progress"),)
    return Conclusion(
        status=write,
        events=_events(result, outcomes, facts),
        wakes=wakes,
        retry="another ReplicaSet has this name" if facts.collides else "",
    )


def _nothing_selected(deployment: Deployment) -> Conclusion:
    message = "This deployment is selecting all pods. A non-empty selector is required."
    note = EventNote(reason="SelectingAll", message=message, type=EventType.WARNING)
    write = None
    if deployment.status.observed_generation < deployment.metadata.generation:
        status = {"observedGeneration": deployment.metadata.generation}
        target = Target.of(DEPLOYMENTS, deployment)
        write = plans.status_patch(target, status, uid=deployment.metadata.uid, reason="seen")
    return Conclusion(status=write, events=(note,))


def _is_creation(outcome: Outcome) -> bool:
    return outcome.action.verb is Verb.CREATE and outcome.action.target.resource is REPLICA_SETS


def _is_refused(outcome: Outcome) -> bool:
    return outcome.result is Result.FAILED and outcome.error_reason != "AlreadyExists" and not is_namespace_end(outcome)


def _collides(snapshot: Snapshot, creation: Outcome) -> bool:
    """The name is taken by a ReplicaSet with another template, or of another owner: two templates have one hash."""
    if creation.result is Result.FAILED:
        return creation.error_reason == "AlreadyExists"
    made = creation.object
    if creation.result is not Result.DONE or made is None:
        return False
    return templates.identity(made.spec.template) != templates.identity(snapshot.deployment.spec.template)


def _as_written(result: Rollout, outcomes: Outcomes) -> list[Group]:
    """The groups; one whose resize did not succeed keeps the size it had."""
    missed = {item.action.uid for item in outcomes if item.action.uid and item.result is not Result.DONE}
    missed_new = any(_is_creation(item) and item.result is not Result.DONE for item in outcomes)
    groups = []
    for group in result.groups:
        if group.known is None and missed_new:
            continue
        groups.append(Group.of(group.known) if group.known is not None and group.uid in missed else group)
    return groups


def _revision(deployment: Deployment, facts: deployment_status.Facts) -> dict[str, str]:
    """The revision that the Deployment should carry and does not."""
    new = facts.new
    if new is None or (new.known is None and not facts.created):
        return {}
    revision = new.annotations.get(REVISION, "")
    return {} if deployment.metadata.annotations.get(REVISION) == revision else {REVISION: revision}


def _write(deployment: Deployment, status: Mapping[str, Any], annotations: Mapping[str, str]) -> Action:
    operations: list[dict[str, Any]] = []
    if annotations and not deployment.metadata.annotations:
        operations.append({"op": "add", "path": "/metadata/annotations", "value": dict(annotations)})
    else:
        for key, text in annotations.items():
            path = "/metadata/annotations/" + key.replace("~", "~0").replace("/", "~1")
            operations.append({"op": "add", "path": path, "value": text})
    operations.append({"op": "add", "path": "/status", "value": status})
    return plans.patch(
        Target.of(DEPLOYMENTS, deployment),
        operations,
        uid=deployment.metadata.uid,
        reason="the status changed",
        patch_type=PatchType.JSON,
        subresource="status",
    )


def _events(result: Rollout, outcomes: Outcomes, facts: deployment_status.Facts) -> tuple[EventNote, ...]:
    notes: list[EventNote] = []
    sizes = {group.uid: group for group in result.groups if group.known is not None}
    for item in outcomes:
        if _is_creation(item):
            if facts.created and result.new is not None and result.new.size > 0:
                notes.append(_scaled(result.new.name, 0, result.new.size))
            elif facts.creation_error:
                message = f'Failed to create new replica set "{item.action.target.name}": {item.error}'
                notes.append(EventNote(reason="ReplicaSetCreateError", message=message, type=EventType.WARNING))
        elif item.result is Result.DONE and item.action.verb is Verb.PATCH:
            group = sizes.get(item.action.uid)
            if group is not None and group.size != group.size_before:
                notes.append(_scaled(group.name, group.size_before, group.size))
    return tuple(notes)


def _scaled(name: str, before: int, after: int) -> EventNote:
    direction = "up" if after > before else "down"
    message = f"Scaled {direction} replica set {name} from {before} to {after}"
    return EventNote(reason="ScalingReplicaSet", message=message)
