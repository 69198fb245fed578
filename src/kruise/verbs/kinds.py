"""The kinds that the verbs work on, as one table: where each has its template, its switch for pausing, its history.

A new kind is a new row here, and a function that reads its status (`rollout_status`).
"""

from __future__ import annotations

import dataclasses
import difflib
import enum
from collections.abc import Iterable, Mapping
from typing import Any

from kruise.api.apps.shared import GROUP
from kruise.api.meta import PartialObject
from kruise.api.resource import Resource
from kruise.verbs import rollout_status as status
from kruise.verbs.documents import Path
from kruise.verbs.errors import UsageError


class History(enum.Enum):
    """Where a kind keeps its earlier templates."""

    REPLICA_SETS = "replicasets"
    CONTROLLER_REVISIONS = "controllerrevisions"


class Restart(enum.Enum):
    """What is changed in a template to make its pods anew."""

    ANNOTATION = "annotation"
    ENVIRONMENT = "environment"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind, as far as the verbs must know it. What is None or False, the kind does not have."""

    resource: Resource[PartialObject]
    short_names: tuple[str, ...] = ()
    template: Path | None = ("spec", "template")
    """Where the pod template is; for a pod, the pod itself."""
    selector: Path | None = ("spec", "selector")
    replicas: Path | None = ("spec", "replicas")
    paused: Path | None = None
    history: History | None = None
    restart: Restart | None = None
    progress: status.Reader | None = None
    is_exposable: bool = False
    can_scale_down_by_name: bool = False
    is_ours: bool = False
    """Served only where PyKruise is installed."""

    @property
    def singular(self) -> str:
        return self.resource.kind.lower()

    @property
    def label(self) -> str:
        """As kubectl prints it in front of a name: `deployment.apps`, `cloneset.apps.kruise.io`, `pod`."""
        group = self.resource.group
        return f"{self.singular}.{group}" if group else self.singular

    def __str__(self) -> str:
        return self.resource.kind

    def named(self, name: str) -> str:
        return f"{self.label}/{name}"

    def pod_spec(self) -> Path:
        """Where the spec of the pods is. Only for kinds that have a template."""
        return (*self.template_path(), "spec")

    def template_path(self) -> Path:
        if self.template is None:
            raise UsageError(f"a {self} has no pod template")
        return self.template


def _resource(group: str, version: str, plural: str, kind: str) -> Resource[PartialObject]:
    return Resource(group, version, plural, kind, True, PartialObject)


CLONE_SET = Kind(
    resource=_resource(GROUP, "v1beta1", "clonesets", "CloneSet"),
    short_names=("clone",),
    paused=("spec", "updateStrategy", "rollingUpdate", "paused"),
    history=History.CONTROLLER_REVISIONS,
    restart=Restart.ENVIRONMENT,
    progress=status.cloneset,
    is_exposable=True,
    can_scale_down_by_name=True,
    is_ours=True,
)
DEPLOYMENT = Kind(
    resource=_resource("apps", "v1", "deployments", "Deployment"),
    short_names=("deploy",),
    paused=("spec", "paused"),
    history=History.REPLICA_SETS,
    restart=Restart.ANNOTATION,
    progress=status.deployment,
    is_exposable=True,
)
STATEFUL_SET = Kind(
    resource=_resource("apps", "v1", "statefulsets", "StatefulSet"),
    short_names=("sts",),
    history=History.CONTROLLER_REVISIONS,
    restart=Restart.ANNOTATION,
    progress=status.stateful_set,
)
DAEMON_SET = Kind(
    resource=_resource("apps", "v1", "daemonsets", "DaemonSet"),
    short_names=("ds",),
    replicas=None,
    history=History.CONTROLLER_REVISIONS,
    restart=Restart.ANNOTATION,
    progress=status.daemon_set,
)
REPLICA_SET = Kind(
    resource=_resource("apps", "v1", "replicasets", "ReplicaSet"), short_names=("rs",), is_exposable=True
)
REPLICATION_CONTROLLER = Kind(
    resource=_resource("", "v1", "replicationcontrollers", "ReplicationController"),
    short_names=("rc",),
    is_exposable=True,
)
POD = Kind(
    resource=_resource("", "v1", "pods", "Pod"),
    short_names=("po",),
    template=(),
    selector=None,
    replicas=None,
    is_exposable=True,
)
SERVICE = Kind(
    resource=_resource("", "v1", "services", "Service"),
    short_names=("svc",),
    template=None,
    replicas=None,
    is_exposable=True,
)

KINDS = (
    CLONE_SET,
    DEPLOYMENT,
    STATEFUL_SET,
    DAEMON_SET,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    POD,
    SERVICE,
)
WORKLOADS = tuple(kind for kind in KINDS if kind.progress is not None)
"""The kinds that roll out: what the word `all` means."""


def find(word: str) -> Kind:
    """What people call a kind: `clone`, `CloneSet`, `clonesets.apps.kruise.io`, `deployments.v1.apps`.

    Whatever version is named, the one of the table is spoken.
    """
    name, _, rest = word.partition(".")
    for kind in KINDS:
        if name.lower() in _words(kind) and (not rest or _is_group(kind, rest)):
            return kind
    known = [known for kind in KINDS for known in _words(kind)]
    near = difflib.get_close_matches(name.lower(), known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(kind.singular for kind in KINDS))}."
    raise UsageError(f'there is no kind "{word}" here; {hint}')


def find_manifest(document: Mapping[str, Any]) -> Kind:
    """The kind of an object in a file."""
    group, _, _ = str(document.get("apiVersion", "")).rpartition("/")
    for kind in KINDS:
        if (kind.resource.group, kind.resource.kind) == (group, document.get("kind")):
            return kind
    said = f"{document.get('apiVersion') or '(no apiVersion)'} {document.get('kind') or '(no kind)'}"
    raise UsageError(f"this verb does not know {said}")


def _words(kind: Kind) -> Iterable[str]:
    return (kind.singular, kind.resource.plural, *kind.short_names)


def _is_group(kind: Kind, rest: str) -> bool:
    group = kind.resource.group
    if rest == group:
        return True
    version, _, behind = rest.partition(".")
    return behind == group and version[:1] == "v" and version[1:2].isdigit()
