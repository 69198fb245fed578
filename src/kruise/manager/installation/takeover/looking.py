"""Reads what stands in a cluster that is to be taken over. Nothing is written."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

from kruise.admission.configurations import GROUPS
from kruise.api.meta import PartialObject
from kruise.api.native.events import LEASES
from kruise.api.native.extensions import CUSTOM_RESOURCE_DEFINITIONS, CustomResourceDefinition
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import ClientError, NotFoundError
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.clock import Clock
from kruise.machinery.codec import decode
from kruise.manager.installation.documents import Json, Named, named
from kruise.manager.installation.installer import document_of, kind_of
from kruise.manager.installation.rbac import DAEMON, MANAGER
from kruise.manager.installation.takeover import note as notes
from kruise.manager.installation.takeover.standing import BINDINGS, Standing, stored_version, version_names

_LEASE = "kruise-manager"
_STATE = "lifecycle.apps.kruise.io/state"
_RUN_BY = "control-plane"


async def look(client: Client, manifests: Sequence[Mapping[str, Any]], *, namespace: str, clock: Clock) -> Standing:
    """`manifests`: all that an installation of ours may have. Raises `ClientError`, and `NoteError`."""
    live: dict[Named, Json] = {}
    for manifest in manifests:
        if (document := await document_of(client, named(manifest))) is not None:
            live[named(manifest)] = document
    kept = await document_of(client, Named("ConfigMap", namespace, notes.NAME))
    try:
        lease = await client.get(LEASES, _LEASE, namespace)
    except NotFoundError:
        lease = None
    return Standing(
        now=clock.now(),
        namespace=namespace,
        live=live,
        note=notes.read(kept) if kept is not None else None,
        lease=lease,
        pods=(await client.list(PODS, namespace, labels=_RUN_BY)).items,
        bindings=await _bindings(client, namespace, {named(manifest) for manifest in manifests}),
        foreign=await _foreign(client, live),
        has_older_definitions=any(
            set(version_names(manifest)) - set(version_names(live[named(manifest)]))
            for manifest in manifests
            if manifest["kind"] == CUSTOM_RESOURCE_DEFINITIONS.kind and named(manifest) in live
        ),
        objects=await _objects(client, live),
        under_way=len((await client.list(PODS, labels=f"{_STATE},{_STATE}!=Normal")).items),
    )


async def _bindings(client: Client, namespace: str, ours: Container[Named]) -> list[Json]:
    found: list[Json] = []
    for kind in BINDINGS:
        resource = kind_of(Named(kind, "", ""))
        answer = await client.send(Request(Verb.LIST, resource))
        for item in decode(answer.body, dict[str, Any])["items"]:
            document = {"apiVersion": resource.api_version, "kind": kind, **item}
            accounts = {
                subject.get("name")
                for subject in document.get("subjects") or ()
                if subject.get("kind") == "ServiceAccount" and subject.get("namespace") == namespace
            }
            if accounts & {MANAGER, DAEMON} and named(document) not in ours:
                found.append(document)
    return found


async def _foreign(client: Client, live: Mapping[Named, Json]) -> list[CustomResourceDefinition]:
    ours = {name.name for name in live if name.kind == CUSTOM_RESOURCE_DEFINITIONS.kind}
    found = (await client.list(CUSTOM_RESOURCE_DEFINITIONS)).items
    return [one for one in found if one.spec.group in GROUPS and one.metadata.name not in ours]


async def _objects(client: Client, live: Mapping[Named, Json]) -> dict[str, int]:
    """By the version in which they are stored: nothing is converted to count them."""
    counts = {}
    for name, definition in live.items():
        if name.kind != CUSTOM_RESOURCE_DEFINITIONS.kind:
            continue
        spec = definition["spec"]
        names = spec["names"]
        resource = Resource(
            spec["group"],
            stored_version(definition),
            names["plural"],
            names["kind"],
            spec["scope"] == "Namespaced",
            PartialObject,
        )
        try:
            page = await client.list_page(resource, limit=1)
        except ClientError:
            continue  # some are stored in another version, and nobody converts them just now
        if count := len(page.items) + (page.remaining or 0):
            counts[str(names["kind"])] = count
    return counts
