"""A CloneSet in the fast model of a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kruise.api.apps.cloneset import CloneSet
from kruise.api.native.pod import PODS
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim
from kruise.api.resource import Resource
from kruise.inplace import keys
from kruise.manager.options import Options
from kruise.model.world import Json
from kruise.workloads.cloneset.controller import controllers
from tests.support.modelled import ModelledWorkload


def _pod_webhook(resource: Resource[Any], document: Json) -> None:
    """IPU-80"""
    if resource == PODS:
        document["spec"].setdefault("readinessGates", []).append({"conditionType": keys.KRUISE_POD_READY})


class ModelledCloneSet(ModelledWorkload[CloneSet]):
    def __init__(self, document: Json, *, gates: Mapping[str, bool] | None = None) -> None:
        [spec] = controllers(Options())
        super().__init__(spec, document, gates=gates, mutate=_pod_webhook)

    @property
    def cloneset(self) -> CloneSet:
        return self.subject

    @property
    def claims(self) -> tuple[PersistentVolumeClaim, ...]:
        return self.world.store(PERSISTENT_VOLUME_CLAIMS).list()
