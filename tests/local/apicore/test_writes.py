"""Create, update and patch: what the server writes, what it keeps, what it refuses.

The texts and codes are compared with a real server elsewhere; here stands what must hold without one.
"""

from __future__ import annotations

import pytest

from kruise.api.native.events import LEASES
from kruise.api.native.nodes import NAMESPACES
from kruise.local.apicore import MemoryStorage
from kruise.machinery.client.requests import PatchType
from kruise.machinery.clock import ManualClock
from tests.local.harness import CONFIG_MAPS, PODS, WIDGETS, Api, cm, pod, widget

DRY = (("dryRun", "All"),)


async def test_create_fills_in_what_only_the_server_knows() -> None:
    api = Api()
    code, made = await api.create(WIDGETS, {**widget("a", uid="mine", generation=9), "status": {"ready": 1}})
    assert code == 201
    assert made["kind"] == "Widget"
    assert made["apiVersion"] == "toys.kruise.io/v1"
    metadata = made["metadata"]
    assert metadata["namespace"] == "default"
    assert metadata["creationTimestamp"] == "2030-01-01T00:00:00Z"
    assert (metadata["generation"], metadata["resourceVersion"]) == (1, "1")
    assert len(metadata["uid"]) == 36
    assert "status" not in made
    assert (await api.get(WIDGETS, "a"))[1] == made


async def test_same_seed_same_uids_and_names() -> None:
    async def names(seed: int) -> list[str]:
        api = Api(seed=seed)
        made = [(await api.create(WIDGETS, {"metadata": {"generateName": "w-"}}))[1] for _ in range(3)]
        return [item["metadata"]["name"] + item["metadata"]["uid"] for item in made]

    assert await names(7) == await names(7)
    assert await names(7) != await names(8)
    assert len(set(await names(7))) == 3


async def test_generated_names_are_tried_again() -> None:
    """Two cores with one seed choose the same names; the second one goes on to free ones, but not for ever."""
    storage = MemoryStorage()
    first, second = Api(storage=storage), Api(storage=storage)
    body = {"metadata": {"generateName": "w-"}}
    taken = {(await first.create(WIDGETS, body))[1]["metadata"]["name"] for _ in range(3)}
    code, made = await second.create(WIDGETS, body)
    assert code == 201
    assert made["metadata"]["name"] not in taken
    third, fourth = Api(storage=storage, seed=5), Api(storage=storage, seed=5)
    for _ in range(8):
        await third.create(WIDGETS, body)
    code, refused = await fourth.create(WIDGETS, body)
    assert (code, refused["reason"]) == (409, "AlreadyExists")
    assert "was not able to generate a unique name" in refused["message"]
    assert (await fourth.create(WIDGETS, body))[0] == 201


async def test_generated_names_are_cut_to_63_characters() -> None:
    api = Api()
    _, made = await api.create(WIDGETS, {"metadata": {"generateName": "x" * 80}})
    assert len(made["metadata"]["name"]) == 63


async def test_no_op_writes_make_no_version() -> None:
    api = Api()
    _, made = await api.create(CONFIG_MAPS, cm("a"))
    for answer in (
        await api.update(CONFIG_MAPS, "a", cm("a")),
        await api.patch(CONFIG_MAPS, "a", {"data": {"a": "1"}}),
        await api.patch(CONFIG_MAPS, "a", {}),
        await api.patch(CONFIG_MAPS, "a", [], content_type=PatchType.JSON),
    ):
        assert answer == (200, made)
    assert api.core.storage.version == 1


async def test_one_and_true_are_different() -> None:
    api = Api()
    await api.create(WIDGETS, widget("a", {"on": 1}))
    _, changed = await api.patch(WIDGETS, "a", {"spec": {"on": True}})
    assert (changed["spec"], changed["metadata"]["resourceVersion"]) == ({"on": True}, "2")


async def test_generation_counts_changes_of_content_only() -> None:
    api = Api()
    await api.create(WIDGETS, widget("a"))

    async def generation(patch: object, **more: str) -> int:
        return (await api.patch(WIDGETS, "a", patch, **more))[1]["metadata"]["generation"]  # type: ignore[no-any-return]

    assert await generation({"metadata": {"labels": {"x": "1"}}}) == 1
    assert await generation({"status": {"ready": 1}}, subresource="status") == 1
    assert await generation({"spec": {"size": 2}}) == 2
    assert await generation({"metadata": {"generation": 77}}) == 2
    assert await generation({"other": "content"}) == 3


async def test_status_and_content_do_not_mix() -> None:
    api = Api()
    await api.create(WIDGETS, widget("a"))
    _, plain = await api.patch(WIDGETS, "a", {"spec": {"size": 2}, "status": {"ready": 1}})
    assert "status" not in plain
    _, status = await api.patch(
        WIDGETS,
        "a",
        {"spec": {"size": 3}, "status": {"ready": 1}, "metadata": {"labels": {"x": "1"}}},
        subresource="status",
    )
    assert status["status"] == {"ready": 1}
    assert status["spec"] == {"size": 2}
    assert "labels" not in status["metadata"], "custom kinds change nothing but the status there"


async def test_a_pods_status_write_may_carry_labels_and_annotations() -> None:
    """Two conditions, a label and its time in one write."""
    api = Api()
    await api.create(PODS, pod("a", labels={"app": "x"}))
    patch = {
        "metadata": {"labels": {"state": "Normal"}, "annotations": {"when": "now"}},
        "spec": {"nodeName": "n2"},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }
    code, made = await api.patch(PODS, "a", patch, subresource="status", content_type=PatchType.STRATEGIC)
    assert code == 200
    assert made["metadata"]["labels"] == {"app": "x", "state": "Normal"}
    assert made["metadata"]["annotations"] == {"when": "now"}
    assert made["spec"]["nodeName"] == "n1"
    assert made["status"]["phase"] == "Pending"
    assert [(item["type"], item["status"]) for item in made["status"]["conditions"]] == [("Ready", "True")]


async def test_strategic_patches_merge_by_key() -> None:
    api = Api()
    await api.create(PODS, pod("a"))
    patch = {"spec": {"containers": [{"name": "main", "image": "nginx:2"}]}}
    _, made = await api.patch(PODS, "a", patch, content_type=PatchType.STRATEGIC)
    assert [(item["name"], item["image"]) for item in made["spec"]["containers"]] == [("main", "nginx:2")]
    assert made["metadata"]["generation"] == 2


@pytest.mark.parametrize("subresource", ["", "status"])
async def test_guards_in_patches(subresource: str) -> None:
    api = Api()
    _, made = await api.create(PODS, pod("a"))
    uid, version = made["metadata"]["uid"], made["metadata"]["resourceVersion"]

    async def patch(metadata: dict[str, str], mark: str) -> int:
        body = {"metadata": {**metadata, "labels": {"mark": mark}}, "status": {"message": mark}}
        return (await api.patch(PODS, "a", body, subresource=subresource))[0]  # type: ignore[no-any-return]

    assert await patch({"uid": uid, "resourceVersion": version}, "one") == 200
    assert await patch({"uid": uid}, "two") == 200
    assert await patch({"uid": "another"}, "three") == 422
    assert await patch({"resourceVersion": version}, "four") == 409
    test = [{"op": "test", "path": "/metadata/uid", "value": "another"}]
    assert (await api.patch(PODS, "a", test, content_type=PatchType.JSON, subresource=subresource))[0] == 422
    assert (await api.get(PODS, "a"))[1]["metadata"]["resourceVersion"] == "3"


async def test_a_uid_guards_no_status_write_of_a_custom_kind() -> None:
    """As on a real server, which takes nothing over from the metadata there; versions and JSON tests do guard."""
    api = Api()
    await api.create(WIDGETS, widget("a"))
    body = {"metadata": {"uid": "another"}, "status": {"ready": 1}}
    assert (await api.patch(WIDGETS, "a", body, subresource="status"))[0] == 200
    assert (await api.patch(WIDGETS, "a", body))[0] == 422
    stale = {"metadata": {"resourceVersion": "1"}, "status": {"ready": 2}}
    assert (await api.patch(WIDGETS, "a", stale, subresource="status"))[0] == 409
    test = [{"op": "test", "path": "/metadata/uid", "value": "another"}]
    assert (await api.patch(WIDGETS, "a", test, subresource="status", content_type=PatchType.JSON))[0] == 422


async def test_dry_run_changes_nothing() -> None:
    api = Api()
    code, made = await api.create(WIDGETS, widget("a"), query=DRY)
    assert (code, "resourceVersion" in made["metadata"]) == (201, False)
    assert (await api.get(WIDGETS, "a"))[0] == 404
    await api.create(WIDGETS, widget("a"))
    _, changed = await api.patch(WIDGETS, "a", {"spec": {"size": 5}}, query=DRY)
    assert (changed["spec"], changed["metadata"]["generation"]) == ({"size": 5}, 2)
    assert (await api.delete(WIDGETS, "a", query=DRY))[0] == 200
    assert (await api.get(WIDGETS, "a"))[1]["spec"] == {"size": 1}
    assert api.core.storage.version == 1


async def test_updates_that_may_create() -> None:
    """Leases and events, as on a real server."""
    api = Api()
    code, made = await api.update(LEASES, "l", {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}})
    assert (code, made["metadata"]["resourceVersion"]) == (201, "1")
    code, refused = await api.update(LEASES, "l", {"metadata": {"name": "l"}, "spec": {}})
    assert (code, refused["reason"]) == (422, "Invalid"), "leases are not updated without a version"


async def test_namespaces_where_they_are_required() -> None:
    api = Api(require_namespaces=True)
    code, refused = await api.create(CONFIG_MAPS, cm("a"))
    assert (code, refused["message"]) == (404, 'namespaces "default" not found')
    await api.create(NAMESPACES, {"metadata": {"name": "default", "finalizers": ["kruise.io/stay"]}}, namespace="")
    assert (await api.create(CONFIG_MAPS, cm("a")))[0] == 201
    await api.delete(NAMESPACES, "default", namespace="")
    code, refused = await api.create(CONFIG_MAPS, cm("b"))
    assert (code, refused["reason"]) == (403, "Forbidden")
    assert refused["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    assert (await api.patch(CONFIG_MAPS, "a", {"data": {"a": "2"}}))[0] == 200, "what is there may still change"


async def test_server_side_apply_is_refused_with_what_is_accepted() -> None:
    api = Api()
    await api.create(CONFIG_MAPS, cm("a"))
    code, refused = await api.patch(CONFIG_MAPS, "a", {}, content_type=PatchType.APPLY)
    assert (code, refused["reason"]) == (415, "UnsupportedMediaType")
    assert "application/strategic-merge-patch+json" in refused["message"]
    code, refused = await api.patch(WIDGETS, "a", {}, content_type=PatchType.STRATEGIC)
    assert code == 415
    assert "strategic" not in refused["message"]


async def test_bodies_beyond_the_limit() -> None:
    api = Api()
    code, refused = await api.create(CONFIG_MAPS, cm("a", {"big": "x" * (3 * 1024 * 1024)}))
    assert (code, refused["reason"]) == (413, "RequestEntityTooLarge")
    many = [{"op": "test", "path": "/a", "value": 1}] * 10_001
    await api.create(CONFIG_MAPS, cm("a"))
    code, refused = await api.patch(CONFIG_MAPS, "a", many, content_type=PatchType.JSON)
    assert (code, refused["reason"]) == (413, "RequestEntityTooLarge")


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"nonsense", b'"text"', b'{"metadata": []}', b'{"metadata": {"labels": [1]}}', b"\xff\xfe", b"7"],
)
async def test_bodies_that_are_no_objects(body: bytes) -> None:
    api = Api()
    code, refused = await api.create(CONFIG_MAPS, body)
    assert (code, refused["reason"]) == (400, "BadRequest")
    await api.create(CONFIG_MAPS, cm("a"))
    assert (await api.update(CONFIG_MAPS, "a", body))[0] == 400


@pytest.mark.parametrize(
    "metadata",
    [
        {"finalizers": "x"},
        {"finalizers": [1]},
        {"ownerReferences": {}},
        {"ownerReferences": [1]},
        {"annotations": {"a": 1}},
        {"generateName": 1},
    ],
)
async def test_metadata_of_the_wrong_type(metadata: dict[str, object]) -> None:
    code, refused = await Api().create(CONFIG_MAPS, {"metadata": {"name": "a", **metadata}})
    assert (code, refused["reason"]) == (400, "BadRequest")
    assert next(iter(metadata)) in refused["message"]


async def test_nulls_and_empty_values_say_nothing() -> None:
    api = Api()
    body = {"metadata": {"name": "a", "labels": {}, "finalizers": None, "creationTimestamp": None}, "data": None}
    _, made = await api.create(CONFIG_MAPS, body)
    assert sorted(made) == ["apiVersion", "kind", "metadata"]
    assert sorted(made["metadata"]) == ["creationTimestamp", "name", "namespace", "resourceVersion", "uid"]


async def test_time_comes_from_the_clock() -> None:
    clock = ManualClock()
    api = Api(clock=clock)
    clock.advance(3661.9)
    _, made = await api.create(CONFIG_MAPS, cm("a"))
    assert made["metadata"]["creationTimestamp"] == "2030-01-01T01:01:01Z"
