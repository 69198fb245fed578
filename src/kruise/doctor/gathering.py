"""Reads what rules look at. Nothing is written; what may not be read is named, and the rest is looked at anyway."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
from collections.abc import Awaitable, Callable, Container, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from kruise import release
from kruise.admission.inventory import CHART_LABEL, FAILURE_POLICIES
from kruise.api.meta import PartialObject
from kruise.api.native.config import CONFIGURATION, SECRETS, SERVICES
from kruise.api.native.events import LEASES
from kruise.api.native.nodes import NAMESPACES, NODES
from kruise.api.native.pod import PODS
from kruise.api.native.policy import POD_DISRUPTION_BUDGETS
from kruise.api.policy.podunavailablebudget import POD_UNAVAILABLE_BUDGETS
from kruise.api.resource import Resource
from kruise.doctor import probing
from kruise.doctor.findings import Json
from kruise.doctor.snapshot import Leaving, Refusal, Snapshot
from kruise.feature import Feature
from kruise.kinds import face_of
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import ApiError, ClientError, ForbiddenError, NotFoundError
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.clock import Clock
from kruise.machinery.documents import value_at
from kruise.manager import gates
from kruise.manager.installation.documents import (
    Named,
    daemon_in,
    gates_text,
    image_of,
    manager_in,
    named,
    placed,
    pod_failure_policy,
)
from kruise.manager.installation.installer import apply, document_of
from kruise.manager.installation.manager import SECRET
from kruise.manager.installation.manifests import DAEMON_NAMESPACE, Style, manifests
from kruise.manager.installation.takeover.standing import is_original
from kruise.manager.installation.values import POD_FAILURE_POLICY
from kruise.reasons.manager import UNANSWERED, WITHOUT_RIGHTS, Manager, manager_by

T = TypeVar("T")

_AT_ONCE: Final = 4
_SOME_NAMESPACE: Final = "default"
"""Every cluster has it: requests that change nothing are made there."""
_LEASE: Final = "kruise-manager"
_INSIDE: Final = ("https:kruise-manager:8443", "proxy/waiting")
"""What a manager in the process of a local cluster serves; no other cluster has such a Service."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Looking:
    """How to look."""

    namespace: str = "kruise-system"
    """Of the manager."""
    only: str = ""
    """The namespace in which to look at what people have made; empty: all of them."""
    preflight: bool = False
    """Ask the API server whether it would take the installation, though there is one."""


async def gather(client: Client, features: Sequence[Feature], looking: Looking, *, clock: Clock) -> Snapshot:
    """Everything but what workloads wait for. Raises `ClientError` where the API server does not answer at all."""
    return await _Gathering(client, features, looking, clock).run()


class _Gathering:
    def __init__(self, client: Client, features: Sequence[Feature], looking: Looking, clock: Clock) -> None:
        self._client = client
        self._features = features
        self._looking = looking
        self._clock = clock
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._unseen: dict[str, None] = {}
        self._hidden: set[Named] = set()

    async def run(self) -> Snapshot:
        client, where = self._client, self._looking.namespace
        server = await client.server_version()
        deployment = await self._document(manager_in(where))
        daemon_set = await self._document(daemon_in(where))
        namespace = await self._document(Named("Namespace", "", where))
        if is_original(deployment) or is_original(daemon_set):
            # All names are the same: what ours lacks would be told of everything.
            return Snapshot(
                now=self._clock.now(),
                version=release(),
                kubernetes=(server.major, server.minor, str(server)),
                namespace=where,
                is_installed=False,
                original=image_of(deployment or daemon_set or {}),
                unseen=tuple(self._unseen),
            )
        wanted = self._wanted(deployment, daemon_set, namespace)
        live = await self._live(wanted)
        configuration = Named("ConfigMap", where, CONFIGURATION)
        for name, document in (
            (manager_in(where), deployment),
            (daemon_in(where), daemon_set),
            (configuration, await self._document(configuration)),
        ):
            if document is not None:
                live[name] = document
        seen = Snapshot(
            now=self._clock.now(),
            version=release(),
            kubernetes=(server.major, server.minor, str(server)),
            namespace=where,
            wanted=[manifest for manifest in wanted if self._can_compare(manifest)],
            live=live,
            hidden=frozenset(self._hidden),
            # Who may see nothing is not told that nothing is there.
            is_installed=any(name.kind not in ("Namespace", "ConfigMap") for name in (*live, *self._hidden)),
        )
        if self._looking.preflight or not seen.is_installed:
            seen = dataclasses.replace(seen, refusals=await refusals(client, wanted, {where, DAEMON_NAMESPACE}))
        if seen.is_installed:
            seen = await self._what_runs(seen)
        return dataclasses.replace(seen, unseen=tuple(self._unseen))

    async def _what_runs(self, seen: Snapshot) -> Snapshot:
        client, where = self._client, self._looking.namespace
        manager = await self._manager()
        # Its lease tells where it is in pods; a local cluster has it in its own process, without one.
        inside = seen.deployment is None and manager.is_unknown and await self._runs_inside()
        secret = await self._may("the certificates", lambda: client.get(SECRETS, SECRET, where))
        pods = await self._may("pods of the manager", lambda: client.list(PODS, where, labels="control-plane"))
        nodes = await self._may("nodes", lambda: client.list(NODES))
        only = self._looking.only
        budgets = await self._may("PodUnavailableBudgets", lambda: client.list(POD_UNAVAILABLE_BUDGETS, only))
        others = await self._may("PodDisruptionBudgets", lambda: client.list(POD_DISRUPTION_BUDGETS, only))
        asked, problems = await probing.ask(
            client,
            [entry for _, entry in seen.entries],
            [document for _, document in seen.definitions],
            namespace=only or _SOME_NAMESPACE,
            clock=self._clock,
        )
        for problem in problems:
            self._unseen[problem] = None
        return dataclasses.replace(
            seen,
            manager=manager,
            runs_inside=inside,
            secret=secret.data if secret is not None else None,
            pods=pods.items if pods is not None else None,
            nodes=nodes.items if nodes is not None else (),
            budgets=budgets.items if budgets is not None else (),
            disruption_budgets=others.items if others is not None else (),
            asked=asked,
            leaving=await self._leaving(seen),
        )

    # What is installed

    def _wanted(self, deployment: Json | None, daemon_set: Json | None, namespace: Json | None) -> list[Json]:
        """With the gates of what runs in the cluster, and with what was chosen for new pods; where nothing runs, with
        the rights for all gates."""
        label = value_at(namespace or {}, ("metadata", "labels", "control-plane"), "")
        values: dict[str, Any] = {}
        if running := deployment or daemon_set:
            text = gates_text(running)
            try:
                gates.parse(text)
            except gates.FeatureGateError:
                text = ""  # told as such
            values["featureGates"] = text
            if (policy := pod_failure_policy(running)) in FAILURE_POLICIES:
                values[POD_FAILURE_POLICY] = policy
        return [
            manifest
            for manifest in manifests(
                self._features,
                namespace=self._looking.namespace,
                style=Style.CHART if label == CHART_LABEL else Style.PLAIN,
                values=values,
                runs=("manager",) if deployment is not None else (),
            )
            # That one is gone shows itself in what runs.
            if manifest["kind"] != "Deployment"
        ]

    def _can_compare(self, manifest: Json) -> bool:
        """Not what may not be read, nor rights where nobody can see the gates that they follow."""
        is_gated = manifest["kind"] in ("Role", "ClusterRole")
        gates_are_hidden = manager_in(self._looking.namespace) in self._hidden
        return named(manifest) not in self._hidden and not (is_gated and gates_are_hidden)

    async def _live(self, wanted: Sequence[Json]) -> dict[Named, Json]:
        async def one(manifest: Json) -> tuple[Named, Json | None]:
            name = named(manifest)
            async with self._turns:
                return name, await self._document(name)

        found = await asyncio.gather(*(one(manifest) for manifest in wanted))
        return {name: document for name, document in found if document is not None}

    async def _document(self, name: Named) -> Json | None:
        """Of an object that may not be read nothing is said but that."""
        try:
            return await document_of(self._client, name)
        except ForbiddenError:
            self._hidden.add(name)
            self._unseen[f"{name.kind}s: they may not be read with your rights"] = None
            return None

    # What runs

    async def _manager(self) -> Manager:
        try:
            lease = await self._client.get(LEASES, _LEASE, self._looking.namespace)
        except NotFoundError:
            return manager_by(None, self._clock.now())
        except ForbiddenError:
            return WITHOUT_RIGHTS
        except ClientError:
            return UNANSWERED
        return manager_by(lease, self._clock.now())

    async def _runs_inside(self) -> bool:
        """Whether this is a local cluster whose own process has a manager."""
        name, path = _INSIDE
        try:
            await self._client.send(Request(Verb.GET, SERVICES, self._looking.namespace, name, path))
        except ClientError:
            return False
        return True

    async def _leaving(self, seen: Snapshot) -> list[Leaving]:
        """Of our kinds, and namespaces."""
        found = []
        only = self._looking.only
        kinds: list[Resource[Any]] = [NAMESPACES, *_kinds_of(seen)]
        for resource in kinds:
            if only and not resource.namespaced:
                continue
            listed = await self._may(resource.group_resource, functools.partial(self._client.list, resource, only))
            for item in listed.items if listed is not None else ():
                about, since = item.metadata, item.metadata.deletion_timestamp
                if since is not None:
                    finalizers = about.finalizers
                    if resource == NAMESPACES:
                        finalizers = (*finalizers, "kubernetes")
                    told = placed(f"{_word_for(resource)}/{about.name}", about.namespace)
                    found.append(Leaving(told, since, tuple(finalizers)))
        return found

    async def _may(self, what: str, read: Callable[[], Awaitable[T]]) -> T | None:
        """None where it may not be read, or is not there."""
        try:
            return await read()
        except NotFoundError:
            return None
        except ClientError as error:
            self._unseen[f"{what}: {error}"] = None
            return None


async def refusals(client: Client, wanted: Sequence[Json], namespaces: Container[str]) -> list[Refusal]:
    """What the API server says to each object, asked to change nothing. Those in a namespace that is not there yet
    cannot be asked for; `namespaces` are those that come with the others."""
    found = []
    for manifest in wanted:
        try:
            await apply(client, manifest, dry_run=True)
        except NotFoundError as error:
            if named(manifest).namespace not in namespaces:
                found.append(Refusal(str(named(manifest)), error.reason, str(error)))
        except ApiError as error:
            found.append(Refusal(str(named(manifest)), error.reason, str(error)))
    return found


def _word_for(resource: Resource[Any]) -> str:
    """As commands take it."""
    face = face_of(resource.group, resource.kind)
    return face.word if face is not None else resource.kind.lower()


def _kinds_of(seen: Snapshot) -> Iterator[Resource[PartialObject]]:
    for _, definition in seen.definitions:
        spec: Mapping[str, Any] = definition["spec"]
        stored = next((v["name"] for v in spec["versions"] if v.get("storage") and v.get("served")), "")
        if stored:
            names, namespaced = spec["names"], spec["scope"] == "Namespaced"
            yield Resource(spec["group"], stored, names["plural"], names["kind"], namespaced, PartialObject)
