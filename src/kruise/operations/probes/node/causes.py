"""Causes that only NodePodProbe knows: why a node has not answered all that it is asked."""

from __future__ import annotations

from kruise.machinery.causes import MINUTE, Act, Meaning

NOT_TOLD = Meaning(code="probes-not-told", says="the node is about to be told of other probes", act=Act.NOBODY)
SILENT = Meaning(
    code="probes-silent",
    says="no daemon has reported the results of some probes on the node",
    act=Act.SOMEBODY,
    patience=MINUTE,
)

CAUSES = (NOT_TOLD, SILENT)


def remedy(node: str) -> str:
    """What to do where a node's daemon does not answer."""
    return (
        f"see whether a kruise-daemon runs on node {node}: kubectl get pods -A -o wide "
        f"-l control-plane=daemon --field-selector spec.nodeName={node}"
    )
