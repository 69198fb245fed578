"""How pods with the `KruisePodReady` gate are watched, and what the feature brings to the manager."""

from __future__ import annotations

from kruise.admission.chain import PodStep
from kruise.api.meta import Key, key_of
from kruise.api.native.pod import PODS, Pod
from kruise.feature import Feature, PodMutation
from kruise.machinery.spec import ControllerSpec, Source, Stores, View, same_spec
from kruise.readiness.admission import add_gate
from kruise.readiness.decide import Snapshot, conclude, decide, has_writer, is_concerned


def keys_of(old: Pod | None, new: Pod | None, stores: Stores) -> tuple[Key, ...]:
    """Only pods that lack the condition, so that thousands of pods that have it cost nothing.

    One that waits for its node, and whose workload will write the condition, is left out until it has one.
    """
    if new is None or not is_concerned(new) or (has_writer(new) and not new.spec.node_name):
        return ()
    return (key_of(new),)


def snapshot(view: View, key: Key) -> Snapshot | None:
    pods = view.store(PODS)
    pod = pods.get(*key)
    if pod is None or pods.is_terminating(pod) or not is_concerned(pod):
        return None
    return Snapshot(pod=pod, now=view.now)


SPEC = ControllerSpec(
    name="pod-readiness-controller",
    subject=PODS,
    sources=(Source(PODS, keys_of),),
    snapshot=snapshot,
    decide=decide,
    conclude=conclude,
    snapshot_type=Snapshot,
    still_holds=lambda before, now: same_spec(before, now) and is_concerned(now),
)
FEATURE = Feature(
    name="readiness",
    controllers=lambda settings: (SPEC,),
    pod_mutations=lambda settings: (PodMutation(PodStep.READINESS_GATE, add_gate),),
)
