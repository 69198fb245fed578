"""The end of a namespace: everything in it is deleted, pods first, and when nothing is left it is let go."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import Any, Final

from kruise.api.meta import ObjectMeta, PartialObject
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.local.collector.served import Discover, preferred
from kruise.local.namespaces.conditions import Findings, conditions, remain_unexpectedly
from kruise.machinery.client.client import Client
from kruise.machinery.client.discovery import ServedResource
from kruise.machinery.client.errors import ApiError, ClientError, ConflictError, NotFoundError
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.clock import Clock
from kruise.machinery.codec import Struct, decode, encode, field
from kruise.machinery.times import format_time

FINALIZER: Final = "kubernetes"
FINALIZER_ESTIMATE: Final = 15
"""Seconds that the finalizers of an object may take."""

Json = dict[str, Any]


class _NamespaceSpec(Struct):
    finalizers: tuple[str, ...] = ()


class _NamespaceStatus(Struct):
    phase: str = ""
    conditions: tuple[dict[str, Any], ...] = ()


class EndingNamespace(Struct):
    """A namespace as its deletion sees it."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: _NamespaceSpec = _NamespaceSpec()
    status: _NamespaceStatus = _NamespaceStatus()


ENDING = Resource("", "v1", "namespaces", "Namespace", False, EndingNamespace)


class _PodSpec(Struct):
    termination_grace_period_seconds: int | None = None


class _PodStatus(Struct):
    phase: str = ""


class _EndingPod(Struct):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: _PodSpec = field(default_factory=_PodSpec)
    status: _PodStatus = field(default_factory=_PodStatus)


_ENDING_PODS = Resource("", "v1", "pods", "Pod", True, _EndingPod)


class ContentError(Exception):
    """Something could not be deleted; it is tried again."""


@dataclasses.dataclass(slots=True)
class _Rest:
    """What is left of a kind."""

    estimate: int = 0
    number: int = 0
    finalizers: dict[str, int] = dataclasses.field(default_factory=dict)
    failure: str = ""


class Deletion:
    def __init__(self, client: Client, *, clock: Clock, discover: Discover) -> None:
        self._client = client
        self._clock = clock
        self._discover = discover

    async def advance(self, name: str) -> int:
        """Do what can be done now. Returns the seconds that the rest may take, 0 when the namespace is let go."""
        try:
            namespace = await self._client.get(ENDING, name)
            if namespace.metadata.deletion_timestamp is None:
                return 0
            if namespace.status.phase != "Terminating":
                patch = {"metadata": {"uid": namespace.metadata.uid}, "status": {"phase": "Terminating"}}
                namespace = await self._client.patch(ENDING, name, patch, subresource="status")
            if not namespace.spec.finalizers:
                return 0
            estimate = await self._delete_content(namespace)
            if not estimate:
                await self._finalize(name, namespace.metadata.uid)
        except NotFoundError:
            return 0
        return estimate

    async def _delete_content(self, namespace: EndingNamespace) -> int:
        name, deleted_at = namespace.metadata.name, namespace.metadata.deletion_timestamp or self._clock.now()
        findings = Findings()
        kinds: list[ServedResource] = []
        try:
            discovery = await self._discover()
            kinds = [served for served in preferred(discovery, "delete") if served.namespaced]
            if discovery.unreachable:
                groups = ", ".join(discovery.unreachable)
                findings.discovery_trouble = (
                    f"Discovery failed for some groups, {len(discovery.unreachable)} failing: "
                    f"unable to retrieve the complete list of server APIs: {groups}"
                )
        except ClientError as error:
            findings.discovery_trouble = str(error)
        pods = [served for served in kinds if (served.group, served.plural) == (PODS.group, PODS.plural)]
        others = [served for served in kinds if served not in pods]
        estimate = await self._delete_kinds(pods, name, deleted_at, findings)
        if findings.remaining:
            findings.tells_remaining = False
        else:
            estimate = max(estimate, await self._delete_kinds(others, name, deleted_at, findings))
        await self._write_conditions(namespace, findings)
        if findings.failures or findings.discovery_trouble:
            raise ContentError(f"namespace {name}: " + "; ".join([*findings.failures, findings.discovery_trouble]))
        return estimate

    async def _delete_kinds(
        self, kinds: list[ServedResource], namespace: str, deleted_at: datetime, findings: Findings
    ) -> int:
        estimate = 0
        for served in kinds:
            rest = await self._delete_kind(served, namespace, deleted_at)
            estimate = max(estimate, rest.estimate)
            if rest.failure:
                findings.failures.append(rest.failure)
            if rest.number:
                findings.remaining[served] = rest.number
                for finalizer, number in rest.finalizers.items():
                    findings.finalizers[finalizer] = findings.finalizers.get(finalizer, 0) + number
        return estimate

    async def _delete_kind(self, served: ServedResource, namespace: str, deleted_at: datetime) -> _Rest:
        rest = _Rest()
        resource: Resource[Any] = served.resource
        try:
            if (served.group, served.plural) == (PODS.group, PODS.plural):
                rest.estimate = await self._grace(namespace, deleted_at)
            if "deletecollection" in served.verbs:
                # Background: an orphan finalizer would keep what has to go.
                await self._client.delete_collection(resource, namespace, propagation="Background")
            else:
                await self._delete_each(resource, namespace)
            left = (await self._client.list(resource, namespace)).items if "list" in served.verbs else ()
        except NotFoundError:
            return _Rest()  # the kind went in the meantime, and its objects with it
        except ApiError as error:
            if error.code == 405:
                return _Rest()
            rest.failure = str(error)
            return rest
        if not left:
            return _Rest()
        rest.number = len(left)
        for obj in left:
            for finalizer in obj.metadata.finalizers:
                rest.finalizers[finalizer] = rest.finalizers.get(finalizer, 0) + 1
        if not rest.estimate and rest.finalizers:
            rest.estimate = FINALIZER_ESTIMATE
        elif not rest.estimate:
            rest.failure = remain_unexpectedly(namespace, served)
        return rest

    async def _delete_each(self, resource: Resource[Any], namespace: str) -> None:
        found: tuple[PartialObject, ...] = (await self._client.list(resource, namespace)).items
        for obj in found:
            try:
                await self._client.delete(resource, obj.metadata.name, namespace, propagation="Background")
            except NotFoundError:
                continue

    async def _grace(self, namespace: str, deleted_at: datetime) -> int:
        """The longest time that a pod may take to end, while it has not passed since the deletion."""
        longest = 0
        for pod in (await self._client.list(_ENDING_PODS, namespace)).items:
            if pod.status.phase not in ("Succeeded", "Failed"):
                longest = max(longest, pod.spec.termination_grace_period_seconds or 0)
        return longest if (self._clock.now() - deleted_at).total_seconds() < longest else 0

    async def _write_conditions(self, namespace: EndingNamespace, findings: Findings) -> None:
        before = [dict(condition) for condition in namespace.status.conditions]
        after = conditions(before, findings, format_time(self._clock.now()))
        if after == before:
            return
        patch = {"metadata": {"uid": namespace.metadata.uid}, "status": {"conditions": after}}
        try:
            await self._client.patch(ENDING, namespace.metadata.name, patch, subresource="status")
        except ConflictError:
            return  # told at the next pass

    async def _finalize(self, name: str, uid: str) -> None:
        """Take our finalizer away; what others put there stays."""
        answer = await self._client.send(Request(Verb.GET, ENDING, name=name))
        body: Json = decode(answer.body, dict)
        if body["metadata"]["uid"] != uid:
            return
        kept = [item for item in body.get("spec", {}).get("finalizers") or () if item != FINALIZER]
        body["spec"] = {**body.get("spec", {}), "finalizers": kept}
        request = Request(Verb.UPDATE, ENDING, name=name, subresource="finalize", body=encode(body))
        await self._client.send(request)
