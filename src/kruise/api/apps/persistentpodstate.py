"""PersistentPodState, as it is stored (`v1beta1`)."""

from __future__ import annotations

from typing import Annotated, Literal

from kruise.api.apps.shared import GROUP
from kruise.api.meta import ObjectMeta
from kruise.api.resource import Resource
from kruise.api.schema import About, Int32, Int64
from kruise.machinery.codec import Struct, field

WHEN_SCALED, WHEN_DELETED = "WhenScaled", "WhenDeleted"


class TargetReference(Struct):
    """The workload whose pods are remembered."""

    api_version: Annotated[str, About("Group and version of the workload.", required=True)] = ""
    kind: Annotated[
        str, About("Kind of the workload: StatefulSet, or one of the ConfigMap kruise-configuration.", required=True)
    ] = ""
    name: Annotated[str, About("Name of the workload.", required=True)] = ""

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]


class NodeTopologyTerm(Struct):
    """Labels of nodes."""

    keys: Annotated[tuple[str, ...], About("Names of the labels.", required=True)] = ()


class PreferredTopologyTerm(Struct):
    """Labels of nodes, and how much they count."""

    weight: Annotated[
        Int32,
        About(
            "How much a node counts that has the values again. From 1 to 100: pods with another weight are refused.",
            required=True,
            minimum=0,
        ),
    ] = 0
    preference: Annotated[NodeTopologyTerm, About("The labels.", required=True)] = NodeTopologyTerm()


class PersistentPodAnnotation(Struct):
    """An annotation of pods that is remembered."""

    key: Annotated[str, About("Name of the annotation.", required=True)] = ""


class PodStateBase(Struct):
    """What is wanted, as far as both versions say it alike."""

    target_ref: Annotated[
        TargetReference, About("The workload whose pods are remembered. It cannot be changed later.", required=True)
    ] = TargetReference()
    persistent_pod_annotations: Annotated[
        tuple[PersistentPodAnnotation, ...],
        About("Annotations of pods that are remembered beside their nodes. They are not put back on pods."),
    ] = ()


class PersistentPodStateSpec(PodStateBase):
    """What is wanted."""

    required_persistent_topology: Annotated[
        NodeTopologyTerm | None,
        About("Labels whose values a pod that is made again must find on its node, through its nodeSelector."),
    ] = None
    preferred_persistent_topology: Annotated[
        tuple[PreferredTopologyTerm, ...],
        About("Labels whose values a pod that is made again prefers, through its node affinity."),
    ] = ()
    persistent_pod_state_retention_policy: Annotated[
        str,
        About(
            "When the state of a pod that is not wanted any more is forgotten. WhenScaled: when the workload is scaled "
            "down. WhenDeleted: only with the workload. WhenScaled if absent.",
            shape=Literal["WhenScaled", "WhenDeleted"],
        ),
    ] = ""


class PodState(Struct):
    """Where a pod was."""

    node_name: Annotated[str, About("The node that it was ready on last.")] = ""
    node_topology_labels: Annotated[dict[str, str], About("The node's labels, as far as they are remembered.")] = field(
        default_factory=dict
    )
    annotations: Annotated[dict[str, str], About("The pod's annotations, as far as they are remembered.")] = field(
        default_factory=dict
    )


class PersistentPodStateStatus(Struct):
    """What is remembered."""

    observed_generation: Annotated[
        Int64, About("The generation of the object that this status belongs to.", required=True)
    ] = 0
    pod_states: Annotated[dict[str, PodState], About("The states by the names of pods.")] = field(default_factory=dict)


class PersistentPodState(Struct):
    """A PersistentPodState remembers the nodes of a StatefulSet's pods, and brings pods that are made again back."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[PersistentPodStateSpec, About("What is wanted.")] = PersistentPodStateSpec()
    status: Annotated[PersistentPodStateStatus, About("What is remembered. Written by the controller.")] = (
        PersistentPodStateStatus()
    )


PERSISTENT_POD_STATES = Resource(
    GROUP, "v1beta1", "persistentpodstates", "PersistentPodState", True, PersistentPodState
)
