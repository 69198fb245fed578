"""Deployments, StatefulSets and DaemonSets.

Kubernetes' own controllers leave no plan. Of pods at an older template only what the spec says plainly is told; the
rest of the story is in the pods that are down.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from kruise.api.native.pod import Pod
from kruise.faces.face import Face
from kruise.machinery.causes import Meaning
from kruise.machinery.documents import Json, name_of, value_at
from kruise.reasons import causes
from kruise.reasons.links import Link
from kruise.workloads.shared import causes as shared


def held(
    kind: Face, document: Json, pods: Mapping[str, Pod], new: frozenset[str] | None, down: Collection[str]
) -> Iterator[tuple[str, tuple[Link, ...]]]:
    """Pods that have an older template, with the cause."""
    if new is None:
        return
    for name in pods:
        if name not in new:
            yield name, (_cause(kind, document, name, tuple(sorted(down))),)


def makes_one_by_one(kind: Face, document: Json) -> bool:
    """Each pod is made when the ones before it are available."""
    is_stateful = (kind.resource.group, kind.resource.kind) == ("apps", "StatefulSet")
    return is_stateful and value_at(document, ("spec", "podManagementPolicy"), "") != "Parallel"


def _cause(kind: Face, document: Json, pod: str, down: tuple[str, ...]) -> Link:
    strategy = value_at(document, ("spec", "updateStrategy"), {})
    if kind.paused is not None and value_at(document, kind.paused, False):
        target = f"{kind.word}/{name_of(document)}"
        return _link(shared.PAUSED, "the rollout is paused", f"when it is to go on: kruise rollout resume {target}")
    if strategy.get("type") == "OnDelete":
        return _link(shared.ON_DELETE, "updateStrategy.type is OnDelete", "delete the pod when it suits you")
    # Of these kinds only StatefulSets have a partition, and it is about ordinals.
    partition = value_at(document, kind.partition, 0) if kind.partition is not None else 0
    ordinal = pod.rpartition("-")[2]
    if ordinal.isdecimal() and int(ordinal) < partition:
        message = f"partition {partition} keeps pods below that ordinal at their old revision"
        return _link(shared.PARTITION, message, "lower updateStrategy.rollingUpdate.partition")
    message = f"it has an older template, and the controller of {kind}s has not replaced it yet"
    return _link(causes.OLD_TEMPLATE, message, "it does so as its limits allow", down)


def _link(why: Meaning, message: str, remedy: str, leads_to: tuple[str, ...] = ()) -> Link:
    return Link(meaning=why, message=message, act=why.act, remedy=remedy, leads_to=leads_to)
