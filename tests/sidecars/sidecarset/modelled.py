"""A SidecarSet in the fast model of a cluster, with pods that got its sidecars when they were made."""

from __future__ import annotations

import json
from typing import Any

from kruise.api.apps.sidecarset import SIDECAR_SETS, SidecarSet
from kruise.api.native.apps import CONTROLLER_REVISIONS
from kruise.api.native.pod import PODS, Pod
from kruise.machinery import codec
from kruise.manager.options import Options
from kruise.sidecars.sidecarset.content import content_of
from kruise.sidecars.sidecarset.controller import controllers
from kruise.sidecars.sidecarset.defaults import defaulted
from kruise.sidecars.sidecarset.facts import SidecarFacts
from kruise.sidecars.sidecarset.situation import situation_of
from tests.support.modelled import Modelled
from tests.support.sidecarsets import pod, stored, with_sidecars

Json = dict[str, Any]
NAMESPACE = "default"


class ModelledSidecarSet(Modelled[SidecarSet]):
    def __init__(self, manifest: Json, count: int = 3) -> None:
        [spec] = controllers(Options())
        super().__init__(spec, defaulted(manifest, version="v1beta1", gates={}))
        content = content_of(stored(manifest))
        self.world.add(PODS, [_made(with_sidecars(pod(f"web-{number}"), content)) for number in range(count)])

    def pod(self, name: str) -> Pod | None:
        """Its pods are in a namespace, and it is in none."""
        return self.world.store(PODS).get(NAMESPACE, name)

    @property
    def facts(self) -> tuple[SidecarFacts, ...]:
        return situation_of(self.snapshot()).facts

    @property
    def revisions(self) -> int:
        return len(self.world.store(CONTROLLER_REVISIONS).list())

    def apply(self, manifest: Json) -> None:
        """As admission leaves it."""

        def edit(document: Json) -> None:
            whole = defaulted({**manifest, "metadata": document["metadata"]}, version="v1beta1", gates={}, old=document)
            document["metadata"], document["spec"] = whole["metadata"], whole["spec"]

        self.change(SIDECAR_SETS, self.key.name, edit)

    def images(self) -> dict[str, dict[str, str]]:
        return {one.metadata.name: {item.name: item.image for item in one.spec.containers} for one in self.pods}

    def restarts(self) -> dict[str, dict[str, int]]:
        return {
            one.metadata.name: {status.name: status.restart_count for status in one.status.container_statuses}
            for one in self.pods
        }

    def settle(self, rounds: int = 40) -> None:
        """Passes and kubelets in turn, until nothing happens any more."""
        for _ in range(rounds):
            before = self.world.version
            self.reconcile()
            for one in self.pods:
                self.kubelet(one.metadata.name)
            self.pass_time(1)
            if self.world.version == before:
                return
        raise AssertionError("it does not come to rest")


def _made(whole: Json) -> Pod:
    name = whole["metadata"]["name"]
    metadata = {**whole["metadata"], "namespace": NAMESPACE, "uid": f"uid-{name}", "resourceVersion": "1"}
    metadata["creationTimestamp"] = "2030-01-01T11:00:00Z"
    return codec.decode(json.dumps({**whole, "metadata": metadata}).encode(), Pod)
