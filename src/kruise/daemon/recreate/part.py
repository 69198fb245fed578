"""How the daemon watches requests, and looks at the containers of their pods."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from kruise.api.apps.containerrecreaterequest import (
    ACTIVE_LABEL,
    NODE_LABEL,
    POD_LABEL,
    REQUESTS,
    ContainerRecreateRequest,
)
from kruise.api.meta import Key
from kruise.daemon.killing import kill
from kruise.daemon.parts import Part, Place, Scene
from kruise.daemon.pods import Pod
from kruise.daemon.recreate.decide import conclude, decide
from kruise.daemon.recreate.situation import Seen, Snapshot, Stop, StopContainer, in_turn, pod_uid, runtime_of
from kruise.daemon.runtime import pod_containers
from kruise.machinery.codec import Struct, evolve
from kruise.machinery.plan import JobState
from kruise.machinery.spec import ControllerSpec, Source, Stores, View
from kruise.machinery.watched import Watched

WATCHES_PODS = "DaemonWatchingPod"
_BY_POD = "pod"


def _pod_of(request: ContainerRecreateRequest) -> tuple[str, ...]:
    return (f"{request.metadata.namespace}/{request.spec.pod_name}",)


WATCHED = Watched(REQUESTS, indexes={_BY_POD: _pod_of})


def _request_keys(
    old: ContainerRecreateRequest | None, new: ContainerRecreateRequest | None, stores: Stores
) -> Iterable[Key]:
    """Requests are worked on pod by pod (CRR-40)."""
    request = new if new is not None else old
    return (Key(request.metadata.namespace, request.spec.pod_name),) if request is not None else ()


def _pod_keys(old: Pod | None, new: Pod | None, stores: Stores) -> Iterable[Key]:
    """A pod with a request: its containers may have moved."""
    pod = new if new is not None else old
    if pod is None:
        return ()
    key = Key(pod.metadata.namespace, pod.metadata.name)
    if not _requests(stores, key):
        return ()
    if old is not None and new is not None and old.status.container_statuses == new.status.container_statuses:
        return ()
    return (key,)


def _requests(stores: Stores, key: Key) -> tuple[ContainerRecreateRequest, ...]:
    return in_turn(stores.store(REQUESTS).by_index(_BY_POD, str(key)))


def node_of(stores: Stores, key: Key) -> str:
    known = stores.store(REQUESTS).by_index(_BY_POD, str(key))
    return known[0].metadata.labels.get(NODE_LABEL, "") if known else ""


async def look(scene: Scene, key: Key) -> Seen | None:
    requests = _requests(scene.stores, key)
    if not requests:
        return Seen()  # a kill may still be under way
    request = requests[0]
    node = scene.node(request.metadata.labels.get(NODE_LABEL, ""))
    if node is None:
        return None
    if not pod_uid(request):
        return Seen(problem=f"the request has no label {POD_LABEL}")
    try:
        name = runtime_of(request)
    except ValueError as error:
        return Seen(problem=str(error))
    runtime = node.runtimes.get(name)
    if runtime is None:
        return Seen(problem=f"there is no runtime {name} on node {node.name}")
    return Seen(runtime=name, containers=await pod_containers(runtime, pod_uid(request)))


async def perform(scene: Scene, call: Struct) -> Struct | None:
    if not isinstance(call, StopContainer):
        raise TypeError(f"not a call of this part: {call}")
    return await kill(scene, call)


def _stops(jobs: Iterable[tuple[str, JobState]]) -> Iterable[Stop]:
    for name, state in jobs:
        if isinstance(state.call, StopContainer):
            hook_error = getattr(state.result, "hook_error", "")
            ended = state.ended is not None
            yield Stop(name=name, call=state.call, ended=ended, error=state.error, hook_error=hook_error)


class _Snapshots:
    def __init__(self, place: Place, *, has_pods: bool) -> None:
        self._pods = place.pods.resource if has_pods else None
        self._held: dict[Key, _Held] = {}

    def __call__(self, view: View, key: Key) -> Snapshot | None:
        requests = in_turn(view.store(REQUESTS).by_index(_BY_POD, str(key)))
        stops = tuple(_stops(view.jobs.items()))
        held = self._look_at_traffic(key, requests, view.now)
        if not requests and not stops:
            return None
        node = requests[0].metadata.labels.get(NODE_LABEL, "") if requests else stops[0].call.node
        pod = view.store(self._pods).get(*key) if self._pods is not None else None
        if pod is not None and requests and pod.metadata.uid != pod_uid(requests[0]):
            pod = None
        return Snapshot(
            namespace=key.namespace,
            pod_name=key.name,
            node=node,
            requests=requests,
            seen=view.outside,
            stops=stops,
            pod_ip=pod.status.pod_ip if pod is not None else "",
            restart_policy=pod.spec.restart_policy if pod is not None else "",
            unready_for=(view.now - held.since).total_seconds() if held.since is not None else None,
            saw_it_leave=held.saw_it_leave,
            now=view.now,
        )

    def _look_at_traffic(self, key: Key, requests: Sequence[ContainerRecreateRequest], now: datetime) -> _Held:
        """Since when the pod of the first request is kept out of traffic, by the clock of this node."""
        request = requests[0] if requests else None
        if request is None or request.strategy.unready_grace_period_seconds is None:
            self._held.pop(key, None)
            return _Held()
        held = self._held.get(key)
        if held is None or held.uid != request.metadata.uid:
            held = _Held(uid=request.metadata.uid, saw_it_leave=request.grace_condition is None)
        if request.grace_condition is not None and (held.since is None or held.since > now):
            # Where the clock was put back, it is counted anew.
            held = evolve(held, since=now)
        self._held[key] = held
        return held


class _Held(Struct):
    """A pod that is kept out of traffic for a request."""

    uid: str = ""
    since: datetime | None = None
    """None: it is not yet."""
    saw_it_leave: bool = False


def spec(place: Place) -> ControllerSpec[Snapshot]:
    has_pods = place.settings.gates.get(WATCHES_PODS, True)
    mine = place.labelled(WATCHED, NODE_LABEL, also=f"{ACTIVE_LABEL}=true")
    sources: list[Source[Any]] = [Source(mine, _request_keys)]
    if has_pods:
        sources.append(Source(place.pods, _pod_keys))
    return ControllerSpec(
        name="crr",
        subject=REQUESTS,
        sources=tuple(sources),
        snapshot=_Snapshots(place, has_pods=has_pods),
        decide=decide,
        conclude=conclude,
        snapshot_type=Snapshot,
        workers=8,
    )


PART = Part(name="crr", component="kruise-daemon-crr", spec=spec, look=look, perform=perform, node_of=node_of)
