"""What a pass over a SidecarSet sees, and what follows from it before anything is decided."""

from __future__ import annotations

import dataclasses
from datetime import datetime

from kruise.api.apps.sidecarset import NOT_UPDATE, SIDECAR_SETS, SidecarSet
from kruise.api.native.apps import ControllerRevision
from kruise.api.native.pod import Pod, is_active
from kruise.api.policy.podunavailablebudget import PodUnavailableBudget
from kruise.machinery import revisions
from kruise.machinery.codec import Struct, field
from kruise.machinery.ownership import Owner
from kruise.machinery.revisions import Choice
from kruise.machinery.selectors import SelectorError, from_label_selector
from kruise.sidecars.sidecarset import keys
from kruise.sidecars.sidecarset.amounts import partition_of, pods_of
from kruise.sidecars.sidecarset.content import Content, content_of, revision_data
from kruise.sidecars.sidecarset.facts import SidecarFacts, facts_of, injected_sets, is_managed
from kruise.sidecars.sidecarset.matching import belongs_to, is_empty, selects_pod


class Snapshot(Struct, kw_only=True):
    sidecar_set: SidecarSet
    pods: tuple[Pod, ...] = ()
    """Pods that name it among the SidecarSets whose sidecars they have."""
    namespaces: dict[str, dict[str, str]] = field(default_factory=dict)
    """The labels of the namespaces that these pods are in, where it selects namespaces."""
    revisions: tuple[ControllerRevision, ...] = ()
    """Those that carry its name."""
    budgets: tuple[PodUnavailableBudget, ...] = ()
    """Those that these pods name."""
    own_namespace: str = ""
    gates: dict[str, bool] = field(default_factory=dict)
    now: datetime


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the update strategy comes to, in pods."""

    partition: int = 0
    unavailable: int = 1
    is_paused: bool = False
    is_rolling: bool = True


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    snapshot: Snapshot
    sidecar_set: SidecarSet
    content: Content
    """The present one, with the name of its revision."""
    choice: Choice
    history: tuple[ControllerRevision, ...]
    facts: tuple[SidecarFacts, ...]
    limits: Limits

    @property
    def now(self) -> datetime:
        return self.snapshot.now


def limits_of(sidecar_set: SidecarSet, matched: int) -> Limits:
    """SCS-93, SCS-94."""
    strategy = sidecar_set.spec.update_strategy
    return Limits(
        partition=partition_of(strategy.partition, matched),
        unavailable=pods_of(1 if strategy.max_unavailable is None else strategy.max_unavailable, matched, default=1),
        is_paused=strategy.paused,
        is_rolling=strategy.type != NOT_UPDATE,
    )


def situation_of(snapshot: Snapshot) -> Situation:
    sidecar_set = snapshot.sidecar_set
    history, choice = _revisions(snapshot)
    content = dataclasses.replace(content_of(sidecar_set), revision=choice.revision.metadata.name)
    selector = sidecar_set.spec.update_strategy.selector
    facts = tuple(
        facts_of(pod, content, is_selected=selects_pod(selector, pod.metadata.labels))
        for pod in managed_pods(snapshot, content)
    )
    return Situation(
        snapshot=snapshot,
        sidecar_set=sidecar_set,
        content=content,
        choice=choice,
        history=tuple(history),
        facts=facts,
        limits=limits_of(sidecar_set, len(facts)),
    )


def managed_pods(snapshot: Snapshot, content: Content) -> list[Pod]:
    """SCS-63."""
    spec, name = snapshot.sidecar_set.spec, snapshot.sidecar_set.metadata.name
    if is_empty(spec.selector):
        return []
    try:
        selector = from_label_selector(spec.selector)
        around = from_label_selector(spec.namespace_selector) if spec.namespace_selector is not None else None
    except SelectorError:
        return []
    chosen = {key for key, labels in snapshot.namespaces.items() if around is not None and around.matches(labels)}
    return [
        pod
        for pod in snapshot.pods
        if is_active(pod)
        and name in injected_sets(pod)
        and (around is None or pod.metadata.namespace in chosen)
        and selector.matches(pod.metadata.labels)
        and is_managed(pod, content)
    ]


def _revisions(snapshot: Snapshot) -> tuple[list[ControllerRevision], Choice]:
    """SCS-70 to SCS-74: in the namespace of the manager, whatever the pods' namespaces are."""
    sidecar_set = snapshot.sidecar_set
    metadata = sidecar_set.metadata
    owner = Owner(SIDECAR_SETS, snapshot.own_namespace, metadata.name, metadata.uid)
    history = revisions.in_order(one for one in snapshot.revisions if belongs_to(one, sidecar_set))
    labels = {**metadata.labels, keys.NAME_LABEL: metadata.name}
    if sidecar_set.spec.custom_version:
        labels[keys.CUSTOM_VERSION] = sidecar_set.spec.custom_version
    choice = revisions.choose(
        owner,
        history,
        revision_data(sidecar_set),
        labels=labels,
        annotations={**metadata.annotations},
        collision_count=sidecar_set.status.collision_count,
        others=snapshot.revisions,
    )
    return history, choice
