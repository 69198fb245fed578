"""Which nodes a pod names or prefers, and whether it minds a cordon (pure)."""

from __future__ import annotations

from kruise.api.native.node_selection import term_matches
from kruise.api.native.nodes import Node, Taint
from kruise.api.native.pod import Pod, PodSpec
from kruise.api.native.taints import NO_SCHEDULE, PREFER_NO_SCHEDULE, UNSCHEDULABLE_TAINT, tolerates


def accepts_cordon(spec: PodSpec) -> bool:
    cordon = Taint(key=UNSCHEDULABLE_TAINT, effect=NO_SCHEDULE)
    return any(tolerates(item, cordon) for item in spec.tolerations)


def named_only(pod: Pod) -> frozenset[str] | None:
    """The nodes that the required affinity names one by one, as DaemonSets do; None: it does not."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    if affinity is None or affinity.required is None or not affinity.required.node_selector_terms:
        return None
    names: set[str] = set()
    for term in affinity.required.node_selector_terms:
        here: set[str] | None = None
        for item in term.match_fields:
            if item.key == "metadata.name" and item.operator == "In":
                here = set(item.values) if here is None else here & set(item.values)
        if here is None:
            return None
        names |= here
    return frozenset(names)


def preference(spec: PodSpec, node: Node) -> int:
    """The sum of the weights of the preferred terms that match."""
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    if affinity is None:
        return 0
    # Unlike a required term, an empty preferred one matches every node.
    return sum(
        item.weight
        for item in affinity.preferred
        if item.weight
        and (
            term_matches(item.preference, node)
            or not (item.preference.match_expressions or item.preference.match_fields)
        )
    )


def unloved_taints(spec: PodSpec, node: Node) -> int:
    """How many taints ask to stay away if possible."""
    return sum(
        1
        for taint in node.spec.taints
        if taint.effect == PREFER_NO_SCHEDULE and not any(tolerates(item, taint) for item in spec.tolerations)
    )
