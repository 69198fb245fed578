"""An admission server on one core: `python -m bench.reviewing DIRECTORY CORE` says its port.

It serves pods with one step that changes them, set up as in a manager of the role `webhook`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from bench import processes
from kruise.admission.answering import Answerer
from kruise.admission.chain import PodChain, PodStep, StepContext
from kruise.admission.conversion import Converters
from kruise.admission.decisions import Change
from kruise.admission.registry import Registry
from kruise.admission.server import AdmissionServer
from kruise.machinery.clock import RealClock
from kruise.manager.webhooks import _observer

GATE = {"conditionType": "KruisePodReady"}


def add_gate(pod: dict[str, Any], context: StepContext) -> Change:
    spec = pod["spec"]
    return Change(object={**pod, "spec": {**spec, "readinessGates": [*spec.get("readinessGates", ()), GATE]}})


async def serve(directory: Path) -> None:
    chain = PodChain()
    chain.register(PodStep.READINESS_GATE, add_gate)
    answerer = Answerer(RealClock())
    observe = _observer(CollectorRegistry())
    server = AdmissionServer(Registry(chain.handler()), answerer, Converters(), observe=observe)
    server.certificate.load(directory / "tls.crt", directory / "tls.key")
    await server.start(processes.HOST, 0)
    processes.settle_heap()
    processes.say({"port": server.port})
    await processes.until_input_ends()
    await server.stop()


if __name__ == "__main__":
    os.sched_setaffinity(0, {int(sys.argv[2])})
    processes.run(serve(Path(sys.argv[1])))
