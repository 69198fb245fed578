"""Owners of fields in several versions of a kind: conversion is that of the definition, as for every other request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kruise.local import fields
from kruise.local.apicore import errors
from kruise.local.apicore.owners import held
from kruise.local.fields.tracking import Ownership
from kruise.local.inprocess import InProcessTransport
from kruise.machinery.client.requests import PatchType
from tests.local.crds.cases import GROUP, STRING, definition, version, with_spec
from tests.local.crds.harness import CrdApi, custom

OLD, NEW = custom("things", "Thing", "v1"), custom("things", "Thing", "v2")
REFUSED = "conversion webhook for Thing failed"


class Mover:
    """What v1 has as `flat`, v2 has as `nested.value`."""

    def __init__(self) -> None:
        self.refuses = False

    async def convert(self, definition: Any, objects: Sequence[Any], version: str) -> list[Any]:
        if self.refuses:
            raise errors.plain_failure(REFUSED)
        return [{**obj, "apiVersion": f"{GROUP}/{version}", "spec": moved(obj.get("spec"), version)} for obj in objects]


def moved(spec: Any, version: str) -> Any:
    spec = dict(spec or {})
    if version == "v2":
        return {**spec, "nested": {"value": spec.pop("flat")}} if "flat" in spec else spec
    nested = spec.pop("nested", {})
    return {**spec, "flat": nested["value"]} if "value" in nested else spec


NESTED = {"type": "object", "properties": {"value": STRING}}
FLAT = with_spec({"flat": STRING, "same": STRING, "filled": STRING})
DEEP = with_spec({"nested": NESTED, "same": STRING, "filled": {**STRING, "default": "by v2"}})


def in_order(first: Any, second: Any, *, webhook: bool) -> Any:
    body = definition("things", "Thing", version(first, storage=False), version(second, "v2"))
    if webhook:
        about = {"clientConfig": {"url": "https://example.com"}, "conversionReviewVersions": ["v1"]}
        body["spec"]["conversion"] = {"strategy": "Webhook", "webhook": about}
    return body


async def make(mover: Mover | None = None) -> CrdApi:
    api = CrdApi(conversion=mover or Mover())
    fields.install(api.core)
    api.transport = InProcessTransport(api.core, managed_fields=True)
    await api.define(in_order(FLAT, DEEP, webhook=True))
    return api


def thing(spec: Any, version: str = "v1") -> Any:
    return {"apiVersion": f"{GROUP}/{version}", "kind": "Thing", "metadata": {"name": "a"}, "spec": spec}


async def apply(api: CrdApi, spec: Any, version: str = "v1", manager: str = "user") -> Any:
    query = (("fieldManager", manager),)
    kind = OLD if version == "v1" else NEW
    return await api.patch(kind, "a", thing(spec, version), query=query, content_type=PatchType.APPLY)


async def label(api: CrdApi, kind: Any, name: str) -> Any:
    query = (("fieldManager", "other"),)
    return await api.patch(kind, "a", {"metadata": {"labels": {name: "1"}}}, query=query)


def owners(obj: Any) -> dict[tuple[str, str], Any]:
    found = obj["metadata"].get("managedFields") or ()
    return {(entry["manager"], entry["apiVersion"].rpartition("/")[2]): entry["fieldsV1"] for entry in found}


async def test_what_is_applied_stays_when_others_write_in_another_version() -> None:
    api = await make()
    said = {"flat": "x", "same": "y"}
    for turn in range(3):
        code, found = await apply(api, said)
        assert code in (200, 201)
        assert (found["spec"], found["metadata"]["generation"]) == ({**said, "filled": "by v2"}, 1)
        await label(api, NEW, f"seen-{turn}")


async def test_a_change_in_another_version_takes_the_field_that_it_is_there() -> None:
    api = await make()
    await apply(api, {"flat": "x", "same": "y"})
    query = (("fieldManager", "other"),)
    _, found = await api.patch(NEW, "a", {"spec": {"nested": {"value": "z"}}}, query=query)
    assert owners(found) == {
        ("user", "v1"): {"f:spec": {"f:same": {}}},
        ("other", "v2"): {"f:spec": {"f:nested": {"f:value": {}}}},
    }
    code, answer = await apply(api, {"flat": "x", "same": "y"})
    assert (code, answer["details"]["causes"][0]["field"]) == (409, ".spec.nested.value")


async def test_what_is_given_up_goes_although_another_version_has_a_default_for_it() -> None:
    for webhook in (True, False):
        api = CrdApi(conversion=Mover())
        fields.install(api.core)
        await api.define(in_order(FLAT, DEEP, webhook=webhook))
        await apply(api, {"same": "y", "filled": "by me"})
        await label(api, NEW, "seen")
        _, found = await apply(api, {"same": "y"})
        assert found["spec"] == {"same": "y", "filled": "by v2"}


async def test_one_manager_applies_in_one_version_and_then_in_the_other() -> None:
    api = await make()
    await apply(api, {"flat": "x", "same": "y"})
    _, found = await apply(api, {"nested": {"value": "x"}}, "v2")
    assert found["spec"] == {"nested": {"value": "x"}, "filled": "by v2"}
    assert list(owners(found)) == [("user", "v2")]


async def test_a_conversion_that_fails_refuses_an_apply() -> None:
    mover = Mover()
    api = await make(mover)
    await apply(api, {"nested": {"value": "x"}}, "v2")
    await apply(api, {"same": "y"}, "v1", "second")
    mover.refuses = True
    code, answer = await apply(api, {"nested": {"value": "x"}, "same": "y"}, "v2")
    assert (code, answer["message"]) == (500, REFUSED)
    code, answer = await apply(api, {"nested": {"value": "z"}}, "v2", "third")
    assert (code, answer["message"]) == (500, REFUSED)
    mover.refuses = False
    assert (await api.get(NEW, "a"))[1]["spec"] == {"nested": {"value": "x"}, "same": "y", "filled": "by v2"}


async def test_a_conversion_that_fails_makes_an_update_forget_the_owners() -> None:
    """No owners are better than wrong ones: the write itself needs no conversion, and succeeds."""
    mover = Mover()
    api = await make(mover)
    await apply(api, {"nested": {"value": "x"}}, "v2")
    await apply(api, {"same": "y"}, "v1", "second")
    mover.refuses = True
    code, found = await label(api, NEW, "seen")
    assert (code, owners(found)) == (200, {})


async def test_a_create_that_brings_owners_of_another_version() -> None:
    api = await make()
    entry = {"manager": "before", "operation": "Update", "apiVersion": f"{GROUP}/v2", "fieldsType": "FieldsV1"}
    body = thing({"flat": "x"})
    body["metadata"]["managedFields"] = [{**entry, "fieldsV1": {"f:spec": {"f:same": {}}}}]
    code, found = await api.create(OLD, body, query=(("fieldManager", "user"),))
    assert (code, owners(found)[("user", "v1")]) == (201, {"f:spec": {".": {}, "f:flat": {}}})


@pytest.mark.parametrize(("kind", "waits"), [(OLD, 0), (NEW, 2)])
async def test_owners_are_worked_out_at_once_only_where_versions_meet(kind: Any, waits: int) -> None:
    api = await make()
    api.transport = InProcessTransport(api.core)
    await api.create(NEW, thing({"same": "y"}, "v2"))
    await label(api, kind, "seen")
    stored = api.core.storage.get(f"things.{GROUP}", ("default", "a"))
    assert stored is not None
    found = held(stored)
    assert isinstance(found, Ownership)
    assert found.length == waits
