"""Workloads of others that may be spread: a list in the ConfigMap `kruise-configuration` (WS section 8)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kruise.api.apps.workloadspread import WorkloadSpreadSpec
from kruise.api.native.config import folded, listed_workloads
from kruise.machinery.documents import Json, value_at
from kruise.spread.workloadspread.numbers import sum_at

KEY = "WorkloadSpread_Watch_Custom_Workload_WhiteList"


@dataclasses.dataclass(frozen=True, slots=True)
class CustomKind:
    group: str
    version: str
    kind: str
    replicas_path: str = ""
    parts: tuple[tuple[str, str], ...] = ()
    """Groups and kinds that stand between the workload and its pods."""


def parsed(data: Mapping[str, str] | None) -> tuple[CustomKind, ...]:
    """From the data of the ConfigMap; None: there is none. Raises WhitelistError."""
    return tuple(_kinds(listed_workloads(data, KEY)))


def _kinds(entries: Iterable[dict[str, Any]]) -> Iterator[CustomKind]:
    for entry in entries:
        parts = entry.get("subresources")
        yield CustomKind(
            group=_text(entry, "group"),
            version=_text(entry, "version"),
            kind=_text(entry, "kind"),
            replicas_path=_text(entry, "replicaspath"),
            parts=tuple(
                (_text(part, "group"), _text(part, "kind"))
                for part in map(folded, parts if isinstance(parts, list) else ())
            ),
        )


def _text(entry: Mapping[str, Any], name: str) -> str:
    value = entry.get(name)
    return value if isinstance(value, str) else ""


def find(kinds: tuple[CustomKind, ...], group: str, kind: str, version: str = "") -> CustomKind | None:
    """The entry of a workload; with a version, only of that one."""
    for item in kinds:
        if (item.group, item.kind) == (group, kind) and (not version or item.version == version):
            return item
    return None


def is_known(kinds: tuple[CustomKind, ...], group: str, kind: str) -> bool:
    """Whether it is a workload of the list, or stands between one and its pods (WS-55)."""
    return any((group, kind) == (item.group, item.kind) or (group, kind) in item.parts for item in kinds)


def replicas_in(document: Json, spec: WorkloadSpreadSpec, entry: CustomKind | None) -> int | None:
    """By the paths of the filter, or of the whitelist; else what most kinds call replicas. Raises PathError."""
    paths = spec.target_filter.replicas_path_list if spec.target_filter is not None else ()
    if paths:
        return sum_at(document, paths)
    if entry is not None and entry.replicas_path:
        return sum_at(document, (entry.replicas_path,))
    found = value_at(document, ("spec", "replicas"))
    return found if isinstance(found, int) and not isinstance(found, bool) else None
