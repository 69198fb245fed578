"""Definitions and custom objects get the same answers from the local API core and from a real API server.

The same requests go to both. Compared are code, reason, the causes with their fields and texts, and the object that is
answered, after uids, versions and times were replaced.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
import trustme
from aiohttp import web

from kruise.api.meta import PartialObject
from kruise.api.native.extensions import CUSTOM_RESOURCE_DEFINITIONS
from kruise.api.resource import Resource
from kruise.local.apicore import ApiCore, MemoryStorage
from kruise.local.crds import Definitions
from kruise.local.inprocess import InProcessTransport
from kruise.local.kinds import native_registry
from kruise.local.webhooks.convert import WebhookConversion
from kruise.local.webhooks.https import HttpsCaller
from kruise.machinery.client import kubeconfig
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.requests import PatchType, Request, Verb
from kruise.machinery.client.transport import Transport
from kruise.machinery.clock import RealClock
from tests.local.crds import cases
from tests.local.crds.cases import COLUMNS, GROUP, RICH, STRING, definition, rich, version, with_spec
from tests.support.realcluster import ControlPlane

RICHES = Resource(GROUP, "v1", "riches", "Rich", True, PartialObject)
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


class Side:
    """One of the two servers."""

    def __init__(self, transport: Transport, namespace: str) -> None:
        self.transport = transport
        self.namespace = namespace
        self.is_real = isinstance(transport, HttpTransport)

    async def send(self, verb: Verb, resource: Resource[Any], name: str = "", body: Any = None, **more: Any) -> Any:
        namespace = self.namespace if resource.namespaced else ""
        data = None if body is None else json.dumps(body).encode()
        answer = await self.transport.send(Request(verb, resource, namespace, name, body=data, **more))
        return answer.status, json.loads(answer.body) if answer.body.startswith(b"{") else answer.body.decode()

    async def define(self, body: Any, *, wait: bool = True) -> Any:
        code, answer = await self.send(Verb.CREATE, CUSTOM_RESOURCE_DEFINITIONS, body=body)
        assert code == 201, answer
        if wait:
            await self.settled(body["metadata"]["name"])
        return answer

    async def settled(self, name: str, what: str = "Established", status: str = "True") -> Any:
        """The definition, as soon as a condition is as asked (and its names are settled, if it has them)."""
        async with asyncio.timeout(30):
            while True:
                _, found = await self.send(Verb.GET, CUSTOM_RESOURCE_DEFINITIONS, name)
                about = found.get("status") or {}
                conditions = about.get("conditions") or ()
                named = status != "True" or about.get("acceptedNames") == found["spec"]["names"]
                if named and any(item["type"] == what and item["status"] == status for item in conditions):
                    return found
                await asyncio.sleep(0.1)

    async def served(self, resource: Resource[Any]) -> None:
        """The real server notices changes of a definition a moment later."""
        if self.is_real:
            await asyncio.sleep(1.0)

    async def gone(self, name: str) -> None:
        async with asyncio.timeout(60):
            while True:
                code, _ = await self.send(Verb.GET, CUSTOM_RESOURCE_DEFINITIONS, name)
                if code == 404:
                    return
                await asyncio.sleep(0.2)


@pytest.fixture
async def real(cluster: ControlPlane, namespace: str) -> AsyncIterator[Side]:
    transport = HttpTransport(kubeconfig.load(cluster.kubeconfig))
    yield Side(transport, namespace)
    await transport.close()


@pytest.fixture
def ours(namespace: str) -> Side:
    core = ApiCore(native_registry(), clock=RealClock(), storage=MemoryStorage(start_version=1000), seed=1)
    Definitions(core)
    return Side(InProcessTransport(core), namespace)


@pytest.fixture
async def both(real: Side, ours: Side) -> AsyncIterator[tuple[Side, Side]]:
    """Both servers; what a test defined is removed from the real one afterwards."""
    yield real, ours
    _, found = await real.send(Verb.LIST, CUSTOM_RESOURCE_DEFINITIONS)
    for item in found["items"]:
        if item["spec"]["group"] == GROUP:
            name = item["metadata"]["name"]
            await real.send(Verb.DELETE, CUSTOM_RESOURCE_DEFINITIONS, name)
            await real.gone(name)


# Comparing


def comparable(answer: tuple[int, Any], *, text: bool = True) -> Any:
    code, body = answer
    if not isinstance(body, dict):
        return code, body
    body = _plain(body)
    if body.get("kind") == "Status" and code >= 400:
        causes = sorted(
            {
                (item.get("reason", ""), item.get("field", ""), item.get("message", "") if text else "")
                for item in body.get("details", {}).get("causes", ())
            }
        )
        # With several causes their order in the message is the order of a Go map.
        message = body.get("message") if text and len(causes) < 2 else None
        return code, body.get("reason"), causes, message
    return code, body


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    result = {}
    for name, item in value.items():
        if name in ("managedFields", "uid", "resourceVersion"):
            continue
        if name in ("creationTimestamp", "deletionTimestamp", "lastTransitionTime") and isinstance(item, str):
            item = "<time>"
        result[name] = _plain(item)
    return result


def differences(their: Any, our: Any, *, text: bool = True) -> str:
    theirs, mine = comparable(their, text=text), comparable(our, text=text)
    return "" if theirs == mine else f"\n  real: {_shown(theirs)}\n  ours: {_shown(mine)}"


def _shown(value: Any) -> str:
    return json.dumps(value, sort_keys=True)[:3000]


class Report:
    """Counts what was compared and collects what differs."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.count = 0
        self.found: list[str] = []

    def add(self, title: str, their: Any, our: Any, *, text: bool = True) -> None:
        self.count += 1
        difference = differences(their, our, text=text)
        if difference:
            self.found.append(f"{title}:{difference}")

    def finish(self) -> None:
        print(f"\n{self.what}: {self.count} compared, {self.count - len(self.found)} equal")
        assert not self.found, "\n".join(self.found)


# Definitions


@pytest.mark.smoke
async def test_definitions(both: tuple[Side, Side]) -> None:
    """Good and bad definitions, none of them stored."""
    report = Report("definitions")
    for title, body in cases.DEFINITIONS.items():
        answers = [
            await side.send(Verb.CREATE, CUSTOM_RESOURCE_DEFINITIONS, body=body, query=(("dryRun", "All"),))
            for side in both
        ]
        report.add(title, *answers, text=title not in cases.WITHOUT_TEXT)
    report.finish()


# Objects


@pytest.mark.smoke
async def test_objects(both: tuple[Side, Side]) -> None:
    """Objects of a kind that has everything: what is refused and why, what is pruned and filled in."""
    report = Report("objects")
    for side in both:
        await side.define(RICH)
    for number, title in enumerate(cases.OBJECTS):
        body = cases.object_body(title, f"a{number}")
        answers = [await side.send(Verb.CREATE, RICHES, body=body) for side in both]
        report.add(title, *answers)
        if answers[0][0] == 201:
            report.add(f"{title}, read", *[await side.send(Verb.GET, RICHES, f"a{number}") for side in both])
    report.finish()


async def test_changes(both: tuple[Side, Side]) -> None:
    """Updates, what they forgive, the status and scale subresources, selectors and generations."""
    report = Report("changes")
    for side in both:
        await side.define(RICH)

    async def step(title: str, verb: Verb, name: str, body: Any = None, **more: Any) -> None:
        report.add(title, *[await side.send(verb, RICHES, name, body, **more) for side in both])

    async def patch(title: str, body: Any, sub: str = "", name: str = "a") -> None:
        await step(title, Verb.PATCH, name, body, content_type=PatchType.MERGE, subresource=sub)

    labels = {"crr.apps.kruise.io/node-name": "n1"}
    await step("create", Verb.CREATE, "", {**rich({"size": 3}), "status": {"phase": "Up"}})
    await step("create another", Verb.CREATE, "", rich({"mode": "Slow", "flag": True}, name="b"))
    await patch("unknown and null fields", {"spec": {"strange": 1, "name": None}, "strange": 1})
    await patch("labels only", {"metadata": {"labels": labels}})
    await patch("a change of content", {"spec": {"size": 4}})
    await patch("the status through the object", {"status": {"phase": "Down"}})
    await patch("a default taken away", {"spec": {"mode": None}})
    await patch("wrong", {"spec": {"size": 0}})
    await patch("a list of another type", {"spec": {"tags": "x"}})
    await patch("the status", {"status": {"phase": "Up", "replicas": 2, "strange": 1}}, "status")
    await patch("the spec through the status", {"spec": {"size": 9}, "metadata": {"labels": {"x": "y"}}}, "status")
    await patch("a wrong status", {"status": {"phase": "Sideways", "replicas": -1}}, "status")
    await patch("a status of the wrong type", {"status": {"replicas": "x"}}, "status")
    await patch("a status that is none", {"status": "up"}, "status")
    condition = {"type": "Ready", "status": "True"}
    await patch("conditions", {"status": {"conditions": [condition], "selector": "a=b"}}, "status")
    await patch("a condition twice", {"status": {"conditions": [condition, condition]}}, "status")
    await patch("a condition without a status", {"status": {"conditions": [{"type": "Ready"}]}}, "status")
    await step("the status, read", Verb.GET, "a", subresource="status")
    await step("no such subresource", Verb.GET, "a", subresource="nothing")
    await step("scale", Verb.GET, "a", subresource="scale")
    await patch("scaled", {"spec": {"replicas": 7}}, "scale")
    await patch("scaled below zero", {"spec": {"replicas": -1}}, "scale")
    await patch("scaled too far", {"spec": {"replicas": 1000}}, "scale")
    scale = {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": "a"}, "spec": {"replicas": 8}}
    for side in both:
        scale["metadata"]["namespace"] = side.namespace
    await step("scale replaced", Verb.UPDATE, "a", scale, subresource="scale")
    await step("scaled object", Verb.GET, "a")
    for selector in ("spec.mode=Slow", "spec.mode!=Slow", "spec.size=8", "spec.flag=true", "spec.flag=", "spec.name=x"):
        await step(f"list by {selector}", Verb.LIST, "", query=(("fieldSelector", selector),))
    await step("list", Verb.LIST, "")
    await step("update without a version", Verb.UPDATE, "a", rich({}))
    await step("another kind", Verb.CREATE, "", {**rich({}, name="c"), "kind": "Poor"})
    await step("another version", Verb.CREATE, "", {**rich({}, name="c"), "apiVersion": f"{GROUP}/v2"})
    strategic = {"content_type": PatchType.STRATEGIC}
    # Which types are accepted instead depends on whether server-side apply is installed.
    answers = [await side.send(Verb.PATCH, RICHES, "a", {}, **strategic) for side in both]
    report.add("strategic merge", *answers, text=False)
    await step("delete", Verb.DELETE, "b")
    report.finish()


async def test_definitions_change(both: tuple[Side, Side]) -> None:
    """Objects that were stored by an earlier schema: read, defaulted, pruned, and forgiven as long as they stay."""
    report = Report("changed definitions")
    name, items = "olds." + GROUP, Resource(GROUP, "v1", "olds", "Old", True, PartialObject)
    ports = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"]}
    port = {"type": "object", "required": ["n"], "properties": {"n": STRING, "p": {"type": "integer"}}}
    before = with_spec({"a": STRING, "b": STRING, "ports": {**ports, "items": port}})
    port_after = {**port, "properties": {"n": STRING, "p": {"type": "integer", "minimum": 10}}}
    after = with_spec(
        {
            "a": {"type": "string", "maxLength": 2},
            "c": {"type": "string", "default": "new"},
            "ports": {**ports, "items": port_after},
        }
    )
    body = definition("olds", "Old", version(before), names={"shortNames": ["ol"]})
    obj = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Old",
        "metadata": {"name": "a"},
        "spec": {"a": "long text", "b": "x", "ports": [{"n": "x", "p": 1}, {"n": "y", "p": 2}]},
    }
    for side in both:
        await side.define(body)
    report.add("definition", *[(200, await side.settled(name)) for side in both])
    report.add("create", *[await side.send(Verb.CREATE, items, body=obj) for side in both])

    async def change(title: str, spec: Any) -> None:
        answers = []
        for side in both:
            content = {"spec": spec}
            more = {"content_type": PatchType.MERGE}
            answers.append(await side.send(Verb.PATCH, CUSTOM_RESOURCE_DEFINITIONS, name, content, **more))
        report.add(title, *answers)

    await change("another group", {"group": "x.kruise.io"})
    await change("another kind", {"names": {"kind": "Young"}})
    await change("another scope", {"scope": "Cluster"})
    await change("another plural", {"names": {"plural": "youngs"}})
    await change("without its storage version", {"versions": [version(after, "v2")]})
    await change("a new schema", {"versions": [version(after)]})
    for side in both:
        await side.served(items)

    async def step(title: str, verb: Verb, body: Any = None, **more: Any) -> None:
        report.add(title, *[await side.send(verb, items, "a", body, **more) for side in both])

    async def patch(title: str, body: Any) -> None:
        await step(title, Verb.PATCH, body, content_type=PatchType.MERGE)

    await step("read", Verb.GET)
    report.add("list", *[await side.send(Verb.LIST, items) for side in both])
    await patch("a label", {"metadata": {"labels": {"x": "y"}}})
    await patch("another field", {"spec": {"c": "other"}})
    await patch("the field that was wrong", {"spec": {"a": "also too long"}})
    await patch("an element of a map that was wrong", {"spec": {"ports": [{"n": "x", "p": 1}, {"n": "y", "p": 3}]}})
    await patch("an element of a map put right", {"spec": {"ports": [{"n": "x", "p": 1}, {"n": "y", "p": 30}]}})
    await patch("put right", {"spec": {"a": "ok"}})
    await change("short names", {"names": {"shortNames": ["od"]}})
    report.add("definition, later", *[(200, await side.settled(name)) for side in both])
    report.finish()


async def test_versions(both: tuple[Side, Side]) -> None:
    """Several versions without a webhook: each shows what it knows, and the stored one fills in its defaults."""
    report = Report("versions")
    stored = with_spec({"a": STRING, "only1": STRING, "d1": {"type": "string", "default": "one"}})
    other = with_spec({"a": STRING, "only2": STRING, "d2": {"type": "string", "default": "two"}})
    body = definition(
        "manies",
        "Many",
        version(other, "v1beta1", storage=False, deprecated=True),
        version(stored, "v1", subresources={"status": {}}),
        version(with_spec({"a": STRING}), "v1alpha1", storage=False, served=False),
    )
    kinds = {
        name: Resource(GROUP, name, "manies", "Many", True, PartialObject) for name in ("v1", "v1beta1", "v1alpha1")
    }
    for side in both:
        await side.define(body)

    async def step(title: str, verb: Verb, at: str, name: str = "", body: Any = None, **more: Any) -> None:
        report.add(f"{title} in {at}", *[await side.send(verb, kinds[at], name, body, **more) for side in both])

    def many(at: str, name: str) -> Any:
        spec = {"a": "x", "only1": "1", "only2": "2"}
        return {"apiVersion": f"{GROUP}/{at}", "kind": "Many", "metadata": {"name": name}, "spec": spec, "status": {}}

    for at in ("v1", "v1beta1", "v1alpha1"):
        await step("create", Verb.CREATE, at, body=many(at, f"from-{at}"))
    for at in ("v1", "v1beta1", "v1alpha1"):
        for name in ("from-v1", "from-v1beta1"):
            await step(f"read {name}", Verb.GET, at, name)
        await step("list", Verb.LIST, at)
        await step("status", Verb.GET, at, "from-v1", subresource="status")
    for at in ("v1", "v1beta1"):
        change = {"spec": {"a": f"by {at}", "only2": "kept?"}}
        await step("patch", Verb.PATCH, at, "from-v1", change, content_type=PatchType.MERGE)
        await step("delete collection", Verb.LIST, at, query=(("labelSelector", "x"),))
    await step("delete", Verb.DELETE, "v1beta1", "from-v1")
    await step("gone", Verb.GET, "v1", "from-v1")
    report.finish()


async def test_tables(both: tuple[Side, Side]) -> None:
    """Printer columns: their headers, and what stands in the cells."""
    real, ours = both
    for side in both:
        await side.define(RICH)
    spec = {
        "ratio": 0.5,
        "flag": True,
        "when": "2020-01-01T00:00:00Z",
        "containers": [{"name": "x"}, {"name": "y"}],
        "labels": {"b": "<&>", "a": "1"},
        "partition": "50%",
    }
    objects = [
        {**rich(spec, name="full"), "metadata": {"name": "full", "labels": {"crr.apps.kruise.io/node-name": "n"}}},
        rich({}, name="least"),
        rich({"when": "2020-01-01T00:00:00Z", "ratio": 1}, name="some"),
    ]
    status = {"status": {"conditions": [{"type": "Old", "status": "x"}, {"type": "Ready", "status": "True"}]}}
    for side in both:
        for body in objects:
            code, answer = await side.send(Verb.CREATE, RICHES, body=body)
            assert code == 201, answer
        more = {"content_type": PatchType.MERGE, "subresource": "status"}
        await side.send(Verb.PATCH, RICHES, "full", status, **more)
    _, table = await real.send(Verb.LIST, RICHES, accept=TABLE)
    _, plain = await ours.send(Verb.LIST, RICHES)
    assert isinstance(ours.transport, InProcessTransport)
    kind = ours.transport.core.registry.find(GROUP, "v1", "riches")
    assert kind is not None
    shown = kind.table_columns
    headers = [
        {
            "name": column.name,
            "type": column.type,
            "format": column.format,
            "description": column.description,
            "priority": column.priority,
        }
        for column in shown
    ]
    assert headers == table["columnDefinitions"]
    now = datetime.now(UTC)
    cells = [[column.cell(item, now) for column in shown] for item in plain["items"]]
    theirs = [row["cells"] for row in table["rows"]]
    assert _without_seconds(cells) == _without_seconds(theirs)
    print(f"\ncells: {sum(map(len, cells))} compared, all equal; columns: {len(COLUMNS)}")


def _without_seconds(rows: list[list[Any]]) -> list[list[Any]]:
    return [
        ["<age>" if isinstance(cell, str) and re.fullmatch(r"\d+s", cell) else cell for cell in row] for row in rows
    ]


async def test_names_and_deletion(both: tuple[Side, Side]) -> None:
    """Names that are taken, and definitions that go: first their objects, then themselves."""
    report = Report("names and deletion")
    plain = with_spec({"a": STRING})
    first = definition("firsts", "First", version(plain), names={"shortNames": ["fi"], "singular": "first"})
    second = definition("seconds", "Second", version(plain), names={"shortNames": ["fi", "se"], "singular": "firsts"})
    firsts = Resource(GROUP, "v1", "firsts", "First", True, PartialObject)
    seconds = Resource(GROUP, "v1", "seconds", "Second", True, PartialObject)
    report.add("created", *[(201, await side.define(first)) for side in both])
    report.add("established", *[(200, await side.settled(f"firsts.{GROUP}")) for side in both])
    for side in both:
        await side.define(second, wait=False)
    found = [(200, await side.settled(f"seconds.{GROUP}", "NamesAccepted", "False")) for side in both]
    report.add("names taken", *found)
    report.add("not served", *[await side.send(Verb.LIST, seconds) for side in both])
    for name, finalizers in (("a", []), ("b", ["kruise.io/stay"])):
        about = {"name": name, "finalizers": finalizers}
        obj = {"apiVersion": f"{GROUP}/v1", "kind": "First", "metadata": about, "spec": {"a": "x"}}
        report.add(f"object {name}", *[await side.send(Verb.CREATE, firsts, body=obj) for side in both])
    name = f"firsts.{GROUP}"
    await asyncio.sleep(1.1)
    deleted = [await side.send(Verb.DELETE, CUSTOM_RESOURCE_DEFINITIONS, name) for side in both]
    report.add("deleted", *deleted)
    # The real server begins a moment later and keeps looking for those that stay.
    async with asyncio.timeout(30):
        while True:
            code, _ = await both[0].send(Verb.GET, firsts, "a")
            if code == 404:
                break
            await asyncio.sleep(0.2)
    report.add("object without finalizers", *[await side.send(Verb.GET, firsts, "a") for side in both])
    report.add("object with finalizers", *[await side.send(Verb.GET, firsts, "b") for side in both])
    terminating = [await side.send(Verb.GET, CUSTOM_RESOURCE_DEFINITIONS, name) for side in both]
    report.add("definition while objects stay", *terminating)
    obj = {"apiVersion": f"{GROUP}/v1", "kind": "First", "metadata": {"name": "c"}, "spec": {}}
    report.add("create while it goes", *[await side.send(Verb.CREATE, firsts, body=obj) for side in both])
    free = {"metadata": {"finalizers": None}}
    more = {"content_type": PatchType.MERGE}
    report.add("set free", *[await side.send(Verb.PATCH, firsts, "b", free, **more) for side in both])
    for side in both:
        await side.gone(name)
    report.add("not served any more", *[await side.send(Verb.LIST, firsts) for side in both])
    report.add("names free", *[(200, await side.settled(f"seconds.{GROUP}")) for side in both])
    report.finish()


# Conversion by webhook


class Converter:
    """A conversion webhook: `size` in v1 is `text` in v2. Names of objects make it fail in several ways."""

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        review = await request.json()
        asked = review["request"]
        names = {obj["metadata"]["name"] for obj in asked["objects"]}
        response: dict[str, Any] = {"uid": asked["uid"], "result": {"status": "Success"}}
        if "refused" in names:
            response["result"] = {"status": "Failed", "message": "cannot convert that"}
        elif "silent" in names:
            response["result"] = {"status": "Failed"}
        made = [self._convert(obj, asked["desiredAPIVersion"]) for obj in asked["objects"]]
        response["convertedObjects"] = [] if "lost" in names else made
        if "broken" in names:
            return web.Response(status=500, text="out of order")
        return web.json_response({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})

    def _convert(self, obj: Any, version: str) -> Any:
        made = {**obj, "apiVersion": version, "spec": dict(obj.get("spec") or {}), "strange": 1}
        name = obj["metadata"]["name"]
        if version.endswith("/v2") and "size" in made["spec"]:
            made["spec"]["text"] = str(made["spec"].pop("size"))
        elif version.endswith("/v1") and "text" in made["spec"]:
            made["spec"]["size"] = int(made["spec"].pop("text"))
        made["metadata"] = {
            **obj["metadata"],
            "annotations": {"converted": "yes"},
            "finalizers": ["kruise.io/not-kept"],
        }
        if name == "renamed":
            made["metadata"]["name"] = "other"
        if name == "unconverted":
            made["apiVersion"] = obj["apiVersion"]
        return made


async def test_conversion_by_webhook(both: tuple[Side, Side]) -> None:
    """The same webhook serves both; what it does wrong is told in the same words."""
    real, _ = both
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost", "127.0.0.1").configure_cert(context)
    runner = web.ServerRunner(web.Server(Converter().handle), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    url = f"https://127.0.0.1:{runner.addresses[0][1]}/convert"
    caller = HttpsCaller()
    core = ApiCore(native_registry(), clock=RealClock(), storage=MemoryStorage(start_version=1000), seed=1)
    Definitions(core, conversion=WebhookConversion(caller))
    try:
        ours = Side(InProcessTransport(core), real.namespace)
        await _compare_conversions((real, ours), url, base64.b64encode(authority.cert_pem.bytes()).decode())
    finally:
        await caller.close()
        await runner.cleanup()


async def _compare_conversions(both: tuple[Side, Side], url: str, bundle: str) -> None:
    report = Report("conversion by webhook")
    one = with_spec({"size": {"type": "integer", "default": 7}})
    two = with_spec({"text": STRING, "more": {"type": "string", "default": "x"}})
    webhook = {"clientConfig": {"url": url, "caBundle": bundle}, "conversionReviewVersions": ["v1"]}
    body = definition(
        "turns",
        "Turn",
        version(one),
        version(two, "v2", storage=False),
        conversion={"strategy": "Webhook", "webhook": webhook},
    )
    kinds = {name: Resource(GROUP, name, "turns", "Turn", True, PartialObject) for name in ("v1", "v2")}
    for side in both:
        await side.define(body)

    def turn(name: str, at: str = "v1", spec: Any = None) -> Any:
        return {"apiVersion": f"{GROUP}/{at}", "kind": "Turn", "metadata": {"name": name}, "spec": spec or {}}

    async def step(title: str, verb: Verb, at: str, name: str = "", body: Any = None, **more: Any) -> None:
        # A real server converts one by one and words these two for one object; here they may come together.
        text = not title.endswith(("renamed", "unconverted"))
        answers = [await side.send(verb, kinds[at], name, body, **more) for side in both]
        report.add(f"{title} in {at}", *answers, text=text)

    await step("create", Verb.CREATE, "v1", body=turn("a", spec={"size": 3}))
    await step("create the other", Verb.CREATE, "v2", body=turn("b", "v2", {"text": "5", "more": "lost"}))
    await step("create with defaults", Verb.CREATE, "v2", body=turn("c", "v2"))
    for at in ("v1", "v2"):
        for name in ("a", "b", "c"):
            await step(f"read {name}", Verb.GET, at, name)
        await step("list", Verb.LIST, at)
    await step("patch", Verb.PATCH, "v2", "a", {"spec": {"text": "9"}}, content_type=PatchType.MERGE)
    await step("read the patched", Verb.GET, "v1", "a")
    for name in ("refused", "silent", "lost", "renamed", "unconverted"):
        await step(f"create {name}", Verb.CREATE, "v2", body=turn(name, "v2"))
    await step("delete", Verb.DELETE, "v2", "a")
    for name in ("refused", "silent", "lost", "renamed", "unconverted"):
        await step(f"create {name}", Verb.CREATE, "v1", body=turn(name))
        await step(f"read {name}", Verb.GET, "v2", name)
        await step(f"remove {name}", Verb.DELETE, "v1", name)
    await step("create broken", Verb.CREATE, "v1", body=turn("broken"))
    await step("read broken", Verb.GET, "v2", "broken")
    report.finish()
