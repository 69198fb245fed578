"""Admission on a real API server: the server is registered by URL, and the API server calls it on loopback."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ssl
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from kruise.admission.answering import Answerer
from kruise.admission.certfiles import CertificateDirectory
from kruise.admission.certstore import Policy, SecretCertificates
from kruise.admission.configurations import TEMPLATE, UrlEndpoint
from kruise.admission.conversion import Converters
from kruise.admission.decisions import Allow, Change, Deny, HandlerView, Mutation, Verdict, verdict_of
from kruise.admission.inventory import VALIDATING, RegistrationOptions, render
from kruise.admission.registry import MutatingHandler, Registry, ValidatingHandler
from kruise.admission.review import AdmissionRequest
from kruise.admission.server import AdmissionServer
from kruise.admission.sync import Synchronizer
from kruise.api.meta import PartialObject
from kruise.api.native.config import CONFIG_MAPS, SECRETS, ConfigMap
from kruise.api.native.extensions import (
    CUSTOM_RESOURCE_DEFINITIONS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    is_established,
)
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.machinery.cache import Cache
from kruise.machinery.client import kubeconfig
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import (
    ClientError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    StatusCause,
    TooManyRequestsError,
)
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.client.retry import NEVER
from kruise.machinery.clock import RealClock
from kruise.machinery.codec import canonical, decode
from tests.support.realcluster import ControlPlane
from tests.support.waiting import eventually

SECRET = "webhook-certs"
CLOCK = RealClock()


def stamp(request: AdmissionRequest, view: HandlerView) -> Mutation:
    body = request.body()
    data = body.get("data") or {}
    if "plain" in data:
        return Allow()
    return Change(object={**body, "data": {**data, "stamped": "yes"}}, warnings=("stamped",))


def judge(request: AdmissionRequest, view: HandlerView) -> Verdict:
    data = request.decoded(ConfigMap).data
    if "forbidden" in data:
        return Deny(message="this word is forbidden here")
    if "later" in data:
        return Deny(message="not now", code=429, reason="TooManyRequests", retry_after_seconds=7)
    return verdict_of(
        StatusCause(reason="FieldValueInvalid", message=f'Invalid value: "{value}": not a number', field=f"data.{key}")
        for key, value in data.items()
        if key.startswith("n") and not value.isdigit()
    )


class Site:
    """One test's corner of the control plane: its own namespace, configurations and Secret."""

    def __init__(self, client: Client, namespace: str, directory: Path) -> None:
        self.client = client
        self.namespace = namespace
        self.directory = directory
        self.mutating = f"mutating-{namespace}"
        self.validating = f"validating-{namespace}"
        self.group = f"toys{uuid.uuid4().hex[:8]}.example"
        self.calls: Counter[tuple[str, str]] = Counter()
        self._stack = contextlib.AsyncExitStack()
        self._replicas = 0

    def entry(self, name: str, path: str, resource: str, *operations: str) -> dict[str, Any]:
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": operations, "resources": [resource]}
        return self.here(
            {
                "name": name,
                "clientConfig": {"service": {"namespace": "x", "name": "x", "path": path}},
                "rules": [rule],
                "sideEffects": "None",
                "admissionReviewVersions": ["v1", "v1beta1"],
            }
        )

    def here(self, entry: dict[str, Any]) -> dict[str, Any]:
        """The entry, for this test's namespace only: other tests share the control plane."""
        only = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [self.namespace]}
        selector = {"matchExpressions": [*entry.get("namespaceSelector", {}).get("matchExpressions", []), only]}
        return {**entry, "namespaceSelector": selector}

    async def install(self, mutating: list[dict[str, Any]], validating: list[dict[str, Any]]) -> None:
        for resource, name, template in (
            (MUTATING_WEBHOOK_CONFIGURATIONS, self.mutating, mutating),
            (VALIDATING_WEBHOOK_CONFIGURATIONS, self.validating, validating),
        ):
            body = {
                "apiVersion": resource.api_version,
                "kind": resource.kind,
                "metadata": {"name": name, "annotations": {TEMPLATE: canonical(template).decode()}},
            }
            await self.client.create(resource, body)
            self._stack.push_async_callback(self._remove, resource, name)

    async def install_toys(self) -> None:
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        name = f"toys.{self.group}"
        body = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": name},
            "spec": {
                "group": self.group,
                "names": {"plural": "toys", "kind": "Toy"},
                "scope": "Namespaced",
                "versions": [
                    {"name": "v1", "served": True, "storage": True, "schema": schema},
                    {"name": "v2", "served": True, "storage": False, "schema": schema},
                ],
                "conversion": {
                    "strategy": "Webhook",
                    "webhook": {
                        "clientConfig": {"service": {"namespace": "x", "name": "x", "path": "/convert"}},
                        "conversionReviewVersions": ["v1"],
                    },
                },
            },
        }
        await self.client.create(CUSTOM_RESOURCE_DEFINITIONS, body)
        self._stack.push_async_callback(self._remove, CUSTOM_RESOURCE_DEFINITIONS, name)

    async def _remove(self, resource: Resource[Any], name: str) -> None:
        with contextlib.suppress(NotFoundError):
            await self.client.delete(resource, name)

    async def replica(
        self, *handlers: MutatingHandler | ValidatingHandler, converters: Converters | None = None, **more: Any
    ) -> Replica:
        self._replicas += 1
        replica = Replica(self, self.directory / f"replica-{self._replicas}", handlers, converters, more)
        await self._stack.enter_async_context(replica.running())
        return replica

    def counted(self, path: str) -> ValidatingHandler:
        """A handler that allows everything and counts its calls by operation and name."""

        def decide(request: AdmissionRequest, view: HandlerView) -> Verdict:
            self.calls[request.operation, request.name or ""] += 1
            return Allow()

        return ValidatingHandler(path, decide)

    async def bundles(self) -> set[bytes]:
        found = []
        for resource, name in (
            (MUTATING_WEBHOOK_CONFIGURATIONS, self.mutating),
            (VALIDATING_WEBHOOK_CONFIGURATIONS, self.validating),
        ):
            live = await self.client.get(resource, name)
            found += [entry["clientConfig"].get("caBundle", "") for entry in live.webhooks]
        with contextlib.suppress(NotFoundError):
            definition = await self.client.get(CUSTOM_RESOURCE_DEFINITIONS, f"toys.{self.group}")
            found.append(definition.spec.conversion["webhook"]["clientConfig"].get("caBundle", ""))
        return {base64.b64decode(text) for text in found}

    async def secret(self) -> dict[str, bytes]:
        return (await self.client.get(SECRETS, SECRET, self.namespace)).data

    def config_map(self, name: str, **data: str) -> dict[str, Any]:
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}

    async def create(self, name: str, *, dry_run: bool = False, **data: str) -> ConfigMap:
        return await self.client.create(CONFIG_MAPS, self.config_map(name, **data), self.namespace, dry_run=dry_run)

    async def close(self) -> None:
        await self._stack.aclose()


class ClosingServer(AdmissionServer):
    """Ends the connection after every answer, so that each call of the API server is a handshake of its own."""

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        response = await super()._handle(request)
        response.force_close()
        return response


class Replica:
    """A server and its loop, woken by watches as in a manager."""

    def __init__(
        self,
        site: Site,
        directory: Path,
        handlers: tuple[MutatingHandler | ValidatingHandler, ...],
        converters: Converters | None,
        more: dict[str, Any],
    ) -> None:
        self.registry = Registry(*handlers)
        self.cache = Cache(site.client, clock=CLOCK, namespace=site.namespace)
        self.answerer = Answerer(CLOCK, stores=self.cache)
        server = ClosingServer if more.pop("closing", False) else AdmissionServer
        self.server = server(self.registry, self.answerer, converters or Converters())
        self.synchronizer: Synchronizer | None = None
        self._site = site
        self._directory = directory
        self._more = more

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        await self.server.start("127.0.0.1", 0, shutdown_timeout=2)
        site = self._site
        endpoint = UrlEndpoint("127.0.0.1", self.server.port)
        policy = Policy(dns_name=endpoint.dns_name)
        self.synchronizer = Synchronizer(
            site.client,
            clock=CLOCK,
            store=SecretCertificates(site.client, site.namespace, SECRET, policy, CLOCK),
            directory=CertificateDirectory(self._directory),
            serving=self.server.certificate,
            endpoint=endpoint,
            active_paths=lambda: self.registry.paths,
            groups={site.group},
            mutating_name=site.mutating,
            validating_name=site.validating,
            **{"propagation": 2.0, **self._more},
        )
        tasks = [asyncio.create_task(self.synchronizer.run())]
        try:
            await asyncio.wait_for(self.synchronizer.first_success.wait(), 20)
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.server.stop()

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        synchronizer = self.synchronizer
        assert synchronizer is not None
        for resource in (
            SECRETS,
            MUTATING_WEBHOOK_CONFIGURATIONS,
            VALIDATING_WEBHOOK_CONFIGURATIONS,
            CUSTOM_RESOURCE_DEFINITIONS,
        ):
            self.cache.add(resource).subscribe(lambda old, new: synchronizer.trigger())
        task = asyncio.create_task(self.cache.run())
        try:
            await self.cache.wait_synced(20)
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def trusts(self, bundle: bytes) -> bool:
        """Whether somebody who trusts `bundle` accepts what is served to a new connection."""
        context = ssl.create_default_context(cadata=bundle.decode())
        async with aiohttp.ClientSession() as session:
            try:
                async with session.get(f"https://127.0.0.1:{self.server.port}/healthz", ssl=context) as answer:
                    return answer.status == 200
            except aiohttp.ClientConnectorCertificateError:
                return False


async def until(check: Callable[[], Awaitable[bool]], seconds: float = 20.0, what: str = "") -> None:
    async def holds() -> None:
        assert await check(), what or check

    await eventually(holds, within=seconds, every=0.05)


@pytest.fixture
async def site(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> AsyncIterator[Site]:
    client = Client(HttpTransport(kubeconfig.load(control_plane.kubeconfig)))
    site = Site(client, namespace, tmp_path)
    yield site
    await site.close()
    await client.close()


def config_map_entries(site: Site) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    return (
        [site.entry("stamp.example.io", "/stamp", "configmaps", "CREATE", "UPDATE")],
        [site.entry("judge.example.io", "/judge", "configmaps", "CREATE", "UPDATE")],
    )


STAMP = MutatingHandler("/stamp", stamp)
JUDGE = ValidatingHandler("/judge", judge)


def direct(site: Site) -> Client:
    """A client that shows every refusal at once."""
    return Client(site.client.transport, retry=NEVER)


async def is_intercepted(site: Site) -> bool:
    """Whether the API server has learned of the entries."""
    try:
        return "stamped" in (await site.create("probe", dry_run=True)).data
    except ClientError as error:
        raise AssertionError(f"not yet: {error}") from error


@pytest.mark.smoke
async def test_mutation_and_refusal_as_the_client_sees_them(site: Site) -> None:
    """MGR-39, PW-3, PW-4; MGR-82: a wiped bundle is restored at once."""
    await site.install(*config_map_entries(site))
    replica = await site.replica(STAMP, JUDGE)
    async with replica.watching():
        await until(lambda: is_intercepted(site), what="the entries become active")
        made = await site.create("one", a="1")
        assert made.data == {"a": "1", "stamped": "yes"}
        assert (await site.create("two", plain="1")).data == {"plain": "1"}
        with pytest.raises(ForbiddenError) as forbidden:
            await site.create("three", forbidden="x")
        assert forbidden.value.code == 403
        assert forbidden.value.message == (
            'admission webhook "judge.example.io" denied the request: this word is forbidden here'
        )
        with pytest.raises(TooManyRequestsError) as busy:
            await direct(site).create(CONFIG_MAPS, site.config_map("later", later="x"), site.namespace)
        assert busy.value.status.details.retry_after_seconds == 7
        with pytest.raises(InvalidError) as invalid:
            await site.create("four", n1="7", n2="seven", n3="x")
        assert invalid.value.code == 422
        assert [cause.field for cause in invalid.value.causes] == ["data.n2", "data.n3"]
        assert 'data.n2: Invalid value: "seven": not a number' in invalid.value.message

        bundles = await site.bundles()
        live = await site.client.get(MUTATING_WEBHOOK_CONFIGURATIONS, site.mutating)
        entries = [{**entry, "clientConfig": {"url": entry["clientConfig"]["url"]}} for entry in live.webhooks]
        await site.client.patch(MUTATING_WEBHOOK_CONFIGURATIONS, site.mutating, {"webhooks": entries})

        async def restored() -> bool:
            return await site.bundles() == bundles

        await until(restored, 5, "the wiped caBundle comes back")
        version = (await site.client.get(MUTATING_WEBHOOK_CONFIGURATIONS, site.mutating)).metadata.resource_version
        await asyncio.sleep(1)
        after = (await site.client.get(MUTATING_WEBHOOK_CONFIGURATIONS, site.mutating)).metadata.resource_version
        assert after == version, "nothing is written once it is right"


async def test_an_entry_without_a_handler_goes_and_comes_back(site: Site) -> None:  # MGR-84
    await site.install(*config_map_entries(site))
    replica = await site.replica(JUDGE)
    assert (await site.client.get(MUTATING_WEBHOOK_CONFIGURATIONS, site.mutating)).webhooks == ()
    replica.registry.add(STAMP)
    assert replica.synchronizer is not None
    replica.synchronizer.trigger()
    await until(lambda: is_intercepted(site), what="the entry comes back")


@pytest.mark.parametrize("exists", [False, True])
async def test_two_servers_on_an_empty_secret_converge(site: Site, exists: bool) -> None:  # MGR-80
    await site.install(*config_map_entries(site))
    if exists:
        empty = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET}}
        await site.client.create(SECRETS, empty, site.namespace)
    first, second = await asyncio.gather(site.replica(STAMP, JUDGE), site.replica(STAMP, JUDGE))
    ca = (await site.secret())["ca-cert.pem"]
    assert await first.trusts(ca)
    assert await second.trusts(ca)
    assert await site.bundles() == {ca}


async def test_a_new_ca_under_load_drops_no_request(site: Site) -> None:
    """MGR-81: the Secret is deleted while requests come in all the time; everything follows, nothing fails."""
    await site.install(*config_map_entries(site))
    await site.install_toys()
    replica = await site.replica(STAMP, JUDGE, closing=True)
    async with replica.watching():
        await until(lambda: is_intercepted(site), what="the entries become active")
        first = await site.secret()
        stop = asyncio.Event()

        async def load(number: int) -> int:
            done = 0
            while not stop.is_set():
                made = await site.create(f"load-{number}", dry_run=True, a="1")
                assert made.data["stamped"] == "yes"
                done += 1
            return done

        async def changed() -> bool:
            with contextlib.suppress(NotFoundError):
                second = await site.secret()
                return second["ca-cert.pem"] != first["ca-cert.pem"] and await replica.trusts(second["ca-cert.pem"])
            return False

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(load(number)) for number in range(8)]
            await asyncio.sleep(0.5)
            await site.client.delete(SECRETS, SECRET, site.namespace)
            await until(changed, 30, "a new CA is served")
            await asyncio.sleep(1.5)
            stop.set()
        assert sum(task.result() for task in tasks) > 100
        second = await site.secret()
        assert await site.bundles() == {second["ca-cert.pem"] + first["ca-cert.pem"]}
        assert not await replica.trusts(first["ca-cert.pem"])


@pytest.mark.smoke
async def test_only_marked_pods_cause_calls(site: Site) -> None:
    """The match conditions of `vpod.kb.io` as installed: UPDATE and DELETE of marked pods and every eviction call.
    Where the mark is one for deletions alone, updates call nobody."""
    pod_entries = [
        site.here(render(entry, RegistrationOptions())) for entry in VALIDATING if entry.path == "/validate-pod"
    ]
    probe = site.entry("probe.example.io", "/stamp", "configmaps", "CREATE")
    await site.install([probe], pod_entries)
    await site.replica(STAMP, site.counted("/validate-pod"))
    await until(lambda: is_intercepted(site), what="the entries become active")

    async def pod(name: str, **annotations: str) -> None:
        metadata = {"name": name, "annotations": {key.replace("__", "/"): value for key, value in annotations.items()}}
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {"containers": [{"name": "c", "image": "x"}]},
        }
        await site.client.create(PODS, body, site.namespace)

    async def touch(name: str, body: Any) -> None:
        await site.client.patch(PODS, name, body, site.namespace)

    async def intercepted() -> bool:
        # Both configurations reach the API server on their own ways: wait until this one is there, too.
        with contextlib.suppress(NotFoundError):
            await site.client.delete(PODS, "first", site.namespace)
        await pod("first", **{"kruise.io__related-pub": "b"})
        await touch("first", {"metadata": {"labels": {"a": "b"}}})
        return site.calls["UPDATE", "first"] > 0

    await until(intercepted, what="the pod entries become active")
    site.calls.clear()

    await pod("free")
    await pod("other", **{"example.io__note": "x"})
    for name in ("free", "other"):
        await touch(name, {"metadata": {"labels": {"a": "b"}}})
        await touch(name, {"metadata": {"annotations": {"x": "y"}}})
        await site.client.delete(PODS, name, site.namespace)
    assert site.calls == {}, "pods that nobody protects cause no call"

    marks = {
        "a": "kruise.io/related-pub",
        "b": "pub.kruise.io/related-pub",
        "c": "apps.kruise.io/matched-workloadspread",
    }
    for name, mark in marks.items():
        await pod(name, **{mark.replace("/", "__"): "x"})
        await touch(name, {"metadata": {"labels": {"a": "b"}}})
        # Taking the mark away is an update of a marked pod; putting it on is one, too.
        await touch(name, {"metadata": {"annotations": {mark: None}}})
        await touch(name, {"metadata": {"annotations": {mark: "x"}}})
        await site.client.delete(PODS, name, site.namespace)
    # At least: the API server asks again where its own copy of the pod was stale.
    updates = {("UPDATE", name) for name in ("a", "b")}
    assert set(site.calls) == {("DELETE", name) for name in marks} | updates
    assert all(site.calls[call] >= 3 for call in updates)

    site.calls.clear()
    await pod("evicted")
    await site.client.evict(PODS, "evicted", site.namespace)
    assert set(site.calls) == {("CREATE", "evicted")}, "evictions always call, whatever the pod"


@pytest.mark.smoke
async def test_conversion_answers_before_any_cache_is_filled(site: Site) -> None:
    """MGR-38, MGR-53: a toy kind of two versions, served by a process whose stores never fill."""
    converters = Converters()
    names = {"v1": "size", "v2": "length"}

    def convert(obj: dict[str, Any], version: str) -> dict[str, Any]:
        (other,) = {"v1", "v2"} - {version}
        spec = obj.get("spec", {})
        if spec.get(names[other]) == "unconvertible":
            raise ValueError("no such length")
        if names[other] in spec:
            spec[names[version]] = spec.pop(names[other])
        return obj

    converters.register(site.group, "Toy", convert)
    await site.install([], [])
    await site.install_toys()
    waiting = ValidatingHandler("/waits", lambda r, v: Allow(), needs=(PODS,))
    replica = await site.replica(waiting, converters=converters)
    replica.cache.add(PODS)  # and never run
    v1 = Resource(site.group, "v1", "toys", "Toy", True, PartialObject)

    async def established() -> bool:
        return is_established(await site.client.get(CUSTOM_RESOURCE_DEFINITIONS, f"toys.{site.group}"))

    await until(established)

    async def raw(version: str, name: str = "") -> Any:
        path = f"/apis/{site.group}/{version}/namespaces/{site.namespace}/toys" + (f"/{name}" if name else "")
        return await get_json(site.client, path)

    async def creatable() -> bool:
        body = {"apiVersion": v1.api_version, "kind": "Toy", "metadata": {"name": "t0"}, "spec": {"size": 0}}
        with contextlib.suppress(NotFoundError):
            await site.client.create(v1, body, site.namespace)
            return True
        return False

    await until(creatable)
    for number in range(1, 4):
        name = f"t{number}"
        body = {"apiVersion": v1.api_version, "kind": "Toy", "metadata": {"name": name}, "spec": {"size": number}}
        await site.client.create(v1, body, site.namespace)

    async def convertible() -> bool:
        with contextlib.suppress(ClientError):
            return bool((await raw("v2", "t1"))["spec"] == {"length": 1})
        return False

    await until(convertible, what="the conversion stanza becomes active")
    listed = await raw("v2")
    assert [item["spec"] for item in listed["items"]] == [{"length": number} for number in range(4)]
    assert {item["apiVersion"] for item in listed["items"]} == {f"{site.group}/v2"}

    bad = {"apiVersion": v1.api_version, "kind": "Toy", "metadata": {"name": "t9"}, "spec": {"size": "unconvertible"}}
    await site.client.create(v1, bad, site.namespace)
    with pytest.raises(ClientError, match="no such length"):
        await raw("v2", "t9")


async def get_json(client: Client, path: str) -> Any:
    return decode((await client.send(Request(Verb.GET, None, raw_path=path))).body, dict)
