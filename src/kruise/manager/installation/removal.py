"""Takes an installation away, whatever state the manager is in: at work, dead, or never started.

The order: what intercepts requests first, then the definitions with all their objects, then what the manager needs
(rights, Service, certificates, namespaces), so that a manager that is at work can do its part to the last. Whatever is
gone already is passed over: after a failure the next run goes on where this one stopped, and `kruise install` brings
everything back.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from kruise.admission.inventory import REMOVAL
from kruise.api.definitions import DERIVED
from kruise.api.meta import PartialObject, key_of
from kruise.api.native.extensions import (
    CUSTOM_RESOURCE_DEFINITIONS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    CustomResourceDefinition,
)
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import ClientError, ConflictError, InvalidError, NotFoundError
from kruise.machinery.clock import Clock
from kruise.machinery.wording import listed
from kruise.manager.installation.installer import InstallationError, Manifest, Report, identity, resource_of

_POLL_SECONDS = 0.5
_MANAGER_SECONDS = 10.0
"""How long a manager has to finish with objects that its own finalizers hold, before they are taken off for it."""
_HOLDS_PODS = "foregroundDeletion (its pods are still there: see kubectl get pods)"
_CONFIGURATIONS = {
    resource.kind: resource for resource in (MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS)
}


class Remover:
    def __init__(self, client: Client, *, clock: Clock, report: Report, timeout: float = 120.0) -> None:
        self._client = client
        self._clock = clock
        self._report = report
        self._timeout = timeout

    async def uninstall(self, manifests: Sequence[Manifest], *, with_resources: bool = False) -> int:
        """Remove what was installed; the number of objects. Refuses while custom resources exist, unless told
        otherwise; then nothing was changed. Stops where some are made meanwhile."""
        if not with_resources:
            await self.check(manifests)
        last_first = list(reversed(manifests))
        definitions = [manifest for manifest in last_first if manifest["kind"] == CUSTOM_RESOURCE_DEFINITIONS.kind]
        webhooks = [manifest for manifest in last_first if manifest["kind"] in _CONFIGURATIONS]
        others = [manifest for manifest in last_first if manifest not in definitions and manifest not in webhooks]
        removed = 0
        await self._announce(manifests)
        for manifest in webhooks:
            removed += await self._delete(manifest)
        names = [manifest["metadata"]["name"] for manifest in definitions]
        removed += await self._delete_definitions(names, with_resources=with_resources)
        for manifest in others:
            removed += await self._delete(manifest)
        return removed

    async def check(self, manifests: Sequence[Manifest]) -> None:
        """Refuses while custom resources exist; changes nothing."""
        if used := await self._in_use(manifests):
            raise InstallationError(
                f"there still are custom resources in the cluster: {', '.join(used)}. Removing their definitions would "
                "delete them and the pods they own. Delete them first (where no manager answers, webhooks stand in the "
                "way: kruise uninstall --webhooks-only), or say --with-resources"
            )

    async def _announce(self, manifests: Sequence[Manifest]) -> None:
        """A manager that starts meanwhile must not make the configurations again."""
        for manifest in manifests:
            if manifest["kind"] == "Namespace":
                resource, _, name = identity(manifest)
                with contextlib.suppress(NotFoundError):
                    await self._client.patch(resource, name, {"metadata": {"annotations": {REMOVAL: "true"}}})

    async def clear_webhooks(self, manifests: Sequence[Manifest]) -> int:
        """Take the live entries away, so that nothing is intercepted; the number of entries. Their template stays: a
        manager that serves again puts them back."""
        cleared = 0
        for manifest in manifests:
            resource = _CONFIGURATIONS.get(manifest["kind"])
            if resource is None:
                continue
            name = manifest["metadata"]["name"]
            try:
                live = await self._client.get(resource, name)
            except NotFoundError:
                continue
            if live.webhooks:
                await self._client.patch(resource, name, {"metadata": {"uid": live.metadata.uid}, "webhooks": None})
                count = len(live.webhooks)
                self._report(f"{resource}/{name}: {'1 entry' if count == 1 else f'{count} entries'} taken away")
                cleared += count
        return cleared

    # What is in the way

    async def _in_use(self, manifests: Sequence[Manifest]) -> list[str]:
        """The installed kinds of which there are objects, with their numbers."""
        found = []
        for manifest in manifests:
            if manifest["kind"] == CUSTOM_RESOURCE_DEFINITIONS.kind:
                definition = await self._definition(manifest["metadata"]["name"])
                if definition is not None and not _is_derived(definition) and (count := await self._count(definition)):
                    found.append(f"{count} {definition.metadata.name}")
        return sorted(found)

    async def _count(self, definition: CustomResourceDefinition) -> str:
        """In words; empty: none. Nothing is converted to count objects that are stored as they should be."""
        try:
            page = await self._client.list_page(resource_of(definition, _readable(definition)), limit=1)
        except NotFoundError:
            return ""  # not served yet, or not any more
        except ClientError as error:
            # An empty list needs no webhook. So there is something, and somebody must want it deleted.
            return f"an unknown number (they cannot be read: {error}) of"
        count = len(page.items) + (page.remaining or 0)
        return str(count) if count else ""

    async def _definition(self, name: str) -> CustomResourceDefinition | None:
        try:
            return await self._client.get(CUSTOM_RESOURCE_DEFINITIONS, name)
        except NotFoundError:
            return None

    # Definitions and their objects

    async def _delete_definitions(self, names: Sequence[str], *, with_resources: bool) -> int:
        """Delete definitions once they have no objects any more, and wait until they are gone. Nobody deletes objects
        without consent, however late they came."""
        left: dict[str, CustomResourceDefinition] = {}
        for name in names:
            if (definition := await self._definition(name)) is not None:
                await self._stop_converting(definition)
                left[name] = definition
        removed = len(left)
        began = self._clock.monotonic()
        while left:
            waited = self._clock.monotonic() - began
            for name in list(left):
                live = await self._definition(name)
                if live is None or live.metadata.uid != left[name].metadata.uid:
                    del left[name]
                    self._report(f"{CUSTOM_RESOURCE_DEFINITIONS}/{name} deleted")
                    continue
                left[name] = live
                found = await self._objects(live) if not _is_derived(live) else ()
                if found and not with_resources:
                    raise InstallationError(_made_meanwhile(name, found))
                await self._delete_objects(live, found, release=waited >= _MANAGER_SECONDS)
                if not found:
                    await self._client.delete(CUSTOM_RESOURCE_DEFINITIONS, name, propagation="Background")
            if left and waited >= self._timeout:
                raise InstallationError(await self._still_there(left))
            if left:
                await asyncio.sleep(_POLL_SECONDS)
        return removed

    async def _stop_converting(self, definition: CustomResourceDefinition) -> None:
        """The API server reads objects to delete them, and a conversion webhook that does not answer would stop it for
        good. Nobody reads their fields any more, so any version may pass for any other."""
        if definition.spec.conversion.get("strategy") != "Webhook":
            return
        patch: Mapping[str, Any] = {
            "metadata": {"uid": definition.metadata.uid},
            "spec": {"conversion": {"strategy": "None", "webhook": None}},
        }
        await self._client.patch(CUSTOM_RESOURCE_DEFINITIONS, definition.metadata.name, patch)

    async def _objects(self, definition: CustomResourceDefinition) -> Sequence[PartialObject]:
        try:
            return (await self._client.list(resource_of(definition, _readable(definition)))).items
        except NotFoundError:
            return ()  # not served yet, or not any more

    async def _delete_objects(
        self, definition: CustomResourceDefinition, found: Sequence[PartialObject], *, release: bool
    ) -> None:
        """In the foreground: an object goes after its pods. Would it go first, and its definition right after it, then
        the garbage collector might never learn whose pods they were, and leave them."""
        resource = resource_of(definition, _readable(definition))
        for item in found:
            about = item.metadata
            ours = [name for name in about.finalizers if _is_ours(name, definition)]
            try:
                if about.deletion_timestamp is None:
                    await self._client.delete(
                        resource, about.name, about.namespace, uid=about.uid, propagation="Foreground"
                    )
                elif release and ours:
                    # With the manager gone, nobody else takes them off.
                    guard = {"uid": about.uid, "resourceVersion": about.resource_version}
                    others = [name for name in about.finalizers if name not in ours]
                    body = {"metadata": {**guard, "finalizers": others}}
                    await self._client.patch(resource, about.name, body, about.namespace)
                    self._report(f"{resource}/{about.name} in namespace {about.namespace}: released, no manager did")
            except (NotFoundError, ConflictError, InvalidError):
                continue  # it changed meanwhile, and is looked at again

    async def _still_there(self, left: Mapping[str, CustomResourceDefinition]) -> str:
        told = []
        for name, definition in left.items():
            found = await self._objects(definition)
            holders = sorted({finalizer for item in found for finalizer in item.metadata.finalizers})
            if holders:
                words = [_HOLDS_PODS if holder == "foregroundDeletion" else holder for holder in holders]
                objects = listed([str(key_of(item)) for item in found])
                told.append(f"{name}: {objects}, held by finalizer {listed(words)}")
            else:
                reasons = [c.message for c in definition.status.conditions if c.type == "Terminating"]
                told.append(f"{name}: {' '.join(reasons) or 'the API server does not say why'}")
        return (
            f"these definitions are still there after {self._timeout:g} s: {'; '.join(told)}. Whoever put a finalizer "
            "on an object must take it away. Then run this again: it goes on from here"
        )

    async def _delete(self, manifest: Manifest) -> int:
        """How many went: one, or none where it is gone already."""
        resource, namespace, name = identity(manifest)
        try:
            await self._client.delete(resource, name, namespace, propagation="Background")
        except NotFoundError:
            return 0
        except ConflictError:
            self._report(f"{resource}/{name} is on its way out already")  # as namespaces answer
            return 0
        self._report(f"{resource}/{name} deleted")
        return 1


def _made_meanwhile(name: str, found: Sequence[PartialObject]) -> str:
    return (
        f"somebody has made {name} since this began: {listed([str(key_of(item)) for item in found])}. They are left "
        "alone, and so are the definitions that are still there; the webhooks are gone. Run this again when they are "
        "deleted, or with --with-resources. kruise install brings everything back"
    )


def _readable(definition: CustomResourceDefinition) -> str:
    """The served version in which objects are read with the least conversion: the stored one, if it is served."""
    served = [version for version in definition.spec.versions if version.served]
    return next((version.name for version in served if version.storage), served[0].name if served else "")


def _is_derived(definition: CustomResourceDefinition) -> bool:
    """A manager at work makes such objects anew as long as their definition is there, so that goes with them."""
    return DERIVED in definition.metadata.annotations


def _is_ours(finalizer: str, definition: CustomResourceDefinition) -> bool:
    """Finalizers of a kind's own manager carry the kind's group, a part of it or more: `crr.apps.kruise.io/...`,
    `kruise.io/node-pod-probe-cleanup`."""
    domain, group = finalizer.partition("/")[0], definition.spec.group
    return domain == group or domain.endswith(f".{group}") or (domain.count(".") == 1 and group.endswith(f".{domain}"))
