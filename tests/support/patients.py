"""A cluster with an installation of two managers and a daemon on each node, all well, to be broken.

Pods are simulated: the manager at work is in this process, behind the address of the Service. There it leads without a
lease, so this keeps one for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any

from kruise.admission.certificates import Material, issue
from kruise.admission.configurations import ServiceEndpoint, configuration_patch, definition_patch, entry_path
from kruise.api.meta import PartialObject
from kruise.api.native.config import SECRETS
from kruise.api.native.events import LEASES
from kruise.api.native.extensions import (
    CUSTOM_RESOURCE_DEFINITIONS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
)
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.cli.session import Session
from kruise.cli.work.doctor import Report, examined
from kruise.doctor.findings import Finding
from kruise.doctor.gathering import Looking
from kruise.doctor.mending import Mended, mend
from kruise.kinds import features
from kruise.machinery.client.client import Client
from kruise.machinery.clock import run_virtual
from kruise.manager.installation.installer import Installer
from kruise.manager.installation.manifests import manifests
from tests.support.world import LocalWorld, local_world

NAMESPACE, SERVICE = "kruise-system", "kruise-webhook-service"
ENDPOINT = ServiceEndpoint(NAMESPACE, SERVICE)
CONFIGURATIONS = (MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS)
NAMES = ("kruise-mutating-webhook-configuration", "kruise-validating-webhook-configuration")
CLUSTER_ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", False, PartialObject)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment", True, PartialObject)
DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet", True, PartialObject)


@dataclasses.dataclass
class Patient:
    world: LocalWorld
    material: Material
    _leading: asyncio.Task[None] | None = None

    async def examined(self, client: Client | None = None, **looking: Any) -> Report:
        """`client`: that of somebody with other rights."""
        session = Session(client or self.world.client, namespace="default", clock=self.world.clock)
        return await examined(session, Looking(**looking))

    async def findings(self, **looking: Any) -> dict[str, Finding]:
        """By code; of several with one code, the first."""
        found: dict[str, Finding] = {}
        for finding in (await self.examined(**looking)).findings:
            found.setdefault(finding.code, finding)
        return found

    async def mend(self, client: Client | None = None) -> list[Mended]:
        report = await self.examined(client)
        return await mend(client or self.world.client, report.findings, clock=self.world.clock)

    async def patch(self, resource: Resource[Any], name: str, body: Any, namespace: str = "") -> None:
        await self.world.client.patch(resource, name, body, namespace)

    async def lead(self) -> None:
        """Take the lease and keep it, until the manager is killed."""
        body = {"metadata": {"name": "kruise-manager"}, "spec": self._renewed()}
        await self.world.client.create(LEASES, {**KIND_OF_LEASE, **body}, NAMESPACE)
        self._leading = asyncio.create_task(self._renew(), name="lease")

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(10)
            await self.patch(LEASES, "kruise-manager", {"spec": self._renewed()}, NAMESPACE)

    def _renewed(self) -> Mapping[str, Any]:
        return {
            "holderIdentity": "kruise-controller-manager-0_1",
            "leaseDurationSeconds": 15,
            "renewTime": self.world.clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        }

    async def kill_manager(self) -> None:
        await self.stop_leading()
        await self.world.kill_manager()

    async def stop_leading(self) -> None:
        if self._leading is not None:
            self._leading.cancel()
            await asyncio.wait({self._leading})
            self._leading = None

    async def certify(self, material: Material) -> None:
        """Put certificates where a manager keeps them, and trust in their CA where callers look."""
        self.material = material
        data = {name: text.decode() for name, text in material.to_data().items()}
        await self.patch(SECRETS, "kruise-webhook-certs", {"stringData": data}, NAMESPACE)
        await self.trust(material.bundle)

    async def trust(self, bundle: bytes) -> None:
        client = self.world.client
        for resource, name in zip(CONFIGURATIONS, NAMES, strict=True):
            live = await client.get(resource, name)
            paths = {entry_path(entry) for entry in live.webhooks}
            patch = configuration_patch(live, active=paths, endpoint=ENDPOINT, bundle=bundle)
            if patch is not None:
                await client.patch(resource, name, patch)
        for definition in (await client.list(CUSTOM_RESOURCE_DEFINITIONS)).items:
            if definition.spec.conversion.get("strategy") == "Webhook":
                patch = definition_patch(definition, endpoint=ENDPOINT, bundle=bundle)
                if patch is not None:
                    await client.patch(CUSTOM_RESOURCE_DEFINITIONS, definition.metadata.name, patch)


KIND_OF_LEASE: Mapping[str, Any] = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}


@contextlib.asynccontextmanager
async def healthy(**values: Any) -> AsyncIterator[Patient]:
    """`values` of the installation are written with two underscores for each dot."""
    chosen = {path.replace("__", "."): value for path, value in values.items()}
    async with local_world(nodes=3, node_daemon=False) as world:
        installer = Installer(world.client, clock=world.clock, report=lambda line: None)
        await installer.install(manifests(features(), values=chosen, runs=("manager", "daemon")))
        now = world.clock.now()
        patient = Patient(world, issue(ENDPOINT.dns_name, now))
        await patient.certify(patient.material)

        async def running() -> None:
            pods = (await world.client.list(PODS, NAMESPACE)).items
            assert [pod.status.phase for pod in pods] == ["Running"] * 5

        await world.until(running)
        await world.sleep(10)
        await patient.lead()
        try:
            yield patient
        finally:
            await patient.stop_leading()


def with_patient(scenario: Callable[[Patient], Awaitable[None]], **values: Any) -> None:
    """Run a scenario with one, on virtual time."""

    async def main() -> None:
        async with healthy(**values) as patient:
            await scenario(patient)

    run_virtual(main())


def long_ago(patient: Patient) -> Material:
    """Certificates that have ended."""
    return issue(ENDPOINT.dns_name, patient.world.clock.now() - timedelta(days=3700))
