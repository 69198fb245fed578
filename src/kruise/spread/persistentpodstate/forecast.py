"""What a forecast asks a PersistentPodState beside its decisions: which pods it remembers, and where they come back."""

from __future__ import annotations

from kruise.api.apps.persistentpodstate import PERSISTENT_POD_STATES, PersistentPodState
from kruise.api.native.pod import Pod, is_active
from kruise.faces.forecast import Around, ForecastFacts
from kruise.inplace import availability
from kruise.machinery.plan import Plan
from kruise.machinery.wording import plural
from kruise.spread.persistentpodstate.decide import Memo
from kruise.spread.persistentpodstate.targets import owner_of, target_of


def _owns(state: PersistentPodState, pod: Pod) -> bool:
    return owner_of(pod) == target_of(state)


def _wanted(state: PersistentPodState, around: Around) -> int:
    return sum(_owns(state, pod) and is_active(pod) for pod in around.pods)


def _untouched(state: PersistentPodState, around: Around) -> str:
    number = _wanted(state, around)
    if not number:
        return ""
    stays = plural(number, "pod", "stays as it is", "stay as they are")
    return f"{stays}: places are given to pods that are made again under a name that is remembered"


def parts(plan: Plan) -> tuple[str, ...]:
    memo = plan.memo if isinstance(plan.memo, Memo) else Memo()
    states = memo.status.pod_states if memo.status is not None else {}
    return tuple(
        f"{name}: {one.node_name}"
        + (f" ({', '.join(f'{key}={value}' for key, value in sorted(labels.items()))})" if labels else "")
        for name, one in sorted(states.items())
        for labels in (one.node_topology_labels,)
    )


FORECAST = ForecastFacts(
    resource=PERSISTENT_POD_STATES,
    wanted=_wanted,
    serves=availability.is_available,
    owns=_owns,
    is_current=lambda state, pod: True,
    untouched=_untouched,
    parts=parts,
    part="Pod",
)
