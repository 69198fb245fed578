"""Pods that are numbered, as a StatefulSet numbers them: names of pods and claims, and the labels that carry them."""

from __future__ import annotations

import re

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
POD_INDEX_LABEL = "apps.kubernetes.io/pod-index"

_NUMBERED = re.compile(r"(.*)-([0-9]+)", re.ASCII | re.DOTALL)
HIGHEST_ORDINAL = 2**31 - 1
"""A larger number in a name is none."""


def pod_name(workload: str, ordinal: int) -> str:
    return f"{workload}-{ordinal}"


def claim_name(template: str, workload: str, ordinal: int) -> str:
    return f"{template}-{workload}-{ordinal}"


def parent_and_ordinal(name: str) -> tuple[str, int | None]:
    """The workload that a pod's name speaks of, and the ordinal: None where no ordinal is written as it should be.

    `web-01` is a name of `web`, yet nobody's ordinal: the pod of ordinal 1 is `web-1`, and there is only one.
    """
    found = _NUMBERED.fullmatch(name)
    if found is None:
        return "", None
    parent, digits = found.groups()
    number = int(digits) if len(digits) <= len(str(HIGHEST_ORDINAL)) else HIGHEST_ORDINAL + 1
    return parent, number if number <= HIGHEST_ORDINAL and pod_name(parent, number) == name else None


def ordinal_of(name: str) -> int | None:
    return parent_and_ordinal(name)[1]
