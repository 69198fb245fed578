"""Causes that only UnitedDeployment knows. Their messages name the subset."""

from __future__ import annotations

from kruise.machinery.causes import MINUTE, Act, Meaning

SUBSET_REFUSED = Meaning(
    code="subset-refused",
    says="the API refuses the workload of a subset",
    act=Act.SOMEBODY,
    field="spec.template",
    patience=0,
)
SUBSET_UNSCHEDULABLE = Meaning(
    code="subset-unschedulable",
    says="pods of a subset find no node",
    act=Act.SOMEBODY,
    field="spec.topology.subsets[].nodeSelectorTerm",
    patience=0,
)
SUBSET_PARTITION = Meaning(
    code="subset-partition",
    says="the partition of its subset keeps it at the old template",
    act=Act.INTENDED,
    field="spec.updateStrategy.manualUpdate.partitions",
    is_wanted=True,
    is_before_turn=True,
)
SUBSET_ROLLING = Meaning(
    code="subset-rolling",
    says="the workload of its subset is not there yet",
    act=Act.NOBODY,
    waits_for_others=True,
)
SUBSET_SIZES = Meaning(
    code="subset-sizes",
    says="the sizes of the subsets do not go with replicas, so nothing is changed",
    act=Act.SOMEBODY,
    field="spec.topology.subsets",
    patience=0,
)
SUBSET_SHAPE = Meaning(
    code="subset-shape",
    says="the workload of a subset cannot be made",
    act=Act.SOMEBODY,
    field="spec.topology.subsets[].patch",
    patience=0,
)
SUBSET_TEMPLATE = Meaning(
    code="subset-template",
    says="spec.template names no kind, or several",
    act=Act.SOMEBODY,
    field="spec.template",
    patience=0,
)
SUBSET_SELECTOR = Meaning(
    code="subset-selector",
    says="its selector is empty or invalid, so nothing is done",
    act=Act.SOMEBODY,
    field="spec.selector",
    patience=0,
)
NO_SUBSETS = Meaning(
    code="no-subsets",
    says="there are no subsets, so there are no pods",
    act=Act.SOMEBODY,
    field="spec.topology.subsets",
    patience=0,
)
SUBSET_ADOPTION = Meaning(
    code="subset-adoption",
    says="workloads of subsets are taken over, and nothing else is done before",
    act=Act.NOBODY,
    field="spec.selector",
    patience=MINUTE,
)
SUBSET_LEFTOVER = Meaning(
    code="subset-leftover",
    says="a workload of it does not match its selector any more: it runs on, and is neither counted nor changed",
    act=Act.SOMEBODY,
    field="spec.selector",
    patience=0,
)

CAUSES = (
    SUBSET_REFUSED,
    SUBSET_UNSCHEDULABLE,
    SUBSET_PARTITION,
    SUBSET_ROLLING,
    SUBSET_SIZES,
    SUBSET_SHAPE,
    SUBSET_TEMPLATE,
    SUBSET_SELECTOR,
    SUBSET_ADOPTION,
    NO_SUBSETS,
    SUBSET_LEFTOVER,
)
