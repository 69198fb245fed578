"""What a DaemonSet of ours and one of Kubernetes have in common."""

from __future__ import annotations

from kruise.api.apps.daemonset import STANDARD
from kruise.faces.handover import Handover, by_hash
from kruise.workloads.daemonset.numbers import DEFAULT_BURST

_ROLLING = ("updateStrategy", "rollingUpdate")

HANDOVER = Handover(
    same=(
        ("selector",),
        ("template",),
        ("minReadySeconds",),
        ("revisionHistoryLimit",),
        ("updateStrategy", "type"),
        (*_ROLLING, "maxUnavailable"),
        (*_ROLLING, "maxSurge"),
    ),
    idle={
        (*_ROLLING, "rollingUpdateType"): (STANDARD,),
        (*_ROLLING, "paused"): (False,),
        (*_ROLLING, "partition"): (0, "0%"),
        ("burstReplicas",): (DEFAULT_BURST,),
        ("scaleStrategy", "partitionedScaling"): (False,),
    },
    pod_label=by_hash,
)
