"""Steps of sequences that are played to the local and to a real API server: objects, and writes by several managers."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

from kruise.api.meta import PartialObject
from kruise.api.native.apps import DEPLOYMENTS
from kruise.api.native.config import CONFIG_MAPS, SERVICES
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.machinery.client.requests import PatchType, Verb

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
    resource = RESOURCES[body["kind"]] if isinstance(body, dict) else more.pop("resource")
    name = more.pop("name", None) or body["metadata"]["name"]
    query = (*((("force", "true"),) if force else ()), *((("dryRun", "All"),) if dry else ()))
    return Step(Verb.PATCH, resource, name, body, manager, PatchType.APPLY, sub, query)


def create(manager: str, body: Json) -> Step:
    return Step(Verb.CREATE, RESOURCES[body["kind"]], body["metadata"]["name"], body, manager)


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


RESOURCES: dict[str, Resource[Any]] = {
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


def setting(*path: Any, to: Any) -> Callable[[Json], None]:
    def change(obj: Json) -> None:
        at: Any = obj
        for part in path[:-1]:
            at = at.setdefault(part, {}) if isinstance(at, dict) else at[part]
        at[path[-1]] = to

    return change


def dropping(*path: Any) -> Callable[[Json], None]:
    def change(obj: Json) -> None:
        at: Any = obj
        for part in path[:-1]:
            at = at[part]
        del at[path[-1]]

    return change
