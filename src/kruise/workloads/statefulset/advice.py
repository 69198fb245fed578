"""What is accepted in an advanced StatefulSet although it will not do what its author may expect: warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from kruise.api.apps.shared import ON_DELETE, LifecycleHook
from kruise.api.apps.statefulset import DELETE, ON_POD_ROLLING_UPDATE, StatefulSetSpec
from kruise.api.versions import mapping
from kruise.machinery.codec import struct_fields
from kruise.machinery.wording import listed
from kruise.workloads.shared import advice
from kruise.workloads.shared.ordinals import START_GATE, replicas_of
from kruise.workloads.shared.validation import Candidate
from kruise.workloads.shared.wire import CLAIM_TEMPLATES, ROLLING, SPEC
from kruise.workloads.statefulset.claim_templates import GROWTH_GATE

_HOOK_MEMBERS = tuple(wire_name for _, wire_name, _ in struct_fields(LifecycleHook))


def warnings_of(
    candidate: Candidate[StatefulSetSpec], annotations: Mapping[str, str], gates: Mapping[str, bool]
) -> Iterator[str]:
    """About an object as it was sent, before defaults. `annotations` are those that it had before."""
    spec = candidate.reading
    rolling = spec.update_strategy.rolling_update
    yield advice.of_failure_budget(annotations)
    if rolling is not None:
        yield advice.of_pre_download(ROLLING, rolling.in_place_update_strategy, "a StatefulSet")
    yield from _gates(spec, gates)
    yield _too_many(spec)
    yield from _claim_names(candidate.claim_names)
    yield from _hooks(mapping(candidate.spec.get("lifecycle")))


def _gates(spec: StatefulSetSpec, gates: Mapping[str, bool]) -> Iterator[str]:
    """Settings that take effect only with a gate."""
    growth, path = spec.volume_claim_update_strategy.type, SPEC.child("volumeClaimUpdateStrategy", "type")
    if growth not in ("", ON_DELETE, ON_POD_ROLLING_UPDATE):
        yield f"{path}: {advice.shown(growth)} is unknown and counts as {ON_DELETE}"
    elif growth == ON_POD_ROLLING_UPDATE and not gates.get(GROWTH_GATE, False):
        yield f"{path}: claims grow only where the manager runs with feature gate {GROWTH_GATE}"
    if spec.ordinals is not None and spec.ordinals.start and not gates.get(START_GATE, False):
        path = SPEC.child("ordinals", "start")
        yield f"{path}: ordinals begin at 0 unless the manager runs with feature gate {START_GATE}"
    retention = spec.persistent_volume_claim_retention_policy
    is_off = not gates.get("StatefulSetAutoDeletePVC", True)
    if retention is not None and is_off and DELETE in (retention.when_deleted, retention.when_scaled):
        path = SPEC.child("persistentVolumeClaimRetentionPolicy")
        yield f"{path}: no claim is deleted while the manager runs without feature gate StatefulSetAutoDeletePVC"


def _too_many(spec: StatefulSetSpec) -> str:
    most = replicas_of(spec)
    return f"{SPEC.child('replicas')}: {spec.replicas} counts as {most}" if (spec.replicas or 0) > most else ""


def _claim_names(names: tuple[str, ...]) -> Iterator[str]:
    if doubled := [name for name, times in Counter(names).items() if name and times > 1]:
        yield f"{CLAIM_TEMPLATES}: of several templates of one name, {listed(doubled)}, only the last one counts"


def _hooks(lifecycle: Mapping[str, Any]) -> Iterator[str]:
    """Manifests in the wild have members that no hook ever had (ST-144)."""
    for name, hook in lifecycle.items():
        if others := [member for member in mapping(hook) if member not in _HOOK_MEMBERS]:
            path = SPEC.child("lifecycle", name)
            yield f"{path}: {listed(others)} has no effect: a hook has {listed(_HOOK_MEMBERS)}"
