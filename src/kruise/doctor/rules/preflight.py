"""Whether it can be installed, or upgraded."""

from __future__ import annotations

from collections.abc import Iterator

from kruise.doctor.findings import INSTALL_REFUSED, NOT_INSTALLED, OLD_KUBERNETES, OPENKRUISE, Finding
from kruise.doctor.snapshot import Snapshot
from kruise.machinery.wording import listed

OLDEST = (1, 28)
"""As the chart says."""
_ADVICE = {
    "Forbidden": "ask somebody for the rights of a cluster's admin, or use another user with --context or --as",
    "Invalid": "an older or foreign object of this name is in the way: see what it says",
}


def rules(seen: Snapshot) -> Iterator[Finding]:
    if seen.kubernetes is not None and seen.kubernetes[:2] < OLDEST:
        yield OLD_KUBERNETES.found(
            "the API server",
            f"it is {seen.kubernetes[2]}; PyKruise needs {OLDEST[0]}.{OLDEST[1]} or newer",
            "upgrade Kubernetes first",
        )
    if seen.original:
        yield OPENKRUISE.found(
            "the cluster",
            f"OpenKruise is installed here ({seen.original}), and not PyKruise",
            "kruise doctor --takeover tells what taking over would do (docs/takeover.md)",
        )
    elif not seen.is_installed:
        yield NOT_INSTALLED.found(
            "the cluster", "nothing of PyKruise is installed here", "kruise install --image IMAGE (docs/install.md)"
        )
    by_reason: dict[str, list[str]] = {}
    words: dict[str, str] = {}
    for refusal in seen.refusals:
        by_reason.setdefault(refusal.reason, []).append(refusal.about)
        words.setdefault(refusal.reason, refusal.message)
    for reason, about in by_reason.items():
        yield INSTALL_REFUSED.found(
            listed(about),
            f"the API server would not take {'it' if len(about) == 1 else 'them'}: {words[reason]}",
            _ADVICE.get(reason, "see what the API server says, and try again: kruise doctor --preflight"),
        )
