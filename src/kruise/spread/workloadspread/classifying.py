"""Which subset each pod is in, and pods that are taken over from before (WS section 7.4)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from kruise.api.apps.workloadspread import Subset, WorkloadSpread
from kruise.api.meta import controller_of
from kruise.api.native.node_selection import selected, term_matches
from kruise.api.native.nodes import Node
from kruise.api.native.pod import Affinity, NodeAffinity, NodeSelector, NodeSelectorTerm, Pod
from kruise.api.native.taints import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, untolerated
from kruise.machinery.codec import evolve
from kruise.spread.workloadspread.injection import UnfitPatchError, patched, plain
from kruise.spread.workloadspread.matched import mark_of
from kruise.spread.workloadspread.numbers import limit_of
from kruise.spread.workloadspread.versions import version_of

UNASSIGNED = "kruise.io/workloadspread-fake-subset-name"
"""In place of a subset: pods that are in none."""
_ANY_NUMBER = 2**31 - 1
_EFFECTS = (NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE)


@dataclasses.dataclass(slots=True)
class Group:
    """Pods of one version."""

    pods: dict[str, list[Pod]] = dataclasses.field(default_factory=dict)
    """By subset."""
    adopted: dict[str, str] = dataclasses.field(default_factory=dict)
    """Subsets of pods that are taken over, by name."""

    def add(self, subset: str, pod: Pod) -> None:
        self.pods.setdefault(subset, []).append(pod)

    @classmethod
    def of_all(cls, groups: Iterable[Group]) -> Group:
        everybody = cls()
        for group in groups:
            for subset, pods in group.pods.items():
                everybody.pods.setdefault(subset, []).extend(pods)
        return everybody


def classified(
    spread: WorkloadSpread,
    pods: Sequence[Pod],
    *,
    replicas: int | None,
    nodes: Mapping[str, Node],
    versioned: frozenset[str],
) -> dict[str, Group]:
    """Groups by version. Each version has places of its own."""
    names = {subset.name for subset in spread.spec.subsets}
    groups: dict[str, Group] = {}
    strangers: dict[str, list[Pod]] = {}
    for pod in pods:
        owner = controller_of(pod)
        version = version_of(pod.metadata.labels, (owner.kind,) if owner is not None else (), versioned)
        group = groups.setdefault(version, Group())
        mark = mark_of(pod)
        if mark is not None and mark.name == spread.metadata.name and mark.subset:
            group.add(mark.subset if mark.subset in names else UNASSIGNED, pod)
        else:
            strangers.setdefault(version, []).append(pod)
    for version, found in strangers.items():
        _adopt(spread, groups[version], found, replicas, nodes)
    return groups


def _adopt(
    spread: WorkloadSpread, group: Group, strangers: Sequence[Pod], replicas: int | None, nodes: Mapping[str, Node]
) -> None:
    places = {}
    for subset in spread.spec.subsets:
        limit = limit_of(subset, replicas)
        places[subset.name] = (_ANY_NUMBER if limit is None else limit) - len(group.pods.get(subset.name, ()))
    for pod in strangers:
        node = nodes.get(pod.spec.node_name)
        best, score = "", -1
        for subset in spread.spec.subsets if node is not None else ():
            found = _score(pod, subset, node, has_place=places[subset.name] > 0) if node is not None else None
            if found is not None and found > score:
                best, score = subset.name, found
        if not (best and places[best] > 0) and _was_let_in(spread, pod):
            continue
        group.add(best or UNASSIGNED, pod)
        if best:
            group.adopted[pod.metadata.name] = best
            places[best] -= 1


def _was_let_in(spread: WorkloadSpread, pod: Pod) -> bool:
    """It was created when the WorkloadSpread was there, and no subset had a place for it. As long as that is so it
    stays as it is, whenever anybody looks: with neither a mark nor a cost (WS-34a, WS-60). One that bears the mark of
    another WorkloadSpread was let in by that one."""
    if mark_of(pod) is not None:
        return False
    since, created = spread.metadata.creation_timestamp, pod.metadata.creation_timestamp
    return since is not None and created is not None and created >= since


def _score(pod: Pod, subset: Subset, node: Node, *, has_place: bool) -> int | None:
    """None: the pod could not run there as a pod of this subset."""
    tolerations = (*pod.spec.tolerations, *subset.tolerations)
    if untolerated(node.spec.taints, tolerations, _EFFECTS) is not None:
        return None
    if subset.required_node_selector is not None and not _fits(pod, subset.required_node_selector, node):
        return None
    preferred = sum(term.weight for term in subset.preferred_node_selector if term_matches(term.preference, node))
    return 100 * preferred + 10 * _bears_patch(pod, subset) + has_place


def _fits(pod: Pod, wanted: NodeSelectorTerm, node: Node) -> bool:
    """The pod's own requirements together with the subset's (WS-24)."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    own = affinity.required.node_selector_terms if affinity is not None and affinity.required is not None else ()
    terms = [
        NodeSelectorTerm(
            match_expressions=(*term.match_expressions, *wanted.match_expressions),
            match_fields=(*term.match_fields, *wanted.match_fields),
        )
        for term in own
    ] or [wanted]
    required = NodeSelector(node_selector_terms=tuple(terms))
    return selected(evolve(pod.spec, affinity=Affinity(node_affinity=NodeAffinity(required=required))), node)


def _bears_patch(pod: Pod, subset: Subset) -> bool:
    """Whether the patch would change nothing of the pod but annotations, as far as pods are read here."""
    if bytes(subset.patch) in (b"", b"null"):
        return False
    document = plain(pod)
    try:
        after = patched(document, subset.patch)
    except UnfitPatchError:
        return False
    return _without_annotations(after) == _without_annotations(document)


def _without_annotations(document: dict[str, object]) -> dict[str, object]:
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        return document
    return {**document, "metadata": {name: value for name, value in metadata.items() if name != "annotations"}}
