"""Admission of PodProbeMarkers (PPM-2, PPM-10 to PPM-16)."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from kruise.admission.decisions import Allow, Deny, HandlerView, gate_is_off
from kruise.admission.registry import Handler, ValidatingHandler
from kruise.admission.review import AdmissionRequest
from kruise.api.apps.probes import MARKED_STATES, SEPARATOR, PodContainerProbe, PodProbeMarker, Probe
from kruise.api.core import formats, values
from kruise.api.core.field_errors import (
    FieldError,
    Path,
    TemplateTypeError,
    forbidden,
    invalid,
    not_supported,
    required,
    wrong_type,
)
from kruise.api.core.validation import common
from kruise.api.core.validation.probes import port_number_or_name
from kruise.feature import Settings
from kruise.machinery import codec
from kruise.machinery.client.errors import StatusCause

PATH = "/validate-apps-kruise-io-podprobemarker"
GATES = ("PodProbeMarkerGate", "KruiseDaemon")
RESERVED = ("PodScheduled", "Initialized", "Ready", "ContainersReady", "KruisePodReady", "InPlaceUpdateReady")
"""Not to be had as the name of a probe (PPM-12)."""
KUBELETS = ("PodScheduled", "Initialized", "Ready", "ContainersReady")
"""Conditions that somebody else writes."""
_PROBES = Path("spec.probes")
_PROBE = Path("spec.probe")
_MARKERS = Path("spec.markerPolicy")
_SELECTOR = Path("spec.selector")
_NUMBERS = ("initial_delay_seconds", "timeout_seconds", "period_seconds", "success_threshold", "failure_threshold")
_NO_HANDLER = "must specify a handler type"
_TOO_MANY = "may not specify more than 1 handler type"
_HOST = "host field in probes is not allowed"

Errors = Iterator[FieldError]
Json = Mapping[str, Any]


def webhooks(settings: Settings) -> tuple[Handler, ...]:
    off = [gate for gate in GATES if not settings.gates.get(gate, True)]
    # Without the daemon the markers' gate is off, whatever was asked for (PPM-1): the last one is what to turn on.
    judged = functools.partial(judge, gate_off=off[0], needed=off[-1]) if off else judge
    return (ValidatingHandler(PATH, judged),)


def judge(request: AdmissionRequest, view: HandlerView, *, gate_off: str = "", needed: str = "") -> Allow | Deny:
    if request.sub_resource or request.operation not in ("CREATE", "UPDATE"):
        return Allow()
    body = request.body()
    if gate_off:
        if (body.get("metadata") or {}).get("deletionTimestamp"):
            return Allow()  # who goes must be let go
        return gate_is_off(gate_off, needed=needed)
    old = request.old_body() if request.has_old_object else None
    found = tuple(problems(body, old))
    if found:
        # The refusal says only that a handler is missing; what one can have instead is told beside it.
        return dataclasses.replace(_refused(found), warnings=tuple(_unsupported(body)))
    return Allow(warnings=(*_warnings(body), *_unsupported(body)))


def problems(body: Json, old: Json | None = None) -> Errors:
    spec, known = _spec(body), _spec(old) if old is not None else None
    try:
        marker = codec.convert({"spec": spec}, PodProbeMarker)
    except codec.DecodeError as error:
        yield wrong_type(Path("spec"), spec, str(error))
        return
    if known is not None and spec.get("selector") != known.get("selector"):
        yield invalid(Path("selector"), spec.get("selector"), "selector must be immutable")
    if known is None:
        yield from _selector(spec.get("selector"))
    if known is None or spec.get("probes") != known.get("probes"):
        yield from _probes(marker.spec.probes)


def _selector(given: Any) -> Errors:
    try:
        selector = values.normalise(given, "meta.LabelSelector", path=_SELECTOR)
    except TemplateTypeError as error:
        yield error.error
        return
    if not selector:
        yield invalid(_SELECTOR, given, "empty selector is not valid for podProbeMarker.")
    yield from common.label_selector(_SELECTOR, selector)


def _probes(probes: tuple[PodContainerProbe, ...]) -> Errors:
    if not probes:
        yield invalid(_PROBES, [], "empty probes is not valid for PodProbeMarker.")
    names: set[str] = set()
    conditions: set[str] = set()
    for probe in probes:
        wrong = _name(probe, names)
        if wrong is not None:
            yield wrong
            return
        names.add(probe.name)
        yield from _handler(probe.probe)
        for number in _NUMBERS:
            yield from common.non_negative(_PROBE.child(_camel(number)), getattr(probe.probe, number))
        yield from _outcome(probe, conditions)


def _name(probe: PodContainerProbe, names: set[str]) -> FieldError | None:
    """PPM-12: the first hit ends the check."""
    name = probe.name
    if SEPARATOR in name:
        return invalid(_PROBES, name, "probe name can't contains '#'.")
    if not name or not probe.container_name:
        return invalid(_PROBES, name, "probe name and containerName can't be empty in podProbeMarker.")
    if name in RESERVED:
        return invalid(_PROBES, name, f"probe name can't be {name}")
    if name in names:
        return invalid(_PROBES, name, "probe name must be unique in PodProbeMarker.")
    return None


def _handler(probe: Probe) -> Errors:
    """PPM-13. gRPC is in the schema, and nobody can run it."""
    given = [name for name in ("exec", "http_get", "tcp_socket") if getattr(probe, name) is not None]
    if not given:
        yield required(_PROBE, _NO_HANDLER)
    for name in given[1:]:
        yield forbidden(_PROBE.child(_camel(name)), _TOO_MANY)
    first = given[0] if given else ""
    if first == "exec" and probe.exec is not None and not probe.exec.command:
        yield required(_PROBE.child("exec", "command"))
    if first == "http_get":
        yield from _http(probe)
    if first == "tcp_socket" and probe.tcp_socket is not None:
        path = _PROBE.child("tcpSocket")
        yield from port_number_or_name(path.child("port"), probe.tcp_socket.port)
        if probe.tcp_socket.host:
            yield invalid(path.child("host"), probe.tcp_socket.host, _HOST)


def _http(probe: Probe) -> Errors:
    action, path = probe.http_get, _PROBE.child("httpGet")
    if action is None:
        return
    if not action.path:
        yield required(path.child("path"))
    elif urlsplit(action.path).scheme or any(char.isspace() for char in action.path):
        yield invalid(path.child("path"), action.path, "must be the path of a URL, such as /healthz")
    yield from port_number_or_name(path.child("port"), action.port)
    if action.scheme not in ("HTTP", "HTTPS"):
        yield not_supported(path.child("scheme"), action.scheme, ("HTTP", "HTTPS"))
    for header in action.http_headers:
        yield from common.complaints(path.child("httpHeaders"), header.name, formats.http_header(header.name))
    if action.host:
        yield invalid(path.child("host"), action.host, _HOST)


def _outcome(probe: PodContainerProbe, conditions: set[str]) -> Errors:
    """PPM-15, PPM-16."""
    kind = probe.pod_condition_type
    if not kind and not probe.marker_policy:
        yield invalid(_PROBES, probe.name, "podConditionType and markerPolicy cannot be empty at the same time")
    if kind and kind in conditions:
        yield invalid(_PROBES, kind, f"podConditionType {kind} must be unique in podProbeMarker")
    if kind:
        conditions.add(kind)
        yield from common.complaints(_PROBES.child("podConditionType"), kind, formats.qualified_name(kind))
    states: set[str] = set()
    for policy in probe.marker_policy:
        if policy.state not in MARKED_STATES:
            yield required(_MARKERS.child("state"), "marker policy state must be 'Succeeded' or 'Failed'")
        elif policy.state in states:
            yield invalid(_MARKERS, policy.state, "marker policy state must be unique.")
        states.add(policy.state)
        if not policy.labels and not policy.annotations:
            yield required(_MARKERS, "marker policy annotations or labels can't be both empty")
        yield from common.label_set(_MARKERS.child("labels"), policy.labels)
        yield from common.annotation_set(_MARKERS.child("annotations"), policy.annotations)


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def _spec(body: Json) -> Json:
    spec = body.get("spec")
    return spec if isinstance(spec, Mapping) else {}


def _warnings(body: Json) -> Iterator[str]:
    """What is accepted and does not work as somebody may think."""
    probes = _spec(body).get("probes") or ()
    for position, probe in enumerate(probes):
        kind = probe.get("podConditionType")
        if kind in KUBELETS:
            place = f"spec.probes[{position}].podConditionType"
            yield f"{place}: the kubelet writes the condition {kind}, too: choose a name of your own"


def _unsupported(body: Json) -> Iterator[str]:
    """PPM-13."""
    probes = _spec(body).get("probes")
    for position, probe in enumerate(probes if isinstance(probes, list) else ()):
        handlers = probe.get("probe") if isinstance(probe, dict) else None
        if isinstance(handlers, dict) and handlers.get("grpc") is not None:
            yield f"spec.probes[{position}].probe.grpc is not supported: use exec, httpGet or tcpSocket"


def _refused(found: tuple[FieldError, ...]) -> Deny:
    texts = list(dict.fromkeys(str(error) for error in found))
    message = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    causes = tuple(StatusCause(reason=error.type, message=error.message, field=str(error.path)) for error in found)
    return Deny(message=message, code=400, reason="BadRequest", causes=causes)
