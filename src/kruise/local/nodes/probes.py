"""Startup, readiness and liveness of a container, probed as its settings say.

Nothing is asked: whether a container answers follows from its start, the pod's annotations, and the command of an exec
probe. A worker sleeps while nothing can change, so that a thousand healthy pods cost nothing.
"""

from __future__ import annotations

import dataclasses
import json

from kruise.local.nodes.commands import FOREVER, hook_ending, hook_output
from kruise.local.nodes.knobs import Knobs
from kruise.local.nodes.pods import Container, Probe

STARTUP = "Startup"
READINESS = "Readiness"
LIVENESS = "Liveness"


@dataclasses.dataclass(frozen=True, slots=True)
class Health:
    """What a probe finds, and until when it goes on finding it."""

    well: bool
    says: str = ""
    until: float = FOREVER


@dataclasses.dataclass(slots=True)
class ProbeWorker:
    kind: str
    probe: Probe
    next_at: float
    result: bool | None = None
    """None until a threshold was reached for the first time."""
    run: int = 0
    last: bool | None = None
    on_hold: bool = False

    def tick(self, health: Health, now: float) -> bool:
        """One probe. Returns whether the result changed."""
        self.run = self.run + 1 if self.last is health.well else 1
        self.last = health.well
        period = max(1, self.probe.period_seconds)
        self.next_at += period * max(1, int((now - self.next_at) // period) + 1)
        threshold = self.probe.success_threshold if health.well else self.probe.failure_threshold
        before = self.result
        if self.run >= max(1, threshold):
            self.result = health.well
            if self.kind == STARTUP or (self.kind == LIVENESS and not health.well):
                # Nothing more to find out about this instance.
                self.on_hold = True
                self.next_at = FOREVER
            elif health.well:
                # Settled: the next probe that can find something else.
                self.next_at = max(self.next_at, health.until)
        return self.result is not before

    def wake(self, now: float) -> None:
        """Something has changed that may change the answer."""
        if not self.on_hold and self.next_at > now:
            self.next_at = min(self.next_at, now + max(1, self.probe.period_seconds))


def first_tick(probe: Probe, began: float, started: float, *, at_once: bool) -> float:
    """Probes come in the rhythm that began with the pod; the first readiness probe is triggered by the start."""
    earliest = started + probe.initial_delay_seconds
    if at_once and not probe.initial_delay_seconds:
        return earliest
    period = max(1, probe.period_seconds)
    rounds = max(0, -int((began - earliest) // period))
    return max(earliest, began + rounds * period)


def health(
    kind: str,
    container: Container,
    probe: Probe,
    knobs: Knobs,
    started: float,
    answers_at: float,
    address: str,
    now: float,
) -> Health:
    if now < answers_at:
        return Health(False, _refused(container, probe, address), answers_at)
    if kind == READINESS and knobs.flag("never-ready", container.name):
        return Health(False, _unwell(probe))
    sick = knobs.seconds("unhealthy-after", container.name)
    if sick is not None and kind != STARTUP:
        if now >= started + sick:
            return Health(False, _unwell(probe))
        return Health(True, until=started + sick)
    if probe.exec is not None:
        seconds, code = hook_ending(probe.exec)
        if seconds > probe.timeout_seconds:
            command = json.dumps(" ".join(probe.exec.command), ensure_ascii=False)
            return Health(False, f"command timed out: {command} timed out after {probe.timeout_seconds}s")
        if code != 0:
            return Health(False, hook_output(probe.exec))
    return Health(True)


def _unwell(probe: Probe) -> str:
    if probe.http_get is not None:
        return "HTTP probe failed with statuscode: 503"
    if probe.grpc is not None:
        return 'service unhealthy (responded with "NOT_SERVING")'
    return "the container was told to be unhealthy"


def _refused(container: Container, probe: Probe, address: str) -> str:
    if probe.http_get is not None:
        action = probe.http_get
        host = f"{action.host or address}:{_port(container, action.port)}"
        path = action.path if action.path.startswith("/") else f"/{action.path}"
        return f'Get "{action.scheme.lower()}://{host}{path}": dial tcp {host}: connect: connection refused'
    if probe.tcp_socket is not None:
        return f"dial tcp {address}:{_port(container, probe.tcp_socket.port)}: connect: connection refused"
    if probe.grpc is not None:
        return f'timeout: failed to connect service "{address}:{probe.grpc.port}" within 1s: context deadline exceeded'
    return "the container is not up yet"


def _port(container: Container, port: int | str) -> int | str:
    if isinstance(port, int):
        return port
    return next((item.container_port for item in container.ports if item.name == port), port)
