"""The admission side of the manager: server, certificates and registration, wired from the features."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import ssl
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp
from prometheus_client import CollectorRegistry, Counter, Histogram

from kruise.admission import inventory
from kruise.admission.answering import Answerer, LiveHands
from kruise.admission.certfiles import CertificateDirectory
from kruise.admission.certificates import CA_CERT, parse_renew_before
from kruise.admission.certstore import (
    CertificateStore,
    ExternalCertificates,
    FileCertificates,
    Policy,
    SecretCertificates,
)
from kruise.admission.configurations import GROUPS, Endpoint, ServiceEndpoint, UrlEndpoint
from kruise.admission.conversion import Converters
from kruise.admission.notes import Notes
from kruise.admission.registry import Registry
from kruise.admission.server import AdmissionServer
from kruise.admission.sync import Synchronizer
from kruise.admission.tls import ServingCertificate
from kruise.api.native.config import SECRETS
from kruise.api.native.extensions import (
    CUSTOM_RESOURCE_DEFINITIONS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    CustomResourceDefinition,
    WebhookConfiguration,
)
from kruise.api.native.nodes import NAMESPACES
from kruise.api.resource import Resource
from kruise.feature import Feature, handlers_of
from kruise.machinery.apply import Applier
from kruise.machinery.cache import Cache
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import NotFoundError
from kruise.machinery.clock import Clock
from kruise.manager.options import Options
from kruise.manager.refusals import recorder

log = logging.getLogger(__name__)


class Webhooks:
    """Everything that answers the API server. The server listens before anything is listed."""

    def __init__(
        self,
        options: Options,
        features: Sequence[Feature],
        *,
        client: Client,
        cache: Cache,
        applier: Applier,
        clock: Clock,
        metrics: CollectorRegistry,
        server_version: Callable[[], Any],
        leads: Callable[[], bool],
        certificate: ServingCertificate | None = None,
    ) -> None:
        self._options = options
        self._features = features
        self._leads = leads
        self._client = client
        self._clock = clock
        self._cache = cache
        registry = registry_of(features, options, cache)
        self._notes = Notes(client, clock=clock)
        answerer = Answerer(
            clock=clock,
            stores=cache,
            hands=LiveHands(applier, client, cache),
            gates=options.gates,
            server_version=server_version,
            record=recorder(metrics, clock),
            publish=self._notes.publish,
        )
        self._registry = registry
        self.server = AdmissionServer(
            registry, answerer, converters_of(features), certificate=certificate, observe=_observer(metrics)
        )
        self._directory = CertificateDirectory(Path(options.webhook.directory))
        self._groups = GROUPS | {str(d["spec"]["group"]) for feature in features for d in feature.definitions}
        # Apart from the controllers' stores: these few objects have a scope of their own.
        self._watched = Cache(client, clock=clock, namespace=options.own_namespace)
        self._sync: Synchronizer | None = None

    async def start(self) -> None:
        """Begin to listen; port 0 takes a free one."""
        options = self._options
        await self.server.start(port=options.webhook.port)
        endpoint = self._endpoint()
        self._sync = Synchronizer(
            self._client,
            clock=self._clock,
            store=self._certificates(endpoint),
            directory=self._directory,
            serving=self.server.certificate,
            endpoint=endpoint,
            active_paths=lambda: self._registry.paths,
            definitions=self._definitions,
            # An address of this process alone: replicas cannot all be registered, and the others are not called.
            registers=self._leads if options.webhook.host else lambda: True,
            restore=self._installed if not options.webhook.host else None,
            groups=self._groups,
            external=options.gates["EnableExternalCerts"],
        )
        if not options.webhook.host:
            self._watch(SECRETS, fields=f"metadata.name={options.webhook.secret_name}")
        self._watch(MUTATING_WEBHOOK_CONFIGURATIONS)
        self._watch(VALIDATING_WEBHOOK_CONFIGURATIONS)
        self._watch(CUSTOM_RESOURCE_DEFINITIONS)
        log.info("webhook server listens", extra={"port": self.server.port, "handlers": len(self._registry.paths)})

    def _watch(self, resource: Any, fields: str = "") -> None:
        assert self._sync is not None
        sync = self._sync
        self._watched.add(resource, fields=fields).subscribe(lambda old, new: sync.trigger())

    async def run(self) -> None:
        """Keep certificates and registrations in step until cancelled."""
        assert self._sync is not None
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._watched.run(), name="webhook-watches")
            tasks.create_task(self._sync.run(), name="webhook-sync")
            tasks.create_task(self._notes.run(), name="webhook-notes")

    async def leave(self) -> None:
        """Answer until nobody asks any more. API servers find a manager by its Service, and whoever balances that hears
        of an end a little later than the manager itself."""
        if self._options.shutdown_delay > 0:
            self.server.leave()
            await asyncio.sleep(self._options.shutdown_delay)

    async def stop(self) -> None:
        await self.server.stop()

    def leadership_changed(self) -> None:
        if self._sync is not None:
            self._sync.trigger()

    async def ready(self) -> str:
        """What is missing (MGR-24): the first successful pass, then an answer of our own server over TLS."""
        if self._sync is None or not self._sync.first_success.is_set():
            return self._sync.detail if self._sync is not None else "the webhook server is not started"
        context = ssl.create_default_context(cadata=self._directory.read()[CA_CERT].decode())
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"https://localhost:{self.server.port}/healthz", ssl=context),
            ):
                return ""
        except aiohttp.ClientError as error:
            return f"the webhook server does not answer: {error}"

    async def _installed(self, resource: Resource[WebhookConfiguration]) -> dict[str, Any] | None:
        """A configuration as the installation had it that this manager is of: its namespace tells which one. None where
        that is being removed, or was never made."""
        options = self._options
        try:
            about = (await self._client.get(NAMESPACES, options.own_namespace)).metadata
        except NotFoundError:
            return None
        if about.deletion_timestamp is not None or inventory.REMOVAL in about.annotations:
            return None
        found = inventory.configurations(
            installed_by(about.labels, options),
            mutating=tuple(entry for feature in self._features for entry in feature.mutating_entries),
            validating=tuple(entry for feature in self._features for entry in feature.validating_entries),
        )
        return next(body for body in found if body["kind"] == resource.kind)

    async def _definitions(self) -> Iterable[CustomResourceDefinition]:
        await self._watched.wait_synced(resources=[CUSTOM_RESOURCE_DEFINITIONS])
        return self._watched.store(CUSTOM_RESOURCE_DEFINITIONS).list()

    def _endpoint(self) -> Endpoint:
        webhook = self._options.webhook
        if webhook.host:
            return UrlEndpoint(webhook.host, self.server.port)
        return ServiceEndpoint(self._options.own_namespace, webhook.service_name)

    def _certificates(self, endpoint: Endpoint) -> CertificateStore:
        options, webhook = self._options, self._options.webhook
        where = (self._client, options.own_namespace, webhook.secret_name)
        if options.gates["EnableExternalCerts"]:
            return ExternalCertificates(*where, endpoint.dns_name, self._clock)
        policy = Policy(dns_name=endpoint.dns_name, renew_before=parse_renew_before(webhook.renew_before))
        if webhook.host or webhook.writer == "fs":
            return FileCertificates(self._directory, policy, self._clock)
        return SecretCertificates(*where, policy, self._clock)


def installed_by(labels: Mapping[str, str], options: Options) -> inventory.RegistrationOptions:
    """What the installation chose, as far as a manager knows: by its namespace's labels and its own flags."""
    is_chart = labels.get("control-plane") == inventory.CHART_LABEL
    return dataclasses.replace(
        inventory.chart_options() if is_chart else inventory.RegistrationOptions(),
        namespace=options.own_namespace,
        service=options.webhook.service_name,
        pod_failure_policy=options.pod_failure_policy,
    )


def registry_of(features: Sequence[Feature], options: Options, cache: Cache) -> Registry:
    """Every handler that is active under these options; what they look at is added to the cache."""
    handlers = handlers_of(features, options)
    for handler in handlers:
        for kind in handler.needs:
            cache.add(kind)
    return Registry(*handlers)


def converters_of(features: Sequence[Feature]) -> Converters:
    converters = Converters()
    for feature in features:
        for conversion in feature.conversions:
            converters.register(conversion.group, conversion.kind, conversion.convert)
    return converters


def _observer(metrics: CollectorRegistry) -> Callable[[str, int, float], None]:
    requests = Counter(
        "controller_runtime_webhook_requests_total",
        "Answered admission requests by path and HTTP code.",
        ("webhook", "code"),
        registry=metrics,
    )
    latency = Histogram(
        "controller_runtime_webhook_latency_seconds",
        "Seconds that an admission request took.",
        ("webhook",),
        buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
        registry=metrics,
    )
    children: dict[tuple[str, int], tuple[Any, Any]] = {}

    def observe(path: str, code: int, seconds: float) -> None:
        child = children.get((path, code))
        if child is None:
            child = children[path, code] = (requests.labels(path, str(code)), latency.labels(path))
        child[0].inc()
        child[1].observe(seconds)

    return observe
