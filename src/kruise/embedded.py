"""The manager in the process of a local cluster: the same controllers and webhooks, without a socket in between.

`kruise up` runs it beside the cluster's API; tests and previews run it on virtual time.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from random import Random
from typing import Any

from kruise.admission.answering import Answerer, LiveHands
from kruise.admission.configurations import (
    MUTATING_NAME,
    VALIDATING_NAME,
    Endpoint,
    ServiceEndpoint,
    configuration_patch,
)
from kruise.admission.notes import Notes
from kruise.api.native.extensions import MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS
from kruise.feature import Feature
from kruise.local.apicore.proxying import Address
from kruise.local.cluster import LocalCluster
from kruise.local.inprocess import InProcessTransport
from kruise.local.webhooks import AdmissionSite
from kruise.machinery.client.transport import Response, Transport
from kruise.machinery.clock import Clock
from kruise.manager.callers import Everything
from kruise.manager.installation.installer import Installer
from kruise.manager.installation.manifests import manifests
from kruise.manager.options import Options
from kruise.manager.process import AdmissionParts, Manager
from kruise.manager.refusals import recorder
from kruise.manager.reports import Reports
from kruise.manager.webhooks import converters_of, registry_of

REPORTS_SERVICE = "kruise-manager"
REPORTS_PORT = "8443"


def embedded_options(options: Options | None = None, *, metrics_address: str = "", health_address: str = "") -> Options:
    """Options of a manager that is alone in its cluster, whatever else they say."""
    return dataclasses.replace(
        options or Options(),
        elect=False,
        metrics_address=metrics_address,
        journal_address="",
        health_address=health_address,
    )


_made: dict[tuple[int, ...], tuple[Sequence[Feature], Sequence[Mapping[str, Any]]]] = {}


def _manifests(features: Sequence[Feature]) -> Sequence[Mapping[str, Any]]:
    """Made once, for the many clusters of a process that tests. Features have no hash; those that are kept here
    cannot lose their identity to others."""
    key = tuple(map(id, features))
    if key not in _made:
        _made.clear()
        _made[key] = (tuple(features), manifests(features))
    return _made[key][1]


async def install(cluster: LocalCluster, features: Sequence[Feature]) -> None:
    """Everything that `kruise install` brings into a cluster."""
    installer = Installer(cluster.client("kruise-install"), clock=cluster.clock, report=lambda line: None)
    await installer.install(_manifests(features))


class _InProcessAdmission:
    """Mounted in the cluster's API server under the address of the installed Service, together with what the manager
    reports about itself: there is no pod of it that a proxy could reach."""

    def __init__(self, cluster: LocalCluster, parts: AdmissionParts, reports: Callable[[], Reports]) -> None:
        self._cluster = cluster
        self._reports = reports
        self._reports_address = Address(parts.options.own_namespace, REPORTS_SERVICE, REPORTS_PORT)
        self._client = parts.client
        self._registry = registry_of(parts.features, parts.options, parts.cache)
        self._notes = Notes(parts.client, clock=parts.clock)
        answerer = Answerer(
            clock=parts.clock,
            stores=parts.cache,
            hands=LiveHands(parts.applier, parts.client, parts.cache),
            gates=parts.options.gates,
            server_version=parts.server_version,
            record=recorder(parts.metrics, parts.clock),
            publish=self._notes.publish,
        )
        self._site = AdmissionSite(self._registry, answerer, converters_of(parts.features))
        self._endpoint: Endpoint = ServiceEndpoint(parts.options.own_namespace, parts.options.webhook.service_name)
        self._address = f"https://{self._endpoint.dns_name}:443"

    async def start(self) -> None:
        self._cluster.webhooks.mount(self._address, self._site)
        self._cluster.core.services.mount(self._reports_address, self._report)
        await self._register(MUTATING_WEBHOOK_CONFIGURATIONS, MUTATING_NAME)
        await self._register(VALIDATING_WEBHOOK_CONFIGURATIONS, VALIDATING_NAME)

    async def _register(self, resource: Any, name: str) -> None:
        live = await self._client.get(resource, name)
        patch = configuration_patch(live, active=self._registry.paths, endpoint=self._endpoint, bundle=b"")
        if patch is not None:
            await self._client.patch(resource, name, patch)

    async def run(self) -> None:
        await self._notes.run()  # nothing expires in process

    async def leave(self) -> None:
        """Calls and their answers are one step here: nobody is on the way."""

    async def stop(self) -> None:
        self._cluster.webhooks.unmount(self._address)
        self._cluster.core.services.unmount(self._reports_address, self._report)

    async def _report(self, path: str, query: Mapping[str, str]) -> Response:
        """The API server has let the caller in, and here whoever is known may do everything."""
        reply = await self._reports().answer(path, query, Everything())
        return Response(reply.status, reply.body, {"content-type": reply.content_type})

    async def ready(self) -> str:
        return ""

    def leadership_changed(self) -> None:
        """All replicas answer at one address: it matters to nobody who leads."""


def embedded_manager(
    cluster: LocalCluster,
    features: Sequence[Feature],
    options: Options,
    *,
    random: Random,
    transport: Transport | None = None,
    clock: Clock | None = None,
) -> Manager:
    """`transport` stands between the manager and the API, where a test wants faults; `clock` is one that goes wrong."""
    manager = Manager(
        options,
        features,
        transport or InProcessTransport(cluster.core),  # its own: a manager that ends closes it
        clock=clock or cluster.clock,
        random=random,
        admission=lambda parts: _InProcessAdmission(cluster, parts, lambda: manager.reports),
    )
    return manager


@contextlib.asynccontextmanager
async def managing(
    cluster: LocalCluster,
    features: Sequence[Feature],
    options: Options | None = None,
    *,
    random: Random,
    transport: Transport | None = None,
) -> AsyncIterator[Manager]:
    """A manager at work in a running cluster in which everything is installed; it ends in order with the block."""
    manager = embedded_manager(cluster, features, embedded_options(options), random=random, transport=transport)
    stop = asyncio.Event()
    running = asyncio.create_task(manager.run(stop), name="manager")
    try:
        yield manager
    finally:
        stop.set()
        await running
