"""What a forecast asks a WorkloadSpread beside its decisions: which subset has how many pods, and who goes first."""

from __future__ import annotations

from kruise.api.apps.workloadspread import WORKLOAD_SPREADS, WorkloadSpread
from kruise.api.meta import controller_of
from kruise.api.native.pod import Pod, is_active
from kruise.api.native.replica_sets import deployment_of
from kruise.faces.forecast import Around, ForecastFacts
from kruise.inplace import availability
from kruise.machinery.plan import Plan
from kruise.machinery.wording import plural
from kruise.spread.workloadspread.decide import Memo
from kruise.spread.workloadspread.matched import mark_of
from kruise.spread.workloadspread.targets import DEPLOYMENT, owner_of, selector_of, target_of


def _owns(spread: WorkloadSpread, pod: Pod) -> bool:
    """A pod of its workload; those of kinds that nobody here watches bear its mark."""
    target, owner = target_of(spread), controller_of(pod)
    if owner is None or pod.metadata.namespace != target.namespace:
        return False
    if not selector_of(spread).matches(pod.metadata.labels):
        return False
    if owner_of(owner, target.namespace) == target:
        return True
    if target.kind == DEPLOYMENT:
        return deployment_of(pod) == target.name
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
