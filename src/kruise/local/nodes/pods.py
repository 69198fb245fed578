"""Pods as a kubelet reads them: more of the spec than controllers need, so with structs of its own.

A cache holds one struct per kind. Whoever runs the node model gives it a cache of its own, whose watch covers only the
pods that are bound to a node.
"""

from __future__ import annotations

from kruise.api.meta import ObjectMeta
from kruise.api.native.pod import EnvVar, PodReadinessGate, PodStatus, ResizePolicy, ResourceRequirements
from kruise.api.resource import Resource
from kruise.machinery.codec import Struct

BOUND = "spec.nodeName!="
"""The field selector of the pods that a kubelet may have to care for."""


class ExecAction(Struct):
    command: tuple[str, ...] = ()


class HttpGetAction(Struct):
    path: str = ""
    port: int | str = 0
    scheme: str = "HTTP"
    host: str = ""


class PortAction(Struct):
    port: int | str = 0


class SleepAction(Struct):
    seconds: int = 0


class Handler(Struct):
    exec: ExecAction | None = None
    http_get: HttpGetAction | None = None
    tcp_socket: PortAction | None = None
    sleep: SleepAction | None = None


class Lifecycle(Struct):
    post_start: Handler | None = None
    pre_stop: Handler | None = None


class Probe(Struct):
    exec: ExecAction | None = None
    http_get: HttpGetAction | None = None
    tcp_socket: PortAction | None = None
    grpc: PortAction | None = None
    initial_delay_seconds: int = 0
    timeout_seconds: int = 1
    period_seconds: int = 10
    success_threshold: int = 1
    failure_threshold: int = 3
    termination_grace_period_seconds: int | None = None


class VolumeMount(Struct):
    name: str = ""
    mount_path: str = ""
    read_only: bool = False


class Port(Struct):
    name: str = ""
    container_port: int = 0


class Container(Struct):
    """Main, init and ephemeral containers alike."""

    name: str = ""
    image: str = ""
    image_pull_policy: str = ""
    restart_policy: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: tuple[EnvVar, ...] = ()
    ports: tuple[Port, ...] = ()
    resources: ResourceRequirements = ResourceRequirements()
    resize_policy: tuple[ResizePolicy, ...] = ()
    lifecycle: Lifecycle | None = None
    startup_probe: Probe | None = None
    readiness_probe: Probe | None = None
    liveness_probe: Probe | None = None
    volume_mounts: tuple[VolumeMount, ...] = ()
    stdin: bool = False
    target_container_name: str = ""

    @property
    def is_sidecar(self) -> bool:
        """An init container that goes on beside the main containers."""
        return self.restart_policy == "Always"


class PodSpec(Struct):
    node_name: str = ""
    restart_policy: str = "Always"
    host_network: bool = False
    share_process_namespace: bool = False
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    ephemeral_containers: tuple[Container, ...] = ()
    readiness_gates: tuple[PodReadinessGate, ...] = ()
    resources: ResourceRequirements | None = None
    service_account_name: str = ""


class Pod(Struct):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


BOUND_PODS = Resource("", "v1", "pods", "Pod", True, Pod)

TERMINAL = ("Succeeded", "Failed")


def full_name(pod: Pod) -> str:
    """As the kubelet names a pod in messages."""
    return f"{pod.metadata.name}_{pod.metadata.namespace}({pod.metadata.uid})"


def amounts(resources: ResourceRequirements | None) -> dict[str, dict[str, str]]:
    """Requests and limits as they are written; empty ones left out."""
    if resources is None:
        return {}
    found: dict[str, dict[str, str]] = {}
    for name, values in (("limits", resources.limits), ("requests", resources.requests)):
        if values:
            found[name] = {key: str(value) for key, value in values.items()}
    return found
