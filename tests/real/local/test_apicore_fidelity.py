"""The in-process API core and a real API server answer the same requests in the same way.

A scenario is a list of requests that is sent to both. Answers are compared in code, reason, message, causes and object,
after uids, versions and times were replaced by the order in which they first occurred: equal answers also mean that the
same requests made a new version and the same ones did not.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from kruise.api.meta import PartialObject
from kruise.api.native import apps, config, events, extensions, nodes, storage
from kruise.api.native.config import CONFIG_MAPS
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.local.apicore import ApiCore, MemoryStorage, custom_kind
from kruise.local.inprocess import InProcessTransport
from kruise.local.kinds import native_registry
from kruise.machinery.client import kubeconfig
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.requests import PatchType, Query, Request, Verb
from kruise.machinery.client.transport import Transport
from kruise.machinery.clock import RealClock
from tests.support.realcluster import ControlPlane

WIDGETS = Resource("fidelity.kruise.io", "v1", "widgets", "Widget", True, PartialObject)
GADGETS = Resource("fidelity.kruise.io", "v1", "gadgets", "Gadget", True, PartialObject)


@dataclasses.dataclass(frozen=True)
class Step:
    """One request. `$uid` and `$version` in name, query and body stand for those of the last object that was answered,
    `$first` for the version of the first one."""

    verb: Verb
    resource: Resource[Any]
    name: str = ""
    body: Any = None
    subresource: str = ""
    query: Query = ()
    content_type: str = "application/json"
    text: bool = True
    """Whether the message must be equal, too: some of Go's own texts are not worth repeating."""


def create(resource: Resource[Any], body: Any, *query: tuple[str, str], name: str = "", sub: str = "") -> Step:
    return Step(Verb.CREATE, resource, name, body, sub, query)


def get(resource: Resource[Any], name: str, sub: str = "") -> Step:
    return Step(Verb.GET, resource, name, subresource=sub)


def put(resource: Resource[Any], name: str, body: Any, *query: tuple[str, str], sub: str = "") -> Step:
    return Step(Verb.UPDATE, resource, name, body, sub, query)


def merge(resource: Resource[Any], name: str, body: Any, *query: tuple[str, str], sub: str = "") -> Step:
    return Step(Verb.PATCH, resource, name, body, sub, query, PatchType.MERGE)


def json_patch(resource: Resource[Any], name: str, *operations: Any, sub: str = "") -> Step:
    return Step(Verb.PATCH, resource, name, list(operations), sub, (), PatchType.JSON)


def strategic(resource: Resource[Any], name: str, body: Any, sub: str = "") -> Step:
    return Step(Verb.PATCH, resource, name, body, sub, (), PatchType.STRATEGIC)


def delete(resource: Resource[Any], name: str, body: Any = None, *query: tuple[str, str]) -> Step:
    return Step(Verb.DELETE, resource, name, body, "", query)


def listed(resource: Resource[Any], *query: tuple[str, str]) -> Step:
    return Step(Verb.LIST, resource, query=query)


def cm(name: str = "", *, data: Any = None, **metadata: Any) -> dict[str, Any]:
    about = {"name": name, **metadata} if name else metadata
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": data or {"a": "1"}}


def widget(name: str, spec: Any = None, **metadata: Any) -> dict[str, Any]:
    about = {"name": name, **metadata}
    return {"apiVersion": "fidelity.kruise.io/v1", "kind": "Widget", "metadata": about, "spec": spec or {"size": 1}}


def gadget(name: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "fidelity.kruise.io/v1", "kind": "Gadget", "metadata": {"name": name}, **more}


def pod(name: str, *, node: str = "nowhere", finalizers: Any = None, **spec: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "labels": {"app": "x"}}
    if finalizers:
        metadata["finalizers"] = finalizers
    containers = [{"name": "main", "image": "nginx:1"}]
    placed = {"nodeName": node} if node else {"schedulerName": "nobody"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": containers, **placed, **spec},
    }


STAY = "kruise.io/stay"
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "11111111-2222-4333-8444-555555555555"}
# The garbage collector of the real cluster removes objects whose owner does not exist.
ITSELF = {**OWNER, "name": "a", "uid": "$uid"}

SCENARIOS: dict[str, list[Step]] = {
    "create, read, remove": [
        create(CONFIG_MAPS, cm("a", labels={"x": "1"}, annotations={"n": "v"})),
        get(CONFIG_MAPS, "a"),
        create(CONFIG_MAPS, cm("a")),
        get(CONFIG_MAPS, "b"),
        delete(CONFIG_MAPS, "a"),
        delete(CONFIG_MAPS, "a"),
        get(CONFIG_MAPS, "a"),
    ],
    "what only the server writes": [
        create(
            CONFIG_MAPS,
            cm(
                "a",
                uid="mine",
                generation=7,
                creationTimestamp="2001-01-01T00:00:00Z",
                deletionTimestamp="2001-01-01T00:00:00Z",
                deletionGracePeriodSeconds=5,
                selfLink="/x",
            ),
        ),
        put(CONFIG_MAPS, "a", cm("a", creationTimestamp="2001-01-01T00:00:00Z", generation=9)),
        merge(CONFIG_MAPS, "a", {"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z"}}),
        merge(CONFIG_MAPS, "a", {"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}}),
        create(CONFIG_MAPS, cm("b", resourceVersion="1")),
    ],
    "bad objects": [
        create(CONFIG_MAPS, cm("UPPER_case")),
        create(CONFIG_MAPS, cm()),
        create(CONFIG_MAPS, cm("a", namespace="elsewhere")),
        create(CONFIG_MAPS, cm("a", labels={"bad key!": "v"})),
        create(CONFIG_MAPS, cm("a", labels={"k": "not a value!"})),
        create(CONFIG_MAPS, cm("a", annotations={"a/b/c": "v"})),
        create(CONFIG_MAPS, cm("a", annotations={"big": "x" * 262_144})),
        create(CONFIG_MAPS, cm("a", finalizers=["not valid!"])),
        create(CONFIG_MAPS, cm("a", finalizers=["orphan", "foregroundDeletion"])),
        create(CONFIG_MAPS, cm("a", ownerReferences=[{"apiVersion": "v1", "kind": "ConfigMap"}])),
        create(
            CONFIG_MAPS,
            cm("a", ownerReferences=[{**OWNER, "controller": True}, {**OWNER, "name": "p", "controller": True}]),
        ),
        create(CONFIG_MAPS, {**cm("a"), "apiVersion": "v2"}),
        create(CONFIG_MAPS, {**cm("a"), "kind": "ServiceAccount"}),
        dataclasses.replace(create(CONFIG_MAPS, b"{nonsense"), text=False),
        dataclasses.replace(create(CONFIG_MAPS, b"[]"), text=False),
        dataclasses.replace(create(CONFIG_MAPS, cm("a", labels={"k": 1})), text=False),
        create(CONFIG_MAPS, {"metadata": {"name": "no-kind"}, "data": {"a": "1"}}),
        create(CONFIG_MAPS, cm("same-owner", ownerReferences=[OWNER, OWNER])),
    ],
    "generated names": [
        create(CONFIG_MAPS, cm(generateName="gen-")),
        create(CONFIG_MAPS, cm(generateName="x" * 70)),
        create(CONFIG_MAPS, cm("named", generateName="gen-")),
        create(CONFIG_MAPS, cm(generateName="Bad-")),
    ],
    "update": [
        create(CONFIG_MAPS, cm("a")),
        put(CONFIG_MAPS, "a", cm("a", data={"a": "2"})),
        put(CONFIG_MAPS, "a", cm("a", data={"a": "2"})),
        put(CONFIG_MAPS, "a", cm("a", data={"a": "3"}, resourceVersion="$version")),
        put(CONFIG_MAPS, "a", cm("a", data={"a": "4"}, resourceVersion="$first")),
        put(CONFIG_MAPS, "a", cm("a", data={"a": "4"}, resourceVersion="words")),
        put(CONFIG_MAPS, "a", cm("a", data={"a": "5"}, uid="$uid")),
        put(CONFIG_MAPS, "a", cm("a", data={"a": "6"}, uid="other")),
        put(CONFIG_MAPS, "a", cm("b")),
        put(CONFIG_MAPS, "a", cm()),
        put(CONFIG_MAPS, "a", cm("a", namespace="elsewhere")),
        put(CONFIG_MAPS, "missing", cm("missing")),
        put(CONFIG_MAPS, "a", cm("a", labels={"k": "not a value!"})),
        get(CONFIG_MAPS, "a"),
    ],
    "merge patch": [
        create(CONFIG_MAPS, cm("a", labels={"x": "1"})),
        merge(CONFIG_MAPS, "a", {"metadata": {"labels": {"x": None, "y": "2"}}}),
        merge(CONFIG_MAPS, "a", {"metadata": {"labels": {"y": "2"}}}),
        merge(CONFIG_MAPS, "a", {}),
        merge(CONFIG_MAPS, "a", {"metadata": {"uid": "$uid"}, "data": {"a": "2"}}),
        merge(CONFIG_MAPS, "a", {"metadata": {"uid": "other"}, "data": {"a": "3"}}),
        merge(CONFIG_MAPS, "a", {"metadata": {"resourceVersion": "$version"}, "data": {"a": "4"}}),
        merge(CONFIG_MAPS, "a", {"metadata": {"resourceVersion": "$first"}, "data": {"a": "5"}}),
        merge(CONFIG_MAPS, "a", {"metadata": {"name": "b"}}),
        merge(CONFIG_MAPS, "a", {"metadata": {"namespace": "elsewhere"}}),
        merge(CONFIG_MAPS, "missing", {}),
        merge(CONFIG_MAPS, "a", []),
        dataclasses.replace(merge(CONFIG_MAPS, "a", b"{nonsense"), text=False),
        merge(CONFIG_MAPS, "a", {"metadata": {"labels": {"k": "not a value!"}}}),
        merge(CONFIG_MAPS, "a", {"data": None, "metadata": {"labels": None}}),
    ],
    "json patch": [
        create(CONFIG_MAPS, cm("a")),
        json_patch(
            CONFIG_MAPS,
            "a",
            {"op": "test", "path": "/data/a", "value": "1"},
            {"op": "add", "path": "/data/b", "value": "2"},
        ),
        json_patch(
            CONFIG_MAPS,
            "a",
            {"op": "test", "path": "/data/a", "value": "7"},
            {"op": "add", "path": "/data/b", "value": "3"},
        ),
        json_patch(
            CONFIG_MAPS,
            "a",
            {"op": "test", "path": "/metadata/uid", "value": "$uid"},
            {"op": "remove", "path": "/data/b"},
        ),
        json_patch(
            CONFIG_MAPS,
            "a",
            {"op": "test", "path": "/metadata/uid", "value": "other"},
            {"op": "remove", "path": "/data/a"},
        ),
        json_patch(CONFIG_MAPS, "a", {"op": "remove", "path": "/data/missing"}),
        json_patch(CONFIG_MAPS, "a", {"op": "replace", "path": "/metadata/resourceVersion", "value": "$first"}),
        json_patch(CONFIG_MAPS, "a", {"op": "sing", "path": "/data/a"}),
        dataclasses.replace(json_patch(CONFIG_MAPS, "a"), body={"op": "add"}),
        json_patch(CONFIG_MAPS, "a"),
        get(CONFIG_MAPS, "a"),
    ],
    "strategic merge patch": [
        create(CONFIG_MAPS, cm("a", finalizers=["kruise.io/a"])),
        strategic(CONFIG_MAPS, "a", {"metadata": {"finalizers": ["kruise.io/b"]}, "data": {"b": "2"}}),
        strategic(CONFIG_MAPS, "a", {"metadata": {"$deleteFromPrimitiveList/finalizers": ["kruise.io/a"]}}),
        strategic(CONFIG_MAPS, "a", {"metadata": {"ownerReferences": [ITSELF]}}),
        strategic(CONFIG_MAPS, "a", {"metadata": {"ownerReferences": [{"$patch": "delete", "uid": "$uid"}]}}),
        strategic(CONFIG_MAPS, "a", {"metadata": {"uid": "other", "finalizers": []}}),
        merge(CONFIG_MAPS, "a", {"metadata": {"finalizers": None}}),
    ],
    "unknown patch type": [
        create(CONFIG_MAPS, cm("a")),
        Step(Verb.PATCH, CONFIG_MAPS, "a", {}, content_type="application/json", text=False),
    ],
    "preconditions of a delete": [
        create(CONFIG_MAPS, cm("a")),
        delete(CONFIG_MAPS, "a", {"preconditions": {"uid": "other"}}),
        delete(CONFIG_MAPS, "a", {"preconditions": {"resourceVersion": "1"}}),
        delete(CONFIG_MAPS, "a", {"propagationPolicy": "Sideways"}),
        delete(CONFIG_MAPS, "a", {"propagationPolicy": "Orphan", "orphanDependents": True}),
        delete(CONFIG_MAPS, "a", {"dryRun": ["Some"]}),
        delete(CONFIG_MAPS, "a", {"preconditions": {"uid": "$uid", "resourceVersion": "$version"}}),
        get(CONFIG_MAPS, "a"),
    ],
    "finalizers": [
        create(CONFIG_MAPS, cm("a", finalizers=[STAY, "kruise.io/too"])),
        delete(CONFIG_MAPS, "a"),
        delete(CONFIG_MAPS, "a"),
        create(CONFIG_MAPS, cm("a")),
        merge(CONFIG_MAPS, "a", {"metadata": {"finalizers": [STAY, "kruise.io/new"]}}),
        merge(CONFIG_MAPS, "a", {"metadata": {"labels": {"still": "here"}}}),
        merge(CONFIG_MAPS, "a", {"metadata": {"deletionTimestamp": None, "deletionGracePeriodSeconds": None}}),
        merge(CONFIG_MAPS, "a", {"metadata": {"finalizers": [STAY]}}),
        merge(CONFIG_MAPS, "a", {"metadata": {"finalizers": None}}, ("dryRun", "All")),
        merge(CONFIG_MAPS, "a", {"metadata": {"finalizers": None}}),
        get(CONFIG_MAPS, "a"),
    ],
    "propagation": [
        create(CONFIG_MAPS, cm("a", finalizers=[STAY])),
        delete(CONFIG_MAPS, "a", {"propagationPolicy": "Orphan"}),
        create(CONFIG_MAPS, cm("b", finalizers=[STAY])),
        delete(CONFIG_MAPS, "b", None, ("propagationPolicy", "Foreground")),
        create(CONFIG_MAPS, cm("c", finalizers=["foregroundDeletion", STAY])),
        delete(CONFIG_MAPS, "c", {"propagationPolicy": "Background"}),
        create(CONFIG_MAPS, cm("d")),
        delete(CONFIG_MAPS, "d", {"propagationPolicy": "Background"}),
    ],
    "dry run": [
        create(CONFIG_MAPS, cm("a"), ("dryRun", "All")),
        get(CONFIG_MAPS, "a"),
        create(CONFIG_MAPS, cm("a")),
        create(CONFIG_MAPS, cm("a"), ("dryRun", "All")),
        put(CONFIG_MAPS, "a", cm("a", data={"a": "2"}), ("dryRun", "All")),
        merge(CONFIG_MAPS, "a", {"data": {"a": "3"}}, ("dryRun", "All")),
        delete(CONFIG_MAPS, "a", None, ("dryRun", "All")),
        get(CONFIG_MAPS, "a"),
        create(CONFIG_MAPS, cm("b"), ("dryRun", "Some")),
        merge(CONFIG_MAPS, "a", {}, ("dryRun", "Some")),
        put(CONFIG_MAPS, "a", cm("a"), ("dryRun", "Some")),
    ],
    "lists": [
        create(CONFIG_MAPS, cm("b", labels={"list": "1", "n": "b"})),
        create(CONFIG_MAPS, cm("a", labels={"list": "1", "n": "a"})),
        create(CONFIG_MAPS, cm("c", labels={"list": "1"})),
        listed(CONFIG_MAPS, ("labelSelector", "list=1")),
        listed(CONFIG_MAPS, ("labelSelector", "n")),
        listed(CONFIG_MAPS, ("labelSelector", "list=1,n notin (a)")),
        listed(CONFIG_MAPS, ("fieldSelector", "metadata.name=b")),
        listed(CONFIG_MAPS, ("labelSelector", "a==(")),
        listed(CONFIG_MAPS, ("fieldSelector", "spec.x=1")),
        listed(CONFIG_MAPS, ("labelSelector", "list=1"), ("limit", "2")),
        listed(CONFIG_MAPS, ("labelSelector", "list=1"), ("resourceVersionMatch", "Exact")),
        listed(CONFIG_MAPS, ("labelSelector", "list=1"), ("resourceVersionMatch", "Odd"), ("resourceVersion", "1")),
        listed(CONFIG_MAPS, ("labelSelector", "list=1"), ("resourceVersion", "words")),
        listed(CONFIG_MAPS, ("continue", "nonsense!")),
        listed(CONFIG_MAPS, ("continue", "e30")),
        listed(CONFIG_MAPS, ("sendInitialEvents", "true")),
        Step(Verb.DELETE_COLLECTION, CONFIG_MAPS, query=(("labelSelector", "list=1"),)),
        listed(CONFIG_MAPS, ("labelSelector", "list=1")),
    ],
    "pods: grace": [
        create(PODS, pod("a", terminationGracePeriodSeconds=40)),
        delete(PODS, "a"),
        delete(PODS, "a"),
        delete(PODS, "a", {"gracePeriodSeconds": 50}),
        delete(PODS, "a", {"gracePeriodSeconds": 20}),
        merge(PODS, "a", {"metadata": {"labels": {"still": "here"}}}),
        delete(PODS, "a", {"gracePeriodSeconds": 0, "preconditions": {"uid": "$uid"}}),
        get(PODS, "a"),
    ],
    "pods: unscheduled and finished": [
        create(PODS, pod("a", node="")),
        delete(PODS, "a"),
        get(PODS, "a"),
        create(PODS, pod("b")),
        merge(PODS, "b", {"status": {"phase": "Succeeded"}}, sub="status"),
        delete(PODS, "b"),
        get(PODS, "b"),
    ],
    "pods: grace and finalizers": [
        create(PODS, pod("a", finalizers=[STAY])),
        delete(PODS, "a", {"gracePeriodSeconds": 25}),
        delete(PODS, "a", {"gracePeriodSeconds": 0}),
        get(PODS, "a"),
        merge(PODS, "a", {"metadata": {"finalizers": None}}),
        get(PODS, "a"),
        create(PODS, pod("b", finalizers=[STAY])),
        delete(PODS, "b", {"gracePeriodSeconds": 25}),
        merge(PODS, "b", {"metadata": {"finalizers": None}}),
        get(PODS, "b"),
        delete(PODS, "b", None, ("gracePeriodSeconds", "0")),
        get(PODS, "b"),
    ],
    "pods: status": [
        create(PODS, {**pod("a"), "status": {"phase": "Running"}}),
        merge(PODS, "a", {"status": {"phase": "Running"}}),
        merge(
            PODS,
            "a",
            {
                "metadata": {"labels": {"app": "y"}, "annotations": {"n": "v"}, "ownerReferences": [OWNER]},
                "spec": {"nodeName": "other"},
                "status": {"phase": "Running", "podIP": "10.0.0.1"},
            },
            sub="status",
        ),
        strategic(PODS, "a", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, sub="status"),
        strategic(
            PODS,
            "a",
            {"metadata": {"uid": "$uid"}, "status": {"conditions": [{"type": "Mine", "status": "False"}]}},
            sub="status",
        ),
        strategic(PODS, "a", {"metadata": {"uid": "other"}, "status": {"message": "x"}}, sub="status"),
        merge(PODS, "a", {"metadata": {"resourceVersion": "$first"}, "status": {"message": "x"}}, sub="status"),
        get(PODS, "a", "status"),
        get(PODS, "a", "nonsense"),
        merge(PODS, "missing", {}, sub="status"),
    ],
    "pods: image and generation": [
        create(PODS, pod("a")),
        strategic(PODS, "a", {"spec": {"containers": [{"name": "main", "image": "nginx:2"}]}}),
        json_patch(PODS, "a", {"op": "replace", "path": "/spec/containers/0/image", "value": "nginx:3"}),
        merge(PODS, "a", {"metadata": {"annotations": {"only": "metadata"}}}),
    ],
    "pods: eviction and binding": [
        create(PODS, pod("a", node="")),
        create(PODS, {"metadata": {"name": "b"}, "target": {"name": "n"}}, name="a", sub="binding"),
        create(
            PODS,
            {"metadata": {"name": "a", "uid": "other"}, "target": {"kind": "Node", "name": "n"}},
            name="a",
            sub="binding",
        ),
        create(PODS, {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}}, name="a", sub="binding"),
        get(PODS, "a"),
        create(PODS, {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "m"}}, name="a", sub="binding"),
        create(
            PODS,
            {"metadata": {"name": "missing"}, "target": {"kind": "Node", "name": "m"}},
            name="missing",
            sub="binding",
        ),
        create(
            PODS, {"metadata": {"name": "b"}, "apiVersion": "policy/v1", "kind": "Eviction"}, name="a", sub="eviction"
        ),
        create(
            PODS,
            {
                "metadata": {"name": "a"},
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "deleteOptions": {"preconditions": {"uid": "other"}},
            },
            name="a",
            sub="eviction",
        ),
        create(
            PODS, {"metadata": {"name": "a"}, "apiVersion": "policy/v1", "kind": "Eviction"}, name="a", sub="eviction"
        ),
        delete(PODS, "a", {"gracePeriodSeconds": 0}),
        create(
            PODS, {"metadata": {"name": "a"}, "apiVersion": "policy/v1", "kind": "Eviction"}, name="a", sub="eviction"
        ),
    ],
    "pods: field selectors": [
        create(PODS, pod("a", node="n1")),
        create(PODS, pod("b", node="n2")),
        listed(PODS, ("fieldSelector", "spec.nodeName=n1")),
        listed(PODS, ("fieldSelector", "spec.nodeName!=n1,status.phase=Pending")),
        listed(PODS, ("fieldSelector", "spec.odd=n1")),
        delete(PODS, "a", {"gracePeriodSeconds": 0}),
        delete(PODS, "b", {"gracePeriodSeconds": 0}),
    ],
    "custom kind": [
        create(WIDGETS, {**widget("a"), "status": {"ready": 1}}),
        put(WIDGETS, "a", widget("a", {"size": 2})),
        put(WIDGETS, "a", {**widget("a", {"size": 2}, resourceVersion="$version"), "status": {"ready": 9}}),
        put(WIDGETS, "a", widget("a", {"size": 2}, resourceVersion="$version", labels={"only": "metadata"})),
        put(WIDGETS, "a", widget("a", {"size": 3}, resourceVersion="$first")),
        merge(WIDGETS, "a", {"spec": {"size": 4}, "status": {"ready": 9}}),
        merge(
            WIDGETS,
            "a",
            {
                "spec": {"size": 5},
                "status": {"ready": 1},
                "metadata": {"labels": {"x": "1"}, "annotations": {"x": "1"}},
            },
            sub="status",
        ),
        merge(WIDGETS, "a", {"metadata": {"uid": "other"}}, sub="status"),
        merge(WIDGETS, "a", {"metadata": {"uid": "other"}}),
        json_patch(WIDGETS, "a", {"op": "test", "path": "/spec/size", "value": 1}),
        dataclasses.replace(strategic(WIDGETS, "a", {"spec": {"size": 6}}), text=False),
        listed(WIDGETS),
        listed(WIDGETS, ("fieldSelector", "spec.x=1")),
        create(WIDGETS, {**widget("b"), "kind": "Gadget"}),
        create(WIDGETS, {**widget("b"), "apiVersion": "fidelity.kruise.io/v2"}),
        create(WIDGETS, widget("Upper")),
        create(WIDGETS, widget("free", finalizers=["unqualified"])),
        delete(WIDGETS, "a", {"preconditions": {"uid": "other"}}),
        merge(WIDGETS, "a", {"metadata": {"finalizers": [STAY]}}),
        delete(WIDGETS, "a"),
        merge(WIDGETS, "a", {"metadata": {"finalizers": []}}),
        delete(WIDGETS, "a"),
    ],
    "custom kind without status": [
        create(GADGETS, gadget("a", spec={"size": 1}, status={"ready": 1})),
        merge(GADGETS, "a", {"status": {"ready": 2}}),
        merge(GADGETS, "a", {"metadata": {"labels": {"x": "1"}}}),
        merge(GADGETS, "a", {"status": {"ready": 3}}, sub="status"),
        delete(GADGETS, "a"),
    ],
    "unknown kind": [
        listed(Resource("fidelity.kruise.io", "v1", "gizmos", "Gizmo", True, PartialObject)),
        get(Resource("nowhere.kruise.io", "v1", "gizmos", "Gizmo", True, PartialObject), "a"),
    ],
}
SMOKE = frozenset({"create, read, remove", "merge patch", "json patch", "finalizers", "pods: grace", "pods: status"})

# Fields of a real pod that come from admission, defaults and other controllers, which are not the core's business.
_POD_SPEC = ("nodeName", "schedulerName", "terminationGracePeriodSeconds", "containers")
_POD_STATUS = ("phase", "podIP", "message", "conditions")


class Normaliser:
    """Replaces what differs from run to run by the order in which it was first seen."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[str, str]] = {"uid": {}, "version": {}}

    def _ordinal(self, what: str, value: str) -> str:
        known = self._seen[what]
        return known.setdefault(value, f"<{what} {len(known) + 1}>")

    def __call__(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self(item) for item in value]
        if not isinstance(value, dict):
            return value
        result: dict[str, Any] = {}
        for name, item in sorted(value.items()):
            if name in ("managedFields", "continue"):
                continue
            if name == "uid" and isinstance(item, str) and len(item) == 36:
                item = self._ordinal("uid", item)
            elif name == "resourceVersion" and isinstance(item, str):
                item = self._ordinal("version", item)
            elif name.endswith(("Timestamp", "Time")) and isinstance(item, str):
                item = "<time>"
            elif name in ("message", "name") and isinstance(item, str):
                item = self.text(item)
            elif name == "causes":
                item = _once(self(item))
            else:
                item = self(item)
            result[name] = item
        return _generated_name_hidden(result)

    def text(self, text: str) -> str:
        for what, known in self._seen.items():
            for value, shown in known.items():
                text = re.sub(rf"\b{re.escape(value)}\b", shown, text) if what == "uid" or len(value) > 1 else text
        text = re.sub(r"Bad-[a-z0-9]{5}", "Bad-<generated>", text)
        text = re.sub(r"in record \(\w+\)", "in record (<version>)", text)
        return re.sub(r"\d{4}-\d\d-\d\dT[\d:]+Z", "<time>", text)


def _once(causes: list[Any]) -> list[Any]:
    """A real server names one fault as often as rules that overlap see it, which differs from kind to kind."""
    return [cause for position, cause in enumerate(causes) if cause not in causes[:position]]


def _generated_name_hidden(metadata: dict[str, Any]) -> dict[str, Any]:
    base, name = metadata.get("generateName"), metadata.get("name")
    if isinstance(base, str) and isinstance(name, str) and re.fullmatch(re.escape(base[:58]) + "[a-z0-9]{5}", name):
        return {**metadata, "name": f"{base[:58]}<generated>"}
    return metadata


def relevant(answer: Any) -> Any:
    """Of pods, the fields that the core has something to do with."""
    if not isinstance(answer, dict):
        return answer
    if isinstance(answer.get("items"), list):
        return {**answer, "items": [relevant({**item, "kind": item.get("kind", "")}) for item in answer["items"]]}
    if "containers" not in answer.get("spec", {}):
        return answer
    spec = {name: answer["spec"][name] for name in _POD_SPEC if name in answer["spec"]}
    spec["containers"] = [{"name": item["name"], "image": item["image"]} for item in spec["containers"]]
    if spec.get("schedulerName") == "default-scheduler":
        del spec["schedulerName"]
    status = {name: answer["status"][name] for name in _POD_STATUS if name in answer["status"]}
    status["conditions"] = [
        {name: item[name] for name in ("type", "status") if name in item} for item in status.get("conditions", ())
    ]
    return {**answer, "spec": spec, "status": status}


async def play(transport: Transport, namespace: str, steps: list[Step]) -> list[Any]:
    """Send the steps one after the other; returns what is compared."""
    normalise = Normaliser()
    memory = {"uid": "", "version": "", "first": ""}
    played: list[Any] = []
    for step in steps:
        answer = await transport.send(_request(step, namespace, memory))
        body = json.loads(answer.body) if answer.body.startswith(b"{") else answer.body.decode()
        metadata = body.get("metadata", {}) if isinstance(body, dict) else {}
        if answer.status < 300 and metadata.get("uid") and metadata.get("resourceVersion"):
            memory.update(uid=metadata["uid"], version=metadata["resourceVersion"])
            memory["first"] = memory["first"] or metadata["resourceVersion"]
        compared = normalise(relevant(body))
        if isinstance(compared, dict) and isinstance(body.get("items"), list):
            compared["metadata"].pop("resourceVersion")
        if not step.text and answer.status >= 400:
            compared = {"code": compared.get("code"), "reason": compared.get("reason")}
        played.append((answer.status, compared))
    return played


def _request(step: Step, namespace: str, memory: dict[str, str]) -> Request:
    def filled(text: str) -> str:
        for name, value in memory.items():
            text = text.replace(f"${name}", value)
        return text

    body = step.body
    if body is not None and not isinstance(body, bytes):
        body = filled(json.dumps(body)).encode()
    return Request(
        step.verb,
        step.resource,
        namespace,
        step.name,
        step.subresource,
        step.query,
        body,
        step.content_type,
    )


@pytest.fixture(scope="session")
def custom_kinds(cluster: ControlPlane) -> Iterator[None]:
    """Widgets with a status subresource, gadgets without one."""
    names = []
    for resource, subresources in ((WIDGETS, {"status": {}}), (GADGETS, {})):
        free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        schema = {"type": "object", "properties": {"spec": free, "status": free}}
        version = {
            "name": resource.version,
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": schema},
            "subresources": subresources,
        }
        singular = resource.kind.lower()
        definition = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": resource.group_resource},
            "spec": {
                "group": resource.group,
                "scope": "Namespaced",
                "names": {"plural": resource.plural, "singular": singular, "kind": resource.kind},
                "versions": [version],
            },
        }
        cluster.kubectl("apply", "-f", "-", stdin=json.dumps(definition))
        names.append(f"crd/{resource.group_resource}")
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=20s", *names)
    yield
    cluster.kubectl("delete", "--wait=false", *names)


@pytest.fixture
async def real(cluster: ControlPlane) -> AsyncIterator[HttpTransport]:
    transport = HttpTransport(kubeconfig.load(cluster.kubeconfig))
    yield transport
    await transport.close()


def local() -> InProcessTransport:
    registry = native_registry((custom_kind(WIDGETS), custom_kind(GADGETS, has_status=False)))
    memory = MemoryStorage(start_version=1000)
    return InProcessTransport(ApiCore(registry, clock=RealClock(), storage=memory, seed=1))


@pytest.mark.parametrize(
    "title", [pytest.param(title, marks=[pytest.mark.smoke] if title in SMOKE else []) for title in SCENARIOS]
)
async def test_same_answers(title: str, real: HttpTransport, namespace: str, custom_kinds: None) -> None:
    """Each scenario gives the same answers on both sides, step by step."""
    steps = SCENARIOS[title]
    theirs = await play(real, namespace, steps)
    ours = await play(local(), namespace, steps)
    for number, (step, their, our) in enumerate(zip(steps, theirs, ours, strict=True)):
        assert our == their, f"step {number} of {title!r}: {step}"


@pytest.mark.smoke
async def test_same_watch(real: HttpTransport, namespace: str) -> None:
    """The same writes give the same events, also for a watcher with a selector."""
    steps = [
        create(PODS, pod("a")),
        merge(PODS, "a", {"metadata": {"labels": {"app": "y"}}}),
        merge(PODS, "a", {"metadata": {"labels": {"app": "x"}}}),
        merge(PODS, "a", {"status": {"phase": "Running"}}, sub="status"),
        delete(PODS, "a", {"gracePeriodSeconds": 30}),
        delete(PODS, "a", {"gracePeriodSeconds": 0}),
    ]

    async def found_by(transport: Transport, labels: str, count: int) -> list[Any]:
        before = json.loads((await transport.send(Request(Verb.LIST, PODS, namespace))).body)
        start = before["metadata"]["resourceVersion"]
        query = (("watch", "true"), ("resourceVersion", start), ("labelSelector", labels), ("timeoutSeconds", "20"))
        normalise = Normaliser()
        found: list[Any] = []
        async with transport.stream(Request(Verb.WATCH, PODS, namespace, query=query)) as lines:
            await play(transport, namespace, steps)
            async for line in lines:
                event = json.loads(line)
                found.append((event["type"], normalise(relevant(event["object"]))))
                if len(found) == count:
                    return found
        return found

    for labels, count in (("", 7), ("app=x", 7)):
        async with asyncio.timeout(30):
            assert await found_by(local(), labels, count) == await found_by(real, labels, count)


_TEMPLATE = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "main", "image": "nginx:1"}]}}
_SELECTING = {"selector": {"matchLabels": {"app": "x"}}, "template": _TEMPLATE}
_CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
NATIVE: list[tuple[Resource[Any], dict[str, Any]]] = [
    (apps.DEPLOYMENTS, {"spec": {"replicas": 0, "paused": True, **_SELECTING}}),
    (apps.REPLICA_SETS, {"spec": {"replicas": 0, **_SELECTING}}),
    (apps.STATEFUL_SETS, {"spec": {"replicas": 0, "serviceName": "s", **_SELECTING}}),
    (apps.DAEMON_SETS, {"spec": {**_SELECTING}}),
    (
        apps.JOBS,
        {"spec": {"suspend": True, "template": {"spec": {**_TEMPLATE["spec"], "restartPolicy": "Never"}}}},
    ),
    (apps.CONTROLLER_REVISIONS, {"revision": 1, "data": {"a": 1}}),
    (config.CONFIG_MAPS, {"data": {"a": "1"}}),
    (config.SECRETS, {"stringData": {"a": "1"}}),
    (config.SERVICES, {"spec": {"ports": [{"port": 80}]}}),
    (config.SERVICE_ACCOUNTS, {}),
    (storage.PERSISTENT_VOLUME_CLAIMS, {"spec": _CLAIM}),
    (
        storage.PERSISTENT_VOLUMES,
        {
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "1Gi"},
                "hostPath": {"path": "/tmp/x"},
                "persistentVolumeReclaimPolicy": "Retain",
            }
        },
    ),
    (storage.STORAGE_CLASSES, {"provisioner": "kruise.io/none"}),
    (nodes.NODES, {}),
    (nodes.NAMESPACES, {}),
    (events.LEASES, {"spec": {"holderIdentity": "me"}}),
    (events.EVENTS, {"involvedObject": {"kind": "Pod", "name": "a", "namespace": "$namespace"}, "reason": "Tested"}),
    (extensions.MUTATING_WEBHOOK_CONFIGURATIONS, {"webhooks": []}),
    (extensions.VALIDATING_WEBHOOK_CONFIGURATIONS, {"webhooks": []}),
    (PODS, pod("a")),
]


# A namespace stays until a controller has emptied it, which is not the core's business.
UNLIKE = {nodes.NAMESPACES: "deleted"}


def _holds(found: Any, wanted: Any) -> bool:
    """Whether the change came through, whatever else the server wrote there."""
    if isinstance(wanted, dict):
        return wanted.items() <= (found or {}).items()
    return all(item in (found or ()) for item in wanted)


@pytest.mark.parametrize(("resource", "content"), NATIVE, ids=[resource.plural for resource, _ in NATIVE])
async def test_the_table_of_native_kinds_is_true(
    resource: Resource[Any], content: dict[str, Any], real: HttpTransport, namespace: str
) -> None:
    """What the kinds differ in: generation, status writes, updates without a version or an object, deletes.

    All but the first write are dry runs, so that nothing depends on how fast the controllers of the real cluster are.
    """
    name = f"{namespace[-30:].lstrip('-')}-x"

    async def facts(transport: Transport) -> dict[str, Any]:
        async def send(verb: Verb, name: str = "", body: Any = None, **more: Any) -> tuple[int, Any]:
            query = () if more.pop("wet", False) else (("dryRun", "All"),)
            request = Request(verb, resource, namespace if resource.namespaced else "", name, query=query, **more)
            data = None if body is None else json.dumps(body).replace("$namespace", namespace).encode()
            answer = await transport.send(dataclasses.replace(request, body=data))
            return answer.status, json.loads(answer.body)

        kind = {"apiVersion": resource.api_version, "kind": resource.kind}
        code, made = await send(Verb.CREATE, body={**content, **kind, "metadata": {"name": name}}, wet=True)
        assert code == 201, made
        changes = {
            "labels": {"k": "v"},
            "annotations": {"k": "v"},
            "finalizers": ["kruise.io/x"],
            "ownerReferences": [OWNER],
        }
        status_code, status = await send(
            Verb.PATCH, name, {"metadata": changes}, subresource="status", content_type=PatchType.MERGE
        )
        about = status.get("metadata", {})
        del made["metadata"]["resourceVersion"]
        blind_code, blind = await send(Verb.UPDATE, name, {**made, **kind})
        other = {**made, **kind, "metadata": {"name": "other"}}
        missing_code, missing = await send(Verb.UPDATE, "other", other)
        _, deleted = await send(Verb.DELETE, name, {})
        return {
            "generation": made["metadata"].get("generation"),
            "status": (status_code, {key: _holds(about.get(key), value) for key, value in changes.items()}),
            "blind update": (blind_code, blind.get("message")),
            "missing update": (missing_code, missing.get("reason")),
            "deleted": deleted["kind"],
        }

    theirs = await facts(real)
    await real.send(Request(Verb.DELETE, resource, namespace if resource.namespaced else "", name))
    ours = await facts(local())
    for each in (ours, theirs):
        each.pop(UNLIKE.get(resource, ""), None)
    assert ours == theirs
