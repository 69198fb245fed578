"""The loop that keeps certificates, webhook configurations and conversion stanzas in step (MGR-31, PW-49).

A configuration that is not there is waited for: whoever installs or removes the system is about to say more. A replica
that has just begun and still misses it after a minute makes it again (`restore`); one that is at work never does, since
taking the configurations away is how a removal begins.

It runs in every replica: on changes (the caller wires `trigger` to its watches), a minute after each success, and with
back-off after a failure. It never ends the process: what is missing is waited for and said in `detail`.

Two writers who want different things must not wear out the API server, which sets up a kind anew at each change of its
CRD. Replicas that share a Service want the same; where each has an address of its own, `registers` lets only the leader
write. Whoever else changes things back (replicas of two versions during an upgrade) is met later each time.

How a new CA comes in without a dropped request:
1. the Secret holds the new CA and certificate, and the former CA beside them;
2. every configuration and CRD gets the bundle of both, while this replica goes on serving its old certificate;
3. after `propagation` seconds, in which API servers learn the new bundle, it serves the new certificate;
4. other replicas do the same when they see the Secret; an hour later the former CA leaves the Secret and the bundles.
A certificate of the same CA is taken at once, and so is any where the present one is of no use.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Any

from kruise.admission.certfiles import CertificateDirectory
from kruise.admission.certificates import TLS_CERT, TLS_KEY, CertificateError, Material, check
from kruise.admission.certstore import CertificateStore
from kruise.admission.configurations import (
    GROUPS,
    MUTATING_NAME,
    VALIDATING_NAME,
    ConfigurationError,
    Endpoint,
    bundle_problems,
    configuration_patch,
    definition_patch,
    is_converted,
    live_bundles,
)
from kruise.admission.tls import ServingCertificate
from kruise.api.native.extensions import (
    CUSTOM_RESOURCE_DEFINITIONS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    CustomResourceDefinition,
    WebhookConfiguration,
)
from kruise.api.resource import Resource
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import (
    AlreadyExistsError,
    ClientError,
    ConflictError,
    InvalidError,
    NotFoundError,
)
from kruise.machinery.clock import Clock

log = logging.getLogger(__name__)

INTERVAL = 60.0
FIRST_BACKOFF = 1.0
LONGEST_BACKOFF = 60.0
PROPAGATION = 5.0
RESTORED_AFTER = 60.0
QUIET = 0.2
"""A burst of changes, our own writes among them, is one pass. Doubled by each pass that wrote in the last minute."""

Definitions = Callable[[], Awaitable[Iterable[CustomResourceDefinition]]]
Restore = Callable[[Resource[WebhookConfiguration]], Awaitable[dict[str, Any] | None]]
"""Gives a configuration as it is installed; None where it is not to be made."""


class SyncError(Exception):
    """A pass did not reach its end; the text lists everything that is in the way."""


class Synchronizer:
    """`definitions` gives the CRDs to look after, from a store where there is one: their schemas are large."""

    def __init__(
        self,
        client: Client,
        *,
        clock: Clock,
        store: CertificateStore,
        directory: CertificateDirectory,
        serving: ServingCertificate,
        endpoint: Endpoint,
        active_paths: Callable[[], Collection[str]],
        definitions: Definitions | None = None,
        registers: Callable[[], bool] = lambda: True,
        restore: Restore | None = None,
        groups: Collection[str] = GROUPS,
        mutating_name: str = MUTATING_NAME,
        validating_name: str = VALIDATING_NAME,
        external: bool = False,
        interval: float = INTERVAL,
        propagation: float = PROPAGATION,
    ) -> None:
        self._client = client
        self._clock = clock
        self._store = store
        self._directory = directory
        self._serving = serving
        self._endpoint = endpoint
        self._active_paths = active_paths
        self._definitions = definitions or self._list_definitions
        self._registers = registers
        self._restore = restore
        self._missed: dict[str, float] = {}
        """Configurations by name, and since when they are missed."""
        self._groups = groups
        self._names: tuple[tuple[Resource[WebhookConfiguration], str], ...] = (
            (MUTATING_WEBHOOK_CONFIGURATIONS, mutating_name),
            (VALIDATING_WEBHOOK_CONFIGURATIONS, validating_name),
        )
        self._external = external
        self._interval = interval
        self._propagation = propagation
        self._wake = asyncio.Event()
        self._served: Material | None = None
        self._written: deque[float] = deque()
        """When the passes of the last minute that wrote something began."""
        self._began = 0.0
        self.first_success = asyncio.Event()
        self.detail = "the first synchronisation of certificates and webhook configurations is under way"
        """For readiness: what the loop waits for; empty after a pass that reached its end."""

    def trigger(self) -> None:
        """Something that a pass depends on has changed."""
        self._wake.set()

    async def run(self) -> None:
        failures = 0
        while True:
            self._wake.clear()
            try:
                await self.run_once()
            except SyncError as error:
                wait = min(FIRST_BACKOFF * 2**failures, LONGEST_BACKOFF)
                failures = min(failures + 1, 16)
                self.detail = str(error)
                log.warning("webhook synchronisation failed", extra={"error": str(error), "retry_after": wait})
            else:
                wait = self._interval
                failures = 0
                self.detail = ""
                self.first_success.set()
            await self._pause(wait)

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return
        await asyncio.sleep(self._quiet())

    def _quiet(self) -> float:
        since = self._clock.monotonic() - INTERVAL
        while self._written and self._written[0] < since:
            self._written.popleft()
        return float(min(QUIET * 2 ** max(0, len(self._written) - 1), INTERVAL))

    async def run_once(self) -> None:
        """One pass. Raises `SyncError`; every part that can be done is done first."""
        self._began = self._clock.monotonic()
        problems: list[str] = []
        configurations = [await self._configuration(resource, name, problems) for resource, name in self._names]
        found = [item for item in configurations if item is not None]
        material = await self._certificates(found)
        definitions = await self._converted_definitions(problems)
        if self._external:
            problems += bundle_problems(found, definitions, material.bundle)
        elif self._registers():
            # Conversion first: what a webhook is called with may have to be converted for it.
            for definition in definitions:
                await self._ensure_definition(definition, material, problems)
            for (resource, _), configuration in zip(self._names, configurations, strict=True):
                if configuration is not None:
                    await self._ensure_configuration(resource, configuration, material, problems)
        if problems:
            raise SyncError("; ".join(problems))
        if self._served != material:
            await asyncio.sleep(self._propagation)
            self._serve(material)

    async def _certificates(self, configurations: Sequence[WebhookConfiguration]) -> Material:
        trusted = self._served.bundle if self._served is not None else b""
        try:
            material = await self._store.ensure(trusted + live_bundles(configurations))
            self._directory.write(material.to_files())
            if self._served is None or self._is_same_ca(material) or not self._is_trusted(material):
                self._serve(material)
        except (CertificateError, ClientError, OSError) as error:
            raise SyncError(f"certificates: {error}") from error
        return material

    def _serve(self, material: Material) -> None:
        if self._served == material and self._serving.is_loaded:
            return
        # Both files from one generation of the directory: a pair that fits, whoever writes meanwhile.
        directory = self._directory.resolved
        try:
            self._serving.load(directory / TLS_CERT, directory / TLS_KEY)
        except OSError as error:  # ssl.SSLError is one
            raise SyncError(f"certificates: cannot load the pair in {directory}: {error}") from error
        self._served = material

    def _is_same_ca(self, material: Material) -> bool:
        return self._served is not None and self._served.ca_cert == material.ca_cert

    def _is_trusted(self, material: Material) -> bool:
        """Whether callers that know only the new bundle still accept what is served now."""
        if self._served is None or self._served.ca_cert not in material.bundle:
            return False
        try:
            check(self._served, self._endpoint.dns_name, self._clock.now())
        except CertificateError:
            return False
        return True

    async def _configuration(
        self, resource: Resource[WebhookConfiguration], name: str, problems: list[str]
    ) -> WebhookConfiguration | None:
        try:
            try:
                found = await self._client.get(resource, name)
            except NotFoundError:
                return await self._made_again(resource, name, problems)
            self._missed.pop(name, None)
            return found
        except ClientError as error:
            problems.append(f"{resource.kind} {name}: {error}")
        return None

    async def _made_again(
        self, resource: Resource[WebhookConfiguration], name: str, problems: list[str]
    ) -> WebhookConfiguration | None:
        now = self._clock.monotonic()
        missed_for = now - self._missed.setdefault(name, now)
        is_new = not self.first_success.is_set() and not self._external and self._registers()
        if self._restore is not None and is_new and missed_for >= RESTORED_AFTER:
            body = await self._restore(resource)
            if body is not None:
                with contextlib.suppress(AlreadyExistsError):  # another replica was faster
                    await self._client.create(resource, body)
                    log.warning("webhook configuration made again", extra={"object": f"{resource.kind} {name}"})
                return await self._client.get(resource, name)
        how = "install it (`kruise install`)"
        if self._restore is not None and not self._external:
            how += f", or start a manager: one that misses it for {RESTORED_AFTER:.0f} s makes it again"
        problems.append(f"waiting for {resource.kind} {name}: {how}")
        return None

    async def _ensure_configuration(
        self,
        resource: Resource[WebhookConfiguration],
        live: WebhookConfiguration,
        material: Material,
        problems: list[str],
    ) -> None:
        where = f"{resource.kind} {live.metadata.name}"
        if not live.kind:
            live = WebhookConfiguration(kind=resource.kind, metadata=live.metadata, webhooks=live.webhooks)
        try:
            patch = configuration_patch(
                live, active=self._active_paths(), endpoint=self._endpoint, bundle=material.bundle
            )
        except ConfigurationError as error:
            problems.append(str(error))
            return
        if patch is not None:
            await self._patch(resource, live.metadata.name, patch, where, problems)

    async def _ensure_definition(
        self, definition: CustomResourceDefinition, material: Material, problems: list[str]
    ) -> None:
        patch = definition_patch(definition, endpoint=self._endpoint, bundle=material.bundle)
        if patch is not None:
            name = definition.metadata.name
            where = f"CustomResourceDefinition {name}"
            await self._patch(CUSTOM_RESOURCE_DEFINITIONS, name, patch, where, problems)

    async def _patch(
        self, resource: Resource[Any], name: str, patch: dict[str, Any], where: str, problems: list[str]
    ) -> None:
        try:
            await self._client.patch(resource, name, patch)
        except (ConflictError, NotFoundError):
            problems.append(f"{where} changed while it was being written")
        except InvalidError as error:
            problems.append(f"{where} refuses the update: {error}")
        except ClientError as error:
            problems.append(f"{where}: {error}")
        else:
            log.info("webhook registration updated", extra={"object": where})
            if not self._written or self._written[-1] != self._began:
                self._written.append(self._began)

    async def _converted_definitions(self, problems: list[str]) -> Sequence[CustomResourceDefinition]:
        try:
            return [item for item in await self._definitions() if is_converted(item, self._groups)]
        except ClientError as error:
            problems.append(f"CustomResourceDefinitions: {error}")
            return []

    async def _list_definitions(self) -> Iterable[CustomResourceDefinition]:
        return (await self._client.list(CUSTOM_RESOURCE_DEFINITIONS)).items
