"""New pods get their subset, and pods that go are noted (WS sections 5 and 6). Pure.

A pod of a workload that nobody spreads is answered by a look at an index.
"""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import Any

from kruise.admission.chain import StepContext
from kruise.admission.decisions import Booking, Change, Deny, Failure, Mutation, NeedsBooking, NeedsReads, Verdict
from kruise.admission.validating_chain import PodQuestion
from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.shared import GROUP
from kruise.api.apps.workloadspread import WORKLOAD_SPREADS, WorkloadSpread
from kruise.api.meta import OwnerReference, controller_of
from kruise.api.native.apps import DEPLOYMENTS, JOBS, REPLICA_SETS
from kruise.api.native.config import CONFIG_MAPS, CONFIGURATION, WhitelistError
from kruise.api.native.pod import PODS, Pod, is_active
from kruise.api.resource import Resource
from kruise.machinery import codec
from kruise.machinery.plan import Target
from kruise.machinery.spec import OWNER_INDEX
from kruise.machinery.watched import Kinds, Watched
from kruise.spread.workloadspread import whitelist
from kruise.spread.workloadspread.injection import UnfitPatchError, injected, plain
from kruise.spread.workloadspread.ledger import Asked, Place, booked, is_noted, noted
from kruise.spread.workloadspread.matched import Matched, mark_of
from kruise.spread.workloadspread.numbers import PathError, has_percentages, is_single_unlimited, sum_at
from kruise.spread.workloadspread.statuses import status_write
from kruise.spread.workloadspread.targets import (
    CUSTOM,
    DEPLOYMENT,
    KIND,
    REPLICA_SET,
    STATEFUL_SET,
    TARGET,
    WATCHED_SPREADS,
    CustomObject,
    Workload,
    guessed,
    index_value,
    kind_value,
    owner_of,
    selector_of,
)
from kruise.spread.workloadspread.versions import version_of
from kruise.spread.workloadspread.whitelist import CustomKind, replicas_in

Json = dict[str, Any]

WATCHED_REPLICA_SETS = Watched(REPLICA_SETS, indexes=OWNER_INDEX)
NEEDS: Kinds = (WATCHED_SPREADS, WATCHED_REPLICA_SETS)
_REPLICAS_OF: dict[tuple[str, str], Resource[Any]] = {
    ("apps", DEPLOYMENT): DEPLOYMENTS,
    ("apps", REPLICA_SET): REPLICA_SETS,
    (GROUP, "CloneSet"): CLONE_SETS,
    ("batch", "Job"): JOBS,
}
_FINISHED = ("Succeeded", "Failed")
_MOST_OWNERS = 4
"""Each costs a read while the creation waits."""


@dataclasses.dataclass(frozen=True, slots=True)
class _NewPod:
    document: Json
    namespace: str
    name: str
    labels: dict[str, str]
    owner: OwnerReference

    @property
    def workload(self) -> Workload:
        return owner_of(self.owner, self.namespace)


@dataclasses.dataclass(frozen=True, slots=True)
class PodSpreading:
    """The steps of the pod chains."""

    versioned: frozenset[str]
    """Kinds whose pods are counted by version."""
    own_namespace: str
    """Of the manager, where the whitelist is."""

    def mutate(self, document: Json, context: StepContext) -> Mutation | None:
        pod = _new_pod(document, context)
        if pod is None:
            return None
        found = _spread_of(pod, context, self.own_namespace)
        if not isinstance(found, WorkloadSpread):
            return found
        if is_single_unlimited(found.spec):
            return _placed(pod, found, found.spec.subsets[0].name)
        return self._with_place(pod, found, context)

    def _with_place(self, pod: _NewPod, spread: WorkloadSpread, context: StepContext) -> Mutation | None:
        view = context.view
        target = Target.of(WORKLOAD_SPREADS, spread)
        place: Place | None = view.booked(target)
        if place is not None and not place.doubtful:
            if not place.subset:
                return None  # no room anywhere
            uid = place.uid if pod.name or not place.is_booked else context.request.uid
            return _placed(pod, place.spread, place.subset, uid)
        replicas = _replicas(spread, context, self.own_namespace)
        if not isinstance(replicas, int | None):
            return replicas
        gone: list[str] = []
        alive: list[str] = []
        if place is not None:
            targets = tuple(Target(PODS, pod.namespace, name) for name in place.doubtful)
            unread = tuple(item for item in targets if not view.was_read(item))
            if unread:
                return NeedsReads(targets=unread, may_fail=True)
        for item, seen in view.reads.items():
            if isinstance(item, Target) and item.resource == PODS and item.namespace == pod.namespace:
                # Of one that cannot be read nobody knows that it goes: it keeps its place.
                lives = isinstance(seen, Failure) or (seen is not None and is_active(seen))
                (alive if lives else gone).append(item.name)
        version = version_of(pod.labels, (pod.owner.kind, spread.spec.target_ref.kind), self.versioned)
        asked = Asked(
            key=pod.name or context.request.uid,
            uid=context.request.uid,
            version=version,
            now=view.now,
            replicas=replicas,
            gone=frozenset(gone),
            alive=frozenset(alive),
        )
        return NeedsBooking(target=target, book=_Book(spread.metadata.uid, asked), write=_write_place)

    def judge(self, question: PodQuestion) -> Verdict | None:
        """WS-31 to WS-33. Nothing is ever refused by this."""
        pod, view = question.pod, question.view
        mark = mark_of(pod)
        owner = controller_of(pod)
        if mark is None or question.request.is_dry_run or owner is None or pod.metadata.deletion_timestamp is not None:
            return None
        # One that has ended is counted out by itself. But who follows it under its name may be faster than that.
        if not is_active(pod) and owner.kind != STATEFUL_SET:
            return None
        spread = view.latest(WORKLOAD_SPREADS, question.namespace, mark.name)
        if spread is None or spread.metadata.deletion_timestamp is not None or is_single_unlimited(spread.spec):
            return None
        subset = next((item for item in spread.spec.subsets if item.name == mark.subset), None)
        if subset is None or subset.max_replicas is None:
            return None
        target = Target.of(WORKLOAD_SPREADS, spread)
        said, until = view.booked(target), spread.metadata.resource_version
        if isinstance(said, _Look):
            own = Target.of(PODS, pod)
            if not view.was_read(own):
                return NeedsReads(targets=(own,), may_fail=True)
            seen = view.live(own)
            if seen is None or (isinstance(seen, Pod) and seen.metadata.uid != pod.metadata.uid):
                return None  # somebody else has deleted it meanwhile, and its place is given away
            until = ""
        elif said is not None:
            return None
        version = version_of(pod.metadata.labels, (owner.kind, spread.spec.target_ref.kind), self.versioned)
        asked = Asked(key=pod.metadata.name, version=version, now=view.now)
        note = _Note(spread.metadata.uid, asked, mark.subset, until)
        return NeedsBooking(target=target, book=note, write=_write_note)


def _new_pod(document: Json, context: StepContext) -> _NewPod | None:
    """WS-17; None: it is nobody's to spread."""
    if context.request.is_dry_run or context.request.sub_resource:
        return None
    metadata, status = document.get("metadata"), document.get("status")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("ownerReferences"), list):
        return None
    owner = next(
        (item for item in metadata["ownerReferences"] if isinstance(item, dict) and item.get("controller") is True),
        None,
    )
    if owner is None or metadata.get("deletionTimestamp"):
        return None
    if isinstance(status, dict) and status.get("phase") in _FINISHED:
        return None
    labels = metadata.get("labels")
    return _NewPod(
        document,
        context.namespace,
        str(metadata.get("name") or ""),
        labels if isinstance(labels, dict) else {},
        codec.convert(owner, OwnerReference),
    )


def _spread_of(pod: _NewPod, context: StepContext, own_namespace: str) -> WorkloadSpread | Mutation | None:
    """WS-18: the first that is about the pod's controller, or about the controller of that, and so on."""
    store = context.view.store(WORKLOAD_SPREADS)
    owner = pod.workload
    found: list[WorkloadSpread] = list(store.by_index(TARGET, index_value(owner)))
    is_replica_set = (owner.group, owner.kind) == ("apps", REPLICA_SET)
    if is_replica_set and store.by_index(KIND, kind_value(pod.namespace, "apps", DEPLOYMENT)):
        parent = _deployment_of(pod, context)
        if isinstance(parent, Workload):
            found += store.by_index(TARGET, index_value(parent))
        elif parent is not None:
            return parent
    if not found and store.by_index(KIND, kind_value(pod.namespace, "", CUSTOM)):
        above = _owners_above(pod, context, own_namespace)
        if not isinstance(above, list):
            return above
        found += [item for owner in above for item in store.by_index(TARGET, index_value(owner))]
    fitting = (
        item for item in found if item.metadata.deletion_timestamp is None and selector_of(item).matches(pod.labels)
    )
    return min(fitting, key=lambda item: item.metadata.name, default=None)


def _owners_above(pod: _NewPod, context: StepContext, own_namespace: str) -> list[Workload] | NeedsReads | Deny:
    """Who owns the owner, and so on, as far as kinds are known. Asked only where a kind of the whitelist is spread."""
    kinds = _whitelisted(context, own_namespace)
    if not isinstance(kinds, tuple):
        return kinds
    found: list[Workload] = []
    owner: OwnerReference | None = pod.owner
    while owner is not None and len(found) < _MOST_OWNERS:
        above = owner_of(owner, pod.namespace)
        if not above.is_supported and not whitelist.is_known(kinds, above.group, above.kind):
            break
        target = Target(guessed(owner.api_version, owner.kind), pod.namespace, owner.name)
        if not context.view.was_read(target):
            return NeedsReads(targets=(target,), may_fail=True)
        workload = context.view.live(target)
        if not isinstance(workload, CustomObject):
            break  # nobody can tell whose it is: the pod is let in as it is
        owner = controller_of(workload)
        if owner is not None:
            found.append(owner_of(owner, pod.namespace))
    return found


def _whitelisted(context: StepContext, own_namespace: str) -> tuple[CustomKind, ...] | NeedsReads | Deny:
    target = Target(CONFIG_MAPS, own_namespace, CONFIGURATION)
    if not context.view.was_read(target):
        return NeedsReads(targets=(target,))
    config = context.view.live(target)
    try:
        return whitelist.parsed(config.data if config is not None else None)
    except WhitelistError as error:
        return Deny(message=str(error), code=500, reason="InternalError")


def _deployment_of(pod: _NewPod, context: StepContext) -> Workload | Mutation | None:
    """Asked only where some Deployment of the namespace is spread."""
    view, target = context.view, Target(REPLICA_SETS, pod.namespace, pod.owner.name)
    replica_set: Any = view.latest(REPLICA_SETS, pod.namespace, pod.owner.name)
    if isinstance(replica_set, Failure):
        return None  # it cannot be told whose pod this is: it is let through
    if replica_set is None:
        if not view.was_read(target):
            return NeedsReads(targets=(target,), may_fail=True)
        message = f"ReplicaSet {target.key}, which this pod belongs to, does not exist (yet): try again"
        return Deny(message=message, code=500, reason="InternalError")
    reference = controller_of(replica_set)
    return owner_of(reference, pod.namespace) if reference is not None else None


def _replicas(spread: WorkloadSpread, context: StepContext, own_namespace: str) -> int | NeedsReads | Deny | None:
    """WS-29: only percentages ask for them, and then of the target as it is now."""
    if not has_percentages(spread.spec):
        return None
    reference = spread.spec.target_ref
    resource = _REPLICAS_OF.get((reference.group, reference.kind))
    entry: CustomKind | None = None
    if resource is None:
        kinds = _whitelisted(context, own_namespace)
        if not isinstance(kinds, tuple):
            return kinds
        entry = whitelist.find(kinds, reference.group, reference.kind)
        resource = guessed(reference.api_version, reference.kind)
    target = Target(resource, spread.metadata.namespace, reference.name)
    if not context.view.was_read(target):
        return NeedsReads(targets=(target,))
    found = context.view.live(target)
    if found is None:
        return 0
    paths = spread.spec.target_filter.replicas_path_list if spread.spec.target_filter is not None else ()
    try:
        if isinstance(found, CustomObject):
            return replicas_in(found.document, spread.spec, entry) or 0
        if paths:
            return sum_at(plain(found), paths)
    except PathError as error:
        return Deny(message=f"WorkloadSpread {spread.metadata.name}: {error}", code=500, reason="InternalError")
    return replicas_of(found)


def replicas_of(workload: Any) -> int:
    """What percentages are taken of; 1 where nothing is said, as the API server fills it in."""
    spec = workload.spec
    value = spec.parallelism if hasattr(spec, "parallelism") else spec.replicas
    return 1 if value is None else int(value)


@dataclasses.dataclass(frozen=True, slots=True)
class _Book:
    uid: str
    asked: Asked

    def __call__(self, spread: WorkloadSpread | None, now: datetime) -> Booking:
        if spread is None or spread.metadata.uid != self.uid or spread.metadata.deletion_timestamp is not None:
            # It went while the pod was on its way: the pod is let in as it is (WS-23).
            return Booking(spread, Place(spread=spread or WorkloadSpread()))
        place = booked(spread, dataclasses.replace(self.asked, now=now))
        # An entry that is there already may have been that of a pod that came and went since.
        return Booking(place.spread, place, is_sure=place.spread is not spread or not place.is_booked)


@dataclasses.dataclass(frozen=True, slots=True)
class _Look:
    """The ledger has gone on since the pod was last known to be there: two may be deleting it at once, and where the
    other one was faster, its place is no longer to be given away."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Note:
    uid: str
    asked: Asked
    subset: str
    until: str
    """The newest version of the ledger that may be written to without a look at the pod; empty: any."""

    def __call__(self, spread: WorkloadSpread | None, now: datetime) -> Booking:
        if spread is None or spread.metadata.uid != self.uid or spread.metadata.deletion_timestamp is not None:
            return Booking(spread, True)
        if self.until and int(spread.metadata.resource_version) > int(self.until):
            if is_noted(spread, self.asked):
                return Booking(spread, True)
            return Booking(spread, _Look())
        return Booking(noted(spread, dataclasses.replace(self.asked, now=now), self.subset), True)


def _write_place(before: WorkloadSpread, after: WorkloadSpread) -> Any:
    return status_write(before, after.status, reason="pods that are created get places in subsets")


def _write_note(before: WorkloadSpread, after: WorkloadSpread) -> Any:
    return status_write(before, after.status, reason="pods of subsets are deleted")


def _placed(pod: _NewPod, spread: WorkloadSpread, name: str, uid: str = "") -> Mutation | None:
    subset = next((item for item in spread.spec.subsets if item.name == name), None)
    if subset is None:
        return None
    mark = Matched(spread.metadata.name, name, uid)
    try:
        return Change(object=injected(pod.document, subset, mark))
    except UnfitPatchError as error:
        text = f"WorkloadSpread {spread.metadata.name}, subset {name}: spec.subsets[].patch: {error}"
        return Deny(message=text, code=500, reason="InternalError")
