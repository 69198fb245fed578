"""Warnings about fields of a pod template that Kubernetes does not know, such as `imagePullPolcy`, and about what it
asks for and cannot have: of the order of start, and of liveness probes.

The definitions of kinds leave pod templates open, so no API server complains of them there, as it does for its own
kinds. Nothing is refused for it: a newer server may know more than this table. Only a template that a request changes
is looked at.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from kruise.admission import launch_order
from kruise.admission.decisions import HandlerView, Needs
from kruise.admission.registry import Handler
from kruise.admission.review import AdmissionRequest
from kruise.api.apps.probes import ENHANCED_LIVENESS, LIVENESS_GATE
from kruise.api.core import schema
from kruise.api.core.field_errors import go_quote
from kruise.api.core.unknown_fields import unknown_fields
from kruise.machinery.codec import DecodeError, Raw, decode
from kruise.machinery.documents import Path

H = TypeVar("H", bound=Handler)

Templates = Mapping[tuple[str, str], Path]
"""Where the objects of a kind have their pod template, by group and kind."""

_CLAIMS = ("spec", "volumeClaimTemplates")
_CLAIM_LIST = f"{schema.LIST}{schema.CLAIM}"
_MOST = 10
"""How many fields are named: an API server cuts long answers."""


def with_warnings(handler: H, templates: Templates) -> H:
    """The handler, with these warnings beside its own."""
    decide = handler.decide

    def noticing(request: AdmissionRequest, view: HandlerView) -> Any:
        said = decide(request, view)
        if isinstance(said, Needs):
            return said
        found = warnings_of(request, templates, view.gates)
        return dataclasses.replace(said, warnings=(*said.warnings, *found)) if found else said

    return dataclasses.replace(handler, decide=noticing)


def warnings_of(
    request: AdmissionRequest, templates: Templates, gates: Mapping[str, bool] | None = None
) -> tuple[str, ...]:
    """In the words of an API server. A gate that is not named counts as on."""
    template = templates.get((request.kind.group, request.kind.kind))
    if template is None or request.sub_resource or request.operation not in ("CREATE", "UPDATE"):
        return ()
    found: list[str] = []
    for path, wire_type in ((template, schema.POD_TEMPLATE_SPEC), (_CLAIMS, _CLAIM_LIST)):
        new = _part(request.object, path)
        if new and new != _part(request.old_object, path):
            found += unknown_fields(decode(new, object), wire_type, ".".join(path))
    texts = [f"unknown field {go_quote(place)}" for place in found[:_MOST]]
    texts += _order_of_start(request, template)
    texts += _liveness(request, template, gates or {})
    if len(found) > _MOST:
        texts.append(f"{len(found) - _MOST} more unknown fields in {'.'.join(template)}")
    return tuple(texts)


def _order_of_start(request: AdmissionRequest, template: Path) -> Iterator[str]:
    path = (*template, "metadata", "annotations", launch_order.ANNOTATION)
    given = _part(request.object, path)
    value = decode(given, object) if given else None
    if given != _part(request.old_object, path) and given and value != launch_order.ORDERED:
        where = f"{'.'.join(path[:-1])}[{launch_order.ANNOTATION}]"
        yield (
            f'{where}: "{value}" has no meaning, so all containers start at once: the only value is '
            f"{launch_order.ORDERED}"
        )
    if value != launch_order.ORDERED:
        yield from _priorities(request, (*template, "spec", "containers"))


def _liveness(request: AdmissionRequest, template: Path, gates: Mapping[str, bool]) -> Iterator[str]:
    """ELP-1: only one value counts, and only with its gate."""
    path = (*template, "metadata", "annotations", ENHANCED_LIVENESS)
    given = _part(request.object, path)
    if not given or given == _part(request.old_object, path):
        return
    where, value = f"{'.'.join(path[:-1])}[{ENHANCED_LIVENESS}]", decode(given, object)
    if value not in ("true", "false"):
        yield f'{where}: "{value}" has no meaning, so the kubelet runs the liveness probes: the only value is true'
    elif value == "true" and not gates.get(LIVENESS_GATE, True):
        yield f"{where}: the kubelet runs the liveness probes, since feature-gate {LIVENESS_GATE} is not enabled"


def _priorities(request: AdmissionRequest, path: Path) -> Iterator[str]:
    """With one container, what it asks for is not read."""
    given = _part(request.object, path)
    if not given or given == _part(request.old_object, path):
        return
    containers = decode(given, object)
    if not isinstance(containers, list) or len(containers) < 2:
        return
    for position, container in enumerate(containers):
        try:
            launch_order.asked_priority(container)
        except launch_order.PriorityError as error:
            yield f"{'.'.join(path)}[{position}].{error}: no pod can be made of this"


def _part(document: Raw, path: Path) -> bytes:
    """The bytes of a part: an API server writes both objects in the same way. Empty where there is none."""
    found = document
    try:
        for name in path:
            found = decode(found, dict[str, Raw]).get(name, Raw())
    except DecodeError:
        return b""  # whoever reads the object says what is wrong with it
    return bytes(found)
