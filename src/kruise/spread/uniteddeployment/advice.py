"""What is worth a warning about a UnitedDeployment that is accepted. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kruise.api.apps.uniteddeployment import UnitedDeploymentSpec
from kruise.api.core import schema
from kruise.api.core.field_errors import go_quote
from kruise.api.core.unknown_fields import unknown_fields
from kruise.api.meta import LabelSelector
from kruise.machinery import codec
from kruise.machinery.documents import value_at
from kruise.machinery.selectors import Operator, SelectorError, from_label_selector
from kruise.spread.uniteddeployment.children import Json, kind_of
from kruise.spread.uniteddeployment.paths import SUBSETS
from kruise.spread.uniteddeployment.shape import ShapeError, patch_text, patched
from kruise.workloads.shared.validation import Candidate
from kruise.workloads.shared.wire import SELECTOR, TEMPLATE

_OF_OURS = {"template": schema.POD_TEMPLATE_SPEC, "volumeClaimTemplates": f"{schema.LIST}{schema.CLAIM}"}
_OPEN = {
    "cloneSetTemplate": _OF_OURS,
    "advancedStatefulSetTemplate": _OF_OURS,
    "deploymentTemplate": {"": "apps.DeploymentSpec"},
    "statefulSetTemplate": {"": "apps.StatefulSetSpec"},
}
"""What the definition leaves open of the spec of a subset's workload, by field: the empty one is the whole spec."""
_MOST = 10


def warnings_of(
    new: Candidate[UnitedDeploymentSpec], unchanged: Mapping[str, str], gates: Mapping[str, bool]
) -> Iterator[str]:
    template = new.template if isinstance(new.template, dict) else {}
    kind = kind_of(template)
    if kind is None:
        return
    inner = template[kind.member].get("spec")
    pods: Any = inner.get("template") if isinstance(inner, dict) else None
    where = TEMPLATE.child(kind.member, "spec")
    found: list[str] = []
    if isinstance(inner, dict):
        for name, wire_type in _OPEN[kind.member].items():
            value, place = (inner, where) if not name else (inner.get(name), where.child(name))
            found += unknown_fields(value, wire_type, place)
        yield from _unlabelled(new.reading, kind.member, inner)
    if not new.reading.topology.subsets:
        yield f"{SUBSETS}: there are none, so no pods are made: name one at least"
    for position, subset in enumerate(new.reading.topology.subsets):
        text = patch_text(subset.patch)
        if text:
            path = SUBSETS.at(position).child("patch")
            yield from _of_patch(path, text, pods if isinstance(pods, dict) else {})
            found += _unknown_in(path, text)
    yield from (f"unknown field {go_quote(place)}" for place in found[:_MOST])


def change_warnings(new: Candidate[UnitedDeploymentSpec], old: Mapping[str, Any]) -> Iterator[str]:
    try:
        changes = _asked(value_at(old, ("spec", "selector"), None)) != _asked(new.reading.selector)
    except SelectorError:
        return  # refused
    if changes:
        yield (
            f"{SELECTOR}: it changes: for each subset whose workload it does not match a new one is made; the old one "
            "runs on, uncounted, until somebody deletes it; kruise why names it"
        )


def _asked(
    selector: LabelSelector | Mapping[str, Any] | None,
) -> frozenset[tuple[str, Operator, frozenset[str]]] | None:
    """What a selector asks for, in whichever words and order. None: it matches nothing."""
    found = from_label_selector(selector)
    if found.selects_nothing:
        return None
    return frozenset(
        (one.key, Operator.IN if one.only_values else one.operator, frozenset(one.values)) for one in found.requirements
    )


def _unlabelled(spec: UnitedDeploymentSpec, member: str, inner: Json) -> Iterator[str]:
    """Only what is not refused at once (UD-28)."""
    if member != "cloneSetTemplate":
        return
    path = ("template", "metadata", "labels")
    labels = value_at(inner, path, {})
    if not isinstance(labels, dict) or spec.selector is None:
        return
    try:
        fits = from_label_selector(spec.selector).matches({str(key): str(value) for key, value in labels.items()})
    except SelectorError:
        return  # refused
    if not fits:
        where = TEMPLATE.child(member, "spec", *path)
        yield (
            f"{where}: spec.selector does not match them: no subset gets a workload, and workloads that are there "
            "are not looked after"
        )


def _of_patch(path: str, text: str, template: Json) -> Iterator[str]:
    try:
        patched(template, text)
    except ShapeError as error:
        yield f"{path}: {error}: the subset gets no workload"


def _unknown_in(path: str, text: str) -> list[str]:
    patch = codec.decode(text, object)
    if not isinstance(patch, dict):
        return []
    return [place for place in unknown_fields(patch, schema.POD_TEMPLATE_SPEC, path) if "$" not in place]
