"""Server-side apply and `managedFields` of the local API server and of a real one are the same, step by step.

A sequence is a list of writes by several managers. It is played to both servers; after each step the answer (code,
reason, message, causes) and the stored object with its `managedFields` are compared. Uids, versions, addresses and
times are normalised; whether an entry has a time is compared. Further sequences are made at random, from seeds.

The real server runs without controllers, so that nobody but the sequence writes.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import random
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from kruise.api.meta import PartialObject
from kruise.api.native.apps import DEPLOYMENTS
from kruise.api.native.config import CONFIG_MAPS, SERVICES
from kruise.api.native.extensions import CUSTOM_RESOURCE_DEFINITIONS
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.local import fields
from kruise.local.apicore import ApiCore
from kruise.local.crds import Definitions, definition_kind
from kruise.local.inprocess import InProcessTransport
from kruise.local.kinds import native_registry
from kruise.machinery.client import kubeconfig
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.requests import PatchType, Request, Verb
from kruise.machinery.client.transport import Transport
from kruise.machinery.clock import RealClock
from tests.support.realcluster import ControlPlane

Json = dict[str, Any]
GROUP = "apply.kruise.io"
OPEN = Resource(GROUP, "v1", "opens", "Open", True, PartialObject)
TYPED = Resource(GROUP, "v1", "typeds", "Typed", True, PartialObject)

_TEXT = {"type": "string"}
_NAMED = {"type": "object", "properties": {"name": _TEXT, "value": _TEXT, "tags": {"type": "array", "items": _TEXT}}}
_PORT = {
    "type": "object",
    "properties": {
        "port": {"type": "integer"},
        "protocol": {"type": "string", "default": "TCP"},
        "name": _TEXT,
    },
}
_SPEC = {
    "type": "object",
    "properties": {
        "size": {"type": "integer"},
        "text": _TEXT,
        "flag": {"type": "boolean"},
        "either": {"x-kubernetes-int-or-string": True},
        "items": {"type": "array", "items": {**_NAMED, "required": ["name"]}, "x-kubernetes-list-type": "map"}
        | {"x-kubernetes-list-map-keys": ["name"]},
        "ports": {"type": "array", "items": {**_PORT, "required": ["port"]}, "x-kubernetes-list-type": "map"}
        | {"x-kubernetes-list-map-keys": ["port", "protocol"]},
        "tags": {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set"},
        "order": {"type": "array", "items": _TEXT},
        "whole": {"type": "object", "additionalProperties": _TEXT, "x-kubernetes-map-type": "atomic"},
        "options": {"type": "object", "additionalProperties": _TEXT},
        "nested": {
            "type": "object",
            "properties": {"a": _TEXT, "b": _TEXT, "deep": {"type": "object"} | {"properties": {"c": _TEXT}}},
        },
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "closed": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": _TEXT, "b": _TEXT}},
    },
}
_CONDITIONS = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
    "items": {"type": "object", "required": ["type"], "properties": {"type": _TEXT, "status": _TEXT}},
}
_STATUS = {"type": "object", "properties": {"phase": _TEXT, "conditions": _CONDITIONS}}
SCHEMAS: dict[Resource[Any], Json] = {
    OPEN: {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    TYPED: {"type": "object", "properties": {"spec": _SPEC, "status": _STATUS}},
}


# The two servers


@pytest.fixture(scope="module")
def quiet() -> Iterator[ControlPlane]:
    """An API server alone, without the admission plugins that add to pods."""
    off = "--disable-admission-plugins=ServiceAccount,DefaultTolerationSeconds,Priority"
    with ControlPlane(controller_manager=False, scheduler=False, apiserver_args=(off,)) as cluster:
        asyncio.run(_define_really(cluster))
        yield cluster


async def _define_really(cluster: ControlPlane) -> None:
    transport = HttpTransport(kubeconfig.load(cluster.kubeconfig))
    try:
        await _define(transport)
        # The types of a definition take part in apply a moment after it is served.
        await asyncio.sleep(1)
    finally:
        await transport.close()


@pytest.fixture
async def real(quiet: ControlPlane) -> AsyncIterator[HttpTransport]:
    transport = HttpTransport(kubeconfig.load(quiet.kubeconfig))
    yield transport
    await transport.close()


@pytest.fixture
def place(quiet: ControlPlane, request: pytest.FixtureRequest) -> str:
    """A fresh namespace."""
    name = f"apply-{abs(hash(request.node.name)) % 10**12}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    quiet.request("POST", "/api/v1/namespaces", body).ok()
    return name


def definition(resource: Resource[Any]) -> Json:
    version = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": SCHEMAS[resource]},
        "subresources": {"status": {}},
    }
    names = {"plural": resource.plural, "kind": resource.kind, "singular": resource.kind.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


async def _define(transport: Transport) -> None:
    for resource in SCHEMAS:
        body = json.dumps(definition(resource)).encode()
        answer = await transport.send(Request(Verb.CREATE, CUSTOM_RESOURCE_DEFINITIONS, body=body))
        assert answer.status == 201, answer.body
    async with asyncio.timeout(30):
        for resource in SCHEMAS:
            while (await transport.send(Request(Verb.LIST, resource, "default"))).status != 200:  # noqa: ASYNC110
                await asyncio.sleep(0.1)


async def local() -> InProcessTransport:
    core = ApiCore(native_registry([definition_kind()]), clock=RealClock(), seed=1)
    fields.install(core)
    Definitions(core)
    transport = InProcessTransport(core, managed_fields=True)
    await _define(transport)
    return transport


# Steps


@dataclasses.dataclass(frozen=True)
class Step:
    verb: Verb
    resource: Resource[Any]
    name: str
    body: Any
    """What is sent; a function gets the stored object and returns what is sent."""
    manager: str = ""
    content_type: str = "application/json"
    sub: str = ""
    query: tuple[tuple[str, str], ...] = ()

    @property
    def all_query(self) -> tuple[tuple[str, str], ...]:
        return (*((("fieldManager", self.manager),) if self.manager else ()), *self.query)


def apply(manager: str, body: Any, *, force: bool = False, sub: str = "", dry: bool = False, **more: Any) -> Step:
    resource = _RESOURCES[body["kind"]] if isinstance(body, dict) else more.pop("resource")
    name = more.pop("name", None) or body["metadata"]["name"]
    query = (*((("force", "true"),) if force else ()), *((("dryRun", "All"),) if dry else ()))
    return Step(Verb.PATCH, resource, name, body, manager, PatchType.APPLY, sub, query)


def create(manager: str, body: Json) -> Step:
    return Step(Verb.CREATE, _RESOURCES[body["kind"]], body["metadata"]["name"], body, manager)


def put(
    manager: str, resource: Resource[Any], change: Callable[[Json], None], *, sub: str = "", name: str = "a"
) -> Step:
    """Read, change, write back, as clients do that know no patch."""

    def changed(obj: Json) -> Json:
        obj = json.loads(json.dumps(obj))
        change(obj)
        return obj

    return Step(Verb.UPDATE, resource, name, changed, manager, sub=sub)


def merge(manager: str, resource: Resource[Any], patch: Any, *, sub: str = "", name: str = "a") -> Step:
    return Step(Verb.PATCH, resource, name, patch, manager, PatchType.MERGE, sub)


def strategic(manager: str, resource: Resource[Any], patch: Any, *, sub: str = "") -> Step:
    return Step(Verb.PATCH, resource, "a", patch, manager, PatchType.STRATEGIC, sub)


def json_patch(manager: str, resource: Resource[Any], *operations: Json) -> Step:
    return Step(Verb.PATCH, resource, "a", list(operations), manager, PatchType.JSON)


_RESOURCES: dict[str, Resource[Any]] = {
    each.kind: each for each in (CONFIG_MAPS, DEPLOYMENTS, PODS, SERVICES, OPEN, TYPED)
}


# Objects


def cm(data: Any = None, **metadata: Any) -> Json:
    body: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **metadata}}
    return body if data is None else {**body, "data": data}


def deployment(containers: Any = None, *, labels: Any = None, template: Any = None, **spec: Any) -> Json:
    about: Json = {"name": "a", **({"labels": labels} if labels else {})}
    result: Json = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": about}
    if containers is not None:
        spec["selector"] = {"matchLabels": {"app": "a"}}
        spec["template"] = {
            "metadata": {"labels": {"app": "a"}},
            "spec": {"containers": containers, **(template or {})},
        }
    return {**result, "spec": spec} if spec else result


def container(name: str = "main", image: str = "nginx:1", **more: Any) -> Json:
    return {"name": name, "image": image, **more}


def pod(*containers: Any, labels: Any = None, **spec: Any) -> Json:
    about: Json = {"name": "a", **({"labels": labels} if labels else {})}
    result: Json = {"apiVersion": "v1", "kind": "Pod", "metadata": about}
    return {**result, "spec": {"containers": list(containers), **spec}} if containers or spec else result


def service(*ports: Any, **spec: Any) -> Json:
    full = {"ports": list(ports), **spec} if ports else spec
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": full}


def opened(spec: Any = None, **more: Any) -> Json:
    about = {"name": "a", **more.pop("metadata", {})}
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Open",
        "metadata": about,
        **({} if spec is None else {"spec": spec}),
        **more,
    }


def typed(spec: Any = None, **more: Any) -> Json:
    return {**opened(spec, **more), "kind": "Typed"}


def _set(*path: Any, to: Any) -> Callable[[Json], None]:
    def change(obj: Json) -> None:
        at: Any = obj
        for part in path[:-1]:
            at = at.setdefault(part, {}) if isinstance(at, dict) else at[part]
        at[path[-1]] = to

    return change


def _drop(*path: Any) -> Callable[[Json], None]:
    def change(obj: Json) -> None:
        at: Any = obj
        for part in path[:-1]:
            at = at[part]
        del at[path[-1]]

    return change


NGINX = container(ports=[{"containerPort": 80}], env=[{"name": "A", "value": "1"}])
CONDITION = {"type": "X", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2024-01-01T00:00:00Z"}
LAST = "kubectl.kubernetes.io/last-applied-configuration"

SEQUENCES: dict[str, list[Step]] = {
    "config map: one manager": [
        apply("one", cm({"a": "1", "b": "2"})),
        apply("one", cm({"a": "1", "b": "2"})),
        apply("one", cm({"a": "2"})),
        apply("one", cm({"a": "2", "c": "3"}, labels={"x": "y"})),
        apply("one", cm({"c": "3"})),
        apply("one", cm()),
    ],
    "config map: two managers share and leave": [
        apply("one", cm({"a": "1"})),
        apply("two", cm({"a": "1"})),
        apply("two", cm({"b": "1"})),
        apply("one", cm({"b": "1"})),
        apply("two", cm()),
        apply("one", cm()),
    ],
    "config map: conflict, then force": [
        apply("one", cm({"a": "1", "b": "1"})),
        apply("two", cm({"a": "2"})),
        apply("two", cm({"a": "2", "b": "2"})),
        apply("two", cm({"a": "2", "b": "2"}), force=True),
        apply("one", cm({"a": "1"})),
        apply("one", cm({"a": "2"})),
        apply("one", cm({})),
    ],
    "config map: conflicts with three": [
        apply("one", cm({"a": "1", "b": "1"})),
        create("two", cm({"a": "1"})),
        merge("two", CONFIG_MAPS, {"data": {"c": "1"}}),
        apply("three", cm({"d": "1"}, labels={"l": "1"})),
        apply("four", cm({"a": "2", "b": "2", "c": "2", "d": "2"}, labels={"l": "2"})),
        apply("four", cm({"a": "2", "b": "2", "c": "2", "d": "2"}, labels={"l": "2"}), force=True),
    ],
    "config map: an update takes fields": [
        apply("one", cm({"a": "1", "b": "1"}, annotations={"n": "1"})),
        put("two", CONFIG_MAPS, _set("data", "a", to="2")),
        apply("one", cm({"a": "1", "b": "1"}, annotations={"n": "1"})),
        apply("one", cm({"a": "1", "b": "1"}, annotations={"n": "1"}), force=True),
        put("two", CONFIG_MAPS, _drop("data", "b")),
        put("two", CONFIG_MAPS, _drop("data")),
    ],
    "config map: created by others first": [
        create("maker", cm({"a": "1", "b": "1"}, labels={"l": "1"})),
        apply("one", cm({"a": "1"})),
        apply("one", cm({"a": "2"})),
        apply("one", cm({"a": "2"}), force=True),
        apply("one", cm({})),
    ],
    "config map: updates that change nothing": [
        create("maker", cm({"a": "1"})),
        put("two", CONFIG_MAPS, lambda obj: None),
        merge("two", CONFIG_MAPS, {"data": {"a": "1"}}),
        merge("two", CONFIG_MAPS, {"data": {"a": "2"}}),
        merge("maker", CONFIG_MAPS, {"data": {"a": "2"}}),
        merge("maker", CONFIG_MAPS, {"data": {"a": "1"}}),
    ],
    "config map: finalizers are a set, owners a map": [
        apply("one", cm({"a": "1"}, finalizers=["kruise.io/a", "kruise.io/b"])),
        apply("two", cm(finalizers=["kruise.io/b", "kruise.io/c"])),
        apply("one", cm({"a": "1"}, finalizers=["kruise.io/b"])),
        apply("two", cm()),
        apply("one", cm({"a": "1"})),
        apply("one", cm(ownerReferences=[{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u-1"}])),
        apply("two", cm(ownerReferences=[{"apiVersion": "v1", "kind": "ConfigMap", "name": "p", "uid": "u-2"}])),
        apply("one", cm()),
    ],
    "config map: owners named in the request": [
        create("maker", cm({"a": "1"})),
        put("two", CONFIG_MAPS, _set("metadata", "managedFields", to=[])),
        merge("two", CONFIG_MAPS, {"data": {"b": "1"}}),
        apply("one", cm({"a": "1"})),
        apply("one", cm({"a": "1", "b": "2"})),
        apply("one", cm({"a": "1", "b": "2"}), force=True),
    ],
    "config map: owners forgotten by one empty entry": [
        apply("one", cm({"a": "1"})),
        merge("two", CONFIG_MAPS, {"metadata": {"managedFields": [{}]}}),
        apply("two", cm({"a": "2"})),
    ],
    "config map: null for owners says nothing": [
        apply("one", cm({"a": "1"})),
        merge("two", CONFIG_MAPS, {"metadata": {"managedFields": None}, "data": {"b": "1"}}),
        put("two", CONFIG_MAPS, _drop("metadata", "managedFields")),
    ],
    "config map: owners moved by a JSON patch": [
        create("kubectl-client-side-apply", cm({"a": "1", "b": "1"})),
        json_patch(
            "mover",
            CONFIG_MAPS,
            {"op": "replace", "path": "/metadata/managedFields/0/manager", "value": "kubectl"},
            {"op": "replace", "path": "/metadata/managedFields/0/operation", "value": "Apply"},
        ),
        apply("kubectl", cm({"a": "2"})),
        json_patch("mover", CONFIG_MAPS, {"op": "replace", "path": "/metadata/managedFields", "value": [{}]}),
    ],
    "config map: owners that make no sense": [
        create("maker", cm({"a": "1"})),
        merge(
            "two",
            CONFIG_MAPS,
            {"metadata": {"managedFields": [{"manager": "x", "operation": "Dance"}]}, "data": {"b": "1"}},
        ),
    ],
    "config map: created with owners": [
        create(
            "maker",
            cm(
                {"a": "1"},
                managedFields=[
                    {
                        "manager": "old",
                        "operation": "Update",
                        "apiVersion": "v1",
                        "fieldsType": "FieldsV1",
                        "fieldsV1": {"f:data": {"f:a": {}}},
                    }
                ],
            ),
        ),
        merge("two", CONFIG_MAPS, {"data": {"b": "1"}}),
    ],
    "config map: from kubectl's own apply": [
        create(
            "kubectl-client-side-apply",
            cm({"a": "1", "b": "1"}, annotations={LAST: json.dumps(cm({"a": "1", "b": "1"}))}),
        ),
        apply("kubectl", cm({"a": "2"})),
        apply("kubectl", cm({"a": "3", "b": "1"})),
        merge("two", CONFIG_MAPS, {"data": {"b": "9"}}),
        apply("kubectl", cm({"a": "4", "b": "4"})),
        apply("kubectl", cm({"a": "4", "b": "4"}), force=True),
    ],
    "config map: from kubectl's own apply, changed since": [
        create(
            "kubectl-client-side-apply",
            cm({"a": "1", "b": "1"}, annotations={LAST: json.dumps(cm({"a": "1", "b": "1"}))}),
        ),
        merge("two", CONFIG_MAPS, {"data": {"a": "9"}}),
        apply("kubectl", cm({"a": "2", "b": "2"})),
        apply("other", cm({"b": "2"})),
    ],
    "config map: dry runs leave nothing": [
        apply("one", cm({"a": "1"}), dry=True),
        apply("one", cm({"a": "1"})),
        apply("two", cm({"a": "2"}), dry=True),
        apply("two", cm({"b": "2"}), dry=True),
        apply("two", cm({"a": "2"}), dry=True, force=True),
    ],
    "config map: refused applies": [
        apply("", cm({"a": "1"})),
        apply("one", {**cm({"a": "1"}), "apiVersion": "v2"}),
        apply("one", {"kind": "ConfigMap", "metadata": {"name": "a"}}),
        apply("one", cm({"a": "1"}, managedFields=[])),
        apply("one", cm({"a": 1})),
        apply("one", {**cm({"a": "1"}), "dota": {}}),
        apply("one", cm({"a": "1"}), name="b"),
        apply("one", cm({"a": "1"}, uid="nobody")),
        apply("one", cm({"a": "1"}, namespace="elsewhere")),
        apply("one", {**cm({"a": "1"}), "data": ["a"]}),
        apply("x" * 129, cm({"a": "1"})),
        apply("one", cm({"a": "1"}, labels={"l": True})),
        apply("one", cm({"a": "1"}, finalizers=["kruise.io/a", "kruise.io/a"])),
        Step(Verb.PATCH, CONFIG_MAPS, "a", {"data": {}}, "one", PatchType.MERGE, "", (("force", "true"),)),
    ],
    "config map: guards in an apply": [
        apply("one", cm({"a": "1"})),
        apply("one", cm({"a": "2"}, resourceVersion="1")),
        apply("one", cm({"a": "2"}, uid="nobody")),
        apply("one", cm({"a": "2"})),
    ],
    "config map: a name with signs": [
        apply('one <&> "q"', cm({"a.b/c": "1", "d": "<&>"}, annotations={"kruise.io/n": "1"})),
        apply("two", cm({"a.b/c": "2"})),
        merge("three", CONFIG_MAPS, {"metadata": {"annotations": {"kruise.io/n": "2"}}}),
        apply('one <&> "q"', cm({"a.b/c": "1"}, annotations={"kruise.io/n": "3"})),
    ],
    "config map: many updaters": [
        create("u00", cm({"a": "0"})),
        *(merge(f"u{number:02}", CONFIG_MAPS, {"data": {f"k{number}": "1"}}) for number in range(1, 14)),
    ],
    "config map: binary data and immutable": [
        apply("one", {**cm({"a": "1"}), "binaryData": {"b": "AQ=="}, "immutable": False}),
        apply("two", {**cm(), "immutable": False}),
        apply("two", {**cm(), "binaryData": {"b": "Ag=="}}),
        apply("one", cm({"a": "1"})),
    ],
    "deployment: applied and changed": [
        apply("one", deployment([NGINX], replicas=0)),
        apply("one", deployment([NGINX], replicas=0)),
        apply("one", deployment([NGINX])),
        apply("one", deployment([container()], minReadySeconds=3)),
        apply("one", deployment([container()])),
    ],
    "deployment: replicas taken over": [
        apply("one", deployment([NGINX], replicas=1)),
        apply("scaler", deployment(replicas=2)),
        apply("scaler", deployment(replicas=2), force=True),
        apply("one", deployment([NGINX], replicas=1)),
        apply("one", deployment([NGINX])),
        apply("scaler", deployment()),
    ],
    "deployment: replicas left by the applier": [
        apply("one", deployment([NGINX], replicas=3)),
        merge("scaler", DEPLOYMENTS, {"spec": {"replicas": 5}}),
        apply("one", deployment([NGINX], replicas=3)),
        apply("one", deployment([NGINX])),
    ],
    "deployment: two containers, two managers": [
        apply("one", deployment([container()])),
        apply("two", deployment([container("side", "busybox:1")])),
        apply("two", deployment([container("side", "busybox:2", env=[{"name": "X", "value": "1"}])])),
        apply("one", deployment([container(image="nginx:2")])),
        apply("two", deployment([container(image="nginx:3")])),
        apply("two", deployment([container(image="nginx:2")])),
        apply("one", deployment([container("third", "x:1")])),
    ],
    "deployment: env and ports by key": [
        apply("one", deployment([container(env=[{"name": "A", "value": "1"}, {"name": "B", "value": "1"}])])),
        apply("two", deployment([container(env=[{"name": "B", "value": "1"}, {"name": "C", "value": "1"}])])),
        apply("two", deployment([container(env=[{"name": "B", "value": "2"}])])),
        apply("one", deployment([container(env=[{"name": "C", "value": "1"}], ports=[{"containerPort": 80}])])),
        apply("two", deployment([container(ports=[{"containerPort": 80, "protocol": "UDP"}])])),
        apply("one", deployment([container(ports=[{"containerPort": 80, "protocol": "TCP", "name": "web"}])])),
    ],
    "deployment: repeated keys are refused": [
        apply("one", deployment([container(), container()])),
        apply("one", deployment([container(env=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}])])),
        apply("one", deployment([container(ports=[{"containerPort": 80}, {"containerPort": 80, "protocol": "TCP"}])])),
        apply("one", deployment([container(ports=[{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}])])),
    ],
    "deployment: wrong types are refused": [
        apply("one", deployment([container()], replicas="3")),
        apply("one", deployment([container(image=3)])),
        apply("one", deployment([container()], paused="no")),
        apply("one", deployment([container()], foo=1)),
        apply("one", deployment([container(foo="x")])),
        apply("one", deployment({"name": "x"})),
        apply("one", deployment([{"image": "x:1"}])),
        apply("one", deployment([container(env=["A"])])),
    ],
    "deployment: an invalid result is refused": [
        apply("one", deployment(replicas=1)),
        apply("one", deployment([container()])),
        apply("one", deployment()),
    ],
    "deployment: volumes, mounts, tolerations, affinity": [
        apply(
            "one",
            deployment(
                [container(volumeMounts=[{"name": "v", "mountPath": "/v"}, {"name": "v", "mountPath": "/w"}])],
                template={
                    "volumes": [{"name": "v", "emptyDir": {}}],
                    "tolerations": [{"key": "a", "operator": "Exists"}],
                    "nodeSelector": {"disk": "ssd"},
                },
            ),
        ),
        apply("two", deployment([container()], template={"tolerations": [{"key": "b", "operator": "Exists"}]})),
        apply("two", deployment([container(volumeMounts=[{"name": "v", "mountPath": "/v", "readOnly": True}])])),
        apply("two", deployment([container()], template={"nodeSelector": {"disk": "ssd"}})),
        apply("two", deployment([container()], template={"nodeSelector": {"zone": "a"}})),
        apply(
            "one", deployment([container()], template={"volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}]})
        ),
    ],
    "deployment: quantities and probes": [
        apply("one", deployment([container(resources={"limits": {"cpu": "1000m", "memory": "1Gi"}})])),
        apply("one", deployment([container(resources={"limits": {"cpu": "1000m", "memory": "1Gi"}})])),
        apply("two", deployment([container(resources={"limits": {"cpu": "1"}})])),
        apply("two", deployment([container(resources={"requests": {"cpu": "500m"}})])),
        apply("one", deployment([container(readinessProbe={"httpGet": {"path": "/", "port": 80}})])),
        apply("one", deployment([container(readinessProbe={"tcpSocket": {"port": "web"}})])),
    ],
    "deployment: strategy": [
        apply("one", deployment([container()], strategy={"rollingUpdate": {"maxSurge": 1}})),
        apply("two", deployment(strategy={"rollingUpdate": {"maxUnavailable": "10%"}})),
        apply("two", deployment(strategy={"rollingUpdate": {"maxUnavailable": "10%"}}), force=True),
        apply("one", deployment([container()], strategy={"type": "Recreate", "rollingUpdate": None})),
    ],
    "deployment: created, updated, patched": [
        create("maker", deployment([NGINX], replicas=1, labels={"l": "1"})),
        put("two", DEPLOYMENTS, _set("spec", "replicas", to=2)),
        strategic("three", DEPLOYMENTS, {"spec": {"template": {"spec": {"containers": [container(image="nginx:2")]}}}}),
        strategic("three", DEPLOYMENTS, {"spec": {"template": {"spec": {"containers": [container("side", "x:1")]}}}}),
        put("two", DEPLOYMENTS, _drop("spec", "template", "spec", "containers", 1)),
        json_patch("four", DEPLOYMENTS, {"op": "remove", "path": "/spec/template/spec/containers/0/env"}),
    ],
    "deployment: status": [
        create("maker", deployment([container()])),
        merge("controller", DEPLOYMENTS, {"status": {"replicas": 1, "observedGeneration": 1}}, sub="status"),
        merge("controller", DEPLOYMENTS, {"status": {"replicas": 2}, "spec": {"replicas": 7}}, sub="status"),
        merge("controller", DEPLOYMENTS, {"status": {"replicas": 9}, "metadata": {"labels": {"x": "y"}}}),
        merge("controller", DEPLOYMENTS, {"metadata": {"labels": {"x": "z"}, "annotations": {"x": "z"}}}, sub="status"),
        merge(
            "controller",
            DEPLOYMENTS,
            {"status": {"conditions": [{"type": "Available", "status": "True", "reason": "R", "message": "m"}]}},
            sub="status",
        ),
        put("other", DEPLOYMENTS, _set("status", "replicas", to=3), sub="status"),
    ],
    "deployment: scaled": [
        apply("one", deployment([container()], replicas=1)),
        Step(Verb.PATCH, DEPLOYMENTS, "a", {"spec": {"replicas": 3}}, "scaler", PatchType.MERGE, "scale"),
        Step(Verb.PATCH, DEPLOYMENTS, "a", {"spec": {"replicas": 3}}, "scaler", PatchType.MERGE, "scale"),
        Step(Verb.PATCH, DEPLOYMENTS, "a", {"spec": {"replicas": 4}}, "scaler", PatchType.MERGE, "scale"),
        apply("one", deployment([container()], replicas=1)),
        apply("one", deployment([container()], replicas=1), force=True),
    ],
    "deployment: selector is whole": [
        apply("one", deployment([container()])),
        apply("two", {**deployment(), "spec": {"selector": {"matchLabels": {"app": "a"}}}}),
        apply("two", {**deployment(), "spec": {"selector": {"matchLabels": {"app": "a", "b": "c"}}}}),
    ],
    "pod: applied": [
        apply("one", pod(container(), labels={"app": "a"})),
        apply("one", pod(container(image="nginx:2"), labels={"app": "a", "v": "2"})),
        apply("two", pod(labels={"v": "3"})),
        apply("two", pod(labels={"w": "3"})),
        apply("one", pod(container(image="nginx:2"))),
    ],
    "pod: created, then status": [
        create("maker", pod(NGINX, nodeName="n1")),
        strategic(
            "kubelet",
            PODS,
            {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}},
            sub="status",
        ),
        strategic(
            "controller",
            PODS,
            {
                "status": {"conditions": [{"type": "kruise.io/Ready", "status": "True"}]},
                "metadata": {"labels": {"l": "1"}},
            },
            sub="status",
        ),
        strategic("kubelet", PODS, {"status": {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}}, sub="status"),
        strategic("kubelet", PODS, {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}, sub="status"),
        merge("other", PODS, {"spec": {"containers": [{**NGINX, "image": "nginx:2"}]}}),
        apply("applier", {**pod(), "status": {"conditions": [{"type": "Ready", "status": "True"}]}}, sub="status"),
        apply("applier", {**pod(), "status": {"conditions": [{"type": "x/y", "status": "True"}]}}, sub="status"),
        apply("applier", {**pod(), "status": {"conditions": [{"type": "x/z", "status": "True"}]}}, sub="status"),
    ],
    "pod: what others may not change": [
        apply("one", pod(container())),
        apply("two", pod(container("side", "x:1"))),
        apply("two", pod(container(image="nginx:3"))),
        apply("two", pod(container(image="nginx:3")), force=True),
        apply("one", pod(container(image="nginx:3"))),
    ],
    "pod: tolerations and gates": [
        apply(
            "one",
            pod(
                container(), tolerations=[{"key": "a", "operator": "Exists"}], readinessGates=[{"conditionType": "x/y"}]
            ),
        ),
        apply(
            "one",
            pod(
                container(),
                tolerations=[{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}],
                readinessGates=[{"conditionType": "x/y"}],
            ),
        ),
        apply("two", pod(tolerations=[{"key": "a", "operator": "Exists"}])),
    ],
    "pod: status applied where there is none": [
        apply("one", {**pod(), "status": {"phase": "Running"}}, sub="status"),
        apply("one", {**pod(container()), "status": {"phase": "Running"}}),
        apply("one", {**pod(), "status": {"phase": "Running"}}, sub="status"),
        apply("one", {**pod(labels={"x": "y"}), "status": {"phase": "Running"}}, sub="status"),
        apply("one", pod(), sub="status"),
    ],
    "service: ports by port and protocol": [
        apply("one", service({"port": 80, "name": "web"}, selector={"app": "a"})),
        apply("two", service({"port": 443, "name": "tls"})),
        apply("two", service({"port": 80, "protocol": "UDP", "name": "dns"})),
        apply("one", service({"port": 80, "name": "web", "targetPort": 8080}, selector={"app": "a"})),
        apply("one", service({"port": 81, "name": "web"}, selector={"app": "a"})),
        apply("two", service({"port": 81, "name": "web"})),
    ],
    "service: selector is whole": [
        apply("one", service({"port": 80}, selector={"app": "a"})),
        apply("two", service(selector={"app": "a"})),
        apply("two", service(selector={"app": "a", "b": "c"})),
        apply("two", service(selector={"app": "a", "b": "c"}), force=True),
        apply("one", service({"port": 80})),
    ],
    "service: created and changed": [
        create("maker", service({"port": 80, "name": "web"})),
        strategic("two", SERVICES, {"spec": {"ports": [{"port": 81, "name": "more"}]}}),
        merge("three", SERVICES, {"spec": {"sessionAffinity": "ClientIP"}}),
        merge("four", SERVICES, {"status": {"conditions": [CONDITION]}, "spec": {"type": "NodePort"}}, sub="status"),
        apply("five", service({"port": 80, "name": "web", "targetPort": 80})),
        apply("five", service({"port": 80, "name": "web", "targetPort": 81})),
    ],
    "open: lists are whole, maps are not": [
        apply("one", opened({"a": {"b": "1", "c": [1, 2]}, "l": [{"name": "x"}]})),
        apply("two", opened({"a": {"d": "1"}})),
        apply("two", opened({"a": {"c": [1]}})),
        apply("two", opened({"a": {"c": [1, 2]}})),
        apply("one", opened({"a": {"b": "1"}})),
        apply("two", opened({})),
        apply("one", opened()),
    ],
    "open: types change": [
        apply("one", opened({"a": "text", "b": {"c": 1}})),
        apply("one", opened({"a": {"x": 1}, "b": "text"})),
        apply("two", opened({"a": ["x"]})),
        apply("two", opened({"a": ["x"]}), force=True),
        merge("three", OPEN, {"spec": {"a": 1, "b": {"c": {"d": 1}}}}),
        apply("one", opened({"b": {"c": {"d": 2}}})),
    ],
    "open: empty and null": [
        apply("one", opened({"a": {}, "b": [], "c": None, "d": ""})),
        apply("one", opened({"a": {"x": "1"}, "b": ["1"]})),
        apply("one", opened({"a": {}, "b": []})),
        apply("two", opened({"a": {}})),
        apply("one", opened({})),
    ],
    "open: created, updated, patched": [
        create("maker", opened({"a": {"b": "1", "c": [1]}})),
        put("two", OPEN, _set("spec", "a", "b", to="2")),
        merge("three", OPEN, {"spec": {"a": {"c": [1, 2]}, "n": {"m": "1"}}}),
        json_patch("four", OPEN, {"op": "add", "path": "/spec/a/e", "value": {"f": "1"}}),
        merge("two", OPEN, {"spec": {"a": None}}),
        merge("two", OPEN, {"status": {"phase": "x"}}),
        merge("two", OPEN, {"status": {"phase": "x"}, "spec": {"z": 1}}, sub="status"),
    ],
    "open: status and labels": [
        apply("one", opened({"a": 1}, status={"phase": "x"})),
        apply("controller", opened(status={"phase": "x"}), sub="status"),
        apply("controller", opened({"b": 1}, status={"phase": "y", "n": 1}), sub="status"),
        apply("controller", opened(metadata={"labels": {"x": "y"}}, status={"phase": "y"}), sub="status"),
        apply("one", opened({"a": 1}, metadata={"labels": {"x": "z"}})),
        merge("two", OPEN, {"status": {"phase": "z"}, "metadata": {"labels": {"q": "r"}}}, sub="status"),
    ],
    "typed: elements by name": [
        apply("one", typed({"items": [{"name": "x", "value": "1"}, {"name": "y"}]})),
        apply("two", typed({"items": [{"name": "z"}, {"name": "y", "value": "2"}]})),
        apply("two", typed({"items": [{"name": "x", "value": "2"}]})),
        apply("two", typed({"items": [{"name": "x", "tags": ["a"]}]})),
        apply("one", typed({"items": [{"name": "y"}]})),
        apply("two", typed({"items": []})),
        apply("one", typed({})),
    ],
    "typed: order of elements": [
        apply("one", typed({"items": [{"name": "a"}, {"name": "b"}, {"name": "c"}, {"name": "d"}]})),
        apply("two", typed({"items": [{"name": "d"}, {"name": "x"}, {"name": "b"}]})),
        apply("two", typed({"items": [{"name": "y"}, {"name": "b"}, {"name": "x"}, {"name": "d"}, {"name": "e"}]})),
        apply("one", typed({"items": [{"name": "d"}, {"name": "a"}]})),
        apply("two", typed({"items": [{"name": "e"}]})),
    ],
    "typed: keys with a default": [
        apply("one", typed({"ports": [{"port": 1}, {"port": 1, "protocol": "UDP"}]})),
        apply("two", typed({"ports": [{"port": 1, "protocol": "TCP", "name": "x"}]})),
        apply("two", typed({"ports": [{"port": 1, "name": "y"}]})),
        apply("one", typed({"ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]})),
        apply("one", typed({"ports": [{"protocol": "UDP", "port": 1}]})),
    ],
    "typed: sets": [
        apply("one", typed({"tags": ["a", "b"]})),
        apply("two", typed({"tags": ["c", "b"]})),
        apply("one", typed({"tags": ["b"]})),
        apply("two", typed({"tags": ["c"]})),
        apply("one", typed({"tags": ["b", "b"]})),
        put("three", TYPED, _set("spec", "tags", to=["c", "x"])),
        apply("one", typed({"tags": []})),
        apply("two", typed({})),
    ],
    "typed: whole lists and maps": [
        apply("one", typed({"order": ["a", "b"], "whole": {"a": "1"}, "closed": {"a": "1"}})),
        apply("two", typed({"order": ["a", "b"], "whole": {"a": "1"}})),
        apply("two", typed({"order": ["a"], "whole": {"b": "1"}, "closed": {"b": "1"}})),
        apply("two", typed({"order": ["a"], "whole": {"b": "1"}, "closed": {"b": "1"}}), force=True),
        apply("one", typed({})),
        apply("two", typed({})),
    ],
    "typed: structs and maps": [
        apply("one", typed({"nested": {"a": "1", "deep": {"c": "1"}}, "options": {"x": "1"}, "size": 1})),
        apply("two", typed({"nested": {"b": "1"}, "options": {"y": "1"}})),
        apply("one", typed({"nested": {"a": "1"}, "options": {}})),
        apply("two", typed({"nested": {"deep": {}}})),
        apply("one", typed({"size": 2})),
        apply("one", typed({})),
    ],
    "typed: parts of any type": [
        apply("one", typed({"any": {"a": {"b": [1]}, "c": "x"}, "either": 1})),
        apply("two", typed({"any": {"a": {"d": 1}}, "either": "50%"})),
        apply("two", typed({"any": {"a": {"d": 1}}, "either": "50%"}), force=True),
        apply("one", typed({"any": {"a": {}}})),
    ],
    "typed: refused": [
        apply("one", typed({"foo": 1})),
        apply("one", typed({"size": "1"})),
        apply("one", typed({"tags": "x"})),
        apply("one", typed({"items": [{"value": "1"}]})),
        apply("one", typed({"items": [{"name": "x"}, {"name": "x"}], "tags": ["a", "a"]})),
        apply("one", typed({"nested": "x"})),
        apply("one", typed({"flag": "true", "text": 1})),
        apply("one", typed({"ports": [None]})),
        apply("one", typed({"tags": [None]})),
    ],
    "typed: updates and patches": [
        create("maker", typed({"items": [{"name": "x", "value": "1"}], "tags": ["a"], "size": 1})),
        merge("two", TYPED, {"spec": {"items": [{"name": "x", "value": "2"}, {"name": "y"}]}}),
        put("three", TYPED, _set("spec", "items", to=[{"name": "y"}])),
        json_patch("four", TYPED, {"op": "add", "path": "/spec/tags/-", "value": "b"}),
        merge("two", TYPED, {"spec": {"size": None, "nested": {"a": "1"}}}),
        apply("five", typed({"items": [{"name": "y", "value": "1"}]})),
        merge("two", TYPED, {"spec": {"items": None}}),
    ],
    "typed: status conditions": [
        apply("one", typed({"size": 1})),
        apply("controller", typed(status={"conditions": [{"type": "A", "status": "True"}]}), sub="status"),
        apply("other", typed(status={"conditions": [{"type": "B", "status": "True"}]}), sub="status"),
        apply("other", typed(status={"conditions": [{"type": "A", "status": "False"}]}), sub="status"),
        apply("controller", typed(status={"phase": "x"}), sub="status"),
        merge("kubelet", TYPED, {"status": {"phase": "y"}, "spec": {"size": 3}}, sub="status"),
        apply("one", typed({"size": 1}, status={"phase": "y"})),
    ],
    "typed: three managers": [
        apply("one", typed({"size": 1, "text": "a", "tags": ["x"]})),
        apply("two", typed({"size": 1, "text": "a", "tags": ["x"]})),
        apply("three", typed({"size": 2, "text": "b"})),
        apply("three", typed({"size": 2, "text": "b"}), force=True),
        apply("one", typed({"text": "b"})),
        apply("two", typed({})),
        apply("three", typed({})),
        apply("one", typed({})),
    ],
    "typed: an update, then an apply of the same": [
        create("maker", typed({"size": 1, "items": [{"name": "x"}]})),
        apply("maker", typed({"size": 1, "items": [{"name": "x"}]})),
        apply("maker", typed({"size": 2})),
        apply("maker", typed({"size": 2}), force=True),
        apply("maker", typed({})),
    ],
}


# Playing


def normalised(obj: Any) -> Any:
    """An object without what cannot be the same, its entries in an order that does not depend on the second."""
    if not isinstance(obj, dict) or "metadata" not in obj:
        return obj
    obj = json.loads(json.dumps(obj))
    about = obj["metadata"]
    for name in ("uid", "resourceVersion", "creationTimestamp", "namespace"):
        if name in about:
            about[name] = f"<{name}>"
    for entry in about.get("managedFields", ()):
        if "time" in entry:
            entry["time"] = "<time>"
    if "managedFields" in about:
        about["managedFields"].sort(key=lambda entry: json.dumps(entry, sort_keys=True))
    for name in ("clusterIP", "clusterIPs"):
        if name in (obj.get("spec") or {}) and obj.get("kind") == "Service":
            obj["spec"][name] = f"<{name}>"
    return obj


def outcome(code: int, answer: Any) -> Any:
    if code < 400:
        return code, normalised(answer)
    causes = (answer.get("details") or {}).get("causes") or []
    # Some kinds check their metadata twice.
    ordered = sorted({json.dumps(cause, sort_keys=True) for cause in causes})
    # Go looks at the fields of a custom object in no order.
    message = answer.get("message") if len(ordered) < 2 or answer.get("reason") != "Invalid" else "<several>"
    return code, answer.get("reason"), message, ordered


async def play(transport: Transport, namespace: str, steps: list[Step]) -> list[Any]:
    """The answer and the stored object after each step."""
    results: list[Any] = []
    versions: dict[str, int] = {}

    async def stored(step: Step) -> tuple[int, Any]:
        answer = await transport.send(Request(Verb.GET, step.resource, namespace, step.name))
        return answer.status, json.loads(answer.body)

    for step in steps:
        body = step.body
        if callable(body):
            body = body((await stored(step))[1])
        name = "" if step.verb is Verb.CREATE else step.name
        answer = await transport.send(
            Request(
                step.verb,
                step.resource,
                namespace,
                name,
                step.sub,
                query=step.all_query,
                body=json.dumps(body).encode(),
                content_type=step.content_type,
            )
        )
        code, obj = await stored(step)
        # Versions are numbered as they come, so that a write that changes nothing is seen.
        version = obj.get("metadata", {}).get("resourceVersion", "") if code == 200 else ""
        number = versions.setdefault(version, len(versions))
        decoded = json.loads(answer.body)
        said = outcome(answer.status, decoded)
        results.append({"answer": said, "stored": outcome(code, obj), "version": number})
    return results


def differences(title: str, steps: list[Step], theirs: list[Any], ours: list[Any]) -> list[str]:
    found = []
    for number, (step, their, our) in enumerate(zip(steps, theirs, ours, strict=True)):
        for part in ("answer", "stored", "version"):
            their_text = json.dumps(their[part], sort_keys=True, indent=1)
            our_text = json.dumps(our[part], sort_keys=True, indent=1)
            if their_text != our_text:
                found.append(f"{title!r}, step {number} ({step}): {part}\nreal {their_text}\nours {our_text}")
    return found


SMOKE = {"config map: conflict, then force", "deployment: replicas taken over", "typed: elements by name"}


@pytest.mark.parametrize(
    "title", [pytest.param(title, marks=[pytest.mark.smoke] if title in SMOKE else []) for title in SEQUENCES]
)
async def test_same_owners(title: str, real: HttpTransport, place: str) -> None:
    """Each sequence gives the same answers, objects and owners on both sides."""
    steps = SEQUENCES[title]
    theirs, ours = await play(real, place, steps), await play(await local(), place, steps)
    found = differences(title, steps, theirs, ours)
    assert not found, "\n".join(found)


# At random


def _some(rng: random.Random, choices: dict[str, Callable[[], Any]], most: int = 4) -> Json:
    """A few members, each with a value of its own."""
    names = rng.sample(sorted(choices), rng.randint(0, min(most, len(choices))))
    return {name: choices[name]() for name in names}


def _random_typed(rng: random.Random) -> Json:
    def word() -> str:
        return rng.choice(("1", "2", "<&>"))

    def named() -> list[Json]:
        names = rng.sample(("x", "y", "z", "w"), rng.randint(0, 3))
        extra: dict[str, Callable[[], Any]] = {"value": word, "tags": lambda: [word()]}
        return [{"name": name, **_some(rng, extra)} for name in names]

    def ports() -> list[Json]:
        pairs = rng.sample([(port, protocol) for port in (1, 2, 10) for protocol in ("", "TCP", "UDP")], 2)
        made = [{"port": port, **({"protocol": protocol} if protocol else {})} for port, protocol in pairs]
        return [{**port, **_some(rng, {"name": word})} for port in made]

    def strange() -> Any:
        return rng.choice((1, "x", [1], {"b": 1}, {"b": {"c": [1]}, "d": "x"}, {}))

    choices: dict[str, Callable[[], Any]] = {
        "size": lambda: rng.randint(1, 3),
        "text": word,
        "flag": lambda: rng.random() < 0.5,
        "either": lambda: rng.choice((1, "1")),
        "items": named,
        "ports": ports,
        "tags": lambda: rng.sample(("a", "b", "c"), rng.randint(0, 3)),
        "order": lambda: rng.sample(("a", "b"), rng.randint(0, 2)),
        "whole": lambda: _some(rng, {"a": word, "b": word}),
        "options": lambda: _some(rng, {"a": word, "b": word, "c": word}),
        "nested": lambda: _some(rng, {"a": word, "b": word, "deep": lambda: _some(rng, {"c": word})}),
        "any": lambda: _some(rng, {"a": strange, "b": strange}),
        "closed": lambda: _some(rng, {"a": word, "b": word}),
    }
    return typed(_some(rng, choices, 5))


def _random_open(rng: random.Random) -> Json:
    def strange() -> Any:
        return rng.choice((1, "x", True, [1], [], [{"n": 1}], {"b": 1}, {"b": {"c": [1]}, "d": "x"}, {}))

    return opened(_some(rng, {"a": strange, "b": strange, "c": strange}))


def _random_config_map(rng: random.Random) -> Json:
    def word() -> str:
        return rng.choice(("1", "2"))

    metadata: dict[str, Callable[[], Any]] = {
        "labels": lambda: _some(rng, {"l": word, "m": word}),
        "annotations": lambda: _some(rng, {"n": word, "o": word}),
        "finalizers": lambda: rng.sample(("kruise.io/a", "kruise.io/b", "kruise.io/c"), rng.randint(0, 3)),
    }
    return cm(_some(rng, {"a": word, "b": word, "c": word}), **_some(rng, metadata, 2))


def _random_container(rng: random.Random, name: str) -> Json:
    def env() -> list[Json]:
        return [{"name": key, "value": rng.choice(("1", "2"))} for key in rng.sample("ABC", rng.randint(0, 2))]

    def ports() -> list[Json]:
        pairs = rng.sample([(80, "TCP"), (80, "UDP"), (81, "TCP")], rng.randint(0, 2))
        return [{"containerPort": port, "protocol": protocol} for port, protocol in pairs]

    more: dict[str, Callable[[], Any]] = {
        "env": env,
        "ports": ports,
        "command": lambda: rng.choice((["a"], ["a", "b"])),
        "resources": lambda: {
            "limits": _some(rng, {"cpu": lambda: rng.choice(("1", "1000m")), "memory": lambda: "1Gi"})
        },
        "imagePullPolicy": lambda: rng.choice(("Always", "Never")),
        "livenessProbe": lambda: {"tcpSocket": {"port": rng.choice((80, "web"))}},
        "securityContext": lambda: _some(rng, {"runAsUser": lambda: 1, "privileged": lambda: True}),
    }
    return container(name, rng.choice(("nginx:1", "nginx:2")), **_some(rng, more))


def _random_deployment(rng: random.Random) -> Json:
    def strategy() -> Json:
        return {"rollingUpdate": _some(rng, {"maxSurge": lambda: rng.choice((1, "30%")), "maxUnavailable": lambda: 1})}

    spec: dict[str, Callable[[], Any]] = {
        "replicas": lambda: rng.randint(0, 2),
        "minReadySeconds": lambda: rng.randint(0, 2),
        "strategy": strategy,
        "paused": lambda: True,
    }
    template: dict[str, Callable[[], Any]] = {
        "tolerations": lambda: [{"key": rng.choice("ab"), "operator": "Exists"}],
        "nodeSelector": lambda: {"disk": rng.choice(("ssd", "hdd"))},
        "volumes": lambda: [{"name": name, "emptyDir": {}} for name in rng.sample("vw", rng.randint(0, 2))],
        "imagePullSecrets": lambda: [{"name": rng.choice("st")}],
        "hostAliases": lambda: [{"ip": rng.choice(("1.1.1.1", "2.2.2.2")), "hostnames": ["x"]}],
    }
    names = rng.sample(("main", "side", "third"), rng.randint(1, 2))
    containers = [_random_container(rng, name) for name in names]
    return deployment(
        containers, template=_some(rng, template, 3), labels={"l": rng.choice("12")}, **_some(rng, spec, 3)
    )


def _random_service(rng: random.Random) -> Json:
    pairs = rng.sample([(port, protocol) for port in (80, 443, 53) for protocol in ("TCP", "UDP")], rng.randint(1, 3))
    ports = [{"port": port, "protocol": protocol, "name": f"{protocol.lower()}-{port}"} for port, protocol in pairs]
    for port in ports:
        port |= _some(rng, {"targetPort": lambda: rng.choice((8080, "web")), "appProtocol": lambda: "x"})
    more: dict[str, Callable[[], Any]] = {
        "selector": lambda: {"app": rng.choice("ab")},
        "sessionAffinity": lambda: rng.choice(("None", "ClientIP")),
        "publishNotReadyAddresses": lambda: True,
    }
    return service(*ports, **_some(rng, more))


def _random_pod(rng: random.Random) -> Json:
    labels = _some(rng, {"l": lambda: rng.choice("12"), "m": lambda: rng.choice("12"), "n": lambda: "1"})
    spec = [container(image=rng.choice(("nginx:1", "nginx:2")))] if rng.random() < 0.7 else []
    return pod(*spec, labels=labels)


MAKERS: tuple[Callable[[random.Random], Json], ...] = (
    _random_typed,
    _random_typed,
    _random_open,
    _random_config_map,
    _random_deployment,
    _random_service,
    _random_pod,
)


def random_sequence(seed: int) -> list[Step]:
    rng = random.Random(seed)
    make = MAKERS[seed % len(MAKERS)]
    first = make(rng)
    resource = _RESOURCES[first["kind"]]
    steps = [apply("one", first) if rng.random() < 0.6 else create("maker", first)]
    for _ in range(rng.randint(5, 9)):
        manager = rng.choice(("one", "two", "maker"))
        body = make(rng)
        kind = rng.random()
        if kind < 0.65:
            steps.append(apply(manager, body, force=rng.random() < 0.35, dry=rng.random() < 0.05))
        elif kind < 0.8 or resource is PODS:
            changes = {name: body[name] for name in ("data", "spec") if name in body}
            changes["metadata"] = {name: value for name, value in body["metadata"].items() if name != "name"}
            if resource is PODS:
                changes.pop("spec", None)
            patch = merge if resource in (OPEN, TYPED) or rng.random() < 0.5 else strategic
            steps.append(patch(manager, resource, changes))
        else:
            steps.append(put(manager, resource, _replaced_by(body)))
        if resource in (TYPED, PODS) and rng.random() < 0.25:
            conditions = [{"type": name, "status": rng.choice(("True", "False"))} for name in rng.sample("ABC", 2)]
            said = {**(typed() if resource is TYPED else pod()), "status": {"conditions": conditions}}
            steps.append(apply(manager, said, sub="status", force=rng.random() < 0.5))
    return steps


def _replaced_by(body: Json) -> Callable[[Json], None]:
    def change(obj: Json) -> None:
        for name in ("data", "spec"):
            if name in body and obj.get("kind") not in ("Deployment", "Service"):
                obj[name] = body[name]
        if obj.get("kind") == "Deployment":
            obj["spec"]["template"]["spec"]["containers"] = body["spec"]["template"]["spec"]["containers"]
            obj["spec"]["replicas"] = body["spec"].get("replicas", 1)
        if obj.get("kind") == "Service":
            obj["spec"]["ports"] = body["spec"]["ports"]
        for name in ("labels", "annotations", "finalizers"):
            if name in body["metadata"]:
                obj["metadata"][name] = body["metadata"][name]

    return change


RANDOM_SEQUENCES = 84


async def test_same_owners_at_random(real: HttpTransport, place: str, quiet: ControlPlane) -> None:
    """Sequences that nobody thought of."""
    found: list[str] = []
    steps_played = refused = 0
    for seed in range(RANDOM_SEQUENCES):
        steps = random_sequence(seed)
        namespace = f"{place}-{seed}"
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        quiet.request("POST", "/api/v1/namespaces", body).ok()
        theirs, ours = await play(real, namespace, steps), await play(await local(), namespace, steps)
        found.extend(differences(f"seed {seed}", steps, theirs, ours)[:1])
        steps_played += len(steps)
        refused += sum(result["answer"][0] >= 400 for result in theirs)
    print(f"{RANDOM_SEQUENCES} random sequences, {steps_played} steps of which {refused} refused, {len(found)} differ")
    assert not found, "\n".join(found)
