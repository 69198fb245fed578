"""An admission server on one core with many SidecarSets: `python -m bench.injecting DIRECTORY CORE SETS` says its port.

It serves pods with the steps of readiness and of sidecars, set up as in a manager of the role `webhook`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any, cast

from prometheus_client import CollectorRegistry

from bench import processes
from bench.reviewing import add_gate
from kruise.admission.answering import Answerer
from kruise.admission.chain import PodChain, PodStep
from kruise.admission.conversion import Converters
from kruise.admission.registry import Registry
from kruise.admission.server import AdmissionServer
from kruise.api.apps.sidecarset import SIDECAR_SETS, SidecarSet
from kruise.api.native.apps import CONTROLLER_REVISIONS
from kruise.api.native.nodes import NAMESPACES, Namespace
from kruise.api.resource import Resource
from kruise.machinery.clock import RealClock
from kruise.machinery.codec import decode, encode
from kruise.machinery.store import Store
from kruise.manager.webhooks import _observer
from kruise.sidecars.sidecarset.defaults import defaulted
from kruise.sidecars.sidecarset.injecting import Injection
from kruise.sidecars.sidecarset.matching import WATCHED_NAMESPACES, WATCHED_REVISIONS, WATCHED_SETS

OWN_NAMESPACE = "kruise-system"


def sidecar_set(number: int, labels: dict[str, str]) -> SidecarSet:
    """One of ordinary size, with two sidecars, a volume and a shared mount."""
    sidecars = [
        {
            "name": f"side-{number}-{place}",
            "image": f"registry.example.com/side:{number}",
            "env": [{"name": f"SETTING_{index}", "value": "some value"} for index in range(8)],
            "volumeMounts": [{"name": f"work-{number}", "mountPath": "/work"}],
            "shareVolumePolicy": {"type": "enabled"},
            "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
        }
        for place in range(2)
    ]
    manifest = {
        "apiVersion": SIDECAR_SETS.api_version,
        "kind": "SidecarSet",
        "metadata": {"name": f"set-{number}"},
        "spec": {
            "selector": {"matchLabels": labels},
            "containers": sidecars,
            "volumes": [{"name": f"work-{number}", "emptyDir": {}}],
        },
    }
    whole = defaulted(manifest, version="v1beta1", gates={})
    metadata = {**whole["metadata"], "uid": f"set-{number}", "resourceVersion": str(number + 1)}
    return decode(encode({**whole, "metadata": metadata}), SidecarSet)


class FilledStores:
    def __init__(self, sets: Collection[SidecarSet], namespaces: Collection[str]) -> None:
        self._stores: dict[Resource[Any], Store[Any]] = {
            SIDECAR_SETS: Store(WATCHED_SETS),
            NAMESPACES: Store(WATCHED_NAMESPACES),
            CONTROLLER_REVISIONS: Store(WATCHED_REVISIONS),
        }
        self._stores[SIDECAR_SETS].replace(list(sets), len(sets))
        texts = [{"metadata": {"name": name, "resourceVersion": "1"}} for name in namespaces]
        self._stores[NAMESPACES].replace([decode(encode(text), Namespace) for text in texts], 1)
        self._stores[CONTROLLER_REVISIONS].replace([], 1)

    def store(self, resource: Resource[Any]) -> Store[Any]:
        return self._stores[resource]

    def written(self, resource: Resource[Any], obj: Any) -> None:
        raise NotImplementedError("nothing is written here")

    async def wait_synced(self, timeout: float | None, resources: Collection[Resource[Any]] | None) -> None:
        return


def chain() -> PodChain:
    found = PodChain()
    found.register(PodStep.READINESS_GATE, add_gate)
    needs = (WATCHED_SETS, WATCHED_NAMESPACES, WATCHED_REVISIONS)
    found.register(PodStep.SIDECAR_SET, Injection(OWN_NAMESPACE), needs=needs)
    return found


async def serve(directory: Path, sets: int) -> None:
    many = [sidecar_set(number, {"app": f"app-{number}"}) for number in range(sets)]
    stores = FilledStores(many, ("default",))
    answerer = Answerer(RealClock(), stores=cast(Any, stores))
    server = AdmissionServer(
        Registry(chain().handler()), answerer, Converters(), observe=_observer(CollectorRegistry())
    )
    server.certificate.load(directory / "tls.crt", directory / "tls.key")
    await server.start(processes.HOST, 0)
    processes.settle_heap()
    processes.say({"port": server.port})
    await processes.until_input_ends()
    await server.stop()


if __name__ == "__main__":
    os.sched_setaffinity(0, {int(sys.argv[2])})
    processes.run(serve(Path(sys.argv[1]), int(sys.argv[3])))
