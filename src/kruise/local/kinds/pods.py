"""Pods as the pod model of `kruise.api.core` describes them, and their subresources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from kruise.api.core import creation, subresources, validation
from kruise.api.core.field_errors import FieldError
from kruise.local.apicore import errors, metadata
from kruise.local.apicore.errors import Json
from kruise.local.apicore.kinds import ActionSubresource, ObjectSubresource, StreamSubresource, Subresource
from kruise.local.apicore.storage import Key
from kruise.local.apicore.subresources import bind, evict
from kruise.local.kinds import checks
from kruise.local.kinds.typed import read_pod

if TYPE_CHECKING:
    from kruise.local.apicore.core import ApiCore, Call

__all__ = ["SUBRESOURCES", "new_pod", "pod", "pod_grace_period", "read_pod"]

_BUDGETS: Final = "poddisruptionbudgets.policy"
_VIOLATED: Final = "Cannot evict pod as it would violate the pod's disruption budget."

# The core looks at these itself, for all kinds.
_CHECKED_BY_THE_CORE: Final = frozenset(
    f"metadata.{name}"
    for name in (
        "name",
        "generateName",
        "namespace",
        "uid",
        "labels",
        "annotations",
        "finalizers",
        "ownerReferences",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    )
)


def _own(found: Sequence[FieldError]) -> Sequence[FieldError]:
    return [
        error
        for error in found
        if error.path not in _CHECKED_BY_THE_CORE
        and not error.path.startswith(("metadata.finalizers[", "metadata.ownerReferences."))
    ]


def pod_grace_period(obj: Json, asked: int | None) -> int:
    """A pod that runs nowhere, or has ended, has nothing to wind up."""
    spec = obj.get("spec") or {}
    period = spec.get("terminationGracePeriodSeconds", 0) if asked is None else asked
    if not spec.get("nodeName") or (obj.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
        return 0
    return 1 if period < 0 else int(period)


def new_pod(obj: Json) -> Json:
    return creation.prepare_new_pod(obj, now=obj["metadata"]["creationTimestamp"])


def pod(new: Json, old: Json | None) -> Sequence[FieldError]:
    # Metadata is written far more often than anything that this could refuse.
    if old is not None and new["spec"] == old["spec"]:
        if _annotations(new) == _annotations(old):
            return ()
        return _own(validation.validate_pod_annotations(new, old))
    return _own(validation.validate_pod(new) if old is None else validation.validate_pod_update(new, old))


def _annotations(obj: Json) -> Json:
    return obj["metadata"].get("annotations") or {}


def _status(new: Json, old: Json | None) -> Sequence[FieldError]:
    return _own(validation.validate_pod_status_update(new, old))


def _resize(new: Json, old: Json | None) -> Sequence[FieldError]:
    return _own(validation.validate_pod_resize(new, old))


def _ephemeral_containers(new: Json, old: Json | None) -> Sequence[FieldError]:
    return _own(validation.validate_ephemeral_containers_update(new, old))


async def _evict(core: ApiCore, call: Call, body: Json) -> Json:
    """An eviction, if the budget of the pod allows it."""

    def ask(asked: Call, target: Json) -> None:
        if _counts(target):
            _spend(core, asked, target)

    return await evict(core, call, body, ask)


def _counts(target: Json) -> bool:
    """Whether the loss of the pod would be a disruption at all."""
    phase = (target.get("status") or {}).get("phase")
    return "deletionTimestamp" not in target["metadata"] and phase not in ("Pending", "Succeeded", "Failed")


def _spend(core: ApiCore, call: Call, target: Json) -> None:
    found = list(_budgets(core, target))
    if not found:
        return
    if len(found) > 1:
        raise errors.plain_failure(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
    key, budget = found[0]
    status = budget["status"]
    healthy, wanted = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    if not _is_ready(target):
        always = budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow"
        if always or (healthy >= wanted > 0):
            return
    name = budget["metadata"]["name"]
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        text = f"The disruption budget {name} is still being processed by the server."
        raise errors.too_many_requests(_VIOLATED, 10, [{"reason": "DisruptionBudget", "message": text}])
    allowed = status.get("disruptionsAllowed", 0)
    if allowed <= 0:
        text = f"The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently"
        raise errors.too_many_requests(_VIOLATED, 0, [{"reason": "DisruptionBudget", "message": text}])
    if call.dry_run:
        return
    moment = metadata.timestamp(core.clock.now())
    gone = {**(status.get("disruptedPods") or {}), target["metadata"]["name"]: moment}
    spent = {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": gone}
    core.storage.put(_BUDGETS, key, {**budget, "status": spent})


def _budgets(core: ApiCore, target: Json) -> Iterator[tuple[Key, Json]]:
    about = target["metadata"]
    for key, budget in core.storage.scan(_BUDGETS, about["namespace"], "", core.storage.version):
        if checks.matches(budget["spec"].get("selector"), about.get("labels")):
            yield key, budget


def _is_ready(target: Json) -> bool:
    conditions = (target.get("status") or {}).get("conditions") or ()
    return any(item.get("type") == "Ready" and item.get("status") == "True" for item in conditions)


SUBRESOURCES: Final[dict[str, Subresource]] = {
    "status": ObjectSubresource(prepare=subresources.pod_with_status, validate=_status),
    "resize": ObjectSubresource(prepare=subresources.resized_pod, validate=_resize),
    "ephemeralcontainers": ObjectSubresource(
        prepare=subresources.pod_with_ephemeral_containers, validate=_ephemeral_containers
    ),
    "eviction": ActionSubresource(create=_evict),
    "binding": ActionSubresource(create=bind),
    "log": StreamSubresource(),
}
