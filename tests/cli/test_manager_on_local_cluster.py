"""The parts together, each in its own process: a local cluster, an installation, and a manager with the toy kind."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import pytest

from kruise.api.meta import Key
from kruise.api.native.events import EVENTS
from kruise.api.native.pod import PODS, Pod, is_ready
from kruise.cli.journal_access import entries, latest_dump
from kruise.cli.session import Session
from kruise.local.state import State
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import ClientError, InvalidError
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.kubeconfig import load
from kruise.machinery.clock import RealClock
from kruise.manager.installation.installer import Installer
from kruise.manager.installation.manifests import manifests
from tests.support import toymanager
from tests.support.ports import free_port
from tests.support.waiting import eventually
from tests.toy.api import TROUPES
from tests.toy.controller import FEATURE as TOY

JOURNAL_PORT = free_port()


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    """Of a local cluster that is up for the test."""
    environment = {**os.environ, "KRUISE_STATE": str(tmp_path / "state")}
    command = [sys.executable, "-m", "kruise.cli.main"]
    up = [*command, "up", "--bare", "--detach", "--port=0", "--no-merge"]
    subprocess.run(up, env=environment, check=True, capture_output=True)
    yield State(tmp_path / "state").kubeconfig
    subprocess.run([*command, "down"], env=environment, check=True, capture_output=True)


@pytest.fixture
async def client(kubeconfig: Path, tmp_path: Path) -> AsyncIterator[Client]:
    """A client of a cluster in which the toy kind is installed and managed."""
    client = Client(HttpTransport(load(kubeconfig)))
    await Installer(client, clock=RealClock(), report=lambda line: None).install(manifests([TOY]))
    manager = toymanager.start(
        kubeconfig,
        "--metrics-addr=0",
        f"--journal-addr=127.0.0.1:{JOURNAL_PORT}",
        "--health-probe-addr=0",
        f"--protection-log-path={tmp_path}",
        log=tmp_path / "manager.log",
        WEBHOOK_HOST="127.0.0.1",
        WEBHOOK_PORT=str(free_port()),
        WEBHOOK_CERT_DIR=str(tmp_path / "certs"),
    )
    yield client
    manager.terminate()
    manager.wait(20)
    await client.close()


async def test_a_kind_is_defaulted_refused_created_and_updated_in_place(client: Client) -> None:
    head = {"apiVersion": TROUPES.api_version, "kind": "Troupe"}

    async def complaints() -> list[str]:
        try:
            await client.create(TROUPES, {**head, "metadata": {"name": "nobody"}}, "default", dry_run=True)
        except InvalidError as error:
            return [cause.field for cause in error.causes]
        except ClientError as error:
            raise AssertionError("the webhook is not reachable yet") from error
        raise AssertionError("the webhook is not registered yet")

    assert await eventually(complaints) == ["spec.image"]
    await client.create(TROUPES, {**head, "metadata": {"name": "band"}, "spec": {"image": "nginx:1.25"}}, "default")

    async def running(image: str, restarts: int) -> Pod:
        [pod] = (await client.list(PODS, "default")).items
        assert is_ready(pod)
        [status] = pod.status.container_statuses
        assert (pod.spec.containers[0].image, status.restart_count) == (image, restarts)
        return pod

    async def ran(image: str, restarts: int) -> Pod:
        try:
            return await running(image, restarts)
        except ValueError as error:
            raise AssertionError("the pod is not there yet") from error

    before = await eventually(lambda: ran("nginx:1.25", 0))
    await client.patch(TROUPES, "band", {"spec": {"image": "nginx:1.26"}}, "default")
    after = await eventually(lambda: ran("nginx:1.26", 1))
    assert (after.metadata.uid, after.status.pod_ip) == (before.metadata.uid, before.status.pod_ip)

    async def told() -> None:
        found = (await client.list(EVENTS, "default", fields="involvedObject.kind=Troupe")).items
        assert [(event.reason, event.message) for event in found] == [("SuccessfulCreate", "created pod band-0")]

    await eventually(told)
    await the_journal_is_for_admins(client)
    await client.delete(TROUPES, "band", "default")

    async def collected() -> None:
        assert (await client.list(PODS, "default")).items == ()

    await eventually(collected)


async def the_journal_is_for_admins(client: Client) -> None:
    """By the manager's address, with a token that the local cluster gives and reviews."""
    session, url = Session(client, namespace="default"), f"https://127.0.0.1:{JOURNAL_PORT}"
    found = await entries(session, controller="troupe-controller", manager_url=url)
    assert found.items[-1]["plan"]["counts"]["create pods"] == 1
    dump = await latest_dump(session, "troupe-controller", Key("default", "band"), manager_url=url)
    assert b"nginx:1.26" in dump.body
    anybody = ssl.create_default_context()
    anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
    async with aiohttp.ClientSession() as stranger, stranger.get(f"{url}/journal", ssl=anybody) as answer:
        assert answer.status == 401
        assert "band" not in await answer.text()
