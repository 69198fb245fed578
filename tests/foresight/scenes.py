"""A CloneSet called `web` in `demo` that has come to rest, and changes of it to look ahead at."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.meta import Key
from kruise.api.native.nodes import NODES, Node
from kruise.api.native.pod import PODS, Pod
from kruise.api.resource import Resource
from kruise.foresight.forecast import Forecast, How
from kruise.foresight.foreseeing import foresee
from kruise.foresight.playing import Bounds
from kruise.foresight.staging import stage
from kruise.kinds import features
from kruise.machinery import codec
from kruise.manager import gates
from kruise.manager.options import Options

Json = dict[str, Any]
Objects = Mapping[Resource[Any], Sequence[Any]]

NOW = datetime(2030, 1, 1, 12, 0, 0, tzinfo=UTC)
LATER = timedelta(hours=1)
KEY = Key("demo", "web")


def node(number: int, *, cpu: str = "8", pods: int = 110, **more: Any) -> Node:
    """`more` are fields of the spec, and `labels`."""
    metadata = {"name": f"node-{number}", "resourceVersion": str(number), "labels": more.pop("labels", {})}
    allocatable = {"cpu": cpu, "memory": "16Gi", "pods": str(pods)}
    return codec.convert({"metadata": metadata, "spec": more, "status": {"allocatable": allocatable}}, Node)


_NODES = tuple(node(number) for number in (1, 2, 3))


def manifest(replicas: int = 5, image: str = "nginx:1", *, rolling: Json | None = None, **spec: Any) -> Json:
    """In place with maxUnavailable 2, unless said otherwise. `rolling` are fields of `rollingUpdate`."""
    return {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "CloneSet",
        "metadata": {"name": "web", "namespace": "demo"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": image}]},
            },
            "updateStrategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 2, **(rolling or {})},
            },
            **spec,
        },
    }


def options(feature_gates: str = "") -> Options:
    return Options(gates=gates.resolve(gates.parse(feature_gates)))


@dataclasses.dataclass(frozen=True)
class Scene:
    """A cluster at a moment."""

    document: Json
    objects: Objects
    now: datetime
    options: Options

    @classmethod
    def of(cls, document: Json, feature_gates: str = "") -> Scene:
        """The CloneSet was created an hour ago, and all is quiet."""
        empty = cls(document, {NODES: _NODES}, NOW - LATER, options(feature_gates))
        return dataclasses.replace(empty.after(document), now=NOW)

    @property
    def pods(self) -> tuple[Pod, ...]:
        return tuple(self.objects[PODS])

    @property
    def names(self) -> list[str]:
        return [pod.metadata.name for pod in self.pods]

    def changed(self, **spec: Any) -> Json:
        """The document with other fields of the spec; `image` and `rolling` as in `manifest`."""
        document = copy.deepcopy(self.document)
        if "image" in spec:
            document["spec"]["template"]["spec"]["containers"][0]["image"] = spec.pop("image")
        document["spec"]["updateStrategy"]["rollingUpdate"] |= spec.pop("rolling", {})
        document["spec"] |= spec
        return document

    def foresee(
        self,
        document: Json | None = None,
        *,
        answer_hooks: bool = True,
        bounds: Bounds | None = None,
        **spec: Any,
    ) -> Forecast:
        return foresee(
            CLONE_SETS,
            KEY,
            document or self.changed(**spec),
            self.objects,
            features=features(),
            settings=self.options,
            now=self.now,
            answer_hooks=answer_hooks,
            bounds=bounds or Bounds(),
        )

    def after(self, document: Json, *, until: timedelta = timedelta(days=1)) -> Scene:
        """The cluster that the change leads to, so long after it."""
        scene = stage(
            CLONE_SETS,
            KEY,
            document,
            self.objects,
            features=features(),
            settings=self.options,
            now=self.now,
            seed=0,
            answer_hooks=True,
            server_version=None,
            bounds=Bounds(horizon=until),
        )
        scene.playing.play()
        objects = {resource: scene.world.store(resource).list() for resource in (*self.objects, *_KINDS)}
        return dataclasses.replace(self, document=document, objects=objects, now=scene.world.now)

    def with_pods(self, change: Callable[[Pod, int], Pod]) -> Scene:
        """Every pod changed, by its place in the order of names."""
        pods = tuple(change(pod, place) for place, pod in enumerate(self.pods))
        return dataclasses.replace(self, objects={**self.objects, PODS: pods})


def _kinds() -> tuple[Resource[Any], ...]:
    sources = [source for feature in features() for spec in feature.controllers(options()) for source in spec.sources]
    return (CLONE_SETS, *dict.fromkeys(source.resource for source in sources if not source.optional))


_KINDS = _kinds()


def labelled(pod: Pod, **labels: str) -> Pod:
    return codec.evolve(pod, metadata=codec.evolve(pod.metadata, labels={**pod.metadata.labels, **labels}))


def with_status(pod: Pod, change: Json) -> Pod:
    """The pod with other parts of its status."""
    status = codec.decode(codec.encode(pod.status), dict[str, Any]) | change
    return codec.evolve(pod, status=codec.convert(status, type(pod.status)))


def broken(pod: Pod, reason: str = "CrashLoopBackOff") -> Pod:
    """A pod whose container does not come up."""
    statuses = [
        {
            "name": status.name,
            "image": status.image,
            "imageID": status.image_id,
            "containerID": status.container_id,
            "restartCount": 7,
            "state": {"waiting": {"reason": reason}},
            "lastState": {"terminated": {"exitCode": 1}},
        }
        for status in pod.status.container_statuses
    ]
    conditions = [
        {"type": item.type, "status": "False" if item.type in ("Ready", "ContainersReady") else item.status}
        for item in pod.status.conditions
    ]
    return with_status(pod, {"containerStatuses": statuses, "conditions": conditions})


def hows(forecast: Forecast) -> list[list[tuple[How, str]]]:
    """Of each wave, what happens to whom."""
    return [[(move.how, move.pod) for move in wave.moves] for wave in forecast.waves]


def sizes(forecast: Forecast) -> list[int]:
    return [len(wave.moves) for wave in forecast.waves]


def codes(items: Sequence[Any]) -> list[str]:
    """Of stops, warnings, or pods that stay behind."""
    return [item.code for item in items]
