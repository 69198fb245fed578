"""Pods as the daemon reads them: few fields, since it runs on every node."""

from __future__ import annotations

from kruise.api.meta import ObjectMeta
from kruise.api.native.pod import ContainerPort, EnvVar, PodStatus
from kruise.api.resource import Resource
from kruise.machinery.codec import Struct


class Container(Struct):
    name: str = ""
    image: str = ""
    env: tuple[EnvVar, ...] = ()
    ports: tuple[ContainerPort, ...] = ()


class PodSpec(Struct):
    node_name: str = ""
    restart_policy: str = "Always"
    host_network: bool = False
    termination_grace_period_seconds: int | None = None
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()


class Pod(Struct):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


PODS = Resource("", "v1", "pods", "Pod", True, Pod)
