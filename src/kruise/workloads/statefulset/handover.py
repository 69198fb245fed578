"""What a StatefulSet of ours and one of Kubernetes have in common."""

from __future__ import annotations

from kruise.api.apps.shared import ON_DELETE, RE_CREATE
from kruise.faces.handover import Handover, by_name

_ROLLING = ("updateStrategy", "rollingUpdate")

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
)
