"""What a pass over a budget asks the API server for, beside what is watched.

How many pods workloads should have whose kinds nobody watches: by their scale (PUB-30, PUB-31). Only budgets over such
workloads cost that request. Kinds are looked up by what the server says it serves. And workloads of other kinds that a
store does not have: where its watch lags behind, they are not gone.

And the pods whose records are over: a record is dropped because by then everybody has seen what became of the pod. A
watch that lags behind has not, and would count a pod as available that is long gone. So would a manager that was the
leader once and does not know better: it has seen older pods than the one who wrote the numbers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from kruise.api.meta import Key, PartialObject
from kruise.api.native.pod import PODS
from kruise.api.policy.podunavailablebudget import POD_UNAVAILABLE_BUDGETS, PodUnavailableBudget
from kruise.api.resource import Resource
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import ClientError, ForbiddenError, NotFoundError
from kruise.machinery.clock import Clock
from kruise.machinery.codec import Struct
from kruise.machinery.controller import OutsideError
from kruise.machinery.served_kinds import OnlyLooks, ServedKinds
from kruise.machinery.spec import Stores
from kruise.machinery.store import parse_version
from kruise.protection.podunavailablebudget.booking import records_over
from kruise.protection.podunavailablebudget.members import Selected, owners_to_ask
from kruise.protection.podunavailablebudget.workloads import KINDS, UNKNOWN, Answers, Asked, Owner

_PODS: Resource[PartialObject] = Resource("", "v1", "pods", "Pod", True, PartialObject)
_LOOKED_AT = 20
"""Pods in one pass; the others are looked at in the next."""


class _Spec(Struct):
    replicas: int | None = None


class _Sized(PartialObject):
    spec: _Spec = _Spec()


@dataclasses.dataclass(frozen=True, slots=True)
class Looked:
    """What was found."""

    answers: Answers = dataclasses.field(default_factory=dict)
    pods: Mapping[str, int | None] = dataclasses.field(default_factory=dict)
    """The versions of the pods whose records are over; None: there is no such pod."""
    strange: int = 0
    """A version that the numbers of the budget are of, and that not even the API server has: from another cluster,
    whose objects were brought here."""


class Counts(OnlyLooks):
    """What passes over budgets see beside the stores (`kruise.machinery.controller.Outside`)."""

    def __init__(self, client: Client, stores: Stores, selected: Selected, clock: Clock) -> None:
        self._client = client
        self._stores = stores
        self._selected = selected
        self._clock = clock
        self._kinds = ServedKinds(client, clock, _Sized)
        self._with_scale: set[tuple[str, str]] = set()
        """Groups and kinds that have shown one."""

    async def look(self, key: Key, /) -> Looked:
        budget = self._stores.store(POD_UNAVAILABLE_BUDGETS).get(*key)
        if budget is None:
            return Looked()
        over = records_over(budget.status, self._clock.now())[:_LOOKED_AT]
        try:
            answers = await self._answers(budget)
            pods = {name: await self._version(name, key.namespace) for name in over}
            strange = await self._strange(budget)
        except ClientError as error:
            raise OutsideError(f"what the budget is about cannot be read: {error}") from error
        return Looked(answers, pods, strange)

    async def _answers(self, budget: PodUnavailableBudget) -> Answers:
        answers: dict[Owner, Any] = {}
        # Behind a ReplicaSet that the store does not have may be a Deployment that it does not have either.
        while owners := owners_to_ask(budget, self._stores, self._selected, answers):
            for owner in owners:
                ask = self._object if owner.is_watched else self._ask
                answers[owner] = await ask(owner, budget.metadata.namespace)
        return answers

    async def _object(self, owner: Owner, namespace: str) -> Any:
        try:
            found = await self._client.get(KINDS[owner.group, owner.kind], owner.name, namespace)
        except (NotFoundError, ForbiddenError):
            return None  # a kind that the manager may not read is as good as not served
        return None if found.metadata.deletion_timestamp is not None else found

    async def _strange(self, budget: PodUnavailableBudget) -> int:
        version = budget.status.pods_version
        if version <= self._stores.store(PODS).watermark:
            return 0
        page = await self._client.list_page(_PODS, budget.metadata.namespace, limit=1)
        return version if version > parse_version(page.resource_version, _PODS) else 0

    async def _version(self, pod: str, namespace: str) -> int | None:
        try:
            found = await self._client.get(_PODS, pod, namespace)
        except NotFoundError:
            return None
        return parse_version(found.metadata.resource_version, _PODS)

    async def _ask(self, owner: Owner, namespace: str) -> Asked | None:
        resource = await self._kinds.find(owner.group, owner.kind)
        if resource is None:
            return None
        try:
            workload = await self._kinds.listed(owner.group, owner.kind, owner.name, namespace)
        except ForbiddenError as error:
            return await self._by_scale_alone(owner, resource, namespace, error)
        if workload is None or workload.metadata.deletion_timestamp is not None:
            return None
        own = workload.spec.replicas
        try:
            scale = await self._client.get_scale(resource, owner.name, namespace)
        except (NotFoundError, ForbiddenError):
            return Asked(uid=workload.metadata.uid, replicas=UNKNOWN if own is None else own)
        # A scale leaves out 0 and what was never said: only the object tells which.
        is_said = scale.spec.replicas or own is not None
        replicas = scale.spec.replicas if is_said else UNKNOWN
        return Asked(uid=workload.metadata.uid, replicas=replicas, selector=scale.status.selector)

    async def _by_scale_alone(
        self, owner: Owner, resource: Resource[_Sized], namespace: str, refusal: ForbiddenError
    ) -> Asked | None:
        """The scale of every kind may be read. It shows no difference between 0 and a number that was never said."""
        try:
            scale = await self._client.get_scale(resource, owner.name, namespace)
        except NotFoundError as error:
            if error.status.details.name and (owner.group, owner.kind) in self._with_scale:
                return None
            # A kind without a scale has the same answer as a workload that is gone. Nobody may be taken for gone.
            raise OutsideError(
                f"{owner} is gone or has no scale, and the manager may not look: {refusal}. Give it `list` on the kind"
            ) from refusal
        self._with_scale.add((owner.group, owner.kind))
        return Asked(uid=scale.metadata.uid, replicas=scale.spec.replicas or UNKNOWN, selector=scale.status.selector)


def asking(selected: Selected) -> Callable[[Client, Stores, Clock], Counts]:
    return lambda client, stores, clock: Counts(client, stores, selected, clock)
