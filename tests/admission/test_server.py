"""The HTTPS server over real TLS on loopback: paths, bad input, certificates that change, shutdown."""

from __future__ import annotations

import asyncio
import json
import ssl
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kruise.admission.answering import Answerer
from kruise.admission.certificates import issue
from kruise.admission.conversion import Converters
from kruise.admission.decisions import Allow, Change, HandlerView, Mutation, NeedsReads
from kruise.admission.registry import MutatingHandler, Registry, ValidatingHandler
from kruise.admission.review import AdmissionRequest
from kruise.admission.server import AdmissionServer
from kruise.admission.tls import ServingCertificate
from kruise.api.native.config import CONFIG_MAPS
from kruise.machinery.clock import RealClock
from kruise.machinery.plan import Action, Outcome, Target
from tests.admission.helpers import config_map, patch_of, post, response_of, review_body, serving


def stamp(request: AdmissionRequest, view: HandlerView) -> Mutation:
    return Change(object={**request.body(), "stamp": True})


MUTATE = MutatingHandler("/mutate", stamp)


def conversion_body(*objects: Any, version: str = "apiextensions.k8s.io/v1") -> bytes:
    request = {"uid": "c-1", "desiredAPIVersion": "toys.example/v2", "objects": objects}
    return json.dumps({"kind": "ConversionReview", "apiVersion": version, "request": request}).encode()


async def test_a_review_is_answered_over_tls(tmp_path: Path) -> None:  # MGR-30
    async with serving(tmp_path, MUTATE) as local, local.session() as session:
        code, body = await post(session, f"{local.url}/mutate?timeout=10s", review_body(config_map()))
    assert code == 200
    assert patch_of(response_of(body)) == [{"op": "add", "path": "/stamp", "value": True}]


async def test_healthz_is_200_and_empty(tmp_path: Path) -> None:  # MGR-30
    async with serving(tmp_path) as local, local.session() as session, session.get(f"{local.url}/healthz") as answer:
        assert (answer.status, await answer.read()) == (200, b"")


async def test_conversion_needs_no_store(tmp_path: Path) -> None:
    converters = Converters()
    converters.register("toys.example", "Toy", lambda obj, version: {**obj, "seen": version})
    toys = [
        {"apiVersion": "toys.example/v1", "kind": "Toy", "metadata": {"name": f"t{n}"}, "blob": "x" * 20_000}
        for n in range(120)
    ]
    async with serving(tmp_path, converters=converters) as local, local.session() as session:
        code, body = await post(session, f"{local.url}/convert?timeout=30s", conversion_body(*toys))
        assert code == 200
        response = response_of(body)
        assert response["result"] == {"status": "Success"}
        assert [item["metadata"]["name"] for item in response["convertedObjects"]] == [f"t{n}" for n in range(120)]
        assert all(item["seen"] == "v2" for item in response["convertedObjects"])
        # MGR-53: a failure is an answer, with a message.
        code, body = await post(
            session, f"{local.url}/convert", conversion_body({"kind": "Nobody", "apiVersion": "x/1"})
        )
    assert code == 200
    assert response_of(body)["result"]["status"] == "Failure"
    assert "Nobody" in response_of(body)["result"]["message"]


async def test_calls_that_are_no_reviews_get_a_status(tmp_path: Path) -> None:
    async with serving(tmp_path, MUTATE) as local, local.session() as session:
        answers = {
            "no json": await post(session, f"{local.url}/mutate", b"{"),
            "other type": await post(session, f"{local.url}/mutate", review_body({}), **{"Content-Type": "text/plain"}),
            "no path": await post(session, f"{local.url}/nobody", review_body({})),
            "convert": await post(session, f"{local.url}/convert", b"[]"),
        }
        async with session.get(f"{local.url}/mutate") as answer:
            answers["get"] = answer.status, await answer.read()
    assert {name: code for name, (code, _) in answers.items()} == {
        "no json": 400,
        "other type": 400,
        "no path": 404,
        "convert": 400,
        "get": 405,
    }
    for code, body in answers.values():
        status = json.loads(body)
        assert (status["kind"], status["status"], status["code"]) == ("Status", "Failure", code)
        assert status["message"]


async def test_large_objects_pass_and_endless_ones_do_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kruise.admission.server.REVIEW_LIMIT", 8 * 1024 * 1024)
    async with serving(tmp_path, MUTATE) as local, local.session(keep_alive=False) as session:
        big = config_map(data={"blob": "x" * 3_500_000})
        code, body = await post(session, f"{local.url}/mutate", review_body(big, old=big))
        assert code == 200
        assert patch_of(response_of(body)) == [{"op": "add", "path": "/stamp", "value": True}]
        code, body = await post(session, f"{local.url}/mutate", review_body({"blob": "x" * 9_000_000}))
        assert code == 413
        assert json.loads(body)["reason"] == "RequestEntityTooLarge"


async def test_deep_nesting_and_huge_numbers_are_answered(tmp_path: Path) -> None:
    review = review_body(config_map(marker="HERE")).decode()
    deep = "[" * 100_000 + "]" * 100_000
    nearly = '{"a":' * 900 + "1" + "}" * 900
    cases = {
        deep: {400},
        nearly: {200, 400},
        "1e999": {200, 400},
        "1" * 5000: {200, 400},
        "-0": {200},
        '"\\ud800"': {200, 400},
    }
    async with serving(tmp_path, MUTATE) as local, local.session() as session:
        for text, allowed in cases.items():
            code, body = await post(session, f"{local.url}/mutate", review.replace('"HERE"', text).encode())
            assert code in allowed, text[:20]
            if code == 200:
                assert "allowed" in response_of(body)
        code, body = await post(session, f"{local.url}/mutate", review.encode())
    assert response_of(body)["allowed"] is True


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)
FIELDS = ["uid", "kind", "resource", "object", "oldObject", "userInfo", "dryRun", "operation", "namespace", "options"]


@st.composite
def spoiled_reviews(draw: st.DrawFn) -> bytes:
    """A good review with one field replaced by anything, cut off or damaged somewhere."""
    body = json.loads(draw(st.sampled_from([review_body(config_map()), conversion_body({"kind": "Toy"})])))
    if draw(st.booleans()):
        body["request"][draw(st.sampled_from([*FIELDS, "objects", "desiredAPIVersion"]))] = draw(JSON)
    else:
        body[draw(st.sampled_from(["kind", "apiVersion", "request"]))] = draw(JSON)
    data = json.dumps(body).encode("utf-8", "surrogatepass")
    if draw(st.booleans()):
        data = data[: draw(st.integers(0, len(data)))]
    if draw(st.booleans()):
        at = draw(st.integers(0, len(data)))
        data = data[:at] + draw(st.binary(max_size=4)) + data[at:]
    return data


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(bodies=st.lists(spoiled_reviews() | st.binary(max_size=200), min_size=1, max_size=25))
def test_no_input_stops_the_server(tmp_path: Path, bodies: list[bytes]) -> None:
    """Every body on every path gets an HTTP answer with JSON in it, and the next good review is served."""

    async def main() -> None:
        async with serving(tmp_path, MUTATE) as local, local.session() as session:
            for body in bodies:
                for path in ("/mutate", "/convert"):
                    code, answer = await post(session, local.url + path, body)
                    assert code in (200, 400)
                    assert json.loads(answer)["kind"] in ("Status", "AdmissionReview", "ConversionReview")
            code, answer = await post(session, f"{local.url}/mutate", review_body(config_map()))
            assert response_of(answer)["allowed"] is True

    asyncio.run(main())


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    noise=st.lists(
        st.binary(max_size=300)
        | st.binary(max_size=50).map(lambda tail: b"POST /mutate HTTP/1.1\r\nContent-Length: 99999\r\n" + tail)
        | st.binary(max_size=50).map(
            lambda tail: b"POST /mutate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + tail
        ),
        min_size=1,
        max_size=5,
    )
)
def test_no_bytes_stop_the_server(tmp_path: Path, noise: list[bytes]) -> None:
    """Below HTTP: anything sent over TLS, and anything sent without it."""

    async def main() -> None:
        async with serving(tmp_path, MUTATE) as local:
            trusted = ssl.create_default_context(cadata=local.material.bundle.decode())
            for data in noise:
                for context in (trusted, None):
                    _, writer = await asyncio.open_connection("127.0.0.1", local.server.port, ssl=context)
                    writer.write(data)
                    await writer.drain()
                    writer.close()
            async with local.session() as session:
                code, _ = await post(session, f"{local.url}/mutate", review_body(config_map()))
                assert code == 200

    asyncio.run(main())


async def test_an_observer_sees_path_code_and_time(tmp_path: Path) -> None:
    seen: list[tuple[str, int, float]] = []
    async with (
        serving(tmp_path, MUTATE, observe=lambda *call: seen.append(call)) as local,
        local.session() as session,
    ):
        await post(session, f"{local.url}/mutate", review_body(config_map()))
        await post(session, f"{local.url}/mutate", b"nonsense")
        await post(session, f"{local.url}/somebody-scans", b"nonsense")
    assert [(path, code) for path, code, _ in seen] == [("/mutate", 200), ("/mutate", 400)]
    assert all(0 <= seconds < 5 for _, _, seconds in seen)


async def test_the_timeout_of_the_query_reaches_the_handler(tmp_path: Path) -> None:
    class Never:
        async def carry_out(self, action: Action) -> Outcome:
            raise AssertionError

        async def read(self, target: Target) -> Any:
            await asyncio.sleep(3600)

    reading = ValidatingHandler("/v", lambda r, v: NeedsReads(targets=(Target(CONFIG_MAPS, "a", "b"),)))
    answerer = Answerer(RealClock(), hands=Never())
    async with serving(tmp_path, reading, answerer=answerer) as local, local.session() as session:
        code, body = await post(session, f"{local.url}/v?timeout=100ms", review_body(config_map()))
    assert code == 200
    assert "no decision within 0.1 s, while reading configmaps a/b" in response_of(body)["status"]["message"]


async def test_a_new_certificate_is_served_without_restart_and_without_a_dropped_request(tmp_path: Path) -> None:
    """MGR-30: new connections see the new certificate, connections that exist go on, no call fails."""
    async with serving(tmp_path, MUTATE) as local:
        first = local.material
        second = issue("127.0.0.1", RealClock().now())
        both = first.bundle + second.bundle
        stop = asyncio.Event()

        async def load(keep_alive: bool) -> int:
            done = 0
            async with local.session(bundle=both, keep_alive=keep_alive) as session:
                while done == 0 or not stop.is_set():
                    code, _ = await post(session, f"{local.url}/mutate", review_body(config_map()))
                    assert code == 200
                    done += 1
            return done

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(load(keep_alive)) for keep_alive in (True, True, False, False)]
            for round_ in range(10):
                local.use(second if round_ % 2 == 0 else first)
                await asyncio.sleep(0.03)
            local.use(second)
            stop.set()
        assert all(task.result() > 0 for task in tasks)
        async with local.session(bundle=second.bundle) as session:
            assert (await post(session, f"{local.url}/mutate", review_body(config_map())))[0] == 200
        async with local.session(bundle=first.bundle) as session:
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await post(session, f"{local.url}/mutate", review_body(config_map()))


async def test_a_broken_pair_leaves_the_old_certificate_in_place(tmp_path: Path) -> None:
    async with serving(tmp_path, MUTATE) as local:
        (tmp_path / "bad").write_text("no certificate")
        with pytest.raises(ssl.SSLError):
            local.server.certificate.load(tmp_path / "bad", tmp_path / "bad")
        async with local.session() as session:
            assert (await post(session, f"{local.url}/mutate", review_body(config_map())))[0] == 200


async def test_before_the_first_certificate_handshakes_fail_and_later_ones_work(tmp_path: Path) -> None:
    server = AdmissionServer(Registry(MUTATE), Answerer(RealClock()), Converters(), certificate=ServingCertificate())
    await server.start("127.0.0.1", 0)
    try:
        assert not server.certificate.is_loaded
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.ClientConnectorError):
                await session.get(f"https://127.0.0.1:{server.port}/healthz", ssl=False)
    finally:
        await server.stop()


async def test_shutdown_finishes_what_is_being_answered_and_takes_nothing_new(tmp_path: Path) -> None:
    begun = asyncio.Event()
    go_on = asyncio.Event()

    class Slow:
        async def carry_out(self, action: Action) -> Outcome:
            raise AssertionError

        async def read(self, target: Target) -> Any:
            begun.set()
            await go_on.wait()

    target = Target(CONFIG_MAPS, "a", "b")
    handler = ValidatingHandler("/v", lambda r, v: Allow() if v.was_read(target) else NeedsReads(targets=(target,)))
    async with serving(tmp_path, handler, answerer=Answerer(RealClock(), hands=Slow())) as local:
        url = local.url
        async with local.session() as session, local.session() as late:
            question = asyncio.create_task(post(session, f"{url}/v", review_body(config_map())))
            await begun.wait()
            stopping = asyncio.create_task(local.server.stop())
            await asyncio.sleep(0.05)
            with pytest.raises(aiohttp.ClientConnectorError):
                await post(late, f"{url}/v", review_body(config_map()))
            assert not stopping.done()
            go_on.set()
            code, body = await question
            await stopping
    assert code == 200
    assert response_of(body)["allowed"] is True


async def test_whoever_leaves_answers_on_new_connections_and_lets_nobody_keep_one(tmp_path: Path) -> None:
    async with serving(tmp_path, MUTATE) as local, local.session() as session:

        async def ask() -> tuple[bool, bool]:
            async with session.post(
                f"{local.url}/mutate", data=review_body(config_map()), headers={"Content-Type": "application/json"}
            ) as answer:
                return patch_of(response_of(await answer.read())) != [], answer.headers.get("Connection") == "close"

        assert await ask() == (True, False)
        local.server.leave()
        # The connection that is there is answered a last time, and each later call makes a new one.
        assert [await ask() for _ in range(3)] == [(True, True)] * 3
        async with session.get(f"{local.url}/healthz") as answer:
            assert (answer.status, answer.headers.get("Connection")) == (200, "close")
