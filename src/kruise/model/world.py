"""A cluster in a nutshell: typed objects in the stores that controllers read, and what happens to them, in its time.

There is no API server in between: a plan's writes change the objects at once, and whoever cares (nodes, controllers,
the watcher) hears of it by the stores' own handlers. Time moves only from one happening to the next.

Handlers only take notes: they call `at`, and what they ask for happens when the write that they heard of is over.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

from kruise.api.meta import Object, ObjectMeta, controller_of
from kruise.api.native.pod import PODS, Pod
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim
from kruise.api.resource import Resource
from kruise.machinery import codec
from kruise.machinery.client.requests import Verb
from kruise.machinery.course import ANOTHER_FAILED, Course, ends_phase, rest_of, skipped, skipped_phase, together
from kruise.machinery.guards import is_delete
from kruise.machinery.patches.errors import PatchError
from kruise.machinery.plan import Action, Chain, ChainOutcomes, Outcome, Outcomes, Phase, PhaseOutcomes, Plan, Result
from kruise.machinery.store import Store
from kruise.machinery.watched import Watched, watched
from kruise.model.patching import patched

T = TypeVar("T", bound=Object)

Admit = Callable[[Action], Mapping[str, Any]]
"""What becomes of the body of a create on its way in. Raises `RefusedWriteError` where it is refused."""

USUAL_GRACE = 30


class RefusedWriteError(Exception):
    """Admission refuses an object that a plan creates."""


class World:
    def __init__(self, now: datetime) -> None:
        self.now = now
        self.admit: Admit | None = None
        self.reason = ""
        """Of the action that is being carried out; empty: nobody's plan, it happens by itself."""
        self._stores: dict[Resource[Any], Store[Any]] = {}
        self._version = 0
        self._uids = itertools.count(1)
        # Objects may come from another forecast: nobody must be taken for somebody else.
        family = hashlib.blake2b(now.isoformat().encode(), digest_size=4).hexdigest()
        self._family = f"{family}-0000-4000-8000"
        self._order = itertools.count()
        self._happenings: list[tuple[datetime, int, Callable[[], None]]] = []
        self._ended: set[str] = set()

    # What is there

    def add(self, kind: Resource[T] | Watched[T], objects: Iterable[T] = ()) -> Store[T]:
        """A store with these objects. Asked again, it takes further objects and indexes."""
        wanted = watched(kind)
        resource = wanted.resource
        store = self.store(resource)
        if not store.synced:
            store.replace((), store.watermark)
        store.add_indexes(wanted)
        for obj in objects:
            self._version = max(self._version, _number(obj.metadata.resource_version))
            self._enter(resource, obj)
        return store

    def store(self, resource: Resource[T]) -> Store[T]:
        """For views. The store of a kind that nobody brought objects of is empty, and says that it is not filled."""
        store = self._stores.get(resource)
        if store is None:
            store = self._stores[resource] = Store(resource)
        return store

    def _enter(self, resource: Resource[Any], obj: Any) -> None:
        """Objects that were read come in with versions of their own, whatever the order in which they are added."""
        store = self._stores[resource]
        if not obj.metadata.resource_version.isdecimal() or int(obj.metadata.resource_version) <= store.watermark:
            obj = self._versioned(obj)
        store.event("ADDED", obj)

    def put(self, resource: Resource[T], obj: T) -> T:
        """Write an object as it is, with a version of its own."""
        obj = self._versioned(obj)
        self.add(resource).event("MODIFIED", obj)
        return obj

    def remove(self, resource: Resource[T], obj: T) -> None:
        self._stores[resource].event("DELETED", self._versioned(obj))
        if resource == PODS:
            self._ended.discard(obj.metadata.uid)
            self._pod_went(obj)

    def _versioned(self, obj: Any) -> Any:
        self._version += 1
        return codec.evolve(obj, metadata=codec.evolve(obj.metadata, resource_version=str(self._version)))

    @property
    def version(self) -> int:
        """Another one after each write."""
        return self._version

    # What is to come

    def at(self, moment: datetime, happening: Callable[[], None]) -> None:
        """Have something happen; at the same moment, first asked is first done."""
        heapq.heappush(self._happenings, (max(moment, self.now), next(self._order), happening))

    def after(self, seconds: float, happening: Callable[[], None]) -> None:
        self.at(self.now + timedelta(seconds=seconds), happening)

    @property
    def next_moment(self) -> datetime | None:
        return self._happenings[0][0] if self._happenings else None

    def settle(self) -> None:
        """Everything that is due by now, and what follows from it at once."""
        while self._happenings and self._happenings[0][0] <= self.now:
            heapq.heappop(self._happenings)[2]()

    # Carrying out

    def carry_out(self, plan: Plan) -> Outcomes:
        """All of a plan, in order: no time passes meanwhile, so that no phase ends early."""
        outcomes: list[PhaseOutcomes] = []
        course = Course()
        for group in together(plan.phases):
            reasons = [course.reason_to_skip(phase) for phase in group]
            for phase, reason in zip(group, reasons, strict=True):
                if reason:
                    outcomes.append(skipped_phase(phase, reason))
                else:
                    outcomes.append(self._phase(phase))
                    course.ended(phase, outcomes[-1])
        return Outcomes(tuple(outcomes))

    def _phase(self, phase: Phase) -> PhaseOutcomes:
        chains: list[ChainOutcomes] = []
        closed = False
        for chain in phase.chains:
            outcomes = skipped(chain, ANOTHER_FAILED) if closed else self._chain(chain)
            closed = closed or any(ends_phase(phase, outcome.result) for outcome in outcomes)
            chains.append(outcomes)
        return PhaseOutcomes(phase.name, tuple(chains))

    def _chain(self, chain: Chain) -> ChainOutcomes:
        outcomes: list[Outcome] = []
        for place, action in enumerate(chain):
            outcomes.append(self.write(action))
            if outcomes[-1].result is not Result.DONE:
                return (*outcomes, *rest_of(chain, place))
        return tuple(outcomes)

    def write(self, action: Action) -> Outcome:
        """One write, at once."""
        self.reason = action.reason
        try:
            if is_delete(action):
                return self._delete(action)
            if action.verb is Verb.CREATE:
                return self._create(action)
            return self._patch(action)
        finally:
            self.reason = ""

    def _create(self, action: Action) -> Outcome:
        resource, target = action.target.resource, action.target
        store = self.add(resource)
        known = store.get(target.namespace, target.name)
        if known is not None:
            owner = controller_of(known)
            if action.owner_uid and owner is not None and owner.uid == action.owner_uid:
                return Outcome(action=action, result=Result.DONE, object=known)
            return Outcome(action=action, result=Result.FAILED, error=f"{target} already exists", error_code=409)
        try:
            body = self.admit(action) if self.admit is not None else action.body
        except RefusedWriteError as refused:
            return Outcome(action=action, result=Result.FAILED, error=str(refused), error_code=403)
        obj: Any = codec.decode(codec.encode(body), resource.type)
        number = next(self._uids)
        metadata: ObjectMeta = codec.evolve(
            obj.metadata,
            uid=f"{self._family}-{number:012d}",
            creation_timestamp=self.now.replace(microsecond=0),
            generation=1,
        )
        obj = self._versioned(codec.evolve(obj, metadata=metadata))
        store.event("ADDED", obj)
        return Outcome(action=action, result=Result.DONE, object=obj)

    def _found(self, action: Action) -> Any:
        target = action.target
        return self.add(target.resource).get(target.namespace, target.name)

    def _patch(self, action: Action) -> Outcome:
        obj = self._found(action)
        if obj is None:
            return Outcome(action=action, result=Result.GONE)
        metadata: ObjectMeta = obj.metadata
        if action.uid not in ("", metadata.uid) or action.resource_version not in ("", metadata.resource_version):
            return Outcome(action=action, result=Result.MOVED)
        resource = action.target.resource
        try:
            after = patched(resource, obj, action.body, action.patch_type)
        except PatchError:
            return Outcome(action=action, result=Result.MOVED)  # as the server answers: the object is not as it was
        spec = getattr(obj, "spec", None)
        if spec is not None and after.spec is not spec and after.spec != spec:
            metadata = codec.evolve(after.metadata, generation=after.metadata.generation + 1)
            after = codec.evolve(after, metadata=metadata)
        after = self.put(resource, after)
        self._go_if_free(resource, after)
        return Outcome(action=action, result=Result.DONE, object=after)

    # Going

    def _delete(self, action: Action) -> Outcome:
        obj = self._found(action)
        if obj is None:
            return Outcome(action=action, result=Result.DONE)
        metadata: ObjectMeta = obj.metadata
        if action.uid not in ("", metadata.uid) or action.resource_version not in ("", metadata.resource_version):
            return Outcome(action=action, result=Result.MOVED)
        if metadata.deletion_timestamp is None:
            obj = self._begin_to_go(action.target.resource, obj, action.grace_period_seconds)
        return Outcome(action=action, result=Result.DONE, object=obj)

    def _begin_to_go(self, resource: Resource[Any], obj: Any, asked: int | None) -> Any:
        grace = _grace(obj, asked) if resource == PODS else 0
        marked = codec.evolve(
            obj.metadata,
            deletion_timestamp=(self.now + timedelta(seconds=grace)).replace(microsecond=0),
            deletion_grace_period_seconds=grace,
        )
        obj = self.put(resource, codec.evolve(obj, metadata=marked))
        if resource == PODS and not obj.spec.node_name:
            self._ended.add(marked.uid)  # nobody has to stop anything
        self._go_if_free(resource, obj)
        return obj

    def pod_ended(self, pod: Pod) -> None:
        """Its node has stopped everything: it goes as soon as no finalizer holds it."""
        self._ended.add(pod.metadata.uid)
        self._go_if_free(PODS, pod)

    def _go_if_free(self, resource: Resource[Any], obj: Any) -> None:
        metadata: ObjectMeta = obj.metadata
        if metadata.deletion_timestamp is None:
            return
        if resource == PODS:
            if not metadata.finalizers and metadata.uid in self._ended:
                self.remove(resource, obj)
        elif resource == PERSISTENT_VOLUME_CLAIMS:
            # The finalizer against loss of data stands for "no pod mounts it".
            held = [name for name in metadata.finalizers if name != _PROTECTION]
            if not held and not self._is_mounted(obj):
                self.remove(resource, obj)
        elif not metadata.finalizers:
            self.remove(resource, obj)

    def _is_mounted(self, claim: PersistentVolumeClaim) -> bool:
        pods: Sequence[Pod] = self.add(PODS).list(claim.metadata.namespace)
        return any(name == claim.metadata.name for pod in pods for name in _claims_of(pod))

    def _pod_went(self, pod: Any) -> None:
        """Its claims go if they wait for that, or if they have no other owner."""
        store = self._stores.get(PERSISTENT_VOLUME_CLAIMS)
        if store is None or not len(store):
            return
        for name in _claims_of(pod):
            claim = store.get(pod.metadata.namespace, name)
            if claim is not None:
                self._go_if_free(PERSISTENT_VOLUME_CLAIMS, claim)
        for claim in store.list(pod.metadata.namespace):
            owners = claim.metadata.owner_references
            if owners and all(owner.uid == pod.metadata.uid for owner in owners):
                self._begin_to_go(PERSISTENT_VOLUME_CLAIMS, claim, None)


_PROTECTION = "kubernetes.io/pvc-protection"


def _claims_of(pod: Pod) -> Iterable[str]:
    return (
        volume.persistent_volume_claim.claim_name
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is not None
    )


def _grace(pod: Pod, asked: int | None) -> int:
    grace = pod.spec.termination_grace_period_seconds if asked is None else asked
    return USUAL_GRACE if grace is None else grace


def _number(version: str) -> int:
    return int(version) if version.isdecimal() else 0
