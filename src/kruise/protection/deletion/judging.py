"""Who judges the deletion of what (DP section 2): by group and kind. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kruise.admission.decisions import Allow, Deny, HandlerView, Judge
from kruise.admission.review import AdmissionRequest
from kruise.protection.deletion.cascading import judge_definition, judge_namespace
from kruise.protection.deletion.rules import advice, idle, judge_always, judge_workload, leaf_advice

_Rule = Callable[[AdmissionRequest, Mapping[str, bool]], Allow | Deny]


def _by(rule: _Rule) -> Judge:
    def judge(request: AdmissionRequest, view: HandlerView) -> Allow | Deny:
        return rule(request, view.gates)

    return judge


_WORKLOAD, _LEAF = _by(judge_workload), _by(judge_always)
JUDGES: Mapping[tuple[str, str], Judge] = {
    ("", "Namespace"): judge_namespace,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): judge_definition,
    ("apps", "Deployment"): _WORKLOAD,
    ("apps", "ReplicaSet"): _WORKLOAD,
    ("apps", "StatefulSet"): _WORKLOAD,
    ("apps.kruise.io", "CloneSet"): _WORKLOAD,
    ("apps.kruise.io", "StatefulSet"): _WORKLOAD,
    ("apps.kruise.io", "UnitedDeployment"): _WORKLOAD,
    ("", "Service"): _LEAF,
    ("networking.k8s.io", "Ingress"): _LEAF,
}
"""Kinds of ours ask the same rule in their own admission."""


def advice_about(group: str, kind: str, body: Mapping[str, Any], gates: Mapping[str, bool]) -> str:
    """Why the label on an object would keep nobody from deleting it; empty: it does, or there is none."""
    judge = JUDGES.get((group, kind))
    if judge is None:
        return idle(body, kind)
    return advice(body, gates) or (leaf_advice(body, kind) if judge is _LEAF else "")
