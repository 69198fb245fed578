"""The local API server and a real one call the same webhooks in the same way and say the same about their answers.

One TLS webhook on loopback serves both. Every case has a label of its own that its entries select by, so that all of
them are registered once. Whatever a webhook says is decided by its path.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import dataclasses
import json
import re
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kruise.admission.certificates import encode_bundle, issue
from kruise.api.native.apps import DEPLOYMENTS
from kruise.api.native.config import CONFIG_MAPS
from kruise.api.native.extensions import MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS
from kruise.api.native.nodes import NAMESPACES
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.local.apicore import ApiCore
from kruise.local.inprocess import InProcessTransport
from kruise.local.kinds import native_registry
from kruise.local.webhooks import Webhooks
from kruise.local.webhooks.https import HttpsCaller
from kruise.machinery.client import kubeconfig
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.requests import PatchType, Query, Request, Verb
from kruise.machinery.client.transport import Response, Transport
from kruise.machinery.clock import RealClock
from tests.support.ports import free_port
from tests.support.realcluster import ControlPlane
from tests.support.waiting import eventually

Json = dict[str, Any]


# What the webhook says, by path


def encoded(*operations: Json) -> str:
    return base64.b64encode(json.dumps(operations).encode()).decode()


def appended(letter: str, request: Json) -> Json:
    order = request["object"].get("data", {}).get("order", "") + letter
    return {"patchType": "JSONPatch", "patch": encoded({"op": "add", "path": "/data/order", "value": order})}


RESPONSES: dict[str, Json] = {
    "allow": {},
    "deny": {"allowed": False},
    "deny-reason": {"allowed": False, "status": {"reason": "Weather"}},
    "deny-message": {"allowed": False, "status": {"message": "not here", "code": 403, "reason": "Forbidden"}},
    "deny-success": {"allowed": False, "status": {"message": "no", "code": 200, "status": "Success"}},
    "deny-details": {
        "allowed": False,
        "status": {
            "code": 422,
            "reason": "Invalid",
            "message": "wrong",
            "details": {"name": "x", "causes": [{"reason": "FieldValueInvalid", "message": "m", "field": "f"}]},
        },
    },
    "deny-later": {
        "allowed": False,
        "status": {"code": 429, "reason": "TooManyRequests", "message": "later", "details": {"retryAfterSeconds": 7}},
    },
    "wrong-uid": {"uid": "other"},
    "patch": {"patchType": "JSONPatch", "patch": encoded({"op": "add", "path": "/data/b", "value": "2"})},
    "patch-only": {"patch": encoded({"op": "add", "path": "/data/b", "value": "2"})},
    "type-only": {"patchType": "JSONPatch"},
    "strange-type": {"patchType": "Merge", "patch": encoded({"op": "add", "path": "/data/b", "value": "2"})},
    "warn": {"warnings": ["mind the gap", 'say "hello"']},
}
BODIES: dict[str, tuple[int, str, str]] = {
    "not-found": (404, "text/plain", "404 page not found"),
    "broken": (500, "text/plain", "out of order"),
    "unavailable": (503, "text/plain", "later"),
    "busy": (429, "text/plain", "busy"),
    "forbidden": (403, "text/plain", "go away"),
    "status": (
        400,
        "application/json",
        '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"no review","code":400}',
    ),
    "no-kind": (200, "application/json", "{}"),
    "another-kind": (200, "application/json", '{"kind":"Pod","apiVersion":"v1"}'),
    "no-response": (200, "application/json", '{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}'),
}


class Webhook:
    """`reviews` holds the requests of those that asked `/record`, by who asked."""

    def __init__(self) -> None:
        self.port = 0
        self.bundle = b""
        self.reviews: dict[str, list[Json]] = {"real": [], "local": []}
        self.connections: set[asyncio.BaseTransport] = set()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.transport is not None:
            self.connections.add(request.transport)
        path = request.path.strip("/")
        review = json.loads(await request.read())
        asked = review["request"]
        if path == "slow":
            await asyncio.sleep(5)
        if path == "record":
            agent = request.headers.get("User-Agent", "")
            self.reviews["local" if agent.startswith("kruise-local") else "real"].append(asked)
        if path in BODIES:
            status, content_type, text = BODIES[path]
            return web.Response(status=status, content_type=content_type, text=text)
        said = appended(path[-1], asked) if path.startswith("append-") else RESPONSES.get(path, {})
        response = {"uid": asked["uid"], "allowed": True, **said}
        return web.json_response({"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response})


@contextlib.asynccontextmanager
async def serving(directory: Path) -> AsyncIterator[Webhook]:
    material = issue("127.0.0.1", datetime.now(UTC))
    (directory / "cert.pem").write_bytes(material.cert)
    (directory / "key.pem").write_bytes(material.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "cert.pem", directory / "key.pem")
    webhook = Webhook()
    webhook.bundle = material.ca_cert
    runner = web.ServerRunner(web.Server(webhook.handle), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    webhook.port = runner.addresses[0][1]
    try:
        yield webhook
    finally:
        for connection in webhook.connections:
            # The API server keeps its side open: nobody waits for its farewell. One that is closed already cannot be
            # aborted in every Python.
            if isinstance(connection, asyncio.WriteTransport) and not connection.is_closing():
                connection.abort()
        await runner.cleanup()
        await asyncio.sleep(0.05)


# Cases


@dataclasses.dataclass(frozen=True)
class Case:
    """A config map is created and answered. `entries`: paths, `m:` for mutating ones, in order."""

    entries: tuple[str, ...]
    more: Json = dataclasses.field(default_factory=dict)
    """Fields of every entry."""
    query: Query = ()
    text: bool = True
    """Whether the message must be equal: a parser's own words are not worth repeating."""


CASES: dict[str, Case] = {
    "allowed": Case(("allow",)),
    **{path: Case((path,)) for path in RESPONSES if path.startswith("deny")},
    "both deny": Case(("allow", "deny-message")),
    **{path: Case((path,), text=path != "no-kind") for path in BODIES},
    "wrong-uid": Case(("wrong-uid",)),
    "validating-patch": Case(("patch",)),
    "validating-type": Case(("type-only",)),
    "patched": Case(("m:patch",)),
    "patch-only": Case(("m:patch-only",)),
    "type-only": Case(("m:type-only",)),
    "strange-type": Case(("m:strange-type",)),
    "order": Case(("m:append-c", "m:append-a", "m:append-b")),
    "again": Case(("m:append-a", "m:append-b", "m:append-c"), {"reinvocationPolicy": "IfNeeded"}),
    "mutating denies": Case(("m:append-a", "m:deny-message", "m:append-b")),
    "ignored": Case(("m:broken", "m:append-a", "broken"), {"failurePolicy": "Ignore"}),
    "denial is not ignored": Case(("deny-message",), {"failurePolicy": "Ignore"}),
    "refused": Case(("allow",), {"clientConfig": {"url": "https://127.0.0.1:$closed/x"}}),
    "no-service": Case(
        ("allow",), {"clientConfig": {"service": {"namespace": "default", "name": "gone", "path": "/x"}}}
    ),
    "slow": Case(("slow",), {"timeoutSeconds": 1}),
    "untrusted": Case(("allow",), {"clientConfig": {"url": "https://127.0.0.1:$port/x", "caBundle": "$other"}}),
    "old review": Case(("m:patch-only",), {"admissionReviewVersions": ["v1beta1"]}),
    "unknown review": Case(("allow",), {"admissionReviewVersions": ["v1", "v9"]}),
    "dry run": Case(("m:append-a", "deny-message"), {}, (("dryRun", "All"),)),
    "condition true": Case(
        ("deny-message",), {"matchConditions": [{"name": "c", "expression": "'a' in object.data && oldObject == null"}]}
    ),
    "condition false": Case(
        ("deny-message",), {"matchConditions": [{"name": "c", "expression": "has(object.data.b) || false"}]}
    ),
    "condition fails": Case(
        ("deny-message",), {"matchConditions": [{"name": "c", "expression": "object.data.b == '1'"}]}
    ),
    "condition fails and is ignored": Case(
        ("deny-message",),
        {"matchConditions": [{"name": "c", "expression": "object.data.b == '1'"}], "failurePolicy": "Ignore"},
    ),
    "condition of the request": Case(
        ("deny-message",),
        {
            "matchConditions": [
                {
                    "name": "c",
                    "expression": "request.operation == 'CREATE' && request.kind.kind == 'ConfigMap' "
                    "&& request.name == object.metadata.name && !request.dryRun",
                }
            ]
        },
    ),
}


def label_of(case: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", case)


def entries_of(webhook: Webhook, namespace: str, closed: int, other: bytes) -> dict[str, list[Json]]:
    """Entries of both kinds of configurations, for this namespace only."""
    found: dict[str, list[Json]] = {"mutating": [], "validating": []}
    for name, case in CASES.items():
        for position, path in enumerate(case.entries):
            kind = "mutating" if path.startswith("m:") else "validating"
            entry: Json = {
                **_entry(webhook, namespace, f"{label_of(name)}-{position}.example.io", path.removeprefix("m:")),
                "objectSelector": {"matchLabels": {"case": label_of(name)}},
                **case.more,
            }
            if kind == "validating":
                entry.pop("reinvocationPolicy", None)
            text = json.dumps(entry).replace("$closed", str(closed)).replace("$port", str(webhook.port))
            found[kind].append(json.loads(text.replace("$other", encode_bundle(other))))
    record = _entry(webhook, namespace, "record.example.io", "record")
    everything = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["*"]}
    record["rules"] = [everything]
    record["objectSelector"] = {"matchLabels": {"case": "record"}}
    # Bodies of subresources have no labels: these are recorded whatever they are about.
    parts = _entry(webhook, namespace, "parts.example.io", "record")
    parts["rules"] = [{**everything, "resources": ["pods/eviction", "deployments/scale"]}]
    found["validating"] += [record, parts]
    return found


def _entry(webhook: Webhook, namespace: str, name: str, path: str) -> Json:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    config = {"url": f"https://127.0.0.1:{webhook.port}/{path}", "caBundle": encode_bundle(webhook.bundle)}
    return {
        "name": name,
        "clientConfig": config,
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }


# Both servers


class Server:
    def __init__(self, name: str, transport: Transport, namespace: str) -> None:
        self.name = name
        self.transport = transport
        self.namespace = namespace

    async def send(
        self, verb: Verb, resource: Resource[Any], name: str = "", body: Any = None, **more: Any
    ) -> Response:
        sent = json.dumps(body).encode() if body is not None else None
        namespace = self.namespace if resource.namespaced else ""
        return await self.transport.send(Request(verb, resource, namespace, name, body=sent, **more))

    async def install(self, entries: dict[str, list[Json]]) -> None:
        for resource, kind in (
            (MUTATING_WEBHOOK_CONFIGURATIONS, "mutating"),
            (VALIDATING_WEBHOOK_CONFIGURATIONS, "validating"),
        ):
            body = {
                "apiVersion": resource.api_version,
                "kind": resource.kind,
                "metadata": {"name": f"{kind}-{self.namespace}"},
                "webhooks": entries[kind],
            }
            answer = await self.send(Verb.CREATE, resource, body=body)
            assert answer.status == 201, answer.body

    async def remove(self) -> None:
        for resource, kind in (
            (MUTATING_WEBHOOK_CONFIGURATIONS, "mutating"),
            (VALIDATING_WEBHOOK_CONFIGURATIONS, "validating"),
        ):
            await self.send(Verb.DELETE, resource, f"{kind}-{self.namespace}")

    async def create(self, case: str, name: str = "x", query: Query = ()) -> Response:
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "labels": {"case": label_of(case)}},
            "data": {"a": "1"},
        }
        return await self.send(Verb.CREATE, CONFIG_MAPS, body=body, query=query)


@contextlib.asynccontextmanager
async def local_server(namespace: str) -> AsyncIterator[Server]:
    core = ApiCore(native_registry(), clock=RealClock(), require_namespaces=True)
    caller = HttpsCaller()
    webhooks = Webhooks(core, caller)
    server = Server("local", InProcessTransport(core), namespace)
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    assert (await server.send(Verb.CREATE, NAMESPACES, body=body)).status == 201
    try:
        yield server
    finally:
        webhooks.close()
        await caller.close()


@pytest.fixture
async def webhook(tmp_path: Path) -> AsyncIterator[Webhook]:
    async with serving(tmp_path) as webhook:
        yield webhook


@pytest.fixture
async def servers(
    control_plane: ControlPlane, namespace: str, webhook: Webhook
) -> AsyncIterator[tuple[Server, Server]]:
    """The real one and the local one, with the same webhooks registered."""
    entries = entries_of(webhook, namespace, free_port(), control_plane.ca_pem)
    transport = HttpTransport(kubeconfig.load(control_plane.kubeconfig))
    real = Server("real", transport, namespace)
    async with local_server(namespace) as local:
        try:
            for server in (real, local):
                await server.install(entries)

            async def active() -> None:
                # Both configurations reach the real server on ways of their own.
                assert b'"order":"ab' in (await real.create("again", "probe", (("dryRun", "All"),))).body
                assert (await real.create("deny", "probe", (("dryRun", "All"),))).status == 400

            await eventually(active, within=20)
            yield real, local
        finally:
            await real.remove()
            await transport.close()


def compared(case: Case, answer: Response) -> Json:
    body = json.loads(answer.body)
    said: Json = {"code": answer.status, "warning": answer.headers.get("warning", "")}
    if body.get("kind") == "Status":
        said["status"] = {
            name: value for name, value in body.items() if case.text or name not in ("message", "details")
        }
        said["retry"] = answer.headers.get("retry-after", "")
    else:
        said["data"] = body["data"]
    text = json.dumps(said)
    # Each server makes its own uids, and the ports of connections differ.
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UID", text)
    return dict(json.loads(text))


@pytest.mark.smoke
async def test_the_same_answers_and_words(servers: tuple[Server, Server]) -> None:
    real, local = servers
    different: dict[str, tuple[Json, Json]] = {}
    for number, (name, case) in enumerate(CASES.items()):
        expected = compared(case, await real.create(name, f"c{number}", case.query))
        found = compared(case, await local.create(name, f"c{number}", case.query))
        if found != expected:
            different[name] = (expected, found)
    assert not different, json.dumps(different, indent=1)


def about(review: Json) -> Json:
    """What a review says, but for what each server makes itself."""
    told = {name: value for name, value in review.items() if name not in ("uid", "userInfo", "object", "oldObject")}
    for name in ("object", "oldObject"):
        obj = review.get(name)
        told[name] = None if obj is None else {"kind": obj["kind"], "apiVersion": obj["apiVersion"]}
        if obj is not None and obj["kind"] in ("ConfigMap", "Scale"):
            told[name]["content"] = {key: obj.get(key) for key in ("data", "spec")}
    return told


async def test_the_same_reviews(servers: tuple[Server, Server], webhook: Webhook) -> None:
    """Creates, updates, patches, deletes, evictions and scaling are asked with the same fields."""
    labels = {"case": "record"}
    container = {"name": "main", "image": "nginx:1"}
    workload = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "x"}},
            "template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [container]}},
        },
    }
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "r", "labels": labels},
        "data": {"a": "1"},
    }
    generated = {**config_map, "metadata": {"generateName": "g-", "labels": labels}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    replaced = {**config_map, "data": {"a": "2"}}
    manager = (("fieldManager", "tester"),)
    for server in servers:
        steps = [
            server.send(Verb.CREATE, CONFIG_MAPS, body=config_map, query=manager),
            server.send(Verb.CREATE, CONFIG_MAPS, body=generated, query=manager),
            server.send(Verb.UPDATE, CONFIG_MAPS, "r", replaced, query=manager),
            server.send(
                Verb.PATCH, CONFIG_MAPS, "r", {"data": {"a": "3"}}, query=manager, content_type=PatchType.MERGE
            ),
            server.send(
                Verb.PATCH,
                CONFIG_MAPS,
                "r",
                {"data": {"a": "4"}},
                query=(*manager, ("dryRun", "All")),
                content_type=PatchType.MERGE,
            ),
            server.send(Verb.DELETE, CONFIG_MAPS, "r", {"propagationPolicy": "Background", "dryRun": ["All"]}),
            server.send(Verb.DELETE, CONFIG_MAPS, "r", {"gracePeriodSeconds": 0}),
            server.send(Verb.CREATE, DEPLOYMENTS, body=workload, query=manager),
            server.send(
                Verb.PATCH,
                DEPLOYMENTS,
                "d",
                {"spec": {"replicas": 1}},
                subresource="scale",
                query=manager,
                content_type=PatchType.MERGE,
            ),
            server.send(Verb.CREATE, PODS, body=pod, query=manager),
            server.send(Verb.CREATE, PODS, "p", eviction, subresource="eviction", query=manager),
        ]
        for step in steps:
            answer = await step
            assert answer.status < 300, answer.body
    # Once each: a server asks again where its own copy of the object was stale.
    real, local = (
        list(
            dict.fromkeys(
                re.sub(r'"g-[a-z0-9]{5}"', '"g-"', json.dumps(about(review), sort_keys=True)) for review in seen
            )
        )
        for seen in (webhook.reviews["real"], webhook.reviews["local"])
    )
    assert len(real) == 9
    for expected, found in zip(real, local, strict=True):
        assert json.loads(found) == json.loads(expected)
