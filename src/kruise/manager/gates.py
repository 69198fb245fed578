"""Feature gates: the table, the syntax of `--feature-gates`, and what one gate forces upon another."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import NamedTuple


class Stage(enum.Enum):
    ALPHA = "AllAlpha"
    BETA = "AllBeta"


class Gate(NamedTuple):
    default: bool
    stage: Stage
    effect: str


_ALPHA, _BETA = Stage.ALPHA, Stage.BETA

GATES: Mapping[str, Gate] = {
    "PodWebhook": Gate(True, _BETA, "pod admission webhooks"),
    "KruiseDaemon": Gate(True, _BETA, "features that need the node daemon"),
    "DaemonWatchingPod": Gate(True, _BETA, "the daemon watches the pods of its node"),
    "CloneSetShortHash": Gate(False, _ALPHA, "only the short hash in the revision label of CloneSet pods"),
    "KruisePodReadinessGate": Gate(False, _ALPHA, "readiness gate KruisePodReady for all new pods"),
    "PreDownloadImageForInPlaceUpdate": Gate(False, _ALPHA, "CloneSet and StatefulSet pre-pull new images"),
    "PreDownloadImageForDaemonSetUpdate": Gate(False, _ALPHA, "DaemonSet pre-pulls new images"),
    "CloneSetPartitionRollback": Gate(False, _ALPHA, "raising partition rolls pods back"),
    "ResourcesDeletionProtection": Gate(False, _BETA, "the deletion protection label is enforced"),
    "DeletionProtectionForCRDCascadingGate": Gate(False, _ALPHA, "cascading protection of CRDs"),
    "WorkloadSpread": Gate(True, _BETA, "WorkloadSpread controller and pod hooks"),
    "PodUnavailableBudgetDeleteGate": Gate(True, _BETA, "budgets guard deletes and evictions"),
    "PodUnavailableBudgetUpdateGate": Gate(False, _ALPHA, "budgets guard in-place updates"),
    "TemplateNoDefaults": Gate(False, _ALPHA, "no pod or claim defaults are written into templates"),
    "InPlaceUpdateEnvFromMetadata": Gate(True, _BETA, "in-place update of env taken from labels and annotations"),
    "StatefulSetAutoDeletePVC": Gate(True, _BETA, "claim retention policy of StatefulSet"),
    "StatefulSetStartOrdinal": Gate(False, _ALPHA, "start ordinal of StatefulSet"),
    "StatefulSetAutoResizePVCGate": Gate(False, _ALPHA, "claims grow with their template"),
    "PodIndexLabel": Gate(True, _BETA, "ordinal label on StatefulSet pods"),
    "SidecarSetPatchPodMetadataDefaultsAllowed": Gate(False, _ALPHA, "SidecarSet may patch any pod annotation"),
    "SidecarTerminator": Gate(False, _ALPHA, "sidecars stop when the main containers of a job pod are done"),
    "PodProbeMarkerGate": Gate(True, _BETA, "custom probes"),
    "EnablePodProbeMarkerOnServerless": Gate(False, _ALPHA, "probes are written into pods on virtual nodes"),
    "CloneSetEventHandlerOptimization": Gate(False, _ALPHA, "fewer CloneSet reconciles on pod updates"),
    "PreparingUpdateAsUpdate": Gate(False, _ALPHA, "pods preparing for update count as updated while scaling"),
    "ImagePullJobGate": Gate(False, _ALPHA, "image pull jobs"),
    "ResourceDistributionGate": Gate(False, _BETA, "ResourceDistribution"),
    "EnhancedLivenessProbe": Gate(False, _ALPHA, "liveness probes carried out by the node daemon"),
    "RecreatePodWhenChangeVCTInCloneSetGate": Gate(False, _ALPHA, "claim template changes force recreation"),
    "EnableExternalCerts": Gate(False, _ALPHA, "webhook certificates come from outside"),
    "ForceDeleteTimeoutExpectationGate": Gate(False, _ALPHA, "no effect here: there are no expectations"),
    "InPlaceWorkloadVerticalScaling": Gate(False, _ALPHA, "workloads resize pods in place"),
    "InPlacePodVerticalScaling": Gate(False, _ALPHA, "the cluster can resize pods in place"),
    "EnableSortSidecarContainerByName": Gate(False, _ALPHA, "injected sidecars sorted by name"),
    "DefaultHostNetworkHostPortsInPodTemplates": Gate(False, _ALPHA, "hostPort defaulted inside templates"),
    "DaemonSetPruneIneligibleNodes": Gate(False, _ALPHA, "pods on nodes that left do not use up maxUnavailable"),
}

# Spelled so in published documents; the short names are the real ones.
ALIASES: Mapping[str, str] = {
    "EnhancedLivenessProbeGate": "EnhancedLivenessProbe",
    "ForceDeleteTimeoutExpectationFeatureGate": "ForceDeleteTimeoutExpectationGate",
}

WITHOUT_EFFECT: Mapping[str, str] = {
    "ForceDeleteTimeoutExpectationGate": "controllers see their own writes, so there are no expectations to time out",
}

FOR_TRYING_OUT: Mapping[str, bool] = dict.fromkeys(
    (
        "ImagePullJobGate",
        "PreDownloadImageForInPlaceUpdate",
        "PreDownloadImageForDaemonSetUpdate",
        "StatefulSetStartOrdinal",
        "StatefulSetAutoResizePVCGate",
        "ResourceDistributionGate",
        "SidecarTerminator",
        "ResourcesDeletionProtection",
        "DeletionProtectionForCRDCascadingGate",
        "PodUnavailableBudgetUpdateGate",
    ),
    True,
)
"""Gates that a local cluster has on, though they are off by default: what is there can be tried at once."""

_NEEDS_POD_WEBHOOK = (
    "KruisePodReadinessGate",
    "PodUnavailableBudgetDeleteGate",
    "PodUnavailableBudgetUpdateGate",
    "WorkloadSpread",
    "SidecarSetPatchPodMetadataDefaultsAllowed",
    "EnhancedLivenessProbe",
    "EnablePodProbeMarkerOnServerless",
)
_NEEDS_DAEMON = (
    "PreDownloadImageForInPlaceUpdate",
    "DaemonWatchingPod",
    "InPlaceUpdateEnvFromMetadata",
    "PreDownloadImageForDaemonSetUpdate",
    "PodProbeMarkerGate",
    "SidecarTerminator",
    "ImagePullJobGate",
    "EnhancedLivenessProbe",
)


class Relation(NamedTuple):
    """What some gates force upon others (MGR-11)."""

    any_of: tuple[str, ...]
    are_on: bool
    """True: one of them is on. False: none of them is."""
    gates: tuple[str, ...]
    then_on: bool


RELATIONS: tuple[Relation, ...] = (
    Relation(("PodWebhook",), False, _NEEDS_POD_WEBHOOK, False),
    Relation(("KruiseDaemon",), False, _NEEDS_DAEMON, False),
    Relation(
        ("PreDownloadImageForInPlaceUpdate", "PreDownloadImageForDaemonSetUpdate"), True, ("ImagePullJobGate",), True
    ),
    Relation(("ResourcesDeletionProtection",), False, ("DeletionProtectionForCRDCascadingGate",), False),
)
"""In order: later ones see what earlier ones did."""


class FeatureGateError(ValueError):
    """`--feature-gates` cannot be understood."""


def parse(text: str) -> dict[str, bool]:
    """`Name=true,Name=false`; the stage switches `AllAlpha` and `AllBeta` are kept as they are."""
    chosen: dict[str, bool] = {}
    for part in text.split(","):
        if not part.strip():
            continue
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise FeatureGateError(f"feature gate {name!r} needs a value: write {name}=true or {name}=false")
        name = ALIASES.get(name, name)
        if name not in GATES and name not in {stage.value for stage in Stage}:
            known = ", ".join(sorted([*GATES, *(stage.value for stage in Stage)]))
            raise FeatureGateError(f"unknown feature gate {name!r}; known gates: {known}")
        chosen[name] = _boolean(name, value)
    return chosen


def resolve(chosen: Mapping[str, bool], *, custom_resource_enable: str = "") -> dict[str, bool]:
    """The value of every gate: defaults, stage switches, explicit choices, then the forced relations.

    `custom_resource_enable` is the legacy list of kinds: without SidecarSet in it, `PodWebhook` defaults to off.
    """
    kinds = {kind.strip() for kind in custom_resource_enable.split(",") if kind.strip()}
    gates: dict[str, bool] = {}
    for name, gate in GATES.items():
        default = gate.default and not (name == "PodWebhook" and kinds and "SidecarSet" not in kinds)
        gates[name] = chosen.get(name, chosen.get(gate.stage.value, default))
    for relation in RELATIONS:
        if any(gates[name] for name in relation.any_of) == relation.are_on:
            gates.update(dict.fromkeys(relation.gates, relation.then_on))
    return gates


_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})


def _boolean(name: str, value: str) -> bool:
    if value in _TRUE:
        return True
    if value in _FALSE:
        return False
    raise FeatureGateError(f"feature gate {name}={value}: not a boolean, use true or false")
