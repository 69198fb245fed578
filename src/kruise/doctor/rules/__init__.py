"""What is wrong, by what was seen. Pure: a snapshot in, findings out."""

from __future__ import annotations

from kruise.doctor.findings import Finding, Severity
from kruise.doctor.rules import installation, objects, preflight, running, webhooks
from kruise.doctor.snapshot import Snapshot


def examine(seen: Snapshot) -> list[Finding]:
    """The worst first, and otherwise from what is installed to what people have made."""
    rules = (preflight.rules, installation.rules, running.rules, webhooks.rules, objects.rules)
    found = [finding for rule in rules for finding in rule(seen)]
    order = list(Severity)
    return sorted(found, key=lambda finding: order.index(finding.severity))
