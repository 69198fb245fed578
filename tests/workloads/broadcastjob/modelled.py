"""A BroadcastJob in the fast model of a cluster."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from kruise.api.apps.broadcastjob import BROADCAST_JOBS, BroadcastJob, BroadcastJobStatus
from kruise.api.meta import Key
from kruise.api.native.daemon_pods import target_node
from kruise.api.native.nodes import NODES, Node
from kruise.api.native.pod import PODS, Pod
from kruise.machinery import codec
from kruise.machinery.plan import Plan
from kruise.manager.options import Options
from kruise.model.world import Json
from kruise.workloads.broadcastjob.controller import BY_SCHEDULER, controllers
from tests.support.modelled import Modelled

ROOM = {"allocatable": {"pods": "110", "cpu": "4", "memory": "8Gi"}}
TEMPLATE: Json = {
    "metadata": {"labels": {"app": "task"}},
    "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox:1"}]},
}


def template(**spec: Any) -> Json:
    return {**TEMPLATE, "spec": {**TEMPLATE["spec"], **spec}}


def document(**spec: Any) -> Json:
    """A BroadcastJob `job` in `demo`, as admission leaves it."""
    defaults = {
        "parallelism": 2147483647,
        "template": TEMPLATE,
        "completionPolicy": {"type": "Always"},
        "failurePolicy": {"type": "FailFast"},
    }
    return {
        "apiVersion": BROADCAST_JOBS.api_version,
        "kind": BROADCAST_JOBS.kind,
        "metadata": {"name": "job", "namespace": "demo"},
        "spec": {**defaults, **spec},
    }


class ModelledJob(Modelled[BroadcastJob]):
    """On some nodes, node-0 and so on."""

    def __init__(self, given: Json | None = None, *, nodes: int = 3, by_scheduler: bool = True) -> None:
        options = dataclasses.replace(Options(), flags={BY_SCHEDULER.name: by_scheduler})
        [spec] = controllers(options)
        super().__init__(spec, given or document())
        for node in self.world.store(NODES).list():
            self.edit_node(node.metadata.name, lambda doc: doc.update(status=ROOM))
        for place in range(3, nodes):
            self.add_node(f"node-{place}")
        for place in range(nodes, 3):
            self.remove_node(f"node-{place}")

    @property
    def job(self) -> BroadcastJob:
        return self.subject

    @property
    def status(self) -> BroadcastJobStatus:
        return self.subject.status

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Desired, active, succeeded, failed, as kubectl prints them."""
        status = self.status
        return status.desired, status.active, status.succeeded, status.failed

    def on(self, node: str) -> Pod:
        [pod] = [pod for pod in self.pods if target_node(pod) == node]
        return pod

    @property
    def served(self) -> list[str]:
        return sorted(target_node(pod) for pod in self.pods)

    def end(self, node: str, phase: str = "Succeeded") -> None:
        """A node reports that the pod on it has ended."""
        self.change(PODS, self.on(node).metadata.name, lambda doc: doc.setdefault("status", {}).update(phase=phase))

    def restart(self, node: str, times: int) -> None:
        """Its task ended with code 3 so many times."""
        last = {"terminated": {"exitCode": 3}}
        statuses = [{"name": "main", "restartCount": times, "lastState": last}]
        self.change(
            PODS,
            self.on(node).metadata.name,
            lambda doc: doc.setdefault("status", {}).update(phase="Running", containerStatuses=statuses),
        )

    def passes(self, count: int = 2) -> Plan:
        for _ in range(count):
            plan = self.reconcile()
        return plan

    def gone(self) -> bool:
        return self.world.store(BROADCAST_JOBS).get(*self.key) is None

    def add_node(self, name: str, *, labels: Mapping[str, str] | None = None, status: Any = ROOM, **spec: Any) -> None:
        node = {"metadata": {"name": name, "uid": f"uid-{name}", "labels": dict(labels or {})}, "spec": spec}
        self.world.add(NODES, [codec.convert({**node, "status": status}, Node)])

    def remove_node(self, name: str) -> None:
        node = self.world.store(NODES).get("", name)
        assert node is not None
        self.world.delete(NODES, node)

    def edit_node(self, name: str, edit: Any) -> None:
        assert self.world.edit(NODES, Key("", name), edit) is not None

    def events(self) -> list[tuple[str, str]]:
        """Reason and message of those that the next pass tells."""
        done = self.loop.run(self.loop.controllers[0], self.key)
        assert done is not None
        return [(note.reason, note.message) for note in done.conclusion.events]


def held(plan: Plan) -> dict[str, str]:
    """The job's own cause by its name, and what holds pods, but for those that just run."""
    found = {item.target.name: item.causes[0].code for item in plan.held}
    return {name: code for name, code in found.items() if name == "job" or code != "tasks"}
