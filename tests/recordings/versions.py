"""The manifests and patches of the recordings, which are `v1alpha1`, as somebody would write them in `v1beta1`."""

from __future__ import annotations

from tests.recordings.parsing import Json


def manifest_in_v1beta1(manifest: Json) -> Json:
    """A CloneSet; claims are reused unless it says otherwise, as is the rule in v1alpha1."""
    if manifest["kind"] != "CloneSet":
        return manifest
    spec = _spec_in_v1beta1({"scaleStrategy": {}, **manifest["spec"]})
    spec["scaleStrategy"].setdefault("enablePVCReuse", True)
    return {**manifest, "apiVersion": "apps.kruise.io/v1beta1", "spec": spec}


def patch_in_v1beta1(body: Json) -> Json:
    """A merge patch of a CloneSet."""
    return {**body, "spec": _spec_in_v1beta1(body["spec"])} if "spec" in body else body


def _spec_in_v1beta1(spec: Json) -> Json:
    changed = dict(spec)
    if "updateStrategy" in spec:
        rolling = dict(spec["updateStrategy"])
        if "type" in rolling:
            rolling["podUpdatePolicy"] = rolling.pop("type")
        changed["updateStrategy"] = {"rollingUpdate": rolling}
    if "scaleStrategy" in spec:
        scale = dict(spec["scaleStrategy"])
        if "disablePVCReuse" in scale:
            scale["enablePVCReuse"] = not scale.pop("disablePVCReuse")
        changed["scaleStrategy"] = scale
    return changed
