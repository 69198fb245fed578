"""Everything that an installation consists of, in the order in which it is applied. Pure.

`parts` is the one source: manifests in which values are left open. `kruise install` and the kustomize base put values
in; the chart leaves that to Helm.
"""

from __future__ import annotations

import dataclasses
import enum
import re
from collections.abc import Mapping, Sequence
from typing import Any

from kruise import release
from kruise.admission import inventory
from kruise.feature import Feature
from kruise.machinery.codec import decode
from kruise.manager.installation import daemon, manager, monitoring, people, rbac
from kruise.manager.installation.pods import NAMESPACE
from kruise.manager.installation.templating import (
    Condition,
    IsSet,
    Text,
    Value,
    When,
    gate,
    resolved,
)
from kruise.manager.installation.values import AZURE, POD_FAILURE_POLICY, WEBHOOK_TIMEOUT, gates_of, with_values

Manifest = dict[str, Any]

DAEMON_NAMESPACE = "kruise-daemon-config"


class Style(enum.Enum):
    """The two installations that people know differ in how namespaces escape the webhooks (MGR-40)."""

    PLAIN = "plain"
    CHART = "chart"


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """A manifest whose values are open, and when it is there at all."""

    manifest: Manifest
    condition: Condition | None = None
    runs: str = ""
    """What it brings to run, `manager` or `daemon`: nothing that could not run is installed without an image."""
    file: str = ""
    """Which one of the chart it is in; empty: that of its kind."""


def parts(
    features: Sequence[Feature],
    *,
    style: Style,
    has_timeout: bool = True,
    daemon_namespace: str = DAEMON_NAMESPACE,
    service: str = manager.SERVICE,
    secret: str = manager.SECRET,
) -> list[Part]:
    """Namespaces, definitions, rights, Service, certificate Secret, webhook configurations, manager and daemon.

    The webhook configurations carry their entries in the `template` annotation only: nothing is intercepted until a
    manager serves, which then fills in the live list. An installation without a running manager blocks no pod. Without
    `has_timeout` their time-out is left to the API server.
    """
    label = inventory.CHART_LABEL if style is Style.CHART else manager.LABELS["control-plane"]
    found = definitions(features)
    webhook_service = manager.service()
    webhook_service["metadata"]["name"] = service
    return [
        Part(_namespace(NAMESPACE, label), IsSet("installation.createNamespace")),
        Part(_namespace(daemon_namespace, label)),
        *(Part(_converted_at(definition, service), IsSet("crds.managed")) for definition in found),
        *(
            Part(manifest, gate("KruiseDaemon") if rbac.is_of_daemons(manifest) else None)
            for manifest in rbac.manifests(NAMESPACE, daemon_namespace, found, secret)
        ),
        *(Part(manifest) for manifest in people.manifests(found)),
        Part(webhook_service),
        Part(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": secret, "namespace": NAMESPACE},
                "type": "Opaque",
            }
        ),
        *(Part(manifest) for manifest in _configurations(features, style, service, has_timeout)),
        Part(manager.deployment(release()), runs="manager"),
        Part(manager.disruption_budget(), IsSet("manager.podDisruptionBudget.enabled"), runs="manager"),
        Part(manager.network_policy(), IsSet("networkPolicy.enabled"), runs="manager"),
        Part(daemon.daemon_set(release()), gate("KruiseDaemon"), runs="daemon"),
        *_monitoring(),
    ]


def manifests(
    features: Sequence[Feature],
    *,
    namespace: str = "kruise-system",
    daemon_namespace: str = DAEMON_NAMESPACE,
    service: str = manager.SERVICE,
    secret: str = manager.SECRET,
    style: Style = Style.PLAIN,
    values: Mapping[str, Any] | None = None,
    runs: Sequence[str] = (),
) -> list[Manifest]:
    """The installation with these values, by path; `manager` and `daemon` only where `runs` names them."""
    # A manager that runs elsewhere may have any gate on: then the rights are there for all of them.
    open_gates = {} if runs else {"featureGates": "AllAlpha=true,AllBeta=true,EnableExternalCerts=false"}
    tree = with_values({"installation.namespace": namespace, **open_gates, **(values or {})})
    gates = gates_of(tree)
    found = parts(
        features,
        style=style,
        # Plain manifests have none unless somebody wants it.
        has_timeout=style is Style.CHART or WEBHOOK_TIMEOUT in (values or {}),
        daemon_namespace=daemon_namespace,
        service=service,
        secret=secret,
    )
    return [
        resolved(part.manifest, tree, gates)
        for part in found
        if (not part.runs or part.runs in runs) and (part.condition is None or part.condition.holds(tree, gates))
    ]


def _monitoring() -> list[Part]:
    """Last: where the kinds of the Prometheus operator are not there, all else is."""
    is_watched, has_rules = IsSet("metrics.serviceMonitor.enabled"), IsSet("metrics.rules.enabled")
    found = [
        Part(monitoring.manager_service(), is_watched, runs="manager"),
        Part(monitoring.daemon_service(), is_watched, runs="daemon"),
        Part(monitoring.dashboard_files(), IsSet("metrics.dashboards.enabled"), runs="manager"),
        Part(monitoring.manager_monitor(), is_watched, runs="manager"),
        Part(monitoring.daemon_monitor(), is_watched, runs="daemon"),
        Part(monitoring.rules(), has_rules, runs="manager"),
    ]
    return [dataclasses.replace(part, file="monitoring") for part in found]


def definitions(features: Sequence[Feature]) -> list[Manifest]:
    """The CustomResourceDefinitions of all kinds, by name."""
    found = [dict(definition) for feature in features for definition in feature.definitions]
    return sorted(found, key=lambda definition: str(definition["metadata"]["name"]))


def _converted_at(definition: Manifest, service: str) -> Manifest:
    """A definition whose versions are converted by the manager of this very installation."""
    conversion = definition["spec"].get("conversion", {})
    if conversion.get("strategy") != "Webhook":
        return definition
    webhook = conversion["webhook"]
    where = {**webhook["clientConfig"]["service"], "namespace": NAMESPACE, "name": service}
    webhook = {**webhook, "clientConfig": {"service": where}}
    converted = {**definition, "spec": {**definition["spec"], "conversion": {**conversion, "webhook": webhook}}}
    annotations = When(gate("EnableExternalCerts"), Value("externalCerts.annotations"))
    return {**converted, "metadata": {**definition["metadata"], "annotations": annotations}}


def _namespace(name: Any, label: str) -> Manifest:
    # The label exempts the namespace from the pod webhooks, so that the manager's own pods can always start (MGR-40).
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"control-plane": label}}}


# Stand-ins for values inside a text of JSON; nothing else there looks like them.
_OPEN_NAMESPACE, _OPEN_SECONDS, _OPEN_POLICY = "open-namespace", 987654321, "open-policy"
_OPEN: Mapping[str | int, Value] = {
    _OPEN_NAMESPACE: NAMESPACE,
    _OPEN_SECONDS: Value(WEBHOOK_TIMEOUT),
    _OPEN_POLICY: Value(POD_FAILURE_POLICY),
}


def _configurations(features: Sequence[Feature], style: Style, service: str, has_timeout: bool) -> list[Manifest]:
    def rendered(*, aks: bool = False) -> list[Manifest]:
        is_chart = style is Style.CHART
        options = dataclasses.replace(
            inventory.chart_options() if is_chart else inventory.RegistrationOptions(service=service),
            namespace=_OPEN_NAMESPACE,
            timeout_seconds=_OPEN_SECONDS if has_timeout else None,
            pod_failure_policy=_OPEN_POLICY,
            aks=aks,
        )
        return inventory.configurations(
            options,
            mutating=tuple(entry for feature in features for entry in feature.mutating_entries),
            validating=tuple(entry for feature in features for entry in feature.validating_entries),
        )

    return [_configuration(plain, azure) for plain, azure in zip(rendered(), rendered(aks=True), strict=True)]


def _configuration(plain: Manifest, azure: Manifest) -> Manifest:
    written: dict[str, str] = plain["metadata"]["annotations"]
    template = {
        key: When(IsSet(AZURE), _opened(other), _opened(text))
        for (key, text), other in zip(written.items(), azure["metadata"]["annotations"].values(), strict=True)
    }
    # Certificates from outside: the manager changes nothing, so the entries are live from the beginning (MGR-36).
    is_external = gate("EnableExternalCerts")
    gates = {entry.name: entry.gate for entry in (*inventory.MUTATING, *inventory.VALIDATING)}
    live = []
    for entry, other in zip(_entries(plain), _entries(azure), strict=True):
        chosen = When(IsSet(AZURE), _opened_object(other), _opened_object(entry))
        live.append(When(gate(needed), chosen) if (needed := gates.get(entry["name"])) else chosen)
    annotations = When(is_external, Value("externalCerts.annotations"), template)
    return {
        **plain,
        "metadata": {**plain["metadata"], "annotations": annotations},
        "webhooks": When(is_external, live),
    }


def _entries(configuration: Manifest) -> list[dict[str, Any]]:
    [text] = configuration["metadata"]["annotations"].values()
    return decode(text.encode(), list[dict[str, Any]])


def _opened(text: str) -> Any:
    """A text of JSON whose stand-ins are values."""
    values = {str(stand_in): value for stand_in, value in _OPEN.items()}
    return Text(tuple(values.get(piece, piece) for piece in re.split(f"({'|'.join(values)})", text)))


def _opened_object(part: Any) -> Any:
    """The same of an object."""
    if isinstance(part, dict):
        return {key: _opened_object(item) for key, item in part.items()}
    if isinstance(part, list):
        return [_opened_object(item) for item in part]
    return _OPEN.get(part, part) if isinstance(part, str | int) else part
