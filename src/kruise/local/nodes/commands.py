"""What a container does: for how long it runs, how it ends, and what it prints.

Nothing is executed. A command line that we understand is worked out by `shell`; everything else is a service that
runs until it is stopped. Working it out again gives the same, so logs need not be kept: they are made when read.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import re

from kruise.local.nodes import images
from kruise.local.nodes.pods import Container, ExecAction, Handler, Pod
from kruise.local.nodes.shell import EndlessError, Run, execute

FOREVER = float("inf")
SHORTEST = 0.05
"""Even a command that does nothing takes as long as this."""
SHELL_IMAGES = frozenset({"busybox", "alpine", "debian", "ubuntu"})
"""Their own command is a shell, which ends at once where nobody types."""
FAR = 10 * 365 * 86400.0
DEAF = frozenset({"ash", "bash", "cat", "dash", "sh", "sleep", "tail"})
"""Programs without a handler for SIGTERM. The kernel does not end process 1 of a container by a signal it ignores."""

_TRAPPED = re.compile(r"""trap\s+['"]?exit\s+(\d{1,3})['"]?\s+(?:[A-Z0-9]+\s+)*?(?:SIG)?TERM\b""")

Variables = tuple[tuple[str, str], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Program:
    """A command line with its variables. Empty: the image's own command, of which nothing is known."""

    argv: tuple[str, ...] = ()
    variables: Variables = ()

    def ending(self) -> tuple[float, int]:
        """Seconds from the start and the exit code; for ever and 0 for a service."""
        return _ending(self.argv, self.variables)

    @property
    def is_deaf(self) -> bool:
        """Whether it runs on when it is asked to stop; a script that mentions `trap` is taken to heed the signal."""
        if not self.argv or self.argv[0].rpartition("/")[2] not in DEAF:
            return False
        return not any("trap " in word for word in self.argv)

    @property
    def stops_with(self) -> int:
        """Its exit code when it heeds the signal: 0, or that of `trap 'exit 3' TERM`."""
        given = [int(code) for word in self.argv for code in _TRAPPED.findall(word)]
        return given[-1] if given else 0

    def output(self, seconds: float) -> list[tuple[float, str]]:
        """The lines of the first so many seconds, with the moment of each."""
        if not self.argv:
            return []
        run = Run(until=seconds)
        with contextlib.suppress(EndlessError):  # what it printed until now is in the run
            execute(self.argv, dict(self.variables), run)
        return [line for line in run.lines if line[0] <= seconds]


@functools.lru_cache(maxsize=2048)
def _ending(argv: tuple[str, ...], variables: Variables) -> tuple[float, int]:
    if not argv:
        return FOREVER, 0
    run = Run(until=FAR)
    try:
        code = execute(argv, dict(variables), run)
    except EndlessError:
        return FOREVER, 0
    return max(SHORTEST, run.seconds), code


def program(pod: Pod, container: Container) -> Program:
    argv = (*container.command, *container.args)
    base = images.repository(images.full_name(container.image)).rpartition("/")[2]
    if not container.command:
        if base == "hello-world":
            argv = ("echo", "Hello from Docker!")
        elif base not in SHELL_IMAGES:
            return Program()
        elif not argv and not container.stdin:
            argv = ("true",)
    if not argv:
        return Program()
    return Program(argv, variables(pod, container))


def hook_ending(action: ExecAction) -> tuple[float, int]:
    """Seconds and exit code of a hook's or a probe's command: what is not known ends at once, and well."""
    seconds, code, _ = _hook(action.command)
    return seconds, code


def hook_output(action: ExecAction) -> str:
    """All that a hook's or a probe's command prints."""
    return _hook(action.command)[2]


@functools.lru_cache(maxsize=1024)
def _hook(argv: tuple[str, ...]) -> tuple[float, int, str]:
    run = Run(until=FAR)
    try:
        code = execute(argv, {}, run, unknown_ends=True) if argv else 0
    except EndlessError:
        return FOREVER, 0, ""
    return run.seconds, code, "".join(f"{text}\n" for _, text in run.lines)


def handler_ending(handler: Handler | None) -> tuple[float, int]:
    if handler is None:
        return 0.0, 0
    if handler.sleep is not None:
        return float(handler.sleep.seconds), 0
    if handler.exec is not None:
        return hook_ending(handler.exec)
    return 0.0, 0


def variables(pod: Pod, container: Container) -> Variables:
    """The environment of a container that is started now."""
    found = {"HOSTNAME": pod.metadata.name, "HOME": "/root", "PWD": "/"}
    for item in container.env:
        if item.value_from is None:
            found[item.name] = item.value
        elif item.value_from.field_ref is not None:
            found[item.name] = _field(pod, item.value_from.field_ref.field_path)
    return tuple(sorted(found.items()))


def _field(pod: Pod, path: str) -> str:
    known = {
        "metadata.name": pod.metadata.name,
        "metadata.namespace": pod.metadata.namespace,
        "metadata.uid": pod.metadata.uid,
        "spec.nodeName": pod.spec.node_name,
        "spec.serviceAccountName": pod.spec.service_account_name,
        "status.podIP": pod.status.pod_ip,
        "status.hostIP": pod.status.host_ip,
    }
    for kind, values in (("labels", pod.metadata.labels), ("annotations", pod.metadata.annotations)):
        start = f"metadata.{kind}['"
        if path.startswith(start):
            return values.get(path[len(start) : -2], "")
    return known.get(path, "")
