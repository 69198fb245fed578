"""The faces of Kubernetes' own kinds."""

from __future__ import annotations

from kruise.faces import native_progress as progress
from kruise.faces.face import Face, History, Pods, Restart, resource

_SETTINGS = "kruise.faces.native_settings"

DEPLOYMENT = Face(
    resource=resource("apps", "v1", "deployments", "Deployment"),
    short_names=("deploy",),
    paused=("spec", "paused"),
    pods=Pods.CHILDREN,
    progress=progress.deployment,
    settings=f"{_SETTINGS}:deployment",
    history=History.REPLICA_SETS,
    restart=Restart.ANNOTATION,
    is_exposable=True,
)
STATEFUL_SET = Face(
    resource=resource("apps", "v1", "statefulsets", "StatefulSet"),
    short_names=("sts",),
    partition=("spec", "updateStrategy", "rollingUpdate", "partition"),
    progress=progress.stateful_set,
    settings=f"{_SETTINGS}:stateful_set",
    history=History.CONTROLLER_REVISIONS,
    restart=Restart.ANNOTATION,
)
DAEMON_SET = Face(
    resource=resource("apps", "v1", "daemonsets", "DaemonSet"),
    short_names=("ds",),
    replicas=None,
    pods=Pods.PER_NODE,
    progress=progress.daemon_set,
    settings=f"{_SETTINGS}:daemon_set",
    history=History.CONTROLLER_REVISIONS,
    restart=Restart.ANNOTATION,
)
REPLICA_SET = Face(resource=resource("apps", "v1", "replicasets", "ReplicaSet"), short_names=("rs",), is_exposable=True)
REPLICATION_CONTROLLER = Face(
    resource=resource("", "v1", "replicationcontrollers", "ReplicationController"),
    short_names=("rc",),
    is_exposable=True,
)
JOB = Face(
    resource=resource("batch", "v1", "jobs", "Job"),
    replicas=None,
    paused=("spec", "suspend"),
    runs_to_end=True,
    progress=progress.job,
    settings=f"{_SETTINGS}:job",
)
CRON_JOB = Face(
    resource=resource("batch", "v1", "cronjobs", "CronJob"),
    short_names=("cj",),
    template=None,
    selector=None,
    replicas=None,
    paused=("spec", "suspend"),
    pods=Pods.NONE,
    progress=progress.cron_job,
    tells_generation=False,
)
POD = Face(
    resource=resource("", "v1", "pods", "Pod"),
    short_names=("po",),
    template=(),
    selector=None,
    replicas=None,
    pods=Pods.NONE,
    is_exposable=True,
)
SERVICE = Face(
    resource=resource("", "v1", "services", "Service"),
    short_names=("svc",),
    template=None,
    replicas=None,
    pods=Pods.SELECTED,
    is_exposable=True,
)

FACES = (DEPLOYMENT, STATEFUL_SET, DAEMON_SET, REPLICA_SET, REPLICATION_CONTROLLER, JOB, CRON_JOB, POD, SERVICE)
