"""The toy kind on a real API server: a whole manager in its own process, killed, restarted, frozen, and doubled."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from kruise.api.native.events import EVENTS
from kruise.api.native.pod import PODS, Pod, condition
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import ClientError, InvalidError
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.kubeconfig import load
from kruise.machinery.clock import RealClock
from kruise.manager.installation.installer import Installer
from kruise.manager.installation.manifests import manifests
from tests.support import toymanager
from tests.support.auditlog import AuditEntry
from tests.support.ports import free_port
from tests.support.realcluster import ControlPlane
from tests.support.waiting import eventually
from tests.toy.api import TROUPES
from tests.toy.controller import FEATURE as TOY
from tests.toy.decide import SEEN

LEASE_SECONDS = 4.0
PATIENT_SECONDS = 12.0
"""For a leader that has to live through a restart of the API server."""
QUIET = ("--metrics-addr=0", "--journal-addr=0", "--health-probe-addr=0")


class Stage:
    """A control plane with the toy kind installed, and its managers."""

    def __init__(self, cluster: ControlPlane, client: Client, directory: Path) -> None:
        self.cluster = cluster
        self.client = client
        self.directory = directory
        self.managers: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, user: str, role: str, lease: float = LEASE_SECONDS) -> subprocess.Popen[bytes]:
        environment = {"WEBHOOK_CERT_DIR": str(self.directory / "certs")}
        if role != "controllers":
            environment |= {"WEBHOOK_HOST": "127.0.0.1", "WEBHOOK_PORT": str(free_port())}
        process = toymanager.start(
            self.cluster.kubeconfig_for(user),
            f"--role={role}",
            *QUIET,
            f"--leader-election-lease-duration={lease:g}s",
            f"--leader-election-renew-deadline={lease - 1:g}s",
            "--leader-election-retry-period=500ms",
            f"--protection-log-path={self.directory}",
            log=self.directory / f"{user}.log",
            **environment,
        )
        self.managers[user] = process
        return process

    def end(self) -> None:
        for process in self.managers.values():
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()

    async def troupe(self, name: str, namespace: str, **spec: Any) -> None:
        body = {"apiVersion": TROUPES.api_version, "kind": "Troupe", "metadata": {"name": name}, "spec": spec}
        await self.client.create(TROUPES, body, namespace)

    async def set(self, name: str, namespace: str, **spec: Any) -> None:
        await self.client.patch(TROUPES, name, {"spec": spec}, namespace)

    async def pods(self, namespace: str) -> dict[str, Pod]:
        return {pod.metadata.name: pod for pod in (await self.client.list(PODS, namespace)).items}

    async def settled(self, name: str, namespace: str, replicas: int, image: str) -> dict[str, Pod]:
        """The pods, once there are as many as there should be, all seen and with the image, and the status says so."""
        pods = await self.pods(namespace)
        assert sorted(pods) == sorted(f"{name}-{number}" for number in range(replicas))
        assert {pod.spec.containers[0].image for pod in pods.values()} == {image}
        assert all(condition(pod, SEEN) is not None for pod in pods.values())
        troupe = await self.client.get(TROUPES, name, namespace)
        status = troupe.status
        assert status.observed_generation == troupe.metadata.generation
        assert (status.pods, status.updated) == (replicas, replicas)
        return pods


@pytest.fixture
async def stage(fresh_control_plane: Callable[..., ControlPlane], tmp_path: Path) -> AsyncIterator[Stage]:
    cluster = fresh_control_plane(audit=True, scheduler=False)
    cluster.create_namespace("show")
    client = Client(HttpTransport(load(cluster.kubeconfig)))
    objects = manifests([TOY])
    await Installer(client, clock=RealClock(), report=lambda line: None).install(objects)
    stage = Stage(cluster, client, tmp_path)
    yield stage
    stage.end()
    await client.close()


@pytest.mark.smoke
async def test_a_small_kind_works_through_kill_and_restart(stage: Stage) -> None:
    """Create, mark, update in place, shrink; webhook, events and election; kill -9 and an API server restart."""
    stage.start("first", "all", PATIENT_SECONDS)
    webhooks = (
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/kruise-validating-webhook-configuration"
    )

    async def registered() -> None:
        entries = stage.cluster.request("GET", webhooks).ok().get("webhooks", [])
        assert [entry["name"] for entry in entries] == ["validate.troupe.toy.pykruise.dev"]

    await eventually(registered)
    with pytest.raises(InvalidError) as refused:
        await stage.troupe("nobody", "show")
    assert [(cause.field, cause.message) for cause in refused.value.causes] == [
        ("spec.image", "Required value: name an image")
    ]
    await stage.troupe("solo", "show", image="a:1")
    await eventually(lambda: stage.settled("solo", "show", 1, "a:1"))
    await stage.client.delete(TROUPES, "solo", "show")

    stage.cluster.create_namespace("big")
    await stage.troupe("band", "big", replicas=60, image="a:1")

    async def some() -> None:
        assert len(await stage.pods("big")) >= 5

    await eventually(some, every=0.01)
    stage.managers["first"].kill()
    stage.managers["first"].wait()
    stage.start("second", "all", PATIENT_SECONDS)
    born = await eventually(lambda: stage.settled("band", "big", 60, "a:1"))

    await stage.set("band", "big", image="a:2")
    await asyncio.to_thread(stage.cluster.restart_apiserver)

    async def updated() -> dict[str, Pod]:
        try:
            return await stage.settled("band", "big", 60, "a:2")
        except ClientError as error:
            raise AssertionError("the API server is not back yet") from error

    pods = await eventually(updated)
    assert {name: pod.metadata.uid for name, pod in pods.items()} == {
        name: pod.metadata.uid for name, pod in born.items()
    }
    await stage.set("band", "big", replicas=2)
    await eventually(lambda: stage.settled("band", "big", 2, "a:2"))

    events = (await stage.client.list(EVENTS, "big", fields="involvedObject.kind=Troupe")).items
    assert {event.reason for event in events} == {"SuccessfulCreate"}
    assert {event.source.component for event in events} == {"troupe-controller"}
    assert stage.managers["second"].poll() is None


async def _busy(stage: Stage, stop: asyncio.Event) -> int:
    """Changes an image again and again, so that whoever leads always has something to write."""
    changes = 0
    while not stop.is_set():
        changes += 1
        await stage.set("band", "show", image=f"a:{changes}")
        await asyncio.sleep(0.05)
    return changes


def _work_of(entries: list[AuditEntry], user: str) -> list[AuditEntry]:
    """A manager's writes but for its lease, which it also writes to become leader."""
    return [entry for entry in entries if entry.user == user and entry.is_write and entry.resource != "leases"]


async def _leader(stage: Stage, *users: str) -> str:
    entries = stage.cluster.audit_entries()
    acting = [user for user in users if _work_of(entries, user)]
    assert acting
    return acting[-1]


async def _two_managers(stage: Stage) -> tuple[str, str]:
    for user in ("one", "two"):
        stage.start(user, "controllers")
    await stage.troupe("band", "show", replicas=10, image="a:0")
    leader = await eventually(lambda: _leader(stage, "one", "two"))
    other = "two" if leader == "one" else "one"
    return leader, other


async def _acted(stage: Stage, user: str) -> AuditEntry:
    work = _work_of(stage.cluster.audit_entries(), user)
    assert work
    return work[0]


@pytest.mark.smoke
async def test_the_other_acts_within_the_lease_time_when_the_leader_is_killed(stage: Stage) -> None:
    leader, other = await _two_managers(stage)
    stop = asyncio.Event()
    changing = asyncio.create_task(_busy(stage, stop))
    await asyncio.sleep(2)
    assert not _work_of(stage.cluster.audit_entries(), other)
    killed = time.time()
    stage.managers[leader].kill()
    first = await eventually(lambda: _acted(stage, other))
    # The lease, and the pause until the other looks again (retry period with its jitter).
    assert first.received.timestamp() - killed < LEASE_SECONDS + 0.5 * 2.2 + 1
    await asyncio.sleep(2)
    stop.set()
    changes = await changing
    await eventually(lambda: stage.settled("band", "show", 10, f"a:{changes}"))
    last = max(entry.completed for entry in _work_of(stage.cluster.audit_entries(), leader))
    assert last < first.received


async def test_a_frozen_leader_writes_nothing_after_another_took_over(stage: Stage) -> None:
    leader, other = await _two_managers(stage)
    stop = asyncio.Event()
    changing = asyncio.create_task(_busy(stage, stop))
    await asyncio.sleep(2)
    frozen = time.time()
    os.kill(stage.managers[leader].pid, signal.SIGSTOP)
    first = await eventually(lambda: _acted(stage, other))
    assert first.received.timestamp() - frozen < LEASE_SECONDS + 0.5 * 2.2 + 1
    await asyncio.sleep(1)
    os.kill(stage.managers[leader].pid, signal.SIGCONT)
    code = await asyncio.to_thread(stage.managers[leader].wait, 20)
    assert code == 1
    await asyncio.sleep(2)
    stop.set()
    changes = await changing
    await eventually(lambda: stage.settled("band", "show", 10, f"a:{changes}"))
    entries = stage.cluster.audit_entries()
    late = [entry for entry in entries if entry.user == leader and entry.is_write and entry.completed >= first.received]
    assert late == []
    assert len(_work_of(entries, leader)) > 5
    assert len(_work_of(entries, other)) > 5
