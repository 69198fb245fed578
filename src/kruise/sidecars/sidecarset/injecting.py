"""The step of the pod chain that puts sidecars into new pods (SCS section 7, PW-19).

A pod that no SidecarSet concerns costs one look into an index.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any

from kruise.admission.chain import StepContext
from kruise.admission.decisions import Change, Deny, NeedsReads
from kruise.api.apps.sidecarset import NOT_UPDATE, PARTIAL, SIDECAR_SETS, SidecarSet
from kruise.api.native.apps import CONTROLLER_REVISIONS, ControllerRevision
from kruise.api.native.nodes import NAMESPACES, Namespace
from kruise.machinery import codec
from kruise.machinery.plan import Target
from kruise.machinery.store import Store
from kruise.sidecars.sidecarset.building import InjectionError, injected
from kruise.sidecars.sidecarset.content import Content, Json, content_of, recorded_content
from kruise.sidecars.sidecarset.matching import (
    REVISIONS_OF,
    applying,
    may_concern,
    needs_namespace,
    pinned,
    selecting,
    selects_pod,
    why_unpinned,
)

SORT_GATE = "EnableSortSidecarContainerByName"


class Injection:
    """`own_namespace` is where the revisions of SidecarSets are."""

    def __init__(self, own_namespace: str) -> None:
        self._own_namespace = own_namespace

    def __call__(self, pod: Json, context: StepContext) -> Change | Deny | NeedsReads | None:
        metadata = _mapping(pod.get("metadata"))
        labels = _mapping(metadata.get("labels"))
        view, namespace = context.view, context.namespace or "default"
        sets = view.store(SIDECAR_SETS)
        coming = (one for one in view.coming(SIDECAR_SETS) if not view.was_read(one.target))
        late = tuple(one.target for one in coming if may_concern(one, sets, labels))
        if late:
            return NeedsReads(targets=late, may_fail=True)  # the store has them once they are read (SCS-66)
        if not len(sets):
            return None
        around = view.store(NAMESPACES).get("", namespace)
        if around is None and needs_namespace(sets, labels):
            # A namespace is often a moment old when its first pods come: the store may not know it yet.
            target = Target(NAMESPACES, "", namespace)
            if not view.was_read(target):
                return NeedsReads(targets=(target,), may_fail=True)
            read = view.live(target)
            around = read if isinstance(read, Namespace) else None
        found = selecting(sets, labels, namespace, around.metadata.labels if around is not None else None)
        if not found or not _is_active(pod):
            return None
        chosen = applying(found, namespace)
        if not chosen:
            return None
        try:
            contents = [self.content_for(one, labels, view.store(CONTROLLER_REVISIONS), view.seed) for one in chosen]
            by_name = view.gates.get(SORT_GATE, False)
            return Change(object=injected(pod, contents, view.now, sorts_by_name=by_name))
        except InjectionError as error:
            return Deny(message=str(error), code=500, reason="InternalError")

    def content_for(
        self, sidecar_set: SidecarSet, labels: Mapping[str, str], revisions: Store[ControllerRevision], seed: int
    ) -> Content:
        """What a new pod with these labels gets of a SidecarSet (SCS-38 to SCS-43). Raises InjectionError."""
        present, wanted = content_of(sidecar_set), sidecar_set.spec.injection_strategy.revision
        if wanted is None:
            return present
        old = restored(sidecar_set, revisions, self._own_namespace)
        update = sidecar_set.spec.update_strategy
        if update.paused:
            return old
        if wanted.policy == PARTIAL:
            if not selects_pod(update.selector, labels):
                return old
            return old if draw(seed, sidecar_set.metadata.name) <= _share(update.partition) else present
        return updated(old, present) if _is_updated_at_once(sidecar_set, old, present, labels) else old


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _is_active(pod: Json) -> bool:
    phase = _mapping(pod.get("status")).get("phase")
    return phase not in ("Succeeded", "Failed") and not _mapping(pod.get("metadata")).get("deletionTimestamp")


def draw(seed: int, name: str) -> float:
    """A number from 0 to 1, another one for each request."""
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return int.from_bytes(digest[:7], "big") / 2**56


def _share(partition: int | str | None) -> float:
    """Only a percentage says which share of the new pods has the old content; a number says nothing of new pods."""
    if not isinstance(partition, str) or not partition.endswith("%"):
        return -1.0
    try:
        percent = float(partition[:-1])
    except ValueError:
        return -1.0
    return percent / 100 if percent > 0 else -1.0


def _is_updated_at_once(sidecar_set: SidecarSet, old: Content, new: Content, labels: Mapping[str, str]) -> bool:
    """Where nothing holds the update, a pod with the old content would be rewritten before it has started."""
    update, budget = sidecar_set.spec.update_strategy, sidecar_set.status.failure_budget
    return (
        update.type != NOT_UPDATE
        and update.partition in (None, 0, "0%")
        and selects_pod(update.selector, labels)
        and not (budget is not None and budget.failed)
        and old.hash_without_image == new.hash_without_image
    )


def updated(old: Content, present: Content) -> Content:
    """The old content as an update leaves it: with the present images and annotations. What updates never change stays
    old: init containers, volumes and pull secrets (SCS-107)."""
    return dataclasses.replace(
        old,
        containers=present.containers,
        patches=(*old.patches, *present.patches),
        hash=present.hash,
        revision=present.revision,
    )


def revision_for(
    sidecar_set: SidecarSet, revisions: Store[ControllerRevision], own_namespace: str
) -> ControllerRevision | None:
    """The revision that new pods are to get; None: there is no such one."""
    named = revisions.by_index(REVISIONS_OF, sidecar_set.metadata.name)
    return pinned(sidecar_set, (one for one in named if one.metadata.namespace == own_namespace))


def restored(sidecar_set: SidecarSet, revisions: Store[ControllerRevision], own_namespace: str) -> Content:
    """The content that new pods are to get. Raises InjectionError."""
    found, name = revision_for(sidecar_set, revisions, own_namespace), sidecar_set.metadata.name
    if found is None:
        why, remedy = why_unpinned(sidecar_set)
        raise InjectionError(f"{why}; {remedy}")
    try:
        return recorded_content(name, found.metadata.name, found.data, found.metadata.annotations)
    except codec.DecodeError as error:
        raise InjectionError(
            f"SidecarSet {name}: its revision {found.metadata.name} cannot be read ({error}): delete that revision"
        ) from error
