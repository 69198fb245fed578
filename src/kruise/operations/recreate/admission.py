"""What becomes of a ContainerRecreateRequest on its way in: facts of the pod are filled in, nonsense is refused.

There is no validating side: all of it depends on the pod, which is read once (CRR-10 to CRR-16).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kruise.admission.decisions import Allow, Change, Deny, HandlerView, Mutation, NeedsReads, gate_is_off
from kruise.admission.registry import Handler, MutatingHandler
from kruise.admission.review import AdmissionRequest
from kruise.api.apps.containerrecreaterequest import (
    ACTIVE_LABEL,
    FAIL,
    IGNORE,
    NODE_LABEL,
    POD_LABEL,
    VIRTUAL,
    VIRTUAL_LABEL,
    Hook,
    Port,
)
from kruise.api.apps.conversion.containerrecreaterequest import UNREADY
from kruise.api.meta import ObjectMeta, PartialObject
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PodReadinessGate, PodStatus
from kruise.api.resource import Resource
from kruise.api.versions import OLDER
from kruise.inplace import keys
from kruise.machinery.codec import Struct, decode, encode
from kruise.machinery.documents import Json
from kruise.machinery.plan import Target

PATH = "/mutate-apps-kruise-io-containerrecreaterequest"
GATE = "KruiseDaemon"
SIDECAR_TERMINATED = "SidecarTerminated"
"""A condition of pods whose main containers have ended: their sidecars may be stopped all the same (CRR-12)."""


class _Lifecycle(Struct):
    pre_stop: Hook | None = None


class _Container(Struct):
    name: str = ""
    lifecycle: _Lifecycle | None = None
    ports: tuple[Port, ...] = ()


class _PodSpec(Struct):
    node_name: str = ""
    termination_grace_period_seconds: int | None = None
    containers: tuple[_Container, ...] = ()
    init_containers: tuple[_Container, ...] = ()
    readiness_gates: tuple[PodReadinessGate, ...] = ()


class _Pod(Struct):
    """With what the stores of the manager do not keep: hooks."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: _PodSpec = _PodSpec()
    status: PodStatus = PodStatus()


_PODS = Resource("", "v1", "pods", "Pod", True, _Pod)
_NODES = Resource("", "v1", "nodes", "Node", NODES.namespaced, PartialObject)


class _Refused(Exception):  # noqa: N818 - an answer
    """What is wrong with a request."""


def handlers() -> tuple[Handler, ...]:
    return (MutatingHandler(PATH, admit),)


def admit(request: AdmissionRequest, view: HandlerView) -> Mutation:
    if request.sub_resource or request.operation not in ("CREATE", "UPDATE"):
        return Allow()
    if not view.gates.get(GATE, True):
        if _mapping(request.body().get("metadata")).get("deletionTimestamp"):
            return Allow()  # who goes must be let go
        return gate_is_off(GATE)  # CRR-1
    try:
        if request.operation == "UPDATE":
            return _update(request)
        return _create(request.body(), request.namespace or "", view)
    except _Refused as refused:
        return Deny(message=str(refused), code=400, reason="BadRequest")


# Create


def _create(body: Json, namespace: str, view: HandlerView) -> Mutation:
    spec = _mapping(body.get("spec"))
    _check(spec)
    pod_name = str(spec["podName"])
    target = Target(_PODS, namespace, pod_name)
    if not view.was_read(target):
        return NeedsReads(targets=(target,))
    pod: _Pod | None = view.live(target)
    if pod is None:
        raise _Refused(f"no found Pod named {pod_name}")
    _check_pod(pod)
    place = Target(_NODES, "", pod.spec.node_name)
    if not view.was_read(place):
        return NeedsReads(targets=(place,))
    node: PartialObject | None = view.live(place)
    if node is None:
        raise _Refused(f'failed to get Node {pod.spec.node_name}: Node "{pod.spec.node_name}" not found')
    return Change(object=_filled(body, spec, pod, node), warnings=tuple(_warnings(spec, pod, node)))


def _check(spec: Mapping[str, Any]) -> None:
    """CRR-10."""
    if not spec.get("podName"):
        raise _Refused("podName can not be empty")
    if not spec.get("containers"):
        raise _Refused("containers list can not be null")
    deadline = spec.get("activeDeadlineSeconds")
    if isinstance(deadline, int) and deadline < 3:
        raise _Refused("activeDeadlineSeconds can not be less than 3s")
    strategy = _mapping(spec.get("strategy"))
    for name in ("terminationGracePeriodSeconds", "unreadyGracePeriodSeconds", "minStartedSeconds"):
        _check_number(strategy, name)
    _check_number(spec, "ttlSecondsAfterFinished")
    policy = strategy.get("failurePolicy")
    if policy not in (None, "", FAIL, IGNORE):
        raise _Refused(f"unknown failurePolicy {policy}")


def _check_number(parent: Mapping[str, Any], name: str) -> None:
    value = parent.get(name)
    if isinstance(value, int) and value < 0:
        raise _Refused(f"{name} must be non-negative integer")


def _check_pod(pod: _Pod) -> None:
    """CRR-12."""
    is_inactive = pod.status.phase in ("Succeeded", "Failed") or pod.metadata.deletion_timestamp is not None
    if is_inactive and not any(item.type == SIDECAR_TERMINATED for item in pod.status.conditions):
        raise _Refused("not allowed to recreate containers in an inactive Pod")
    if not pod.spec.node_name:
        raise _Refused("not allowed to recreate containers in a pending Pod")


def _filled(body: Json, spec: Mapping[str, Any], pod: _Pod, node: PartialObject) -> Json:
    """CRR-11, CRR-13, CRR-14."""
    metadata = _mapping(body.get("metadata"))
    labels = {
        **_mapping(metadata.get("labels")),
        ACTIVE_LABEL: "true",
        NODE_LABEL: pod.spec.node_name,
        POD_LABEL: pod.metadata.uid,
    }
    if node.metadata.labels.get(VIRTUAL_LABEL) == VIRTUAL:
        labels[VIRTUAL_LABEL] = VIRTUAL
    strategy = dict(_mapping(spec.get("strategy")))
    strategy["failurePolicy"] = strategy.get("failurePolicy") or FAIL
    grace = pod.spec.termination_grace_period_seconds
    if strategy.get("terminationGracePeriodSeconds") is None and grace is not None:
        strategy["terminationGracePeriodSeconds"] = grace
    containers = [_container(_mapping(item), pod) for item in spec["containers"]]
    return {
        **body,
        "metadata": {**metadata, "labels": labels},
        "spec": {**spec, "containers": containers, "strategy": strategy},
    }


def _container(asked: Mapping[str, Any], pod: _Pod) -> Json:
    name = str(asked.get("name", ""))
    if any(asked.get(read_only) for read_only in ("preStop", "ports", "statusContext")):
        raise _Refused("preStop, ports, statusContext in container are ready-only fields")
    known = {item.name: item for item in (*pod.spec.init_containers, *pod.spec.containers)}
    if name not in known:
        raise _Refused(f"container {name} not found in Pod")
    status = next((item for item in pod.status.container_statuses if item.name == name), None)
    if status is None:
        raise _Refused(f"not found {name} containerStatus in Pod Status")
    if not status.container_id:
        raise _Refused(f"no containerID in {name} containerStatus, maybe the container has not been initialized")
    result: Json = {"name": name}
    container = known[name]
    hook = container.lifecycle.pre_stop if container.lifecycle is not None else None
    if hook is not None:
        result["preStop"] = _plain(hook)
        if hook.http_get is not None and container.ports:
            result["ports"] = [_plain(port) for port in container.ports]
    result["statusContext"] = {"containerID": status.container_id, "restartCount": status.restart_count}
    return result


def _warnings(spec: Mapping[str, Any], pod: _Pod, node: PartialObject) -> Iterator[str]:
    strategy = _mapping(spec.get("strategy"))
    gated = any(gate.condition_type == keys.KRUISE_POD_READY for gate in pod.spec.readiness_gates)
    if strategy.get("unreadyGracePeriodSeconds") is not None and not gated:
        yield (
            f"spec.strategy.unreadyGracePeriodSeconds: pod {pod.metadata.name} has no readiness gate "
            f"{keys.KRUISE_POD_READY}, so it stays ready while the grace runs; pods of PyKruise's workloads have the "
            "gate, and all new pods get it with the feature gate KruisePodReadinessGate"
        )
    names = [_mapping(item).get("name") for item in spec["containers"]]
    for name in sorted({str(name) for name in names if names.count(name) > 1}):
        yield f"spec.containers: {name} is named more than once; it is recreated once"
    if node.metadata.labels.get(VIRTUAL_LABEL) == VIRTUAL:
        yield (
            f"node {node.metadata.name} is virtual, no node daemon runs there: unless its provider acts on requests, "
            "this one ends after a minute"
        )


# Update


def _update(request: AdmissionRequest) -> Mutation:
    """CRR-16."""
    new, old = request.body(), request.old_body()
    kept = _mapping(old.get("spec"))
    if _completed(_mapping(new.get("spec")), kept) != kept:
        return Deny(message="spec of ContainerRecreateRequest is immutable")
    before, after = _mapping(old.get("metadata")), _mapping(new.get("metadata"))
    for label in (POD_LABEL, NODE_LABEL):
        if _mapping(before.get("labels")).get(label) != _mapping(after.get("labels")).get(label):
            return Deny(message=f"not allowed to update immutable label {label}")
    known = _mapping(before.get("annotations")).get(UNREADY)
    if request.kind.version == OLDER and known and _mapping(after.get("annotations")).get(UNREADY) != known:
        return Deny(message=f"not allowed to update immutable annotation {UNREADY}")
    return Allow() if new.get("spec") == kept else Change(object={**new, "spec": kept})


def _completed(new: Mapping[str, Any], old: Mapping[str, Any]) -> Json:
    """A spec with what admission filled in when it was made: to apply the same manifest again changes nothing."""
    strategy = {
        **{
            name: value
            for name, value in _mapping(old.get("strategy")).items()
            if name in ("failurePolicy", "terminationGracePeriodSeconds")
        },
        **_mapping(new.get("strategy")),
    }
    known = {_mapping(item).get("name"): _mapping(item) for item in old.get("containers") or ()}
    containers = [
        {**known.get(_mapping(item).get("name"), {}), **_mapping(item)} for item in new.get("containers") or ()
    ]
    return {**new, "containers": containers, "strategy": strategy}


def _plain(value: Struct) -> Json:
    return decode(encode(value), dict[str, Any])


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
