"""Owners in a running core: kept without work, shown where they are wanted, and applied to."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kruise.local import fields
from kruise.local.apicore import MemoryStorage
from kruise.local.apicore.owners import held
from kruise.local.fields.tracking import LONGEST_CHAIN, Ownership
from kruise.local.inprocess import InProcessTransport
from kruise.machinery.client.requests import PatchType, Request, Verb
from tests.local.harness import CONFIG_MAPS, PODS, WIDGETS, Api, cm, pod, widget

ONE = (("fieldManager", "one"),)
TWO = (("fieldManager", "two"),)


def make(**more: Any) -> Api:
    api = Api(**more)
    fields.install(api.core)
    api.transport = InProcessTransport(api.core, managed_fields=True)
    return api


def config(data: Any = None, name: str = "a", **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", **cm(name, data, **metadata)}


async def apply(api: Api, body: Any, *query: tuple[str, str], name: str = "a", **more: Any) -> Any:
    more.setdefault("resource", CONFIG_MAPS)
    return await api.patch(more.pop("resource"), name, body, query=query, content_type=PatchType.APPLY, **more)


def kept(api: Api, name: str = "a") -> Ownership:
    stored = api.core.storage.get("configmaps", ("default", name))
    assert stored is not None
    found = held(stored)
    assert isinstance(found, Ownership)
    return found


async def test_a_write_works_nothing_out() -> None:
    api = make()
    quiet = InProcessTransport(api.core)
    body = json.dumps(config({"a": "1"})).encode()
    answer = await quiet.send(Request(Verb.CREATE, CONFIG_MAPS, "default", body=body, query=ONE))
    assert b"managedFields" not in answer.body
    for number in range(3):
        patch = b'{"data":{"a":"%d"}}' % (number + 2)
        await quiet.send(Request(Verb.PATCH, CONFIG_MAPS, "default", "a", body=patch, content_type=PatchType.MERGE))
    assert kept(api).length == 4
    _, found = await api.get(CONFIG_MAPS, "a")
    assert [entry["manager"] for entry in found["metadata"]["managedFields"]] == ["one", "unknown"]
    assert kept(api).length == 0


async def test_a_chain_does_not_grow_for_ever() -> None:
    api = make()
    quiet = InProcessTransport(api.core)
    await quiet.send(Request(Verb.CREATE, CONFIG_MAPS, "default", body=json.dumps(config()).encode(), query=ONE))
    longest = 0
    for number in range(LONGEST_CHAIN * 2):
        patch = b'{"data":{"k%d":"1"}}' % number
        await quiet.send(Request(Verb.PATCH, CONFIG_MAPS, "default", "a", body=patch, content_type=PatchType.MERGE))
        longest = max(longest, kept(api).length)
    assert longest == LONGEST_CHAIN - 1
    _, found = await api.get(CONFIG_MAPS, "a")
    fields_of_others = found["metadata"]["managedFields"][1]["fieldsV1"]["f:data"]
    assert len(fields_of_others) == LONGEST_CHAIN * 2


async def test_what_was_worked_off_at_once_or_later_is_the_same() -> None:
    async def play(look: bool) -> Any:
        api = make()
        await api.create(CONFIG_MAPS, config({"a": "1", "b": "1"}), query=ONE)
        for number, query in enumerate((ONE, TWO, TWO, ONE, TWO)):
            patch = {"data": {"abc"[number % 3]: str(number), "x": None}}
            quiet = api.transport if look else InProcessTransport(api.core)
            body = json.dumps(patch).encode()
            request = Request(
                Verb.PATCH, CONFIG_MAPS, "default", "a", body=body, query=query, content_type=PatchType.MERGE
            )
            await quiet.send(request)
        return await api.get(CONFIG_MAPS, "a")

    assert await play(look=True) == await play(look=False)


async def test_older_states_keep_their_owners() -> None:
    """Watches and lists at an older version show the owners of that version."""
    api = make(storage=MemoryStorage(start_version=1))
    _, first = await api.create(CONFIG_MAPS, config({"a": "1"}), query=ONE)
    await api.patch(CONFIG_MAPS, "a", {"data": {"b": "1"}}, query=TWO)
    await api.patch(CONFIG_MAPS, "a", {"data": {"a": "2"}}, query=TWO)
    events = await api.events_since(CONFIG_MAPS, first["metadata"]["resourceVersion"])
    owners = [[entry["manager"] for entry in event["metadata"]["managedFields"]] for _, event in events]
    owned = [event["metadata"]["managedFields"][0]["fieldsV1"]["f:data"] for _, event in events]
    assert owners == [["one", "two"], ["one", "two"]]
    assert owned == [{".": {}, "f:a": {}}, {}]
    quiet = InProcessTransport(api.core)
    query = (("resourceVersion", first["metadata"]["resourceVersion"]), ("timeoutSeconds", "0"))
    async with quiet.stream(Request(Verb.WATCH, CONFIG_MAPS, "default", query=query)) as lines:
        assert [line async for line in lines if b"managedFields" in line] == []


async def test_lists_show_owners() -> None:
    api = make()
    await api.create(CONFIG_MAPS, config({"a": "1"}), query=ONE)
    _, found = await api.list(CONFIG_MAPS)
    assert found["items"][0]["metadata"]["managedFields"][0]["manager"] == "one"


async def test_an_object_without_owners_shows_none() -> None:
    api = make()
    _, made = await api.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, query=ONE)
    assert "managedFields" not in made["metadata"]
    _, found = await api.list(CONFIG_MAPS)
    assert "managedFields" not in found["items"][0]["metadata"]


async def test_the_manager_is_the_first_part_of_the_user_agent() -> None:
    api = make()
    _, made = await api.create(CONFIG_MAPS, config({"a": "1"}), user_agent="kruise-manager/v1 (linux)")
    assert made["metadata"]["managedFields"][0]["manager"] == "kruise-manager"


async def test_an_imported_object_keeps_its_owners() -> None:
    """Objects of another cluster are stored as they were there, plain owners included."""
    api = make()
    entry = {
        "manager": "elsewhere",
        "operation": "Apply",
        "apiVersion": "v1",
        "time": "2024-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {"f:a": {}}},
    }
    _, made = await api.create(CONFIG_MAPS, config({"a": "1"}, name="other"))
    about = {**made["metadata"], "name": "a", "managedFields": [entry]}
    api.core.storage.put("configmaps", ("default", "a"), {**made, "metadata": about})
    _, found = await api.get(CONFIG_MAPS, "a")
    assert found["metadata"]["managedFields"] == [entry]
    code, refused = await apply(api, config({"a": "2"}), *ONE)
    assert (code, refused["message"]) == (409, 'Apply failed with 1 conflict: conflict with "elsewhere": .data.a')
    _, changed = await api.patch(CONFIG_MAPS, "a", {"data": {"b": "1"}}, query=TWO)
    assert [each["manager"] for each in changed["metadata"]["managedFields"]] == ["elsewhere", "two"]
    assert changed["metadata"]["managedFields"][0] == entry


async def test_apply_creates_and_then_changes() -> None:
    api = make()
    code, made = await apply(api, config({"a": "1"}), *ONE)
    assert (code, made["metadata"]["managedFields"][0]["operation"]) == (201, "Apply")
    code, again = await apply(api, config({"a": "1"}), *ONE)
    assert (code, again) == (200, made)
    code, refused = await apply(api, config({"a": "2"}), *TWO)
    assert code == 409
    assert refused["reason"] == "Conflict"
    assert refused["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": ".data.a"}
    ]
    code, forced = await apply(api, config({"a": "2"}), *TWO, ("force", "true"))
    assert (code, forced["data"]) == (200, {"a": "2"})


async def test_apply_reads_yaml() -> None:
    api = make()
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  day: 2020-01-01\n"
    code, answer = await apply(api, body, *ONE)
    assert (code, answer["data"]) == (201, {"day": "2020-01-01"})
    code, answer = await apply(api, b"a: b: c", *ONE)
    assert code == 400
    assert answer["message"].startswith("error decoding YAML: ")
    code, answer = await apply(api, b"- a", *ONE)
    assert code == 400


async def test_a_race_for_the_creation_ends_in_a_merge() -> None:
    """Admission gives way to others; whoever comes second finds an object."""
    api = make()
    raced = False

    async def other(request: Any) -> None:
        nonlocal raced
        if not raced:
            raced = True
            await api.create(CONFIG_MAPS, config({"b": "1"}), query=TWO)

    api.core.admission.mutating.append(other)
    code, answer = await apply(api, config({"a": "1"}), *ONE)
    assert (code, answer["data"]) == (200, {"a": "1", "b": "1"})


async def test_admission_is_no_owner_and_sees_no_owners() -> None:
    api = make()
    seen: list[Any] = []

    async def add(request: Any) -> Any:
        seen.append(request.object["metadata"].get("managedFields"))
        return {**request.object, "data": {**request.object["data"], "added": "1"}}

    api.core.admission.mutating.append(add)
    _, made = await api.create(CONFIG_MAPS, config({"a": "1"}), query=ONE)
    assert made["data"] == {"a": "1", "added": "1"}
    assert made["metadata"]["managedFields"][0]["fieldsV1"] == {"f:data": {".": {}, "f:a": {}}}
    assert seen == [None]


async def test_status_writes_own_status_alone() -> None:
    api = make()
    await api.create(PODS, pod("a"), query=ONE)
    patch = {"status": {"phase": "Running"}, "spec": {"nodeName": "other"}, "metadata": {"labels": {"l": "1"}}}
    _, found = await api.patch(PODS, "a", patch, subresource="status", query=TWO)
    entry = found["metadata"]["managedFields"][-1]
    assert (entry["manager"], entry["subresource"]) == ("two", "status")
    assert entry["fieldsV1"] == {"f:metadata": {"f:labels": {".": {}, "f:l": {}}}, "f:status": {"f:phase": {}}}


async def test_a_binding_changes_no_owner() -> None:
    api = make()
    _, made = await api.create(PODS, pod("a", node=""), query=ONE)
    body = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}}
    await api.create(PODS, body, name="a", subresource="binding", query=TWO)
    _, bound = await api.get(PODS, "a")
    assert bound["spec"]["nodeName"] == "n1"
    assert bound["metadata"]["managedFields"] == made["metadata"]["managedFields"]


async def test_a_delete_that_waits_keeps_the_owners() -> None:
    api = make()
    _, made = await api.create(CONFIG_MAPS, config({"a": "1"}, finalizers=["kruise.io/stay"]), query=ONE)
    await api.delete(CONFIG_MAPS, "a")
    _, marked = await api.get(CONFIG_MAPS, "a")
    assert marked["metadata"]["managedFields"] == made["metadata"]["managedFields"]


async def test_dry_runs_show_owners_and_keep_none() -> None:
    api = make()
    _, made = await api.create(CONFIG_MAPS, config({"a": "1"}), query=ONE)
    _, shown = await api.patch(CONFIG_MAPS, "a", {"data": {"a": "2"}}, query=(*TWO, ("dryRun", "All")))
    assert [entry["manager"] for entry in shown["metadata"]["managedFields"]] == ["one", "two"]
    assert (await api.get(CONFIG_MAPS, "a"))[1] == made


async def test_owners_are_forgotten_and_found_again() -> None:
    api = make()
    await api.create(CONFIG_MAPS, config({"a": "1"}), query=ONE)
    _, reset = await api.patch(CONFIG_MAPS, "a", {"metadata": {"managedFields": [{}]}}, query=TWO)
    assert "managedFields" not in reset["metadata"]
    _, still = await api.patch(CONFIG_MAPS, "a", {"data": {"b": "1"}}, query=TWO)
    assert "managedFields" not in still["metadata"]
    _, applied = await apply(api, config({"a": "1"}), *ONE)
    assert [entry["manager"] for entry in applied["metadata"]["managedFields"]] == ["one", "before-first-apply"]


async def test_a_write_that_changes_only_owners_is_a_change() -> None:
    api = make()
    _, first = await apply(api, config({"a": "1"}), *ONE)
    _, second = await apply(api, config({"a": "1"}), *TWO)
    assert second["metadata"]["resourceVersion"] != first["metadata"]["resourceVersion"]
    assert [entry["manager"] for entry in second["metadata"]["managedFields"]] == ["two", "one"]


@pytest.mark.parametrize(
    ("body", "query", "code", "text"),
    [
        (
            config(),
            (),
            422,
            'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
        ),
        ({**config(), "kind": "Pod"}, ONE, 400, "invalid object type: /v1, Kind=Pod"),
        (config(managedFields=[{}]), ONE, 400, "metadata.managedFields must be nil"),
        (config(name="b"), ONE, 400, "the name of the object (b) does not match the name on the URL (a)"),
        (
            config(namespace="b"),
            ONE,
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            {**config(), "foo": 1},
            ONE,
            500,
            "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .foo: field not declared in schema",
        ),
    ],
)
async def test_refused_applies(body: Any, query: Any, code: int, text: str) -> None:
    api = make()
    got, answer = await apply(api, body, *query)
    assert (got, answer["message"]) == (code, text)


async def test_force_is_for_applies() -> None:
    api = make()
    await api.create(CONFIG_MAPS, config(), query=ONE)
    code, answer = await api.patch(CONFIG_MAPS, "a", {}, query=(("force", "true"),))
    assert (code, answer["details"]["causes"][0]["field"]) == (422, "force")


async def test_apply_to_a_part_of_an_object_that_is_not_there() -> None:
    api = make()
    body = {"apiVersion": "toys.kruise.io/v1", "kind": "Widget", "metadata": {"name": "a"}, "status": {"x": 1}}
    code, _ = await apply(api, body, *ONE, resource=WIDGETS, subresource="status")
    assert code == 404
    await api.create(WIDGETS, widget("a"), query=TWO)
    code, answer = await apply(api, body, *ONE, resource=WIDGETS, subresource="status")
    assert (code, answer["status"]) == (200, {"x": 1})
    assert answer["metadata"]["managedFields"][0]["subresource"] == "status"


async def test_a_core_without_tracker_knows_neither() -> None:
    api = Api()
    code, answer = await apply(api, config(), *ONE)
    assert code == 415
    assert "apply-patch" not in answer["message"]
    _, made = await api.create(CONFIG_MAPS, config({"a": "1"}, managedFields=[{}]))
    assert "managedFields" not in made["metadata"]
    code, answer = await make().patch(CONFIG_MAPS, "a", {}, content_type="text/plain")
    assert (code, answer["message"].endswith("application/apply-patch+yaml")) == (415, True)
