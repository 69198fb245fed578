"""Webhook configurations in the form that requests are held against: read once, asked for every write.

Pure. Order is Kubernetes': configurations by name, within one as listed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kruise.local.apicore.admitting import AdmissionRequest
from kruise.local.apicore.errors import Json
from kruise.local.webhooks import conditions
from kruise.machinery import selectors

MUTATING = "mutatingwebhookconfigurations.admissionregistration.k8s.io"
VALIDATING = "validatingwebhookconfigurations.admissionregistration.k8s.io"

EXEMPT_GROUP = "admissionregistration.k8s.io"
EXEMPT_KINDS = frozenset(
    {
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
    }
)


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    groups: frozenset[str]
    versions: frozenset[str]
    operations: frozenset[str]
    resources: tuple[tuple[str, str], ...]
    """Resource and subresource, each maybe `*`."""
    scope: str

    def covers(self, group: str, resource: str, subresource: str, operation: str, is_namespaced: bool) -> bool:
        """Everything but the version."""
        if (self.scope == "Namespaced" and not is_namespaced) or (self.scope == "Cluster" and is_namespaced):
            return False
        return (
            _among(self.operations, operation)
            and _among(self.groups, group)
            and any(known in ("*", resource) and below in ("*", subresource) for known, below in self.resources)
        )

    def has_version(self, version: str) -> bool:
        return _among(self.versions, version)


def _among(known: frozenset[str], asked: str) -> bool:
    return asked in known or "*" in known


@dataclasses.dataclass(frozen=True, slots=True)
class Condition:
    name: str
    expression: str
    holds: Callable[[conditions.Variables], bool] | None
    """None for an expression that is not understood: it counts as holding."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One webhook of a configuration."""

    configuration: str
    name: str
    client_config: Mapping[str, Any]
    rules: tuple[Rule, ...]
    namespaces: selectors.Selector
    objects: selectors.Selector
    conditions: tuple[Condition, ...]
    is_equivalent: bool
    ignores_failures: bool
    timeout: float
    side_effects: str
    review_versions: tuple[str, ...]
    is_reinvoked: bool


def compile_entry(configuration: str, webhook: Mapping[str, Any]) -> Entry:
    return Entry(
        configuration=configuration,
        name=webhook.get("name", ""),
        client_config=webhook.get("clientConfig") or {},
        rules=tuple(_rule(rule) for rule in webhook.get("rules") or ()),
        namespaces=_selector(webhook.get("namespaceSelector") or {}),
        objects=_selector(webhook.get("objectSelector") or {}),
        conditions=tuple(_condition(item) for item in webhook.get("matchConditions") or ()),
        is_equivalent=(webhook.get("matchPolicy") or "Equivalent") == "Equivalent",
        ignores_failures=webhook.get("failurePolicy") == "Ignore",
        timeout=float(webhook.get("timeoutSeconds") or 10),
        side_effects=webhook.get("sideEffects") or "",
        review_versions=tuple(webhook.get("admissionReviewVersions") or ()),
        is_reinvoked=webhook.get("reinvocationPolicy") == "IfNeeded",
    )


def _selector(selector: Mapping[str, Any]) -> selectors.Selector:
    try:
        return selectors.from_label_selector(selector)
    except selectors.SelectorError:
        # Validation lets none of these in; one that came by another way must not stop every write of the cluster.
        return selectors.NOTHING


def _rule(rule: Mapping[str, Any]) -> Rule:
    return Rule(
        groups=frozenset(rule.get("apiGroups") or ()),
        versions=frozenset(rule.get("apiVersions") or ()),
        operations=frozenset(rule.get("operations") or ()),
        resources=tuple(_split(resource) for resource in rule.get("resources") or ()),
        scope=rule.get("scope") or "*",
    )


def _split(resource: str) -> tuple[str, str]:
    name, _, below = resource.partition("/")
    return name, below


def _condition(condition: Mapping[str, str]) -> Condition:
    expression = condition.get("expression", "")
    return Condition(condition.get("name", ""), expression, conditions.compiled(expression))


def compile_configurations(configurations: Iterable[Json]) -> tuple[Entry, ...]:
    """All entries, in the order in which they are asked."""
    return tuple(
        compile_entry(configuration["metadata"]["name"], webhook)
        for configuration in configurations
        for webhook in configuration.get("webhooks") or ()
    )


def matching_version(entry: Entry, request: AdmissionRequest, versions: Sequence[str]) -> str:
    """The version of the kind that the entry wants to see, for what the request writes; empty where it wants none.

    The request's own version goes first; then, where the entry matches equivalents, the first rule that names another
    version in which the kind is served.
    """
    kind = request.kind
    covering = [
        rule
        for rule in entry.rules
        if rule.covers(kind.group, kind.plural, request.subresource, request.operation, kind.namespaced)
    ]
    if any(rule.has_version(request.version) for rule in covering):
        return request.version
    if entry.is_equivalent:
        for rule in covering:
            for version in versions:
                if rule.has_version(version):
                    return version
    return ""


def selects_object(entry: Entry, request: AdmissionRequest) -> bool:
    if entry.objects.is_empty:
        return True
    return any(
        obj is not None and entry.objects.matches((obj.get("metadata") or {}).get("labels") or {})
        for obj in (request.object, request.old_object)
    )


def unknown_conditions(configuration: Json) -> list[str]:
    """What to tell somebody who writes a configuration with conditions that are not evaluated here."""
    return [
        f"webhooks[{position}].matchConditions[{at}].expression: not evaluated by this server, counts as true: "
        f"{condition.get('expression', '')}"
        for position, webhook in enumerate(configuration.get("webhooks") or ())
        for at, condition in enumerate(webhook.get("matchConditions") or ())
        if conditions.compiled(condition.get("expression", "")) is None
    ]
