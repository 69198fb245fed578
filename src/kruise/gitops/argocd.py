"""Health of our kinds for Argo CD: a script for each, as its ConfigMap `argocd-cm` takes it.

A kind has its script in its folder, `health.lua`; what all of them need stands in front of it. A kind of somebody else
brings one the same way, or none: then Argo CD looks at nothing but that it is there.
"""

from __future__ import annotations

from importlib import resources
from typing import Any

from kruise import kinds
from kruise.faces.face import Face

SCRIPT = "health.lua"


def scripts() -> list[tuple[Face, str]]:
    """The kinds that have a script, and all of it, by group and kind."""
    common = resources.files(__package__).joinpath(SCRIPT).read_text(encoding="utf-8")
    found = []
    for face, package in kinds.packages():
        own = resources.files(package).joinpath(SCRIPT)
        if own.is_file():
            found.append((face, common + own.read_text(encoding="utf-8")))
    return sorted(found, key=lambda one: one[0].group_kind)


def key_of(face: Face) -> str:
    """Of the ConfigMap."""
    return "resource.customizations.health.{}_{}".format(*face.group_kind)


def config_map(namespace: str) -> dict[str, Any]:
    """The part of `argocd-cm` that is about our kinds."""
    labels = {"app.kubernetes.io/name": "argocd-cm", "app.kubernetes.io/part-of": "argocd"}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "argocd-cm", "namespace": namespace, "labels": labels},
        "data": {key_of(face): script for face, script in scripts()},
    }
