"""A StatefulSet in the fast model of a cluster."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from kruise.api.apps.statefulset import STATEFUL_SETS, StatefulSet
from kruise.api.native.pod import PODS
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim
from kruise.api.resource import Resource
from kruise.inplace import keys
from kruise.machinery.client.requests import Verb
from kruise.machinery.plan import Plan
from kruise.machinery.revision_names import is_revision
from kruise.manager.options import Options
from kruise.model.world import Json
from kruise.workloads.statefulset.controller import controllers
from tests.support.clonesets import TEMPLATE
from tests.support.modelled import ModelledWorkload

GATES = {"StatefulSetAutoDeletePVC": True, "PodIndexLabel": True}
"""Those that are on by default."""
CLAIM: Mapping[str, Any] = {
    "metadata": {"name": "data"},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "manual",
    },
}
IN_PLACE = {"podUpdatePolicy": "InPlaceIfPossible"}


def template(image: str = "nginx:1", *, labels: Mapping[str, str] | None = None, **metadata: Any) -> Json:
    """With the readiness gate that updates in place ask for."""
    made: Json = copy.deepcopy(dict(TEMPLATE))
    made["metadata"] = {"labels": {"app": "web", **(labels or {})}, **metadata}
    made["spec"]["containers"][0]["image"] = image
    made["spec"]["readinessGates"] = [{"conditionType": keys.IN_PLACE_READY}]
    return made


def document(
    replicas: int = 3,
    *,
    rolling: Mapping[str, Any] | None = None,
    parallel: bool = False,
    metadata: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Json:
    """A StatefulSet `web` in `demo`. `rolling` are the fields of `rollingUpdate`, `spec` further ones."""
    return {
        "apiVersion": STATEFUL_SETS.api_version,
        "kind": STATEFUL_SETS.kind,
        "metadata": {"name": "web", "namespace": "demo", **(metadata or {})},
        "spec": {
            "replicas": replicas,
            "serviceName": "svc",
            "podManagementPolicy": "Parallel" if parallel else "OrderedReady",
            "selector": {"matchLabels": {"app": "web"}},
            "template": template(),
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": dict(rolling or {})},
            **spec,
        },
    }


def _pod_webhook(resource: Resource[Any], made: Json) -> None:
    """IPU-80"""
    if resource == PODS:
        made["spec"].setdefault("readinessGates", []).append({"conditionType": keys.KRUISE_POD_READY})


class ModelledStatefulSet(ModelledWorkload[StatefulSet]):
    def __init__(self, given: Json, *, gates: Mapping[str, bool] | None = None) -> None:
        wanted = {**GATES, **(gates or {})}
        [spec] = controllers(Options(gates=wanted))
        super().__init__(spec, given, gates=wanted, mutate=_pod_webhook)

    @property
    def statefulset(self) -> StatefulSet:
        return self.subject

    @property
    def claims(self) -> tuple[PersistentVolumeClaim, ...]:
        return self.world.store(PERSISTENT_VOLUME_CLAIMS).list()

    @property
    def names(self) -> list[str]:
        return sorted(pod.metadata.name for pod in self.pods)

    @property
    def images(self) -> dict[str, str]:
        return {pod.metadata.name: pod.spec.containers[0].image for pod in self.pods}

    @property
    def updated(self) -> list[str]:
        """Pods at the update revision."""
        update = self.statefulset.status.update_revision
        labels = {pod.metadata.name: pod.metadata.labels.get(keys.REVISION_LABEL, "") for pod in self.pods}
        return sorted(name for name, label in labels.items() if is_revision(label, update))

    def told(self, plan: Plan) -> list[str]:
        return writes(plan)

    def label(self, pod: str, **labels: str | None) -> None:
        def edit(made: Json) -> None:
            for name, value in labels.items():
                if value is None:
                    made["metadata"]["labels"].pop(name, None)
                else:
                    made["metadata"]["labels"][name] = value

        self.change(PODS, pod, edit)

    def causes(self, plan: Plan, target: str) -> list[str]:
        return [cause.code for held in plan.held if held.target.name == target for cause in held.causes]


def writes(plan: Plan) -> list[str]:
    """What a plan does to pods: `create web-0`, `delete web-1`. Conditions and labels are not worth a line."""
    verbs = {Verb.CREATE: "create", Verb.DELETE: "delete"}
    return [
        f"{verbs[action.verb]} {action.target.name}"
        for action in plan.actions()
        if action.target.resource == PODS and action.verb in verbs
    ]
