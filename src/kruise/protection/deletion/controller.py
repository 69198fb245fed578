"""What deletion protection brings to the manager: handlers for Kubernetes' own kinds. Kinds of ours ask its rules in
their own admission."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kruise.admission.decisions import Allow, Deny, HandlerView
from kruise.admission.registry import Handler, ValidatingHandler
from kruise.admission.review import AdmissionRequest
from kruise.feature import Feature, Settings
from kruise.protection.deletion.cascading import judge_definition, judge_namespace
from kruise.protection.deletion.rules import GATE, judge_always, judge_workload

_Rule = Callable[[AdmissionRequest, Mapping[str, bool]], Allow | Deny]
_WORKLOADS = ("/validate-apps-deployment", "/validate-apps-replicaset", "/validate-apps-statefulset")
_LEAVES = ("/validate-service", "/validate-ingress")


def _handler(path: str, rule: _Rule) -> ValidatingHandler:
    def judge(request: AdmissionRequest, view: HandlerView) -> Allow | Deny:
        return rule(request, view.gates)

    return ValidatingHandler(path, judge)


def webhooks(settings: Settings) -> tuple[Handler, ...]:
    """None while the gate is off: what is labelled must not depend on a manager that would allow everything."""
    if not settings.gates.get(GATE, False):
        return ()
    return (
        *(_handler(path, judge_workload) for path in _WORKLOADS),
        *(_handler(path, judge_always) for path in _LEAVES),
        ValidatingHandler("/validate-namespace", judge_namespace),
        ValidatingHandler("/validate-customresourcedefinition", judge_definition),
    )


FEATURE = Feature(name="deletion-protection", webhooks=webhooks)
