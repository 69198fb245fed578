"""A CloneSet as admission reads it: both versions under one set of names. A wrong type is reported with its path.

v1alpha1 has the settings of a rollout beside the type of the strategy, v1beta1 below `rollingUpdate`; apart from that
they are judged alike.
"""

from __future__ import annotations

import dataclasses

from kruise.api.apps import cloneset, cloneset_v1alpha1
from kruise.api.apps.cloneset import CloneSetRollout
from kruise.api.core.field_errors import Path
from kruise.api.versions import OLDER
from kruise.machinery.codec import Raw
from kruise.workloads.shared.wire import ROLLING, STRATEGY, read_spec


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The parts of a spec that are judged by themselves."""

    is_v1alpha1: bool
    replicas: int
    type: str
    """Of the update strategy, as it is spelled in this version."""
    policy: str
    """How pods are updated: the pod update policy, in v1alpha1 the type itself."""
    rollout: CloneSetRollout | None
    rollout_path: Path
    scale: cloneset.CloneSetScaleStrategy | cloneset_v1alpha1.CloneSetScaleStrategy
    min_ready_seconds: int
    progress_deadline_seconds: int | None


def read(document: bytes | Raw, version: str) -> Reading:
    """Read an object of this version. Raises MisfitError for a value of the wrong type, templates left aside."""
    if version == OLDER:
        return _flat(read_spec(document, cloneset_v1alpha1.CloneSetSpec))
    return _nested(read_spec(document, cloneset.CloneSetSpec))


def _flat(spec: cloneset_v1alpha1.CloneSetSpec) -> Reading:
    strategy = spec.update_strategy
    return Reading(
        is_v1alpha1=True,
        replicas=1 if spec.replicas is None else spec.replicas,
        type=strategy.type,
        policy=strategy.type,
        rollout=strategy,
        rollout_path=STRATEGY,
        scale=spec.scale_strategy,
        min_ready_seconds=spec.min_ready_seconds,
        progress_deadline_seconds=spec.progress_deadline_seconds,
    )


def _nested(spec: cloneset.CloneSetSpec) -> Reading:
    rolling = spec.update_strategy.rolling_update
    return Reading(
        is_v1alpha1=False,
        replicas=1 if spec.replicas is None else spec.replicas,
        type=spec.update_strategy.type,
        policy=rolling.pod_update_policy if rolling is not None else "",
        rollout=rolling,
        rollout_path=ROLLING,
        scale=spec.scale_strategy,
        min_ready_seconds=spec.min_ready_seconds,
        progress_deadline_seconds=spec.progress_deadline_seconds,
    )
