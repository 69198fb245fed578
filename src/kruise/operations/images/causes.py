"""What can be said of a pull, whoever asked for it: causes, and what to do about a failure. Pure."""

from __future__ import annotations

from kruise.machinery.causes import MINUTE, Act, Meaning

NO_ANSWER = "node has not responded for a long time"

PULLING = Meaning(code="pulling", says="the node pulls the image", act=Act.NOBODY)
NO_DAEMON = Meaning(
    code="no-daemon",
    says="no daemon answers on the node",
    act=Act.SOMEBODY,
    patience=MINUTE,
)
PULL_FAILED = Meaning(
    code="pull-failed", says="the node could not pull the image", act=Act.SOMEBODY, field="spec.image", patience=0
)

CAUSES = (PULLING, NO_DAEMON, PULL_FAILED)


def remedy(message: str, node: str) -> str:
    """What to do about a failure that a node tells of."""
    if message == NO_ANSWER:
        return f"see whether kruise-daemon runs on the node (kubectl describe node {node})"
    if "not found" in message or "NotFound" in message:
        return "correct the name or the tag of the image, or push it to the registry"
    if any(word in message.lower() for word in ("unauthorized", "denied", "forbidden", "401", "403")):
        return "name a secret with access to the registry in spec.pullSecrets"
    if "exceeds the activeDeadlineSeconds" in message or "is canceled" in message:
        return "allow more time with spec.pullPolicy.timeoutSeconds and activeDeadlineSeconds"
    return f"see what the node says with kubectl describe nodeimage {node}"
