"""How pods with barriers are watched, and what the feature brings to the manager."""

from __future__ import annotations

from kruise.admission.chain import PodStep
from kruise.api.meta import Key, key_of
from kruise.api.native.config import CONFIG_MAPS
from kruise.api.native.pod import PODS, Pod
from kruise.feature import Feature, PodMutation, Settings
from kruise.machinery.plan import Conclusion, Outcomes, Plan, Result
from kruise.machinery.spec import ControllerSpec, Source, Stores, View
from kruise.sidecars.launch_priority.admission import order
from kruise.sidecars.launch_priority.decide import (
    OPEN,
    Memo,
    Opened,
    Snapshot,
    conclude,
    decide,
    is_concerned,
    levels_of,
)

NAME = "container-launch-priority-controller"
WORKERS = 4


class _Pods:
    """Pods with barriers, and what was opened for them. A manager that starts anew knows of nothing."""

    def __init__(self) -> None:
        self._opened: dict[Key, tuple[str, Opened]] = {}
        """The uid of the pod, and what."""

    def keys(self, old: Pod | None, new: Pod | None, stores: Stores) -> tuple[Key, ...]:
        pod = new if new is not None else old
        if pod is None or not levels_of(pod):
            return ()
        if new is None:  # a pass may be about to note what it has opened for it: another one forgets that
            return (key_of(pod),)
        return (key_of(pod),) if is_concerned(pod) else ()

    def snapshot(self, view: View, key: Key) -> Snapshot | None:
        pods = view.store(PODS)
        pod = pods.get(*key)
        if pod is None or pods.is_terminating(pod) or not is_concerned(pod):
            self._opened.pop(key, None)
            return None
        uid, opened = self._opened.get(key, ("", None))
        return Snapshot(pod=pod, now=view.now, opened=opened if uid == pod.metadata.uid else None)

    def concluded(self, snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
        if plan.memo is not None and (lowest := plan.memo_as(Memo).lowest) is not None:
            for outcome in outcomes.within(OPEN):
                if outcome.action.target.resource == CONFIG_MAPS and outcome.result is Result.DONE:
                    known = snapshot.pod.metadata.uid, Opened(lowest=lowest, at=snapshot.now)
                    self._opened[key_of(snapshot.pod)] = known
        return conclude(snapshot, plan, outcomes)


def controllers(settings: Settings) -> tuple[ControllerSpec[Snapshot], ...]:
    if not settings.gates.get("PodWebhook", True):
        return ()
    pods = _Pods()
    return (
        ControllerSpec(
            name=NAME,
            subject=PODS,
            sources=(Source(PODS, pods.keys),),
            snapshot=pods.snapshot,
            decide=decide,
            conclude=pods.concluded,
            snapshot_type=Snapshot,
            still_holds=lambda before, now: before.metadata.uid == now.metadata.uid and is_concerned(now),
            at_start=is_concerned,
            workers=WORKERS,
        ),
    )


FEATURE = Feature(
    name="launch-priority",
    controllers=controllers,
    pod_mutations=lambda settings: (PodMutation(PodStep.LAUNCH_PRIORITY, order),),
)
