"""Whole objects of an installation as they are in a cluster: what they are called, and what their pods run. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kruise.machinery.documents import value_at
from kruise.manager.installation.manager import DEPLOYMENT
from kruise.manager.installation.rbac import DAEMON

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


def manager_in(namespace: str) -> Named:
    return Named("Deployment", namespace, DEPLOYMENT)


def daemon_in(namespace: str) -> Named:
    return Named("DaemonSet", namespace, DAEMON)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """What of an installation is in a cluster, whose ever it is."""

    namespace: str = "kruise-system"
    live: Mapping[Named, Json] = dataclasses.field(default_factory=dict)

    @property
    def deployment(self) -> Json | None:
        return self.live.get(manager_in(self.namespace))

    @property
    def daemon_set(self) -> Json | None:
        return self.live.get(daemon_in(self.namespace))

    @property
    def definitions(self) -> Iterator[tuple[Named, Json]]:
        for name, document in self.live.items():
            if name.kind == "CustomResourceDefinition":
                yield name, document


def arguments(workload: Json) -> tuple[str, ...]:
    """Those of the first container of a Deployment or DaemonSet."""
    return tuple(map(str, _container(workload).get("args") or ()))


def command(workload: Json) -> tuple[str, ...]:
    return tuple(map(str, _container(workload).get("command") or ()))


def image_of(workload: Json) -> str:
    return str(_container(workload).get("image", ""))


def gates_text(workload: Json) -> str:
    return _argument(workload, "--feature-gates")


def pod_failure_policy(workload: Json) -> str:
    return _argument(workload, "--pod-failure-policy")


def _argument(workload: Json, flag: str) -> str:
    """What a flag says there; the last one counts."""
    given = [text.partition("=")[2] for text in arguments(workload) if text.startswith(f"{flag}=")]
    return given[-1] if given else ""


def _container(workload: Json) -> Json:
    containers = value_at(workload, ("spec", "template", "spec", "containers"), ())
    return containers[0] if containers else {}
