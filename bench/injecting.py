"""An admission server on one core with many SidecarSets: `python -m bench.injecting DIRECTORY CORE SETS` says its port.

It serves pods with every step of their admission, set up as in a manager of the role `webhook`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any, cast

from prometheus_client import CollectorRegistry

from bench import processes
from kruise.admission.answering import Answerer
from kruise.admission.chain import PATH
from kruise.admission.conversion import Converters
from kruise.admission.registry import Handler, Registry
from kruise.admission.server import AdmissionServer
from kruise.api.apps.sidecarset import SIDECAR_SETS, SidecarSet
from kruise.api.native.nodes import NAMESPACES, Namespace
from kruise.api.resource import Resource
from kruise.feature import handlers_of
from kruise.kinds import features
from kruise.machinery.clock import RealClock
from kruise.machinery.codec import decode, encode
from kruise.machinery.store import Store
from kruise.machinery.watched import watched
from kruise.manager.options import Options
from kruise.manager.webhooks import _observer
from kruise.sidecars.sidecarset.defaults import defaulted


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


def pod_handler(options: Options) -> Handler:
    """What answers for new pods."""
    return next(handler for handler in handlers_of(features(), options) if handler.path == PATH)


class FilledStores:
    def __init__(self, handler: Handler, sets: Collection[SidecarSet], namespaces: Collection[str]) -> None:
        """Nothing is there but these SidecarSets and namespaces."""
        self._stores: dict[Resource[Any], Store[Any]] = {}
        texts = [{"metadata": {"name": name, "resourceVersion": "1"}} for name in namespaces]
        there: dict[Resource[Any], list[Any]] = {
            SIDECAR_SETS: list(sets),
            NAMESPACES: [decode(encode(text), Namespace) for text in texts],
        }
        for kind in map(watched, handler.needs):
            if (known := self._stores.get(kind.resource)) is not None:
                known.add_indexes(kind)
            else:
                self._stores[kind.resource] = Store(kind)
        for resource, store in self._stores.items():
            found = there.get(resource, [])
            store.replace(found, max(1, len(found)))

    def store(self, resource: Resource[Any]) -> Store[Any]:
        return self._stores[resource]

    def written(self, resource: Resource[Any], obj: Any) -> None:
        raise NotImplementedError("nothing is written here")

    async def wait_synced(self, timeout: float | None, resources: Collection[Resource[Any]] | None) -> None:
        return


async def serve(directory: Path, sets: int) -> None:
    many = [sidecar_set(number, {"app": f"app-{number}"}) for number in range(sets)]
    options = Options()
    handler = pod_handler(options)
    stores = FilledStores(handler, many, ("default",))
    answerer = Answerer(RealClock(), stores=cast(Any, stores), gates=options.gates)
    server = AdmissionServer(Registry(handler), answerer, Converters(), observe=_observer(CollectorRegistry()))
    server.certificate.load(directory / "tls.crt", directory / "tls.key")
    await server.start(processes.HOST, 0)
    processes.settle_heap()
    processes.say({"port": server.port})
    await processes.until_input_ends()
    await server.stop()


if __name__ == "__main__":
    os.sched_setaffinity(0, {int(sys.argv[2])})
    processes.run(serve(Path(sys.argv[1]), int(sys.argv[3])))
