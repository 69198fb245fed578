"""What holds a UnitedDeployment up, subset by subset (for `why`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kruise.api.apps.uniteddeployment import UNITED_DEPLOYMENTS
from kruise.api.native.pod import PODS
from kruise.machinery.causes import Cause
from kruise.machinery.plan import Held, Target
from kruise.machinery.wording import plural
from kruise.spread.uniteddeployment import adaptive, causes
from kruise.spread.uniteddeployment.children import KINDS, Child, is_new
from kruise.spread.uniteddeployment.numbers import Shares, is_adaptive, partition_of
from kruise.spread.uniteddeployment.situation import Situation

PROVISIONED, SUBSETS_UPDATED = "SubsetProvisioned", "SubsetUpdated"
_MEMBERS = ", ".join(kind.member for kind in KINDS)


def no_kind() -> Cause:
    return causes.SUBSET_TEMPLATE.cause(
        "spec.template names no kind of workload, or several", remedy=f"give exactly one of {_MEMBERS}"
    )


def no_selector(problem: str) -> Cause:
    remedy = "set spec.selector to labels that its template has"
    return causes.SUBSET_SELECTOR.cause(problem, remedy=remedy)


def adopting(found: tuple[Child, ...]) -> Cause:
    named = ", ".join(f"{child.kind.resource.kind} {child.name}" for child in found)
    return causes.SUBSET_ADOPTION.cause(
        f"{named}: taken over, since the selector and a subset match; nothing else is done before",
        remedy="wait; if it stays, see the event FailedFindSubsets, which quotes the API, or take their labels away",
    )


def impossible_sizes(why: str) -> Cause:
    return causes.SUBSET_SIZES.cause(why, remedy="change spec.replicas, or replicas of subsets, so that both agree")


def held(situation: Situation, shares: Shares, misshapen: Mapping[str, str]) -> tuple[Held, ...]:
    whole = (
        *_nowhere(situation),
        *_misshapen(misshapen),
        *_refused(situation),
        *_unschedulable(situation),
        *_unfinished(situation, shares),
        *_left_over(situation),
    )
    found = [Held(target=Target.of(UNITED_DEPLOYMENTS, situation.united), causes=whole)] if whole else []
    for name, child in sorted(situation.children.items()):
        if name in shares:
            found += _pods(situation, child, shares[name].pods)
    return tuple(found)


def _nowhere(situation: Situation) -> Iterator[Cause]:
    wanted = situation.united.spec.replicas
    if not situation.subsets and wanted:
        text = f"there are no subsets, and {plural(wanted, 'pod')} wanted: no workload is made"
        yield causes.NO_SUBSETS.cause(text, remedy="name one at least in spec.topology.subsets")


def _left_over(situation: Situation) -> Iterator[Cause]:
    """Who changes the selector gets new workloads beside the old ones, which nobody takes away (UD-47)."""
    for child in situation.left_over:
        named = f"{child.kind.resource.kind} {child.name}"
        yield causes.SUBSET_LEFTOVER.cause(
            f"{named} ({plural(len(child.pods), 'pod')}): its labels do not match spec.selector, so it is left over: "
            "it runs on, and is neither counted nor changed",
            details={"child": child.name},
            remedy=(
                "set spec.selector back; or, when the new workloads serve, take it away: kubectl "
                f"delete {child.kind.resource.group_resource} {child.name} -n {situation.owner.namespace}"
            ),
        )


def _misshapen(found: Mapping[str, str]) -> Iterator[Cause]:
    for subset, why in sorted(found.items()):
        yield causes.SUBSET_SHAPE.cause(
            f"subset {subset}: {why}",
            details={"subset": subset},
            remedy=f"correct patch of subset {subset} in spec.topology.subsets",
        )


def _refused(situation: Situation) -> Iterator[Cause]:
    """As the last pass that tried it was told."""
    for item in situation.united.status.conditions:
        if item.type in (PROVISIONED, SUBSETS_UPDATED) and item.status == "False":
            yield causes.SUBSET_REFUSED.cause(
                item.message, remedy="correct what the API names, in spec.template or in the patch of the subset"
            )


def _unschedulable(situation: Situation) -> Iterator[Cause]:
    for subset in situation.subsets:
        child = situation.children.get(subset.name)
        waiting = [pod for pod in child.pods if adaptive.waits_for_node(pod)] if child is not None else []
        if not waiting:
            continue
        words = adaptive.scheduler_words(waiting)
        remedy = f"add nodes that suit subset {subset.name}, or correct its nodeSelectorTerm or tolerations"
        if not is_adaptive(situation.united.spec):
            remedy += ", or let pods move on with scheduleStrategy Adaptive"
        find = "finds" if len(waiting) == 1 else "find"
        message = f"subset {subset.name}: {plural(len(waiting), 'pod')} of it {find} no node"
        yield causes.SUBSET_UNSCHEDULABLE.cause(
            f"{message}: {words}" if words else message,
            details={"subset": subset.name, "pods": [pod.metadata.name for pod in waiting]},
            remedy=remedy,
        )


def _unfinished(situation: Situation, shares: Shares) -> Iterator[Cause]:
    """Subsets whose workload has not done yet what it was told."""
    for name, share in shares.items():
        child = situation.children.get(name)
        if child is None or child.worn_revision != situation.revision:
            continue
        kept = partition_of(situation.united.spec, name, share.pods)
        lacks = max(share.pods - child.replicas, 0)
        old = max(child.replicas - kept - child.updated, 0)
        if not lacks and not old and child.ready >= share.pods:
            continue
        state = f"{child.updated} of {share.pods} pods updated, {child.ready} ready"
        where = f"{child.kind.resource.kind} {child.name}"
        yield causes.SUBSET_ROLLING.cause(
            f"subset {name}: {where} is not there yet: {state}", details={"subset": name, "child": child.name}
        )


def _pods(situation: Situation, child: Child, size: int) -> Iterator[Held]:
    old = [pod for pod in child.pods if not is_new(pod, situation.revision)]
    kept = partition_of(situation.united.spec, child.subset, size)
    where = f"{child.kind.resource.kind} {child.name}"
    if kept >= len(old) > 0:
        cause = causes.SUBSET_PARTITION.cause(
            f"the partition of subset {child.subset} keeps {kept} of its pods at the old template",
            details={"subset": child.subset},
            remedy=f"lower {child.subset} in spec.updateStrategy.manualUpdate.partitions",
        )
    else:
        cause = causes.SUBSET_ROLLING.cause(
            f"subset {child.subset}: {where} has not come to it yet", details={"subset": child.subset}
        )
    for pod in old:
        yield Held(target=Target.of(PODS, pod), causes=(cause,))
