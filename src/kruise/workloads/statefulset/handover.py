"""What a StatefulSet of ours and one of Kubernetes have in common."""

from __future__ import annotations

from kruise.api.apps.shared import ON_DELETE, RE_CREATE
from kruise.api.apps.statefulset import StatefulSetSpec
from kruise.api.native.ordinals import pod_name
from kruise.faces.handover import Handover, by_name
from kruise.machinery import codec
from kruise.machinery.documents import Json, name_of
from kruise.workloads.shared.ordinals import START_GATE, ordinals_of

_ROLLING = ("updateStrategy", "rollingUpdate")


def pod_names(document: Json, start_counts: bool) -> list[str]:
    """Kubernetes' kind counts from `ordinals.start` on, ours only with a gate (ST-40)."""
    spec = codec.convert(document["spec"], StatefulSetSpec)
    return [pod_name(name_of(document), ordinal) for ordinal in ordinals_of(spec, start_counts=start_counts)]


HANDOVER = Handover(
    same=(
        ("replicas",),
        ("selector",),
        ("template",),
        ("volumeClaimTemplates",),
        ("serviceName",),
        ("podManagementPolicy",),
        ("revisionHistoryLimit",),
        ("persistentVolumeClaimRetentionPolicy",),
        ("ordinals",),
        ("updateStrategy", "type"),
        (*_ROLLING, "partition"),
        (*_ROLLING, "maxUnavailable"),
    ),
    elsewhere=((("minReadySeconds",), (*_ROLLING, "minReadySeconds")),),
    idle={
        (*_ROLLING, "podUpdatePolicy"): (RE_CREATE,),
        (*_ROLLING, "paused"): (False,),
        ("volumeClaimUpdateStrategy", "type"): (ON_DELETE,),
    },
    binding=(("reserveOrdinals",),),
    pod_label=by_name,
    pod_names=pod_names,
    names_gate=START_GATE,
)
