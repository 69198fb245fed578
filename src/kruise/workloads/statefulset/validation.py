"""What an advanced StatefulSet may not be, and may not become (ST-29 to ST-33). Pure.

Both versions are judged as `v1beta1`, where every field has the same path.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kruise.api.apps.shared import (
    IN_PLACE_ONLY,
    IN_PLACE_POLICIES,
    ON_DELETE,
    POD_UPDATE_POLICIES,
    ROLLING_UPDATE,
    UPDATE_STRATEGIES,
    IntOrPercent,
)
from kruise.api.apps.statefulset import (
    ON_POD_ROLLING_UPDATE,
    PARALLEL,
    POD_MANAGEMENT_POLICIES,
    RETENTION_POLICIES,
    RollingUpdateStatefulSetStrategy,
    StatefulSetSpec,
)
from kruise.api.core import formats
from kruise.api.core.field_errors import FieldError, Path, invalid, not_supported, required
from kruise.api.core.validation import common
from kruise.api.native.storage import StorageClass
from kruise.inplace import order_rules
from kruise.inplace.keys import IN_PLACE_READY
from kruise.machinery import intorpercent
from kruise.workloads.shared import validation
from kruise.workloads.shared.ordinals import range_of
from kruise.workloads.shared.validation import (
    Candidate,
    images_only,
    immutable,
    not_negative,
    quoted,
    selector_and_labels,
    template,
)
from kruise.workloads.shared.wire import ROLLING, SPEC, STRATEGY, TEMPLATE
from kruise.workloads.statefulset import claim_templates

Errors = Iterator[FieldError]
StatefulSetCandidate = Candidate[StatefulSetSpec]

KIND = "StatefulSet"
MAX_MIN_READY_SECONDS = 300
_MUTABLE = (
    "replicas",
    "ordinals",
    "template",
    "reserveOrdinals",
    "lifecycle",
    "revisionHistoryLimit",
    "scaleStrategy",
    "updateStrategy",
    "volumeClaimTemplates",
    "volumeClaimUpdateStrategy",
    "persistentVolumeClaimRetentionPolicy",
)


def problems(
    new: StatefulSetCandidate,
    old: StatefulSetCandidate | None = None,
    *,
    allow_privileged: bool = True,
    storage_classes: Sequence[StorageClass] | None = None,
) -> tuple[FieldError, ...]:
    """Everything that is wrong with a new StatefulSet, or with the change of one.

    `storage_classes` are those of the cluster; None where claims do not grow (gate StatefulSetAutoResizePVCGate).
    """
    spec = functools.partial(_spec, allow_privileged=allow_privileged, storage_classes=storage_classes)
    return validation.problems(new, old, spec, name=formats.dns_label)


def _spec(
    new: StatefulSetCandidate,
    old: StatefulSetCandidate | None,
    *,
    allow_privileged: bool,
    storage_classes: Sequence[StorageClass] | None,
) -> Errors:
    spec, known = new.reading, old.reading if old is not None else None
    yield from not_negative(SPEC, "replicas", spec.replicas)
    yield from selector_and_labels(new, KIND)
    if old is None or (new.template, new.claim_names) != (old.template, old.claim_names):
        yield from claim_templates.names(new.claim_names)
        volumes = claim_templates.volumes(new.claim_names)
        yield from template(new, KIND, allow_privileged=allow_privileged, claim_volumes=volumes)
    if known is None or _strategy_terms(spec) != _strategy_terms(known):
        yield from _strategy(spec)
    if old is None or (_policy(spec), new.template) != (_policy(old.reading), old.template):
        yield from _readiness_gate(_policy(spec), new.template)
    if known is None or spec.reserve_ordinals != known.reserve_ordinals:
        yield from _reserve_ordinals(spec.reserve_ordinals)
    if known is None or spec.persistent_volume_claim_retention_policy != known.persistent_volume_claim_retention_policy:
        yield from _retention(spec)
    if known is None or spec.ordinals != known.ordinals:
        yield from not_negative(SPEC.child("ordinals"), "start", spec.ordinals.start if spec.ordinals else None)
    if known is None or spec.revision_history_limit != known.revision_history_limit:
        yield from not_negative(SPEC, "revisionHistoryLimit", spec.revision_history_limit)
    if old is not None:
        yield from immutable(new.spec, old.spec, KIND, _MUTABLE)
        if _policy(spec) == IN_PLACE_ONLY:
            yield from images_only(new.template, old.template)
        if storage_classes is not None and spec.volume_claim_update_strategy.type == ON_POD_ROLLING_UPDATE:
            yield from claim_templates.growth(new.spec, old.spec, storage_classes)


# The update strategy


def _policy(spec: StatefulSetSpec) -> str:
    rolling = spec.update_strategy.rolling_update
    return rolling.pod_update_policy if rolling is not None else ""


def _strategy_terms(spec: StatefulSetSpec) -> tuple[Any, ...]:
    """What the judgement of a strategy depends on."""
    return (spec.pod_management_policy, spec.update_strategy, spec.scale_strategy)


def _strategy(spec: StatefulSetSpec) -> Errors:
    management, update = spec.pod_management_policy, spec.update_strategy
    if management not in POD_MANAGEMENT_POLICIES:
        path = SPEC.child("podManagementPolicy")
        yield invalid(path, management, f"must be {quoted(POD_MANAGEMENT_POLICIES)}")
    if update.type not in UPDATE_STRATEGIES:
        yield invalid(STRATEGY, {"type": update.type}, f"type must be {quoted(UPDATE_STRATEGIES)}")
    elif update.type == ON_DELETE and update.rolling_update is not None:
        yield invalid(ROLLING, update.rolling_update, f"only allowed for updateStrategy '{ROLLING_UPDATE}': remove it")
    elif update.type == ROLLING_UPDATE and update.rolling_update is not None:
        yield from _rolling_update(update.rolling_update, management)
    if spec.scale_strategy is not None and spec.scale_strategy.max_unavailable is not None:
        path = SPEC.child("scaleStrategy", "maxUnavailable")
        yield from _max_unavailable(path, spec.scale_strategy.max_unavailable, management)


def _rolling_update(rolling: RollingUpdateStatefulSetStrategy, management: str) -> Errors:
    yield from not_negative(ROLLING, "partition", rolling.partition)
    yield from not_negative(ROLLING, "minReadySeconds", rolling.min_ready_seconds)
    if rolling.min_ready_seconds is not None and rolling.min_ready_seconds > MAX_MIN_READY_SECONDS:
        complaint = f"must be no more than {MAX_MIN_READY_SECONDS} seconds"
        yield invalid(ROLLING.child("minReadySeconds"), rolling.min_ready_seconds, complaint)
    if rolling.max_unavailable is None:
        yield required(ROLLING.child("maxUnavailable"))
    else:
        yield from _max_unavailable(ROLLING.child("maxUnavailable"), rolling.max_unavailable, management)
    if rolling.pod_update_policy not in POD_UPDATE_POLICIES:
        complaint = f"must be {quoted(POD_UPDATE_POLICIES)}"
        yield invalid(ROLLING.child("podUpdatePolicy"), rolling.pod_update_policy, complaint)
    if rolling.unordered_update is not None:
        path = ROLLING.child("unorderedUpdate")
        if management != PARALLEL:
            yield required(path, f"unorderedUpdate can only work with {PARALLEL} PodManagementPolicyType")
        yield from order_rules.priority(path.child("priorityStrategy"), rolling.unordered_update.priority_strategy)


def _max_unavailable(path: Path, value: IntOrPercent, management: str) -> Errors:
    """At least one pod. More than 100 % is accepted: it is all of them."""
    if wrong := intorpercent.problems(value):
        yield from (invalid(path, value, complaint) for complaint in wrong)
    elif not value or (isinstance(value, str) and not value.strip("0%")):
        yield invalid(path, value, "should not be less than 1")
    if management != PARALLEL and value != 1:
        yield invalid(path, value, f"can only work with {PARALLEL} PodManagementPolicyType, otherwise it must be 1")


def _readiness_gate(policy: str, wanted: Any) -> Errors:
    """Without the gate nobody could tell that a pod is being updated in place."""
    if policy not in IN_PLACE_POLICIES:
        return
    spec = wanted.get("spec") if isinstance(wanted, Mapping) else None
    gates = spec.get("readinessGates") if isinstance(spec, Mapping) else None
    types = [gate.get("conditionType") for gate in gates or () if isinstance(gate, Mapping)]
    if IN_PLACE_READY not in types:
        complaint = f"must contains {IN_PLACE_READY} when podUpdatePolicy is {policy}"
        yield invalid(TEMPLATE.child("spec", "readinessGates"), gates or [], complaint)


# The rest


def _reserve_ordinals(ordinals: Sequence[IntOrPercent]) -> Errors:
    for position, ordinal in enumerate(ordinals):
        path = SPEC.child("reserveOrdinals").at(position)
        if isinstance(ordinal, int):
            yield from common.non_negative(path, ordinal)
            continue
        found = range_of(ordinal)
        if found is None:
            yield invalid(path, ordinal, 'must be a number, or a range of two numbers, such as 3 or "3-5"')
        elif found[0] > found[1]:
            yield invalid(path, ordinal, "must not end before it begins")


def _retention(spec: StatefulSetSpec) -> Errors:
    policy = spec.persistent_volume_claim_retention_policy
    if policy is None:
        return
    path = SPEC.child("persistentVolumeClaimRetentionPolicy")
    for name, value in (("whenDeleted", policy.when_deleted), ("whenScaled", policy.when_scaled)):
        if value not in RETENTION_POLICIES:
            yield not_supported(path.child(name), value, RETENTION_POLICIES)
