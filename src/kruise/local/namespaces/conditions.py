"""How the deletion of a namespace stands, in the words of kube-controller-manager. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kruise.machinery.client.discovery import ServedResource

Json = dict[str, Any]

_GOOD: Final[Mapping[str, tuple[str, str]]] = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}


@dataclasses.dataclass(slots=True)
class Findings:
    """What a pass over the content of a namespace met."""

    discovery_trouble: str = ""
    failures: list[str] = dataclasses.field(default_factory=list)
    remaining: dict[ServedResource, int] = dataclasses.field(default_factory=dict)
    finalizers: dict[str, int] = dataclasses.field(default_factory=dict)
    tells_remaining: bool = True
    """Not while pods remain, since then the rest was not looked at."""

    @property
    def is_empty(self) -> bool:
        return not (self.discovery_trouble or self.failures or self.remaining)


def conditions(before: Sequence[Json], findings: Findings, now: str) -> list[Json]:
    """The conditions to write: all five, in place where they are known, with the time of the last change of status."""
    result = [dict(condition) for condition in before]
    trouble = _trouble(findings)
    for kind, (good_reason, good_message) in _GOOD.items():
        if kind in trouble:
            status, (reason, message) = "True", trouble[kind]
        else:
            status, reason, message = "False", good_reason, good_message
        said = {"type": kind, "status": status, "reason": reason, "message": message}
        known = next((condition for condition in result if condition.get("type") == kind), None)
        if known is None:
            result.append({"lastTransitionTime": now, **said})
        else:
            if known.get("status") != status:
                known["lastTransitionTime"] = now
            known.update(said)
    return result


def _trouble(findings: Findings) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    if findings.discovery_trouble:
        found["NamespaceDeletionDiscoveryFailure"] = ("DiscoveryFailed", findings.discovery_trouble)
    if findings.failures:
        texts = ", ".join(sorted(findings.failures))
        message = f"Failed to delete all resource types, {len(findings.failures)} remaining: {texts}"
        found["NamespaceDeletionContentFailure"] = ("ContentDeletionFailed", message)
    if findings.remaining and findings.tells_remaining:
        texts = ", ".join(
            sorted(
                f"{served.plural}.{served.group} has {number} resource instances"
                for served, number in findings.remaining.items()
            )
        )
        found["NamespaceContentRemaining"] = ("SomeResourcesRemain", f"Some resources are remaining: {texts}")
    if findings.finalizers and findings.tells_remaining:
        texts = ", ".join(
            sorted(f"{finalizer} in {number} resource instances" for finalizer, number in findings.finalizers.items())
        )
        message = f"Some content in the namespace has finalizers remaining: {texts}"
        found["NamespaceFinalizersRemaining"] = ("SomeFinalizersRemain", message)
    return found


def remain_unexpectedly(namespace: str, served: ServedResource) -> str:
    kind = f"{served.group}/{served.version}, Resource={served.plural}"
    return f"unexpected items still remain in namespace: {namespace} for gvr: {kind}"
