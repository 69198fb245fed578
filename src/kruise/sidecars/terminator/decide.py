"""What is done about the sidecars of a pod whose main containers are done (JST B3 to B6). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from kruise.api.apps.containerrecreaterequest import (
    IGNORE,
    REQUESTS,
    VIRTUAL,
    VIRTUAL_LABEL,
    ContainerRecreateRequest,
)
from kruise.api.native.nodes import Node
from kruise.api.native.pod import PODS, ContainerStatus, Pod, condition
from kruise.machinery import plan as plans
from kruise.machinery.client.requests import PatchType, Verb
from kruise.machinery.codec import Struct
from kruise.machinery.ownership import Owner
from kruise.machinery.plan import (
    Action,
    ChainOutcomes,
    Conclusion,
    EventNote,
    OnError,
    Outcomes,
    Phase,
    Plan,
    Result,
    Target,
)
from kruise.machinery.times import format_time
from kruise.sidecars.terminator.containers import (
    TERMINAL,
    Sidecar,
    is_due,
    is_terminated,
    request_name,
    sidecars_of,
    statuses_of,
    verdict,
)

CONDITION = "SidecarTerminated"
MESSAGE = "Terminated by Sidecar Terminator"
EVENT = "SidecarTerminator"
REPLACE, KILL, END = "replace", "kill", "end"
"""Phases."""


class Snapshot(Struct, kw_only=True):
    pod: Pod
    now: datetime
    node: Node | None = None
    request: ContainerRecreateRequest | None = None
    """That stops its sidecars; there is one in the life of a pod."""


def is_concerned(pod: Pod) -> bool:
    return is_due(pod) or _was_undone(pod)


def _was_undone(pod: Pod) -> bool:
    """The pod was ended here, and somebody wrote that it runs: a phase that was terminal stays (JST-22)."""
    if pod.metadata.deletion_timestamp is not None or not sidecars_of(pod) or pod.status.phase in TERMINAL:
        return False
    found = condition(pod, CONDITION)
    return found is not None and found.status == "True"


def decide(snapshot: Snapshot) -> Plan:
    pod, node = snapshot.pod, snapshot.node
    if not is_concerned(pod) or node is None:
        return Plan()
    statuses = statuses_of(pod)
    is_virtual = node.metadata.labels.get(VIRTUAL_LABEL) == VIRTUAL
    sidecars = sidecars_of(pod)
    # On a virtual node only the image counts, elsewhere only the node daemon (JST-10).
    replaced = [item for item in sidecars if is_virtual and item.image]
    ignored = [item for item in sidecars if not is_virtual and item.is_killed and item.ignores_exit]
    killed = [item for item in sidecars if not is_virtual and item.is_killed and not item.ignores_exit]
    phases = [
        Phase(name=REPLACE, chains=_chain(*_images(pod, _running(replaced, statuses))), on_error=OnError.STOP_PLAN)
    ]
    restarted = [item for item in killed if _is_restarted(item, statuses, snapshot.request)]
    if not restarted:
        phases.append(Phase(name=KILL, chains=_chain(*_request(snapshot, _running(killed, statuses)))))
    others_ended = all(is_terminated(statuses.get(item.name)) for item in (*killed, *replaced))
    if (ignored and others_ended) or restarted or _was_undone(pod):
        ending = (*_end(snapshot), *_request(snapshot, _running(ignored, statuses)))
        phases.append(Phase(name=END, chains=_chain(*ending)))
    return Plan(phases=tuple(phase for phase in phases if phase.chains))


def _chain(*actions: Action) -> tuple[tuple[Action, ...], ...]:
    return (actions,) if actions else ()


def _running(sidecars: Sequence[Sidecar], statuses: dict[str, ContainerStatus]) -> list[Sidecar]:
    """JST-12."""
    return [item for item in sidecars if not is_terminated(statuses.get(item.name))]


def _is_restarted(
    sidecar: Sidecar, statuses: dict[str, ContainerStatus], request: ContainerRecreateRequest | None
) -> bool:
    """It was stopped, ended with a failure, and the kubelet starts it again. It would do so for ever, so the pod ends
    by the verdict of its main containers."""
    status = statuses.get(sidecar.name)
    if request is None or status is None or status.state.terminated is not None:
        return False
    context = next((one.status_context for one in request.spec.containers if one.name == sidecar.name), None)
    if context is None:
        return False
    ended = status.last_state.terminated if status.state.waiting is not None else None
    return status.restart_count > context.restart_count or (
        ended is not None and ended.container_id == context.container_id
    )


def _images(pod: Pod, sidecars: Sequence[Sidecar]) -> Iterator[Action]:
    """JST-18."""
    present = {container.name: container.image for container in pod.spec.containers}
    changed = [item for item in sidecars if present.get(item.name) != item.image]
    if changed:
        body = {"spec": {"containers": [{"name": item.name, "image": item.image} for item in changed]}}
        yield plans.patch(
            Target.of(PODS, pod),
            body,
            uid=pod.metadata.uid,
            reason=f"the main containers are done: {_names(changed)} get an image that ends",
            patch_type=PatchType.STRATEGIC,
        )


def _request(snapshot: Snapshot, sidecars: Sequence[Sidecar]) -> Iterator[Action]:
    """JST-13, JST-14."""
    pod = snapshot.pod
    if not sidecars or snapshot.request is not None:
        return
    body = {
        "apiVersion": REQUESTS.api_version,
        "kind": REQUESTS.kind,
        "metadata": {
            "name": request_name(pod),
            "namespace": pod.metadata.namespace,
            "ownerReferences": [Owner.of(PODS, pod).reference()],
        },
        "spec": {
            "podName": pod.metadata.name,
            "containers": [{"name": item.name} for item in sidecars],
            "strategy": {"forceRecreate": True, "failurePolicy": IGNORE},
        },
    }
    reason = f"the main containers are done: {_names(sidecars)} are stopped"
    yield plans.create(REQUESTS, body, reason=reason, owner_uid=pod.metadata.uid)


def _end(snapshot: Snapshot) -> Iterator[Action]:
    """JST-21."""
    pod = snapshot.pod
    if pod.status.phase in TERMINAL:
        return
    known = condition(pod, CONDITION)
    since = known.last_transition_time if known is not None and known.status == "True" else None
    told = {
        "type": CONDITION,
        "status": "True",
        "message": MESSAGE,
        "lastTransitionTime": format_time(since or snapshot.now),
    }
    phase = verdict(pod)
    yield plans.patch(
        Target.of(PODS, pod),
        {"status": {"phase": phase, "conditions": [told]}},
        uid=pod.metadata.uid,
        reason=f"the main containers are done: the pod is {phase}, however its sidecars end",
        patch_type=PatchType.STRATEGIC,
        subresource="status",
    )


def _names(sidecars: Sequence[Sidecar]) -> str:
    return ", ".join(item.name for item in sidecars)


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    pod = snapshot.pod
    if snapshot.node is None and is_concerned(pod):
        return Conclusion(retry=f"node {pod.spec.node_name} of pod {pod.metadata.name} is not there")  # JST-9
    return Conclusion()


def events(plan: Plan, phase: str, chain: ChainOutcomes) -> Iterator[EventNote]:
    """JST-15, JST-19."""
    for outcome in chain:
        action = outcome.action
        if outcome.result is not Result.DONE:
            continue
        if phase == REPLACE:
            names, means = [one["name"] for one in action.body["spec"]["containers"]], "in-place update"
        elif action.verb is Verb.CREATE:
            names, means = [one["name"] for one in action.body["spec"]["containers"]], "crr"
        else:
            continue
        told = " ".join(names)
        text = f"Kruise SidecarTerminator is trying to terminate sidecar [{told}] using {means}"
        yield EventNote(reason=EVENT, message=text)
