"""Whose pods a forecast is about, where its subject only puts something into the pods of others."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from kruise.api.meta import controller_of
from kruise.api.native.pod import Pod
from kruise.api.native.replica_sets import deployment_of
from kruise.faces.forecast import ForecastFacts
from kruise.foresight.forecast import Forecast

ALONE = "no workload"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What a workload has of the pods."""

    workload: str
    """`deployment/web`; `ALONE` for pods that nobody manages."""
    namespace: str
    changing: int
    staying: int
    """Pods that are not where they should be in the end."""


def shares(pods: Iterable[Pod], kind: ForecastFacts, forecast: Forecast) -> tuple[Share, ...]:
    """In the order of namespaces and names."""
    changing = {move.pod for move in forecast.moves}
    staying = {one.pod for one in forecast.staying} - changing
    counts: dict[tuple[str, str], list[int]] = {}
    for pod in pods:
        name = kind.name_of(pod)
        if name in changing or name in staying:
            count = counts.setdefault((pod.metadata.namespace, workload_of(pod)), [0, 0])
            count[name not in changing] += 1
    return tuple(
        Share(workload=workload, namespace=namespace, changing=count[0], staying=count[1])
        for (namespace, workload), count in sorted(counts.items())
    )


def workload_of(pod: Pod) -> str:
    """The controller, as kubectl takes it; of a ReplicaSet that a Deployment has made, the Deployment."""
    owner = controller_of(pod)
    if owner is None:
        return ALONE
    deployment = deployment_of(pod)
    return f"deployment/{deployment}" if deployment else f"{owner.kind.lower()}/{owner.name}"
