"""How pods with liveness probes of their own are watched, and their probes run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kruise.api.apps.probes import LIVENESS_GATE, LIVENESS_PROBES
from kruise.api.meta import Key, key_of
from kruise.api.native.pod import ContainerPort
from kruise.daemon.killing import kill
from kruise.daemon.kills import USUAL_GRACE, Kill
from kruise.daemon.parts import Part, Place, Scene
from kruise.daemon.pods import PODS, Pod
from kruise.daemon.probes.asking import perform as ask
from kruise.daemon.probes.calls import Found
from kruise.daemon.probes.decide import Ended, Worker
from kruise.daemon.probes.liveness import Memo, Snapshot, conclude, decide, watches_of
from kruise.daemon.runtime import first_runtime
from kruise.machinery.codec import Struct
from kruise.machinery.plan import Conclusion, Outcomes, Plan
from kruise.machinery.spec import ControllerSpec, Source, Stores, View

NAME = "liveness_probe"
_LIVING = ("Pending", "Running")


def is_watched(pod: Pod) -> bool:
    metadata = pod.metadata
    asks = LIVENESS_PROBES in metadata.annotations
    return asks and metadata.deletion_timestamp is None and pod.status.phase in _LIVING


def keys(old: Pod | None, new: Pod | None, stores: Stores) -> Iterable[Key]:
    """Only when such a pod comes, goes, gets its address or has started: all others cost nothing."""
    before, now = old is not None and is_watched(old), new is not None and is_watched(new)
    if not before and not now:
        return ()
    is_same = before == now and old is not None and new is not None and _seen(old) == _seen(new)
    changed = new if new is not None else old
    return () if is_same or changed is None else (key_of(changed),)


def _seen(pod: Pod) -> tuple[str, str, tuple[str, ...]]:
    return pod.metadata.uid, pod.status.pod_ip, starting(pod)


def starting(pod: Pod) -> tuple[str, ...]:
    """Containers that the kubelet does not call started: liveness probes wait for the startup probe."""
    return tuple(status.name for status in pod.status.container_statuses if status.started is False)


async def look(scene: Scene, key: Key) -> str | None:
    """The name of the runtime; empty for a pod that is not watched any more: what is known of it is forgotten."""
    pod = scene.stores.store(scene.place.pods.resource).get(*key)
    if pod is None or not is_watched(pod):
        return ""
    node = scene.node(pod.spec.node_name)
    return first_runtime(node).name if node is not None else None


def node_of(stores: Stores, key: Key) -> str:
    pod = stores.store(PODS).get(*key)
    return pod.spec.node_name if pod is not None else ""


async def perform(scene: Scene, call: Struct) -> Struct | None:
    return await kill(scene, call) if isinstance(call, Kill) else await ask(scene, call)


class _Memory:
    def __init__(self, place: Place) -> None:
        self._pods = place.pods.resource
        self._workers: dict[Key, tuple[str, dict[str, Worker]]] = {}
        """With the uid of the pod: another one of the name begins anew."""

    def snapshot(self, view: View, key: Key) -> Snapshot | None:
        pod: Any = view.store(self._pods).get(*key)
        if pod is None or not is_watched(pod) or not view.outside:
            self._workers.pop(key, None)
            return None
        uid, workers = self._workers.get(key, ("", {}))
        ports = {
            one.name: tuple(ContainerPort(name=port.name, container_port=port.container_port) for port in one.ports)
            for one in pod.spec.containers
        }
        grace = pod.spec.termination_grace_period_seconds
        return Snapshot(
            metadata=pod.metadata,
            node=pod.spec.node_name,
            ip=pod.status.pod_ip,
            runtime=view.outside,
            grace=USUAL_GRACE if grace is None else grace,
            watches=watches_of(pod.metadata.annotations[LIVENESS_PROBES], ports),
            now=view.now,
            starting=starting(pod),
            workers=workers if uid == pod.metadata.uid else {},
            ended={
                name: Ended(began=state.began, found=state.result if isinstance(state.result, Found) else None)
                for name, state in view.jobs.items()
                if state.ended is not None
            },
            running=tuple(name for name, state in view.jobs.items() if state.ended is None),
        )

    def concluded(self, snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
        self._workers[key_of(snapshot)] = snapshot.metadata.uid, plan.memo_as(Memo).workers
        return conclude(snapshot, plan, outcomes)


def spec(place: Place) -> ControllerSpec[Snapshot]:
    memory = _Memory(place)
    return ControllerSpec(
        name=NAME,
        subject=place.pods.resource,
        sources=(Source(place.pods, keys),),
        snapshot=memory.snapshot,
        decide=decide,
        conclude=memory.concluded,
        snapshot_type=Snapshot,
        still_holds=lambda before, now: before.metadata.uid == now.metadata.uid,
        workers=4,
    )


PART = Part(
    name=NAME,
    component="kruise-daemon-podprobe",
    gates=(LIVENESS_GATE, "DaemonWatchingPod"),
    spec=spec,
    look=look,
    perform=perform,
    node_of=node_of,
)
