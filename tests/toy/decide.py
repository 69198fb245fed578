"""What a Troupe needs, decided from a snapshot."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

from kruise.api.native.pod import PODS, Pod, condition
from kruise.inplace.keys import REVISION_LABEL
from kruise.machinery import plan as plans
from kruise.machinery.client.requests import PatchType
from kruise.machinery.codec import Struct
from kruise.machinery.ownership import Owner
from kruise.machinery.plan import Action, Held, Plan, Target, single
from kruise.machinery.times import format_time
from kruise.workloads.shared.causes import PAUSED

from .api import GROUP, TROUPES, Troupe

SEEN = f"{GROUP}/Seen"
"""A condition of pods: the Troupe has taken note of them."""


class Snapshot(Struct):
    """Everything that a decision depends on."""

    troupe: Troupe
    pods: tuple[Pod, ...]
    now: datetime


def decide(snapshot: Snapshot) -> Plan:
    troupe = snapshot.troupe
    wanted = [f"{troupe.metadata.name}-{number}" for number in range(troupe.spec.replicas)]
    pods = {pod.metadata.name: pod for pod in snapshot.pods}
    kept = [pods[name] for name in wanted if name in pods]
    surplus = [pod for name, pod in pods.items() if name not in wanted and pod.metadata.deletion_timestamp is None]
    unseen = [pod for pod in kept if condition(pod, SEEN) is None]
    outdated = [pod for pod in kept if not has_image(troupe, pod)]
    if troupe.spec.paused:
        held, outdated = tuple(_held(pod) for pod in outdated), []
    else:
        held = ()
    return Plan(
        phases=(
            single("create", *(_create(troupe, name) for name in wanted if name not in pods), slow_start=True),
            single("mark", *(_mark(pod, snapshot.now) for pod in unseen)),
            single("update", *(_update(troupe, pod) for pod in outdated)),
            single("remove", *(_remove(pod) for pod in surplus)),
        ),
        held=held,
    )


def has_image(troupe: Troupe, pod: Pod) -> bool:
    return pod.spec.containers[0].image == troupe.spec.image


def revision_of(troupe: Troupe) -> str:
    """A name for what the pods are made of: people and forecasts see by it who has been updated."""
    digest = hashlib.sha256(troupe.spec.image.encode()).hexdigest()
    return f"{troupe.metadata.name}-{digest[:10]}"


def _create(troupe: Troupe, name: str) -> Action:
    body = {
        "metadata": {
            "name": name,
            "namespace": troupe.metadata.namespace,
            "labels": {"troupe": troupe.metadata.name, REVISION_LABEL: revision_of(troupe)},
            "ownerReferences": [Owner.of(TROUPES, troupe).reference()],
        },
        "spec": {"containers": [{"name": "main", "image": troupe.spec.image}]},
    }
    return plans.create(PODS, body, reason="it is missing", owner_uid=troupe.metadata.uid)


def _mark(pod: Pod, now: datetime) -> Action:
    seen = {"type": SEEN, "status": "True", "lastTransitionTime": format_time(now)}
    return _patch(pod, {"status": {"conditions": [seen]}}, reason="it is new", subresource="status")


def _update(troupe: Troupe, pod: Pod) -> Action:
    body = {
        "metadata": {"labels": {REVISION_LABEL: revision_of(troupe)}},
        "spec": {"containers": [{"name": "main", "image": troupe.spec.image}]},
    }
    return _patch(pod, body, reason="its image is another one")


def _patch(pod: Pod, body: dict[str, Any], *, reason: str, subresource: str = "") -> Action:
    return plans.patch(
        Target.of(PODS, pod),
        body,
        uid=pod.metadata.uid,
        reason=reason,
        patch_type=PatchType.STRATEGIC,
        subresource=subresource,
    )


def _remove(pod: Pod) -> Action:
    return plans.delete(Target.of(PODS, pod), uid=pod.metadata.uid, reason="there are too many")


def _held(pod: Pod) -> Held:
    cause = PAUSED.cause("the Troupe is paused", remedy="kruise rollout resume lets it go on")
    return Held(target=Target.of(PODS, pod), causes=(cause,))
