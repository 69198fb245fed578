"""CRI over a socket: messages, codes, deadlines, runtimes that restart or hang (DMN-12 to DMN-16, DMN-99)."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError
from grpclib.server import Server
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.daemon import patience
from kruise.daemon.cri import client, messages, wire
from kruise.daemon.cri.client import CriRuntime
from kruise.daemon.cri.sockets import CANDIDATES, NoRuntimeError, candidates, connect
from kruise.daemon.runtime import POD_UID, Auth, CallError, ContainerState, SandboxConfig
from kruise.machinery.clock import RealClock
from kruise.machinery.protobuf import WireError


class FakeRuntime:
    """Answers with bytes that are made by hand."""

    def __init__(self, name: str = "containerd") -> None:
        self.asked: list[tuple[str, bytes]] = []
        self.answers: dict[str, Callable[[bytes], bytes]] = {
            "ImageFsInfo": lambda request: b"",
            "ListImages": lambda request: wire.message(
                1, wire.text(1, "sha256:a"), wire.texts(2, ["nginx:1", "nginx:2"]), wire.number(4, 7)
            ),
            "Version": lambda request: wire.text(1, "0.1.0") + wire.text(2, name),
        }
        self.hangs: set[str] = set()

    def __mapping__(self) -> dict[str, Handler]:
        names = {
            messages.RUNTIME: ("Version", "ListContainers", "ContainerStatus", "StopContainer", "ExecSync"),
            messages.IMAGE: ("ImageFsInfo", "ListImages", "PullImage"),
        }
        return {
            service + name: Handler(self._answer(name), Cardinality.UNARY_UNARY, Any, Any)
            for service, methods in names.items()
            for name in methods
        }

    def _answer(self, name: str) -> Any:
        async def answer(stream: Any) -> None:
            request = await stream.recv_message()
            self.asked.append((name, request))
            if name in self.hangs:
                await asyncio.sleep(60)
            if name not in self.answers:
                raise GRPCError(Status.NOT_FOUND, f"{name}: nothing here")
            await stream.send_message(self.answers[name](request))

        return answer


@contextlib.asynccontextmanager
async def serving(fake: FakeRuntime, path: Path) -> AsyncIterator[None]:
    server = Server([fake], codec=client._Plain())
    await server.start(path=str(path))
    try:
        yield
    finally:
        server.close()
        await server.wait_closed()
        await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def speaking(fake: FakeRuntime, path: Path) -> AsyncIterator[CriRuntime]:
    async with serving(fake, path):
        runtime = CriRuntime(str(path))
        try:
            yield runtime
        finally:
            await closed(runtime)


async def closed(*runtimes: CriRuntime) -> None:
    for runtime in runtimes:
        runtime.close()
    await asyncio.sleep(0.01)


async def test_who_answers(tmp_path: Path) -> None:
    """DMN-13, DMN-14: the names are those in container ids; a socket that nobody serves is skipped."""
    (tmp_path / "crio").mkdir()
    (tmp_path / "cri-dockerd.sock").touch()
    other = tmp_path / "crio" / "crio.sock"
    async with serving(FakeRuntime(), tmp_path / "containerd.sock"), serving(FakeRuntime("cri-o"), other):
        found = await connect(tmp_path)
        assert list(found) == ["containerd", "cri-o"]
        [image] = await found["containerd"].list_images()
        assert (image.id, image.repo_tags, image.size) == ("sha256:a", ("nginx:1", "nginx:2"), 7)
        only = await connect(tmp_path, "crio/crio.sock")
        assert list(only) == ["cri-o"]
        await closed(*found.values(), *only.values())


async def test_nobody_answers(tmp_path: Path) -> None:
    """DMN-12, DMN section 14, 1."""
    with pytest.raises(NoRuntimeError, match="not found container runtime sock"):
        await connect(tmp_path)
    with pytest.raises(NoRuntimeError, match=r"not found container runtime sock: .*other\.sock"):
        await connect(tmp_path, "other.sock")
    (tmp_path / "containerd.sock").touch()
    with pytest.raises(NoRuntimeError, match="no container runtime answers"):
        await connect(tmp_path)


async def test_who_speaks_something_else_is_passed_over(tmp_path: Path) -> None:
    """DMN-13: an answer that is no message is an answer of somebody else, and not the end of the daemon."""
    odd = FakeRuntime()
    odd.answers["ListImages"] = lambda request: b"\xff\xff"
    async with serving(odd, tmp_path / "containerd.sock"), serving(FakeRuntime("cri-o"), tmp_path / "crio.sock"):
        found = await connect(tmp_path)
        assert list(found) == ["cri-o"]
        await closed(*found.values())
    async with speaking(odd, tmp_path / "s") as runtime:
        with pytest.raises(CallError, match=r"ListImages: .* answers with something else"):
            await runtime.list_images()


def test_the_order_of_sockets(tmp_path: Path) -> None:
    """DMN-12."""
    for name in reversed(CANDIDATES):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert [str(path.relative_to(tmp_path)) for path in candidates(tmp_path)] == list(CANDIDATES)


async def test_errors_have_the_words_of_the_runtime(tmp_path: Path) -> None:
    async with speaking(FakeRuntime(), tmp_path / "s") as runtime:
        with pytest.raises(CallError) as raised:
            await runtime.container_status("x")
        assert raised.value.code == "NotFound"
        assert str(raised.value) == "rpc error: code = NotFound desc = ContainerStatus: nothing here"


async def test_a_call_that_hangs_holds_up_no_other(tmp_path: Path) -> None:
    fake = FakeRuntime()
    fake.hangs = {"StopContainer"}
    fake.answers["ExecSync"] = lambda request: wire.data(1, b"out") + wire.number(3, 3)
    async with speaking(fake, tmp_path / "s") as runtime:
        hanging = asyncio.create_task(runtime.stop_container("c", -4))  # for a second, all in all
        result = await runtime.exec_sync("c", ["sh", "-c", "true"])
        assert (result.stdout, result.exit_code) == (b"out", 3)
        assert not hanging.done()
        with pytest.raises(CallError, match="DeadlineExceeded desc = StopContainer: no answer within 1 s"):
            await hanging


@contextlib.asynccontextmanager
async def forwarding(path: Path, to: Path) -> AsyncIterator[None]:
    """A socket whose connections break when the block ends, as those of a runtime that dies."""
    streams: list[asyncio.StreamWriter] = []
    pipes: set[asyncio.Task[None]] = set()

    async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind, before = await asyncio.open_unix_connection(str(to))
        streams.extend((writer, before))
        pipes.update((asyncio.create_task(pipe(reader, before)), asyncio.create_task(pipe(behind, writer))))

    server = await asyncio.start_unix_server(accept, str(path))
    try:
        yield
    finally:
        server.close()
        path.unlink()  # noqa: ASYNC240
        for task in pipes:
            task.cancel()
        for stream in streams:
            stream.transport.abort()
        await asyncio.sleep(0.05)


async def test_a_runtime_that_restarts_is_dialled_again(tmp_path: Path) -> None:
    """DMN-99."""
    path = tmp_path / "s"
    runtime = CriRuntime(str(path))
    async with serving(FakeRuntime(), tmp_path / "behind"):
        async with forwarding(path, tmp_path / "behind"):
            await runtime.list_images()
        with pytest.raises(CallError, match="Unavailable"):
            await runtime.list_images()
        async with forwarding(path, tmp_path / "behind"):
            assert len(await runtime.list_images()) == 1
            await closed(runtime)


async def test_only_silence_is_waited_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DMN-99, DMN-38: a runtime that has not begun yet is asked again; a registry that is away costs an attempt."""
    monkeypatch.setattr(patience, "FIRST_PAUSE", 0.01)
    fake, said = FakeRuntime(), [client.STARTING, "registry.example: 503 Service Unavailable"]

    def refused(request: bytes) -> bytes:
        status = Status.UNKNOWN if said[0] == client.STARTING else Status.UNAVAILABLE
        raise GRPCError(status, said.pop(0))

    fake.answers["PullImage"] = refused
    async with speaking(fake, tmp_path / "s") as runtime:
        with pytest.raises(CallError, match=r"code = Unavailable desc = registry\.example: 503") as raised:
            await patience.patiently(lambda: runtime.pull_image("nginx:1", sandbox=SandboxConfig()), RealClock())
    assert not raised.value.is_silence
    assert [name for name, _ in fake.asked] == ["PullImage"] * 2


async def test_what_is_asked(tmp_path: Path) -> None:
    """DMN-16, DMN-45: by pod uid; pulls carry login and sandbox."""
    fake = FakeRuntime()
    fake.answers |= {"ListContainers": lambda request: b"", "PullImage": lambda request: wire.text(1, "ref")}
    async with speaking(fake, tmp_path / "s") as runtime:
        await runtime.list_containers(pod_uid="uid-1")
        sandbox = SandboxConfig(labels={"a": "b"}, annotations={"c": "d"})
        assert await runtime.pull_image("nginx:1", sandbox=sandbox, auth=Auth(username="u", password="p")) == "ref"
    asked = dict(fake.asked)
    selector = wire.get_message(wire.fields(asked["ListContainers"]), 1)
    assert wire.get_mapping(selector, 4) == {POD_UID: "uid-1"}
    pull = wire.fields(asked["PullImage"])
    assert wire.get_text(wire.get_message(pull, 1), 1) == "nginx:1"
    assert wire.get_text(wire.get_message(pull, 2), 2) == "p"
    assert wire.get_mapping(wire.get_message(pull, 3), 6) == {"a": "b"}
    assert wire.get_mapping(wire.get_message(pull, 3), 7) == {"c": "d"}


def test_a_status_is_read() -> None:
    """DMN-17, DMN-75: with the true environment, whatever is in its values."""
    info = {"runtimeSpec": {"process": {"env": ["A=1=2", "B=two\nlines ", "C"]}}}
    raw = wire.message(
        1,
        wire.text(1, "abc"),
        wire.message(2, wire.text(1, "app"), wire.number(2, 3)),
        wire.number(3, 2),
        wire.number(4, 10),
        wire.number(5, 20),
        wire.number(6, 30),
        wire.number(7, -1),
        wire.mapping(12, {"io.kubernetes.container.name": "app", "io.kubernetes.pod.uid": "u"}),
        wire.mapping(13, {"io.kubernetes.container.hash": "8e45cbd0", "io.kubernetes.container.restartCount": "3"}),
    ) + wire.mapping(2, {"info": json.dumps(info)})
    found = messages.container_status(raw)
    assert (found.id, found.attempt, found.state, found.exit_code) == ("abc", 3, ContainerState.EXITED, -1)
    assert (found.created_at, found.started_at, found.finished_at) == (10, 20, 30)
    assert (found.container_name, found.pod_uid, found.restart_count) == ("app", "u", 3)
    assert found.plain_hash == 0x8E45CBD0
    assert found.environment == {"A": "1=2", "B": "two\nlines ", "C": ""}


@pytest.mark.parametrize("info", ["", "{", "[]", "{}", '{"runtimeSpec": {"process": null}}'])
def test_an_environment_that_is_not_told(info: str) -> None:
    assert messages.environment(info) is None


@given(
    st.dictionaries(st.text(max_size=20), st.text(max_size=20), max_size=5),
    st.integers(-(2**63), 2**63 - 1),
    st.text(),
)
@settings(max_examples=50, deadline=None)
def test_what_is_written_is_read(labels: dict[str, str], value: int, word: str) -> None:
    found = wire.fields(wire.mapping(4, labels) + wire.number(9, value) + wire.text(3, word) + wire.data(77, b"new"))
    assert wire.get_mapping(found, 4) == labels
    assert wire.get_number(found, 9) == value
    assert wire.get_text(found, 3) == word


@given(st.binary(max_size=40))
@settings(max_examples=100, deadline=None)
def test_no_bytes_do_harm(raw: bytes) -> None:
    """They are read in part, or refused by the one error that callers know. What is read is no more than was sent."""
    try:
        found = wire.fields(raw)
    except WireError:
        return
    texts = [value for values in found.values() for value in values if isinstance(value, bytes)]
    assert sum(len(text) for text in texts) <= len(raw)
    assert all(field >= 0 for field in found)


def test_nobody_asks_for_all_containers_of_a_node() -> None:
    """An empty uid is no pod."""
    with pytest.raises(ValueError, match="no pod"):
        messages.list_containers_request(pod_uid="")
