"""PersistentPodState between `v1alpha1` and `v1beta1` (PPS-2): lists of labels have another name."""

from __future__ import annotations

from typing import Any

from kruise.api.apps.shared import GROUP
from kruise.api.versions import Json, TwoVersions, mapping, put

_OLD, _NEW = "nodeTopologyKeys", "keys"
_POLICY = "persistentPodStateRetentionPolicy"


def _renamed(term: Any, known: str, called: str) -> Any:
    if not isinstance(term, dict) or (known not in term and called in term):
        return term
    others = {name: value for name, value in term.items() if name not in (known, called)}
    return {**others, called: term.get(known) or []}


def _converted(obj: Json, known: str, called: str) -> Json:
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return obj
    preferred = spec.get("preferredPersistentTopology")
    if isinstance(preferred, list):
        preferred = [
            {**item, "preference": _renamed(item["preference"], known, called)}
            if isinstance(item, dict) and "preference" in item
            else item
            for item in preferred
        ]
    converted = put(
        spec,
        requiredPersistentTopology=_renamed(spec.get("requiredPersistentTopology"), known, called),
        preferredPersistentTopology=preferred or None,
    )
    if not mapping(converted).get(_POLICY, None):
        converted = put(converted, **{_POLICY: None})
    return {**obj, "spec": converted}


convert = TwoVersions(
    group=GROUP,
    kind="PersistentPodState",
    up=lambda obj: _converted(obj, _OLD, _NEW),
    down=lambda obj: _converted(obj, _NEW, _OLD),
)
