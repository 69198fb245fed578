"""A DaemonSet in the fast model of a cluster."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from kruise.api.apps.daemonset import DAEMON_SETS, DaemonSet
from kruise.api.apps.images import IMAGE_PULL_JOBS
from kruise.api.meta import Key
from kruise.api.native.nodes import NODES, Node
from kruise.api.native.pod import PODS, Pod
from kruise.inplace import keys
from kruise.machinery import codec
from kruise.machinery.client.requests import Verb
from kruise.machinery.plan import Plan
from kruise.manager.options import Options
from kruise.model.world import Json
from kruise.workloads.daemonset.controller import controllers
from tests.support.clonesets import TEMPLATE
from tests.support.modelled import ModelledWorkload


def document(rolling: Mapping[str, Any] | None = None, *, template: Mapping[str, Any] = TEMPLATE, **spec: Any) -> Json:
    """A DaemonSet `agent` in `demo`. `rolling` are the fields of `rollingUpdate`, `spec` further ones."""
    return {
        "apiVersion": DAEMON_SETS.api_version,
        "kind": DAEMON_SETS.kind,
        "metadata": {"name": "agent", "namespace": "demo"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": template,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": dict(rolling or {"maxUnavailable": 1})},
            **spec,
        },
    }


class ModelledDaemonSet(ModelledWorkload[DaemonSet]):
    """On three nodes, node-0 to node-2."""

    def __init__(self, given: Json, *, gates: Mapping[str, bool] | None = None) -> None:
        [spec] = controllers(dataclasses.replace(Options(), gates={**Options().gates, **(gates or {})}))
        super().__init__(spec, given, gates=gates, served=(IMAGE_PULL_JOBS,))

    @property
    def daemon_set(self) -> DaemonSet:
        return self.subject

    @property
    def images(self) -> dict[str, str]:
        """The image of each node's oldest pod."""
        return {pod.spec.node_name: pod.spec.containers[0].image for pod in reversed(self.pods)}

    def on(self, node: str) -> list[Pod]:
        return [pod for pod in self.pods if pod.spec.node_name == node]

    def told(self, plan: Plan) -> list[str]:
        return writes_to_pods(plan)

    def add_node(self, name: str, *, labels: Mapping[str, str] | None = None, taints: Any = ()) -> None:
        node = {
            "metadata": {"name": name, "uid": f"uid-{name}", "labels": dict(labels or {})},
            "spec": {"taints": taints},
        }
        self.world.add(NODES, [codec.convert(node, Node)])

    def edit_node(self, name: str, edit: Any) -> None:
        assert self.world.edit(NODES, Key("", name), edit) is not None


def writes_to_pods(plan: Plan) -> list[str]:
    verbs = {Verb.CREATE: "create", Verb.DELETE: "delete", Verb.PATCH: "patch"}
    return [verbs[action.verb] for action in plan.actions() if action.target.resource == PODS and action.verb in verbs]


def states(model: ModelledDaemonSet) -> dict[str, str]:
    """The lifecycle states of the pods, by node."""
    return {pod.spec.node_name: pod.metadata.labels.get(keys.STATE_LABEL, "") for pod in model.pods}
