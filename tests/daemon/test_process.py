"""The process: flags, health, an orderly end; on a fake runtime, beside the local cluster."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from random import Random

import pytest

from kruise.daemon import options
from kruise.daemon.parts import parts
from kruise.daemon.process import CHECKS, run
from kruise.embedded import install
from kruise.flags import FlagError
from kruise.kinds import features
from kruise.local.cluster import ClusterOptions, LocalCluster
from kruise.local.inprocess import InProcessTransport
from kruise.machinery.clock import RealClock
from kruise.manager.installation.manifests import manifests
from tests.daemon.cri.test_cri import FakeRuntime, serving
from tests.support.ports import free_port


def test_flags() -> None:
    """DMN-6, DMN-10, DMN-10a, DMN-92, IMG-9: those of a conformance run are taken."""
    gates = "AllAlpha=true,AllBeta=true"
    given = [f"--feature-gates={gates}", "--max-workers-for-pull-image=2", "--logtostderr=true", "-v=5"]
    chosen = options.parse(given, {"NODE_NAME": "n"})
    assert (chosen.node, chosen.max_pulls, chosen.verbosity) == ("n", 2, 5)
    assert chosen.feature_gates == gates
    assert options.parse([], {"NODE_NAME": "n"}).max_pulls == 0
    assert options.parse(["--enable-pprof=false"], {"NODE_NAME": "n"}).socket_directory == "/hostvarrun"
    with pytest.raises(FlagError, match="not found NODE_NAME in environments"):
        options.parse([], {})


def test_rights() -> None:
    """DMN-7: these and no others."""
    roles = {item["metadata"]["name"]: item for item in manifests((), runs=("daemon",))}
    found: dict[tuple[str, str], set[str]] = {}
    for rule in roles["kruise-daemon-role"]["rules"]:
        for resource in rule["resources"]:
            found.setdefault((rule["apiGroups"][0], resource), set()).update(rule["verbs"])
    ours = "apps.kruise.io"
    assert {right: " ".join(sorted(verbs)) for right, verbs in found.items()} == {
        (ours, "nodeimages"): "get list patch update watch",
        (ours, "nodeimages/status"): "get patch update",
        (ours, "containerrecreaterequests"): "get list watch",
        (ours, "containerrecreaterequests/status"): "get patch update",
        (ours, "nodepodprobes"): "get list watch",
        (ours, "nodepodprobes/status"): "get patch update",
        ("", "pods"): "get list watch",
        ("", "pods/status"): "get patch update",
        ("", "events"): "create patch update",
    }
    secrets = roles["kruise-daemon-secret-role"]
    assert secrets["metadata"]["namespace"] == "kruise-daemon-config"
    assert {resource for rule in secrets["rules"] for resource in rule["resources"]} == {"secrets"}
    assert {verb for rule in secrets["rules"] for verb in rule["verbs"]} == {"get", "list", "watch"}


async def get(port: int, path: str) -> tuple[int, str]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
    writer.close()
    return int(head.split()[1]), body


async def until(port: int, wanted: int) -> str:
    """The text of `/healthz` when it has this code."""
    async with asyncio.timeout(30):
        while True:
            with contextlib.suppress(OSError):
                code, body = await get(port, "/healthz")
                if code == wanted:
                    return body
            await asyncio.sleep(0.05)


async def test_a_daemon_from_start_to_end(tmp_path: Path) -> None:
    """DMN-4, DMN-11, DMN-90, DMN-91."""
    clock = RealClock()
    cluster = LocalCluster(ClusterOptions(nodes=1, node_daemon=False), clock=clock)
    world = asyncio.create_task(cluster.run())
    await cluster.ready.wait()
    port, stop = free_port(), asyncio.Event()
    chosen = options.Options(node="node-1", address=f"127.0.0.1:{port}", socket_directory=str(tmp_path))
    async with serving(FakeRuntime(), tmp_path / "containerd.sock"):
        transport = InProcessTransport(cluster.core)
        daemon = asyncio.create_task(run(chosen, {}, transport, clock=clock, random=Random(1), stop=stop))
        try:
            assert (await until(port, 500)).endswith("failed, err: not synced")
            await install(cluster, features())
            assert await until(port, 200) == "ok"
            code, body = await get(port, "/metrics")
            assert code == 200
            assert 'name="crr"' in body
            assert (await get(port, "/else"))[0] == 404
            stop.set()
            await asyncio.wait_for(daemon, 20)
        finally:
            for task in (daemon, world):
                task.cancel()
                await asyncio.wait({task})


def test_each_health_check_is_about_a_part() -> None:
    """DMN-90: a name that no part has would always be well."""
    assert set(CHECKS) <= {part.name for part in parts({})}
