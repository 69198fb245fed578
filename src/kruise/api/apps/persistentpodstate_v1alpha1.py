"""PersistentPodState in `v1alpha1`: the lists of labels have another name."""

from __future__ import annotations

from typing import Annotated

from kruise.api.apps.persistentpodstate import PersistentPodStateStatus, PodStateBase
from kruise.api.meta import ObjectMeta
from kruise.api.schema import About, Int32
from kruise.machinery.codec import Struct


class NodeTopologyTerm(Struct):
    """Labels of nodes."""

    node_topology_keys: Annotated[tuple[str, ...], About("Names of the labels.", required=True)] = ()


class PreferredTopologyTerm(Struct):
    """Labels of nodes, and how much they count."""

    weight: Annotated[
        Int32,
        About(
            "How much a node counts that has the values again. From 1 to 100: pods with another weight are refused.",
            required=True,
        ),
    ] = 0
    preference: Annotated[NodeTopologyTerm, About("The labels.", required=True)] = NodeTopologyTerm()


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
            "down. WhenDeleted: only with the workload. WhenScaled if absent."
        ),
    ] = ""


class PersistentPodState(Struct):
    """A PersistentPodState remembers the nodes of a StatefulSet's pods, and brings pods that are made again back."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[PersistentPodStateSpec, About("What is wanted.")] = PersistentPodStateSpec()
    status: Annotated[PersistentPodStateStatus, About("What is remembered. Written by the controller.")] = (
        PersistentPodStateStatus()
    )
