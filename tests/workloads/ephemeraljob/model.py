"""EphemeralJobs and their pods as values, for tests of decisions."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from kruise.api.apps.ephemeraljob import FINALIZER, JOB_ENV, EphemeralJob, EphemeralJobStatus
from kruise.api.native.pod import Pod
from kruise.machinery.codec import convert, to_builtins
from kruise.machinery.plan import Outcome, Outcomes, PhaseOutcomes, Plan, Result
from kruise.workloads.ephemeraljob.conclude import conclude
from kruise.workloads.ephemeraljob.decide import INJECT, Memo, decide
from kruise.workloads.ephemeraljob.situation import Snapshot

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
UID = "job-uid"
CONTAINER = {
    "name": "dbg",
    "image": "busybox",
    "imagePullPolicy": "IfNotPresent",
    "terminationMessagePolicy": "File",
    "env": [{"name": "A", "value": "b"}],
}
RUNNING = {"running": {"startedAt": "2026-01-02T03:04:05Z"}}
WELL = {"terminated": {"exitCode": 0, "finishedAt": "2026-01-02T03:04:05Z"}}
BADLY = {"terminated": {"exitCode": 3, "finishedAt": "2026-01-02T03:04:05Z"}}
PULLING = {"waiting": {"reason": "ErrImagePull", "message": "not found"}}
CREATING = {"waiting": {"reason": "ContainerCreating"}}
NO_COMMAND = {"waiting": {"reason": "RunContainerError", "message": "no such file"}}


def job(*, status: Any = None, metadata: Any = None, containers: Any = (CONTAINER,), **spec: Any) -> EphemeralJob:
    meta = {"name": "dbg", "namespace": "demo", "uid": UID, "finalizers": [FINALIZER], "resourceVersion": "7"}
    return convert(
        {
            "metadata": {**meta, **(metadata or {})},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"ephemeralContainers": containers},
                **spec,
            },
            "status": status or {},
        },
        EphemeralJob,
    )


def pod(number: int, *states: Any, owner: str = UID, name: str = "dbg", age: int = 0, **fields: Any) -> Pod:
    """A pod with a container of the job for each state; None: it is there, and nobody has reported it."""
    names = [name, *(f"{name}-{index}" for index in range(1, len(states)))]
    reported = [
        {"name": one, "state": state, "image": "busybox"} for one, state in zip(names, states, strict=False) if state
    ]
    containers = [{"name": one, "env": [{"name": JOB_ENV, "value": owner}]} for one in names[: len(states)]]
    created = NOW - timedelta(hours=1) - timedelta(seconds=age)
    return convert(
        {
            "metadata": {
                "name": f"web-{number}",
                "namespace": "demo",
                "uid": f"uid-{number}",
                "resourceVersion": str(number),
                "labels": {"app": "web"},
                "creationTimestamp": created.strftime("%Y-%m-%dT%H:%M:%SZ"),
                **fields.get("metadata", {}),
            },
            "spec": {"nodeName": "node-1", "ephemeralContainers": containers, **fields.get("spec", {})},
            "status": {"phase": "Running", "ephemeralContainerStatuses": reported, **fields.get("status", {})},
        },
        Pod,
    )


def snapshot(subject: EphemeralJob, *pods: Pod, now: datetime = NOW, **more: Any) -> Snapshot:
    return Snapshot(job=subject, pods=pods, now=now, **more)


def plan_of(subject: EphemeralJob, *pods: Pod, now: datetime = NOW, **more: Any) -> Plan:
    return decide(snapshot(subject, *pods, now=now, **more))


def status_of(subject: EphemeralJob, *pods: Pod, now: datetime = NOW) -> EphemeralJobStatus:
    return plan_of(subject, *pods, now=now).memo_as(Memo).status


def injected(plan: Plan) -> list[str]:
    """The pods that get containers, in order."""
    return [action.target.name for phase in plan.phases if phase.name == INJECT for [action] in phase.chains]


def held(plan: Plan) -> dict[str, str]:
    return {one.target.name: one.causes[0].code for one in plan.held}


def conditions(status: EphemeralJobStatus) -> dict[str, str]:
    return {one.type: one.reason for one in status.conditions}


def all_done(plan: Plan) -> Outcomes:
    return Outcomes(
        tuple(
            PhaseOutcomes(
                phase.name,
                tuple(tuple(Outcome(action=action, result=Result.DONE) for action in chain) for chain in phase.chains),
            )
            for phase in plan.phases
        )
    )


def written(subject: EphemeralJob, *pods: Pod, now: datetime = NOW) -> Any:
    """The status as it is written; None: nothing is."""
    seen = snapshot(subject, *pods, now=now)
    plan = decide(seen)
    action = conclude(seen, plan, all_done(plan)).status
    return action.body[0]["value"] if action is not None else None


def plain(value: Any) -> Any:
    return json.loads(json.dumps(to_builtins(value), default=str))
