"""Everything that an installation consists of, in the order in which it is applied. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kruise.admission import inventory
from kruise.feature import Feature
from kruise.manager.installation import rbac
from kruise.manager.installation.daemon import DaemonImage, daemon_set

Manifest = dict[str, Any]

WEBHOOK_PORT = 9876
CONTROL_PLANE_LABEL = {"control-plane": "controller-manager"}


def manifests(
    features: Sequence[Feature],
    *,
    namespace: str = "kruise-system",
    daemon_namespace: str = "kruise-daemon-config",
    service: str = "kruise-webhook-service",
    secret: str = "kruise-webhook-certs",
    daemon: DaemonImage | None = None,
) -> list[Manifest]:
    """Namespaces, definitions, rights, Service, certificate Secret and webhook configurations; the node daemon, where
    its image is known.

    The webhook configurations carry their entries in the `template` annotation only: nothing is intercepted until a
    manager serves, which then fills in the live list. An installation without a running manager blocks no pod.
    """
    return [
        _namespace(namespace),
        _namespace(daemon_namespace),
        *(_converted_at(definition, namespace, service) for definition in definitions(features)),
        *rbac.manifests(namespace, daemon_namespace, definitions(features)),
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": service, "namespace": namespace},
            "spec": {
                "ports": [{"name": "webhook", "port": 443, "protocol": "TCP", "targetPort": WEBHOOK_PORT}],
                "selector": dict(CONTROL_PLANE_LABEL),
            },
        },
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret, "namespace": namespace}, "type": "Opaque"},
        *inventory.configurations(
            namespace=namespace,
            service=service,
            mutating=tuple(entry for feature in features for entry in feature.mutating_entries),
            validating=tuple(entry for feature in features for entry in feature.validating_entries),
        ),
        *([daemon_set(daemon, namespace)] if daemon is not None else []),
    ]


def definitions(features: Sequence[Feature]) -> list[Manifest]:
    """The CustomResourceDefinitions of all kinds, by name."""
    found = [dict(definition) for feature in features for definition in feature.definitions]
    return sorted(found, key=lambda definition: str(definition["metadata"]["name"]))


def _converted_at(definition: Manifest, namespace: str, service: str) -> Manifest:
    """A definition whose versions are converted by the manager of this very installation."""
    conversion = definition["spec"].get("conversion", {})
    if conversion.get("strategy") != "Webhook":
        return definition
    webhook = conversion["webhook"]
    where = {**webhook["clientConfig"]["service"], "namespace": namespace, "name": service}
    webhook = {**webhook, "clientConfig": {"service": where}}
    return {**definition, "spec": {**definition["spec"], "conversion": {**conversion, "webhook": webhook}}}


def _namespace(name: str) -> Manifest:
    # The label exempts the namespace from the pod webhooks, so that the manager's own pods can always start (MGR-40).
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": dict(CONTROL_PLANE_LABEL)}}
