"""PodProbeMarker and NodePodProbe, which have one version (`v1alpha1`), and the probe that both hold."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from kruise.api.apps.shared import GROUP
from kruise.api.meta import LabelSelector, ObjectMeta
from kruise.api.resource import Resource
from kruise.api.schema import About, Int32, Int64
from kruise.machinery.codec import Struct, field

FINALIZER = "kruise.io/node-pod-probe-cleanup"
"""Of every PodProbeMarker that the controller has seen (PPM-23)."""
SEPARATOR = "#"
"""Between the names of marker and probe in a NodePodProbe."""
SUCCEEDED, FAILED, UNKNOWN = "Succeeded", "Failed", "Unknown"
MARKED_STATES = (SUCCEEDED, FAILED)
PROBES_ANNOTATION = "kruise.io/podprobe"
MARKERS_ANNOTATION = "kruise.io/podprobemarker-list"
ENHANCED_LIVENESS = "apps.kruise.io/using-enhanced-liveness"
"""On pods: the node daemon is to run their liveness probes (ELP-1)."""
LIVENESS_GATE = "EnhancedLivenessProbe"
LIVENESS_PROBES = "apps.kruise.io/container-probe-context"
"""Where these probes stand then (ELP-2)."""
VIRTUAL_LABEL = ("type", "virtual-kubelet")
"""Nodes with it have no daemon: whoever provides them runs the probes."""

Port = int | str


class ExecAction(Struct):
    """A command that is run in the container."""

    command: Annotated[
        tuple[str, ...],
        About("The command and its arguments. It is not run by a shell. Exit code 0 is a success.", is_atomic=True),
    ] = ()


class HttpHeader(Struct):
    """A header of a request."""

    name: Annotated[str, About("The name of the header.", required=True)] = ""
    value: Annotated[str, About("Its value.", required=True)] = ""


class HttpGetAction(Struct):
    """A request to the pod's address."""

    path: Annotated[str, About("The path to ask for.")] = ""
    port: Annotated[Port, About("The port: a number, or the name of one of the container.", required=True)] = 0
    host: Annotated[str, About("Must be empty: the pod's address is asked.")] = ""
    scheme: Annotated[str, About("HTTP or HTTPS. Certificates are not looked at.")] = ""
    http_headers: Annotated[tuple[HttpHeader, ...], About("Headers of the request.", is_atomic=True)] = ()


class TcpSocketAction(Struct):
    """A connection to the pod's address."""

    port: Annotated[Port, About("The port: a number, or the name of one of the container.", required=True)] = 0
    host: Annotated[str, About("Must be empty: the pod's address is asked.")] = ""


class GrpcAction(Struct):
    """A call of a health service. Not supported."""

    port: Annotated[Int32, About("The port.", required=True)] = 0
    service: Annotated[str, About("The service to ask about.", default="")] = ""


class Probe(Struct):
    """What is asked, how often, and how many answers count."""

    exec: Annotated[ExecAction | None, About("Run a command in the container.")] = None
    http_get: Annotated[HttpGetAction | None, About("Ask by HTTP.")] = None
    tcp_socket: Annotated[TcpSocketAction | None, About("Open a TCP connection.")] = None
    grpc: Annotated[GrpcAction | None, About("Not supported.")] = None
    initial_delay_seconds: Annotated[
        Int32, About("Seconds after the start of the container before the first probe. 1 if absent.")
    ] = 0
    timeout_seconds: Annotated[Int32, About("Seconds that one probe may take. 1 if absent.")] = 0
    period_seconds: Annotated[Int32, About("Seconds from one probe to the next. 1 if absent.")] = 0
    success_threshold: Annotated[
        Int32, About("How many successes in a row make the result Succeeded. 1 if absent.")
    ] = 0
    failure_threshold: Annotated[Int32, About("How many failures in a row make the result Failed. 1 if absent.")] = 0
    termination_grace_period_seconds: Annotated[Int64 | None, About("Without effect.")] = None


class ProbeMarkerPolicy(Struct):
    """What a pod is marked with as long as a probe has a result."""

    state: Annotated[str, About("The result: Succeeded or Failed.", required=True)] = ""
    labels: Annotated[dict[str, str], About("Labels for the pod.")] = field(default_factory=dict)
    annotations: Annotated[dict[str, str], About("Annotations for the pod.")] = field(default_factory=dict)


class PodContainerProbe(Struct):
    """A probe of one container, and what its result does to the pod."""

    name: Annotated[str, About("The name of the probe, unique in the marker, without #.", required=True)] = ""
    container_name: Annotated[str, About("The container that is probed.", required=True)] = ""
    probe: Annotated[Probe, About("What is asked, and how often.", required=True)] = Probe()
    marker_policy: Annotated[
        tuple[ProbeMarkerPolicy, ...], About("Labels and annotations of the pod by the result of the probe.")
    ] = ()
    pod_condition_type: Annotated[
        str, About("A condition of the pod that is True when the probe succeeds, and False otherwise.")
    ] = ""


class PodProbeMarkerSpec(Struct):
    """What is wanted."""

    selector: Annotated[
        LabelSelector | None,
        About("The pods of the namespace that are probed, by their labels. It cannot be changed.", required=True),
    ] = None
    probes: Annotated[tuple[PodContainerProbe, ...], About("The probes, at least one.", required=True)] = ()


class PodProbeMarkerStatus(Struct):
    """What was last seen."""

    observed_generation: Annotated[
        Int64, About("The generation of the spec that the nodes have been told.", required=True)
    ] = 0
    matched_pods: Annotated[Int64, About("Pods that are probed.")] = 0


class PodProbeMarker(Struct):
    """A PodProbeMarker probes containers of pods, and marks the pods by the results."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[PodProbeMarkerSpec, About("What is wanted.")] = PodProbeMarkerSpec()
    status: Annotated[PodProbeMarkerStatus, About("What was last seen. Written by the controller.")] = (
        PodProbeMarkerStatus()
    )


POD_PROBE_MARKERS = Resource(GROUP, "v1alpha1", "podprobemarkers", "PodProbeMarker", True, PodProbeMarker)


# What manager and daemon hand over to each other


class ContainerProbe(Struct):
    """A probe of one container."""

    name: Annotated[str, About("The names of marker and probe, with # between them.", required=True)] = ""
    container_name: Annotated[str, About("The container that is probed.", required=True)] = ""
    probe: Annotated[Probe, About("What is asked, and how often. Ports are numbers.", required=True)] = Probe()


class PodProbe(Struct):
    """A pod of the node, and its probes."""

    name: Annotated[str, About("The name of the pod.", required=True)] = ""
    namespace: Annotated[str, About("The namespace of the pod.", required=True)] = ""
    uid: Annotated[str, About("The uid of the pod.", required=True)] = ""
    ip: Annotated[str, About("The address of the pod; empty as long as it has none.", required=True)] = field(
        default="", name="IP"
    )
    probes: Annotated[tuple[ContainerProbe, ...], About("Its probes.")] = ()


class NodePodProbeSpec(Struct):
    """What is to be probed on the node."""

    pod_probes: Annotated[tuple[PodProbe, ...], About("The pods of the node that are probed.")] = ()


class ContainerProbeState(Struct):
    """The result of a probe."""

    name: Annotated[str, About("The names of marker and probe, with # between them.", required=True)] = ""
    state: Annotated[str, About("Succeeded, Failed, or Unknown as long as nothing counts.", required=True)] = ""
    last_probe_time: Annotated[datetime | None, About("When the result was recorded.")] = None
    last_transition_time: Annotated[datetime | None, About("When the state last changed.")] = None
    message: Annotated[str, About("What the probe said.")] = ""


class PodProbeStatus(Struct):
    """A pod of the node, and the results of its probes."""

    name: Annotated[str, About("The name of the pod.", required=True)] = ""
    namespace: Annotated[str, About("The namespace of the pod.", required=True)] = ""
    uid: Annotated[str, About("The uid of the pod.", required=True)] = ""
    probe_states: Annotated[tuple[ContainerProbeState, ...], About("The results.")] = ()


class NodePodProbeStatus(Struct):
    """What the daemon found."""

    pod_probe_statuses: Annotated[tuple[PodProbeStatus, ...], About("The pods of the node that were probed.")] = ()


class NodePodProbe(Struct):
    """A NodePodProbe tells the daemon of a node what to probe, and the manager what it found. It is called like the
    node, and nobody has to write one."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[NodePodProbeSpec, About("What is to be probed. Written by the manager.")] = NodePodProbeSpec()
    status: Annotated[NodePodProbeStatus, About("What was found. Written by the daemon.")] = NodePodProbeStatus()


NODE_POD_PROBES = Resource(GROUP, "v1alpha1", "nodepodprobes", "NodePodProbe", False, NodePodProbe)


def split_name(name: str) -> tuple[str, str]:
    """Marker and probe of a name in a NodePodProbe; no marker where there is no separator."""
    marker, separator, probe = name.partition(SEPARATOR)
    return (marker, probe) if separator else ("", name)
