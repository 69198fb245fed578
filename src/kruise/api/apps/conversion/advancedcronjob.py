"""AdvancedCronJob between `v1alpha1` and `v1beta1` (ACJ-2 to ACJ-4).

Only `v1beta1` has a template for ImageListPullJobs. In `v1alpha1` it is kept aside (`kruise.api.versions`).
"""

from __future__ import annotations

from kruise.api.apps.shared import GROUP
from kruise.api.versions import Json, TwoVersions, mapping, put

_ONLY_NEWER = "imageListPullJobTemplate"


def _same(obj: Json) -> Json:
    return obj


def _to_alpha(obj: Json) -> Json:
    spec = mapping(obj.get("spec"))
    template = spec.get("template")
    if not isinstance(template, dict) or _ONLY_NEWER not in template:
        return obj
    return {**obj, "spec": {**spec, "template": put(template, **{_ONLY_NEWER: None})}}


convert = TwoVersions(group=GROUP, kind="AdvancedCronJob", up=_same, down=_to_alpha)
