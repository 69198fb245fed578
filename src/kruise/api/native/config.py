"""Configuration and service objects."""

from __future__ import annotations

from kruise.api.meta import ObjectMeta, PartialObject
from kruise.api.resource import Resource
from kruise.machinery.codec import Struct, field


class ConfigMap(Struct):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    data: dict[str, str] = field(default_factory=dict)
    binary_data: dict[str, str] = field(default_factory=dict)
    immutable: bool = False


class Secret(Struct):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    type: str = ""
    data: dict[str, bytes] = field(default_factory=dict)
    """Decoded: base64 exists only on the wire."""
    immutable: bool = False


class ServicePort(Struct):
    name: str = ""
    protocol: str = ""
    port: int = 0
    target_port: int | str = 0


class ServiceSpec(Struct):
    type: str = ""
    cluster_ip: str = field(default="", name="clusterIP")
    selector: dict[str, str] = field(default_factory=dict)
    ports: tuple[ServicePort, ...] = ()


class Service(Struct):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: ServiceSpec = ServiceSpec()


CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", True, ConfigMap)
SECRETS = Resource("", "v1", "secrets", "Secret", True, Secret)
SERVICES = Resource("", "v1", "services", "Service", True, Service)
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount", True, PartialObject)
