"""Causes that rollouts of several kinds share. What only one kind knows is in its own folder."""

from __future__ import annotations

from kruise.machinery.causes import MINUTE, Act, Cause, Meaning
from kruise.machinery.wording import plural

_ROLLING = "spec.updateStrategy.rollingUpdate"

PARTITION = Meaning(
    code="partition",
    says="the partition keeps it at its old revision",
    act=Act.INTENDED,
    field=f"{_ROLLING}.partition",
    is_wanted=True,
    is_before_turn=True,
)
PAUSED = Meaning(
    code="paused",
    says="the update is paused",
    act=Act.INTENDED,
    field=f"{_ROLLING}.paused",
    is_wanted=True,
    is_before_turn=True,
    remedy="when it is to go on: kruise rollout resume {target}{flags}",
)
ON_DELETE = Meaning(
    code="on-delete",
    says="pods are updated only when somebody deletes them",
    act=Act.INTENDED,
    field="spec.updateStrategy.type",
    is_wanted=True,
    is_before_turn=True,
)
MAX_UNAVAILABLE = Meaning(
    code="max-unavailable",
    says="other pods are down, and no more may be",
    act=Act.NOBODY,
    field=f"{_ROLLING}.maxUnavailable",
    waits_for_others=True,
    is_before_turn=True,
    relief="raise updateStrategy.rollingUpdate.maxUnavailable or maxSurge: nothing else makes room",
)
HOOK = Meaning(
    code="hook",
    says="a lifecycle hook holds it",
    act=Act.SOMEBODY,
    field="spec.lifecycle",
    patience=MINUTE,
    is_wanted=True,
    is_own_step=True,
    remedy="whoever answers this hook must do that; by hand: {by_hand}",
)
GRACE = Meaning(
    code="grace",
    says="the grace period of its in-place update runs",
    act=Act.NOBODY,
    field=f"{_ROLLING}.inPlaceUpdateStrategy.gracePeriodSeconds",
    is_own_step=True,
)
UPDATING = Meaning(
    code="updating",
    says="its in-place update is under way",
    act=Act.NOBODY,
    patience=MINUTE,
    is_own_step=True,
)
RESIZE_REFUSED = Meaning(
    code="resize-refused",
    says="its node can never grant the resources that it asks for now",
    act=Act.SOMEBODY,
    field="spec.template.spec.containers",
    patience=0,
    is_own_step=True,
)
RESIZE_DEFERRED = Meaning(
    code="resize-deferred",
    says="its node has no room for the resources that it asks for now",
    act=Act.SOMEBODY,
    field="spec.template.spec.containers",
    patience=MINUTE,
    is_own_step=True,
)
RESIZE_FAILED = Meaning(
    code="resize-failed",
    says="its node fails to give it the resources that it asks for now",
    act=Act.SOMEBODY,
    field="spec.template.spec.containers",
    patience=MINUTE,
    is_own_step=True,
)
UNSCHEDULED = Meaning(
    code="unscheduled", says="no node takes it", act=Act.SOMEBODY, patience=MINUTE, is_for_want_of_a_node=True
)
IN_PLACE_ONLY = Meaning(
    code="in-place-only",
    says="the change cannot be made in place, and InPlaceOnly forbids anything else",
    act=Act.SOMEBODY,
    field=f"{_ROLLING}.podUpdatePolicy",
    patience=0,
    remedy="take that change back (kruise rollout undo {target}{flags}),"
    " or set updateStrategy.rollingUpdate.podUpdatePolicy to InPlaceIfPossible",
)
STOPPED = Meaning(code="stopped", says="the update stopped at another pod", act=Act.NOBODY, waits_for_others=True)
NEXT = Meaning(code="next", says="others go first", act=Act.NOBODY, waits_for_others=True, is_before_turn=True)
BROKEN_ANNOTATION = Meaning(
    code="broken-annotation", says="an annotation of the engine cannot be read", act=Act.SOMEBODY, patience=0
)
SCALE_LIMIT = Meaning(
    code="scale-limit",
    says="pods are missing, and no more may be created at a time",
    act=Act.NOBODY,
    field="spec.scaleStrategy.maxUnavailable",
    waits_for_others=True,
    is_before_turn=True,
    relief="raise scaleStrategy.maxUnavailable, or leave it out for no limit",
)
DELETION_BUDGET = Meaning(
    code="deletion-budget",
    says="its deletion waits until enough others are available",
    act=Act.NOBODY,
    field=f"{_ROLLING}.maxUnavailable",
    waits_for_others=True,
    is_before_turn=True,
    relief="raise updateStrategy.rollingUpdate.maxUnavailable or maxSurge: nothing else makes room",
)
TERMINATING = Meaning(code="terminating", says="it is on its way out", act=Act.NOBODY)
FAILURE_BUDGET = Meaning(
    code="failure-budget",
    says="too many updated pods failed, so the update stopped by itself",
    act=Act.SOMEBODY,
    field="metadata.annotations[apps.kruise.io/failure-budget]",
    patience=0,
    is_before_turn=True,
)


def kept_old(partition: int) -> Cause:
    """Why a pod stays that a partition keeps, with all others that it keeps."""
    whose = "its" if partition == 1 else "their"
    return PARTITION.cause(
        f"partition keeps {plural(partition, 'pod')} at {whose} old revision",
        remedy="lower updateStrategy.rollingUpdate.partition",
    )


def stands_still(*, is_on_delete: bool) -> Cause:
    """Why no pod of a workload is updated that is paused, or leaves its pods to whoever deletes them."""
    if is_on_delete:
        return ON_DELETE.cause(
            "updateStrategy.type is OnDelete: pods are only replaced",
            remedy="delete the pod when it suits you; its successor has the new revision",
        )
    return PAUSED.cause("the update is paused", remedy="set updateStrategy.rollingUpdate.paused to false")


SHARED = (
    PARTITION,
    PAUSED,
    ON_DELETE,
    MAX_UNAVAILABLE,
    HOOK,
    GRACE,
    UPDATING,
    RESIZE_REFUSED,
    RESIZE_DEFERRED,
    RESIZE_FAILED,
    UNSCHEDULED,
    IN_PLACE_ONLY,
    STOPPED,
    NEXT,
    BROKEN_ANNOTATION,
    SCALE_LIMIT,
    DELETION_BUDGET,
    TERMINATING,
    FAILURE_BUDGET,
)
