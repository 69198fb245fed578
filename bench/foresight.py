"""Looking ahead: how long `kruise plan` takes for a large CloneSet, and how much memory.

A fresh process reads the objects from a file of JSON lines, as large as a server sends them, and makes the forecast.
The time is that of the whole process, imports included; only the network is left out.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.memory import memory
from bench.report import Report, Row
from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.meta import Key
from kruise.api.native.apps import CONTROLLER_REVISIONS
from kruise.api.native.nodes import NODES, Node
from kruise.api.native.pod import PODS
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS
from kruise.api.resource import Resource
from kruise.foresight.foreseeing import foresee
from kruise.foresight.playing import Bounds
from kruise.foresight.staging import stage
from kruise.kinds import features
from kruise.machinery import codec
from kruise.manager.options import Options

PODS_COUNT = 2000
NODES_COUNT = 40
NOW = datetime(2030, 1, 1, 12, 0, 0, tzinfo=UTC)
KEY = Key("bench", "web")
RESOURCES: tuple[Resource[Any], ...] = (CLONE_SETS, PODS, CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, NODES)
ROUNDS = 3
_FILLING = "f:metadata f:spec f:status " * 190
"""What a server sends and nobody reads, such as managedFields: about 5 KB."""


def manifest(replicas: int, image: str, limit: int | str, policy: str) -> dict[str, Any]:
    labels = {"app": "web"}
    container = {"name": "main", "image": image, "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    return {
        "apiVersion": CLONE_SETS.api_version,
        "kind": CLONE_SETS.kind,
        "metadata": {"name": KEY.name, "namespace": KEY.namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            "updateStrategy": {"rollingUpdate": {"podUpdatePolicy": policy, "maxUnavailable": limit}},
        },
    }


def _lines(replicas: int, policy: str) -> Iterator[bytes]:
    """A CloneSet at rest, with its pods, as lines of JSON: the number of the kind, then the object."""
    nodes = [codec.convert({"metadata": {"name": f"node-{place}"}}, Node) for place in range(NODES_COUNT)]
    scene = stage(
        CLONE_SETS,
        KEY,
        manifest(replicas, "nginx:1", "10%", policy),
        {NODES: nodes},
        features=features(),
        settings=Options(),
        now=NOW - timedelta(hours=1),
        seed=0,
        answer_hooks=True,
        server_version=None,
        bounds=Bounds(),
    )
    scene.playing.play()
    for number, kind in enumerate(RESOURCES):
        for obj in scene.world.store(kind).list():
            document = codec.decode(codec.encode(obj), dict[str, Any])
            document["metadata"]["managedFields"] = [{"fieldsV1": _FILLING}]
            yield b"%d %b\n" % (number, codec.encode(document))


def _child(path: str, limit: str, policy: str) -> None:
    """One forecast in this process; what it took goes to the standard output."""
    objects: dict[Resource[Any], list[Any]] = {kind: [] for kind in RESOURCES}
    with Path(path).open("rb") as file:
        for line in file:
            number, _, document = line.partition(b" ")
            kind = RESOURCES[int(number)]
            objects[kind].append(codec.decode(document, kind.type))
    changed = manifest(len(objects[PODS]), "nginx:2", int(limit) if limit.isdecimal() else limit, policy)
    forecast = foresee(CLONE_SETS, KEY, changed, objects, features=features(), settings=Options(), now=NOW)
    # Not `ru_maxrss`: that begins with what the parent had when it started this process.
    print(json.dumps({"rss": memory()["peak"], "waves": len(forecast.waves), "cut": forecast.is_cut}))


def _run(path: Path, limit: str, policy: str) -> tuple[float, float]:
    began = time.perf_counter()
    command = [sys.executable, "-m", "bench.foresight", str(path), limit, policy]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    seconds = time.perf_counter() - began
    return seconds, float(json.loads(answer.stdout)["rss"])


def measure(scale: float) -> Report:
    pods = max(10, round(PODS_COUNT * scale))
    rows: list[Row] = []
    for policy, limit, what in (
        ("InPlaceIfPossible", "10%", "in place, a tenth at a time"),
        ("InPlaceIfPossible", "20%", "in place, a fifth at a time"),
        ("ReCreate", "10%", "rebuilt, a tenth at a time"),
        ("InPlaceIfPossible", "1", "in place one by one, cut"),
    ):
        with tempfile.NamedTemporaryFile() as file:
            file.writelines(_lines(pods, policy))
            file.flush()
            runs = [_run(Path(file.name), limit, policy) for _ in range(ROUNDS)]
        rows.append(Row(what=what, value=statistics.median(seconds for seconds, _ in runs), unit="s", below=5))
        rows.append(Row(what=f"{what}: memory", value=max(rss for _, rss in runs), unit="MB", below=400))
    setting = f"a forecast for {pods} pods in a process of its own, from objects in a file; median of {ROUNDS}"
    return Report(name="foresight", setting=setting, rows=tuple(rows))


if __name__ == "__main__":
    _child(*sys.argv[1:])
