"""How pods with the `KruisePodReady` gate are watched, and what the feature brings to the manager."""

from __future__ import annotations

from kruise.admission.chain import PodStep
from kruise.api.meta import Key, key_of
from kruise.api.native.pod import PODS, Pod
from kruise.faces.face import GroupKind
from kruise.feature import Feature, PodMutation, Settings
from kruise.machinery.spec import ControllerSpec, Source, Stores, View, same_spec
from kruise.readiness.admission import add_gate
from kruise.readiness.decide import Snapshot, conclude, decide, has_writer, is_concerned


class _Pods:
    """The pods that lack the condition. `writers` are the kinds that write it for their own pods."""

    def __init__(self, writers: frozenset[GroupKind]) -> None:
        self._writers = writers

    def keys(self, old: Pod | None, new: Pod | None, stores: Stores) -> tuple[Key, ...]:
        """Only pods that lack the condition, so that thousands of pods that have it cost nothing.

        One that waits for its node, and whose workload will write the condition, is left out until it has one.
        """
        if new is None or not is_concerned(new):
            return ()
        if not new.spec.node_name and has_writer(new, self._writers):
            return ()
        return (key_of(new),)

    def snapshot(self, view: View, key: Key) -> Snapshot | None:
        pods = view.store(PODS)
        pod = pods.get(*key)
        if pod is None or pods.is_terminating(pod) or not is_concerned(pod):
            return None
        return Snapshot(pod=pod, now=view.now, has_writer=has_writer(pod, self._writers))


def controllers(settings: Settings) -> tuple[ControllerSpec[Snapshot], ...]:
    pods = _Pods(frozenset(face.group_kind for face in settings.faces() if face.writes_pod_ready))
    return (
        ControllerSpec(
            name="pod-readiness-controller",
            subject=PODS,
            sources=(Source(PODS, pods.keys),),
            snapshot=pods.snapshot,
            decide=decide,
            conclude=conclude,
            snapshot_type=Snapshot,
            still_holds=lambda before, now: same_spec(before, now) and is_concerned(now),
            at_start=is_concerned,
        ),
    )


FEATURE = Feature(
    name="readiness",
    controllers=controllers,
    pod_mutations=lambda settings: (PodMutation(PodStep.READINESS_GATE, add_gate),),
)
