"""Every cause that can be named: what it means and who has to act.

Causes of plans come with the words of their kind; a code that is not here (a kind brought it since) is taken at its
word: with a remedy somebody has to act, without one it goes on by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kruise.reasons.links import Act

_SOMEBODY, _NOBODY, _INTENDED = Act.SOMEBODY, Act.NOBODY, Act.INTENDED


class Meaning(NamedTuple):
    act: Act
    says: str
    remedy: str = ""
    """What to do, in place of what the plan says; {target}, {flags} and {pod} are filled in."""


OF_PLANS: Mapping[str, Meaning] = {
    "partition": Meaning(_INTENDED, "the partition keeps it at its old revision"),
    "paused": Meaning(_INTENDED, "the update is paused", "when it is to go on: kruise rollout resume {target}{flags}"),
    "on-delete": Meaning(_INTENDED, "pods are updated only when somebody deletes them"),
    "max-unavailable": Meaning(_NOBODY, "other pods are down, and no more may be"),
    "hook": Meaning(
        _SOMEBODY,
        "a lifecycle hook holds it",
        "whoever answers this hook must do that; by hand: kubectl edit pod {pod}{flags}",
    ),
    "grace": Meaning(_NOBODY, "the grace period of its in-place update runs"),
    "updating": Meaning(_NOBODY, "its in-place update is under way"),
    "unscheduled": Meaning(_SOMEBODY, "no node takes it"),
    "in-place-only": Meaning(
        _SOMEBODY,
        "the change cannot be made in place, and InPlaceOnly forbids anything else",
        "take that change back (kruise rollout undo {target}{flags}),"
        " or set updateStrategy.rollingUpdate.podUpdatePolicy to InPlaceIfPossible",
    ),
    "stopped": Meaning(_NOBODY, "the update stopped at another pod"),
    "next": Meaning(_NOBODY, "others go first"),
    "surge": Meaning(_NOBODY, "it is one too many, and goes when the others are available"),
    "to-delete": Meaning(_NOBODY, "it is about to be deleted"),
    "broken-annotation": Meaning(_SOMEBODY, "an annotation of the engine cannot be read"),
    "scale-limit": Meaning(_NOBODY, "pods are missing, and no more may be created at a time"),
    "preparing-delete": Meaning(_NOBODY, "pods that were chosen before go first"),
    "deletion-budget": Meaning(_NOBODY, "its deletion waits until enough others are available"),
    "terminating": Meaning(_NOBODY, "it is on its way out"),
    "failure-budget": Meaning(_SOMEBODY, "too many updated pods failed, so the update stopped by itself"),
}

OF_PODS: Mapping[str, Meaning] = {
    "image-pull": Meaning(_SOMEBODY, "an image cannot be had"),
    "crash-loop": Meaning(_SOMEBODY, "a container ends again and again"),
    "container-error": Meaning(_SOMEBODY, "a container cannot be made or started"),
    "not-starting": Meaning(_SOMEBODY, "the node cannot start the pod: a volume, its sandbox, ..."),
    "starting": Meaning(_NOBODY, "it is being started"),
    "probe": Meaning(_SOMEBODY, "a container runs, but its probe fails"),
    "readiness-gate": Meaning(_SOMEBODY, "a readiness gate is shut"),
    "scheduling-gate": Meaning(_SOMEBODY, "a scheduling gate holds it"),
    "min-ready": Meaning(_NOBODY, "it is ready, but not for minReadySeconds yet"),
    "lifecycle-state": Meaning(_NOBODY, "it is in a lifecycle state in which it does not serve"),
    "finished": Meaning(_SOMEBODY, "it has ended, and nothing restarts it"),
    "node-not-ready": Meaning(_SOMEBODY, "its node does not answer"),
    "node-gone": Meaning(_SOMEBODY, "its node is gone"),
    "not-ready": Meaning(_SOMEBODY, "it is not ready, for a reason that the pod does not tell"),
}

OF_WORKLOADS: Mapping[str, Meaning] = {
    "manager-down": Meaning(_SOMEBODY, "no manager is at work"),
    "not-observed": Meaning(_NOBODY, "the manager has not looked at the newest spec yet"),
    "create-refused": Meaning(_SOMEBODY, "pods are refused: a quota, a webhook, an invalid template"),
    "update-refused": Meaning(_SOMEBODY, "changes of pods are refused"),
    "creating": Meaning(_NOBODY, "pods are missing and about to be created"),
    "moving": Meaning(_NOBODY, "the manager is about to change it"),
    "deleting": Meaning(_NOBODY, "the workload itself is being deleted"),
    "old-template": Meaning(_NOBODY, "Kubernetes' own controller has not replaced it yet"),
}

CODES: Mapping[str, Meaning] = {**OF_PLANS, **OF_PODS, **OF_WORKLOADS}

REMARKS: Mapping[str, str] = {
    "deadline-exceeded": "the progress deadline is over; that stops nothing by itself",
    "not-readable": "something could not be read, so the story may lack a part",
}


def act_of(code: str, remedy: str) -> Act:
    known = CODES.get(code)
    if known is not None:
        return known.act
    return Act.SOMEBODY if remedy else Act.NOBODY
