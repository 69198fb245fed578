"""The client over a scripted transport: requests as values in, typed objects and errors out."""

from __future__ import annotations

import asyncio
import gc
import json
import tracemalloc
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kruise.api.meta import ObjectMeta
from kruise.api.native.apps import DEPLOYMENTS
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import (
    AlreadyExistsError,
    BadAnswerError,
    ConflictError,
    GoneError,
    InternalError,
    InvalidError,
    NotFoundError,
    RequestTimeoutError,
    TooManyRequestsError,
    TransportError,
)
from kruise.machinery.client.requests import PatchType, Request, Verb
from kruise.machinery.client.retry import RetryPolicy
from kruise.machinery.clock import VirtualClock, run_virtual
from kruise.machinery.codec import Raw, Struct
from tests.support.scripted_transport import ScriptedTransport, answer, failure


class Toy(Struct):
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: Raw = Raw(b"{}")
    sizes: tuple[int, ...] = ()


TOYS = Resource("toys.io", "v1", "toys", "Toy", True, Toy)
BARE: Resource[Any] = Resource("toys.io", "v1", "toys", "Toy")


def pod(name: str = "a", version: str = "1", **more: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": "n", "uid": f"uid-{name}", "resourceVersion": version}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": meta} | more


def page(*items: Any, version: str = "10", token: str = "", remaining: int | None = None, kind: str = "PodList") -> Any:
    meta: dict[str, Any] = {"resourceVersion": version}
    if token:
        meta["continue"] = token
    if remaining is not None:
        meta["remainingItemCount"] = remaining
    return answer({"kind": kind, "apiVersion": "v1", "metadata": meta, "items": list(items)})


def event(kind: str, obj: Any) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode()


def query(request: Request) -> dict[str, str]:
    return dict(request.query)


def body(request: Request) -> Any:
    assert request.body is not None
    return json.loads(request.body)


class TestVerbs:
    async def test_get(self) -> None:
        transport = ScriptedTransport(answer(pod()))
        found = await Client(transport).get(PODS, "a", "n", resource_version="5", timeout=3)
        assert found.metadata.uid == "uid-a"
        assert transport.requests == [Request(Verb.GET, PODS, "n", "a", query=(("resourceVersion", "5"),), timeout=3)]

    async def test_create_update_patch(self) -> None:
        """Bodies may be mappings, structs, lists or bytes; the field manager goes along."""
        transport = ScriptedTransport(answer(pod()))
        client = Client(transport, field_manager="me")
        await client.create(PODS, pod(), "n", dry_run=True)
        await client.update(PODS, "a", json.dumps(pod()).encode(), "n", subresource="status")
        await client.patch(PODS, "a", [{"op": "test", "path": "/a"}], "n", patch_type=PatchType.JSON)
        await client.patch(
            PODS, "a", Toy(kind="Toy"), "n", patch_type=PatchType.APPLY, field_manager="other", force=True
        )
        create, update, patch, apply = transport.requests
        assert (create.verb, create.name, query(create)) == (Verb.CREATE, "", {"fieldManager": "me", "dryRun": "All"})
        assert (update.verb, update.subresource, body(update)) == (Verb.UPDATE, "status", pod())
        assert (patch.content_type, body(patch)) == ("application/json-patch+json", [{"op": "test", "path": "/a"}])
        assert (apply.content_type, query(apply)) == (
            "application/apply-patch+yaml",
            {"fieldManager": "other", "force": "true"},
        )
        assert body(apply) == {"kind": "Toy"}

    async def test_texts_are_written_as_a_server_writes_them_again(self) -> None:
        """Free parts of an object are kept as text: a patch of a ControllerRevision whose data came in another spelling
        would be refused for ever, since its data may not change."""
        transport = ScriptedTransport(answer(pod(), 201))
        await Client(transport).create(PODS, {"metadata": {"annotations": {"run": "a && b > c < d"}}}, "n")
        [request] = transport.requests
        assert request.body is not None
        assert b"a \\u0026\\u0026 b \\u003e c \\u003c d" in request.body
        assert body(request)["metadata"]["annotations"]["run"] == "a && b > c < d"

    async def test_delete_answers(self) -> None:
        """Either the object or a Status with its uid."""
        status = {"kind": "Status", "status": "Success", "details": {"name": "a", "kind": "pods", "uid": "u1"}}
        transport = ScriptedTransport(answer(status), answer(pod()))
        client = Client(transport)
        deleted = await client.delete(PODS, "a", "n")
        assert (deleted.object, deleted.uid) == (None, "u1")
        deleted = await client.delete(
            PODS,
            "a",
            "n",
            uid="u",
            resource_version="4",
            grace_period_seconds=0,
            propagation="Foreground",
            dry_run=True,
        )
        assert deleted.object is not None
        assert deleted.uid == "uid-a"
        plain, guarded = transport.requests
        assert plain.body is None
        assert body(guarded) == {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": "u", "resourceVersion": "4"},
            "gracePeriodSeconds": 0,
            "propagationPolicy": "Foreground",
            "dryRun": ["All"],
        }

    async def test_delete_collection(self) -> None:
        transport = ScriptedTransport(page())
        await Client(transport).delete_collection(PODS, "n", labels="a=b", propagation="Background")
        (request,) = transport.requests
        assert (request.verb, request.path) == (Verb.DELETE_COLLECTION, "/api/v1/namespaces/n/pods")
        assert query(request) == {"labelSelector": "a=b"}
        assert body(request)["propagationPolicy"] == "Background"

    async def test_evict_and_bind(self) -> None:
        transport = ScriptedTransport(answer({"kind": "Status", "status": "Success"}, 201))
        client = Client(transport)
        await client.evict(PODS, "a", "n", uid="u", grace_period_seconds=5)
        await client.bind(PODS, "a", "n", node="node-1", uid="u")
        evict, bind = transport.requests
        assert evict.path.endswith("/pods/a/eviction")
        assert body(evict)["kind"] == "Eviction"
        assert body(evict)["deleteOptions"] == {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": "u"},
            "gracePeriodSeconds": 5,
        }
        assert bind.path.endswith("/pods/a/binding")
        assert body(bind)["target"]["name"] == "node-1"
        assert body(bind)["metadata"]["uid"] == "u"

    async def test_scale(self) -> None:
        """The scale subresource answers with a kind of its own."""
        scale = {"kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": 3}, "status": {"replicas": 1}}
        transport = ScriptedTransport(answer(scale))
        client = Client(transport)
        assert (await client.get_scale(DEPLOYMENTS, "d", "n")).spec.replicas == 3
        assert (await client.set_scale(DEPLOYMENTS, "d", 5, "n")).status.replicas == 1
        assert (await client.get(DEPLOYMENTS, "d", "n", subresource="scale")).metadata.name == "d"
        assert body(transport.requests[1]) == {"spec": {"replicas": 5}}
        assert transport.requests[1].subresource == "scale"

    async def test_close(self) -> None:
        transport = ScriptedTransport(answer(pod()))
        async with Client(transport):
            assert not transport.closed
        assert transport.closed

    @pytest.mark.parametrize(
        "call",
        [
            lambda client: client.delete(PODS, "", "n"),
            lambda client: client.get(PODS, "", "n"),
            lambda client: client.get(PODS, "a"),
            lambda client: client.delete(PODS, "../nodes", "n"),
            lambda client: client.delete(PODS, "a", ".."),
            lambda client: client.delete_collection(PODS),
            lambda client: client.patch(NODES, "a%2Fb", {}),
            lambda client: client.create(PODS, {}, "n", subresource="status"),
            lambda client: client.create(PODS, {}, "n", name="a", subresource="eviction"),
            lambda client: client.patch(PODS, "a", {}, "n", patch_type=PatchType.APPLY),
            lambda client: client.list_page(PODS, "n", resource_version="0"),
        ],
    )
    async def test_calls_that_mean_something_else(self, call: Callable[[Client], Awaitable[Any]]) -> None:
        """A missing name would turn the delete of one object into the delete of all; nothing is sent."""
        transport = ScriptedTransport(answer(pod()))
        with pytest.raises(ValueError, match=r"pods|nodes|post"):
            await call(Client(transport))
        assert transport.requests == []


class TestAnswers:
    async def test_another_kind(self) -> None:
        transport = ScriptedTransport(answer(pod() | {"kind": "Node"}))
        with pytest.raises(BadAnswerError, match="a Node where a Pod was expected"):
            await Client(transport).get(PODS, "a", "n")

    async def test_a_resource_without_a_struct(self) -> None:
        transport = ScriptedTransport(answer({"kind": "Toy", "metadata": {"name": "a"}, "spec": {"x": 1}}))
        assert (await Client(transport).get(BARE, "a", "n")).metadata.name == "a"

    async def test_nulls_of_go_beside_raw_parts(self) -> None:
        """`null` lists count as absent; raw parts stay as they are, nulls included."""
        text = b'{"kind":"Toy","metadata":{"name":"a","labels":null},"sizes":null,"spec":{"a":null,"b":[1]}}'
        found = await Client(ScriptedTransport(answer(text))).get(TOYS, "a", "n")
        assert found.sizes == ()
        assert json.loads(bytes(found.spec)) == {"a": None, "b": [1]}

    async def test_typed_errors(self) -> None:
        cases: list[tuple[Any, type[Exception]]] = [
            (failure(404, "NotFound", "pods a"), NotFoundError),
            (failure(409, "AlreadyExists"), AlreadyExistsError),
            (failure(409, "Conflict"), ConflictError),
            (failure(422, "Invalid"), InvalidError),
            (failure(410, "Expired"), GoneError),
            (answer(b"<html>", 500), InternalError),
        ]
        for step, expected in cases:
            with pytest.raises(expected):
                await Client(ScriptedTransport(step)).get(PODS, "a", "n")

    async def test_causes_name_the_fields(self) -> None:
        cause = {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.containers[0].name"}
        status = {"kind": "Status", "code": 422, "reason": "Invalid", "details": {"causes": [cause]}}
        with pytest.raises(InvalidError) as caught:
            await Client(ScriptedTransport(answer(status, 422))).create(PODS, {}, "n")
        assert [found.field for found in caught.value.causes] == ["spec.containers[0].name"]


class TestList:
    async def test_pages(self) -> None:
        """All pages are one list; the server's own version is never asked to be 0."""
        transport = ScriptedTransport(page(pod("a"), pod("b"), token="t1", remaining=1), page(pod("c"), version="10"))
        whole = await Client(transport).list(PODS, "n", labels="x=y", fields="spec.nodeName=", page_size=2)
        assert [item.metadata.name for item in whole.items] == ["a", "b", "c"]
        assert (whole.resource_version, whole.continue_token) == ("10", "")
        first, second = map(query, transport.requests)
        assert first == {"labelSelector": "x=y", "fieldSelector": "spec.nodeName=", "limit": "2"}
        assert second == first | {"continue": "t1"}

    async def test_one_page(self) -> None:
        transport = ScriptedTransport(page(pod("a"), token="t", remaining=7))
        found = await Client(transport).list_page(PODS, limit=1, resource_version="3")
        assert (found.continue_token, found.remaining) == ("t", 7)
        assert transport.requests[0].path == "/api/v1/pods"
        assert query(transport.requests[0]) == {"limit": "1", "resourceVersion": "3"}

    async def test_expired_in_the_middle(self) -> None:
        """Begins again with nothing of the first attempt kept."""
        transport = ScriptedTransport(
            page(pod("a"), token="t"), failure(410, "Expired"), page(pod("b"), token="t2"), page(pod("c"))
        )
        whole = await Client(transport).list(PODS, "n")
        assert [item.metadata.name for item in whole.items] == ["b", "c"]

    async def test_expiring_again_and_again(self) -> None:
        """In the end everything is asked for at once."""
        rounds = [page(pod("a"), token="t"), failure(410, "Expired")] * 3
        transport = ScriptedTransport(*rounds, page(pod("z")))
        whole = await Client(transport).list(PODS, "n")
        assert [item.metadata.name for item in whole.items] == ["z"]
        assert "limit" not in query(transport.requests[-1])

    async def test_refused_at_once(self) -> None:
        transport = ScriptedTransport(failure(410, "Expired"))
        with pytest.raises(GoneError):
            await Client(transport).list(PODS, "n")
        assert len(transport.requests) == 1

    async def test_wrong_kinds(self) -> None:
        with pytest.raises(BadAnswerError, match="a Status where a PodList"):
            await Client(ScriptedTransport(page(kind="Status"))).list(PODS)
        with pytest.raises(BadAnswerError, match=r"holds a Node \(a\)"):
            await Client(ScriptedTransport(page(pod() | {"kind": "Node"}))).list(PODS)

    async def test_the_unreadable_item_is_named(self) -> None:
        bad = pod("b") | {"spec": {"nodeName": 7}}
        with pytest.raises(BadAnswerError, match=r"item 1 \(n/b\).*nodeName"):
            await Client(ScriptedTransport(page(pod("a"), bad))).list(PODS)

    async def test_items_without_a_kind_and_null_items(self) -> None:
        """Native lists leave the kind out; an empty list of Go may be null."""
        bare = {key: value for key, value in pod().items() if key != "kind"}
        assert len((await Client(ScriptedTransport(page(bare))).list(PODS)).items) == 1
        null = answer({"kind": "PodList", "metadata": {"resourceVersion": "1"}, "items": None})
        assert (await Client(ScriptedTransport(null)).list(PODS)).items == ()

    async def test_raw_parts_do_not_keep_the_page(self) -> None:
        """One object kept from a page of megabytes must cost its own size only."""
        toys = [
            {"kind": "Toy", "metadata": {"name": str(number)}, "spec": {"pad": "x" * 50_000}} for number in range(40)
        ]
        tracemalloc.start()
        transport = ScriptedTransport(page(*toys, kind="ToyList"))
        kept = (await Client(transport).list(TOYS)).items[0]
        del transport
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(bytes(kept.spec)) > 50_000
        assert held < 500_000


class TestWatch:
    async def collect(self, transport: ScriptedTransport, resource: Resource[Any] = PODS, **options: Any) -> list[Any]:
        found = []
        async with Client(transport).watch(resource, "n", resource_version="7", **options) as events:
            async for item in events:
                found.append((item.type, item.object.metadata.name, item.object.metadata.resource_version))
        return found

    async def test_events(self) -> None:
        lines = [
            event("ADDED", pod("a", "8")),
            event("MODIFIED", pod("a", "9")),
            event("DELETED", pod("a", "10")),
            event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": "11"}, "spec": {"containers": None}}),
        ]
        transport = ScriptedTransport(lines=lines)
        assert await self.collect(transport, labels="x", timeout_seconds=60) == [
            ("ADDED", "a", "8"),
            ("MODIFIED", "a", "9"),
            ("DELETED", "a", "10"),
            ("BOOKMARK", "", "11"),
        ]
        (request,) = transport.requests
        assert request.verb is Verb.WATCH
        assert query(request) == {
            "watch": "true",
            "labelSelector": "x",
            "resourceVersion": "7",
            "timeoutSeconds": "60",
            "allowWatchBookmarks": "true",
        }

    async def test_gone(self) -> None:
        status = {"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": "too old"}
        for resource in (PODS, TOYS):
            transport = ScriptedTransport(lines=[event("ERROR", status)])
            with pytest.raises(GoneError, match="too old"):
                await self.collect(transport, resource)
            assert transport.open_streams == 0

    @pytest.mark.parametrize(
        ("line", "words"),
        [
            (event("ADDED", pod() | {"kind": "Node"}), "ADDED event of Node n/a: a Pod was expected"),
            (event("ADDED", pod() | {"spec": {"nodeName": 7}}), "n/a cannot be read: .*nodeName"),
            (event("CHANGED", pod()), "'CHANGED' is no type of event"),
            (event("ERROR", {"code": "x"}), "ERROR without a status"),
            (b'{"type":"ADDED","object":{"kind', "a line is no event"),
            (b"<html>", "a line is no event .*<html>"),
            (b"null", "a line is no event"),
            (b"\xff\xfe", "a line is no event"),
        ],
    )
    async def test_what_is_no_event(self, line: bytes, words: str) -> None:
        """What came before is not lost."""
        found = []
        transport = ScriptedTransport(lines=[event("ADDED", pod("ok")), line])

        async def read() -> None:
            async with Client(transport).watch(PODS, "n", resource_version="7") as events:
                async for item in events:
                    found.append(item.object.metadata.name)

        with pytest.raises(BadAnswerError, match=words):
            await read()
        assert found == ["ok"]

    async def test_torn(self) -> None:
        transport = ScriptedTransport(lines=[event("ADDED", pod())], ending=TransportError("torn", sent=True))
        with pytest.raises(TransportError, match="torn"):
            await self.collect(transport)
        assert len(transport.requests) == 1

    async def test_nulls_in_a_watched_object(self) -> None:
        line = event("ADDED", {"kind": "Toy", "metadata": {"name": "a"}, "sizes": None, "spec": {"x": None}})
        assert await self.collect(ScriptedTransport(lines=[line]), TOYS) == [("ADDED", "a", "")]

    async def test_leaving_early(self) -> None:
        transport = ScriptedTransport(lines=[event("ADDED", pod(str(number))) for number in range(5)])
        async with Client(transport).watch(PODS, "n", resource_version="1", bookmarks=False) as events:
            assert (await anext(events)).object.metadata.name == "0"
        assert transport.open_streams == 0
        assert "allowWatchBookmarks" not in query(transport.requests[0])


class TestRetries:
    """On virtual time: nothing here waits."""

    def run(self, transport: ScriptedTransport, call: Callable[[Client], Awaitable[Any]]) -> tuple[Any, float]:
        async def main() -> tuple[Any, float]:
            loop = asyncio.get_running_loop()
            client = Client(transport, clock=VirtualClock(loop), retry=RetryPolicy(jitter=0))
            try:
                result = await call(client)
            except Exception as error:  # noqa: BLE001 - the test looks at whatever came
                result = error
            return result, loop.time()

        return run_virtual(main())

    def test_reads_go_on(self) -> None:
        transport = ScriptedTransport(
            TransportError("reset", sent=True), failure(503), failure(429, retry_after="2"), answer(pod())
        )
        result, took = self.run(transport, lambda client: client.get(PODS, "a", "n"))
        assert result.metadata.name == "a"
        assert took == pytest.approx(0.1 + 0.3 + 2)

    def test_attempts_are_bounded(self) -> None:
        transport = ScriptedTransport(failure(503))
        result, _ = self.run(transport, lambda client: client.get(PODS, "a", "n"))
        assert result.code == 503
        assert len(transport.requests) == 5

    def test_an_unknown_outcome_is_never_repeated(self) -> None:
        for error in (TransportError("reset", sent=True), RequestTimeoutError("late", sent=True)):
            transport = ScriptedTransport(error)
            result, _ = self.run(transport, lambda client: client.create(PODS, pod(), "n"))
            assert result is error
            assert len(transport.requests) == 1

    def test_a_write_that_was_not_sent_or_turned_away(self) -> None:
        transport = ScriptedTransport(
            TransportError("refused", sent=False), failure(429, retry_after="1"), answer(pod(), 201)
        )
        result, took = self.run(transport, lambda client: client.create(PODS, pod(), "n"))
        assert result.metadata.name == "a"
        assert took == pytest.approx(0.1 + 1)

    def test_a_refused_eviction_comes_back_at_once(self) -> None:
        transport = ScriptedTransport(failure(429, "TooManyRequests", retry_after="10"))
        result, took = self.run(transport, lambda client: client.evict(PODS, "a", "n"))
        assert isinstance(result, TooManyRequestsError)
        assert result.retry_after == 10
        assert (took, len(transport.requests)) == (0, 1)

    def test_the_timeout_covers_all_attempts(self) -> None:
        """Later attempts get what is left; where nothing is left the last error comes out."""
        transport = ScriptedTransport(failure(429, retry_after="2"), failure(429, retry_after="2"), answer(pod()))
        result, took = self.run(transport, lambda client: client.get(PODS, "a", "n", timeout=3))
        assert isinstance(result, TooManyRequestsError)
        assert took == 2
        assert [request.timeout for request in transport.requests] == [3, 1]
