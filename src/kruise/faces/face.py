"""The face of a kind: what everybody else must know of it, as one value.

Verbs, `rollout status`, `describe`, `why`, `plan` and the readiness controller read faces; none of them names a kind. A
kind's face stands in its own folder (`face.py`, the name `FACE`), Kubernetes' own kinds have theirs in
`kruise.faces.native`, and `kruise.kinds` finds them all.

A face is light, since every command loads it. What needs the code of the kind is named by a `Reference`, and loaded
when somebody asks for it.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from kruise.api.meta import PartialObject
from kruise.api.resource import Resource
from kruise.faces.progress import Progress
from kruise.machinery.causes import Meaning
from kruise.machinery.documents import Json, Path

if TYPE_CHECKING:
    from kruise.faces.forecast import ForecastFacts
    from kruise.faces.handover import Handover
    from kruise.faces.outlook import OutlookFacts

Reference = str
"""`module:attribute`."""
GroupKind = tuple[str, str]
Setting = tuple[str, str]
"""A part of the strategy, with its title: `("Max Unavailable", "20% (2 pods)")`."""


class History(enum.Enum):
    """Where a kind keeps its earlier templates."""

    REPLICA_SETS = "replicasets"
    CONTROLLER_REVISIONS = "controllerrevisions"


class Restart(enum.Enum):
    """What is changed in a template to make its pods anew."""

    ANNOTATION = "annotation"
    ENVIRONMENT = "environment"


class Pods(enum.Enum):
    """Whose pods a kind works with."""

    OWNED = "owned"
    """Its own, as many as its spec says."""
    PER_NODE = "per-node"
    """Its own, one on each node that fits: how many depends on the nodes."""
    SELECTED = "selected"
    """Pods of others that its selector matches."""
    CHILDREN = "children"
    """Those of other workloads, which it makes."""
    NONE = "none"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """How a kind that puts something into the pods of others is found in them. Each function gets the annotations of a
    pod."""

    owner_of: Callable[[Mapping[str, str], str], tuple[str, str] | None]
    """The object that a container belongs to, and what the object calls it; None: it is the pod's own."""
    revision_of: Callable[[Mapping[str, str], str], str]
    """Name of the revision that the pod has of an object; empty: the object has put nothing into it."""
    is_current: Callable[[Mapping[str, str], Json], bool]
    """Whether the pod has what the object (a document) puts into pods now, as far as that can change in a pod. An older
    revision may have the same."""
    ran_before: Callable[[Mapping[str, str], str], str]
    """The id of the image that a container ran before it was last changed; empty: it was not, or nobody knows."""
    revision_label: str
    """The label of a ControllerRevision that names the object, which is in no namespace."""
    recorded: tuple[str, ...]
    """The parts of the spec that a revision holds."""
    namespaces: Path
    """Where it selects the namespaces of these pods; absent: all are meant."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Face:
    """What is None, False or empty, the kind does not have."""

    resource: Resource[PartialObject]
    """In the version that is spoken."""
    versions: tuple[str, ...] = ()
    """All that are served, where there are several."""
    short_names: tuple[str, ...] = ()
    is_ours: bool = False
    """Served only where PyKruise, or the package that brings the kind, is installed; its controller leaves plans."""

    has_namesake: bool = False
    """Kubernetes has a kind of the same name, and the plain word means that one."""

    # Where things are in its objects
    template: Path | None = ("spec", "template")
    """The pod template; of a pod, the pod itself."""
    selector: Path | None = ("spec", "selector")
    replicas: Path | None = ("spec", "replicas")
    paused: Path | None = None
    partition: Path | None = None
    partition_may_be_percent: bool = False
    partitions: Path | None = None
    """A map of partitions, where it has several."""
    template_in: Callable[[Json], Path | None] | None = None
    """Where the pod template of an object is, where that depends on the object; `template` is None then."""
    revised: Path | None = None
    """What a revision holds, where that is more than the pod template."""
    revision_label: str = "controller-revision-hash"
    """The label of pods that names the revision of its template, in full or by the hash."""
    revision_field: Path = ("status", "updateRevision")
    """Which revision the present template is."""
    min_ready: Path = ("spec", "minReadySeconds")
    """How long a pod must be ready before it counts as available."""

    # Its pods
    pods: Pods = Pods.OWNED
    runs_to_end: bool = False
    """A job: its pods finish, and then so does it."""
    overlooks_changes: bool = False
    """Its decisions do not need all that pods tell, and not every change of a pod makes its controller look: the pods
    that it decided about may have moved on since."""
    writes_pod_ready: bool = False
    """It writes the condition `KruisePodReady` of its pods itself."""

    placement: Reference = ""
    """A `Callable[[Mapping[str, str], str], str]`: from the annotations of a pod and the flags of a command to the
    object of this kind that says where the pod may run, and what to ask about it; empty where none does."""

    # Its rollout
    progress: Callable[[Json], Progress] | None = None
    """How far it has got. None: it does not roll out."""
    unmet: tuple[Meaning, ...] = ()
    """Causes with which it is not done, whatever its status says: that has no place for them."""
    tells_generation: bool = True
    """Its status says for which spec it is. Not so for Kubernetes' CronJobs, nor where the manager writes the spec, and
    nobody else."""
    standing: Callable[[Json], str] | None = None
    """How an object stands that does not roll out, in one line: with it, `kruise why` can be asked about it."""
    settings: Reference = ""
    """A `Callable[[Json], list[Setting]]`: strategy and limits of an object."""
    forecast: Reference = ""
    """Its `kruise.faces.forecast.ForecastFacts`: with them, `kruise plan` can tell what a change will do."""
    outlook: Reference = ""
    """Its `kruise.faces.outlook.OutlookFacts`: what `kruise plan` tells of a kind that does not roll out."""
    history: History | None = None
    restart: Restart | None = None
    causes: tuple[Meaning, ...] = ()
    """Those that only its plans name: for whoever reads a journal."""

    contribution: Contribution | None = None
    """What it puts into pods of others."""

    # What else can be done with it
    is_exposable: bool = False
    unscalable: Reference = ""
    """A `Callable[[Json], str]`: why no pods follow the number of replicas that an object has; empty where they do. A
    write through `scale` passes no webhook that would refuse it."""
    can_scale_down_by_name: bool = False
    counterpart: GroupKind | None = None
    """Kubernetes' own kind that does the same. `kruise migrate` hands pods over, to and fro."""
    handover: Reference = ""
    """Its `kruise.faces.handover.Handover`: which fields are the same in both."""
    replaces: GroupKind | None = None
    """Kubernetes' own kind that it stands in for with pods of its own: `kruise migrate` moves them step by step."""
    spec_from: Reference = ""
    """A `Callable[[Json], Json]`: from a spec of that kind to one of this kind that does the same, without replicas."""

    @property
    def promises_available_pods(self) -> bool:
        """Whether its status counts pods that are available, which can be compared with the pods themselves. Others
        count pods of their children, pods that have finished, copies or nodes."""
        owns = self.pods in (Pods.OWNED, Pods.PER_NODE) and not self.runs_to_end
        return owns or self.contribution is not None

    def template_of(self, document: Json) -> Path | None:
        """Where an object has its pod template."""
        return self.template_in(document) if self.template_in is not None else self.template

    @property
    def word(self) -> str:
        """What to type for it in a command."""
        return f"{self.singular}.{self.resource.group}" if self.has_namesake else self.singular

    @property
    def group_kind(self) -> GroupKind:
        return self.resource.group, self.resource.kind

    @property
    def singular(self) -> str:
        return self.resource.kind.lower()

    @property
    def controller(self) -> str:
        """Controllers are called after the kind that they are about, so the code of the kind need not be loaded."""
        return f"{self.singular}-controller"

    @property
    def label(self) -> str:
        """As kubectl prints it in front of a name: `deployment.apps`, `cloneset.apps.kruise.io`, `pod`."""
        group = self.resource.group
        return f"{self.singular}.{group}" if group else self.singular

    def __str__(self) -> str:
        return self.resource.kind

    def named(self, name: str) -> str:
        return f"{self.label}/{name}"

    def settings_of(self, document: Json) -> list[Setting]:
        """Strategy and limits of an object, each with a title."""
        read: Callable[[Json], list[Setting]] | None = load(self.settings) if self.settings else None
        return read(document) if read is not None else []

    def unscalable_why(self, document: Json) -> str:
        """Why no pods follow the number of replicas that the object has; empty: they do."""
        why: str = load(self.unscalable)(document) if self.unscalable else ""
        return why

    def placement_of(self, annotations: Mapping[str, str], flags: str) -> str:
        """Which object of this kind says where a pod may run, in words; empty: none."""
        told: str = load(self.placement)(annotations, flags) if self.placement else ""
        return told

    def forecast_facts(self) -> ForecastFacts | None:
        facts: ForecastFacts | None = load(self.forecast) if self.forecast else None
        return facts

    def outlook_facts(self) -> OutlookFacts | None:
        facts: OutlookFacts | None = load(self.outlook) if self.outlook else None
        return facts

    def handover_facts(self) -> Handover | None:
        facts: Handover | None = load(self.handover) if self.handover else None
        return facts

    def spec_in_place_of(self, spec: Json) -> Json:
        """What does the same as an object of the kind that this one replaces."""
        made: Json = load(self.spec_from)(spec)
        return made


def resource(group: str, version: str, plural: str, kind: str, *, namespaced: bool = True) -> Resource[PartialObject]:
    """What a kind is called, without the struct of its objects."""
    return Resource(group, version, plural, kind, namespaced, PartialObject)


def load(reference: Reference) -> Any:
    module, _, name = reference.partition(":")
    return getattr(importlib.import_module(module), name)
