"""Whether a pod of a BroadcastJob fits a node (BJ-20 to BJ-24). Pure.

Resources are compared with those of an empty node: other pods do not count (BJ-22.5). No tolerations are added.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from kruise.api.native.daemon_pods import kept_by_nodes
from kruise.api.native.node_selection import selected
from kruise.api.native.nodes import Node, Taint
from kruise.api.native.pod import Pod, PodSpec
from kruise.api.native.taints import NO_EXECUTE, NO_SCHEDULE, UNSCHEDULABLE_TAINT, untolerated
from kruise.machinery.codec import DecodeError, Raw, convert, decode
from kruise.machinery.quantity import QuantityError
from kruise.scheduling.requests import Amounts, amounts, requests

_VERDICTS: Final = f"{__name__}.verdicts"
_CORDON: Final = (Taint(key=UNSCHEDULABLE_TAINT, effect=NO_SCHEDULE),)
_EFFECTS: Final = (NO_SCHEDULE, NO_EXECUTE)
PODS: Final = "pods"

FITS: Final = ""
"""No reason against a node."""


@functools.lru_cache(maxsize=256)
def spec_of(template: bytes) -> PodSpec:
    """The spec of a template, to ask about nodes. It may name a node: that is no filter (BJ-24)."""
    spec = decode(template, dict[str, Any]).get("spec") or {}
    if not isinstance(spec, dict):
        raise DecodeError("spec: it is no object")
    return convert({**spec, "nodeName": ""}, PodSpec)


def judge_of(template: Raw) -> Callable[[Node], str]:
    """Who tells why a new pod of the template does not fit a node; empty: it does."""
    try:
        spec = spec_of(bytes(template))
    except DecodeError as error:
        # It must not keep the nodes from jobs whose templates are sound.
        why = f"the template of the job cannot be read ({error})"
        return lambda node: why
    return kept_by_nodes(_VERDICTS, spec, obstacle)


def obstacle(spec: PodSpec, node: Node) -> str:
    """Why a pod does not fit a node, in a few words; empty: it does (BJ-22)."""
    if spec.node_name not in ("", node.metadata.name):
        return "the pod is on another node"
    if not selected(spec, node):
        return "its labels do not match the node selector or affinity"
    if (taint := untolerated(node.spec.taints, spec.tolerations, _EFFECTS)) is not None:
        return f"taint {taint.key}:{taint.effect} is not tolerated"
    if node.spec.unschedulable and untolerated(_CORDON, spec.tolerations, _EFFECTS) is not None:
        return "it is cordoned"
    return _short_of(spec, node)


def _short_of(spec: PodSpec, node: Node) -> str:
    try:
        has, needs = amounts(node.status.allocatable), _needs(spec)
    except QuantityError:
        return "its resources cannot be read"
    if has.get(PODS, 0) < 1:
        return "it has reported no room for pods"
    short = sorted(name for name, amount in needs.items() if amount > has.get(name, 0))
    return f"it has not enough {', '.join(short)}, even if it were empty" if short else FITS


def _needs(spec: PodSpec) -> Amounts:
    return requests(Pod(spec=spec))


def pod_obstacle(pod: Pod, node: Node) -> str:
    """The same of a pod that is there: its own spec counts, with what admission has added (BJ-21). A pod keeps the
    answer about its node, but not the node: a finished pod may stay for long, and nodes change all the time."""
    version = (node.metadata.uid, node.metadata.resource_version)
    known: tuple[tuple[str, str], str] | None = pod.__dict__.get(_VERDICTS)
    if known is None or known[0] != version or not all(version):
        known = pod.__dict__[_VERDICTS] = (version, obstacle(pod.spec, node))
    return known[1]


def traits(node: Node) -> tuple[object, ...]:
    """All that the answers depend on."""
    return node.metadata.labels, node.spec.taints, node.spec.unschedulable, node.status.allocatable
