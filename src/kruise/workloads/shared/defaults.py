"""What templates of pods and claims get where their author was silent, in every workload that has them. Pure.

Works on plain JSON, so that fields nobody here knows survive.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from kruise.api.core import values
from kruise.api.core.defaults import default_claim, default_workload_template
from kruise.api.core.field_errors import TemplateTypeError
from kruise.workloads.shared.wire import CLAIM_TEMPLATES, TEMPLATE

Json = Mapping[str, Any]
Gates = Mapping[str, bool]


def fill(holder: dict[str, Any], wanted: Json) -> None:
    """For numbers and parts: 0 and an empty part are said."""
    for name, default in wanted.items():
        if holder.get(name) is None:
            holder[name] = default


def fill_empty(holder: dict[str, Any], wanted: Json) -> None:
    """For words: an empty one says nothing."""
    for name, default in wanted.items():
        if not holder.get(name):
            holder[name] = default


def spec_of(body: Json | None) -> Json:
    """The spec as it is stored; empty where it cannot be read."""
    spec = (body or {}).get("spec")
    return spec if isinstance(spec, dict) else {}


def default_templates(spec: dict[str, Any], old: Json | None, gates: Gates) -> None:
    """Fill in the template of the pods and those of their claims. `old` is the object that is replaced.

    Raises TemplateTypeError where a template cannot be read.
    """
    if gates.get("TemplateNoDefaults", False) or keep_same_template(spec, old):
        return
    ports = gates.get("DefaultHostNetworkHostPortsInPodTemplates", False)
    spec["template"] = default_workload_template(spec.get("template"), path=TEMPLATE, host_network_ports=ports)
    claims: Sequence[Any] | None = spec.get("volumeClaimTemplates")
    if claims:
        spec["volumeClaimTemplates"] = [_claim(position, claim) for position, claim in enumerate(claims)]


def keep_same_template(spec: dict[str, Any], old: Json | None) -> bool:
    """A template that did not change in meaning stays to the letter as it is stored: a client that spells a quantity in
    another way, or leaves a rollback's `$patch` behind, must not raise the generation."""
    if old is None or not _mean_the_same(spec.get("template"), spec_of(old).get("template")):
        return False
    spec["template"] = spec_of(old).get("template")
    return True


def _mean_the_same(new: Any, old: Any) -> bool:
    if new == old:
        return True
    readable = values.normalise_template(new, path=TEMPLATE)
    try:
        return values.equal_templates(readable, old)
    except TemplateTypeError:
        # Stored before anybody looked at it: whatever replaces it is another template.
        return False


def _claim(position: int, claim: Any) -> values.Value:
    try:
        return default_claim(claim, volume_mode=False)
    except TemplateTypeError as error:
        inner = error.error
        where = CLAIM_TEMPLATES.at(position)
        raise TemplateTypeError(
            dataclasses.replace(inner, path=where.child(inner.path) if inner.path else where)
        ) from None
