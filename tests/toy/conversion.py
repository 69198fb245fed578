"""A Troupe from one version to the other: v1alpha1 says `members`, v1 says `replicas`."""

from __future__ import annotations

from typing import Any

from .api import GROUP

_COUNT = {"v1alpha1": "members", "v1": "replicas"}


def convert(troupe: dict[str, Any], version: str) -> dict[str, Any]:
    before = troupe["apiVersion"].rpartition("/")[2]
    spec = troupe.get("spec")
    if not isinstance(spec, dict):
        return {**troupe, "apiVersion": f"{GROUP}/{version}"}
    spec = dict(spec)
    if _COUNT[before] in spec:
        spec[_COUNT[version]] = spec.pop(_COUNT[before])
    return {**troupe, "apiVersion": f"{GROUP}/{version}", "spec": spec}
