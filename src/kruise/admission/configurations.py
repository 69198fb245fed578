"""What the webhook configurations and the conversion stanzas of CRDs should say. Pure: live object in, patch out.

The list of entries as installed is kept in annotation `template`; the live list is made from it again and again: only
entries whose path has an active handler, with our CA bundle and our address (MGR-37, PW-50). So hand edits go away,
wiped bundles come back, and entries of a gate that was switched off return with it.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from kruise.admission.certificates import encode_bundle
from kruise.admission.review import REVIEW_VERSIONS
from kruise.api.native.extensions import CustomResourceDefinition, WebhookConfiguration
from kruise.machinery.codec import DecodeError, canonical, decode

TEMPLATE = "template"
MUTATING_NAME = "kruise-mutating-webhook-configuration"
VALIDATING_NAME = "kruise-validating-webhook-configuration"
CONVERT_PATH = "/convert"
GROUPS = frozenset({"apps.kruise.io", "policy.kruise.io"})


class ConfigurationError(ValueError):
    """A live object cannot be worked with; the text names it and the remedy."""


@dataclasses.dataclass(frozen=True, slots=True)
class ServiceEndpoint:
    """The manager runs in the cluster, behind a Service."""

    namespace: str
    name: str
    port: int = 443

    def client_config(self, path: str) -> dict[str, Any]:
        return {"service": {"namespace": self.namespace, "name": self.name, "path": path, "port": self.port}}

    @property
    def dns_name(self) -> str:
        return f"{self.name}.{self.namespace}.svc"


@dataclasses.dataclass(frozen=True, slots=True)
class UrlEndpoint:
    """The manager runs outside; the API server reaches it at an address (`WEBHOOK_HOST`)."""

    host: str
    port: int

    def client_config(self, path: str) -> dict[str, Any]:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return {"url": f"https://{host}:{self.port}{path}"}

    @property
    def dns_name(self) -> str:
        return self.host


Endpoint = ServiceEndpoint | UrlEndpoint


def configuration_patch(
    live: WebhookConfiguration, *, active: Collection[str], endpoint: Endpoint, bundle: bytes
) -> dict[str, Any] | None:
    """The merge patch that makes the configuration right; None where it is right already.

    It is guarded by resourceVersion: the template may be replaced by an installer between our read and our write.
    """
    template, saved = _template(live)
    wanted = [_effective(entry, endpoint, bundle) for entry in template if entry_path(entry) in active]
    same = [complete(entry, live.kind) for entry in live.webhooks] == [complete(entry, live.kind) for entry in wanted]
    if same and saved:
        return None
    metadata: dict[str, Any] = {"uid": live.metadata.uid, "resourceVersion": live.metadata.resource_version}
    if not saved:
        metadata["annotations"] = {TEMPLATE: canonical(template).decode()}
    return {"metadata": metadata, "webhooks": wanted}


def _template(live: WebhookConfiguration) -> tuple[list[dict[str, Any]], bool]:
    """The entries as installed, and whether they are saved in the annotation already."""
    text = live.metadata.annotations.get(TEMPLATE, "")
    if not text.strip():
        # First sight, or an installer that shipped an empty annotation: the list as it is now (MGR-37, MGR-83).
        return [_unfilled(entry) for entry in live.webhooks], False
    try:
        return decode(text, list[dict[str, Any]]), True
    except DecodeError as error:
        raise ConfigurationError(
            f"{live.kind} {live.metadata.name}: annotation {TEMPLATE} is no list of webhooks ({error}): "
            "remove the annotation, or install the configuration again"
        ) from error


def _unfilled(entry: Mapping[str, Any]) -> dict[str, Any]:
    client = {key: value for key, value in _mapping(entry.get("clientConfig")).items() if key != "caBundle"}
    return {**entry, "clientConfig": client}


def _effective(entry: Mapping[str, Any], endpoint: Endpoint, bundle: bytes) -> dict[str, Any]:
    client = endpoint.client_config(entry_path(entry))
    return {**entry, "clientConfig": {**client, "caBundle": encode_bundle(bundle)}}


def entry_path(entry: Mapping[str, Any]) -> str:
    """The path that an entry calls, however it is addressed."""
    client = _mapping(entry.get("clientConfig"))
    service = _mapping(client.get("service"))
    if service:
        return str(service.get("path") or "/")
    url = client.get("url")
    return urlsplit(url).path if isinstance(url, str) else ""


def complete(entry: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """An entry with the API server's defaults, so that what it filled in does not look like a difference."""
    result: dict[str, Any] = {
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "timeoutSeconds": 10,
        "namespaceSelector": {},
        "objectSelector": {},
    }
    if kind == "MutatingWebhookConfiguration":
        result["reinvocationPolicy"] = "Never"
    result.update({key: value for key, value in entry.items() if value is not None})
    rules = entry.get("rules")
    if isinstance(rules, list | tuple):
        result["rules"] = [{"scope": "*", **rule} if isinstance(rule, Mapping) else rule for rule in rules]
    client = dict(_mapping(entry.get("clientConfig")))
    if service := _mapping(client.get("service")):
        client["service"] = {"port": 443, **service}
    result["clientConfig"] = client
    return result


def is_converted(definition: CustomResourceDefinition, groups: Collection[str] = GROUPS) -> bool:
    """Whether we look after this CRD's conversion (MGR-38)."""
    return definition.spec.group in groups and definition.spec.conversion.get("strategy") == "Webhook"


def definition_patch(
    definition: CustomResourceDefinition, *, endpoint: Endpoint, bundle: bytes
) -> dict[str, Any] | None:
    """The merge patch for a CRD that converts by webhook; None where its stanza is right (MGR-38, PW-52)."""
    client: dict[str, Any] = {**endpoint.client_config(CONVERT_PATH), "caBundle": encode_bundle(bundle)}
    wanted = {"clientConfig": client, "conversionReviewVersions": list(REVIEW_VERSIONS)}
    if _mapping(definition.spec.conversion.get("webhook")) == wanted:
        return None
    # A merge patch keeps what it does not name, and the API server refuses a service and a URL together.
    cleared = {"url": None, "service": None, **client}
    return {
        "metadata": {"uid": definition.metadata.uid},
        "spec": {"conversion": {"webhook": {**wanted, "clientConfig": cleared}}},
    }


def live_bundles(configurations: Sequence[WebhookConfiguration]) -> bytes:
    """The CAs that callers trust now, as the live entries have them."""
    found: dict[bytes, None] = {}
    for configuration in configurations:
        for entry in configuration.webhooks:
            text = _mapping(entry.get("clientConfig")).get("caBundle")
            if isinstance(text, str):
                with contextlib.suppress(ValueError):  # whatever it is, nobody can be trusted by it
                    found[base64.b64decode(text, validate=True)] = None
    return b"".join(found)


def bundle_problems(
    configurations: Sequence[WebhookConfiguration],
    definitions: Sequence[CustomResourceDefinition],
    bundle: bytes,
) -> list[str]:
    """Where somebody else's CA is missing: with external certificates nothing is written, only compared (MGR-36)."""
    wanted = encode_bundle(bundle)
    problems = []
    for configuration in configurations:
        for entry in configuration.webhooks:
            if _mapping(entry.get("clientConfig")).get("caBundle") != wanted:
                where = f"{configuration.kind} {configuration.metadata.name}, entry {entry.get('name', '?')}"
                problems.append(f"{where}: caBundle is not the external CA")
    for definition in definitions:
        webhook = _mapping(definition.spec.conversion.get("webhook"))
        if _mapping(webhook.get("clientConfig")).get("caBundle") != wanted:
            problems.append(f"CustomResourceDefinition {definition.metadata.name}: caBundle is not the external CA")
    return problems


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
