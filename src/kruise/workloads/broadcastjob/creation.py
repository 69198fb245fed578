"""New pods of a BroadcastJob: each names the one node that it is for (BJ-55 to BJ-59).

The name of a pod follows from the job and the node. So a create whose answer was lost, by this manager or by one that
is gone, is the same create when it is tried again: no node ever gets two pods.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from kruise.api.apps.broadcastjob import BROADCAST_JOBS, NAME_LABEL, UID_LABEL, BroadcastJob
from kruise.api.native.daemon_pods import bound_for
from kruise.api.native.pod import PODS
from kruise.machinery import names
from kruise.machinery import plan as plans
from kruise.machinery.codec import decode
from kruise.machinery.ownership import Owner
from kruise.machinery.plan import Action
from kruise.workloads.shared.blueprint import PodBlueprint


def create_pods(job: BroadcastJob, nodes: Iterable[str], *, taken: Collection[str], by_scheduler: bool) -> list[Action]:
    """A pod for each of the nodes. `taken` are names that pods have."""
    owner = Owner.of(BROADCAST_JOBS, job)
    blueprint = PodBlueprint.of(
        _template(job),
        owner,
        labels={NAME_LABEL: owner.name, UID_LABEL: owner.uid},
        state_since=None,
        in_place_gate=False,
    )
    used = set(taken)
    found = []
    for node in nodes:
        name = _name_for(owner, node, used)
        used.add(name)
        spec = _for_node(blueprint.spec, node, by_scheduler=by_scheduler)
        reason = f"the job has not run on node {node}"
        found.append(plans.create(PODS, blueprint.pod(name, labels={}, spec=spec), reason=reason, owner_uid=owner.uid))
    return found


def _name_for(owner: Owner, node: str, used: Collection[str]) -> str:
    attempt = 0
    while True:
        name = names.child_name(f"{owner.name}-", names.derived_suffix(owner.uid, node, attempt))
        if name not in used:
            return name
        attempt += 1


def _for_node(spec: Mapping[str, Any], node: str, *, by_scheduler: bool) -> Mapping[str, Any]:
    return bound_for(spec, node) if by_scheduler else {**spec, "nodeName": node}


def _template(job: BroadcastJob) -> dict[str, Any]:
    """A node that the template names is no filter, and does not bind the pods either (BJ-24)."""
    template = decode(job.spec.template, dict[str, Any])
    spec = template.get("spec") or {}
    return {**template, "spec": {name: value for name, value in spec.items() if name != "nodeName"}}
