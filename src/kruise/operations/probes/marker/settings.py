"""Probes of a PodProbeMarker, for the head of a description."""

from __future__ import annotations

from kruise.faces.face import Setting
from kruise.machinery.documents import Json, value_at


def settings(document: Json) -> list[Setting]:
    probes = value_at(document, ("spec", "probes"), [])
    return [(f"Probe {one.get('name', '')}", f"container {one.get('containerName', '')}") for one in probes]
