"""The server over real connections: objects, forms, streams, limits, and the end."""

from __future__ import annotations

import asyncio
import gzip
import json
from datetime import timedelta
from pathlib import Path

import aiohttp
import pytest
import yaml

from kruise.api.native.config import CONFIG_MAPS
from kruise.local.apicore import warnings
from kruise.local.apicore.admitting import AdmissionRequest
from kruise.local.apicore.serving import MAX_BODY
from kruise.local.server import LocalServer, kubeconfig
from kruise.machinery.client import kubeconfig as client_config
from kruise.machinery.client.client import Client
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.clock import ManualClock
from tests.local.server.harness import (
    CMS,
    PARTIAL,
    PARTIALS,
    PODS,
    TABLE,
    WDS,
    cm,
    identity,
    line_of,
    pod,
    serving,
    widget,
)

MERGE = "application/merge-patch+json"


async def test_an_object_lives_and_dies() -> None:
    async with serving() as api:
        made = await api.post(CMS, cm("a"))
        assert made.code == 201
        assert made.json["metadata"]["namespace"] == "default"
        changed = await api.send("PATCH", f"{CMS}/a", {"data": {"b": "2"}}, sent_as=MERGE)
        assert changed.json["data"] == {"a": "1", "b": "2"}
        replaced = await api.send("PUT", f"{CMS}/a", cm("a", labels={"x": "1"}))
        assert (replaced.code, replaced.json["data"]) == (200, {"a": "1"})
        listed = await api.get(f"{CMS}?labelSelector=x%3D1")
        assert [item["metadata"]["name"] for item in listed.json["items"]] == ["a"]
        assert (await api.send("DELETE", f"{CMS}/a")).json["status"] == "Success"
        missing = await api.get(f"{CMS}/a")
        assert (missing.code, missing.json["reason"]) == (404, "NotFound")


async def test_every_answer_has_an_audit_id_and_is_not_cached() -> None:
    async with serving() as api:
        first, second = await api.get(CMS), await api.get(f"{CMS}/missing")
        assert first.headers["Audit-Id"] != second.headers["Audit-Id"]
        assert {answer.headers["Cache-Control"] for answer in (first, second)} == {"no-cache, private"}
        assert (await api.get(CMS, Audit_Id="mine")).headers["Audit-Id"] == "mine"


async def test_fields_are_owned_by_who_sends_them() -> None:
    async with serving() as api:
        made = await api.post(f"{CMS}?fieldManager=me", cm("a"))
        assert [entry["manager"] for entry in made.json["metadata"]["managedFields"]] == ["me"]
        by_agent = await api.post(CMS, cm("b"))
        assert [entry["manager"] for entry in by_agent.json["metadata"]["managedFields"]] == ["test"]


async def test_bodies_and_answers_may_be_yaml() -> None:
    async with serving() as api:
        body = b"metadata: {name: a}\ndata:\n  when: 2020-01-01\n  yes: 'no'\n"
        made = await api.post(CMS, body, sent_as="application/yaml", accept="application/yaml")
        assert made.headers["Content-Type"] == "application/yaml"
        shown = yaml.safe_load(made.raw)
        assert shown["data"] == {"when": "2020-01-01", "true": "no"}, "dates stay texts, keys become texts"
        assert shown["metadata"]["managedFields"], "owners are written out"


async def test_a_body_that_is_too_large() -> None:
    async with serving() as api:
        refused = await api.post(CMS, b"x" * (MAX_BODY + 1))
        assert (refused.code, refused.json["message"]) == (413, f"Request entity too large: limit is {MAX_BODY}")
        assert (await api.get(CMS)).code == 200, "the server goes on"


async def test_large_answers_are_compressed_for_those_who_can_read_it() -> None:
    async with serving() as api:
        for name in "abc":
            await api.post(CMS, {**cm(name), "data": {"x": "y" * 500_000}})
        connector = aiohttp.TCPConnector(ssl=api.session.connector._ssl)  # type: ignore[union-attr]
        async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as plain:
            async with plain.get(api.url(CMS), headers={"Accept-Encoding": "gzip"}) as response:
                packed = await response.read()
                assert response.headers["Content-Encoding"] == "gzip"
            async with plain.get(api.url(CMS), headers={"Accept-Encoding": "identity"}) as response:
                assert "Content-Encoding" not in response.headers
                whole = await response.read()
        assert len(packed) < len(whole) / 10
        assert gzip.decompress(packed) == whole


async def test_people_get_lines() -> None:
    async with serving() as api:
        await api.post(CMS, cm("a"))
        assert (await api.get(f"{CMS}/a")).raw.count(b"\n") == 1
        assert (await api.get(f"{CMS}/a?pretty=true")).raw.count(b"\n") > 5
        assert (await api.get(f"{CMS}/a", User_Agent="curl/8")).raw.count(b"\n") > 5
        assert (await api.get(f"{CMS}/a?pretty=false", User_Agent="curl/8")).raw.count(b"\n") == 1


async def test_warnings_are_headers() -> None:
    async def warn(request: AdmissionRequest) -> None:
        warnings.warn('mind the "gap"\nhere')
        warnings.warn("once")
        warnings.warn("once")

    async with serving() as api:
        api.core.admission.validating.append(warn)
        made = await api.post(CMS, cm("a"))
        assert made.headers.getall("Warning") == ['299 - "mind the \\"gap\\" here"', '299 - "once"']
        assert "Warning" not in (await api.get(CMS)).headers


@pytest.mark.parametrize("mode", ["", "Warn", "Strict", "Ignore"])
async def test_unknown_fields(mode: str) -> None:
    async with serving() as api:
        body = b'{"metadata":{"name":"a","odd":1},"data":{"x":"1"},"data":{"x":"2"},"spec":{}}'
        answer = await api.post(f"{CMS}?fieldValidation={mode}", body)
        texts = ['unknown field "metadata.odd"', 'unknown field "spec"', 'duplicate field "data"']
        if mode == "Strict":
            text = 'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: '
            assert (answer.code, answer.json["message"]) == (400, text + ", ".join(texts))
        else:
            shown = ["299 - " + json.dumps(text) for text in texts] if mode != "Ignore" else []
            assert (answer.code, answer.headers.getall("Warning", [])) == (201, shown)


async def test_paths_that_lead_nowhere() -> None:
    async with serving() as api:
        for path in ("/nowhere", "/apis/nowhere.io", "/apis/nowhere.io/v1/things", "/apis/toys.kruise.io/v1/dolls"):
            answer = await api.get(path)
            assert (answer.code, answer.raw) == (404, b"404 page not found\n")
        for path in ("/api/v2", "/apis/apps/v2", f"{CMS}/a/b", f"{CMS}/a/b/c", "/api/v1/configmaps/a"):
            assert (await api.get(path)).json["message"] == "the server could not find the requested resource"
        for method, path in (("PUT", CMS), ("POST", f"{CMS}/a"), ("DELETE", "/api/v1/namespaces"), ("OPTIONS", CMS)):
            assert (await api.send(method, path, {})).json["reason"] == "MethodNotAllowed"


async def test_tables_of_objects_and_lists() -> None:
    clock = ManualClock()
    async with serving(clock=clock) as api:
        await api.post(CMS, cm("a"))
        clock.advance(90)
        await api.post(CMS, cm("b"))
        listed = (await api.get(CMS, TABLE)).json
        assert [heading["name"] for heading in listed["columnDefinitions"]] == ["Name", "Data", "Age"]
        assert [row["cells"] for row in listed["rows"]] == [["a", 1, "90s"], ["b", 1, "0s"]]
        assert listed["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
        assert (await api.get(f"{CMS}/a?includeObject=None", TABLE)).json["rows"][0]["object"] is None
        whole = (await api.get(f"{CMS}?includeObject=Object", TABLE)).json["rows"][0]["object"]
        assert (whole["kind"], whole["apiVersion"], whole["data"]) == ("ConfigMap", "v1", {"a": "1"})
        paged = (await api.get(f"{CMS}?limit=1", TABLE)).json["metadata"]
        assert paged["remainingItemCount"] == 1
        assert paged["continue"]


async def test_tables_of_custom_kinds_have_their_columns() -> None:
    async with serving() as api:
        await api.post(WDS, widget("w"))
        table = (await api.get(WDS, TABLE)).json
        assert [row["cells"] for row in table["rows"]] == [["w", 3]]
        assert "continue" not in table["metadata"]
        assert (await api.get(WDS)).json["metadata"]["continue"] == ""


async def test_metadata_alone() -> None:
    async with serving() as api:
        await api.post(CMS, cm("a"))
        assert set((await api.get(f"{CMS}/a", PARTIAL)).json) == {"kind", "apiVersion", "metadata"}
        listed = (await api.get(CMS, PARTIALS)).json
        assert (listed["kind"], [set(item) for item in listed["items"]]) == (
            "PartialObjectMetadataList",
            [{"kind", "apiVersion", "metadata"}],
        )
        assert (await api.get(CMS, PARTIAL)).code == 406
        assert (await api.get(f"{CMS}/a", PARTIALS)).code == 406
        assert (await api.get(f"{CMS}/a", "application/vnd.kubernetes.protobuf")).code == 406


# Watches


async def test_a_watch_tells_what_happens() -> None:
    async with serving() as api, api.stream(f"{CMS}?watch=true&resourceVersion=0") as watch:
        assert watch.headers["Transfer-Encoding"] == "chunked"
        await api.post(CMS, cm("a"))
        await api.send("PATCH", f"{CMS}/a", {"data": {"b": "2"}}, sent_as=MERGE)
        await api.send("DELETE", f"{CMS}/a")
        seen = [await line_of(watch) for _ in range(3)]
        assert [event["type"] for event in seen] == ["ADDED", "MODIFIED", "DELETED"]


async def test_a_watch_ends_at_its_timeout() -> None:
    async with serving() as api, api.stream(f"{CMS}?watch=1&timeoutSeconds=1") as watch:
        assert await line_of(watch) is None


async def test_a_watch_of_tables_has_headings_once() -> None:
    async with serving() as api:
        await api.post(CMS, cm("a"))
        async with api.stream(f"{CMS}?watch=1&resourceVersion=0", TABLE) as watch:
            first = await line_of(watch)
            await api.post(CMS, cm("b"))
            second = await line_of(watch)
        assert len(first["object"]["columnDefinitions"]) == 3
        assert second["object"]["columnDefinitions"] is None
        assert [event["object"]["rows"][0]["cells"][0] for event in (first, second)] == ["a", "b"]


async def test_a_watch_that_begins_with_the_state() -> None:
    async with serving() as api:
        await api.post(CMS, cm("a"))
        query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        async with api.stream(f"{CMS}?{query}", PARTIAL) as watch:
            added, mark = await line_of(watch), await line_of(watch)
        assert (added["type"], added["object"]["kind"]) == ("ADDED", "PartialObjectMetadata")
        assert mark["type"] == "BOOKMARK"
        assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_one_object_is_watched_on_the_old_path() -> None:
    async with serving() as api, api.stream("/api/v1/watch/namespaces/default/configmaps/b") as watch:
        await api.post(CMS, cm("a"))
        await api.post(CMS, cm("b"))
        assert (await line_of(watch))["object"]["metadata"]["name"] == "b"


async def test_a_watch_that_is_refused() -> None:
    async with serving() as api:
        assert (await api.get(f"{CMS}?watch=1&labelSelector=x+in")).code == 400
        assert (await api.get(f"{CMS}?watch=1", "application/yaml")).code == 406
        assert api.server.open_watches == 0


async def test_who_hangs_up_is_forgotten() -> None:
    async with serving() as api:
        async with api.stream(f"{CMS}?watch=1") as watch:
            assert watch.status == 200
            assert api.server.open_watches == 1
            watch.close()
        for _ in range(500):
            if not api.server.open_watches:
                break
            await asyncio.sleep(0.01)
        assert api.server.open_watches == 0


async def test_stopping_ends_watches_in_order() -> None:
    async with serving() as api:
        url = api.url("/version")
        async with api.stream(f"{CMS}?watch=1") as first, api.stream(f"{PODS}?watch=1", TABLE) as second:
            async with asyncio.timeout(1):
                await asyncio.gather(api.server.stop(), first.read(), second.read())
            assert (await first.read(), await second.read()) == (b"", b"")
        with pytest.raises(aiohttp.ClientConnectorError):
            await api.stranger.get(url)


async def test_many_watches() -> None:
    """Two hundred watchers of the same objects all see them."""
    async with serving() as api:
        connector = aiohttp.TCPConnector(ssl=api.session.connector._ssl, limit=0)  # type: ignore[union-attr]
        async with aiohttp.ClientSession(connector=connector) as session:
            url = api.url(f"{CMS}?watch=1&resourceVersion=0")
            watches = await asyncio.gather(*(session.get(url) for _ in range(200)))
            await api.post(CMS, cm("a"))
            seen = await asyncio.gather(*(line_of(watch) for watch in watches))
            assert {event["object"]["metadata"]["name"] for event in seen} == {"a"}
            for watch in watches:
                watch.close()


# The rest


async def test_our_own_client_works_with_the_kubeconfig(tmp_path: Path) -> None:
    async with serving() as api:
        await api.post(CMS, cm("a"))
        file = tmp_path / "config"
        file.write_text(kubeconfig(identity(), api.server.url))
        transport = HttpTransport(client_config.load(file, env={}))
        client = Client(transport)
        try:
            page = await client.list(CONFIG_MAPS, "default")
            assert [item.metadata.name for item in page.items] == ["a"]
            async with client.watch(CONFIG_MAPS, "default", resource_version=page.resource_version) as events:
                await api.post(CMS, cm("b"))
                assert (await anext(events)).object.metadata.name == "b"
        finally:
            await client.close()


async def test_a_taken_port_is_said() -> None:
    async with serving() as api:
        other = LocalServer(api.core, certificates=identity(), port=api.server.port)
        with pytest.raises(OSError, match="address already in use"):
            await other.start()
        await other.stop()


async def test_a_failure_inside_is_a_status(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(request: AdmissionRequest) -> None:
        raise ZeroDivisionError("surprise")

    async with serving() as api:
        api.core.admission.validating.append(fail)
        answer = await api.post(CMS, cm("a"))
        assert (answer.code, answer.json["reason"]) == (500, "InternalError")
        assert "surprise" in answer.json["message"]
        assert "request failed" in caplog.text


async def test_exec_says_that_it_cannot() -> None:
    async with serving() as api:
        await api.post(PODS, pod("p"))
        for part in ("exec", "attach", "portforward"):
            answer = await api.post(f"{PODS}/p/{part}", None)
            assert answer.code == 501
            assert f"{part} is not supported by the local cluster" in answer.json["message"]
        assert (await api.post(f"{PODS}/missing/exec", None)).code == 404


async def test_ages_follow_the_clock_of_the_core() -> None:
    clock = ManualClock()
    async with serving(clock=clock) as api:
        await api.post(CMS, cm("a"))
        clock.advance(timedelta(days=3, hours=2).total_seconds())
        assert (await api.get(f"{CMS}/a", TABLE)).json["rows"][0]["cells"][-1] == "3d2h"
