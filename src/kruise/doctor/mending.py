"""Carries out what can be mended by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kruise.api.native.extensions import (
    CUSTOM_RESOURCE_DEFINITIONS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
)
from kruise.api.native.nodes import NAMESPACES
from kruise.api.resource import Resource
from kruise.doctor.findings import Apply, Finding, Fix, Patch, Rewrite
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import ClientError
from kruise.machinery.clock import Clock
from kruise.manager.installation.installer import InstallationError, Installer

_PATCHED: Mapping[str, Resource[Any]] = {
    resource.kind: resource
    for resource in (
        CUSTOM_RESOURCE_DEFINITIONS,
        MUTATING_WEBHOOK_CONFIGURATIONS,
        NAMESPACES,
        VALIDATING_WEBHOOK_CONFIGURATIONS,
    )
}


class Mended(NamedTuple):
    finding: Finding
    error: str = ""
    """Why it could not be mended; empty: it was."""


async def mend(client: Client, findings: Sequence[Finding], *, clock: Clock) -> list[Mended]:
    """In the order of the findings, each by itself: one that fails stops no other."""
    installer = Installer(client, clock=clock, report=lambda line: None)
    done = []
    for finding in findings:
        if finding.fix is None:
            continue
        try:
            await _carry_out(client, installer, finding.fix)
        except (InstallationError, ClientError) as error:
            done.append(Mended(finding, str(error)))
        else:
            done.append(Mended(finding))
    return done


async def _carry_out(client: Client, installer: Installer, fix: Fix) -> None:
    match fix:
        case Apply(manifest):
            await installer.install([manifest])
        case Rewrite(definition):
            await installer.migrate(await client.get(CUSTOM_RESOURCE_DEFINITIONS, definition))
        case Patch(kind, name, body):
            await client.patch(_PATCHED[kind], name, dict(body))
