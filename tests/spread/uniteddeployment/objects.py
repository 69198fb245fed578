"""UnitedDeployments, children and pods as decisions read them, for tests of the pure core."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from kruise.api.apps.cloneset import CLONE_SETS, CloneSet
from kruise.api.apps.uniteddeployment import UNITED_DEPLOYMENTS, UnitedDeployment
from kruise.api.native.apps import ControllerRevision
from kruise.api.native.pod import Pod
from kruise.machinery.client.requests import Verb
from kruise.machinery.codec import convert, decode, encode
from kruise.machinery.plan import Action, Outcome, Outcomes, Plan, Result
from kruise.spread.uniteddeployment import keys
from kruise.spread.uniteddeployment.conclude import conclude
from kruise.spread.uniteddeployment.decide import decide
from kruise.spread.uniteddeployment.situation import Snapshot, situation_of
from tests.support import outcomes

Json = dict[str, Any]
NOW = datetime(2030, 1, 1, 12, 0, 0, tzinfo=UTC)
UID = "ud-uid"


def stamp(seconds: float) -> str:
    """So many seconds before now."""
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def united(
    subsets: Sequence[Mapping[str, Any]], *, replicas: int | None = 6, status: Json | None = None, **spec: Any
) -> UnitedDeployment:
    """One over CloneSets."""
    inner = {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "i:1"}]},
        },
    }
    template = spec.pop("template", {"cloneSetTemplate": {"metadata": {"labels": {"app": "web"}}, "spec": inner}})
    topology = {"subsets": list(subsets), **spec.pop("topology", {})}
    body: Json = {
        "selector": {"matchLabels": {"app": "web"}},
        "template": template,
        "topology": topology,
        **spec,
    }
    if replicas is not None:
        body["replicas"] = replicas
    return convert(
        {
            "apiVersion": UNITED_DEPLOYMENTS.api_version,
            "kind": UNITED_DEPLOYMENTS.kind,
            "metadata": {"name": "web", "namespace": "default", "uid": UID, "generation": 1},
            "spec": body,
            "status": status or {},
        },
        UnitedDeployment,
    )


def revision_of(subject: UnitedDeployment) -> ControllerRevision:
    """That of its present template, as it is stored."""
    situation = situation_of(Snapshot(united=subject, now=NOW))
    assert situation is not None
    return situation.choice.revision


def child(
    subject: UnitedDeployment,
    subset: str,
    size: int,
    *,
    ready: int | None = None,
    replicas: int | None = None,
    **more: Any,
) -> CloneSet:
    """The child of a subset, made from the present template."""
    made = next(action for action in decide(Snapshot(united=subject, now=NOW)).actions() if made_for(action) == subset)
    body = json.loads(json.dumps(made.body))
    body["metadata"] |= {"uid": f"uid-{subset}", "creationTimestamp": stamp(600), **more.pop("metadata", {})}
    body["spec"] |= {"replicas": size, **more}
    body["status"] = {"replicas": size, "readyReplicas": size if ready is None else ready}
    return convert(body, CloneSet)


def made_for(action: Action) -> str:
    if action.target.resource != CLONE_SETS or action.body is None or "metadata" not in action.body:
        return ""
    labels: Mapping[str, str] = action.body["metadata"].get("labels", {})
    return labels.get(keys.SUBSET, "")


def pods(
    owner: CloneSet, count: int, *, age: float = 600, waits: bool = False, labels: Json | None = None
) -> list[Pod]:
    """Pods of a child: ready, or `waits` for a node."""
    conditions: list[Json] = [{"type": "Ready", "status": "True", "lastTransitionTime": stamp(age)}]
    if waits:
        conditions = [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available"}
        ]
    made = owner.metadata
    return [
        convert(
            {
                "metadata": {
                    "name": f"{made.name}-{number}{'w' if waits else ''}",
                    "namespace": "default",
                    "uid": f"{made.uid}-{number}{waits}",
                    "creationTimestamp": stamp(age),
                    "labels": {
                        "app": "web",
                        keys.SUBSET: made.labels[keys.SUBSET],
                        keys.REVISION: made.labels[keys.REVISION],
                        **(labels or {}),
                    },
                    "ownerReferences": [
                        {
                            "apiVersion": CLONE_SETS.api_version,
                            "kind": CLONE_SETS.kind,
                            "name": made.name,
                            "uid": made.uid,
                            "controller": True,
                        }
                    ],
                },
                "spec": {} if waits else {"nodeName": "node-1"},
                "status": {"phase": "Pending" if waits else "Running", "conditions": conditions},
            },
            Pod,
        )
        for number in range(count)
    ]


def look(
    subject: UnitedDeployment, children: Sequence[CloneSet] = (), members: Sequence[Pod] = (), **more: Any
) -> tuple[Snapshot, Plan]:
    snapshot = Snapshot(
        united=subject,
        clone_sets=tuple(children),
        pods=tuple(members),
        revisions=(revision_of(subject),),
        now=NOW,
        **more,
    )
    return snapshot, decide(snapshot)


def carried_out(plan: Plan, *, refused: str = "") -> Outcomes:
    """Everything done; children refused in these words."""

    def write(action: Action) -> Outcome:
        if refused and action.target.resource == CLONE_SETS and action.verb is Verb.CREATE:
            return Outcome(action=action, result=Result.FAILED, error=refused)
        return Outcome(action=action, result=Result.DONE)

    return outcomes.carried_out(plan, write)


def status_after(snapshot: Snapshot, plan: Plan, **options: Any) -> dict[str, Any]:
    conclusion = conclude(snapshot, plan, carried_out(plan, **options))
    assert conclusion.status is not None
    found: dict[str, Any] = decode(encode(conclusion.status.body[0]["value"]), dict[str, Any])
    return found


def condition(status: dict[str, Any], kind: str) -> dict[str, Any]:
    return next(item for item in status["conditions"] if item["type"] == kind)


def causes_of(plan: Plan) -> list[tuple[str, str]]:
    return [(cause.code, cause.remedy) for held in plan.held for cause in held.causes]
