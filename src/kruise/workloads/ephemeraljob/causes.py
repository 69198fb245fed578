"""Causes that only EphemeralJob knows."""

from __future__ import annotations

from kruise.machinery.causes import MINUTE, Act, Meaning

_CONTAINERS = "spec.template.ephemeralContainers"

NO_PODS = Meaning(
    code="no-target-pods",
    says="no pod can get the containers",
    act=Act.SOMEBODY,
    field="spec.selector",
    patience=0,
)
TOO_FEW_PODS = Meaning(
    code="too-few-target-pods",
    says="fewer pods match than replicas asks for",
    act=Act.SOMEBODY,
    field="spec.replicas",
    patience=0,
)
MIXED_RESULTS = Meaning(
    code="mixed-job-results",
    says="some pods succeeded and some failed: such a job ends only by its deadline",
    act=Act.SOMEBODY,
    field="spec.activeDeadlineSeconds",
    patience=0,
)
NO_TEMPLATE = Meaning(
    code="no-template-containers",
    says="the template has no containers",
    act=Act.SOMEBODY,
    field=_CONTAINERS,
    patience=0,
)
NAME_TAKEN = Meaning(
    code="container-name-taken",
    says="the pod has an ephemeral container of this name that is not of this job",
    act=Act.SOMEBODY,
    field=_CONTAINERS,
    patience=0,
)
PARALLELISM = Meaning(
    code="injection-parallelism",
    says="its turn comes when containers in other pods have ended",
    act=Act.NOBODY,
    field="spec.parallelism",
    waits_for_others=True,
    is_before_turn=True,
)
NO_PARALLELISM = Meaning(
    code="no-injection-parallelism",
    says="parallelism lets no pod get the containers",
    act=Act.SOMEBODY,
    field="spec.parallelism",
    patience=0,
    is_before_turn=True,
)
REFUSED = Meaning(
    code="injection-refused",
    says="the API server refused to add the containers to the pod",
    act=Act.SOMEBODY,
    field=_CONTAINERS,
    patience=0,
)
NO_NODE = Meaning(
    code="pod-without-node",
    says="the pod has no node yet, and gets the containers when it has",
    act=Act.NOBODY,
    patience=MINUTE,
)
RUNNING = Meaning(code="container-runs", says="a container of the job runs in it", act=Act.NOBODY)
STARTING = Meaning(code="container-starts", says="its containers are on their way", act=Act.NOBODY, patience=MINUTE)
NOT_REPORTED = Meaning(
    code="container-not-reported",
    says="its node has not said anything about the containers yet",
    act=Act.NOBODY,
    patience=MINUTE,
)
CANNOT_START = Meaning(
    code="container-cannot-start",
    says="a container of the job cannot start",
    act=Act.SOMEBODY,
    field=_CONTAINERS,
    patience=0,
)
CONTAINER_FAILED = Meaning(
    code="container-failed",
    says="a container of the job failed",
    act=Act.SOMEBODY,
    field=_CONTAINERS,
    patience=0,
)

CAUSES = (
    NO_PODS,
    TOO_FEW_PODS,
    MIXED_RESULTS,
    NO_TEMPLATE,
    NAME_TAKEN,
    PARALLELISM,
    NO_PARALLELISM,
    REFUSED,
    NO_NODE,
    RUNNING,
    STARTING,
    NOT_REPORTED,
    CANNOT_START,
    CONTAINER_FAILED,
)
