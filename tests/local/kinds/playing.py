"""Sends the cases to a server, real or ours, and says what it answered in a form that can be compared."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from kruise.api.meta import PartialObject
from kruise.api.resource import Resource
from kruise.local.apicore import ApiCore, MemoryStorage
from kruise.local.inprocess import InProcessTransport
from kruise.local.kinds import NATIVE_KINDS, native_registry
from kruise.local.kinds.admitting import install
from kruise.local.kinds.bootstrap import create_system_objects
from kruise.machinery.client.requests import PatchType, Request, Verb
from kruise.machinery.client.transport import Transport
from kruise.machinery.clock import Clock
from tests.local.kinds.cases import Case
from tests.local.kinds.table_cases import TABLES

RESOURCES: Mapping[str, Resource[Any]] = {
    kind.plural: Resource(kind.group, kind.versions[0], kind.plural, kind.kind, kind.namespaced, PartialObject)
    for kind in NATIVE_KINDS
}
DRY_RUN = (("dryRun", "All"),)
_HIDDEN = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


async def local_transport(clock: Clock, namespace: str) -> InProcessTransport:
    """Ours, with a namespace in which pods can be created."""
    core = ApiCore(native_registry(), clock=clock, storage=MemoryStorage(start_version=1000), seed=1)
    install(core, seed=1, taint_new_nodes=True)
    transport = InProcessTransport(core)
    await create_system_objects(core)
    for resource, body in (("namespaces", {"metadata": {"name": namespace}}), ("serviceaccounts", {})):
        about = body.get("metadata") or {"name": "default"}
        code, answer = await send(transport, Verb.CREATE, resource, namespace, body={**body, "metadata": about})
        assert code == 201, answer
    return transport


async def send(
    transport: Transport, verb: Verb, plural: str, namespace: str = "", name: str = "", body: Any = None, **more: Any
) -> tuple[int, Any]:
    resource = RESOURCES[plural]
    data = None if body is None else json.dumps(body, separators=(",", ":")).replace("$namespace", namespace).encode()
    where = namespace if resource.namespaced else ""
    answer = await transport.send(Request(verb, resource, where, name, body=data, **more))
    return answer.status, json.loads(answer.body)


async def play(transport: Transport, case: Case, namespace: str, number: int) -> Any:
    """The answer to a case. Objects that it needs are removed again."""
    resource = RESOURCES[case.plural]
    name = (case.body.get("metadata") or {}).get("name") or f"x{number}"
    about = {**(case.body.get("metadata") or {}), "name": name}
    body = {"apiVersion": resource.api_version, "kind": resource.kind, **case.body, "metadata": about}
    if case.patch is None:
        query = () if case.wet else DRY_RUN
        code, answer = await send(transport, Verb.CREATE, case.plural, namespace, body=body, query=query)
        if case.wet and code < 400:
            await remove(transport, case.plural, namespace, name)
        return comparable(code, answer, namespace)
    code, made = await send(transport, Verb.CREATE, case.plural, namespace, body=body)
    assert code == 201, made
    try:
        code, answer = await send(
            transport,
            Verb.PATCH,
            case.plural,
            namespace,
            name,
            case.patch,
            subresource=case.subresource,
            query=DRY_RUN,
            content_type=PatchType.MERGE,
        )
        return comparable(code, answer, namespace)
    finally:
        await remove(transport, case.plural, namespace, name)


OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "11111111-2222-4333-8444-555555555555"}
CHANGES: Any = {
    "labels": {"k": "v"},
    "annotations": {"k": "v"},
    "finalizers": ["kruise.io/x"],
    "ownerReferences": [OWNER],
}


async def facts(transport: Transport, plural: str, namespace: str) -> dict[str, Any]:
    """What kinds differ in: generations, status writes, updates without a version or an object, deletes."""
    resource, body = RESOURCES[plural], TABLES[plural][0][0]
    kind = {"apiVersion": resource.api_version, "kind": resource.kind}
    about = {**(body.get("metadata") or {}), "name": "facts"}
    code, made = await send(transport, Verb.CREATE, plural, namespace, body={**body, **kind, "metadata": about})
    assert code == 201, made
    merge: Any = {"content_type": PatchType.MERGE, "query": DRY_RUN}
    patch = {"metadata": CHANGES}
    status_code, status = await send(
        transport, Verb.PATCH, plural, namespace, "facts", patch, subresource="status", **merge
    )
    about = status.get("metadata", {}) if status_code == 200 else {}
    _, changed = await send(transport, Verb.PATCH, plural, namespace, "facts", patch, **merge)
    del made["metadata"]["resourceVersion"]
    blind_code, blind = await send(transport, Verb.UPDATE, plural, namespace, "facts", {**made, **kind}, query=DRY_RUN)
    other = {**made, **kind, "metadata": {"name": "other"}}
    missing_code, missing = await send(transport, Verb.UPDATE, plural, namespace, "other", other, query=DRY_RUN)
    _, deleted = await send(transport, Verb.DELETE, plural, namespace, "facts", {}, query=DRY_RUN)
    await remove(transport, plural, namespace, "facts")
    return {
        "generation": [made["metadata"].get("generation"), changed.get("metadata", {}).get("generation")],
        "status": [status_code, {key: _holds(about.get(key), value) for key, value in CHANGES.items()}],
        "blind update": [blind_code, blind.get("message")],
        "missing update": [missing_code, missing.get("reason")],
        "deleted": deleted["kind"],
    }


def _holds(found: Any, wanted: Any) -> bool:
    """Whether a change came through, whatever else the server wrote there."""
    if isinstance(wanted, dict):
        return wanted.items() <= (found or {}).items()
    return all(item in (found or ()) for item in wanted)


async def tables(transport: Transport, plural: str, namespace: str) -> list[str]:
    """Create the objects whose tables are compared; returns their names."""
    names = []
    for number, (body, status) in enumerate(TABLES[plural]):
        name = f"t{number}"
        about = {**(body.get("metadata") or {}), "name": name}
        code, made = await send(transport, Verb.CREATE, plural, namespace, body={**body, "metadata": about})
        assert code == 201, made
        if status == "delete":
            code, made = await send(transport, Verb.DELETE, plural, namespace, name)
        elif status is not None:
            patch = {"status": status}
            more = {"subresource": "status", "content_type": PatchType.MERGE}
            code, made = await send(transport, Verb.PATCH, plural, namespace, name, patch, **more)
        assert code < 300, made
        names.append(name)
    return names


async def local_table(transport: InProcessTransport, plural: str, namespace: str, names: list[str]) -> Any:
    """Head and cells, as our server would write them."""
    kind = next(kind for kind in transport.core.registry if kind.plural == plural)
    columns, now = kind.table_columns, transport.core.clock.now()
    head = [[column.name, column.type, column.format, column.priority] for column in columns]
    rows = []
    for name in names:
        _, obj = await send(transport, Verb.GET, plural, namespace, name)
        rows.append([column.cell(obj, now) for column in columns])
    return {"head": head, "rows": shown_rows(head, rows, namespace)}


def shown_rows(head: list[Any], rows: list[list[Any]], namespace: str) -> list[list[Any]]:
    """Without addresses and moments that differ from run to run."""
    return [[_cell(column[0], cell, namespace) for column, cell in zip(head, row, strict=True)] for row in rows]


def _cell(column: str, cell: Any, namespace: str) -> Any:
    if isinstance(cell, str):
        cell = re.sub(r"\b10\.(0|9[6-9]|1[01]\d)\.\d+\.\d+$", "<address>", cell) if column == "Cluster-IP" else cell
        cell = re.sub(r":3\d{4}/", ":<port>/", cell)
        cell = re.sub(r"controller-uid=[0-9a-f-]{36}", "controller-uid=<uid>", cell)
        if column == "Created At":
            return _TIME.sub("<time>", cell)
        if column == "Age":
            return re.sub(r"^\d{1,2}s$", "<seconds>", cell)
        return cell.replace(namespace, "<namespace>")
    return cell


async def remove(transport: Transport, plural: str, namespace: str, name: str) -> None:
    finalizers = {"metadata": {"finalizers": None}}
    await send(transport, Verb.PATCH, plural, namespace, name, finalizers, content_type=PatchType.MERGE)
    await send(transport, Verb.DELETE, plural, namespace, name, {"gracePeriodSeconds": 0})


def comparable(code: int, answer: Any, namespace: str) -> Any:
    """Without what differs from run to run."""
    if code >= 400:
        details = answer.get("details") or {}
        causes = [[cause.get("field", ""), cause["reason"]] for cause in details.get("causes") or ()]
        message = answer["message"].replace(namespace, "<namespace>")
        found = {"code": code, "reason": answer.get("reason"), "kind": details.get("kind"), "causes": _once(causes)}
        return {**found, "message": _TIME.sub("<time>", message)}
    uid = answer["metadata"].get("uid", "")
    text = json.dumps(_shown(answer)).replace(namespace, "<namespace>")
    text = text.replace(uid, "<uid>") if uid else text
    text = re.sub(r"kube-api-access-\w{5}", "kube-api-access-<id>", text)
    return {"code": code, "object": json.loads(text)}


def _once(causes: list[Any]) -> list[Any]:
    """Rules that overlap name one fault more than once."""
    return sorted(cause for position, cause in enumerate(causes) if cause not in causes[:position])


def _shown(value: Any) -> Any:
    if isinstance(value, list):
        return [_shown(item) for item in value]
    if not isinstance(value, dict):
        return value
    result = {}
    for name, item in value.items():
        if name == "metadata" and isinstance(item, dict):
            item = {key: inner for key, inner in item.items() if key not in _HIDDEN}
        if name == "clusterIP" and item != "None":
            item = "<address>"
        elif name == "clusterIPs" and item != ["None"]:
            item = ["<address>"]
        elif name in ("nodePort", "healthCheckNodePort") and item != 30080:
            item = 0
        elif name in ("lastTransitionTime", "lastPhaseTransitionTime") and item is not None:
            item = "<time>"
        result[name] = _shown(item)
    return result
