"""Causes that only BroadcastJob knows."""

from __future__ import annotations

from kruise.machinery.causes import MINUTE, Act, Meaning

JOB_PAUSED = Meaning(
    code="job-paused",
    says="the job is paused: no more pods are made",
    act=Act.INTENDED,
    field="spec.paused",
    is_wanted=True,
    is_before_turn=True,
    remedy="when it is to go on: kruise rollout resume {target}{flags}",
)
FAILURE_PAUSES = Meaning(
    code="failure-pauses",
    says="a pod failed, and the failure policy pauses the job",
    act=Act.SOMEBODY,
    field="spec.failurePolicy.type",
    patience=0,
    is_before_turn=True,
)
PARALLELISM = Meaning(
    code="parallelism",
    says="other nodes have their turn, and no more pods may run at a time",
    act=Act.NOBODY,
    field="spec.parallelism",
    waits_for_others=True,
    is_before_turn=True,
)
NO_PARALLELISM = Meaning(
    code="no-parallelism",
    says="parallelism lets no pod be made",
    act=Act.SOMEBODY,
    field="spec.parallelism",
    patience=0,
    is_before_turn=True,
)
NO_NODE = Meaning(
    code="no-node",
    says="the job suits no node",
    act=Act.SOMEBODY,
    field="spec.template.spec",
    patience=0,
)
TASKS = Meaning(code="tasks", says="what the job runs has not ended yet", act=Act.NOBODY)
RESTARTS = Meaning(
    code="restarts",
    says="it has restarted too often, counts as failed, and still runs",
    act=Act.SOMEBODY,
    field="spec.failurePolicy.restartLimit",
    patience=0,
)
NEVER_COMPLETES = Meaning(
    code="never-completes",
    says="all nodes are done, and the job waits for nodes to come",
    act=Act.INTENDED,
    field="spec.completionPolicy.type",
    is_wanted=True,
)
JOB_FAILED = Meaning(
    code="job-failed",
    says="the job has failed, and does nothing more",
    act=Act.SOMEBODY,
    field="spec.failurePolicy.type",
    patience=0,
)
POD_FAILED = Meaning(
    code="task-failed",
    says="it failed, and with it the job",
    act=Act.SOMEBODY,
    field="spec.template.spec",
    patience=0,
)
STILL_RUNS = Meaning(
    code="still-runs",
    says="the job has failed, and the pod has yet to go",
    act=Act.NOBODY,
    patience=MINUTE,
)

CAUSES = (
    JOB_PAUSED,
    FAILURE_PAUSES,
    PARALLELISM,
    NO_PARALLELISM,
    NO_NODE,
    TASKS,
    RESTARTS,
    NEVER_COMPLETES,
    JOB_FAILED,
    POD_FAILED,
    STILL_RUNS,
)
