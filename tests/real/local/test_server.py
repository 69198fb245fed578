"""The local server and a real one answer the same HTTP requests in the same way.

Requests are sent as they are, in order, to both; compared are the code, the content type, the warnings and the body,
after uids, versions, times and ages were replaced. Where the answers differ on purpose, the case says why (`KNOWN`
lists the reasons); a difference that has gone is an error, too.
"""

from __future__ import annotations

import asyncio
import dataclasses
import io
import json
import re
import ssl
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import yaml

from kruise.api.meta import PartialObject
from kruise.api.resource import Resource
from kruise.local import fields
from kruise.local.apicore import ApiCore, KindDescription, Registry, custom_kind
from kruise.local.apicore.kinds import Column
from kruise.local.kinds import NATIVE_KINDS, admitting
from kruise.local.kinds.columns import age
from kruise.local.server import LocalServer, make_identity
from kruise.local.server.identity import client_context
from kruise.machinery.clock import RealClock
from tests.support.realcluster import ControlPlane

WIDGETS = Resource("server.kruise.io", "v1", "widgets", "Widget", True, PartialObject)
WIDGET_KIND = custom_kind(
    WIDGETS,
    short_names=("wd",),
    categories=("toys",),
    singular="widget",
    columns=(
        Column(name="Size", type="integer", description="How big", cell=lambda obj, now: obj["spec"].get("size")),
        Column(name="Age", type="date", cell=age),
    ),
)
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.server.kruise.io"},
    "spec": {
        "group": "server.kruise.io",
        "scope": "Namespaced",
        "names": {
            "plural": "widgets",
            "singular": "widget",
            "kind": "Widget",
            "listKind": "WidgetList",
            "shortNames": ["wd"],
            "categories": ["toys"],
        },
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {"name": "Size", "type": "integer", "description": "How big", "jsonPath": ".spec.size"},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


@dataclasses.dataclass(frozen=True)
class Case:
    method: str
    path: str
    body: Any = None
    accept: str | None = None
    sent_as: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    login: bool = True
    text: bool = True
    """Whether messages must be equal, too: some of Go's own texts are not worth repeating."""
    known: str = ""
    """Why the answers differ on purpose."""

    def __str__(self) -> str:
        accept = f" as {self.accept}" if self.accept else ""
        return f"{self.method} {self.path}{accept}"


TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIALS = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
KUBECTL_TABLE = f"{TABLE},application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
KUBECTL_DISCOVERY = (
    f"{DISCOVERY},application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)
PROTOBUF = "application/vnd.kubernetes.protobuf"
YAML = "application/yaml"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
NS = "/api/v1/namespaces/{ns}"
CMS = f"{NS}/configmaps"
WDS = "/apis/server.kruise.io/v1/namespaces/{ns}/widgets"

NO_BINARY_ANSWERS = "the binary form is read, not written"
NO_RULES = "the local cluster has no rules about who may do what: who is not known is not let in at all"
OLD_ETCD = "the etcd of the test cluster is too old for the watch that begins with a list; the local server has it"
LEFT_OUT = {
    "proxy": "nothing listens in the local cluster's pods, so that there is nothing to pass requests on to",
    "description": "the long texts of table columns, which no client shows",
    "storageVersionHash": "a hash of the way in which etcd holds objects",
}
"""Parts of documents that are not compared, and why."""


def cm(name: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **more}, "data": {"a": "1"}}


def pod(name: str) -> dict[str, Any]:
    containers = [{"name": "main", "image": "nginx:1"}, {"name": "side", "image": "nginx:2"}]
    spec = {"containers": containers, "schedulerName": "nobody", "automountServiceAccountToken": False}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def widget(name: str, size: int = 1) -> dict[str, Any]:
    about = {"apiVersion": "server.kruise.io/v1", "kind": "Widget"}
    return {**about, "metadata": {"name": name}, "spec": {"size": size}}


def get(path: str, accept: str | None = None, **more: Any) -> Case:
    return Case("GET", path, accept=accept, **more)


def post(path: str, body: Any, **more: Any) -> Case:
    return Case("POST", path, body, **more)


DISCOVERY_CASES = [
    get("/api"),
    get("/apis"),
    get("/api/v1"),
    get("/api/v1/"),
    get("/apis/apps"),
    get("/apis/apps/v1"),
    get("/apis/batch/v1"),
    get("/apis/coordination.k8s.io/v1"),
    get("/apis/storage.k8s.io/v1"),
    get("/apis/apiextensions.k8s.io/v1"),
    get("/apis/authentication.k8s.io/v1"),
    get("/apis/authorization.k8s.io/v1"),
    get("/apis/server.kruise.io"),
    get("/apis/server.kruise.io/v1"),
    get("/api", KUBECTL_DISCOVERY),
    get("/apis", KUBECTL_DISCOVERY),
    get("/apis", DISCOVERY.replace("v=v2", "v=v2beta1"), text=False),
    get("/apis/apps", KUBECTL_DISCOVERY),
    get("/apis", "text/plain", text=False),
    get("/apis/apps/v1", YAML),
    get("/api/v2"),
    get("/apis/apps/v2"),
    get("/apis/nowhere.io"),
    get("/apis/nowhere.io/v1"),
    get("/apis/server.kruise.io/v2"),
    get("/nowhere"),
    get("/api//v1/namespaces"),
    get("/version"),
    get("/healthz"),
    get("/livez/ping"),
    get("/readyz"),
    Case("POST", "/version"),
    Case("POST", "/api"),
    Case("DELETE", "/apis/apps/v1"),
]

OBJECT_CASES = [
    post(CMS, cm("a", labels={"x": "1"})),
    post(CMS, cm("b", labels={"x": "2"})),
    post(CMS, "metadata:\n  name: c\n  labels: {x: '2'}\ndata:\n  when: 2020-01-01\n  yes: 'no'\n", sent_as=YAML),
    post(CMS, {"metadata": {"name": "d"}}, sent_as=""),
    post(CMS, "metadata: [", sent_as=YAML, text=False),
    post(CMS, cm("e"), sent_as="text/plain"),
    post(CMS, "nonsense", sent_as=PROTOBUF),
    post(CMS, "{nonsense", text=False),
    post(CMS, {"padding": "x" * 3 * 1024 * 1024}),
    get(f"{CMS}/a"),
    get(f"{CMS}/a", YAML),
    get(f"{CMS}/a", "*/*"),
    get(f"{CMS}/a", ""),
    get(f"{CMS}/a", "application/*", text=False),
    get(f"{CMS}/a", "text/html, */*;q=0.1"),
    get(f"{CMS}/a", "application/json;q=0.5, application/yaml"),
    get(f"{CMS}/a", f"{PROTOBUF},application/json", known=NO_BINARY_ANSWERS),
    get(f"{CMS}/a", PROTOBUF, known=NO_BINARY_ANSWERS),
    get(f"{CMS}/a?pretty=true"),
    get(f"{CMS}/a", TABLE),
    get(f"{CMS}/a", KUBECTL_TABLE),
    get(f"{CMS}/a", TABLE.replace("v=v1", "v=v1beta1")),
    get(f"{CMS}/a", TABLE.replace("v=v1", "v=v2"), text=False),
    get(f"{CMS}/a?includeObject=None", TABLE),
    get(f"{CMS}/a?includeObject=Object", TABLE),
    get(f"{CMS}/a?includeObject=Bogus", TABLE),
    get(f"{CMS}/a", PARTIAL),
    get(f"{CMS}/a", PARTIALS),
    get(f"{CMS}/a", "application/json;as=Nonsense;v=v1;g=meta.k8s.io", text=False),
    get(f"{CMS}/a?watch=true"),
    get(f"{CMS}/missing"),
    get(f"{CMS}/missing", YAML),
    get(f"{CMS}/missing", TABLE),
    get(f"{CMS}/a/b"),
    get(f"{CMS}/a/b/c"),
    get(f"{CMS}/"),
    get(f"{CMS}/%61"),
    get(CMS),
    get(CMS, TABLE),
    get(CMS, f"{TABLE.replace('json', 'yaml')}"),
    get(f"{CMS}?includeObject=Object", TABLE),
    get(CMS, PARTIALS),
    get(CMS, PARTIAL),
    get(f"{CMS}?limit=1", TABLE),
    get(f"{CMS}?limit=2"),
    get(f"{CMS}?limit=x"),
    get(f"{CMS}?continue=nonsense!"),
    get(f"{CMS}?labelSelector=x%3D2"),
    get(f"{CMS}?labelSelector=x+in+(1,3),y!%3D2", PARTIALS),
    get(f"{CMS}?labelSelector=x+in"),
    get(f"{CMS}?labelSelector=x%3D%3D%3D2"),
    get(f"{CMS}?fieldSelector=metadata.name%3Db"),
    get(f"{CMS}?fieldSelector=data.a%3Db"),
    get(f"{CMS}?fieldSelector=nonsense"),
    get(f"{CMS}?resourceVersion=words"),
    get(f"{CMS}?resourceVersionMatch=Exact"),
    get(f"{CMS}?sendInitialEvents=true"),
    get("/api/v1/configmaps/a"),
    post("/api/v1/configmaps", cm("z")),
    get(f"{NS}/nodes"),
    get(f"{NS}/nonsense"),
    get(f"{NS}/status"),
    get("/api/v1/nonsense"),
    get("/apis/apps/v1/nonsense"),
    get("/apis/nowhere.io/v1/nonsense"),
    get("/api/v1/nodes", TABLE),
    Case("PUT", CMS, {}),
    Case("PATCH", CMS, {}, sent_as=MERGE),
    post(f"{CMS}/a", {}),
    Case("OPTIONS", CMS),
    Case("HEAD", CMS),
    Case("DELETE", "/api/v1/namespaces"),
    Case("DELETE", f"{NS}/status"),
    Case("PATCH", f"{CMS}/a", {}),
    Case("PATCH", f"{CMS}/a", {}, sent_as=""),
    Case("PATCH", f"{CMS}/a", {"data": {"b": "2"}}, sent_as=MERGE),
    Case("PATCH", f"{CMS}/a", {"data": {"b": "3"}}, sent_as=STRATEGIC, accept=TABLE),
    Case("PATCH", f"{CMS}/a", [{"op": "remove", "path": "/data/b"}], sent_as=JSON_PATCH, accept=YAML),
    Case("PUT", f"{CMS}/a", {**cm("a", labels={"x": "1"}), "data": {"n": "1"}}),
    post(f"{CMS}?dryRun=All", cm("dry"), accept=TABLE),
    post(f"{CMS}?dryRun=Some", cm("dry")),
    post(f"{CMS}?fieldValidation=Bogus", cm("dry")),
    post(f"{CMS}?fieldValidation=Strict&dryRun=All", cm("dry")),
    post(f"{CMS}?fieldValidation=Strict", '{"metadata":{"name":"s","odd":1},"data":{},"spec":{"x":1},"data":{}}'),
    post(f"{CMS}?dryRun=All", '{"metadata":{"name":"s","odd":1},"data":{},"spec":{"x":1},"data":{}}'),
    post(f"{CMS}?dryRun=All&fieldValidation=Ignore", '{"metadata":{"name":"s","odd":1},"spec":{"x":1}}'),
    Case("PUT", f"{CMS}/a?fieldValidation=Strict", {**cm("a"), "odd": 1}),
    Case("PATCH", f"{CMS}/a?fieldValidation=Strict", {"odd": {"x": 1}}, sent_as=MERGE, text=False),
    Case("PATCH", f"{CMS}/a?fieldValidation=Strict", {"odd": {"x": 1}, "data": None}, sent_as=STRATEGIC, text=False),
    Case(
        "PATCH",
        f"{CMS}/a?fieldValidation=Strict",
        [{"op": "add", "path": "/odd", "value": {"x": 1}}],
        sent_as=JSON_PATCH,
        text=False,
    ),
    Case("PATCH", f"{CMS}/a?fieldValidation=Warn&dryRun=All", {"odd": {"x": 1}}, sent_as=MERGE),
    Case("PATCH", f"{CMS}/a?fieldValidation=Bogus", {"odd": {"x": 1}}, sent_as=MERGE),
    get(f"{CMS}/a", headers=(("Impersonate-User", "jane"), ("Impersonate-Group", "system:masters"))),
    get(CMS, headers=(("Impersonate-User", "jane"),), known=NO_RULES),
    get(CMS, headers=(("Impersonate-Group", "system:masters"),), text=False),
    Case("DELETE", f"{CMS}?labelSelector=x+in"),
    Case("DELETE", f"{CMS}?labelSelector=x%3D2", accept=TABLE),
    Case("DELETE", f"{CMS}/a", {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}),
    Case("DELETE", f"{CMS}/d", "propagationPolicy: Orphan\n", sent_as=YAML),
    Case("DELETE", f"{CMS}/a"),
    Case("DELETE", f"{CMS}/b", {}, sent_as="text/plain"),
]

POD_CASES = [
    post(f"{NS}/pods", pod("p")),
    get(f"{NS}/pods", TABLE),
    get(f"{NS}/pods/p", TABLE),
    get(f"{NS}/pods/p", PARTIAL),
    get(f"{NS}/pods/p/log"),
    get(f"{NS}/pods/p/log?container=nope"),
    get(f"{NS}/pods/p/log?container=main"),
    get(f"{NS}/pods/p/log?container=main&tailLines=-1"),
    get(f"{NS}/pods/p/log?container=main&limitBytes=0"),
    get(f"{NS}/pods/p/log?container=main&sinceSeconds=1&sinceTime=2020-01-01T00:00:00Z", text=False),
    get(f"{NS}/pods/p/log?container=main&tailLines=x"),
    get(f"{NS}/pods/missing/log"),
    get(f"{NS}/pods/missing/exec"),
    Case("PUT", f"{NS}/pods/p/log", {}),
    Case("DELETE", f"{NS}/pods/p/status"),
    Case("DELETE", f"{NS}/pods/p", {"gracePeriodSeconds": 0}),
]

CUSTOM_CASES = [
    post(WDS, widget("w")),
    post(WDS, widget("v"), sent_as="text/plain"),
    get(f"{WDS}/w", TABLE),
    get(WDS, TABLE),
    get(WDS, PARTIALS),
    get(WDS, PARTIAL, text=False),
    get(f"{WDS}/w", "text/plain", text=False),
    get("/apis/server.kruise.io/v1/widgets"),
    get("/apis/server.kruise.io/v1/widgets/w"),
    get("/apis/server.kruise.io/v1/nonsense"),
    get(f"{WDS}/w/nonsense"),
    Case("PATCH", f"{WDS}/w", {"spec": {"size": 2}}, sent_as=STRATEGIC),
    Case("PATCH", f"{WDS}/w", {"spec": {"size": 2}}, sent_as=MERGE),
    Case("PUT", WDS, {}),
    Case("DELETE", WDS),
    get(f"{WDS}/w"),
]

ACCESS_CASES = [
    get("/version", login=False),
    get("/healthz", login=False),
    get("/api", login=False, known=NO_RULES),
    get(CMS, login=False, known=NO_RULES),
    get("/api", login=False, headers=(("Authorization", "Bearer nonsense"),)),
    get(CMS, login=False, headers=(("Authorization", "Bearer nonsense"),)),
    get("/version", login=False, headers=(("Authorization", "Bearer nonsense"),)),
    get(CMS, login=False, headers=(("Authorization", "Basic bm9uc2Vuc2U="),), known=NO_RULES),
    post(
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}},
        },
    ),
    get("/apis/authentication.k8s.io/v1/tokenreviews"),
    post(
        "/apis/authentication.k8s.io/v1/tokenreviews",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "x"}},
    ),
    post(f"{NS}/serviceaccounts/nobody/token", {"spec": {}}),
    post(f"{NS}/serviceaccounts/default/token", {"spec": {"expirationSeconds": 10}}),
    get(f"{NS}/serviceaccounts/default/token"),
]

# From the cache: without a version the test cluster, whose etcd is old, waits for its cache in vain now and then.
CACHED = "timeoutSeconds=1&resourceVersion=0"
WATCHED = f"{CACHED}&labelSelector=watched"
INITIAL = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
WATCH_CASES = [
    post(CMS, cm("a", labels={"watched": "yes"})),
    get(f"{CMS}?watch=true&{WATCHED}"),
    get(f"{CMS}?watch=banana&{WATCHED}"),
    get(f"{CMS}?watch=0&{WATCHED}"),
    get(f"{CMS}?watch=1&{WATCHED}", TABLE),
    get(f"{CMS}?watch=1&{WATCHED}&includeObject=None", TABLE),
    get(f"{CMS}?watch=1&{WATCHED}", PARTIAL),
    get(f"{CMS}?watch=1&{WATCHED}", PARTIALS),
    get(f"{CMS}?watch=1&{WATCHED}", YAML, text=False),
    get(f"{CMS}?watch=1&{WATCHED}", "text/plain", text=False),
    get(f"{CMS}?watch=1&{CACHED}&fieldSelector=metadata.name%3Da"),
    # A watch from version 1 is left out: what a real server answers depends on when its cache of the kind began.
    get(f"{CMS}?watch=1&timeoutSeconds=1&resourceVersion=words"),
    get(f"{CMS}?watch=1&{WATCHED}&sendInitialEvents=true"),
    get(f"{CMS}?watch=1&{WATCHED}&{INITIAL}", known=OLD_ETCD),
    get(f"{CMS}?watch=1&labelSelector=x+in"),
    get(f"{CMS}?watch=1&timeoutSeconds=x"),
    get(f"/api/v1/watch/namespaces/{{ns}}/configmaps/a?{CACHED}"),
    get(f"/api/v1/watch/namespaces/{{ns}}/configmaps?{WATCHED}"),
    Case("DELETE", f"{CMS}/a"),
]

SUITES = {
    "discovery": DISCOVERY_CASES,
    "objects": OBJECT_CASES,
    "pods": POD_CASES,
    "custom kinds": CUSTOM_CASES,
    "access": ACCESS_CASES,
    "watches": WATCH_CASES,
}
KNOWN = {case.known for cases in SUITES.values() for case in cases if case.known}


@dataclasses.dataclass(frozen=True)
class Answer:
    code: int
    content_type: str
    warnings: tuple[str, ...]
    body: Any


class Side:
    """One of the two servers."""

    def __init__(self, url: str, admin: ssl.SSLContext, stranger: ssl.SSLContext, namespace: str) -> None:
        self.url = url
        self.namespace = namespace
        self._admin = admin
        self._stranger = stranger
        self._session = aiohttp.ClientSession(
            skip_auto_headers=("Accept", "Content-Type", "User-Agent"),
            # After a body that is too large a server closes: the next request must not take that connection.
            connector=aiohttp.TCPConnector(force_close=True),
        )

    async def send(self, case: Case) -> Answer:
        headers = [("User-Agent", "test/1"), *case.headers]
        if case.accept is not None:
            headers.append(("Accept", case.accept))
        body = case.body
        if body is not None:
            body = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            if case.sent_as:
                headers.append(("Content-Type", case.sent_as))
        path = case.path.replace("{ns}", self.namespace)
        context = self._admin if case.login else self._stranger
        url = aiohttp.client.URL(self.url + path, encoded=True)
        try:
            async with self._session.request(
                case.method, url, data=None if body is None else io.BytesIO(body), headers=headers, ssl=context
            ) as response:
                raw = await response.read()
                warnings = tuple(response.headers.getall("Warning", ()))
                content_type = response.headers.get("Content-Type", "")
                return Answer(response.status, content_type, warnings, _decoded(raw, response))
        except aiohttp.ClientError as error:
            raise AssertionError(f"{case} to {self.url}: {error}") from error

    async def close(self) -> None:
        await self._session.close()


def _decoded(raw: bytes, response: aiohttp.ClientResponse) -> Any:
    kind = response.content_type
    if kind == "application/json":
        lines = raw.splitlines()
        try:
            return json.loads(raw) if raw else ""
        except json.JSONDecodeError:
            return [json.loads(line) for line in lines]
    if kind == YAML:
        return yaml.safe_load(raw)
    return raw.decode(errors="replace")


TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
AGE = re.compile(r"\d+s")
BUILD = ("gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform")
ADDED_BY_CONTROLLERS = ("kube-root-ca.crt",)
EMPTY_WHEN_OMITTED = ("creationTimestamp",)


class Normaliser:
    """Replaces what is different by nature, and leaves out what the local server has not been given."""

    def __init__(self, namespace: str, kinds: set[str], groups: set[str]) -> None:
        self._namespace = namespace
        self._kinds = kinds
        self._groups = groups

    def __call__(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return self._object(value)
        if isinstance(value, list):
            found = [self(item) for item in value if not self._is_left_out(item, key)]
            return sorted(found, key=str) if key == "paths" else found
        if not isinstance(value, str):
            return value
        text = TIME.sub("<time>", UID.sub("<uid>", value.replace(self._namespace, "<ns>")))
        text = re.sub(r"current: \d+", "current: <version>", text)
        return "<age>" if AGE.fullmatch(text) else re.sub(r"127\.0\.0\.1:\d+", "<address>", text)

    def _object(self, value: dict[str, Any]) -> dict[str, Any]:
        result = {}
        if "format" in value and "priority" in value:
            value = {**value, "description": ""}
        for name, item in value.items():
            if name in ("managedFields", "storageVersionHash", *BUILD) or (name in EMPTY_WHEN_OMITTED and item is None):
                continue
            if name in ("resourceVersion", "continue") and item:
                item = "<version>"
            result[name] = self(item, name)
        if result.get("subresources") == []:
            del result["subresources"]
        return result

    def _is_left_out(self, item: Any, key: str) -> bool:
        if not isinstance(item, dict):
            return False
        if key == "groups" or (key == "items" and "versions" in item):
            name = item.get("name") or item["metadata"].get("name", "")
            return bool(name) and name not in self._groups
        if key == "resources":
            return (item.get("name") or item.get("resource")) not in self._kinds
        if key == "subresources":
            return item["subresource"] in LEFT_OUT
        about = item.get("metadata") or (item.get("object") or {}).get("metadata") or {}
        return about.get("name") in ADDED_BY_CONTROLLERS


@pytest.fixture
async def sides(cluster: ControlPlane, namespace: str) -> AsyncIterator[tuple[Side, Side, ApiCore]]:
    clock = RealClock()
    core = ApiCore(Registry((*NATIVE_KINDS, WIDGET_KIND)), clock=clock, require_namespaces=True)
    fields.install(core)
    admitting.install(core)
    identity = make_identity(clock.now())
    server = LocalServer(core, certificates=identity)
    await server.start()
    stranger = ssl.create_default_context(cafile=str(cluster.ca_file))
    real = Side(cluster.url, cluster.ssl_context(), stranger, namespace)
    ours = Side(server.url, client_context(identity), client_context(identity, admin=False), namespace)
    cluster.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
    await _established(cluster)
    try:
        await ours.send(post("/api/v1/namespaces", {"metadata": {"name": namespace}}))
        await ours.send(post(f"{NS}/serviceaccounts", {"metadata": {"name": "default"}}))
        # Controllers make it in a real cluster; it counts in pages.
        await ours.send(post(CMS, cm("kube-root-ca.crt")))
        yield real, ours, core
    finally:
        await real.close()
        await ours.close()
        await server.stop()


async def _established(cluster: ControlPlane) -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.server.kruise.io"
    for _ in range(100):
        conditions = cluster.request("GET", path).ok().get("status", {}).get("conditions") or []
        is_established = any(item["type"] == "Established" and item["status"] == "True" for item in conditions)
        if is_established and cluster.request("GET", "/apis/server.kruise.io/v1").status == 200:
            return
        await asyncio.sleep(0.1)
    raise AssertionError("the definition was not established within 10 s")


@pytest.mark.parametrize(
    "suite",
    [pytest.param(name, marks=pytest.mark.smoke) if name in ("discovery", "objects") else name for name in SUITES],
)
async def test_answers_are_equal(suite: str, sides: tuple[Side, Side, ApiCore]) -> None:
    real, ours, core = sides
    normalise = Normaliser(real.namespace, _entries(core), _groups(core))
    equal, differing, unexpected = 0, [], []
    for case in SUITES[suite]:
        theirs, mine = await asyncio.gather(real.send(case), ours.send(case))
        problem = _difference(case, normalise, theirs, mine)
        if not problem:
            equal += 1
            if case.known:
                unexpected.append(f"{case}: known difference has gone: {case.known}")
        elif case.known:
            differing.append(f"{case}: {case.known}")
        else:
            unexpected.append(f"{case}\n{problem}")
    print(f"\nnot compared: {LEFT_OUT}" if suite == "discovery" else "")
    print(f"{suite}: {len(SUITES[suite])} requests, {equal} answered alike, {len(differing)} known differences")
    for line in differing:
        print(f"  {line}")
    assert not unexpected, "\n\n".join(unexpected)


def test_there_are_enough_cases() -> None:
    assert sum(len(cases) for cases in SUITES.values()) >= 150
    assert len(KNOWN) <= 5


def _entries(core: ApiCore) -> set[str]:
    """The resources that the local server has, as discovery names them."""
    names = {f"{kind.plural}{part}" for kind in core.registry for part in ("", *(_parts(kind)))}
    reviews = ("selfsubjectreviews", "tokenreviews", "localsubjectaccessreviews", "selfsubjectaccessreviews")
    return names | {*reviews, "selfsubjectrulesreviews", "subjectaccessreviews"}


def _parts(kind: KindDescription) -> list[str]:
    parts = ("attach", "binding", "ephemeralcontainers", "eviction", "exec", "finalize", "log", "portforward")
    return [f"/{part}" for part in (*parts, "resize", "scale", "status", "token")]


def _groups(core: ApiCore) -> set[str]:
    return {kind.group for kind in core.registry} | {"authentication.k8s.io", "authorization.k8s.io"}


def _difference(case: Case, normalise: Normaliser, theirs: Answer, mine: Answer) -> str:
    if (theirs.code, theirs.content_type) != (mine.code, mine.content_type):
        return f"  real: {theirs.code} {theirs.content_type} {_short(theirs.body)}\n" + (
            f"  ours: {mine.code} {mine.content_type} {_short(mine.body)}"
        )
    if theirs.warnings != mine.warnings:
        return f"  real: warnings {theirs.warnings}\n  ours: warnings {mine.warnings}"
    first, second = normalise(theirs.body), normalise(mine.body)
    if not case.text and isinstance(first, str) and isinstance(second, str):
        return ""
    if not case.text and isinstance(first, dict) and isinstance(second, dict):
        first.pop("message", None)
        second.pop("message", None)
        first.pop("details", None)
        second.pop("details", None)
    return _compare(first, second, "")


def _compare(first: Any, second: Any, path: str) -> str:
    if first == second:
        return ""
    if isinstance(first, dict) and isinstance(second, dict):
        found = [_compare(first.get(n, "<none>"), second.get(n, "<none>"), f"{path}.{n}") for n in {**first, **second}]
        return "\n".join(item for item in found if item)
    if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        found = [_compare(a, b, f"{path}[{n}]") for n, (a, b) in enumerate(zip(first, second, strict=True))]
        return "\n".join(item for item in found if item)
    return f"  {path}\n    real: {_short(first)}\n    ours: {_short(second)}"


def _short(value: Any) -> str:
    return json.dumps(value, sort_keys=True)[:700]
