"""Configuration and service objects, and what our own ConfigMap lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kruise.api.meta import ObjectMeta, PartialObject
from kruise.api.resource import Resource
from kruise.machinery import codec
from kruise.machinery.codec import Struct, field

CONFIGURATION = "kruise-configuration"
"""A ConfigMap in the namespace of the manager."""


class WhitelistError(ValueError):
    """The list cannot be read; the text says why."""


def listed_workloads(data: Mapping[str, str] | None, key: str) -> list[dict[str, Any]]:
    """Workloads of kinds of others, as a key of the configuration lists them; None: there is none. Raises
    WhitelistError."""
    text = (data or {}).get(key, "")
    if not text.strip():
        return []
    try:
        found = codec.decode(text.encode(), object)
    except codec.DecodeError as error:
        raise WhitelistError(f"ConfigMap {CONFIGURATION}, {key}: {error}") from error
    workloads = folded(found).get("workloads")
    return [folded(item) for item in workloads] if isinstance(workloads, list) else []


def folded(value: Any) -> dict[str, Any]:
    """Names come in any case: both `Group` and `group` are written."""
    return {str(key).lower(): item for key, item in value.items()} if isinstance(value, dict) else {}


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
