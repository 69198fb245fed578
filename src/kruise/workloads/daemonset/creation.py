"""New pods of a DaemonSet: each names the one node that it is for (DS-46, DS-47)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kruise.api.apps.shared import IN_PLACE_IF_POSSIBLE
from kruise.api.native.daemon_pods import GENERATION_LABEL, bound_for, template_generation, with_tolerations
from kruise.api.native.pod import PODS
from kruise.inplace import keys
from kruise.machinery import names
from kruise.machinery import plan as plans
from kruise.machinery.plan import Action
from kruise.machinery.revision_names import short_hash
from kruise.workloads.daemonset.situation import Situation
from kruise.workloads.shared.blueprint import PodBlueprint

NO_SCHEDULER = "kubernetes.io/daemonset-controller"
"""The scheduler's name of pods that need none."""


def revision_labels(revision: str) -> dict[str, str]:
    """The label that tells a pod's revision: the hash alone (DS-46, DS-66)."""
    return {keys.REVISION_LABEL: short_hash(revision)}


def create_pods(situation: Situation, nodes: Iterable[str]) -> list[Action]:
    """A pod of the newest template for each of the nodes (DS-42)."""
    wanted = list(nodes)
    if not wanted:
        return []
    owner, update = situation.owner, situation.update.metadata.name
    labels = revision_labels(update)
    if generation := template_generation(situation.daemon_set.metadata):
        labels[GENERATION_LABEL] = generation
    rolling = situation.rolling
    blueprint = PodBlueprint.of(
        situation.templates[update],
        owner,
        labels=labels,
        state_since=None,
        in_place_gate=rolling is not None and rolling.rolling_update_type == IN_PLACE_IF_POSSIBLE,
    )
    spec = with_tolerations(blueprint.spec)
    prefix = f"{owner.name}-"
    taken = [pod.metadata.name for pod in situation.snapshot.pods]
    chosen = names.choose_names(prefix, len(wanted), owner_uid=owner.uid, seed=situation.snapshot.seed, taken=taken)
    return [
        plans.create(
            PODS,
            blueprint.pod(name, labels={}, spec=_for_node(spec, node, by_scheduler=situation.snapshot.by_scheduler)),
            reason=f"node {node} should have a pod of this revision",
            owner_uid=owner.uid,
        )
        for node, name in zip(wanted, chosen, strict=True)
    ]


def _for_node(spec: Mapping[str, Any], node: str, *, by_scheduler: bool) -> Mapping[str, Any]:
    if by_scheduler:
        return bound_for(spec, node)
    return {**spec, "nodeName": node, "schedulerName": NO_SCHEDULER}
