"""What the manager and the node daemon may do, right by right, each with its reason. Pure.

The roles of an installation are made of these tables (`rbac`), and so is docs/rights.md. Verbs that give the same power
come together: who may list objects may get and watch them, who may patch them may update them.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from kruise.manager.installation.templating import Value

READ: Final = ("get", "list", "watch")
CHANGE: Final = ("patch", "update")
CREATE: Final = ("create",)
DELETE: Final = ("delete",)
STATUS: Final = ("get", "patch", "update")
FINALIZERS: Final = ("update",)

OURS: Final = "apps.kruise.io"
POLICY: Final = "policy.kruise.io"

_COPIES: Final = ("ResourceDistributionGate", "ImagePullJobGate")
_BUDGETS: Final = ("PodUnavailableBudgetDeleteGate", "PodUnavailableBudgetUpdateGate")
_EXTERNAL: Final = ("EnableExternalCerts",)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """One rule of a role."""

    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    why: str
    group: str = ""
    groups: Value | None = None
    """Instead of `group`: groups that are a value of the installation."""
    gates: tuple[str, ...] = ()
    """It is there if one of these is on; empty: always."""
    unless: tuple[str, ...] = ()
    """It is not there if one of these is on."""
    names: tuple[str, ...] = ()
    """Only objects of these names; empty: all of them."""
    is_held: bool = False
    """Nothing uses it: the contract names it, and people compare roles with those of OpenKruise."""


def _native(*resources: str, verbs: tuple[str, ...], why: str, **more: Any) -> Grant:
    return Grant(resources=resources, verbs=verbs, why=why, **more)


def _ours(*resources: str, verbs: tuple[str, ...], why: str, **more: Any) -> Grant:
    return Grant(group=OURS, resources=resources, verbs=verbs, why=why, **more)


_CORE: Final = (
    _native("pods", verbs=READ, why="every workload, sidecars, spread, probes and budgets look at pods"),
    _native("pods", verbs=(*CREATE, *DELETE, *CHANGE), why="workloads make, delete, adopt and update their pods"),
    _native("pods/status", verbs=STATUS, why="readiness gates and lifecycle states"),
    _native("pods/ephemeralcontainers", verbs=STATUS, why="EphemeralJob puts its containers into pods"),
    _native(
        "pods/resize",
        verbs=STATUS,
        why="in-place update of resources",
        gates=("InPlaceWorkloadVerticalScaling",),
    ),
    _native("persistentvolumeclaims", verbs=READ, why="claims of CloneSet and StatefulSet; namespaces that hold some"),
    _native(
        "persistentvolumeclaims",
        verbs=(*CREATE, *DELETE, *CHANGE),
        why="CloneSet and StatefulSet make claims, let them grow, adopt them and delete them",
    ),
    _native("configmaps", verbs=(*CREATE, *CHANGE), why="barriers of the container launch priority"),
    _native(
        "configmaps",
        verbs=(*READ, *DELETE),
        why="copies of a ResourceDistribution",
        gates=("ResourceDistributionGate",),
    ),
    _native(
        "secrets",
        verbs=(*READ, *CREATE, *DELETE, *CHANGE),
        why="copies of a ResourceDistribution; copies of pull secrets for the daemons",
        gates=_COPIES,
    ),
    _native("events", verbs=(*CREATE, *CHANGE), why="what happened to an object"),
    _native("namespaces", verbs=READ, why="selectors of SidecarSet and ResourceDistribution; namespaces that go"),
    _native("nodes", verbs=READ, why="where pods can be, and what a node is called"),
    _native(
        "storageclasses",
        group="storage.k8s.io",
        verbs=READ,
        why="whether claims of a StatefulSet can grow",
        gates=("StatefulSetAutoResizePVCGate",),
    ),
    Grant(
        groups=Value("installation.roleListGroups"),
        resources=("*",),
        verbs=("list",),
        why="whether there are objects of a kind whose definition is deleted",
        gates=("DeletionProtectionForCRDCascadingGate",),
    ),
    Grant(
        group="*",
        resources=("*/scale",),
        verbs=("get",),
        why="how many pods a workload of somebody else's kind has, for budgets and WorkloadSpread",
        gates=(*_BUDGETS, "WorkloadSpread"),
    ),
)
_REGISTRATION: Final = (
    Grant(
        group="admissionregistration.k8s.io",
        resources=("mutatingwebhookconfigurations", "validatingwebhookconfigurations"),
        verbs=READ,
        why="whether the API server calls the webhooks that are at work",
    ),
    Grant(
        group="admissionregistration.k8s.io",
        resources=("mutatingwebhookconfigurations", "validatingwebhookconfigurations"),
        verbs=(*CREATE, *CHANGE),
        why="entries and CA bundles are kept right; a configuration that somebody deleted is made again",
        unless=_EXTERNAL,
    ),
    Grant(
        group="apiextensions.k8s.io",
        resources=("customresourcedefinitions",),
        verbs=READ,
        why="which kinds are converted by the manager",
    ),
    Grant(
        group="apiextensions.k8s.io",
        resources=("customresourcedefinitions",),
        verbs=CHANGE,
        why="address and CA bundle of the conversion",
        unless=_EXTERNAL,
    ),
)
_NATIVE_WORKLOADS: Final = (
    Grant(
        group="apps",
        resources=("controllerrevisions",),
        verbs=(*READ, *CREATE, *DELETE, *CHANGE),
        why="revisions of workloads and sidecars",
    ),
    Grant(
        group="apps",
        resources=("deployments", "statefulsets"),
        verbs=READ,
        why="subsets of a UnitedDeployment; workloads behind budgets, WorkloadSpread and PersistentPodState",
    ),
    Grant(
        group="apps",
        resources=("deployments", "statefulsets"),
        verbs=(*CREATE, *DELETE, *CHANGE),
        why="subsets of a UnitedDeployment",
    ),
    Grant(group="apps", resources=("daemonsets",), verbs=READ, why="workloads behind budgets", gates=_BUDGETS),
    Grant(
        group="apps",
        resources=("replicasets",),
        verbs=READ,
        why="what is between a Deployment and its pods, for budgets and WorkloadSpread",
        gates=(*_BUDGETS, "WorkloadSpread"),
    ),
    Grant(group="batch", resources=("jobs",), verbs=READ, why="runs of an AdvancedCronJob; targets of WorkloadSpread"),
    Grant(group="batch", resources=("jobs",), verbs=(*CREATE, *DELETE), why="runs of an AdvancedCronJob"),
)
_OWN_KINDS: Final = (
    _ours(
        "clonesets",
        "statefulsets",
        verbs=(*READ, *CREATE, *DELETE, *CHANGE),
        why="their controllers; subsets of a UnitedDeployment",
    ),
    _ours(
        "broadcastjobs",
        "imagelistpulljobs",
        verbs=(*READ, *CREATE, *DELETE),
        why="their controllers, and runs of an AdvancedCronJob; they go when their time is over",
    ),
    _ours("imagelistpulljobs", verbs=CHANGE, why="the hash of its template is noted in a label"),
    _ours(
        "persistentpodstates",
        verbs=(*READ, *CREATE, *DELETE, *CHANGE),
        why="its controller; a StatefulSet's annotations ask for one",
    ),
    _ours(
        "advancedcronjobs",
        "sidecarsets",
        verbs=READ,
        why="their controllers; only people write them",
    ),
    _ours(
        "daemonsets",
        "uniteddeployments",
        verbs=(*READ, *CHANGE),
        why="their controllers, which write to them when they adopt; only people make and delete them",
    ),
    _ours("ephemeraljobs", verbs=(*READ, *DELETE, *CHANGE), why="its controller; it goes when its time is over"),
    _ours("nodeimages", verbs=READ, why="which nodes an image job can reach"),
    _ours(
        "nodeimages",
        verbs=(*CREATE, *DELETE, *CHANGE),
        why="one for each node, with the images that are wanted there",
        gates=("KruiseDaemon",),
    ),
    _ours(
        "containerrecreaterequests",
        verbs=(*READ, *CREATE, *DELETE, *CHANGE),
        why="its controller; the sidecar terminator makes some",
        gates=("KruiseDaemon",),
    ),
    _ours("imagepulljobs", verbs=READ, why="whose images a NodeImage asks for", gates=("KruiseDaemon",)),
    _ours(
        "imagepulljobs",
        verbs=(*CREATE, *DELETE, *CHANGE),
        why="its controller; jobs of an ImageListPullJob; images that are pulled ahead of a rollout",
        gates=("ImagePullJobGate",),
    ),
    _ours(
        "podprobemarkers",
        verbs=(*READ, *CHANGE),
        why="its controller; only people make and delete them",
        gates=("PodProbeMarkerGate",),
    ),
    _ours(
        "nodepodprobes",
        verbs=(*READ, *CREATE, *DELETE, *CHANGE),
        why="one for each node, with the probes of its pods",
        gates=("PodProbeMarkerGate",),
    ),
    _ours(
        "resourcedistributions",
        verbs=READ,
        why="its controller; only people write them",
        gates=("ResourceDistributionGate",),
    ),
    _ours("workloadspreads", verbs=READ, why="places for pods; whether two are about one workload"),
    Grant(group=POLICY, resources=("podunavailablebudgets",), verbs=READ, why="which budgets pods have"),
)
_STATUSES: Final = (
    _ours(
        *(
            f"{kind}/status"
            for kind in (
                "advancedcronjobs",
                "broadcastjobs",
                "clonesets",
                "daemonsets",
                "ephemeraljobs",
                "imagelistpulljobs",
                "persistentpodstates",
                "sidecarsets",
                "statefulsets",
                "uniteddeployments",
            )
        ),
        verbs=STATUS,
        why="what their controllers have to say",
    ),
    _ours(
        "containerrecreaterequests/status",
        "nodeimages/status",
        verbs=STATUS,
        why="what is decided about them where a daemon is silent",
        gates=("KruiseDaemon",),
    ),
    _ours("imagepulljobs/status", verbs=STATUS, why="what its controller has to say", gates=("ImagePullJobGate",)),
    _ours("podprobemarkers/status", verbs=STATUS, why="what its controller has to say", gates=("PodProbeMarkerGate",)),
    _ours(
        "resourcedistributions/status",
        verbs=STATUS,
        why="what its controller has to say",
        gates=("ResourceDistributionGate",),
    ),
    _ours(
        "workloadspreads/status",
        verbs=STATUS,
        why="which pods have which places; what its controller has to say",
        gates=("WorkloadSpread",),
    ),
    Grant(
        group=POLICY,
        resources=("podunavailablebudgets/status",),
        verbs=STATUS,
        why="which pods were let go; what its controller has to say",
        gates=_BUDGETS,
    ),
)
_OWNERS: Final = (
    _ours(
        *(
            f"{kind}/finalizers"
            for kind in (
                "advancedcronjobs",
                "broadcastjobs",
                "clonesets",
                "daemonsets",
                "imagelistpulljobs",
                "sidecarsets",
                "statefulsets",
                "uniteddeployments",
            )
        ),
        verbs=FINALIZERS,
        why="what they own keeps them until it is gone: many clusters ask for this right then",
    ),
    _native(
        "pods/finalizers",
        verbs=FINALIZERS,
        why="claims of a pod, and requests to restart its containers, keep it until they are gone",
    ),
    _ours(
        "resourcedistributions/finalizers",
        verbs=FINALIZERS,
        why="copies keep it until they are gone",
        gates=("ResourceDistributionGate",),
    ),
)
_JOURNAL_READING: Final = (
    Grant(
        group="authentication.k8s.io",
        resources=("tokenreviews",),
        verbs=CREATE,
        why="who asks for the journal",
    ),
    Grant(
        group="authorization.k8s.io",
        resources=("subjectaccessreviews",),
        verbs=CREATE,
        why="what those who ask for the journal may see",
    ),
)

_HELD: Final = (
    _ours(
        "advancedcronjobs",
        "sidecarsets",
        verbs=(*CREATE, *DELETE, *CHANGE),
        why="all verbs on kinds of its own (ACJ-83)",
        is_held=True,
    ),
    _ours(
        "daemonsets",
        "uniteddeployments",
        verbs=(*CREATE, *DELETE),
        why="all verbs on kinds of its own",
        is_held=True,
    ),
    _ours("broadcastjobs", verbs=CHANGE, why="all verbs on kinds of its own (BJ-73)", is_held=True),
    _ours(
        "podprobemarkers",
        verbs=(*CREATE, *DELETE),
        why="all verbs on kinds of its own (PPM-46)",
        gates=("PodProbeMarkerGate",),
        is_held=True,
    ),
    _ours(
        "nodepodprobes/status",
        verbs=STATUS,
        why="statuses of all kinds of its own (PPM-46)",
        gates=("PodProbeMarkerGate",),
        is_held=True,
    ),
    _ours(
        "workloadspreads",
        verbs=CHANGE,
        why="all verbs on kinds of its own, but for those that only people make",
        gates=("WorkloadSpread",),
        is_held=True,
    ),
    Grant(
        group=POLICY,
        resources=("podunavailablebudgets",),
        verbs=(*CREATE, *DELETE, *CHANGE),
        why="all verbs on kinds of its own",
        gates=_BUDGETS,
        is_held=True,
    ),
    _ours("ephemeraljobs/finalizers", verbs=FINALIZERS, why="finalizers of its own kinds (EJ-61)", is_held=True),
    _ours(
        "nodepodprobes/finalizers",
        "podprobemarkers/finalizers",
        verbs=FINALIZERS,
        why="finalizers of its own kinds (PPM-46)",
        gates=("PodProbeMarkerGate",),
        is_held=True,
    ),
    Grant(group="batch", resources=("jobs",), verbs=CHANGE, why="all verbs on Jobs (ACJ-83)", is_held=True),
    Grant(group="batch", resources=("jobs/status",), verbs=STATUS, why="statuses of Jobs (ACJ-83)", is_held=True),
)

MANAGER: Final = (
    *_CORE,
    *_REGISTRATION,
    *_NATIVE_WORKLOADS,
    *_OWN_KINDS,
    *_STATUSES,
    *_OWNERS,
    *_JOURNAL_READING,
    *_HELD,
)
"""In all namespaces."""

LEADER: Final = (
    Grant(
        group="coordination.k8s.io",
        resources=("leases",),
        verbs=("get", *CREATE, *CHANGE),
        why="one replica leads",
    ),
    _native(
        "configmaps",
        verbs=("get",),
        names=("kruise-configuration",),
        why="what SidecarSet may patch, and which kinds of others WorkloadSpread and PersistentPodState follow",
    ),
)
"""In the manager's namespace."""


def webhook(secret: str) -> tuple[Grant, ...]:
    """In the manager's namespace: the Secret with its certificates."""
    return (
        # A right to create knows no names.
        _native("secrets", verbs=CREATE, why="the certificates, where somebody deleted them", unless=_EXTERNAL),
        _native(
            "secrets", verbs=READ, names=(secret,), why="the certificates, that all replicas share; a watch of one name"
        ),
        _native("secrets", verbs=CHANGE, names=(secret,), why="certificates are renewed in time", unless=_EXTERNAL),
    )


_MARKERS: Final = ("PodProbeMarkerGate",)

DAEMON: Final = (
    _ours("nodeimages", verbs=READ, why="which images are wanted on its node"),
    _ours("nodeimages/status", verbs=STATUS, why="how pulling goes"),
    _ours("containerrecreaterequests", verbs=READ, why="which containers are to be restarted on its node"),
    _ours("containerrecreaterequests/status", verbs=STATUS, why="how restarting goes"),
    _ours("nodepodprobes", verbs=READ, why="which probes it runs", gates=_MARKERS),
    _ours("nodepodprobes/status", verbs=STATUS, why="what probes found", gates=_MARKERS),
    _native("pods", verbs=READ, why="the pods of its node"),
    _native("pods/status", verbs=STATUS, why="what containers were made from; readiness before a restart"),
    _native("events", verbs=(*CREATE, *CHANGE), why="what happened on its node"),
    _ours("nodeimages", verbs=CHANGE, why="the rights of a daemon (DMN-7)", is_held=True),
)
"""In all namespaces."""

DAEMON_SECRETS: Final = (
    _native("secrets", verbs=("get",), why="pull secrets, which the manager copies there"),
    _native("secrets", verbs=("list", "watch"), why="the rights of a daemon (DMN-7)", is_held=True),
)
"""In the daemon's namespace."""


def journal_reader(account: str) -> tuple[Grant, ...]:
    """In the manager's namespace, for people."""
    return (
        Grant(group="coordination.k8s.io", resources=("leases",), verbs=("get",), why="which replica leads"),
        _native("pods/proxy", verbs=("get",), why="the way to it through the API server"),
        _native("serviceaccounts/token", verbs=CREATE, names=(account,), why="to say who asks"),
    )
