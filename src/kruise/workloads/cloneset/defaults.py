"""What a CloneSet gets where its author was silent (CS-30 to CS-33), in both versions. Pure.

Works on plain JSON of the right types (`wire` looks at those first), so that fields nobody here knows survive.
"""

from __future__ import annotations

from typing import Any

from kruise.api.apps.shared import IN_PLACE_POLICIES, ON_DELETE, RE_CREATE, ROLLING_UPDATE
from kruise.api.versions import OLDER, mapping
from kruise.workloads.shared.defaults import Gates, Json, default_templates, fill, spec_of


def defaulted(cloneset: Json, *, version: str, gates: Gates, old: Json | None = None) -> dict[str, Any]:
    """The CloneSet with its defaults. `old` is what it replaces; None for a new one.

    Raises TemplateTypeError where the template or a claim template cannot be read.
    """
    spec = dict(cloneset.get("spec") or {})
    fill(spec, {"replicas": 1, "revisionHistoryLimit": 10, "scaleStrategy": {}})
    strategy = dict(spec.get("updateStrategy") or {})
    known = mapping(spec_of(old).get("updateStrategy"))
    spec["updateStrategy"] = _flat(strategy, known) if version == OLDER else _nested(strategy, known)
    default_templates(spec, old, gates)
    return {**cloneset, "spec": spec}


def _flat(strategy: dict[str, Any], old: Json) -> dict[str, Any]:
    if not strategy.get("type"):
        strategy["type"] = RE_CREATE
    if strategy["type"] == ON_DELETE:
        return strategy  # no setting of a rollout is stored with it: what is added now, every later write would add
    return _rollout(strategy, strategy["type"], old if old.get("type") == strategy["type"] else {})


def _nested(strategy: dict[str, Any], old: Json) -> dict[str, Any]:
    if not strategy.get("type"):
        strategy["type"] = ROLLING_UPDATE
    if strategy["type"] == ROLLING_UPDATE:
        rolling = dict(strategy.get("rollingUpdate") or {})
        if not rolling.get("podUpdatePolicy"):
            rolling["podUpdatePolicy"] = RE_CREATE
        policy, known = rolling["podUpdatePolicy"], old.get("rollingUpdate")
        same = isinstance(known, dict) and known.get("podUpdatePolicy") == policy
        strategy["rollingUpdate"] = _rollout(rolling, policy, known if same and known else {})
    return strategy


def _rollout(settings: dict[str, Any], policy: str, old: Json) -> dict[str, Any]:
    if policy in IN_PLACE_POLICIES:
        fill(settings, {"inPlaceUpdateStrategy": {}})
    _spell_as_stored(settings, old, "inPlaceUpdateStrategy")
    fill(settings, {"partition": 0, "maxUnavailable": "20%", "maxSurge": 0})
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
