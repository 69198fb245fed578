"""What the daemon sees and does on a node: the container runtimes, and the network as a node reaches it. Pure types.

`kruise.daemon.cri` speaks CRI v1 to a real runtime; the simulated nodes of the local cluster are the same to every part
of the daemon. Only the calls of DMN-16 are here: the daemon never creates, starts or removes a container.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Protocol

from kruise.machinery.codec import Struct, field

POD_NAME = "io.kubernetes.pod.name"
POD_NAMESPACE = "io.kubernetes.pod.namespace"
POD_UID = "io.kubernetes.pod.uid"
CONTAINER_NAME = "io.kubernetes.container.name"
"""Labels that the kubelet gives to containers."""
CONTAINER_HASH = "io.kubernetes.container.hash"
RESTART_COUNT = "io.kubernetes.container.restartCount"
PRE_STOP_HANDLER = "io.kubernetes.container.preStopHandler"
CONTAINER_PORTS = "io.kubernetes.container.ports"
TERMINATION_GRACE = "io.kubernetes.pod.terminationGracePeriod"
DELETION_GRACE = "io.kubernetes.pod.deletionGracePeriod"
"""Annotations likewise."""


class CallError(Exception):
    """A call that failed. `code` is gRPC's name of the status: `NotFound`, `Unavailable`, `DeadlineExceeded`, ..."""

    def __init__(self, code: str, text: str, *, is_answer: bool = False) -> None:
        """`is_answer`: the runtime says so itself. A registry that is not available is no runtime that is not."""
        super().__init__(f"rpc error: code = {code} desc = {text}")
        self.code = code
        self.text = text
        self.is_answer = is_answer

    @property
    def is_silence(self) -> bool:
        """Nobody answers: the runtime restarts, most likely."""
        return self.code == "Unavailable" and not self.is_answer


class ContainerState(enum.StrEnum):
    CREATED = "Created"
    RUNNING = "Running"
    EXITED = "Exited"
    UNKNOWN = "Unknown"


class Container(Struct):
    """A container as a list has it."""

    id: str
    name: str = ""
    attempt: int = 0
    state: ContainerState = ContainerState.UNKNOWN
    created_at: int = 0
    """Nanoseconds of the epoch, as all times of a runtime."""
    image: str = ""
    image_ref: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)

    @property
    def container_name(self) -> str:
        """The name in the pod's spec."""
        return self.labels.get(CONTAINER_NAME) or self.name

    @property
    def pod_uid(self) -> str:
        return self.labels.get(POD_UID, "")

    @property
    def restart_count(self) -> int:
        return _number(self.annotations.get(RESTART_COUNT, ""))

    @property
    def plain_hash(self) -> int:
        """What the kubelet computed when it made the container; 0: it does not say."""
        try:
            return int(self.annotations.get(CONTAINER_HASH, ""), 16)
        except ValueError:
            return 0


class ContainerStatus(Container):
    """A container as its status tells of it."""

    started_at: int = 0
    finished_at: int = 0
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    environment: dict[str, str] | None = None
    """Of its first process; None: the runtime does not tell, or was not asked."""


class Image(Struct):
    id: str
    repo_tags: tuple[str, ...] = ()
    repo_digests: tuple[str, ...] = ()
    size: int = 0


class ExecResult(Struct):
    exit_code: int = 0
    stdout: bytes = b""
    stderr: bytes = b""


class Auth(Struct):
    """How to log in at a registry. It must not be shown to anybody."""

    username: str = ""
    password: str = ""
    auth: str = ""
    server_address: str = ""
    identity_token: str = ""
    registry_token: str = ""


class SandboxConfig(Struct):
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


class Runtime(Protocol):
    """One container runtime of a node. Every method may raise CallError, and one that hangs holds up nobody else."""

    @property
    def name(self) -> str:
        """As it calls itself (`containerd`, `cri-o`, `docker`): the scheme of its container ids in pods."""

    async def list_containers(self, *, pod_uid: str = "", container_id: str = "") -> Sequence[Container]:
        """Those of a pod, or one."""

    async def container_status(self, container_id: str, *, verbose: bool = False) -> ContainerStatus:
        """`verbose`: with the environment, where the runtime tells it."""

    async def list_images(self) -> Sequence[Image]: ...

    async def pull_image(self, reference: str, *, sandbox: SandboxConfig, auth: Auth | None = None) -> str:
        """Pull, however long it takes; answers with the reference that the runtime gives the image."""

    async def stop_container(self, container_id: str, grace: int) -> None:
        """Ends when the container has ended."""

    async def exec_sync(self, container_id: str, command: Sequence[str], seconds: float = 0) -> ExecResult:
        """Run a command in a container and wait for its end. `seconds`: for so long at most; 0: for as long as it
        takes. CallError `DeadlineExceeded`: it took longer."""


class HttpAnswer(Struct):
    status: int
    body: bytes = b""


class Network(Protocol):
    """What a node can reach: probes and hooks of pods."""

    async def connect(self, host: str, port: int, seconds: float) -> None:
        """Open a TCP connection and close it. OSError or TimeoutError: it cannot be opened."""

    async def get(self, url: str, headers: Sequence[tuple[str, str]], seconds: float) -> HttpAnswer:
        """HTTP GET, without a look at certificates. OSError or TimeoutError: there is no answer."""


class Node(Protocol):
    """A node on which the daemon runs."""

    @property
    def name(self) -> str: ...

    @property
    def runtimes(self) -> Mapping[str, Runtime]:
        """By name; the first is the one that pulls and probes (DMN-14)."""

    @property
    def network(self) -> Network: ...


class Nodes(Protocol):
    """Where to find a node: a daemon has its own one, the local cluster's one serves all that are simulated."""

    def find(self, name: str) -> Node | None:
        """None: it is not here, or down."""


def split_id(container_id: str) -> tuple[str, str]:
    """The runtime's name and its own id of a container id in a pod's status. Raises ValueError."""
    runtime, separator, identity = container_id.partition("://")
    if not separator or not runtime or not identity:
        raise ValueError(f"{container_id!r} is not a container id such as containerd://3e1f...")
    return runtime, identity


def first_runtime(node: Node) -> Runtime:
    """The one that pulls images and runs probes. Raises CallError where there is none."""
    for runtime in node.runtimes.values():
        return runtime
    raise CallError("Unavailable", f"node {node.name} has no container runtime")


async def pod_containers(runtime: Runtime, uid: str) -> tuple[ContainerStatus, ...]:
    """The containers of a pod, the newest first (DMN-17)."""
    found = []
    for container in await runtime.list_containers(pod_uid=uid):
        try:
            found.append(await runtime.container_status(container.id))
        except CallError as error:
            if error.code != "NotFound":  # removed between the two calls
                raise
    return tuple(sorted(found, key=lambda item: item.created_at, reverse=True))


def newest(containers: Sequence[ContainerStatus], name: str) -> ContainerStatus | None:
    """The container of a name, in a list that has the newest first."""
    return next((item for item in containers if item.container_name == name), None)


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() else 0
