"""The HTTP transport against servers that behave, and servers that do not."""

from __future__ import annotations

import asyncio
import gzip
import json
import ssl
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiohttp import web
from cryptography import x509

from kruise.api.native.pod import PODS
from kruise.machinery.client.client import Client
from kruise.machinery.client.config import CertificateError, ClusterConfig, CredentialError, Impersonation, Pem
from kruise.machinery.client.errors import (
    BadAnswerError,
    ForbiddenError,
    InternalError,
    RequestTimeoutError,
    TransportError,
    UnauthorizedError,
)
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.light import LightTransport
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.client.slim import SlimTransport
from kruise.machinery.clock import RealClock
from tests.support.stub_api import answers, pem_of, raw_server, server_context, stub_api

POD = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a", "namespace": "n", "uid": "1"}}
GET = Request(Verb.GET, PODS, "n", "a")
WATCH = Request(Verb.WATCH, PODS, "n", query=(("watch", "true"),))


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


KIND: type[HttpTransport] | type[LightTransport] | type[SlimTransport] = HttpTransport
"""The one that is tested."""


@pytest.fixture(params=[HttpTransport, LightTransport, SlimTransport], autouse=True)
def both(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What servers and managers use and what short commands use behave alike."""
    monkeypatch.setattr(sys.modules[__name__], "KIND", request.param)


def transport(url: str, *, timeout: float = 5.0, **settings: Any) -> HttpTransport | LightTransport | SlimTransport:
    return KIND(ClusterConfig(server=url, **settings), timeout=timeout, connect_timeout=2.0)


async def one(transport: HttpTransport | LightTransport | SlimTransport, request: Request = GET) -> Any:
    """Send one request and close."""
    try:
        return await transport.send(request)
    finally:
        await transport.close()


async def lines_of(
    transport: HttpTransport | LightTransport | SlimTransport, request: Request = WATCH
) -> AsyncIterator[bytes]:
    try:
        async with transport.stream(request) as lines:
            async for line in lines:
                yield line
    finally:
        await transport.close()


class TestPlain:
    async def test_headers_query_and_body(self) -> None:
        """What a write looks like on the wire."""
        async with stub_api(answers(POD, status=201)) as api:
            request = Request(
                Verb.PATCH, PODS, "n", "a", "status", (("fieldManager", "x y"),), b"{}", "application/merge-patch+json"
            )
            answer = await one(KIND(ClusterConfig(server=api.url), user_agent="me/1"), request)
        assert answer.status == 201
        assert json.loads(answer.body) == POD
        assert answer.headers["content-type"].startswith("application/json")
        asked = api.asked[0]
        assert (asked.method, asked.path) == ("PATCH", "/api/v1/namespaces/n/pods/a/status")
        assert asked.query == {"fieldManager": "x y"}
        assert asked.body == b"{}"
        assert asked.headers["Content-Type"] == "application/merge-patch+json"
        assert asked.headers["User-Agent"] == "me/1"
        assert "Authorization" not in asked.headers

    async def test_a_part_of_a_process_may_have_a_name_of_its_own(self) -> None:
        """DMN-9: requests and watches of a client that is called otherwise; the connection stays that of all."""
        async with stub_api(answers(POD)) as api:
            made = KIND(ClusterConfig(server=api.url), user_agent="me/1")
            whole = Client(made, field_manager="me")
            part = whole.called("me/part")
            for client in (whole, part, whole):
                await client.get(PODS, "a", "n")
            await part.close()
            await whole.get(PODS, "a", "n")
            await whole.close()
        assert [asked.headers["User-Agent"] for asked in api.asked] == ["me/1", "me/part", "me/1", "me/1"]
        assert part.field_manager == "me"

    async def test_what_was_held_up_does_not_leave_after_its_time(self) -> None:
        """A process that was frozen may find its connection ready before it looks at any timer."""

        class Frozen(RealClock):
            looks = 0

            def monotonic(self) -> float:
                self.looks += 1
                return self.looks * 100.0

        async with stub_api(answers(POD)) as api:
            late = HttpTransport(ClusterConfig(server=api.url), clock=Frozen(), timeout=5.0)
            with pytest.raises(RequestTimeoutError, match="before it could be sent") as caught:
                await one(late, Request(Verb.PATCH, PODS, "n", "a", body=b"{}"))
            assert caught.value.sent is False
            assert api.asked == []

    async def test_connections_are_kept(self) -> None:
        """One after the other needs one connection, many at once need more."""
        async with stub_api(answers(POD)) as api:
            connection = transport(api.url)
            for _ in range(5):
                await connection.send(GET)
            assert len({asked.connection for asked in api.asked}) == 1
            results = await asyncio.gather(*(connection.send(GET) for _ in range(100)))
            assert {result.status for result in results} == {200}
            await connection.close()

    async def test_path_prefix_and_strange_names(self) -> None:
        """Servers behind a prefix; what is no plain character in a name is escaped, not misread."""
        async with stub_api(answers(POD)) as api:
            await one(transport(api.url + "/k8s/clusters/c-1/"), Request(Verb.GET, PODS, "n", "a?b c"))
        assert api.asked[0].path == "/k8s/clusters/c-1/api/v1/namespaces/n/pods/a%3Fb%20c"
        assert api.asked[0].query == {}

    async def test_unix_socket(self, tmp_path: Path) -> None:
        async def handle(request: web.Request) -> web.StreamResponse:
            return web.json_response(POD)

        app = web.Application()
        app.router.add_get("/{tail:.*}", handle)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.UnixSite(runner, str(tmp_path / "s")).start()
        answer = await one(transport(f"unix://{tmp_path / 's'}"))
        await runner.cleanup()
        assert answer.status == 200

    async def test_basic_and_token(self) -> None:
        async with stub_api(answers(POD)) as api:
            await one(transport(api.url, username="u", password="p"))
            await one(transport(api.url, token="t"))
        assert [asked.headers["Authorization"] for asked in api.asked] == ["Basic dTpw", "Bearer t"]

    async def test_impersonation(self) -> None:
        """The configured user with groups; a request's own user replaces all of it."""
        who = Impersonation(user="jane", uid="7", groups=("a", "b"), extra=(("Some Key", ("v",)),))
        async with stub_api(answers(POD)) as api:
            connection = transport(api.url, impersonation=who)
            await connection.send(GET)
            await connection.send(Request(Verb.GET, PODS, "n", "a", impersonate="joe"))
            await connection.send(GET)
            await connection.close()
        first, second, third = (asked.headers for asked in api.asked)
        assert first["Impersonate-User"] == "jane"
        assert first.getall("Impersonate-Group") == ["a", "b"]
        assert (first["Impersonate-Uid"], first["Impersonate-Extra-Some%20Key"]) == ("7", "v")
        assert second["Impersonate-User"] == "joe"
        assert "Impersonate-Group" not in second
        assert third["Impersonate-User"] == "jane"

    async def test_only_lists_are_compressed(self) -> None:
        """Lists are worth it, small answers and watches are not; a cluster can say no."""

        async def handle(request: web.Request) -> web.StreamResponse:
            body = json.dumps(POD).encode()
            if request.headers["Accept-Encoding"] == "gzip":
                return web.Response(body=gzip.compress(body), headers={"Content-Encoding": "gzip"})
            return web.Response(body=body)

        listing = Request(Verb.LIST, PODS, "n")
        async with stub_api(handle) as api:
            connection = transport(api.url)
            assert json.loads((await connection.send(listing)).body) == POD
            assert json.loads((await connection.send(GET)).body) == POD
            await connection.close()
            await one(transport(api.url, disable_compression=True), listing)
        assert [asked.headers["Accept-Encoding"] for asked in api.asked] == ["gzip", "identity", "identity"]

    async def test_redirects_are_not_followed(self) -> None:
        """A redirect could carry the token to another server."""
        async with stub_api(answers(b"", status=302, headers={"Location": "http://elsewhere/"})) as api:
            client = Client(transport(api.url, token="t"))
            with pytest.raises(BadAnswerError, match="302 to http://elsewhere/"):
                await client.get(PODS, "a", "n")
            await client.close()
        assert len(api.asked) == 1


class TestFailures:
    """`sent` must never be False where the server may have acted."""

    async def test_refused_is_not_sent(self) -> None:
        async with raw_server(_hang_up) as url:
            pass
        with pytest.raises(TransportError) as caught:
            await one(transport(url))
        assert caught.value.sent is False
        assert url in str(caught.value)

    async def test_unknown_host_is_not_sent(self) -> None:
        with pytest.raises(TransportError) as caught:
            await one(transport("http://no-such-host.invalid:1"))
        assert caught.value.sent is False

    async def test_closed_without_answer_is_sent(self) -> None:
        async with raw_server(_hang_up) as url:
            with pytest.raises(TransportError) as caught:
                await one(transport(url))
        assert caught.value.sent is True

    async def test_cut_in_the_body_is_sent(self) -> None:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
            await writer.drain()

        async with raw_server(talk) as url:
            with pytest.raises(TransportError) as caught:
                await one(transport(url))
        assert caught.value.sent is True

    async def test_no_http_at_all_is_sent(self) -> None:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"SSH-2.0-OpenSSH_9\r\n")
            await writer.drain()

        async with raw_server(talk) as url:
            with pytest.raises(TransportError) as caught:
                await one(transport(url))
        assert caught.value.sent is True

    async def test_no_answer_in_time(self) -> None:
        """The request went out, so its outcome is unknown."""
        async with stub_api(_never) as api:
            with pytest.raises(RequestTimeoutError) as caught:
                await one(transport(api.url), Request(Verb.GET, PODS, "n", "a", timeout=0.1))
        assert caught.value.sent is True

    async def test_no_connection_in_time(self, authority: trustme.CA) -> None:
        """A server that accepts but never answers the TLS handshake: nothing was sent."""

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()

        async with raw_server(talk) as url:
            secured = transport(url.replace("http:", "https:"), ca=Pem(data=pem_of(authority)))
            with pytest.raises(RequestTimeoutError) as caught:
                await one(secured, Request(Verb.GET, PODS, "n", "a", timeout=1.0))
        assert caught.value.sent is False

    @pytest.mark.parametrize("verb", [Verb.DELETE, Verb.UPDATE, Verb.GET, Verb.CREATE])
    async def test_nothing_is_repeated_on_a_torn_kept_connection(self, verb: Verb) -> None:
        """HTTP libraries like to repeat PUT and DELETE on a connection that died; here that is for the caller."""
        seen: list[bytes] = []

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            seen.append((await reader.readuntil(b"\r\n\r\n")).split()[0])
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            await writer.drain()
            seen.append((await reader.readuntil(b"\r\n\r\n")).split()[0])

        async with raw_server(talk) as url:
            connection = transport(url)
            await connection.send(GET)
            request = Request(verb, PODS, "n", "a")
            with pytest.raises(TransportError) as caught:
                await connection.send(request)
            await connection.close()
        assert caught.value.sent is True
        assert seen == [b"GET", request.method.encode()]

    async def test_html_and_half_json(self) -> None:
        """A 2xx that is no Kubernetes answer, and errors written by something in front of the server."""
        async with stub_api(answers(b"<html>hello</html>")) as api:
            client = Client(transport(api.url))
            with pytest.raises(BadAnswerError, match=r"no Pod .*<html>hello"):
                await client.get(PODS, "a", "n")
            with pytest.raises(BadAnswerError, match="no PodList"):
                await client.list(PODS, "n")
            with pytest.raises(BadAnswerError):
                await client.delete(PODS, "a", "n")
            with pytest.raises(BadAnswerError, match="no discovery document"):
                await client.discover()
            with pytest.raises(BadAnswerError, match=r"text/html.*hello"):
                async with client.watch(PODS, "n", resource_version="1"):
                    pass
            await client.close()
        async with stub_api(answers(json.dumps(POD).encode()[:-5])) as api:
            client = Client(transport(api.url))
            with pytest.raises(BadAnswerError, match="no Pod"):
                await client.get(PODS, "a", "n")
            await client.close()
        async with stub_api(answers(b"<html>broken</html>", status=500)) as api:
            client = Client(transport(api.url))
            with pytest.raises(InternalError, match="without a Kubernetes status: <html>broken"):
                await client.get(PODS, "a", "n")
            await client.close()

    async def test_close_twice_and_use_again(self) -> None:
        """A closed transport opens a new session when it is used again."""
        async with stub_api(answers(POD)) as api:
            connection = transport(api.url)
            await connection.close()
            await connection.send(GET)
            await connection.close()
            await connection.close()
            assert (await connection.send(GET)).status == 200
            await connection.close()


class TestWatch:
    async def test_lines_and_orderly_end(self) -> None:
        async with stub_api(_streamed(b"one\ntw", b"o\n\nthree\n")) as api:
            assert [line async for line in lines_of(transport(api.url))] == [b"one", b"two", b"three"]
        assert api.asked[0].headers["Accept-Encoding"] == "identity"

    async def test_lines_of_megabytes(self) -> None:
        """Far above the buffer of the HTTP library."""
        big = b"x" * (3 * 1024 * 1024)
        async with stub_api(_streamed(b"a\n" + big + b"\nb\n")) as api:
            assert [line async for line in lines_of(transport(api.url))] == [b"a", big, b"b"]

    async def test_an_object_of_two_megabytes(self) -> None:
        """The same through the client: the object arrives whole, and so do its neighbours."""
        big = POD | {"metadata": POD["metadata"] | {"annotations": {"a": "x" * (2 * 1024 * 1024)}}}  # type: ignore[operator]
        events = [{"type": "ADDED", "object": POD}, {"type": "MODIFIED", "object": big}]
        data = b"".join(json.dumps(event).encode() + b"\n" for event in events)
        async with stub_api(_streamed(data)) as api:
            client = Client(transport(api.url))
            async with client.watch(PODS, "n", resource_version="1") as found:
                sizes = [(event.type, len(event.object.metadata.annotations.get("a", ""))) async for event in found]
            await client.close()
        assert sizes == [("ADDED", 0), ("MODIFIED", 2 * 1024 * 1024)]

    async def test_cut_in_the_middle_of_a_line(self) -> None:
        """The whole lines come, the torn one never does, and the tear is an error, not an end."""
        await _torn(_streamed(b"one\ntwo\nthr", then="abort"))

    async def test_end_in_the_middle_of_a_line(self) -> None:
        """Even if the server closes in order: a line without an end is not to be trusted."""
        await _torn(_streamed(b"one\ntwo\nthr"))

    async def test_cut_between_lines(self) -> None:
        await _torn(_streamed(b"one\ntwo\n", then="abort"))

    async def test_leaving_early_closes_the_connection(self) -> None:
        """Nothing is left behind when the reader goes away while the server still talks."""
        gone = asyncio.Event()

        async def handle(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse()
            await response.prepare(request)
            try:
                while True:
                    await response.write(b"line\n")
                    await asyncio.sleep(0.001)
            finally:
                gone.set()

        async with stub_api(handle) as api:
            connection = transport(api.url)
            async with connection.stream(WATCH) as lines:
                assert await anext(lines) == b"line"
            async with asyncio.timeout(5):
                await gone.wait()
            await connection.close()

    async def test_cancelled_reader(self) -> None:
        """Cancelling a task that waits for a line ends it at once and leaves nothing open."""
        async with stub_api(_streamed(b"one\n", then="wait")) as api:
            got = asyncio.Event()

            async def read() -> None:
                async for _ in lines_of(transport(api.url)):
                    got.set()

            task = asyncio.create_task(read())
            await got.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    async def test_no_total_timeout(self) -> None:
        """A watch outlives the timeout of ordinary requests."""

        async def handle(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse()
            await response.prepare(request)
            await response.write(b"one\n")
            await asyncio.sleep(1.2)
            await response.write(b"two\n")
            return response

        async with stub_api(handle) as api:
            assert [line async for line in lines_of(transport(api.url, timeout=1.0))] == [b"one", b"two"]

    async def test_opening_is_bounded(self) -> None:
        async with stub_api(_never) as api:
            with pytest.raises(RequestTimeoutError):
                [line async for line in lines_of(transport(api.url, timeout=0.1))]

    async def test_refused_with_a_status(self) -> None:
        status = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no"}
        async with stub_api(answers(status, status=403)) as api:
            with pytest.raises(ForbiddenError, match="no"):
                [line async for line in lines_of(transport(api.url))]
        async with stub_api(answers(b"", status=302)) as api:
            with pytest.raises(BadAnswerError, match="302"):
                [line async for line in lines_of(transport(api.url))]

    async def test_many_watches_and_requests_share_a_transport(self) -> None:
        """Open watches do not take the place of requests."""
        async with stub_api(_streamed(b"one\n", then="wait")) as api:
            connection = transport(api.url)
            opened = [connection.stream(WATCH) for _ in range(120)]
            for stream in opened:
                assert await anext(await stream.__aenter__()) == b"one"
            for stream in opened:
                await stream.__aexit__(None, None, None)
            await connection.close()
        assert len(api.asked) == 120


class TestTls:
    async def test_client_certificate(self, authority: trustme.CA, tmp_path: Path) -> None:
        """From files and inline."""
        identity = authority.issue_cert("me@example.com", common_name="me")
        certificate, key = identity.cert_chain_pems[0].bytes(), identity.private_key_pem.bytes()
        (tmp_path / "crt").write_bytes(certificate)
        (tmp_path / "key").write_bytes(key)
        pems = [
            (Pem(data=certificate), Pem(data=key)),
            (Pem(path=str(tmp_path / "crt")), Pem(path=str(tmp_path / "key"))),
        ]
        context = server_context(authority, client_authority=authority, require=True)
        async with stub_api(answers(POD), tls=context) as api:
            for crt, private in pems:
                ca = Pem(data=pem_of(authority))
                answer = await one(transport(api.url, ca=ca, client_certificate=crt, client_key=private))
                assert answer.status == 200
        assert [asked.client_subject for asked in api.asked] == ["me", "me"]

    async def test_watch_over_tls(self, authority: trustme.CA) -> None:
        async with stub_api(_streamed(b"one\n", b"two\n", then="wait"), tls=server_context(authority)) as api:
            connection = transport(api.url, ca=Pem(data=pem_of(authority)))
            async with connection.stream(WATCH) as lines:
                assert await anext(lines) == b"one"
            await connection.close()

    async def test_untrusted_server(self, authority: trustme.CA) -> None:
        """Another authority: nothing was sent, and the text says where to look."""
        async with stub_api(answers(POD), tls=server_context(authority)) as api:
            with pytest.raises(CertificateError, match=r"not trusted.*certificate-authority") as caught:
                await one(transport(api.url, ca=Pem(data=pem_of(trustme.CA()))))
        assert caught.value.sent is False
        assert api.asked == []

    async def test_tls_server_name(self, authority: trustme.CA) -> None:
        """The name in the certificate may differ from the address, if it is told."""
        async with stub_api(answers(POD), tls=server_context(authority, "api.internal")) as api:
            ca = Pem(data=pem_of(authority))
            with pytest.raises(CertificateError, match="tls-server-name"):
                await one(transport(api.url, ca=ca))
            answer = await one(transport(api.url, ca=ca, tls_server_name="api.internal"))
        assert answer.status == 200

    async def test_insecure(self, authority: trustme.CA) -> None:
        async with stub_api(answers(POD), tls=server_context(authority)) as api:
            assert (await one(transport(api.url, insecure=True))).status == 200

    async def test_plain_server_behind_https(self) -> None:
        async with stub_api(answers(POD)) as api:
            with pytest.raises(TransportError) as caught:
                await one(transport(api.url.replace("http:", "https:"), insecure=True))
        assert caught.value.sent is False

    async def test_expired_client_certificate_refused_by_tls(self, authority: trustme.CA) -> None:
        """The error names the certificate and the time, even where TLS 1.3 just hangs up."""
        context = server_context(authority, client_authority=authority, require=True)
        certificate, key, ended = _expired(authority)
        async with stub_api(answers(POD), tls=context) as api:
            with pytest.raises(TransportError) as caught:
                await one(
                    transport(api.url, ca=Pem(data=pem_of(authority)), client_certificate=certificate, client_key=key)
                )
        assert "client certificate" in str(caught.value)
        assert f"expired at {ended:%Y-%m-%dT%H:%M:%SZ}" in str(caught.value)
        assert api.asked == []

    async def test_expired_client_certificate_answered_with_401(self, authority: trustme.CA) -> None:
        """As a Kubernetes API server does: TLS lets us in, authentication does not."""
        certificate, key, ended = _expired(authority)
        config = {"ca": Pem(data=pem_of(authority)), "client_certificate": certificate, "client_key": key}
        async with stub_api(answers({"kind": "Status"}, status=401), tls=server_context(authority)) as api:
            with pytest.raises(CertificateError, match=f"expired at {ended:%Y-%m-%d}"):
                await one(transport(api.url, **config))
            with pytest.raises(CertificateError, match=f"expired at {ended:%Y-%m-%d}"):
                [line async for line in lines_of(transport(api.url, **config))]

    async def test_expired_server_certificate(self, authority: trustme.CA) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        past = datetime.now(UTC) - timedelta(days=1)
        authority.issue_cert("127.0.0.1", not_before=past - timedelta(days=9), not_after=past).configure_cert(context)
        async with stub_api(answers(POD), tls=context) as api:
            with pytest.raises(CertificateError, match="certificate has expired"):
                await one(transport(api.url, ca=Pem(data=pem_of(authority))))

    async def test_valid_certificate_and_401(self, authority: trustme.CA) -> None:
        """A 401 for another reason stays a 401."""
        identity = authority.issue_cert("me@example.com")
        config = {
            "ca": Pem(data=pem_of(authority)),
            "client_certificate": Pem(data=identity.cert_chain_pems[0].bytes()),
            "client_key": Pem(data=identity.private_key_pem.bytes()),
        }
        async with stub_api(answers({"kind": "Status"}, status=401), tls=server_context(authority)) as api:
            client = Client(transport(api.url, **config))
            with pytest.raises(UnauthorizedError):
                await client.get(PODS, "a", "n")
            await client.close()
        assert len(api.asked) == 1

    async def test_damaged_files(self, authority: trustme.CA, tmp_path: Path) -> None:
        """Damaged pairs and authorities are told apart from network trouble."""
        one_pair, other = authority.issue_cert("a@example.com"), authority.issue_cert("b@example.com")
        pair = {
            "client_certificate": Pem(data=one_pair.cert_chain_pems[0].bytes()),
            "client_key": Pem(data=other.private_key_pem.bytes()),
        }
        with pytest.raises(CredentialError, match="do not fit together"):
            await one(transport("https://127.0.0.1:1", **pair))
        broken = Pem(data=b"-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n")
        with pytest.raises(CredentialError, match=r"certificate authority .* is damaged"):
            await one(transport("https://127.0.0.1:1", ca=broken))
        with pytest.raises(CredentialError, match="cannot be read"):
            await one(transport("https://127.0.0.1:1", ca=Pem(path=str(tmp_path / "gone"))))

    async def test_replaced_certificate_files_are_used(self, authority: trustme.CA, tmp_path: Path) -> None:
        """A certificate that was renewed on disk is taken up after the server refused the old one."""
        crt, key = tmp_path / "crt", tmp_path / "key"

        def write(name: str) -> None:
            identity = authority.issue_cert(f"{name}@example.com", common_name=name)
            crt.write_bytes(identity.cert_chain_pems[0].bytes())
            key.write_bytes(identity.private_key_pem.bytes())

        async def handle(request: web.Request) -> web.StreamResponse:
            subject = dict(part[0] for part in request.get_extra_info("peercert")["subject"])["commonName"]
            return web.json_response(POD, status=200 if subject == "new" else 401)

        write("old")
        context = server_context(authority, client_authority=authority)
        async with stub_api(handle, tls=context) as api:
            connection = transport(
                api.url,
                ca=Pem(data=pem_of(authority)),
                client_certificate=Pem(path=str(crt)),
                client_key=Pem(path=str(key)),
            )
            assert (await connection.send(GET)).status == 401
            write("new")
            assert (await connection.send(GET)).status == 200
            await connection.close()
        assert [asked.client_subject for asked in api.asked] == ["old", "old", "new"]


class TestProxy:
    async def test_plain_requests_go_through(self) -> None:
        """For plain http the proxy gets the whole address."""
        async with stub_api(answers(POD)) as proxy:
            answer = await one(transport("http://far.away:8080", proxy_url=proxy.url))
        assert answer.status == 200
        assert proxy.asked[0].path == "http://far.away:8080/api/v1/namespaces/n/pods/a"

    async def test_tunnel(self, authority: trustme.CA) -> None:
        """For https it only connects, with the name and password of its address; our token stays inside TLS."""
        seen: list[bytes] = []
        async with stub_api(answers(POD), tls=server_context(authority, "far.away")) as api:

            async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                seen.append(await reader.readuntil(b"\r\n\r\n"))
                port = int(api.url.rsplit(":", 1)[1])
                other_reader, other_writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
                await asyncio.gather(_pipe(reader, other_writer), _pipe(other_reader, writer))

            async with raw_server(talk) as proxy:
                url = proxy.replace("http://", "http://joe:pw@")
                ca = Pem(data=pem_of(authority))
                answer = await one(transport("https://far.away:6443", ca=ca, proxy_url=url, token="secret"))
        assert answer.status == 200
        assert seen[0].startswith(b"CONNECT far.away:6443 HTTP/1.1\r\n")
        assert b"Basic am9lOnB3" in seen[0]
        assert b"secret" not in seen[0]
        assert api.asked[0].headers["Authorization"] == "Bearer secret"

    async def test_refusing_and_missing_proxy(self) -> None:
        """Nothing was sent to the server, and the proxy's password is not in the text."""

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 407 Who are you\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()

        async with raw_server(talk) as proxy:
            with pytest.raises(TransportError, match=r"proxy .* refused: 407 Who are you") as caught:
                await one(transport("https://far.away", insecure=True, proxy_url=proxy))
        assert caught.value.sent is False
        gone = proxy.replace("http://", "http://joe:hidden@")
        with pytest.raises(TransportError, match=r"proxy .* cannot be reached") as caught:
            await one(transport("https://far.away", insecure=True, proxy_url=gone))
        assert caught.value.sent is False
        assert "hidden" not in str(caught.value)


async def _hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")


async def _never(request: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


def _streamed(*chunks: bytes, then: str = "end") -> Any:
    async def handle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
            await asyncio.sleep(0)
        if then == "abort":
            # What was written must be on its way before the connection is torn.
            await asyncio.sleep(0.05)
            assert request.transport is not None
            request.transport.abort()
        elif then == "wait":
            await asyncio.Event().wait()
        return response

    return handle


async def _torn(handler: Any) -> None:
    found: list[bytes] = []
    async with stub_api(handler) as api:
        with pytest.raises(TransportError) as caught:
            await _collect(lines_of(transport(api.url)), found)
    assert found == [b"one", b"two"]
    assert caught.value.sent is True


async def _collect(lines: AsyncIterator[bytes], into: list[bytes]) -> None:
    async for line in lines:
        into.append(line)


def _expired(authority: trustme.CA) -> tuple[Pem, Pem, datetime]:
    past = datetime.now(UTC).replace(microsecond=0) - timedelta(days=3)
    identity = authority.issue_cert("me@example.com", not_before=past - timedelta(days=9), not_after=past)
    pem = identity.cert_chain_pems[0].bytes()
    ended = x509.load_pem_x509_certificate(pem).not_valid_after_utc
    return Pem(data=pem), Pem(data=identity.private_key_pem.bytes()), ended
