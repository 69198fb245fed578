"""Definitions at work in a core: kinds come, change, convert and go."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pytest

from kruise.local.apicore import errors, warnings
from kruise.local.apicore.storage import MemoryStorage
from kruise.local.crds import Definitions, definition_kind
from tests.local.crds.cases import DEFINITIONS, GROUP, RICH, RULES, STRING, definition, rich, version, with_spec
from tests.local.crds.harness import CUSTOM_RESOURCE_DEFINITIONS, CrdApi, custom
from tests.local.harness import CONFIG_MAPS, cm

RICHES = custom("riches", "Rich")
THINGS = custom("things", "Thing")
FIELD = with_spec({"a": STRING})


def thing(name: str, version: str = "v1", spec: Any = None, **metadata: Any) -> Any:
    about = {"name": name, **metadata}
    return {"apiVersion": f"{GROUP}/{version}", "kind": "Thing", "metadata": about, "spec": spec or {"a": "x"}}


def things(*versions: Any, **names: Any) -> Any:
    return definition("things", "Thing", *(versions or (version(FIELD),)), names=names)


async def test_a_kind_is_served_as_soon_as_it_is_defined() -> None:
    api = CrdApi()
    assert (await api.list(RICHES))[0] == 404
    answer = await api.define(RICH)
    assert answer["status"]["conditions"] is None
    code, made = await api.create(RICHES, rich({}))
    assert (code, made["spec"]["mode"]) == (201, "Fast")
    found = await api.definition("riches")
    reasons = {item["type"]: (item["status"], item["reason"]) for item in found["status"]["conditions"]}
    assert reasons == {"NamesAccepted": ("True", "NoConflicts"), "Established": ("True", "InitialNamesAccepted")}
    assert found["status"]["acceptedNames"] == found["spec"]["names"]
    kind = api.core.registry.find(GROUP, "v1", "riches")
    assert kind is not None
    assert (kind.short_names, kind.categories, kind.singular) == (("ri",), ("all",), "rich")
    assert kind.schema is not None
    assert kind.schema("v1") == found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


async def test_watchers_of_definitions_see_every_step() -> None:
    api = CrdApi()
    await api.create(CONFIG_MAPS, cm("first"))
    start = str(api.core.storage.version)
    await api.define(things())
    events = await api.events_since(CUSTOM_RESOURCE_DEFINITIONS, start)
    steps = [(kind, [item["status"] for item in obj["status"]["conditions"] or ()]) for kind, obj in events]
    assert steps == [("ADDED", []), ("MODIFIED", ["True", "False"]), ("MODIFIED", ["True", "True"])]


@pytest.mark.parametrize("title", ["plain", "rich", "two versions", "webhook", "scale", "column", "selectable fields"])
async def test_a_stored_definition_is_read_unchanged(title: str) -> None:
    api = CrdApi()
    await api.define(DEFINITIONS[title])
    name = DEFINITIONS[title]["metadata"]["name"]
    _, found = await api.get(CUSTOM_RESOURCE_DEFINITIONS, name)
    code, again = await api.update(CUSTOM_RESOURCE_DEFINITIONS, name, copy.deepcopy(found))
    assert (code, again) == (200, found)
    for sent, stored in zip(DEFINITIONS[title]["spec"]["versions"], found["spec"]["versions"], strict=True):
        assert stored == sent


async def test_definitions_that_were_there_before_are_served() -> None:
    """A core that starts on a storage with definitions and objects in it."""
    first = CrdApi(storage=MemoryStorage())
    await first.define(things())
    await first.create(THINGS, thing("a"))
    second = CrdApi(storage=first.core.storage)
    assert (await second.get(THINGS, "a"))[1]["spec"] == {"a": "x"}


async def test_objects_from_before_a_change_are_read_by_the_new_schema() -> None:
    api = CrdApi()
    await api.define(things(version(with_spec({"a": STRING, "b": STRING}))))
    await api.create(THINGS, thing("a", spec={"a": "x", "b": "y"}))
    start = str(api.core.storage.version)
    changed = with_spec({"a": STRING, "c": {"type": "string", "default": "new"}})
    await api.redefine("things", {"versions": [version(changed)]})
    assert (await api.get(THINGS, "a"))[1]["spec"] == {"a": "x", "c": "new"}
    assert (await api.list(THINGS))[1]["items"][0]["spec"] == {"a": "x", "c": "new"}
    assert await api.events_since(THINGS, start) == []
    code, patched = await api.patch(THINGS, "a", {"metadata": {"labels": {"l": "m"}}})
    assert (code, patched["spec"]) == (200, {"a": "x", "c": "new"})


async def test_a_changed_definition_ends_the_watches_of_its_kind() -> None:
    api = CrdApi()
    await api.define(things())
    async with api.watch(THINGS) as events:
        await api.redefine("things", {"versions": [version(with_spec({"a": STRING, "b": STRING}))]})
        assert [event async for event in events] == []


async def test_a_removed_definition_takes_its_objects_along() -> None:
    api = CrdApi()
    await api.define(things())
    await api.create(THINGS, thing("a"))
    await api.create(THINGS, thing("b", finalizers=["kruise.io/stay"]))
    code, answer = await api.undefine("things")
    assert code == 200
    assert answer["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert (await api.get(THINGS, "a"))[0] == 404
    assert "deletionTimestamp" in (await api.get(THINGS, "b"))[1]["metadata"]
    code, refused = await api.create(THINGS, thing("c"))
    assert (code, refused["message"]) == (
        403,
        f'things.{GROUP} "c" is forbidden: create not allowed while custom resource definition is terminating',
    )
    async with api.watch(THINGS) as events:
        await api.patch(THINGS, "b", {"metadata": {"finalizers": None}})
        assert [kind async for kind, _ in events] == ["ADDED", "DELETED"]
    assert (await api.definition("things"))["code"] == 404
    assert (await api.list(THINGS))[0] == 404
    await api.define(things())
    assert (await api.list(THINGS))[1]["items"] == []


async def test_a_definition_with_its_own_finalizer_stays_after_its_objects() -> None:
    api = CrdApi()
    body = things()
    body["metadata"]["finalizers"] = ["kruise.io/mine"]
    await api.define(body)
    await api.undefine("things")
    found = await api.definition("things")
    assert found["metadata"]["finalizers"] == ["kruise.io/mine"]
    terminating = found["status"]["conditions"][-1]
    assert (terminating["status"], terminating["reason"]) == ("False", "InstanceDeletionCompleted")


async def test_names_that_are_taken_become_free() -> None:
    api = CrdApi()
    await api.define(things(shortNames=["th"]))
    await api.define(definition("others", "Other", version(FIELD), names={"shortNames": ["th"]}))
    refused = (await api.definition("others"))["status"]
    assert (refused["conditions"][0]["reason"], refused["conditions"][0]["message"]) == (
        "ShortNamesConflict",
        '"th" is already in use',
    )
    assert (await api.list(custom("others", "Other")))[0] == 404
    await api.undefine("things")
    assert (await api.definition("others"))["status"]["acceptedNames"]["shortNames"] == ["th"]
    assert (await api.list(custom("others", "Other")))[0] == 200


async def test_a_bundle_without_certificates_keeps_a_definition_from_being_established() -> None:
    api = CrdApi()
    client = {"url": "https://example.com", "caBundle": "bm9uc2Vuc2U="}
    webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
    body = things()
    body["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    await api.define(body)
    established = (await api.definition("things"))["status"]["conditions"][1]
    assert (established["status"], established["reason"]) == ("False", "InvalidCABundle")


async def test_versions_differ_in_their_subresources_and_columns() -> None:
    api = CrdApi()
    column = {"name": "A", "type": "string", "jsonPath": ".spec.a"}
    newer = version(FIELD, "v2", storage=False, subresources={"status": {}}, additionalPrinterColumns=[column])
    await api.define(things(version(FIELD, "v1"), newer))
    one, two = (api.core.registry.find(GROUP, name, "things") for name in ("v1", "v2"))
    assert one is not None
    assert two is not None
    assert (one.has_status, two.has_status) == (False, True)
    assert [item.name for item in two.columns] == ["A"]
    assert [item.name for item in one.columns] == ["Age"]
    assert one.versions == ("v2", "v1")


class Doubler:
    """Converts by doubling `a` on the way to v2 and halving it on the way back."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, str]] = []
        self.refusal = ""

    async def convert(self, definition: Any, objects: Sequence[Any], version: str) -> list[Any]:
        self.calls.append((len(objects), version))
        if self.refusal:
            raise errors.plain_failure(self.refusal)
        made = []
        for obj in objects:
            text = obj["spec"]["a"]
            text = text * 2 if version == "v2" else text[: len(text) // 2]
            made.append({**obj, "apiVersion": f"{GROUP}/{version}", "spec": {"a": text, "strange": 1}})
        return made


def converting() -> Any:
    body = things(version(FIELD), version(FIELD, "v2", storage=False))
    webhook = {"clientConfig": {"url": "https://example.com"}, "conversionReviewVersions": ["v1"]}
    body["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    return body


async def test_conversion_by_webhook() -> None:
    """Every verb in a version that is not stored, and none of them for the stored one."""
    doubler = Doubler()
    api = CrdApi(conversion=doubler)
    await api.define(converting())
    newer = custom("things", "Thing", "v2")
    await api.create(THINGS, thing("a"))
    await api.get(THINGS, "a")
    assert doubler.calls == []
    assert (await api.get(newer, "a"))[1]["spec"] == {"a": "xx"}
    code, made = await api.create(newer, thing("b", "v2", {"a": "yyyy"}))
    assert (code, made["apiVersion"], made["spec"]) == (201, f"{GROUP}/v2", {"a": "yyyy"})
    assert (await api.get(THINGS, "b"))[1]["spec"] == {"a": "yy"}
    doubler.calls.clear()
    listed = (await api.list(newer))[1]["items"]
    assert [item["spec"]["a"] for item in listed] == ["xx", "yyyy"]
    assert doubler.calls == [(2, "v2")]
    _, patched = await api.patch(newer, "b", {"spec": {"a": "zz"}})
    assert patched["spec"] == {"a": "zz"}
    assert (await api.get(THINGS, "b"))[1]["spec"] == {"a": "z"}
    start = str(api.core.storage.version)
    await api.patch(THINGS, "a", {"spec": {"a": "w"}})
    assert [obj["spec"]["a"] for _, obj in await api.events_since(newer, start)] == ["ww"]
    assert [obj["spec"]["a"] for _, obj in await api.events_since(newer, "0")] == ["ww", "zz"]
    assert (await api.delete(newer, "a"))[0] == 200
    assert (await api.get(THINGS, "a"))[0] == 404


async def test_a_conversion_that_fails() -> None:
    doubler = Doubler()
    api = CrdApi(conversion=doubler)
    await api.define(converting())
    newer = custom("things", "Thing", "v2")
    await api.create(THINGS, thing("a"))
    doubler.refusal = "conversion webhook failed"
    for answer in (
        await api.get(newer, "a"),
        await api.list(newer),
        await api.create(newer, thing("b", "v2")),
        await api.patch(newer, "a", {"spec": {"a": "y"}}),
        await api.delete(newer, "a"),
    ):
        assert (answer[0], answer[1]["message"]) == (500, "conversion webhook failed")
    assert (await api.get(THINGS, "b"))[0] == 404
    ((kind, status),) = await api.events_since(newer, "0")
    assert (kind, status["message"]) == ("ERROR", "conversion webhook failed")


async def test_without_a_caller_a_conversion_says_so() -> None:
    api = CrdApi()
    await api.define(converting())
    await api.create(THINGS, thing("a"))
    code, answer = await api.get(custom("things", "Thing", "v2"), "a")
    assert (code, answer["message"]) == (
        500,
        f"conversion webhook for {GROUP}/v1, Kind=Thing failed: this server calls no webhooks",
    )


async def test_what_is_warned_of() -> None:
    api = CrdApi()
    schema = with_spec({"a": {"type": "string", "format": "odd", RULES: [{"rule": "true"}]}})
    kind = definition_kind()
    with warnings.collect() as texts:
        sent = kind.default({**things(version(schema, deprecated=True)), "metadata": {"name": f"things.{GROUP}"}})
        assert kind.validate(kind.prepare_create(sent), None) == []
    assert texts == [
        'unrecognized format "odd"',
        "spec.versions[v1]: x-kubernetes-validations are kept but not evaluated by this server",
    ]
    await api.define(things(version(schema, deprecated=True)))
    served = api.core.registry.find(GROUP, "v1", "things")
    assert served is not None
    with warnings.collect() as texts:
        obj = thing("a", finalizers=["plain"])
        served.validate(served.default(obj), None)
    assert texts == [
        f"{GROUP}/v1 Thing is deprecated",
        'metadata.finalizers: "plain": prefer a domain-qualified finalizer name to avoid accidental conflicts with '
        "other finalizer writers",
    ]


async def test_closed_definitions_listen_no_more() -> None:
    api = CrdApi()
    await api.define(things())
    api.definitions.close()
    await api.create(CUSTOM_RESOURCE_DEFINITIONS, definition("others", "Other", version(FIELD)))
    assert (await api.list(THINGS))[0] == 200
    assert (await api.list(custom("others", "Other")))[0] == 404
    Definitions(api.core)
    assert (await api.list(custom("others", "Other")))[0] == 200


@pytest.mark.parametrize("title", DEFINITIONS)
async def test_every_definition_is_answered(title: str) -> None:
    """Whatever is sent, there is an answer, and what is accepted can be served."""
    api = CrdApi()
    code, answer = await api.create(CUSTOM_RESOURCE_DEFINITIONS, DEFINITIONS[title])
    assert code in (201, 422, 400), answer
    if code == 422:
        assert answer["details"]["causes"]
