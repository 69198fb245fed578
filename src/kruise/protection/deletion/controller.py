"""What deletion protection brings to the manager: handlers for Kubernetes' own kinds. Kinds of ours ask its rules in
their own admission."""

from __future__ import annotations

from kruise.admission.registry import Handler, ValidatingHandler
from kruise.feature import Feature, Settings
from kruise.protection.deletion.judging import JUDGES
from kruise.protection.deletion.rules import GATE

_PATHS = {
    "/validate-apps-deployment": ("apps", "Deployment"),
    "/validate-apps-replicaset": ("apps", "ReplicaSet"),
    "/validate-apps-statefulset": ("apps", "StatefulSet"),
    "/validate-service": ("", "Service"),
    "/validate-ingress": ("networking.k8s.io", "Ingress"),
    "/validate-namespace": ("", "Namespace"),
    "/validate-customresourcedefinition": ("apiextensions.k8s.io", "CustomResourceDefinition"),
}


def webhooks(settings: Settings) -> tuple[Handler, ...]:
    """None while the gate is off: what is labelled must not depend on a manager that would allow everything."""
    if not settings.gates.get(GATE, False):
        return ()
    return tuple(ValidatingHandler(path, JUDGES[kind]) for path, kind in _PATHS.items())


FEATURE = Feature(name="deletion-protection", webhooks=webhooks)
