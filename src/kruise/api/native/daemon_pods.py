"""Pods of which every suitable node has one: on which nodes they run, what they tolerate, how they name their node.

Pure. A template is read once, and then asked about many nodes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from kruise.api.meta import ObjectMeta
from kruise.api.native.node_selection import selected
from kruise.api.native.nodes import Node
from kruise.api.native.pod import Pod, PodSpec
from kruise.api.native.taints import NO_EXECUTE, NO_SCHEDULE, UNSCHEDULABLE_TAINT, untolerated
from kruise.machinery.codec import Raw, convert, decode

GENERATION_ANNOTATION: Final = "deprecated.daemonset.template.generation"
GENERATION_LABEL: Final = "pod-template-generation"
"""The count of templates, from times before revisions: on the workload, and on its pods."""

FIRST_DELAY: Final = 1.0
LONGEST_DELAY: Final = 900.0
"""Seconds for which a failed pod stays where it is: twice as long after each failure on the same node."""

_NODE_NAME: Final = "metadata.name"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_TOLERATED: Final = (
    ("node.kubernetes.io/not-ready", NO_EXECUTE),
    ("node.kubernetes.io/unreachable", NO_EXECUTE),
    ("node.kubernetes.io/disk-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/memory-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/pid-pressure", NO_SCHEDULE),
    (UNSCHEDULABLE_TAINT, NO_SCHEDULE),
)
_TOLERATED_ON_HOST_NETWORK: Final = ("node.kubernetes.io/network-unavailable", NO_SCHEDULE)

_VERDICTS: Final = f"{__name__}.verdicts"
"""Where a node keeps what templates say about it."""

Json = Mapping[str, Any]
V = TypeVar("V")


class Verdict(NamedTuple):
    """What a node is to a daemon."""

    should_run: bool
    """It gets a pod if it has none."""
    may_stay: bool
    """A pod that is there stays there."""


NOT_HERE: Final = Verdict(should_run=False, may_stay=False)


def with_tolerations(spec: Json) -> dict[str, Any]:
    """The spec with what daemons tolerate: they stay on nodes in trouble, and come to those that are cordoned."""
    wanted = (*_TOLERATED, _TOLERATED_ON_HOST_NETWORK) if spec.get("hostNetwork") else _TOLERATED
    tolerations: Sequence[Json] = spec.get("tolerations") or ()
    for key, effect in wanted:
        tolerations = _with_toleration(tolerations, {"key": key, "operator": "Exists", "effect": effect})
    return {**spec, "tolerations": list(tolerations)}


def _with_toleration(tolerations: Sequence[Json], wanted: Json) -> list[Json]:
    """One that is there already but for a limited time becomes unlimited, in its place."""
    result = [wanted if _likeness(item) == _likeness(wanted) else item for item in tolerations]
    return result if wanted in result else [*result, wanted]


def _likeness(toleration: Json) -> tuple[str, ...]:
    return tuple(toleration.get(name) or "" for name in ("key", "operator", "value", "effect"))


def daemon_pod_spec(spec: Json) -> PodSpec:
    """The spec of a template, to ask about nodes."""
    return convert(with_tolerations(spec), PodSpec)


@functools.lru_cache(maxsize=256)
def _spec_of(template: bytes) -> PodSpec:
    return daemon_pod_spec(decode(template, dict[str, Any]).get("spec") or {})


def judge_of(template: Raw) -> Callable[[Node], Verdict]:
    """Who tells what nodes are to a daemon with this template."""
    return kept_by_nodes(_VERDICTS, _spec_of(bytes(template)), verdict)


def kept_by_nodes(name: str, spec: PodSpec, judge: Callable[[PodSpec, Node], V]) -> Callable[[Node], V]:
    """What `judge` says of nodes, for a spec that is read once and lives on.

    A node keeps the answers: passes follow each other closely while thousands of nodes stay as they are, and one that
    joins or changes should not cost a look at all others.
    """

    def kept(node: Node) -> V:
        known: dict[int, tuple[PodSpec, V]] = node.__dict__.setdefault(name, {})
        found = known.get(id(spec))
        if found is None or found[0] is not spec:
            found = known[id(spec)] = (spec, judge(spec, node))
        return found[1]

    return kept


def verdict_on(template: Raw, node: Node) -> Verdict:
    """What a node is to a daemon with this template."""
    return judge_of(template)(node)


def verdict(spec: PodSpec, node: Node) -> Verdict:
    """Resources, ports and readiness do not count: a pod that does not fit is made nonetheless, and waits."""
    if spec.node_name not in ("", node.metadata.name) or not selected(spec, node):
        return NOT_HERE
    taints = node.spec.taints
    if untolerated(taints, spec.tolerations, (NO_SCHEDULE, NO_EXECUTE)) is None:
        return Verdict(should_run=True, may_stay=True)
    return Verdict(should_run=False, may_stay=untolerated(taints, spec.tolerations, (NO_EXECUTE,)) is None)


def bound_for(spec: Json, node: str) -> dict[str, Any]:
    """The spec with the one node that the scheduler may choose, instead of what node affinity required."""
    term = {"matchFields": [{"key": _NODE_NAME, "operator": "In", "values": [node]}]}
    affinity = spec.get("affinity") or {}
    node_affinity = {**(affinity.get("nodeAffinity") or {}), _REQUIRED: {"nodeSelectorTerms": [term]}}
    return {**spec, "affinity": {**affinity, "nodeAffinity": node_affinity}}


def template_generation(metadata: ObjectMeta) -> str:
    """The count of the template that a workload carries; empty: there is none."""
    text = metadata.annotations.get(GENERATION_ANNOTATION, "")
    return str(int(text)) if text.isascii() and text.isdecimal() else ""


def target_node(pod: Pod) -> str:
    """The node that a pod is on or was made for; empty: it was made for none."""
    spec = pod.spec
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    if spec.node_name or affinity is None or affinity.required is None:
        return spec.node_name
    for term in affinity.required.node_selector_terms:
        for item in term.match_fields:
            if item.key == _NODE_NAME and item.operator == "In":
                return item.values[0] if len(item.values) == 1 else ""
    return ""
