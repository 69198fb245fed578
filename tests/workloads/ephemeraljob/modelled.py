"""An EphemeralJob in the fast model of a cluster."""

from __future__ import annotations

from typing import Any

from kruise.api.apps.ephemeraljob import EPHEMERAL_JOBS, EphemeralJob, EphemeralJobStatus
from kruise.api.native.pod import PODS
from kruise.machinery.codec import convert
from kruise.manager.options import Options
from kruise.model.world import Json
from kruise.workloads.ephemeraljob.controller import controllers
from kruise.workloads.ephemeraljob.pods import Seen, seen
from tests.support.modelled import START, UID, Modelled
from tests.workloads.ephemeraljob.model import CONTAINER


def document(**spec: Any) -> Json:
    """An EphemeralJob `dbg` in `demo`."""
    return {
        "apiVersion": EPHEMERAL_JOBS.api_version,
        "kind": EPHEMERAL_JOBS.kind,
        "metadata": {"name": "dbg", "namespace": "demo"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"ephemeralContainers": [CONTAINER]},
            **spec,
        },
    }


class ModelledDebug(Modelled[EphemeralJob]):
    """With some pods, web-0 and so on, that run."""

    def __init__(self, given: Json | None = None, *, pods: int = 3) -> None:
        [spec] = controllers(Options())
        super().__init__(spec, given or document())
        for number in range(pods):
            self.add_pod(number)

    @property
    def status(self) -> EphemeralJobStatus:
        return self.subject.status

    def gone(self) -> bool:
        return self.world.store(EPHEMERAL_JOBS).get(*self.key) is None

    def add_pod(self, number: int, *, node: str = "node-0") -> None:
        name = f"web-{number}"
        if self.pod(name) is not None:
            return
        metadata = {"name": name, "namespace": "demo", "uid": f"uid-{number}-{self.world.version}"}
        labels = {"labels": {"app": "web"}, "creationTimestamp": START}
        body = {"metadata": {**metadata, **labels}, "spec": {"nodeName": node}, "status": {"phase": "Running"}}
        self.world.add(PODS, [convert(body, PODS.type)])

    def place(self, number: int) -> None:
        """The scheduler finds a node for it."""
        if self.pod(f"web-{number}") is not None:
            self.change(PODS, f"web-{number}", lambda doc: doc["spec"].update(nodeName="node-0"))

    @property
    def seen(self) -> dict[str, Seen]:
        return {pod.metadata.name: seen(pod, UID) for pod in self.pods}

    def report(self, number: int, state: Json) -> None:
        """The node of a pod tells how its container is, if it has one that has not ended."""
        one = self.seen.get(f"web-{number}")
        if one is None or not one.is_under_way or not one.has_node:
            return
        statuses = [{"name": "dbg", "image": "busybox", "state": state}]
        self.change(PODS, one.name, lambda doc: doc["status"].update(ephemeralContainerStatuses=statuses))
