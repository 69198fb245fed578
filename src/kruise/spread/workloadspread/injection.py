"""What a pod gets from its subset (WS-24). Pods are plain documents here: what nobody knows of stays in them."""

from __future__ import annotations

from typing import Any

from kruise.api.apps.workloadspread import Subset
from kruise.api.core import schema, values
from kruise.api.core.field_errors import Path, TemplateTypeError
from kruise.machinery import codec
from kruise.machinery.codec import Raw
from kruise.machinery.patches import strategic
from kruise.machinery.patches.errors import PatchError
from kruise.spread.workloadspread.matched import MATCHED, Matched

Json = dict[str, Any]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class UnfitPatchError(ValueError):
    """The patch of a subset cannot be applied to a pod; the text says why."""


def injected(pod: Json, subset: Subset, mark: Matched) -> Json:
    """The pod with everything that the subset asks for. Raises UnfitPatchError."""
    spec = _object(pod.get("spec"))
    if subset.tolerations:
        spec["tolerations"] = [*_list(spec.get("tolerations")), *map(plain, subset.tolerations)]
    affinity = _object(spec.get("affinity"))
    affinity["nodeAffinity"] = _node_affinity(_object(affinity.get("nodeAffinity")), subset)
    spec["affinity"] = affinity
    changed = patched({**pod, "spec": spec}, subset.patch)
    metadata = _object(changed.get("metadata"))
    metadata["annotations"] = {**_object(metadata.get("annotations")), MATCHED: mark.text}
    return {**changed, "metadata": metadata}


def _node_affinity(affinity: Json, subset: Subset) -> Json:
    if subset.preferred_node_selector:
        preferred = [
            {"weight": term.weight, "preference": plain(term.preference)} for term in subset.preferred_node_selector
        ]
        affinity[_PREFERRED] = [*_list(affinity.get(_PREFERRED)), *preferred]
    if subset.required_node_selector is not None:
        term: Json = plain(subset.required_node_selector)
        required = _object(affinity.get(_REQUIRED))
        own = _list(required.get("nodeSelectorTerms"))
        terms = [_both(_object(existing), term) for existing in own] if own else [term]
        affinity[_REQUIRED] = {**required, "nodeSelectorTerms": terms}
    return affinity


def _both(existing: Json, added: Json) -> Json:
    """Terms of a list are alternatives: each must ask for the subset as well."""
    for part in ("matchExpressions", "matchFields"):
        if added.get(part):
            existing[part] = [*_list(existing.get(part)), *added[part]]
    return existing


def patched(pod: Json, patch: Raw) -> Json:
    """WS-24.5. Raises UnfitPatchError."""
    wanted = patch_of(patch)
    if not wanted:
        return pod
    try:
        changed: Json = strategic.apply(pod, wanted, schema.struct_merge_schema(schema.POD))
    except PatchError as error:
        raise UnfitPatchError(f"failed to merge patch: {error}") from error
    before, after = _object(pod.get("spec")), _object(changed.get("spec"))
    if before.get("priorityClassName") != after.get("priorityClassName") and "priority" in after:
        # The API server has filled in the number of the former class. It does so again.
        del after["priority"]
        changed = {**changed, "spec": after}
    return changed


def unfit(patch: Raw, where: Path) -> str:
    """Why the patch fits no pod at all, whatever is in that pod; "" where it may."""
    try:
        values.normalise(patch_of(patch), schema.POD, path=where)
    except UnfitPatchError as error:
        return f"{where}: {error}"
    except TemplateTypeError as error:
        return str(error.error)
    return ""


def patch_of(patch: Raw) -> Json:
    """The patch as an object; empty where there is none. Raises UnfitPatchError."""
    if bytes(patch) in (b"", b"null"):
        return {}
    try:
        found = codec.decode(patch, object)
    except codec.DecodeError as error:
        raise UnfitPatchError(f"failed to merge patch: {error}") from error
    if not isinstance(found, dict):
        raise UnfitPatchError("failed to merge patch: it must be an object with metadata or spec")
    return found


def plain(value: Any) -> Any:
    """A struct as JSON has it: patches merge lists, not tuples."""
    return codec.decode(codec.encode(value), object)


def _object(value: Any) -> Json:
    return dict(value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else []
