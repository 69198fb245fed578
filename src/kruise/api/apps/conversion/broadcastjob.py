"""BroadcastJob between `v1alpha1` and `v1beta1`: nothing but the version changes (BJ-2, BJ-3)."""

from __future__ import annotations

from kruise.api.apps.shared import GROUP
from kruise.api.versions import Json, TwoVersions


def _same(obj: Json) -> Json:
    return obj


convert = TwoVersions(group=GROUP, kind="BroadcastJob", up=_same, down=_same)
