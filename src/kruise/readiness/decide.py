"""`KruisePodReady` for a pod that has the gate but not the condition (IPU-81, PW-13).

Some workloads write the condition together with their own as soon as a pod has a node, which saves a request for each
pod: their faces say so. For such pods this decision only steps in when that has not happened a second after the
binding. Every other pod gets the condition at once: nobody else would write it, and the pod would never be ready.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from datetime import datetime, timedelta

from kruise.api.meta import controller_of
from kruise.api.native.pod import Pod, condition
from kruise.faces.face import GroupKind
from kruise.inplace import keys, readiness
from kruise.inplace.edits import writes
from kruise.machinery.codec import Struct
from kruise.machinery.plan import Conclusion, Outcomes, Phase, Plan, Urgency, Wake

PATIENCE = timedelta(seconds=1)
_ONE_SECOND = timedelta(seconds=1)


class Snapshot(Struct):
    pod: Pod
    now: datetime
    has_writer: bool = False
    """Its workload writes the condition itself."""


def is_concerned(pod: Pod) -> bool:
    """Whether the condition is missing."""
    return (
        pod.metadata.deletion_timestamp is None
        and readiness.has_gate(pod, keys.KRUISE_POD_READY)
        and condition(pod, keys.KRUISE_POD_READY) is None
    )


def has_writer(pod: Pod, writers: Collection[GroupKind]) -> bool:
    """Whether the pod's workload is of a kind that writes the condition itself."""
    owner = controller_of(pod)
    return owner is not None and (owner.api_version.rpartition("/")[0], owner.kind) in writers


def decide(snapshot: Snapshot) -> Plan:
    pod, now = snapshot.pod, snapshot.now
    edit = readiness.kruise_ready(pod, now=now)
    if edit is None or not is_concerned(pod):
        return Plan()
    if snapshot.has_writer:
        if not pod.spec.node_name:
            return Plan()  # the binding is a change, and brings us back
        wait = (_bound(pod, now) + PATIENCE - now).total_seconds()
        if wait > 0:
            after = math.ceil(wait * 1000) / 1000
            return Plan(wakes=(Wake(after=after, reason="KruisePodReady, unless the workload writes it"),))
    chain = writes(pod, edit, reason="it has the readiness gate KruisePodReady but no such condition")
    # A workload that is late has most likely its own write in line, which makes this one needless.
    urgency = Urgency.LATER if snapshot.has_writer else Urgency.USUAL
    return Plan(phases=(Phase(name="ready", chains=(chain,), urgency=urgency),))


def _bound(pod: Pod, now: datetime) -> datetime:
    """The latest moment at which the pod can have got its node: the times on it are cut to whole seconds."""
    scheduled = condition(pod, "PodScheduled")
    time = scheduled.last_transition_time if scheduled is not None and scheduled.status == "True" else None
    time = time or pod.metadata.creation_timestamp
    return now if time is None else time + _ONE_SECOND


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    return Conclusion()
