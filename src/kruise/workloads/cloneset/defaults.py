"""What a CloneSet gets where its author was silent (CS-30 to CS-33), in both versions. Pure.

Works on plain JSON of the right types (`wire` looks at those first), so that fields nobody here knows survive.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from kruise.api.apps.shared import IN_PLACE_POLICIES, RE_CREATE
from kruise.api.core import values
from kruise.api.core.defaults import default_claim, default_workload_template
from kruise.api.core.field_errors import Path, TemplateTypeError

Json = Mapping[str, Any]

TEMPLATE = Path("spec").child("template")
CLAIM_TEMPLATES = Path("spec").child("volumeClaimTemplates")


def defaulted(
    cloneset: Json,
    *,
    version: str,
    old: Json | None = None,
    template_defaults: bool = True,
    host_network_ports: bool = False,
) -> dict[str, Any]:
    """The CloneSet with its defaults. `old` is what it replaces; None for a new one.

    The last two are the gates TemplateNoDefaults (inverted) and DefaultHostNetworkHostPortsInPodTemplates. Raises
    TemplateTypeError where the template or a claim template cannot be read.
    """
    spec = dict(cloneset.get("spec") or {})
    _fill(spec, {"replicas": 1, "revisionHistoryLimit": 10, "scaleStrategy": {}})
    strategy = dict(spec.get("updateStrategy") or {})
    known = _strategy_of(old)
    spec["updateStrategy"] = _flat(strategy, known) if version == "v1alpha1" else _nested(strategy, known)
    if template_defaults:
        _default_templates(spec, (old or {}).get("spec"), host_network_ports=host_network_ports)
    return {**cloneset, "spec": spec}


def _strategy_of(cloneset: Json | None) -> Json:
    """The update strategy as it is stored; empty where it cannot be read."""
    spec = (cloneset or {}).get("spec")
    strategy = spec.get("updateStrategy") if isinstance(spec, dict) else None
    return strategy if isinstance(strategy, dict) else {}


def _flat(strategy: dict[str, Any], old: Json) -> dict[str, Any]:
    if not strategy.get("type"):
        strategy["type"] = RE_CREATE
    return _rollout(strategy, strategy["type"], old if old.get("type") == strategy["type"] else {})


def _nested(strategy: dict[str, Any], old: Json) -> dict[str, Any]:
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        rolling = dict(strategy.get("rollingUpdate") or {})
        if not rolling.get("podUpdatePolicy"):
            rolling["podUpdatePolicy"] = RE_CREATE
        policy, known = rolling["podUpdatePolicy"], old.get("rollingUpdate")
        same = isinstance(known, dict) and known.get("podUpdatePolicy") == policy
        strategy["rollingUpdate"] = _rollout(rolling, policy, known if same and known else {})
    return strategy


def _rollout(settings: dict[str, Any], policy: str, old: Json) -> dict[str, Any]:
    if policy in IN_PLACE_POLICIES:
        _fill(settings, {"inPlaceUpdateStrategy": {}})
    _spell_as_stored(settings, old, "inPlaceUpdateStrategy")
    _fill(settings, {"partition": 0, "maxUnavailable": "20%", "maxSurge": 0})
    return settings


def _spell_as_stored(settings: dict[str, Any], old: Json, name: str) -> None:
    """A part without content may be absent, empty or full of zeros. It stays as it is stored, so that a client with
    another habit does not raise the generation. `old` is empty where the policy is another."""
    if not old or any(_content(holder.get(name)) for holder in (settings, old)):
        return
    if name in old:
        settings[name] = old[name]
    else:
        settings.pop(name, None)


def _content(part: Any) -> bool:
    return any(part.values()) if isinstance(part, dict) else part is not None


def _fill(holder: dict[str, Any], wanted: Json) -> None:
    for name, default in wanted.items():
        if holder.get(name) is None:
            holder[name] = default


def _default_templates(spec: dict[str, Any], old: Json | None, *, host_network_ports: bool) -> None:
    """Templates that did not change in meaning stay to the letter as they are stored: a client that spells a quantity
    in another way, or leaves a rollback's `$patch` behind, must not raise the generation."""
    if old is not None and _mean_the_same(spec.get("template"), old.get("template")):
        spec["template"] = old.get("template")
        return
    template = default_workload_template(spec.get("template"), path=TEMPLATE, host_network_ports=host_network_ports)
    spec["template"] = template
    claims: Sequence[Any] | None = spec.get("volumeClaimTemplates")
    if claims:
        spec["volumeClaimTemplates"] = [_claim(position, claim) for position, claim in enumerate(claims)]


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
