"""Which nodes a pod asks for, and which a volume reaches: node selectors and their terms (pure)."""

from __future__ import annotations

from collections.abc import Mapping

from kruise.api.native.nodes import Node
from kruise.api.native.pod import NodeSelectorRequirement, NodeSelectorTerm, PodSpec


def _integer(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def requirement_matches(requirement: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            if value is None or len(requirement.values) != 1:
                return False
            has, bound = _integer(value), _integer(requirement.values[0])
            if has is None or bound is None:
                return False
            return has > bound if requirement.operator == "Gt" else has < bound
    return False


def term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    """A term without any requirement matches nothing."""
    if not term.match_expressions and not term.match_fields:
        return False
    labels = node.metadata.labels
    fields = {"metadata.name": node.metadata.name}
    return all(requirement_matches(item, labels) for item in term.match_expressions) and all(
        requirement_matches(item, fields) for item in term.match_fields
    )


def selected(spec: PodSpec, node: Node) -> bool:
    """Node selector and required node affinity."""
    if spec.node_selector and not spec.node_selector.items() <= node.metadata.labels.items():
        return False
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    if affinity is None or affinity.required is None:
        return True
    return any(term_matches(term, node) for term in affinity.required.node_selector_terms)
