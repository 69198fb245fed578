"""Carries out an installation, and brings stored objects up to the storage version."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kruise.admission.inventory import REMOVAL
from kruise.api.meta import PartialObject
from kruise.api.native.extensions import (
    CUSTOM_RESOURCE_DEFINITIONS,
    CustomResourceDefinition,
    is_established,
)
from kruise.api.resource import Resource
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import ApiError, ClientError, NotFoundError
from kruise.machinery.client.requests import PatchType, Request, Verb
from kruise.machinery.clock import Clock
from kruise.machinery.codec import decode
from kruise.manager.installation.documents import Json, Named, named

FIELD_MANAGER = "kruise-install"
_POLL_SECONDS = 0.2

Manifest = Mapping[str, Any]
Report = Callable[[str], None]


class InstallationError(RuntimeError):
    """The installation or removal stopped; the text says where and what to do."""


def _kind(group: str, plural: str, kind: str, *, namespaced: bool) -> Resource[PartialObject]:
    return Resource(group, "v1", plural, kind, namespaced, PartialObject)


_KINDS: Mapping[str, Resource[PartialObject]] = {
    resource.kind: resource
    for resource in (
        _kind("", "namespaces", "Namespace", namespaced=False),
        _kind("", "serviceaccounts", "ServiceAccount", namespaced=True),
        _kind("", "services", "Service", namespaced=True),
        _kind("", "secrets", "Secret", namespaced=True),
        _kind("", "configmaps", "ConfigMap", namespaced=True),
        _kind("apps", "daemonsets", "DaemonSet", namespaced=True),
        _kind("apps", "deployments", "Deployment", namespaced=True),
        _kind("policy", "poddisruptionbudgets", "PodDisruptionBudget", namespaced=True),
        _kind("networking.k8s.io", "networkpolicies", "NetworkPolicy", namespaced=True),
        _kind("monitoring.coreos.com", "servicemonitors", "ServiceMonitor", namespaced=True),
        _kind("monitoring.coreos.com", "prometheusrules", "PrometheusRule", namespaced=True),
        _kind("rbac.authorization.k8s.io", "clusterroles", "ClusterRole", namespaced=False),
        _kind("rbac.authorization.k8s.io", "clusterrolebindings", "ClusterRoleBinding", namespaced=False),
        _kind("rbac.authorization.k8s.io", "roles", "Role", namespaced=True),
        _kind("rbac.authorization.k8s.io", "rolebindings", "RoleBinding", namespaced=True),
        _kind("apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False),
        _kind(
            "admissionregistration.k8s.io",
            "mutatingwebhookconfigurations",
            "MutatingWebhookConfiguration",
            namespaced=False,
        ),
        _kind(
            "admissionregistration.k8s.io",
            "validatingwebhookconfigurations",
            "ValidatingWebhookConfiguration",
            namespaced=False,
        ),
    )
}


@dataclasses.dataclass(frozen=True, slots=True)
class Installed:
    """How many objects each outcome had."""

    created: int = 0
    configured: int = 0
    unchanged: int = 0
    rewritten: int = 0


class Installer:
    def __init__(self, client: Client, *, clock: Clock, report: Report, timeout: float = 60.0) -> None:
        self._client = client
        self._clock = clock
        self._report = report
        self._timeout = timeout

    async def install(self, manifests: Sequence[Manifest]) -> Installed:
        """Apply everything in order; over an older installation, rewrite what is stored in older versions.

        May be repeated at any time: what is as it should be stays untouched.
        """
        counts, definitions = await self.apply(manifests)
        rewritten = 0
        for definition in definitions:
            rewritten += await self.migrate(definition)
        return Installed(**counts, rewritten=rewritten)

    async def apply(self, manifests: Sequence[Manifest]) -> tuple[Mapping[str, int], list[CustomResourceDefinition]]:
        """Everything in order, until it is established: how many objects each outcome had, and the definitions.
        Nothing that is stored is rewritten."""
        counts = {"created": 0, "configured": 0, "unchanged": 0}
        for manifest in manifests:
            counts[await self._apply(manifest)] += 1
        names = [m["metadata"]["name"] for m in manifests if m["kind"] == CUSTOM_RESOURCE_DEFINITIONS.kind]
        return counts, [await self._established(name) for name in names]

    async def _apply(self, manifest: Manifest) -> str:
        resource, namespace, name = identity(manifest)
        before = await self._standing(resource, name, namespace)
        try:
            after = await apply(self._client, manifest)
        except NotFoundError as error:
            raise InstallationError(
                f"{resource}/{name} cannot be made: this cluster does not serve {manifest['kind']} "
                f"({manifest['apiVersion']}), or has no namespace {namespace!r}. What was asked for before is there"
            ) from error
        except ApiError as error:
            raise InstallationError(f"{resource}/{name} was refused: {error}") from error
        if REMOVAL in after.metadata.annotations:
            # Somebody began to remove it, and has thought better of it.
            after = await self._client.patch(resource, name, {"metadata": {"annotations": {REMOVAL: None}}}, namespace)
        if not before:
            outcome = "created"
        else:
            outcome = "unchanged" if after.metadata.resource_version == before else "configured"
        self._report(f"{resource}/{name} {outcome}")
        return outcome

    async def _standing(self, resource: Resource[PartialObject], name: str, namespace: str) -> str:
        """The version of what is there; empty: nothing is. What is being deleted is waited for, since it does not come
        back: after a removal namespaces take some seconds to go, and nothing can be made in them meanwhile."""
        deadline, is_told = self._clock.monotonic() + self._timeout, False
        while True:
            try:
                metadata = (await self._client.get(resource, name, namespace)).metadata
            except NotFoundError:
                return ""
            if metadata.deletion_timestamp is None:
                return metadata.resource_version
            if not is_told:
                self._report(f"{resource}/{name} is being deleted: waiting until it is gone")
                is_told = True
            if self._clock.monotonic() >= deadline:
                raise InstallationError(
                    f"{resource}/{name} is still being deleted after {self._timeout:g} s: its status or its finalizers "
                    "tell what holds it. What was asked for before is there; run this again when it is gone"
                )
            await asyncio.sleep(_POLL_SECONDS)

    async def _established(self, name: str) -> CustomResourceDefinition:
        deadline = self._clock.monotonic() + self._timeout
        while True:
            definition = await self._client.get(CUSTOM_RESOURCE_DEFINITIONS, name)
            if is_established(definition):
                return definition
            if self._clock.monotonic() >= deadline:
                conditions = "; ".join(f"{c.type}={c.status} {c.message}" for c in definition.status.conditions)
                raise InstallationError(f"{name} was not established within {self._timeout:g} s: {conditions}")
            await asyncio.sleep(_POLL_SECONDS)

    async def migrate(self, definition: CustomResourceDefinition) -> int:
        """Rewrite the objects of a kind in its storage version, then drop the older ones from `storedVersions`.

        An unchanged write is enough: the API server stores it in the storage version. Where the kind has a status, it
        is one of that: it passes no webhook that could fill in something, so no generation rises. An object that goes
        away or is written by another meanwhile needs nothing from us.
        """
        name = definition.metadata.name
        stored_in = next(version for version in definition.spec.versions if version.storage)
        storage, part = stored_in.name, "status" if "status" in stored_in.subresources else ""
        if not set(definition.status.stored_versions) - {storage}:
            return 0
        resource = resource_of(definition, storage)
        rewritten = 0
        try:
            found = await self._client.list(resource)
            for item in found.items:
                try:
                    await self._client.patch(
                        resource, item.metadata.name, {}, item.metadata.namespace, subresource=part
                    )
                    rewritten += 1
                except NotFoundError:
                    continue
        except ClientError as error:
            raise InstallationError(
                f"objects of {name} could not be rewritten in version {storage}: {error}. "
                "If this kind converts through a webhook, start the manager, then run the installation again"
            ) from error
        body = {
            "metadata": {"resourceVersion": definition.metadata.resource_version},
            "status": {"storedVersions": [storage]},
        }
        await self._client.patch(CUSTOM_RESOURCE_DEFINITIONS, name, body, subresource="status")
        older = ", ".join(sorted(set(definition.status.stored_versions) - {storage}))
        self._report(f"{resource}: {rewritten} objects rewritten in {storage}, stored versions no longer list {older}")
        return rewritten


async def apply(client: Client, manifest: Manifest, *, dry_run: bool = False) -> PartialObject:
    """An object of the installation as it should be, whoever has written it before."""
    if manifest["kind"] == CUSTOM_RESOURCE_DEFINITIONS.kind:
        manifest = await with_live_address(client, manifest)
    resource, namespace, name = identity(manifest)
    return await client.patch(
        resource,
        name,
        dict(manifest),
        namespace,
        patch_type=PatchType.APPLY,
        field_manager=FIELD_MANAGER,
        force=True,
        dry_run=dry_run,
    )


async def document_of(client: Client, name: Named) -> Json | None:
    """The whole object; None where it, or its kind, is not there."""
    resource = kind_of(name)
    try:
        answer = await client.send(Request(Verb.GET, resource, name.namespace, name.name))
    except NotFoundError:
        return None
    found: Json = {"apiVersion": resource.api_version, "kind": name.kind, **decode(answer.body, dict[str, Any])}
    return found


async def with_live_address(client: Client, manifest: Manifest) -> Manifest:
    """A definition with the converting webhook's address as a manager outside the cluster has set it: a URL and the
    Service of the manifest exclude each other."""
    try:
        live = await client.get(CUSTOM_RESOURCE_DEFINITIONS, manifest["metadata"]["name"])
    except NotFoundError:
        return manifest
    address = live.spec.conversion.get("webhook", {}).get("clientConfig", {})
    conversion = manifest["spec"].get("conversion", {})
    if "url" not in address or "webhook" not in conversion:
        return manifest
    webhook = {**conversion["webhook"], "clientConfig": address}
    return {**manifest, "spec": {**manifest["spec"], "conversion": {**conversion, "webhook": webhook}}}


def identity(manifest: Manifest) -> tuple[Resource[PartialObject], str, str]:
    name = named(manifest)
    return kind_of(name), name.namespace, name.name


def kind_of(name: Named) -> Resource[PartialObject]:
    return _KINDS[name.kind]


def resource_of(definition: CustomResourceDefinition, version: str) -> Resource[PartialObject]:
    spec = definition.spec
    namespaced = spec.scope == "Namespaced"
    return Resource(spec.group, version, spec.names.plural, spec.names.kind, namespaced, PartialObject)
