"""What SidecarSets cost whoever makes a pod: those that none concerns, and those that ten of them do."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import admission, processes
from bench.injecting import FilledStores, pod_handler, sidecar_set
from bench.pods import stored_pod
from bench.report import Report, Row
from kruise.admission.decisions import Change, HandlerView
from kruise.admission.review import decode_admission
from kruise.machinery.codec import encode
from kruise.manager.options import Options

SETS = 200
MATCHING = 10
_ROUNDS = 200


def _unconcerned(seconds: float) -> admission.Found:
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        processes.write_certificate(directory)
        with processes.child("injecting", directory, cores[0], SETS) as (server, ready):
            os.sched_setaffinity(0, cores[1:] or cores)
            try:
                return processes.run(admission.load(server.pid, ready["port"], directory / "ca-cert.pem", seconds))
            finally:
                os.sched_setaffinity(0, cores)


def _decided(count: int) -> list[float]:
    """Seconds of a core for the answer about a pod that so many sets put two sidecars each into."""
    pod: dict[str, Any] = stored_pod(1, "")
    labels = pod["metadata"]["labels"]
    matching = [sidecar_set(number, dict(list(labels.items())[:1])) for number in range(count)]
    others = [sidecar_set(number, {"app": f"other-{number}"}) for number in range(count, SETS)]
    options = Options()
    handler = pod_handler(options)
    stores = FilledStores(handler, [*matching, *others], (pod["metadata"]["namespace"],))
    view = HandlerView(now=datetime.now(UTC), seed=1, stores=stores.store, gates=options.gates)
    body = admission.review(1).partition(b"\r\n\r\n")[2]
    took: list[float] = []
    for _ in range(_ROUNDS):
        began = time.process_time()
        answer = handler.decide(decode_admission(body)[1], view)
        assert isinstance(answer, Change)
        encode(answer.object)
        took.append(time.process_time() - began)
        assert len(answer.object["spec"]["containers"]) >= 2 * count
    return took


def measure(scale: float) -> Report:
    seconds = max(2.0, 15 * scale)
    found, alone, took = _unconcerned(seconds), _decided(0), _decided(MATCHING)
    hundredths = statistics.quantiles(found.latencies, n=100)
    rows = (
        Row(what="no set concerns the pod: half of all", value=hundredths[49] * 1e3, unit="ms"),
        Row(what="no set concerns the pod: 99 of 100", value=hundredths[98] * 1e3, unit="ms", below=5),
        Row(what="server's share of its core", value=found.cpu_share * 100, unit="%"),
        Row(what="others had that core while it could run", value=found.waited_share * 100, unit="% of the time"),
        Row(what="no set concerns the pod: of a core, half of all", value=statistics.median(alone) * 1e3, unit="ms"),
        Row(what=f"{MATCHING} sets do: of a core, half of all", value=statistics.median(took) * 1e3, unit="ms"),
        Row(
            what=f"{MATCHING} sets do: of a core, 99 of 100",
            value=statistics.quantiles(took, n=100)[98] * 1e3,
            unit="ms",
            below=10,
        ),
    )
    setting = (
        f"{SETS} SidecarSets of two sidecars, every step of the admission of pods; {admission.RATE} reviews/s for "
        f"{seconds:.0f} s over TLS, the server has one core; of a core: the decision alone"
    )
    return Report(name="sidecars", setting=setting, rows=rows)
