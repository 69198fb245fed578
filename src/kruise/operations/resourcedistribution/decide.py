"""What a distribution needs, decided from a snapshot (RD-33, RD-34). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kruise.api.apps.resourcedistribution import (
    RESOURCE_DISTRIBUTIONS,
    DistributionCondition,
    ResourceDistribution,
)
from kruise.api.meta import ObjectMeta
from kruise.api.native.nodes import NAMESPACES
from kruise.api.resource import Resource
from kruise.machinery import plan as plans
from kruise.machinery.causes import Cause
from kruise.machinery.client.requests import PatchType
from kruise.machinery.codec import Struct
from kruise.machinery.plan import Action, Held, OnError, Phase, Plan, Target
from kruise.machinery.wording import listed
from kruise.operations.resourcedistribution import content
from kruise.operations.resourcedistribution.causes import CONFLICT, COPY_REFUSED, NO_NAMESPACE, NO_TARGETS, UNFIT
from kruise.operations.resourcedistribution.snapshot import FROM, HASH, Copy, Snapshot
from kruise.operations.resourcedistribution.targets import wanted

CREATE, UPDATE, DELETE = "create", "update", "delete"
CREATE_FAILED, UPDATE_FAILED = "CreateResourceFailed", "UpdateResourceFailed"


class Memo(Struct):
    """What was found, by namespace."""

    desired: int = 0
    kept: int = 0
    """Copies that are as they should be."""
    conflicts: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unfit: tuple[str, ...] = ()
    """Targets for which there is nothing that could be copied; `problem` says why."""
    problem: str = ""


def decide(snapshot: Snapshot) -> Plan:
    distribution = snapshot.distribution
    if distribution.metadata.deletion_timestamp is not None:
        return Plan()  # its copies go with it, and must not come back meanwhile (RD-75)
    template = content.read(distribution.spec.resource)
    kind, name, problem = content.kind_of(template), content.name_of(template), content.problem_of(template)
    if kind is None or problem:
        return _unfit(snapshot, problem)
    return _Distributing(snapshot, kind, name, template).plan()


class _Distributing:
    def __init__(self, snapshot: Snapshot, kind: Resource[Any], name: str, template: Mapping[str, Any]) -> None:
        self._distribution = snapshot.distribution
        self._kind = kind
        self._name = name
        self._metadata: Mapping[str, Any] = template["metadata"]
        self._content = content.content_of(template)
        self._places = {place.name: place for place in snapshot.places}
        self._copies = {copy.namespace: copy for copy in snapshot.copies}
        self._targets = _targets(snapshot)
        self._marks = {
            FROM: snapshot.distribution.metadata.name,
            HASH: content.hash_of(snapshot.distribution.spec.resource),
        }

    def plan(self) -> Plan:
        creations: list[Action] = []
        updates: list[Action] = []
        held: list[Held] = []
        conflicts: list[str] = []
        missing: list[str] = []
        kept = 0
        refused = _refused(self._distribution)
        for namespace in self._targets:
            place, copy = self._places.get(namespace), self._copies.get(namespace)
            if place is None or place.is_going:
                missing.append(namespace)
                held.append(self._held(Target(NAMESPACES, "", namespace), _no_namespace(namespace, place is not None)))
            elif copy is None:
                creations.append(self._creation(namespace))
                held += self._refused(namespace, refused)
            elif not self._owns(copy) and not self._is_lost(copy):
                conflicts.append(namespace)
                held.append(self._held(Target(self._kind, namespace, self._name), self._conflict(copy)))
            elif copy.differs or not self._owns(copy):
                updates.append(self._update(copy))
                held += self._refused(namespace, refused)
            else:
                kept += 1
        phases = (
            plans.single(CREATE, *creations, on_error=OnError.CONTINUE),
            plans.single(UPDATE, *updates, on_error=OnError.CONTINUE),
            plans.single(DELETE, *self._deletions(), on_error=OnError.CONTINUE),
        )
        if not self._targets:
            remedy = "compare spec.targets with the namespaces: kubectl get namespaces --show-labels"
            none = NO_TARGETS.cause("spec.targets chooses no namespace that there is", remedy=remedy)
            held.append(self._held(Target.of(RESOURCE_DISTRIBUTIONS, self._distribution), none))
        memo = Memo(desired=len(self._targets), kept=kept, conflicts=tuple(conflicts), missing=tuple(missing))
        return Plan(phases=_with_chains(phases), held=tuple(held), memo=memo)

    def _owns(self, copy: Copy) -> bool:
        return copy.owner_uid == self._distribution.metadata.uid

    def _is_lost(self, copy: Copy) -> bool:
        """Somebody took the owner reference off, and our marks are still there: in a target it is taken back."""
        return not copy.owner_uid and copy.annotations.get(FROM) == self._marks[FROM] and HASH in copy.annotations

    def _held(self, target: Target, cause: Cause) -> Held:
        return Held(target=target, causes=(cause,))

    def _refused(self, namespace: str, refused: Mapping[str, DistributionCondition]) -> list[Held]:
        """It is tried again, with back-off; what the last try met is worth telling meanwhile. Once for all namespaces
        of which the same was said."""
        if namespace not in refused:
            return []
        said = refused[namespace]
        where = said.failed_namespaces
        remedy = "change spec.resource, or what refuses it: a quota, a webhook"
        if said.type == UPDATE_FAILED:
            again = f"kubectl delete {self._kind.kind.lower()} {self._name} -n {where[0]}"
            remedy += f"; a copy that cannot be changed is made anew when it is deleted: {again}"
        cause = COPY_REFUSED.cause(f"in {listed(where)}: {said.reason}", remedy=remedy)
        return [self._held(Target(self._kind, namespace, self._name), cause)]

    def _conflict(self, copy: Copy) -> Cause:
        what = f"{self._kind.kind} {self._name}"
        where = f"kubectl delete {self._kind.kind.lower()} {self._name} -n {copy.namespace}"
        if copy.owner.startswith("ResourceDistribution "):
            message = f"{what} in {copy.namespace} is the copy of another distribution: {copy.owner}"
            return CONFLICT.cause(message, remedy=f"leave {copy.namespace} out of one of the two")
        message = f"{what} in {copy.namespace} is not a copy of this distribution"
        if copy.owner:
            message += f" but belongs to {copy.owner}"
        return CONFLICT.cause(message, remedy=f"exclude the namespace, or make room: {where}")

    def _creation(self, namespace: str) -> Action:
        """RD-36."""
        body = {
            "apiVersion": self._kind.api_version,
            "kind": self._kind.kind,
            "metadata": {
                "name": self._name,
                "namespace": namespace,
                **self._metadata_of(self._metadata.get("labels") or {}, self._metadata.get("annotations") or {}),
            },
            **self._content,
        }
        if finalizers := self._metadata.get("finalizers"):
            body["metadata"]["finalizers"] = list(finalizers)
        uid = self._distribution.metadata.uid
        return plans.create(self._kind, body, reason="the namespace has no copy", owner_uid=uid)

    def _update(self, copy: Copy) -> Action:
        """RD-37: labels and annotations that others have put there stay, all else becomes as the template says."""
        metadata = self._metadata_of(
            {**copy.labels, **(self._metadata.get("labels") or {})},
            {**copy.annotations, **(self._metadata.get("annotations") or {})},
        )
        finalizers = sorted({*copy.finalizers, *(self._metadata.get("finalizers") or ())})
        if finalizers:
            metadata["finalizers"] = finalizers
        steps = [{"op": "add", "path": f"/metadata/{name}", "value": value} for name, value in metadata.items()]
        steps += [{"op": "add", "path": f"/{name}", "value": value} for name, value in self._content.items()]
        steps += [{"op": "remove", "path": f"/{name}"} for name in copy.fields if name not in self._content]
        return plans.patch(
            Target(self._kind, copy.namespace, self._name),
            steps,
            uid=copy.uid,
            # Labels and finalizers are written whole: what somebody adds meanwhile must not be lost.
            resource_version=copy.resource_version,
            patch_type=PatchType.JSON,
            reason="the copy differs" if self._owns(copy) else "the copy lost its owner reference",
        )

    def _metadata_of(self, labels: Mapping[str, str], annotations: Mapping[str, str]) -> dict[str, Any]:
        found: dict[str, Any] = {"annotations": {**annotations, **self._marks}}
        if labels:
            found["labels"] = dict(labels)
        found["ownerReferences"] = [_reference(self._distribution.metadata)]
        return found

    def _deletions(self) -> list[Action]:
        """RD-34."""
        targets = frozenset(self._targets)
        return [
            plans.delete(
                Target(self._kind, copy.namespace, self._name), uid=copy.uid, reason="the namespace is no target"
            )
            for copy in self._copies.values()
            if copy.namespace not in targets and self._owns(copy) and not self._places[copy.namespace].is_going
        ]


def _reference(metadata: ObjectMeta) -> dict[str, Any]:
    return {
        "apiVersion": RESOURCE_DISTRIBUTIONS.api_version,
        "kind": RESOURCE_DISTRIBUTIONS.kind,
        "name": metadata.name,
        "uid": metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _refused(distribution: ResourceDistribution) -> dict[str, DistributionCondition]:
    """What the API server said to the last tries, by namespace."""
    if distribution.status.observed_generation != distribution.metadata.generation:
        return {}
    return {
        namespace: condition
        for condition in distribution.status.conditions
        if condition.type in (CREATE_FAILED, UPDATE_FAILED)
        for namespace in condition.failed_namespaces
    }


def _no_namespace(name: str, is_going: bool) -> Cause:
    if is_going:
        return NO_NAMESPACE.cause(f"namespace {name} is being deleted", remedy="take it off the list of namespaces")
    remedy = f"take it off the list of namespaces, or make it: kubectl create namespace {name}"
    return NO_NAMESPACE.cause(f"there is no namespace {name}", remedy=remedy)


def _unfit(snapshot: Snapshot, problem: str) -> Plan:
    """Only one from before there was admission can be so. What it has copied before stays."""
    cause = UNFIT.cause(problem, remedy="delete it, and create it anew with a whole Secret or ConfigMap")
    held = Held(target=Target.of(RESOURCE_DISTRIBUTIONS, snapshot.distribution), causes=(cause,))
    targets = _targets(snapshot)
    return Plan(held=(held,), memo=Memo(desired=len(targets), unfit=tuple(targets), problem=problem))


def _targets(snapshot: Snapshot) -> list[str]:
    return wanted(snapshot.distribution.spec.targets, ((place.name, place.labels) for place in snapshot.places))


def _with_chains(phases: tuple[Phase, ...]) -> tuple[Phase, ...]:
    return tuple(phase for phase in phases if phase.chains)
