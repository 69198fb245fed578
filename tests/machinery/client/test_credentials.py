"""Token files, credential plugins, and what happens when the server says 401."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import textwrap
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiohttp import web

from kruise.api.native.pod import PODS
from kruise.machinery.client import exec_plugin, kubeconfig
from kruise.machinery.client.config import ClusterConfig, CredentialError, ExecPlugin, InteractiveMode, Pem
from kruise.machinery.client.credentials import TOKEN_FILE_INTERVAL, Credentials
from kruise.machinery.client.errors import RequestTimeoutError
from kruise.machinery.client.exec_plugin import PluginResult
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.clock import ManualClock
from tests.support.stub_api import pem_of, server_context, stub_api

V1 = "client.authentication.k8s.io/v1"
GET = Request(Verb.GET, PODS, "n", "a")
WATCH = Request(Verb.WATCH, PODS, "n")
SERVER = ClusterConfig(server="http://x", origin='user "u" in /c')


def plugin(**settings: Any) -> ExecPlugin:
    return ExecPlugin(**({"api_version": V1, "command": "x", "interactive_mode": InteractiveMode.NEVER} | settings))


class Runs:
    """A plugin that needs no process."""

    def __init__(self, *results: PluginResult) -> None:
        self.left = list(results)
        self.count = 0

    async def __call__(self, plugin: ExecPlugin, config: ClusterConfig) -> PluginResult:
        self.count += 1
        await asyncio.sleep(0)
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]


def accepting(*tokens: str) -> Any:
    """A server that knows some tokens; the set may change while it runs."""
    known = set(tokens)

    async def handle(request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization", "").removeprefix("Bearer ") not in known:
            return web.json_response({"kind": "Status", "code": 401}, status=401)
        return web.json_response({"kind": "Pod"})

    return handle, known


class TestTokenFile:
    async def test_read_again_when_it_changed(self, tmp_path: Path) -> None:
        """At most every few seconds, and only if the file changed."""
        file, clock = tmp_path / "token", ManualClock()
        _replace(file, "one\n", 1)
        credentials = Credentials(ClusterConfig(server="http://x", token_file=str(file)), clock=clock)
        assert credentials.ready() is None
        first = await credentials.current()
        assert first.authorization == "Bearer one"
        _replace(file, "two", 2)
        assert credentials.ready() is first
        clock.advance(TOKEN_FILE_INTERVAL)
        assert credentials.ready() is None
        second = await credentials.current()
        assert second.authorization == "Bearer two"
        clock.advance(TOKEN_FILE_INTERVAL)
        assert await credentials.current() is second

    async def test_a_file_in_the_middle_of_being_replaced(self, tmp_path: Path) -> None:
        """Missing or empty for a moment: the token that we have is kept."""
        file, clock = tmp_path / "token", ManualClock()
        _replace(file, "one", 1)
        credentials = Credentials(ClusterConfig(server="http://x", token_file=str(file)), clock=clock)
        first = await credentials.current()
        _replace(file, "", 2)
        clock.advance(TOKEN_FILE_INTERVAL)
        assert await credentials.current() is first
        file.unlink()
        clock.advance(TOKEN_FILE_INTERVAL)
        assert await credentials.current() is first

    @pytest.mark.parametrize("content", [None, " \n", "two words", "a\nb"])
    async def test_no_usable_token_at_all(self, tmp_path: Path, content: str | None) -> None:
        file = tmp_path / "token"
        if content is not None:
            file.write_text(content)
        config = ClusterConfig(server="http://x", token_file=str(file), origin="the service account")
        with pytest.raises(CredentialError, match="the service account"):
            await Credentials(config, clock=ManualClock()).current()

    async def test_read_again_on_401(self, tmp_path: Path) -> None:
        """A token that was replaced a moment ago does not wait for the next look; requests and watches alike."""
        file = tmp_path / "token"
        handle, known = accepting("one")
        _replace(file, "one", 1)
        async with stub_api(handle) as api:
            transport = HttpTransport(ClusterConfig(server=api.url, token_file=str(file)))
            assert (await transport.send(GET)).status == 200
            known.clear()
            known.add("two")
            _replace(file, "two", 2)
            assert (await transport.send(GET)).status == 200
            known.clear()
            known.add("three")
            _replace(file, "three", 3)
            async with transport.stream(WATCH):
                pass
            known.clear()
            assert (await transport.send(GET)).status == 401
            await transport.close()
        sent = [asked.headers["Authorization"].removeprefix("Bearer ") for asked in api.asked]
        assert sent == ["one", "one", "two", "two", "three", "three"]

    async def test_in_cluster_identity(self, tmp_path: Path) -> None:
        """All of it together: a pod's service account against a TLS server."""
        authority = trustme.CA()
        (tmp_path / "token").write_text("sa-token")
        (tmp_path / "ca.crt").write_bytes(pem_of(authority))
        handle, _ = accepting("sa-token")
        async with stub_api(handle, tls=server_context(authority)) as api:
            port = api.url.rsplit(":", 1)[1]
            env = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": port}
            transport = HttpTransport(kubeconfig.in_cluster(env=env, directory=tmp_path))
            assert (await transport.send(GET)).status == 200
            await transport.close()


class TestPluginCaching:
    async def test_cached_until_it_expires(self) -> None:
        clock = ManualClock()
        runs = Runs(PluginResult(token="one", expires=clock.now() + timedelta(minutes=1)), PluginResult(token="two"))
        config = ClusterConfig(server="http://x", exec_plugin=plugin())
        credentials = Credentials(config, clock=clock, run_plugin=runs)
        for _ in range(3):
            assert (await credentials.current()).authorization == "Bearer one"
        clock.advance(59)
        assert (await credentials.current()).authorization == "Bearer one"
        assert runs.count == 1
        clock.advance(1)
        assert credentials.ready() is None
        assert (await credentials.current()).authorization == "Bearer two"
        clock.advance(1_000_000)
        assert (await credentials.current()).authorization == "Bearer two"
        assert runs.count == 2

    async def test_many_refused_at_once_run_it_once(self) -> None:
        """The first that comes back with the old identity runs the plugin, the others use its result."""
        runs = Runs(PluginResult(token="one"), PluginResult(token="two"))
        config = ClusterConfig(server="http://x", exec_plugin=plugin())
        credentials = Credentials(config, clock=ManualClock(), run_plugin=runs)
        old = await credentials.current()
        renewed = await asyncio.gather(*(credentials.renew(old) for _ in range(20)))
        assert {identity.authorization for identity in renewed if identity} == {"Bearer two"}
        assert runs.count == 2

    async def test_the_same_answer_again_is_no_other_identity(self) -> None:
        runs = Runs(PluginResult(token="one"))
        config = ClusterConfig(server="http://x", exec_plugin=plugin())
        credentials = Credentials(config, clock=ManualClock(), run_plugin=runs)
        assert await credentials.renew(await credentials.current()) is None
        assert runs.count == 2

    async def test_static_credentials_cannot_be_renewed(self) -> None:
        credentials = Credentials(ClusterConfig(server="http://x", token="t"), clock=ManualClock())
        assert await credentials.renew(await credentials.current()) is None

    async def test_a_slow_plugin_counts_against_the_deadline(self) -> None:
        """Nothing goes out after the caller has given up."""

        async def slow(plugin: ExecPlugin, config: ClusterConfig) -> PluginResult:
            await asyncio.sleep(60)
            raise AssertionError

        handle, _ = accepting("one")
        async with stub_api(handle) as api:
            config = ClusterConfig(server=api.url, exec_plugin=plugin())
            credentials = Credentials(config, clock=ManualClock(), run_plugin=slow)
            transport = HttpTransport(config, credentials=credentials)
            with pytest.raises(RequestTimeoutError) as caught:
                await transport.send(Request(Verb.GET, PODS, "n", "a", timeout=0.05))
            await transport.close()
        assert caught.value.sent is False
        assert api.asked == []


class TestPluginProcess:
    """A real program: a Python script that counts its runs."""

    @pytest.fixture
    def script(self, tmp_path: Path) -> Path:
        path = tmp_path / "login"
        path.write_text(
            f"#!{sys.executable}\n"
            + textwrap.dedent(
                """
                import json, os, sys
                from pathlib import Path
                here = Path(__file__).parent
                runs = here / "runs"
                number = int(runs.read_text()) + 1 if runs.exists() else 1
                runs.write_text(str(number))
                (here / "info").write_text(os.environ["KUBERNETES_EXEC_INFO"])
                (here / "seen").write_text(json.dumps({"args": sys.argv[1:], "env": os.environ.get("FLAVOUR")}))
                answer = here / "answer"
                status = json.loads(answer.read_text()) if answer.exists() else {"token": f"token-{number}"}
                version = "client.authentication.k8s.io/v1"
                print(json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status}))
                """
            )
        )
        path.chmod(0o755)
        return path

    def write_config(self, directory: Path, server: str, command: str, **user: Any) -> Path:
        fields = {"apiVersion": V1, "command": command, "interactiveMode": "Never"} | user
        content = {
            "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "users": [{"name": "u", "user": {"exec": fields}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }
        file = directory / "config"
        file.write_text(json.dumps(content))
        return file

    async def test_cached_and_run_again_on_401(self, tmp_path: Path, script: Path) -> None:
        """One run serves many requests; a 401 causes exactly one more run for each refused request."""
        handle, known = accepting("token-1")
        async with stub_api(handle) as api:
            file = self.write_config(
                tmp_path, api.url, "./login", args=["get"], env=[{"name": "FLAVOUR", "value": "x"}]
            )
            transport = HttpTransport(kubeconfig.load(file, env={}))
            for _ in range(3):
                assert (await transport.send(GET)).status == 200
            assert (tmp_path / "runs").read_text() == "1"
            known.clear()
            known.add("token-2")
            assert (await transport.send(GET)).status == 200
            assert (tmp_path / "runs").read_text() == "2"
            known.clear()
            assert (await transport.send(GET)).status == 401
            assert (tmp_path / "runs").read_text() == "3"
            await transport.close()
        assert json.loads((tmp_path / "seen").read_text()) == {"args": ["get"], "env": "x"}
        info = json.loads((tmp_path / "info").read_text())
        assert info == {"apiVersion": V1, "kind": "ExecCredential", "spec": {"interactive": False}}

    async def test_client_certificates_from_a_plugin(self, tmp_path: Path, script: Path) -> None:
        """A plugin may answer with a certificate; a new one means a new connection with it."""
        authority = trustme.CA()

        def answer(name: str) -> None:
            identity = authority.issue_cert(f"{name}@example.com", common_name=name)
            pair = {
                "clientCertificateData": identity.cert_chain_pems[0].bytes().decode(),
                "clientKeyData": identity.private_key_pem.bytes().decode(),
            }
            (tmp_path / "answer").write_text(json.dumps(pair))

        async def handle(request: web.Request) -> web.StreamResponse:
            subject = dict(part[0] for part in request.get_extra_info("peercert")["subject"])["commonName"]
            return web.json_response({"kind": "Pod"}, status=200 if subject == wanted else 401)

        wanted = "first"
        answer("first")
        context = server_context(authority, client_authority=authority, require=True)
        async with stub_api(handle, tls=context) as api:
            config = ClusterConfig(
                server=api.url, ca=Pem(data=pem_of(authority)), exec_plugin=plugin(command=str(script))
            )
            transport = HttpTransport(config)
            assert (await transport.send(GET)).status == 200
            wanted = "second"
            answer("second")
            assert (await transport.send(GET)).status == 200
            await transport.close()
        assert [asked.client_subject for asked in api.asked] == ["first", "first", "second"]

    async def test_cluster_information(self, tmp_path: Path, script: Path) -> None:
        (tmp_path / "ca").write_bytes(b"PEM")
        config = ClusterConfig(
            server="https://api:6443",
            ca=Pem(path=str(tmp_path / "ca")),
            tls_server_name="name",
            proxy_url="http://p",
            disable_compression=True,
        )
        wanted = plugin(command=str(script), provide_cluster_info=True, cluster_extension={"a": 1})
        assert (await exec_plugin.run(wanted, config)).token == "token-1"
        assert json.loads((tmp_path / "info").read_text())["spec"]["cluster"] == {
            "server": "https://api:6443",
            "tls-server-name": "name",
            "certificate-authority-data": "UEVN",
            "proxy-url": "http://p",
            "disable-compression": True,
            "config": {"a": 1},
        }

    @pytest.mark.parametrize(
        ("body", "words"),
        [
            ("import sys; sys.stderr.write('not logged in'); sys.exit(3)", ["exit code 3", "not logged in"]),
            ("print('hello')", ["no ExecCredential"]),
            ("print('{}')", ["not client.authentication.k8s.io/v1 ExecCredential"]),
            (
                'print(\'{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1"}\')',
                ["neither a token nor"],
            ),
            (
                'print(\'{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1",'
                '"status":{"clientCertificateData":"x"}}\')',
                ["but not both"],
            ),
            ("import time; time.sleep(60)", ["did not answer within 0.3 s"]),
        ],
    )
    async def test_plugins_that_fail(self, body: str, words: list[str]) -> None:
        broken = plugin(command=sys.executable, args=("-c", body))
        timeout = 0.3 if "sleep" in body else 30.0
        with pytest.raises(CredentialError) as caught:
            await exec_plugin.run(broken, SERVER, timeout=timeout)
        for word in [*words, 'user "u" in /c', sys.executable]:
            assert word in str(caught.value)
        assert caught.value.sent is False

    async def test_missing_plugin_shows_the_hint(self) -> None:
        missing = plugin(command="no-such-plugin-here", install_hint="See https://example.com/install.")
        with pytest.raises(CredentialError, match=r"no-such-plugin-here.*See https://example\.com/install"):
            await exec_plugin.run(missing, SERVER)

    async def test_not_a_program(self, tmp_path: Path) -> None:
        (tmp_path / "p").write_bytes(b"\x00\x01")
        (tmp_path / "p").chmod(0o755)
        with pytest.raises(CredentialError, match="cannot be started"):
            await exec_plugin.run(plugin(command=str(tmp_path / "p")), SERVER)

    async def test_interactive_mode(self, tmp_path: Path, script: Path) -> None:
        """Always needs a terminal; IfAvailable tells the plugin what there is."""
        always = plugin(command=str(script), interactive_mode=InteractiveMode.ALWAYS)
        with pytest.raises(CredentialError, match="needs a terminal"):
            await exec_plugin.run(always, SERVER, terminal=False)
        for mode, expected in ((InteractiveMode.IF_AVAILABLE, True), (InteractiveMode.NEVER, False)):
            await exec_plugin.run(plugin(command=str(script), interactive_mode=mode), SERVER, terminal=True)
            assert json.loads((tmp_path / "info").read_text())["spec"]["interactive"] is expected

    async def test_cancelled_while_the_plugin_runs(self, tmp_path: Path) -> None:
        """The process does not outlive the caller."""
        code = f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(60)"
        task = asyncio.create_task(exec_plugin.run(plugin(command=sys.executable, args=("-c", code)), SERVER))
        file = tmp_path / "pid"
        while not file.exists() or not file.read_text():  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(ProcessLookupError):
            os.kill(int(file.read_text()), 0)


def _replace(path: Path, text: str, stamp: int) -> None:
    """Write with a time of its own: file systems count in coarse steps."""
    path.write_text(text)
    os.utime(path, (stamp, stamp))
