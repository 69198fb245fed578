"""How one probe is made on a node: exec, tcp, http, and what their answers mean (PRB-3 to PRB-8)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from kruise.api.apps.probes import Probe
from kruise.api.meta import ObjectMeta
from kruise.api.native.pod import ContainerPort
from kruise.daemon.kills import Kill
from kruise.daemon.parts import Place, Scene, Settings
from kruise.daemon.probes import liveness
from kruise.daemon.probes.asking import perform
from kruise.daemon.probes.calls import Ask, Found
from kruise.daemon.probes.decide import MARGIN, Ended, Worker, after
from kruise.daemon.runtime import CONTAINER_NAME, CallError, ContainerState, ContainerStatus, ExecResult, HttpAnswer
from kruise.machinery.clock import run_virtual
from kruise.machinery.codec import convert
from kruise.machinery.plan import Outcomes

STARTED = 1_000_000_000_000
NANO = 1_000_000_000


class Fake:
    """Node, runtime, network and clock in one."""

    name = "n"

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.asked: list[Any] = []
        self.looked_at: list[str] = []
        self.runtimes = {"containerd": self}
        self.network = self

    def find(self, name: str) -> Fake | None:
        return self if not self.answers.get("is_gone") else None

    def now(self) -> datetime:
        return datetime.fromtimestamp(STARTED / NANO + self.answers.get("age", 60), UTC)

    def _containers(self) -> list[ContainerStatus]:
        state = self.answers.get("state", ContainerState.RUNNING)
        return [
            ContainerStatus(
                id=f"c{at}", created_at=at, started_at=STARTED, state=state, labels={CONTAINER_NAME: "main"}
            )
            for at in self.answers.get("containers", (1, 2))
        ]

    async def list_containers(self, *, pod_uid: str = "", container_id: str = "") -> Sequence[ContainerStatus]:
        return self._containers()

    async def container_status(self, container_id: str, *, verbose: bool = False) -> ContainerStatus:
        self.looked_at.append(container_id)
        if self.answers.get("vanishes"):
            raise CallError("NotFound", "gone")
        return next(one for one in self._containers() if one.id == container_id)

    def _answer(self, name: str) -> Any:
        answer = self.answers[name]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def exec_sync(self, container_id: str, command: Sequence[str], seconds: float = 0) -> ExecResult:
        self.asked.append((container_id, tuple(command), seconds))
        result: ExecResult = self._answer("exec")
        return result

    async def connect(self, host: str, port: int, seconds: float) -> None:
        self.asked.append((host, port, seconds))
        self._answer("connect")

    async def get(self, url: str, headers: Sequence[tuple[str, str]], seconds: float) -> HttpAnswer:
        self.asked.append((url, dict(headers), seconds))
        answer: HttpAnswer = self._answer("get")
        return answer


def ask(probe: dict[str, Any], *, ip: str = "10.0.0.7", **answers: Any) -> tuple[Found, list[Any]]:
    fake: Any = Fake(**answers)
    place = Place.of("n", Settings())
    scene = Scene(place=place, nodes=fake, stores=fake, client=fake, clock=fake)
    call = Ask(node="n", uid="u", ip=ip, container="main", probe=convert(probe, Probe))
    return asyncio.run(perform(scene, call)), fake.asked


EXEC = {"exec": {"command": ["check", "it"]}}
TCP = {"tcpSocket": {"port": 80}}
HTTP = {"httpGet": {"path": "/a?b=c", "port": 80, "scheme": "HTTPS", "httpHeaders": [{"name": "Host", "value": "x"}]}}


def test_exec() -> None:
    """PRB-4, PRB-5: the newest container; a time-out of 0 is a second."""
    found, asked = ask(EXEC, exec=ExecResult(stdout=b"fine\n", stderr=b"not this"))
    assert (found.container_id, found.state, found.message) == ("c2", "Succeeded", "fine\n")
    assert asked == [("c2", ("check", "it"), 1.0)]
    found, _ = ask(EXEC, exec=ExecResult(exit_code=3, stdout=b"not this", stderr=b"busy\n"))
    assert (found.state, found.message) == ("Failed", "busy\n")
    found, _ = ask({**EXEC, "timeoutSeconds": 2}, exec=CallError("DeadlineExceeded", "late"))
    assert found.state == "Failed"
    assert "timed out" in found.message


def test_when_a_container_started_is_asked_once() -> None:
    """PRB-3: the next probe of the same container needs one call less; another one is asked about."""
    worker = Worker(probe=convert(EXEC, Probe), due=datetime.fromtimestamp(0, UTC))
    fake: Any = Fake(exec=ExecResult(), containers=(1,))
    scene = Scene(place=Place.of("n", Settings()), nodes=fake, stores=fake, client=fake, clock=fake)
    for containers in ((1,), (1,), (1, 2), (1, 2)):
        fake.answers["containers"] = containers
        call = Ask(
            node="n",
            uid="u",
            ip="10.0.0.7",
            container="main",
            probe=worker.probe,
            container_id=worker.container_id,
            started_at=worker.started_at,
        )
        found = asyncio.run(perform(scene, call))
        assert (found.state, found.started_at) == ("Succeeded", STARTED / NANO)
        worker = after(worker, Ended(began=worker.due, found=found))
    assert fake.looked_at == ["c1", "c2"]


def test_a_command_that_hangs_has_failed() -> None:
    """PRB-5: before the whole probe is given up, which would say nothing."""
    fake: Any = Fake()

    async def hang(container_id: str, command: Sequence[str], seconds: float = 0) -> ExecResult:
        await asyncio.sleep(1000)
        return ExecResult()

    async def main() -> Found:
        scene = Scene(place=Place.of("n", Settings()), nodes=fake, stores=fake, client=fake, clock=fake)
        probe = convert({**EXEC, "timeoutSeconds": 2}, Probe)
        async with asyncio.timeout(2 + MARGIN):
            return await perform(scene, Ask(node="n", uid="u", ip="", container="main", probe=probe))

    fake.exec_sync = hang
    found = run_virtual(main())
    assert (found.state, found.message) == ("Failed", "command timed out: 'check it' took longer than 2s")


def test_no_pod_has_no_container() -> None:
    """An empty uid would mean all containers of the node."""
    fake: Any = Fake(exec=ExecResult())
    scene = Scene(place=Place.of("n", Settings()), nodes=fake, stores=fake, client=fake, clock=fake)
    call = Ask(node="n", uid="", ip="", container="main", probe=convert(EXEC, Probe))
    assert asyncio.run(perform(scene, call)) == Found()


def test_tcp() -> None:
    """PRB-7."""
    found, asked = ask({**TCP, "timeoutSeconds": 3}, connect=None)
    assert (found.state, found.message) == ("Succeeded", "")
    assert asked == [("10.0.0.7", 80, 3.0)]
    found, _ = ask(TCP, connect=ConnectionRefusedError("dial tcp 10.0.0.7:80: connect: connection refused"))
    assert (found.state, found.message) == ("Failed", "dial tcp 10.0.0.7:80: connect: connection refused")
    assert ask(TCP, connect=TimeoutError())[0].state == "Failed"


def test_http() -> None:
    """PRB-6."""
    found, asked = ask(HTTP, get=HttpAnswer(status=204, body=b"ok"))
    assert (found.state, found.message) == ("Succeeded", "ok")
    [(url, headers, _)] = asked
    assert url == "https://10.0.0.7:80/a?b=c"
    assert headers["Host"] == "x"
    assert headers["User-Agent"].startswith("kube-probe")
    assert headers["Accept"] == "*/*"
    found, _ = ask(HTTP, get=HttpAnswer(status=404))
    assert (found.state, found.message) == ("Failed", "HTTP probe failed with statuscode: 404")
    assert ask(HTTP, get=HttpAnswer(status=302))[0].state == "Succeeded"
    assert ask(HTTP, get=OSError("no route"))[0].message == "no route"
    assert ask(HTTP, ip="fd00::1", get=HttpAnswer(status=200))[1][0][0] == "https://[fd00::1]:80/a?b=c"


def test_messages_are_cut() -> None:
    """PRB-8."""
    found, _ = ask(EXEC, exec=ExecResult(stdout=b"x" * 20_000))
    assert len(found.message) == 1024


@pytest.mark.parametrize(
    ("answers", "probe"),
    [
        ({"containers": ()}, EXEC),
        ({"vanishes": True}, EXEC),
        ({"age": 0.5}, EXEC),
        ({"age": 5}, {**EXEC, "initialDelaySeconds": 6}),
        ({"exec": CallError("Unavailable", "down")}, EXEC),
    ],
    ids=["no container", "vanished", "just started", "initial delay", "runtime down"],
)
def test_what_says_nothing(answers: dict[str, Any], probe: dict[str, Any]) -> None:
    """PRB-3, PRB-4, PRB-12: no result, and no crash."""
    assert ask(probe, **answers)[0].state == ""


def test_a_command_that_the_container_does_not_have() -> None:
    """PRB-5, PRB-3.5: no result, since it says nothing about the container; but why there never is one."""
    text = (
        'failed to exec in container: failed to start exec "ab": OCI runtime exec failed: exec failed: unable to start '
        'container process: exec: "no": executable file not found in $PATH: unknown'
    )
    found, _ = ask(EXEC, exec=CallError("Unknown", text))
    assert found.state == ""
    assert found.message.startswith("the command cannot be run in the container: exec failed: ")
    assert '"no": executable file not found' in found.message
    gone, _ = ask(
        EXEC, exec=CallError("Unknown", "failed to exec in container: container is in CONTAINER_EXITED state")
    )
    assert (gone.state, gone.message) == ("", "")


def test_a_clock_that_was_put_back_since_the_container_started() -> None:
    """PRB-3: it is not known how long the container has run, and so it is asked."""
    found, _ = ask({**EXEC, "initialDelaySeconds": 6}, age=-3600, exec=ExecResult())
    assert found.state == "Succeeded"


def test_a_pod_without_an_address_is_not_asked() -> None:
    found, asked = ask(TCP, ip="", connect=None)
    assert (found.state, asked) == ("", [])


def test_a_container_that_does_not_run_has_failed() -> None:
    """PRB-3."""
    found, asked = ask(EXEC, state=ContainerState.EXITED)
    assert (found.state, found.message) == ("Failed", "Container(main) is Non-running")
    assert asked == []


def test_a_node_that_is_not_here_is_an_error() -> None:
    with pytest.raises(CallError):
        ask(EXEC, is_gone=True)


# Liveness probes that the kubelet was kept from

LIVE = '[{"name":"main","livenessProbe":{"tcpSocket":{"port":"web"},"periodSeconds":5,"failureThreshold":2}}]'
PORTS = {"main": (ContainerPort(name="web", container_port=80),)}
BEGIN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def live(**more: Any) -> liveness.Snapshot:
    return liveness.Snapshot(
        metadata=ObjectMeta(name="p", namespace="demo", uid="u"),
        node="n",
        ip="10.0.0.7",
        runtime="containerd",
        grace=9,
        watches=liveness.watches_of(LIVE, PORTS),
        now=more.pop("now", BEGIN),
        **more,
    )


def ended(state: str, *, running: bool = True) -> dict[str, Ended]:
    return {"main": Ended(began=BEGIN, found=Found(container_id="c1", is_running=running, state=state, message="no"))}


def test_a_container_is_stopped_once_enough_probes_failed() -> None:
    first = liveness.decide(live())
    [job] = first.jobs
    assert isinstance(job.call, Ask)
    assert job.call.probe.tcp_socket is not None
    assert job.call.probe.tcp_socket.port == 80
    workers = first.memo_as(liveness.Memo).workers
    second = liveness.decide(live(workers=workers, ended=ended("Failed")))
    assert (second.jobs, second.drops) == ((), ("main",))
    assert [wake.after for wake in second.wakes] == [5]
    third = liveness.decide(live(workers=second.memo_as(liveness.Memo).workers, ended=ended("Failed")))
    [stop] = third.jobs
    assert isinstance(stop.call, Kill)
    assert (stop.name, stop.to_the_end) == ("stop main", True)
    assert (stop.call.container_id, stop.call.grace) == ("c1", 9)
    events = liveness.conclude(live(), third, Outcomes()).events
    assert [(event.reason, event.message) for event in events] == [
        ("Unhealthy", "Liveness probe failed: no"),
        ("Killing", "Container main failed liveness probe, will be restarted"),
    ]


def test_a_container_that_does_not_run_is_not_stopped() -> None:
    workers = liveness.decide(live()).memo_as(liveness.Memo).workers
    for _ in range(3):
        plan = liveness.decide(live(workers=workers, ended=ended("Failed", running=False)))
        workers = plan.memo_as(liveness.Memo).workers
        assert plan.jobs == ()


def test_nothing_is_asked_while_it_is_being_stopped() -> None:
    workers = liveness.decide(live()).memo_as(liveness.Memo).workers
    late = datetime(2026, 1, 2, 4, 0, tzinfo=UTC)
    assert liveness.decide(live(workers=workers, running=("stop main",), now=late)).jobs == ()


@pytest.mark.parametrize("text", ["", "{}", "[1]", '[{"name":"other","livenessProbe":{}}]', '[{"name":"main"}]'])
def test_an_annotation_that_cannot_be_read_asks_for_nothing(text: str) -> None:
    watches = liveness.watches_of(text, PORTS)
    assert all(watch.probe == Probe() for watch in watches)
