"""Lists: selectors, pages that stay consistent, resource versions."""

from __future__ import annotations

from typing import Any

from tests.local.harness import CONFIG_MAPS, PODS, WIDGETS, Api, cm, pod, widget


def names(answer: Any) -> list[str]:
    code, body = answer
    assert code == 200, body
    return [item["metadata"]["name"] for item in body["items"]]


async def filled(count: int = 7) -> Api:
    api = Api()
    for number in range(count):
        await api.create(CONFIG_MAPS, cm(f"c{number}", labels={"even": str(number % 2 == 0).lower()}))
    return api


async def test_list_names_its_version_and_kind() -> None:
    api = await filled(2)
    code, body = await api.list(CONFIG_MAPS)
    assert (code, body["kind"], body["apiVersion"]) == (200, "ConfigMapList", "v1")
    assert body["metadata"] == {"resourceVersion": "2"}
    assert "kind" not in body["items"][0], "items of native kinds do not repeat their kind"


async def test_items_of_custom_kinds_carry_their_kind() -> None:
    api = Api()
    await api.create(WIDGETS, widget("a"))
    _, body = await api.list(WIDGETS)
    assert (body["kind"], body["items"][0]["kind"]) == ("WidgetList", "Widget")


async def test_selectors() -> None:
    api = await filled(4)
    assert names(await api.list(CONFIG_MAPS, ("labelSelector", "even=true"))) == ["c0", "c2"]
    assert names(await api.list(CONFIG_MAPS, ("fieldSelector", "metadata.name!=c0"))) == ["c1", "c2", "c3"]
    both = (("labelSelector", "even=true"), ("fieldSelector", "metadata.name=c2"))
    assert names(await api.list(CONFIG_MAPS, *both)) == ["c2"]


async def test_field_selectors_of_pods() -> None:
    api = Api()
    await api.create(PODS, pod("a", node="n1"))
    await api.create(PODS, pod("b", node=""))
    assert names(await api.list(PODS, ("fieldSelector", "spec.nodeName=n1"))) == ["a"]
    assert names(await api.list(PODS, ("fieldSelector", "spec.nodeName="))) == ["b"]
    assert names(await api.list(PODS, ("fieldSelector", "status.phase=Pending,spec.hostNetwork=false"))) == ["a", "b"]


async def test_namespaces_are_apart_and_together() -> None:
    api = await filled(2)
    await api.create(CONFIG_MAPS, cm("other"), namespace="elsewhere")
    assert names(await api.list(CONFIG_MAPS, namespace="elsewhere")) == ["other"]
    assert names(await api.list(CONFIG_MAPS, namespace="")) == ["c0", "c1", "other"]


async def pages(api: Api, limit: int, *query: tuple[str, str]) -> tuple[list[str], set[str]]:
    found: list[str] = []
    versions: set[str] = set()
    token: tuple[tuple[str, str], ...] = ()
    for turn in range(100):
        answer = await api.list(CONFIG_MAPS, ("limit", str(limit)), *query, *token)
        found += names(answer)
        metadata = answer[1]["metadata"]
        versions.add(metadata["resourceVersion"])
        if "continue" not in metadata:
            return found, versions
        token = (("continue", metadata["continue"]),)
        # The world goes on between pages: none of this may show up.
        await api.create(CONFIG_MAPS, cm(f"a{turn}"))
        await api.create(CONFIG_MAPS, cm(f"z{turn}", labels={"even": "true"}))
        await api.delete(CONFIG_MAPS, "c6")
        await api.patch(CONFIG_MAPS, "c4", {"metadata": {"labels": {"even": "no"}}})
    raise AssertionError("the pages do not end")


async def test_pages_show_one_moment() -> None:
    api = await filled()
    assert await pages(api, 2) == ([f"c{number}" for number in range(7)], {"7"})


async def test_pages_with_a_selector_show_one_moment() -> None:
    api = await filled()
    assert await pages(api, 1, ("labelSelector", "even=true")) == (["c0", "c2", "c4", "c6"], {"7"})


async def test_remaining_count_only_without_selector() -> None:
    api = await filled()
    _, plain = await api.list(CONFIG_MAPS, ("limit", "3"))
    _, selected = await api.list(CONFIG_MAPS, ("limit", "3"), ("labelSelector", "even"))
    _, last = await api.list(CONFIG_MAPS, ("limit", "7"))
    assert plain["metadata"]["remainingItemCount"] == 4
    assert "remainingItemCount" not in selected["metadata"]
    assert "continue" not in last["metadata"], "a full last page is the last"


async def test_compacted_page_offers_a_way_on() -> None:
    """410 with a token that goes on at the newest state."""
    api = await filled()
    _, first = await api.list(CONFIG_MAPS, ("limit", "3"))
    await api.create(CONFIG_MAPS, cm("c9"))
    api.core.storage.compact(api.core.storage.version)
    code, refused = await api.list(CONFIG_MAPS, ("limit", "9"), ("continue", first["metadata"]["continue"]))
    assert (code, refused["reason"]) == (410, "Expired")
    assert "start a new list without the continue parameter, or use the continue token" in refused["message"]
    answer = await api.list(CONFIG_MAPS, ("limit", "9"), ("continue", refused["metadata"]["continue"]))
    assert names(answer) == ["c3", "c4", "c5", "c6", "c9"]
    assert answer[1]["metadata"]["resourceVersion"] == "8"


async def test_resource_versions_of_lists() -> None:
    api = await filled(3)
    exact = (("resourceVersion", "2"), ("resourceVersionMatch", "Exact"))
    assert names(await api.list(CONFIG_MAPS, *exact)) == ["c0", "c1"]
    assert names(await api.list(CONFIG_MAPS, ("resourceVersion", "2"), ("limit", "5"))) == ["c0", "c1"]
    assert names(await api.list(CONFIG_MAPS, ("resourceVersion", "2"))) == ["c0", "c1", "c2"], "not older than"
    assert names(await api.list(CONFIG_MAPS, ("resourceVersion", "0"))) == ["c0", "c1", "c2"]
    code, refused = await api.list(CONFIG_MAPS, ("resourceVersion", "99"))
    assert (code, refused["reason"]) == (504, "Timeout")
    assert refused["message"] == "Timeout: Too large resource version: 99, current: 3"
    api.core.storage.compact(3)
    code, refused = await api.list(CONFIG_MAPS, *exact)
    assert (code, refused["reason"]) == (410, "Expired")


async def test_tokens_that_nobody_made() -> None:
    api = await filled(1)
    for token in ("!", "AAAAA", "bm9uc2Vuc2U", "e30", "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ"):
        code, refused = await api.list(CONFIG_MAPS, ("continue", token))
        assert (code, refused["reason"]) == (400, "BadRequest")
        assert refused["message"].startswith("invalid continue token: continue key is not valid")
    code, refused = await api.list(CONFIG_MAPS, ("limit", "many"))
    assert code == 400
    assert refused["message"] == 'strconv.ParseInt: parsing "many": invalid syntax'
