"""A cluster in a nutshell: typed objects in the stores that controllers read, and what happens to them, in its time.

There is no API server in between: a plan's writes change the objects at once, and whoever cares (nodes, controllers,
the watcher) hears of it by the stores' own handlers. Writes are answered as a server answers them: guards, finalizers,
subresources, owners, claims in use. Time moves only when somebody moves it.

Handlers only take notes: they call `at`, and what they ask for happens when the write that they heard of is over.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

from kruise.api.meta import Key, Object, ObjectMeta, controller_of
from kruise.api.native.pod import PODS, Pod
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim, claim_names
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
Json = dict[str, Any]

Admit = Callable[[Action], Mapping[str, Any]]
"""What becomes of the body of a create on its way in. Raises `RefusedWriteError` where it is refused."""

Write = Callable[[Action], Outcome]

USUAL_GRACE = 30
_OWNERS = "owners"
_PROTECTION = "kubernetes.io/pvc-protection"


class RefusedWriteError(Exception):
    """Admission refuses an object that a plan creates."""


class World:
    def __init__(self, now: datetime) -> None:
        self.now = now
        self.admit: Admit | None = None
        self.reason = ""
        """Of the action that is being carried out; empty: nobody's plan, it happens by itself."""
        self._stores: dict[Resource[Any], Store[Any]] = {}
        self._types: dict[Resource[Any], type[Any]] = {}
        """The structs of those who decide about a kind: they read more of it than others."""
        self._version = 0
        self._uids = itertools.count(1)
        # Objects may come from another world: nobody must be taken for somebody else.
        family = hashlib.blake2b(now.isoformat().encode(), digest_size=4).hexdigest()
        self._family = f"{family}-0000-4000-8000"
        self._order = itertools.count()
        self._happenings: list[tuple[datetime, int, Callable[[], None]]] = []
        self._ended: set[str] = set()
        """Uids of pods that run no more."""
        self._gone: set[str] = set()
        """Uids of objects that were here. Of others nobody knows: not every kind is read."""

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

    def is_decided_about(self, resource: Resource[Any]) -> None:
        """By somebody who knows the kind by this struct: objects that others make are read into it, too."""
        self._types[resource] = resource.type

    def store(self, resource: Resource[T]) -> Store[T]:
        """For views. The store of a kind that nobody brought objects of is empty, and says that it is not filled."""
        store = self._stores.get(resource)
        if store is None:
            store = self._stores[resource] = Store(Watched(resource, indexes={_OWNERS: _owner_uids}))
        return store

    def _filled(self, resource: Resource[T]) -> Store[T]:
        """For writes: what is not here does not exist."""
        store = self._stores.get(resource)
        return store if store is not None and store.synced else self.add(resource)

    def _enter(self, resource: Resource[Any], obj: Any) -> None:
        """Objects that were read come in with versions of their own, whatever the order in which they are added."""
        store = self._stores[resource]
        if not obj.metadata.resource_version.isdecimal() or int(obj.metadata.resource_version) <= store.watermark:
            obj = self._versioned(obj)
        store.event("ADDED", obj)

    def put(self, resource: Resource[T], obj: T) -> T:
        """Write an object as it is, with a version of its own."""
        obj = self._versioned(obj)
        self._filled(resource).event("MODIFIED", obj)
        return obj

    def remove(self, resource: Resource[T], obj: T) -> None:
        """It is gone; and so is what nobody else owns or waits for."""
        uid = obj.metadata.uid
        self._stores[resource].event("DELETED", self._versioned(obj))
        self._gone.add(uid)
        if resource == PODS:
            self._ended.discard(uid)
            self._free_claims(obj)
        for kind, store in list(self._stores.items()):
            for owned in store.by_index(_OWNERS, uid):
                self._go_if_orphaned(kind, owned)

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

    def carry_out(self, plan: Plan, write: Write | None = None) -> Outcomes:
        """All of a plan, in order: no time passes meanwhile, so that no phase ends early. Of phases that begin together
        the more urgent one comes first. `write` stands between the plan and the world."""
        write = write or self.write
        outcomes: list[PhaseOutcomes] = []
        course = Course()
        for group in together(plan.phases):
            found = {
                phase.name: skipped_phase(phase, reason) for phase in group if (reason := course.reason_to_skip(phase))
            }
            for phase in sorted(group, key=lambda phase: phase.urgency):
                if phase.name not in found:
                    found[phase.name] = _phase(phase, write)
                    course.ended(phase, found[phase.name])
            outcomes += (found[phase.name] for phase in group)
        return Outcomes(tuple(outcomes))

    def write(self, action: Action) -> Outcome:
        """One write, at once. Admission of it may make writes of its own."""
        around, self.reason = self.reason, action.reason
        try:
            if is_delete(action):
                return self._delete(action)
            if action.verb is Verb.CREATE:
                return self._create(action)
            return self._patch(action)
        finally:
            self.reason = around

    def _create(self, action: Action) -> Outcome:
        resource, target = action.target.resource, action.target
        store = self._filled(resource)
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
        obj: Any = codec.decode(codec.encode(body), self._types.get(resource, resource.type))
        number = next(self._uids)
        metadata: ObjectMeta = codec.evolve(
            obj.metadata,
            uid=f"{self._family}-{number:012d}",
            creation_timestamp=self.now.replace(microsecond=0),
            generation=1,
        )
        obj = codec.evolve(obj, metadata=metadata)
        if resource == PODS and not obj.status.phase:
            obj = codec.evolve(obj, status=codec.evolve(obj.status, phase="Pending"))
        obj = self._versioned(obj)
        store.event("ADDED", obj)
        return Outcome(action=action, result=Result.DONE, object=obj)

    def _found(self, action: Action) -> Any:
        target = action.target
        return self._filled(target.resource).get(target.namespace, target.name)

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
        return Outcome(
            action=action,
            result=Result.DONE,
            object=self._change(resource, obj, _let_in(obj, after, action.subresource)),
        )

    def edit(self, resource: Resource[T], key: Key, change: Callable[[Json], None]) -> T | None:
        """Somebody else writes: `change` gets the object as JSON, as far as it is read here (fields with default values
        are left out). Returns what is stored then; None: there is no such object."""
        obj = self._filled(resource).get(*key)
        if obj is None:
            return None
        document = codec.decode(codec.encode(obj), dict[str, Any])
        change(document)
        return self._change(resource, obj, codec.decode(codec.encode(document), resource.type))

    def _change(self, resource: Resource[T], before: T, after: T) -> T:
        """As a server stores it: a write that changes nothing leaves no trace, another spec is another generation."""
        if after == before:
            return before
        spec = getattr(before, "spec", None)
        if spec is not None and spec != after.spec:  # type: ignore[attr-defined]
            metadata = codec.evolve(after.metadata, generation=before.metadata.generation + 1)
            after = codec.evolve(after, metadata=metadata)
        after = self.put(resource, after)
        self._go_if_free(resource, after)
        self._go_if_orphaned(resource, after)
        return after

    # Going

    def _delete(self, action: Action) -> Outcome:
        obj = self._found(action)
        if obj is None:
            return Outcome(action=action, result=Result.DONE)
        metadata: ObjectMeta = obj.metadata
        if action.uid not in ("", metadata.uid) or action.resource_version not in ("", metadata.resource_version):
            return Outcome(action=action, result=Result.MOVED)
        obj = self.delete(action.target.resource, obj, grace=action.grace_period_seconds)
        return Outcome(action=action, result=Result.DONE, object=obj)

    def delete(self, resource: Resource[T], obj: T, *, grace: int | None = None) -> T:
        """Somebody deletes it. Returns the object as it was last: it may stay until pods end and finalizers go."""
        if obj.metadata.deletion_timestamp is not None:
            return obj
        left: T = self._begin_to_go(resource, obj, grace)
        return left

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

    def has_ended(self, pod: Pod) -> bool:
        return pod.metadata.uid in self._ended

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
        pods: Sequence[Pod] = self._filled(PODS).list(claim.metadata.namespace)
        return any(name == claim.metadata.name for pod in pods for name in claim_names(pod))

    def _free_claims(self, pod: Any) -> None:
        """Claims that were deleted while the pod mounted them."""
        store = self._stores.get(PERSISTENT_VOLUME_CLAIMS)
        if store is None or not len(store):
            return
        for name in claim_names(pod):
            claim = store.get(pod.metadata.namespace, name)
            if claim is not None:
                self._go_if_free(PERSISTENT_VOLUME_CLAIMS, claim)

    def _go_if_orphaned(self, resource: Resource[Any], obj: Any) -> None:
        """As the garbage collector has it: an object goes with the last of its owners."""
        metadata: ObjectMeta = obj.metadata
        owners = metadata.owner_references
        if owners and metadata.deletion_timestamp is None and all(owner.uid in self._gone for owner in owners):
            self._begin_to_go(resource, obj, None)


def _phase(phase: Phase, write: Write) -> PhaseOutcomes:
    chains: list[ChainOutcomes] = []
    closed = False
    for chain in phase.chains:
        outcomes = skipped(chain, ANOTHER_FAILED) if closed else _chain(chain, write)
        closed = closed or any(ends_phase(phase, outcome.result) for outcome in outcomes)
        chains.append(outcomes)
    return PhaseOutcomes(phase.name, tuple(chains))


def _chain(chain: Chain, write: Write) -> ChainOutcomes:
    outcomes: list[Outcome] = []
    for place, action in enumerate(chain):
        outcomes.append(write(action))
        if outcomes[-1].result is not Result.DONE:
            return (*outcomes, *rest_of(chain, place))
    return tuple(outcomes)


def _let_in(before: Any, after: Any, subresource: str) -> Any:
    """What a write changes: each door lets only its own parts through."""
    if subresource == "":
        has_status = getattr(before, "status", None) is not None and after.status is not before.status
        return codec.evolve(after, status=before.status) if has_status else after
    if subresource == "status":
        return codec.evolve(after, spec=before.spec) if after.spec is not before.spec else after
    return codec.evolve(before, spec=after.spec)


def _owner_uids(obj: Object) -> tuple[str, ...]:
    return tuple([reference.uid for reference in obj.metadata.owner_references])


def _grace(pod: Pod, asked: int | None) -> int:
    grace = pod.spec.termination_grace_period_seconds if asked is None else asked
    return USUAL_GRACE if grace is None else grace


def _number(version: str) -> int:
    return int(version) if version.isdecimal() else 0
