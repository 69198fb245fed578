"""Custom resource definitions and webhook configurations.

The parts that the manager rewrites whole (conversion stanza, webhook lists) stay plain JSON values: they are compared
and sent back as they are, so nothing that a newer server knows gets lost.
"""

from __future__ import annotations

from typing import Any

from kruise.api.meta import Condition, ObjectMeta
from kruise.api.resource import Resource
from kruise.machinery.codec import Struct, field


class DefinitionNames(Struct):
    plural: str = ""
    singular: str = ""
    kind: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


class DefinitionVersion(Struct):
    """A version without its schema, which is large and which no controller reads."""

    name: str = ""
    served: bool = False
    storage: bool = False
    subresources: dict[str, Any] = field(default_factory=dict)


class DefinitionSpec(Struct):
    group: str = ""
    scope: str = ""
    names: DefinitionNames = DefinitionNames()
    versions: tuple[DefinitionVersion, ...] = ()
    conversion: dict[str, Any] = field(default_factory=dict)


class DefinitionStatus(Struct):
    conditions: tuple[Condition, ...] = ()
    stored_versions: tuple[str, ...] = ()


class CustomResourceDefinition(Struct):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: DefinitionSpec = DefinitionSpec()
    status: DefinitionStatus = DefinitionStatus()


class WebhookConfiguration(Struct):
    """Mutating and validating configurations alike."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    webhooks: tuple[dict[str, Any], ...] = ()


CUSTOM_RESOURCE_DEFINITIONS = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    False,
    CustomResourceDefinition,
)
MUTATING_WEBHOOK_CONFIGURATIONS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    False,
    WebhookConfiguration,
)
VALIDATING_WEBHOOK_CONFIGURATIONS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    False,
    WebhookConfiguration,
)


def is_established(definition: CustomResourceDefinition) -> bool:
    return any(item.type == "Established" and item.status == "True" for item in definition.status.conditions)
