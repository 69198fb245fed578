"""Causes that no plan tells: what is wrong with a pod itself, and what concerns a workload as a whole."""

from __future__ import annotations

from kruise.machinery.causes import MINUTE, Act, Meaning

_POD = "spec.template.spec"

IMAGE_PULL = Meaning(
    code="image-pull", says="an image cannot be had", act=Act.SOMEBODY, field=f"{_POD}.containers[].image"
)
CRASH_LOOP = Meaning(code="crash-loop", says="a container ends again and again", act=Act.SOMEBODY)
CONTAINER_ERROR = Meaning(code="container-error", says="a container cannot be made or started", act=Act.SOMEBODY)
LAUNCH_ORDER = Meaning(
    code="launch-order",
    says="a container waits for those that start before it",
    act=Act.NOBODY,
    field=f"{_POD}.containers[].env[KRUISE_CONTAINER_PRIORITY]",
)
SIDECAR_RUNS = Meaning(
    code="sidecar-runs",
    says="its main containers are done, and a sidecar still runs",
    act=Act.NOBODY,
    field=f"{_POD}.containers[].env[KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT]",
    patience=MINUTE,
)
NOT_STARTING = Meaning(
    code="not-starting", says="the node cannot start the pod: a volume, its sandbox, ...", act=Act.SOMEBODY
)
STARTING = Meaning(code="starting", says="it is being started", act=Act.NOBODY)
PROBE = Meaning(
    code="probe",
    says="a container runs, but its probe fails",
    act=Act.SOMEBODY,
    field=f"{_POD}.containers[].readinessProbe",
    patience=MINUTE,
)
READINESS_GATE = Meaning(
    code="readiness-gate", says="a readiness gate is shut", act=Act.SOMEBODY, field=f"{_POD}.readinessGates"
)
SCHEDULING_GATE = Meaning(
    code="scheduling-gate", says="a scheduling gate holds it", act=Act.SOMEBODY, field=f"{_POD}.schedulingGates"
)
MIN_READY = Meaning(
    code="min-ready",
    says="it is ready, but not for minReadySeconds yet",
    act=Act.NOBODY,
    field="spec.minReadySeconds",
)
LIFECYCLE_STATE = Meaning(
    code="lifecycle-state", says="it is in a lifecycle state in which it does not serve", act=Act.NOBODY
)
FINISHED = Meaning(
    code="finished", says="it has ended, and nothing restarts it", act=Act.SOMEBODY, field=f"{_POD}.restartPolicy"
)
NODE_NOT_READY = Meaning(code="node-not-ready", says="its node does not answer", act=Act.SOMEBODY)
NODE_GONE = Meaning(code="node-gone", says="its node is gone", act=Act.SOMEBODY)
NOT_READY = Meaning(code="not-ready", says="it is not ready, for a reason that the pod does not tell", act=Act.SOMEBODY)

OF_PODS = (
    IMAGE_PULL,
    CRASH_LOOP,
    CONTAINER_ERROR,
    LAUNCH_ORDER,
    SIDECAR_RUNS,
    NOT_STARTING,
    STARTING,
    PROBE,
    READINESS_GATE,
    SCHEDULING_GATE,
    MIN_READY,
    LIFECYCLE_STATE,
    FINISHED,
    NODE_NOT_READY,
    NODE_GONE,
    NOT_READY,
)

MANAGER_DOWN = Meaning(code="manager-down", says="no manager is at work", act=Act.SOMEBODY)
CONTROLLER_OFF = Meaning(
    code="controller-off", says="the manager does not look at this kind: its gate is off", act=Act.SOMEBODY
)
MANAGER_FAILS = Meaning(code="manager-fails", says="the manager's own code fails on this object", act=Act.SOMEBODY)
NO_CONTROLLER = Meaning(
    code="no-controller", says="the local cluster has no controller for this kind", act=Act.SOMEBODY
)
NOT_OBSERVED = Meaning(code="not-observed", says="the manager has not looked at the newest spec yet", act=Act.NOBODY)
CREATE_REFUSED = Meaning(
    code="create-refused", says="pods are refused: a quota, a webhook, an invalid template", act=Act.SOMEBODY
)
UPDATE_REFUSED = Meaning(code="update-refused", says="changes of pods are refused", act=Act.SOMEBODY)
CREATING = Meaning(code="creating", says="pods are missing and about to be created", act=Act.NOBODY)
MOVING = Meaning(code="moving", says="the manager is about to change it", act=Act.NOBODY)
DELETING = Meaning(code="deleting", says="the workload itself is being deleted", act=Act.NOBODY)
OLD_TEMPLATE = Meaning(code="old-template", says="Kubernetes' own controller has not replaced it yet", act=Act.NOBODY)

OF_WORKLOADS = (
    MANAGER_DOWN,
    CONTROLLER_OFF,
    MANAGER_FAILS,
    NO_CONTROLLER,
    NOT_OBSERVED,
    CREATE_REFUSED,
    UPDATE_REFUSED,
    CREATING,
    MOVING,
    DELETING,
    OLD_TEMPLATE,
)
