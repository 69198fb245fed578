"""Carries out the steps of a takeover, or of the way back. Each may be carried out again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from kruise.admission.configurations import GROUPS
from kruise.api.meta import PartialObject
from kruise.api.native.apps import CONTROLLER_REVISIONS
from kruise.api.native.config import CONFIG_MAPS, SECRETS
from kruise.api.native.extensions import CUSTOM_RESOURCE_DEFINITIONS
from kruise.api.native.pod import PODS, Pod
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS
from kruise.api.resource import Resource
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import InvalidError, NotFoundError
from kruise.machinery.client.requests import PatchType
from kruise.machinery.clock import Clock
from kruise.machinery.documents import value_at
from kruise.machinery.wording import listed
from kruise.manager.installation.documents import Json, Named, named
from kruise.manager.installation.installer import (
    InstallationError,
    Installer,
    Report,
    document_of,
    identity,
    kind_of,
    resource_of,
)
from kruise.manager.installation.takeover import note as notes
from kruise.manager.installation.takeover.steps import (
    Bring,
    Forget,
    Keep,
    Mark,
    PutBack,
    Readdress,
    Ready,
    Remove,
    Step,
    Stop,
    Store,
)

_POLL_SECONDS = 0.5
_LEARNING_SECONDS = 5.0
"""API servers learn of a definition one after the other: what is written at once may be stored as before."""
_ENDED = ("Succeeded", "Failed")


def _kind(group: str, plural: str, kind: str) -> Resource[PartialObject]:
    return Resource(group, "v1", plural, kind, True, PartialObject)


_OWNED: Sequence[Resource[Any]] = (
    PODS,
    PERSISTENT_VOLUME_CLAIMS,
    CONTROLLER_REVISIONS,
    _kind("apps", "deployments", "Deployment"),
    _kind("apps", "statefulsets", "StatefulSet"),
    _kind("batch", "jobs", "Job"),
)
"""Beside our own kinds."""
_DISTRIBUTION, _COPIES = ("apps.kruise.io", "ResourceDistribution"), (SECRETS, CONFIG_MAPS)


class Carrier:
    def __init__(self, client: Client, *, namespace: str, clock: Clock, report: Report, timeout: float = 60.0) -> None:
        self._client = client
        self._namespace = namespace
        self._clock = clock
        self._report = report
        self._timeout = timeout
        self._installer = Installer(client, clock=clock, report=report, timeout=timeout)

    async def carry_out(self, steps: Sequence[Step]) -> None:
        """In order. Raises `InstallationError` or `ClientError` where one cannot be; those before it stay."""
        for step in steps:
            await self._carry_out(step)

    async def _carry_out(self, step: Step) -> None:
        match step:
            case Keep(note):
                body = notes.written(note, self._namespace)
                await self._client.create(CONFIG_MAPS, body, self._namespace)
                self._report(f"configmap/{notes.NAME} keeps {len(note.documents)} objects as they are")
            case Mark(state):
                body = {"data": {"state": state.value}}
                await self._client.patch(CONFIG_MAPS, notes.NAME, body, self._namespace)
            case Stop(name):
                await self._stop(name)
            case Remove(name, labels):
                await self._remove(name, labels)
            case Bring(manifests, _):
                await self._installer.apply(manifests)
            case Ready(name):
                await self._ready(name)
            case Store(definition, version):
                await self._store(definition, version)
            case Readdress(versions):
                await self._readdress(versions)
            case PutBack(documents):
                for document in documents:
                    await self._put_back(document)
            case Forget():
                await self._client.delete(CONFIG_MAPS, notes.NAME, self._namespace)

    # What runs

    async def _stop(self, name: Named) -> None:
        resource = kind_of(name)
        live = await document_of(self._client, name)
        if live is None:
            return
        body = {"metadata": {"uid": live["metadata"]["uid"]}, "spec": {"replicas": 0}}
        await self._client.patch(resource, name.name, body, name.namespace)
        await self._until_gone(name, value_at(live, ("spec", "selector", "matchLabels"), {}))
        self._report(f"{name} is stopped: it has no pods")

    async def _remove(self, name: Named, labels: Mapping[str, str]) -> None:
        try:
            await self._client.delete(kind_of(name), name.name, name.namespace, propagation="Background")
        except NotFoundError:
            return
        if labels:
            await self._until_gone(name, labels)
        self._report(f"{name} is gone")

    async def _until_gone(self, name: Named, labels: Mapping[str, str]) -> None:
        selector = ",".join(f"{key}={value}" for key, value in labels.items())
        deadline = self._clock.monotonic() + self._timeout
        while True:
            pods = (await self._client.list(PODS, name.namespace, labels=selector)).items
            left = [pod for pod in pods if pod.status.phase not in _ENDED]
            if not left:
                return
            if self._clock.monotonic() >= deadline:
                places = listed([_place(pod) for pod in left])
                raise InstallationError(
                    f"pods of {name} are still there after {self._timeout:g} s: {places}. Nothing goes on while they "
                    "may be at work. Those of a node that is off for good have to be deleted by hand (kubectl delete "
                    f"pod --force -n {name.namespace} NAME). Then run this again: it goes on from here"
                )
            await asyncio.sleep(_POLL_SECONDS)

    async def _ready(self, name: Named) -> None:
        deadline = self._clock.monotonic() + self._timeout
        while True:
            live = await document_of(self._client, name) or {}
            seen = value_at(live, ("status", "observedGeneration"), 0) >= value_at(live, ("metadata", "generation"), 1)
            if seen and value_at(live, ("status", "availableReplicas"), 0):
                self._report(f"{name} is ready")
                return
            if self._clock.monotonic() >= deadline:
                raise InstallationError(
                    f"{name} has no pod that is ready after {self._timeout:g} s; until it has, webhooks answer nobody. "
                    "kruise doctor tells why. Then run this again: it goes on from here"
                )
            await asyncio.sleep(_POLL_SECONDS)

    # Objects and definitions

    async def _store(self, name: str, version: str) -> None:
        live = await document_of(self._client, Named(CUSTOM_RESOURCE_DEFINITIONS.kind, "", name))
        if live is None:
            return
        patch = [{"op": "test", "path": "/metadata/uid", "value": live["metadata"]["uid"]}]
        for index, one in enumerate(live["spec"]["versions"]):
            patch.append({"op": "test", "path": f"/spec/versions/{index}/name", "value": one["name"]})
            patch.append({"op": "replace", "path": f"/spec/versions/{index}/storage", "value": one["name"] == version})
        definition = await self._client.patch(CUSTOM_RESOURCE_DEFINITIONS, name, patch, patch_type=PatchType.JSON)
        await asyncio.sleep(_LEARNING_SECONDS)
        await self._installer.migrate(definition)

    async def _put_back(self, document: Json) -> None:
        """Replaced by what it was; where that cannot be, made anew."""
        name = named(document)
        resource, namespace, _ = identity(document)
        live = await document_of(self._client, name)
        if live is None:
            await self._client.create(resource, dict(document), namespace)
        else:
            version = live["metadata"]["resourceVersion"]
            body = {**document, "metadata": {**document["metadata"], "resourceVersion": version}}
            try:
                await self._client.update(resource, name.name, body, namespace)
            except InvalidError:
                if name.kind == CUSTOM_RESOURCE_DEFINITIONS.kind:
                    raise  # its objects would go with it
                await self._client.delete(resource, name.name, namespace, propagation="Background")
                await self._client.create(resource, dict(document), namespace)
        self._report(f"{resource}/{name.name} is as it was")

    async def _readdress(self, versions: Mapping[tuple[str, str], str]) -> None:
        count = 0
        owned = [*_OWNED, *(_COPIES if _DISTRIBUTION in versions else ()), *await self._our_kinds()]
        for resource in owned:
            for item in (await self._client.list(resource)).items:
                patch = _readdressed(item, versions)
                if not patch:
                    continue
                try:
                    about = item.metadata
                    await self._client.patch(resource, about.name, patch, about.namespace, patch_type=PatchType.JSON)
                    count += 1
                except (NotFoundError, InvalidError):
                    continue  # gone, or changed by whoever owns it
        if count:
            self._report(f"{count} objects name their owner as OpenKruise names it")

    async def _our_kinds(self) -> list[Resource[PartialObject]]:
        """In the version in which they are stored: nobody may be there to convert them."""
        found = []
        for definition in (await self._client.list(CUSTOM_RESOURCE_DEFINITIONS)).items:
            stored = next((version.name for version in definition.spec.versions if version.storage), "")
            if definition.spec.group in GROUPS and stored:
                found.append(resource_of(definition, stored))
        return found


def _readdressed(item: Any, versions: Mapping[tuple[str, str], str]) -> list[Json]:
    patch: list[Json] = []
    for index, owner in enumerate(item.metadata.owner_references):
        group, _, version = owner.api_version.rpartition("/")
        stays = versions.get((group, owner.kind))
        if stays is not None and version != stays:
            at = f"/metadata/ownerReferences/{index}"
            patch.append({"op": "test", "path": f"{at}/uid", "value": owner.uid})
            patch.append({"op": "replace", "path": f"{at}/apiVersion", "value": f"{group}/{stays}"})
    return patch


def _place(pod: Pod) -> str:
    return f"{pod.metadata.name} on node {pod.spec.node_name}" if pod.spec.node_name else pod.metadata.name
