"""`kruise why`: how long a person waits for the answer, by the manager's journal and decided anew."""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.local import _started, _stop
from bench.report import Report, Row
from kruise.api.apps.cloneset import CLONE_SETS, CloneSet
from kruise.api.native.pod import PODS
from kruise.cli.deciding import Asking, explain
from kruise.cli.flags import Connection
from kruise.cli.session import connected
from kruise.machinery import collection
from kruise.machinery.client.client import Client
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.kubeconfig import load
from kruise.reasons.words import answer_lines
from kruise.verbs.targets import Target
from kruise.workloads.cloneset.face import FACE as CLONE_SET

ROUNDS = 7
SMALL = 100
JOURNAL, ANEW = Asking(), Asking(journal=False)


def cloneset(name: str, replicas: int, image: str) -> dict[str, Any]:
    labels = {"app": name}
    container = {"name": "main", "image": image, "resources": {"requests": {"cpu": "1m"}}}
    return {
        "apiVersion": CLONE_SETS.api_version,
        "kind": CLONE_SETS.kind,
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            "updateStrategy": {"rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": "10%"}},
        },
    }


async def _until(client: Client, name: str, check: Callable[[CloneSet], bool]) -> None:
    while not check(await client.get(CLONE_SETS, name, "default")):  # noqa: ASYNC110 - a benchmark may poll
        await asyncio.sleep(0.5)


async def _hanging(client: Client, name: str, replicas: int) -> None:
    """A rollout that hangs: a tenth of the pods wait for an image that nobody has, the others for them."""
    await client.create(CLONE_SETS, cloneset(name, replicas, "nginx:1.25"), "default")
    await _until(client, name, lambda found: found.status.available_replicas == replicas)
    spec = cloneset(name, replicas, "nginx:missing")["spec"]
    await client.patch(CLONE_SETS, name, {"spec": spec}, "default")
    down = replicas // 10
    await _until(client, name, lambda found: found.status.updated_replicas == down)
    await asyncio.sleep(3)


async def _asked(kubeconfig: Path, name: str, asking: Asking) -> float:
    """Milliseconds from an answer to the next: connecting, reading, deciding and telling; the median."""
    taken = []
    for _ in range(1 + ROUNDS):
        with collection.at_rest():
            began = time.perf_counter()
            async with connected(Connection(kubeconfig=str(kubeconfig))) as session:
                target = Target(CLONE_SET, name)
                answer = await explain(session, target, await session.get(target), asking)
                lines = answer_lines(answer)
            taken.append((time.perf_counter() - began) * 1000)
        if answer.source.is_journal is not asking.journal or "image-pull" not in "\n".join(lines):
            raise RuntimeError(f"this is not the answer that was to be measured: {lines}")
    return statistics.median(taken[1:])  # the first one loads what a decision needs


async def _listed(client: Client, name: str) -> float:
    """Milliseconds that the server and the way take for the pods alone: no answer from live objects comes sooner."""
    taken = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        await client.list(PODS, "default", labels=f"app={name}")
        taken.append((time.perf_counter() - began) * 1000)
    return statistics.median(taken)


def _command(kubeconfig: Path, name: str) -> float:
    """Milliseconds of the whole command, start of Python and imports included; of compiled modules, as an installation
    has them."""
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "PYTHONPYCACHEPREFIX": str(kubeconfig.parent / "pyc")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    taken = []
    for _ in range(1 + ROUNDS):
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "kruise.cli.main", "why", f"cloneset/{name}"],
            env=environment,
            capture_output=True,
            check=False,
        )
        if done.returncode != 3:
            raise RuntimeError(f"kruise why ended with {done.returncode}: {done.stderr.decode()}")
        taken.append((time.perf_counter() - began) * 1000)
    return statistics.median(taken[1:])


def measure(scale: float) -> Report:
    replicas = max(SMALL, int(2000 * scale))
    with tempfile.TemporaryDirectory() as directory:
        _started(directory, f"--nodes={max(3, replicas // 50)}")
        kubeconfig = Path(directory) / "kubeconfig"

        async def main() -> list[float]:
            found = []
            async with Client(HttpTransport(load(kubeconfig))) as client:
                for name, count in (("small", SMALL), ("large", replicas)):
                    await _hanging(client, name, count)
                    found += [await _asked(kubeconfig, name, asking) for asking in (JOURNAL, ANEW)]
                    found.append(await asyncio.to_thread(_command, kubeconfig, name))
                found.append(await _listed(client, "large"))
            return found

        try:
            small, small_anew, command, large, large_anew, large_command, listed = asyncio.run(main())
        finally:
            _stop(directory)
    rows = (
        Row(what=f"{SMALL} pods, by the journal", value=small, unit="ms", below=300),
        Row(what=f"{SMALL} pods, decided anew", value=small_anew, unit="ms", below=300),
        Row(what=f"{SMALL} pods, the whole command", value=command, unit="ms", below=300),
        Row(what=f"{replicas} pods, by the journal", value=large, unit="ms", below=300),
        Row(what=f"{replicas} pods, the whole command", value=large_command, unit="ms"),
        Row(what=f"{replicas} pods, decided anew", value=large_anew, unit="ms"),
        Row(what="  of it, listing the pods", value=listed, unit="ms"),
    )
    setting = "a rollout that hangs, `kruise up` over HTTPS; imports done, except for the whole command"
    return Report(name="why", setting=setting, rows=rows)
