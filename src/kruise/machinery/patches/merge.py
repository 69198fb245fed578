"""JSON merge patches (RFC 7386): objects are merged, null removes, everything else replaces.

As on the API server, null members are also left out of the objects in a list that the patch brings in, except where
the list takes the place of an object.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kruise.machinery.patches.errors import PatchError, refuse_deep_nesting
from kruise.machinery.patches.values import same, without_nulls


@refuse_deep_nesting
def apply(document: Any, patch: Any) -> Any:
    """The document with the patch applied. Neither is changed; unchanged parts are shared with the result."""
    return _apply(document, patch)


def _apply(document: Any, patch: Any) -> Any:
    if not isinstance(document, dict):
        return without_nulls(patch)
    if not isinstance(patch, dict):
        return patch
    result = dict(document)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif name in result:
            result[name] = _apply(result[name], value)
        else:
            result[name] = without_nulls(value)
    return result


@refuse_deep_nesting
def diff(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any] | None:
    """The smallest merge patch from `before` to `after`, None where nothing differs.

    A merge patch cannot set null, so a null member of an object counts as absent, at any depth.
    """
    if not isinstance(before, dict) or not isinstance(after, dict):
        raise PatchError("a merge patch between documents needs two JSON objects")
    return _diff(before, after) or None


def _diff(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    patch: dict[str, Any] = {}
    for name, old in before.items():
        if old is not None and after.get(name) is None:
            patch[name] = None
    for name, new in after.items():
        if new is None:
            continue
        old = before.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            changes = _diff(old, new)
            if changes:
                patch[name] = changes
        elif not same(old, new):
            patch[name] = new
    return patch
