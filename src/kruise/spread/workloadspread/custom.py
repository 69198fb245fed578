"""Workloads of kinds that nobody here watches: read when somebody asks, with `get` alone (WS-38 to WS-40, WS-57).

Admission reads them by the usual plural of their kind, as kubectl does without discovery; the controller asks the
server what it serves.
"""

from __future__ import annotations

from collections.abc import Callable

from kruise.api.apps.workloadspread import WORKLOAD_SPREADS, WorkloadSpreadSpec
from kruise.api.meta import Key
from kruise.api.native.config import CONFIG_MAPS, CONFIGURATION, WhitelistError
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import ClientError, ForbiddenError, NotFoundError
from kruise.machinery.clock import Clock
from kruise.machinery.codec import Struct
from kruise.machinery.controller import OutsideError
from kruise.machinery.served_kinds import OnlyLooks, ServedKinds
from kruise.machinery.spec import Stores
from kruise.spread.workloadspread import whitelist
from kruise.spread.workloadspread.numbers import PathError
from kruise.spread.workloadspread.targets import CustomObject, is_supported
from kruise.spread.workloadspread.whitelist import CustomKind, replicas_in


class Asked(Struct, kw_only=True):
    """A workload as it was read."""

    uid: str = ""
    """Empty: there is none."""
    replicas: int | None = None
    """None: it does not tell."""
    selector: str = ""
    """Of its pods, where its scale tells."""
    problem: str = ""


class CustomTargets(OnlyLooks):
    """What passes see beside the stores (`kruise.machinery.controller.Outside`)."""

    def __init__(self, client: Client, stores: Stores, clock: Clock, own_namespace: str) -> None:
        self._client = client
        self._stores = stores
        self._own_namespace = own_namespace
        self._kinds = ServedKinds(client, clock, CustomObject)

    async def look(self, key: Key, /) -> Asked:
        spread = self._stores.store(WORKLOAD_SPREADS).get(*key)
        if spread is None or is_supported(spread.spec.target_ref):
            return Asked()
        reference = spread.spec.target_ref
        try:
            return await self._ask(spread.spec, key.namespace)
        except ForbiddenError:
            words = f"the manager may not read it: let its role get {reference.kind}s of {reference.group or 'core'}"
            return Asked(problem=f"{reference.kind} {reference.name}: {words}")
        except (PathError, WhitelistError) as error:
            return Asked(problem=str(error))
        except ClientError as error:
            raise OutsideError(f"{reference.kind} {reference.name} cannot be read: {error}") from error

    async def _ask(self, spec: WorkloadSpreadSpec, namespace: str) -> Asked:
        reference = spec.target_ref
        resource = await self._kinds.find(reference.group, reference.kind)
        if resource is None:
            return Asked()
        workload = await self._kinds.read(reference.group, reference.kind, reference.name, namespace)
        if workload is None or workload.metadata.deletion_timestamp is not None:
            return Asked()
        replicas = replicas_in(workload.document, spec, await self._entry(reference.group, reference.kind))
        selector = ""
        try:
            scale = await self._client.get_scale(resource, reference.name, namespace)
        except (NotFoundError, ForbiddenError):
            pass  # it has none
        else:
            selector = scale.status.selector
            replicas = scale.spec.replicas if replicas is None else replicas
        return Asked(uid=workload.metadata.uid, replicas=replicas, selector=selector)

    async def _entry(self, group: str, kind: str) -> CustomKind | None:
        try:
            config = await self._client.get(CONFIG_MAPS, CONFIGURATION, self._own_namespace)
        except NotFoundError:
            return None
        return whitelist.find(whitelist.parsed(config.data), group, kind)


def asking(own_namespace: str) -> Callable[[Client, Stores, Clock], CustomTargets]:
    return lambda client, stores, clock: CustomTargets(client, stores, clock, own_namespace)
