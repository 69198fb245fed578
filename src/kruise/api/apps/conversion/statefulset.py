"""Advanced StatefulSet between `v1alpha1` and `v1beta1` (ST-6).

Whatever both have is the same in both. `v1alpha1` lacks some members of the spec; `kruise.api.versions` keeps them.
"""

from __future__ import annotations

from kruise.api.apps import statefulset, statefulset_v1alpha1
from kruise.api.apps.shared import GROUP
from kruise.api.versions import Json, TwoVersions
from kruise.machinery.codec import struct_fields


def _members(spec: type) -> set[str]:
    return {wire_name for _, wire_name, _ in struct_fields(spec)}


ONLY_NEWER = frozenset(_members(statefulset.StatefulSetSpec) - _members(statefulset_v1alpha1.StatefulSetSpec))
"""Members of the spec that v1alpha1 does not have."""


def _to_beta(obj: Json) -> Json:
    return obj


def _to_alpha(obj: Json) -> Json:
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return obj
    return {**obj, "spec": {name: value for name, value in spec.items() if name not in ONLY_NEWER}}


convert = TwoVersions(group=GROUP, kind="StatefulSet", up=_to_beta, down=_to_alpha)
