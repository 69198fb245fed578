"""What a forecast asks a WorkloadSpread beside its decisions: which subset has how many pods, and who goes first."""

from __future__ import annotations

from kruise.api.apps.workloadspread import WORKLOAD_SPREADS, WorkloadSpread
from kruise.api.meta import controller_of
from kruise.api.native.pod import Pod, is_active
from kruise.faces.forecast import Around, ForecastFacts
from kruise.inplace import availability
from kruise.machinery.plan import Plan
from kruise.machinery.selectors import SelectorError, from_label_selector
from kruise.machinery.wording import plural
from kruise.spread.workloadspread.decide import Memo
from kruise.spread.workloadspread.matched import mark_of
from kruise.spread.workloadspread.targets import DEPLOYMENT, REPLICA_SET, owner_of, target_of
from kruise.spread.workloadspread.versions import TEMPLATE_HASH


def _owns(spread: WorkloadSpread, pod: Pod) -> bool:
    """A pod of its workload. Those of a Deployment belong to ReplicaSets, which are named after it and the hash that
    their pods bear; those of kinds that nobody here watches bear its mark."""
    target, owner = target_of(spread), controller_of(pod)
    if owner is None or pod.metadata.namespace != target.namespace:
        return False
    wanted = spread.spec.target_filter
    if wanted is not None and wanted.selector is not None:
        try:
            if not from_label_selector(wanted.selector).matches(pod.metadata.labels):
                return False
        except SelectorError:
            return False
    workload = owner_of(owner, target.namespace)
    if workload == target:
        return True
    if target.kind == DEPLOYMENT:
        name = f"{target.name}-{pod.metadata.labels.get(TEMPLATE_HASH, '')}"
        return (workload.group, workload.kind, workload.name) == ("apps", REPLICA_SET, name)
    mark = mark_of(pod)
    return not target.is_supported and mark is not None and mark.name == spread.metadata.name


def _wanted(spread: WorkloadSpread, around: Around) -> int:
    return sum(_owns(spread, pod) and is_active(pod) for pod in around.pods)


def _untouched(spread: WorkloadSpread, around: Around) -> str:
    number = _wanted(spread, around)
    if not number:
        return ""
    return (
        f"{plural(number, 'pod', 'stays', 'stay')} on the nodes that they run on: a WorkloadSpread moves no pod that "
        "runs. New ones go to the subsets in their order; roll the workload out, or scale it, to have them all there"
    )


def parts(plan: Plan) -> tuple[str, ...]:
    memo = plan.memo if isinstance(plan.memo, Memo) else Memo()
    return memo.parts


FORECAST = ForecastFacts(
    resource=WORKLOAD_SPREADS,
    wanted=_wanted,
    serves=availability.is_available,
    owns=_owns,
    is_current=lambda spread, pod: True,
    untouched=_untouched,
    parts=parts,
)
