"""Whole objects of an installation as they are in a cluster: what they are called, and what their pods run. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kruise.machinery.documents import value_at

Json = Mapping[str, Any]


def placed(about: str, namespace: str) -> str:
    """`KIND/NAME`, and where it is."""
    return f"{about} in namespace {namespace}" if namespace else about


class Named(NamedTuple):
    """An object of the installation."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return placed(f"{self.kind.lower()}/{self.name}", self.namespace)


def named(document: Json) -> Named:
    metadata = document["metadata"]
    return Named(str(document["kind"]), str(metadata.get("namespace", "")), str(metadata["name"]))


def arguments(workload: Json) -> tuple[str, ...]:
    """Those of the first container of a Deployment or DaemonSet."""
    return tuple(map(str, _container(workload).get("args") or ()))


def command(workload: Json) -> tuple[str, ...]:
    return tuple(map(str, _container(workload).get("command") or ()))


def image_of(workload: Json) -> str:
    return str(_container(workload).get("image", ""))


def gates_text(workload: Json) -> str:
    """What `--feature-gates` says there; the last one counts."""
    given = [text.partition("=")[2] for text in arguments(workload) if text.startswith("--feature-gates=")]
    return given[-1] if given else ""


def _container(workload: Json) -> Json:
    containers = value_at(workload, ("spec", "template", "spec", "containers"), ())
    return containers[0] if containers else {}
