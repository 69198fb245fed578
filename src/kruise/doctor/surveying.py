"""What taking over from OpenKruise would do to a cluster, and what is in the way. Nothing is written."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from kruise import release
from kruise.doctor.findings import Finding, Severity
from kruise.doctor.gathering import refusals
from kruise.doctor.rules import preflight, takeover
from kruise.doctor.snapshot import Snapshot
from kruise.feature import Feature
from kruise.machinery.client.client import Client
from kruise.machinery.clock import Clock
from kruise.manager.installation import monitoring
from kruise.manager.installation.documents import Named, named
from kruise.manager.installation.manifests import DAEMON_NAMESPACE, Manifest, manifests
from kruise.manager.installation.takeover.inheritance import Inheritance, inherited
from kruise.manager.installation.takeover.looking import look
from kruise.manager.installation.takeover.standing import Standing, version_names
from kruise.manager.installation.takeover.steps import Bring, Remove, Step, back, forward

_EVERYTHING: Mapping[str, Any] = {"networkPolicy.enabled": True, **monitoring.EVERYTHING}
RUNS = ("manager", "daemon")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    kubernetes: tuple[int, int, str]
    standing: Standing
    inheritance: Inheritance
    steps: Sequence[Step]
    findings: Sequence[Finding]

    @property
    def obstacles(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity is Severity.BROKEN]


def everything(features: Sequence[Feature], namespace: str) -> list[Manifest]:
    """All that an installation of ours may bring."""
    return manifests(features, namespace=namespace, values=_EVERYTHING, runs=RUNS)


async def survey(
    client: Client,
    features: Sequence[Feature],
    *,
    namespace: str,
    clock: Clock,
    chosen: Mapping[str, Any] | None = None,
    runs: Sequence[str] = RUNS,
) -> Survey:
    """`chosen` values stand above those of OpenKruise. Raises `ClientError`, `NoteError`, and `ValueError` for values
    that are none."""
    server = await client.server_version()
    known = everything(features, namespace)
    standing = await look(client, known, namespace=namespace, clock=clock)
    inheritance = inherited(standing)
    wanted = manifests(
        features,
        namespace=namespace,
        style=standing.style,
        values={**(inheritance.values if runs else {}), **(chosen or {})},
        runs=runs,
    )
    steps = forward(standing, wanted, since=standing.now.strftime("%Y-%m-%dT%H:%M:%SZ"))
    kubernetes = (server.major, server.minor, str(server))
    found = [*preflight.rules(await _preflight(client, standing, kubernetes, steps))]
    versions: dict[Named, tuple[str, ...]] = {
        named(manifest): version_names(manifest) for manifest in known if manifest["kind"] == "CustomResourceDefinition"
    }
    found += takeover.rules(standing, inheritance, versions)
    order = list(Severity)
    found.sort(key=lambda finding: order.index(finding.severity))
    return Survey(kubernetes=kubernetes, standing=standing, inheritance=inheritance, steps=steps, findings=found)


async def way_back(
    client: Client, features: Sequence[Feature], *, namespace: str, clock: Clock
) -> tuple[Standing, list[Step]]:
    """Nothing to do where there is no note. Raises `ClientError` and `NoteError`."""
    known = everything(features, namespace)
    standing = await look(client, known, namespace=namespace, clock=clock)
    return standing, back(standing, known) if standing.note is not None else []


async def _preflight(
    client: Client, standing: Standing, kubernetes: tuple[int, int, str], steps: Sequence[Step]
) -> Snapshot:
    """What the API server would refuse. What is taken away before cannot be asked for yet."""
    gone = {step.name for step in steps if isinstance(step, Remove)}
    brought = [manifest for step in steps if isinstance(step, Bring) for manifest in step.manifests]
    is_wanted = standing.is_of_others and not standing.is_taken_over
    asked = [manifest for manifest in brought if is_wanted and named(manifest) not in gone]
    found = await refusals(client, asked, {standing.namespace, DAEMON_NAMESPACE})
    return Snapshot(
        now=standing.now, version=release(), kubernetes=kubernetes, namespace=standing.namespace, refusals=found
    )
