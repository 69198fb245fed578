"""How pods that end are watched, and what the feature brings to the manager."""

from __future__ import annotations

from typing import Any

from kruise.admission.chain import PodStep
from kruise.api.apps.containerrecreaterequest import REQUESTS, ContainerRecreateRequest
from kruise.api.meta import Key, controller_of, key_of
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS, Pod
from kruise.api.resource import refers_to
from kruise.feature import Feature, PodMutation, Settings
from kruise.machinery.spec import ControllerSpec, Source, Stores, View, no_keys
from kruise.sidecars.terminator.admission import GATE, warn
from kruise.sidecars.terminator.containers import request_name, sidecars_of
from kruise.sidecars.terminator.decide import (
    Snapshot,
    conclude,
    decide,
    events,
    is_concerned,
)

NAME = "sidecarterminator-controller"


def _pod_keys(old: Pod | None, new: Pod | None, stores: Stores) -> tuple[Key, ...]:
    """Only pods with sidecars, and only those that are due (JST-8)."""
    return (key_of(new),) if new is not None and sidecars_of(new) and is_concerned(new) else ()


def _request_keys(
    old: ContainerRecreateRequest | None, new: ContainerRecreateRequest | None, stores: Stores
) -> tuple[Key, ...]:
    """A request that somebody deletes is made again."""
    if new is not None or old is None:
        return ()
    owner = controller_of(old)
    if owner is None or not refers_to(owner, PODS):
        return ()
    return (Key(old.metadata.namespace, owner.name),)


def snapshot(view: View, key: Key) -> Snapshot | None:
    pods = view.store(PODS)
    pod = pods.get(*key)
    if pod is None or pods.is_terminating(pod) or not is_concerned(pod):
        return None
    return Snapshot(
        pod=pod,
        now=view.now,
        node=view.store(NODES).get("", pod.spec.node_name),
        request=view.store(REQUESTS).get(pod.metadata.namespace, request_name(pod)),
    )


def controllers(settings: Settings) -> tuple[ControllerSpec[Snapshot], ...]:
    if not settings.gates.get(GATE, False):
        return ()
    sources: tuple[Source[Any], ...] = (
        Source(PODS, _pod_keys),
        Source(REQUESTS, _request_keys),
        Source(NODES, no_keys),
    )
    return (
        ControllerSpec(
            name=NAME,
            subject=PODS,
            sources=sources,
            snapshot=snapshot,
            decide=decide,
            conclude=conclude,
            snapshot_type=Snapshot,
            events=events,
            still_holds=lambda before, now: before.metadata.uid == now.metadata.uid and is_concerned(now),
            workers=settings.workers_of("sidecarterminator"),
        ),
    )


FEATURE = Feature(
    name="sidecar-terminator",
    controllers=controllers,
    pod_mutations=lambda settings: (PodMutation(PodStep.SIDECAR_TERMINATOR, warn),),
)
