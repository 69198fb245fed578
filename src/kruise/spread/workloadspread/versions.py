"""The version of a pod: each has places of its own in the subsets (WS-6, WS-7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kruise.api.native.replica_sets import TEMPLATE_HASH

IGNORED = "versionIgnored"
REVISION_HASH = "controller-revision-hash"


def versioned_kinds(text: str) -> frozenset[str]:
    """The kinds that a flag names. Pods of a Deployment are owned by its ReplicaSets, so one implies the other."""
    kinds = {item.strip().lower() for item in text.split(",") if item.strip()}
    return frozenset(kinds | ({"replicaset"} if "deployment" in kinds else set()))


def version_of(labels: Mapping[str, str], owners: Iterable[str], versioned: frozenset[str]) -> str:
    """`owners` are the kinds of the pod's controllers."""
    if not any(owner.lower() in versioned for owner in owners):
        return IGNORED
    return labels.get(TEMPLATE_HASH) or labels.get(REVISION_HASH, "").rpartition("-")[2] or IGNORED
