"""Workloads, as far as budgets ask them: how many pods there should be, and which pods are theirs (PUB-30, PUB-31)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.daemonset import DAEMON_SETS as KRUISE_DAEMON_SETS
from kruise.api.apps.statefulset import STATEFUL_SETS as KRUISE_STATEFUL_SETS
from kruise.api.meta import Object, OwnerReference, controller_of
from kruise.api.native.apps import DAEMON_SETS, DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS
from kruise.api.native.pod import PODS, Pod
from kruise.api.policy.podunavailablebudget import TargetReference
from kruise.api.resource import Resource, refers_to
from kruise.machinery.codec import Struct
from kruise.machinery.selectors import SelectorError, from_label_selector
from kruise.machinery.selectors import parse as parse_selector
from kruise.machinery.spec import OWNER, Stores

UNKNOWN = -1
"""The workload is there, and nobody tells how many pods it should have."""

NATIVE: tuple[Resource[Any], ...] = (DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS)
OPTIONAL: tuple[Resource[Any], ...] = (DAEMON_SETS, CLONE_SETS, KRUISE_STATEFUL_SETS, KRUISE_DAEMON_SETS)
"""They may be missing in a cluster, or not be readable."""
KINDS: Mapping[tuple[str, str], Resource[Any]] = {
    (resource.group, resource.kind): resource for resource in (*NATIVE, *OPTIONAL)
}


class Owner(NamedTuple):
    """A workload of a namespace, in whatever version."""

    group: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    @property
    def is_watched(self) -> bool:
        return (self.group, self.kind) in KINDS


class Asked(Struct):
    """A workload of a kind that nobody watches, as it was when it was asked (`counts`)."""

    uid: str
    replicas: int = UNKNOWN
    selector: str = ""
    """Of its pods, where its scale tells."""


Answers = Mapping[Owner, Any]
"""What the API server said: an `Asked`; of a kind that is watched the object itself, where the store does not have it.
None: there is no such workload, or it is on its way out."""


SCALED = frozenset({("", "ReplicationController"), ("apps.kruise.io", "UnitedDeployment")})
"""Further kinds that are known to have a scale."""


class NotKnownYetError(LookupError):
    """A kind is served, but its objects have not been listed yet."""


class NotAskedYetError(NotKnownYetError):
    """Only the API server can tell of a workload."""

    def __init__(self, owner: Owner) -> None:
        super().__init__(f"nobody has asked for {owner} yet")
        self.owner = owner


@dataclasses.dataclass(frozen=True, slots=True)
class Counted:
    """A workload, and how many pods it should have."""

    uid: str
    name: str
    """`Deployment web`."""
    replicas: int


def group_of(api_version: str) -> str:
    return api_version.rpartition("/")[0]


def find(stores: Stores, owner: Owner, namespace: str, answers: Answers | None = None, *, uid: str = "") -> Any:
    """The workload, or the answer about one that nobody watches; None: there is none, or it is on its way out.

    What a store does not have is not gone: its watch may lag behind that of the pods, and a budget whose workload is
    gone is open. So the API server is asked. `answers` is what it said; None: nobody could ask. `uid`: the one that
    whoever refers to it remembers, of several that had the name one after the other. Raises NotKnownYetError."""
    found: Object | None = None
    if owner.is_watched:
        resource = KINDS[owner.group, owner.kind]
        store = stores.store(resource)
        if not store.synced:
            raise NotKnownYetError(f"{resource} are not listed yet")
        found = _staying(store.get(namespace, owner.name))
    if answers is None or (found is not None and uid in ("", found.metadata.uid)):
        return found
    if owner not in answers:
        raise NotAskedYetError(owner)
    return answers[owner]


def is_unknown(stores: Stores, reference: OwnerReference | None, namespace: str) -> bool:
    """Whether a store should have what is referred to, and does not."""
    owner = owner_of(reference)
    if reference is None or owner is None or not owner.is_watched:
        return False
    found = stores.store(KINDS[owner.group, owner.kind]).get(namespace, owner.name)
    return found is None or found.metadata.uid != reference.uid


def _staying(workload: Object | None) -> Object | None:
    return None if workload is None or workload.metadata.deletion_timestamp is not None else workload


def replicas_of(workload: Any) -> int:
    """What its spec says; of a DaemonSet, the nodes that should have a pod."""
    wanted = getattr(workload.status, "desired_number_scheduled", None)
    if wanted is not None:
        return int(wanted)
    return 1 if workload.spec.replicas is None else int(workload.spec.replicas)


def pods_of(stores: Stores, workload: Any, kind: str) -> tuple[Pod, ...]:
    """Those of its ReplicaSets, of a Deployment."""
    pods = stores.store(PODS)
    uid = workload.metadata.uid
    if kind != "Deployment":
        return pods.by_index(OWNER, uid)
    try:
        selector = from_label_selector(workload.spec.selector)
    except SelectorError:
        return ()
    sets = [
        item
        for item in stores.store(REPLICA_SETS).by_index(OWNER, uid)
        if item.metadata.deletion_timestamp is None and selector.matches(item.metadata.labels)
    ]
    if not sets:
        return pods.by_index(OWNER, uid)
    return tuple(pod for item in sets for pod in pods.by_index(OWNER, item.metadata.uid))


def pods_of_asked(stores: Stores, owner: Owner, asked: Asked | None, namespace: str) -> tuple[Pod, ...]:
    """Of a workload of a kind that nobody watches: its own, else those that its scale selects (PUB-30). Where it could
    not be asked, those that name it as their controller."""
    pods = stores.store(PODS)
    if asked is None:
        return tuple(pod for pod in pods.list(namespace) if owner_of(controller_of(pod)) == owner)
    if own := pods.by_index(OWNER, asked.uid):
        return own
    try:
        selector = parse_selector(asked.selector)
    except SelectorError:
        return ()
    if selector.is_empty:
        return ()
    return tuple(pod for pod in pods.list(namespace) if selector.matches(pod.metadata.labels))


def owner_of(reference: OwnerReference | TargetReference | None) -> Owner | None:
    return Owner(group_of(reference.api_version), reference.kind, reference.name) if reference is not None else None


def counted_by(
    stores: Stores, reference: OwnerReference, namespace: str, answers: Answers | None = None
) -> Counted | None:
    """The workload behind a pod's controller: of a ReplicaSet its Deployment, if it has one. None: it is gone, or has
    another uid than the pod remembers."""
    owner = Owner(group_of(reference.api_version), reference.kind, reference.name)
    found = find(stores, owner, namespace, answers, uid=reference.uid)
    if not owner.is_watched:
        asked = Asked(uid=reference.uid) if answers is None else found
        if asked is None or asked.uid != reference.uid:
            return None
        return Counted(reference.uid, str(owner), asked.replicas)
    if found is None or found.metadata.uid != reference.uid:
        return None
    kind = reference.kind
    above = controller_of(found) if kind == "ReplicaSet" else None
    # Others may have a kind of that name, too.
    if above is not None and refers_to(above, DEPLOYMENTS):
        deployment = find(stores, Owner(DEPLOYMENTS.group, above.kind, above.name), namespace, answers)
        if deployment is None:
            # PUB-34: while a Deployment is torn down, nobody tells.
            return Counted(above.uid, f"{above.kind} {above.name}", UNKNOWN)
        found, kind = deployment, above.kind
    return Counted(found.metadata.uid, f"{kind} {found.metadata.name}", replicas_of(found))


def counted_over(stores: Stores, pods: Iterable[Pod], answers: Answers | None = None) -> tuple[Counted, ...]:
    """The distinct workloads of pods (PUB-31)."""
    found = (counted_by(stores, reference, namespace, answers) for reference, namespace in controllers_of(pods))
    return tuple({item.uid: item for item in found if item is not None}.values())


def controllers_of(pods: Iterable[Pod]) -> Iterable[tuple[OwnerReference, str]]:
    """Each once, with its namespace."""
    found: dict[str, tuple[OwnerReference, str]] = {}
    for pod in pods:
        reference = controller_of(pod)
        if reference is not None:
            found.setdefault(reference.uid, (reference, pod.metadata.namespace))
    return found.values()


def is_target(reference: TargetReference, api_version: str, kind: str, name: str) -> bool:
    """Whatever the version (PUB-30)."""
    return (group_of(reference.api_version), reference.kind, reference.name) == (group_of(api_version), kind, name)


def owners_of(stores: Stores, reference: OwnerReference, namespace: str) -> Iterable[Owner]:
    """The controller of a pod and all above it, as far as they can be told (PUB-57): of a ReplicaSet its Deployment, of
    that a UnitedDeployment."""
    above: OwnerReference | None = reference
    seen: set[Owner] = set()
    while above is not None:
        owner = Owner(group_of(above.api_version), above.kind, above.name)
        if owner in seen:
            return
        seen.add(owner)
        yield owner
        resource = KINDS.get((owner.group, owner.kind))
        found = stores.store(resource).get(namespace, owner.name) if resource is not None else None
        above = controller_of(found) if found is not None else None
