"""Probes, lifecycle hooks and the actions that both are made of."""

from __future__ import annotations

from kruise.api.core import formats
from kruise.api.core.field_errors import Path, forbidden, invalid, not_supported, required
from kruise.api.core.validation import common
from kruise.api.core.validation.common import Errors, Struct

_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_WINDOWS_SIGNALS = ("SIGKILL", "SIGTERM")
_PLAIN_SIGNALS = (
    "ABRT ALRM BUS CHLD CLD CONT FPE HUP ILL INT IO IOT KILL PIPE POLL PROF PWR QUIT RTMAX RTMIN SEGV STKFLT STOP SYS "
    "TERM TRAP TSTP TTIN TTOU URG USR1 USR2 VTALRM WINCH XCPU XFSZ"
)
_LINUX_SIGNALS = tuple(
    sorted(
        (
            *(f"SIG{name}" for name in _PLAIN_SIGNALS.split()),
            *(f"SIGRTMIN+{number}" for number in range(1, 16)),
            *(f"SIGRTMAX-{number}" for number in range(1, 15)),
        )
    )
)


def container_probes(path: Path, container: Struct, grace_period: int | None) -> Errors:
    """Lifecycle and the three probes, for containers that may have them."""
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(name)
        if probe is None:
            continue
        where = path.child(name)
        yield from _probe(where, probe, grace_period)
        if name == "readinessProbe":
            if probe.get("terminationGracePeriodSeconds") is not None:
                complaint = "must not be set for readinessProbes"
                seconds = probe["terminationGracePeriodSeconds"]
                yield invalid(where.child("terminationGracePeriodSeconds"), seconds, complaint)
        elif probe.get("successThreshold", 0) != 1:
            yield invalid(where.child("successThreshold"), probe.get("successThreshold", 0), "must be 1")


def _probe(path: Path, probe: Struct, grace_period: int | None) -> Errors:
    yield from _handler(path, probe, grace_period)
    for name in _NUMBERS:
        yield from common.non_negative(path.child(name), probe.get(name, 0))
    seconds = probe.get("terminationGracePeriodSeconds")
    if seconds is not None and seconds <= 0:
        yield invalid(path.child("terminationGracePeriodSeconds"), seconds, "must be greater than 0")


def lifecycle(path: Path, hooks: Struct | None, grace_period: int | None, os_name: str | None) -> Errors:
    if hooks is None:
        return
    for name in ("postStart", "preStop"):
        if hooks.get(name) is not None:
            yield from _handler(path.child(name), hooks[name], grace_period)
    signal = hooks.get("stopSignal")
    if signal is not None:
        yield from _stop_signal(path.child("stopSignal"), signal, os_name)


def _handler(path: Path, handler: Struct, grace_period: int | None) -> Errors:
    used = [name for name in _HANDLERS if handler.get(name) is not None]
    if not used:
        yield required(path, "must specify a handler type")
        return
    first, *others = used
    yield from _action(path.child(first), first, handler[first], grace_period)
    for name in others:
        yield forbidden(path.child(name), "may not specify more than 1 handler type")


def _action(path: Path, kind: str, action: Struct, grace_period: int | None) -> Errors:
    if kind == "exec":
        if not action.get("command"):
            yield required(path.child("command"))
    elif kind == "httpGet":
        yield from _http_get(path, action)
    elif kind in ("tcpSocket", "grpc"):
        yield from port_number_or_name(path.child("port"), action["port"])
    elif grace_period is not None and not 0 <= action["seconds"] <= grace_period:
        limit = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_period})"
        yield invalid(path, action["seconds"], limit)


def _http_get(path: Path, action: Struct) -> Errors:
    if not action.get("path"):
        yield required(path.child("path"))
    yield from port_number_or_name(path.child("port"), action["port"])
    scheme = action.get("scheme", "")
    if scheme not in ("HTTP", "HTTPS"):
        yield not_supported(path.child("scheme"), scheme, ("HTTP", "HTTPS"))
    for header in action.get("httpHeaders") or ():
        yield from common.complaints(path.child("httpHeaders"), header["name"], formats.http_header(header["name"]))


def port_number_or_name(path: Path, port: int | str) -> Errors:
    found = formats.port_name(port) if isinstance(port, str) else formats.port_number(port)
    yield from common.complaints(path, port, found)


def _stop_signal(path: Path, signal: str, os_name: str | None) -> Errors:
    if os_name is None:
        yield forbidden(path, "may not be set for containers with empty `spec.os.name`")
    elif os_name == "windows" and signal not in _WINDOWS_SIGNALS:
        yield not_supported(path, signal, _WINDOWS_SIGNALS)
    elif os_name == "linux" and signal not in _LINUX_SIGNALS:
        yield not_supported(path, signal, _LINUX_SIGNALS)
