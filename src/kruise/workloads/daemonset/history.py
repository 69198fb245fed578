"""Revisions of a DaemonSet that hold the same template: one stays, and its pods keep running (DS-24, DS-104)."""

from __future__ import annotations

from kruise.api.native.apps import CONTROLLER_REVISIONS
from kruise.api.native.pod import PODS
from kruise.inplace import keys
from kruise.machinery import plan as plans
from kruise.machinery.plan import Action, Phase, Target, single
from kruise.machinery.revision_names import is_revision, short_hash
from kruise.workloads.daemonset.situation import Situation, twins_of, worn_hash


def merge_twins(situation: Situation) -> tuple[Phase, ...]:
    """Pods of the others get the label of the one that stays, before these go."""
    update, twins = situation.update, twins_of(situation)
    if not twins:
        return ()
    names = {short_hash(item.metadata.name) for item in twins}
    labels = {keys.REVISION_LABEL: short_hash(update.metadata.name)}
    pods = [fact.pod for fact in situation.facts if worn_hash(fact.pod) in names]
    relabel: list[Action] = [
        plans.patch(
            Target.of(PODS, pod),
            {"metadata": {"labels": labels}},
            uid=pod.metadata.uid,
            reason="its revision is a twin",
        )
        for pod in pods
        if not is_revision(pod.metadata.labels.get(keys.REVISION_LABEL, ""), update.metadata.name)
    ]
    remove = [
        plans.delete(
            Target.of(CONTROLLER_REVISIONS, item),
            uid=item.metadata.uid,
            reason="another revision has the same template",
        )
        for item in twins
    ]
    return single("twins", *relabel), single("twins-gone", *remove)
