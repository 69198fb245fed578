"""What a node knows of the containers of a pod: the instances that ran, and why the next one does not start."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator

from kruise.local.nodes.commands import FOREVER, Program, Variables
from kruise.local.nodes.pods import Container, Pod
from kruise.local.nodes.probes import ProbeWorker

Requirements = dict[str, dict[str, str]]

CRASH_DELAY = 10.0
LONGEST_DELAY = 300.0


@dataclasses.dataclass(slots=True)
class Instance:
    """One container as the runtime has it: started once, and ended at most once. Times are seconds of the epoch."""

    id: str
    image: str
    """The name as the runtime reports it."""
    image_id: str
    asked: str
    """The image of the definition that it was made from: the kubelet compares definitions, not what is behind them."""
    attempt: int
    started_at: float
    finished_at: float | None = None
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    ends_at: float = FOREVER
    """When it ends by itself, with `ends_with`."""
    ends_with: int = 0
    program: Program = dataclasses.field(default_factory=Program)
    environment: Variables = ()
    """As it was at the start: it never changes while a container runs."""
    resources: Requirements = dataclasses.field(default_factory=dict)
    """What the runtime has been told last."""
    answers_at: float = 0.0
    """From when on it answers its probes."""
    startup: ProbeWorker | None = None
    readiness: ProbeWorker | None = None
    liveness: ProbeWorker | None = None

    @property
    def running(self) -> bool:
        return self.finished_at is None

    @property
    def has_started(self) -> bool:
        return self.running and (self.startup is None or self.startup.result is True)

    def finish(self, now: float, code: int) -> None:
        self.finished_at = now
        self.exit_code = code
        self.reason = "Completed" if code == 0 else "Error"

    def workers(self) -> Iterator[ProbeWorker]:
        for worker in (self.startup, self.readiness, self.liveness):
            if worker is not None:
                yield worker


@dataclasses.dataclass(slots=True)
class Backoff:
    """A delay that doubles with each failure and is forgotten after twice the longest delay."""

    delay: float = 0.0
    at: float = 0.0

    def active_until(self, since: float) -> float:
        """The end of the delay for a failure at `since`; in the past where there is none."""
        if not self.delay or since - self.at > 2 * LONGEST_DELAY:
            return 0.0
        return since + self.delay

    def grow(self, since: float, now: float) -> None:
        if not self.delay or since - self.at > 2 * LONGEST_DELAY:
            self.delay = CRASH_DELAY
        else:
            self.delay = min(self.delay * 2, LONGEST_DELAY)
        self.at = now


@dataclasses.dataclass(frozen=True, slots=True)
class Trouble:
    """Why a container waits."""

    reason: str
    message: str


@dataclasses.dataclass(slots=True)
class Record:
    """All that is known under one container name."""

    current: Instance | None = None
    previous: Instance | None = None
    trouble: Trouble | None = None
    crash: Backoff = dataclasses.field(default_factory=Backoff)
    crash_key: str = ""
    pull: Backoff = dataclasses.field(default_factory=Backoff)
    pull_key: str = ""
    pull_error: str = ""
    allocated: Requirements | None = None
    """The resources that the node has granted; None before the pod was admitted."""

    @property
    def running(self) -> Instance | None:
        return self.current if self.current is not None and self.current.running else None

    @property
    def exited(self) -> Instance | None:
        """The last instance that has ended."""
        if self.current is not None and not self.current.running:
            return self.current
        return self.previous


def container_id(seed: int, pod: Pod, name: str, attempt: int) -> str:
    text = f"{seed}/{pod.metadata.uid}/{name}/{attempt}"
    return hashlib.sha256(text.encode()).hexdigest()


def fraction(seed: int, *words: object) -> float:
    """A number between 0 and 1 that is the same for the same words."""
    text = "/".join(str(word) for word in (seed, *words))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") / 2.0**64


def should_restart(pod: Pod, container: Container, record: Record) -> bool:
    """Whether a container that does not run has to be started. One that never ran always has to be."""
    instance = record.current
    if instance is None:
        return True
    if instance.running or pod.metadata.deletion_timestamp is not None:
        return False
    if container.is_sidecar or pod.spec.restart_policy == "Always":
        return True
    return pod.spec.restart_policy != "Never" and instance.exit_code != 0
