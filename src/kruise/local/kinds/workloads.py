"""What the API server refuses about Deployments, ReplicaSets, StatefulSets, DaemonSets and ControllerRevisions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kruise.api.core import field_errors
from kruise.api.core.field_errors import Path, forbidden, invalid, not_supported, required
from kruise.api.core.validation import common, validate_claim_spec
from kruise.api.core.validation.common import Errors, Struct
from kruise.api.native.daemon_pods import GENERATION_ANNOTATION
from kruise.local.apicore.errors import Json
from kruise.local.kinds import checks
from kruise.local.kinds.checks import SPEC, STATUS

_NO_MATCH: Final = "`selector` does not match template `labels`"


def _selector(spec: Struct, workload: str) -> Errors:
    selector = spec.get("selector")
    if selector is None:
        yield required(SPEC.child("selector"))
        return
    yield from common.label_selector(SPEC.child("selector"), selector)
    if checks.is_empty_selector(selector):
        yield invalid(SPEC.child("selector"), selector, f"empty selector is invalid for {workload}")


def _pods(spec: Struct, workload: str, *, bad_selector: str | None, **more: Any) -> Errors:
    """The template, if the selector can be understood, and that the two belong together."""
    path, selector, template = SPEC.child("template"), spec.get("selector"), spec["template"]
    labels = template["metadata"].get("labels")
    matched = checks.matches(selector, labels)
    if matched is None and bad_selector is not None:
        yield invalid(SPEC.child("selector"), selector, bad_selector)
        return
    if matched is False and not checks.is_empty_selector(selector):
        yield invalid(path.child("metadata", "labels"), labels, _NO_MATCH)
    yield from checks.template(path, template, **more)
    if template["spec"].get("activeDeadlineSeconds") is not None:
        text = f"activeDeadlineSeconds in {workload} is not Supported"
        yield forbidden(path.child("spec", "activeDeadlineSeconds"), text)


def deployment(new: Struct, old: Struct | None) -> Errors:
    spec = new["spec"]
    yield from checks.non_negative_fields(SPEC, spec, ("replicas",))
    yield from _selector(spec, "deployment")
    yield from _pods(spec, "ReplicaSet", bad_selector="invalid label selector")
    yield from _deployment_strategy(SPEC.child("strategy"), spec["strategy"])
    yield from checks.non_negative_fields(SPEC, spec, ("minReadySeconds", "revisionHistoryLimit"))
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None:
        path = SPEC.child("progressDeadlineSeconds")
        yield from common.non_negative(path, deadline)
        if deadline <= spec.get("minReadySeconds", 0):
            yield invalid(path, deadline, "must be greater than minReadySeconds")
    if old is not None:
        yield from checks.immutable_fields(SPEC, spec, old["spec"], ("selector",))


def _deployment_strategy(path: Path, strategy: Struct) -> Errors:
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    where = path.child("rollingUpdate")
    if kind == "Recreate":
        if rolling is not None:
            yield forbidden(where, "may not be specified when strategy `type` is 'Recreate'")
    elif kind != "RollingUpdate":
        yield not_supported(path, {"Type": kind, "RollingUpdate": rolling}, ("Recreate", "RollingUpdate"))
    elif rolling is not None:
        unavailable, surge = rolling["maxUnavailable"], rolling["maxSurge"]
        yield from checks.int_or_percent(where.child("maxUnavailable"), unavailable)
        yield from checks.int_or_percent(where.child("maxSurge"), surge)
        if checks.amount(unavailable) == 0 and checks.amount(surge) == 0:
            yield invalid(where.child("maxUnavailable"), unavailable, "may not be 0 when `maxSurge` is 0")
        yield from checks.at_most_all(where.child("maxUnavailable"), unavailable)


def replica_set(new: Struct, old: Struct | None) -> Errors:
    spec = new["spec"]
    yield from checks.non_negative_fields(SPEC, spec, ("replicas", "minReadySeconds"))
    yield from _selector(spec, "deployment")
    yield from _pods(spec, "ReplicaSet", bad_selector="invalid label selector")
    if old is not None:
        yield from checks.immutable_fields(SPEC, spec, old["spec"], ("selector",))


_STATEFUL_CHANGES: Final = (
    "replicas",
    "template",
    "updateStrategy",
    "minReadySeconds",
    "ordinals",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
)
_STATEFUL_REFUSAL: Final = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


def stateful_set(new: Struct, old: Struct | None) -> Errors:
    spec = new["spec"]
    policy = spec["podManagementPolicy"]
    if policy not in ("OrderedReady", "Parallel"):
        yield invalid(SPEC.child("podManagementPolicy"), policy, "must be 'OrderedReady' or 'Parallel'")
    yield from _stateful_strategy(SPEC.child("updateStrategy"), spec["updateStrategy"])
    retention = spec.get("persistentVolumeClaimRetentionPolicy")
    if retention is not None:
        for name in ("whenDeleted", "whenScaled"):
            path = SPEC.child("persistentVolumeClaimRetentionPolicy", name)
            yield from checks.one_of(path, retention.get(name, ""), ("Retain", "Delete"))
    claims = spec.get("volumeClaimTemplates") or ()
    if old is None:
        for position, claim in enumerate(claims):
            yield from validate_claim_spec(claim["spec"], SPEC.child("volumeClaimTemplates").at(position).child("spec"))
    yield from checks.non_negative_fields(SPEC, spec, ("replicas", "minReadySeconds"))
    start = (spec.get("ordinals") or {}).get("start", 0)
    yield from common.non_negative(SPEC.child("ordinals", "start"), start)
    if old is None and spec.get("serviceName"):
        yield from checks.dns_label(SPEC.child("serviceName"), spec["serviceName"])
    yield from _selector(spec, "statefulset")
    yield from _stateful_pods(spec, [claim["metadata"].get("name", "") for claim in claims])
    if old is not None:
        before = {name: value for name, value in old["spec"].items() if name not in _STATEFUL_CHANGES}
        after = {name: value for name, value in spec.items() if name not in _STATEFUL_CHANGES}
        if before != after:
            yield forbidden(SPEC, _STATEFUL_REFUSAL)


def _stateful_pods(spec: Struct, claims: list[str]) -> Errors:
    """Names and volumes that the controller gives to each pod are not looked at."""
    template = spec["template"]
    pods = {name: value for name, value in template["spec"].items() if name not in ("subdomain", "hostname")}
    if claims and pods.get("volumes"):
        pods["volumes"] = [volume for volume in pods["volumes"] if volume["name"] not in claims]
    looked_at = {**spec, "template": {**template, "spec": pods}}
    yield from _pods(looked_at, "StatefulSet", bad_selector="", claim_volumes=claims)


def _stateful_strategy(path: Path, strategy: Struct) -> Errors:
    kind, rolling = strategy["type"], strategy.get("rollingUpdate")
    if kind not in ("OnDelete", "RollingUpdate"):
        yield invalid(path, {"Type": kind, "RollingUpdate": rolling}, "must be 'RollingUpdate' or 'OnDelete'")
    elif rolling is not None and kind == "OnDelete":
        shown = {"Partition": rolling.get("partition", 0), "MaxUnavailable": rolling.get("maxUnavailable")}
        yield invalid(path.child("rollingUpdate"), shown, "only allowed for updateStrategy 'RollingUpdate'")
    elif rolling is not None:
        yield from common.non_negative(path.child("rollingUpdate", "partition"), rolling.get("partition", 0))


def daemon_set(new: Struct, old: Struct | None) -> Errors:
    spec = new["spec"]
    if old is not None:
        yield from checks.immutable_fields(SPEC, spec, old["spec"], ("selector",))
    selector = spec.get("selector")
    if selector is not None:
        yield from common.label_selector(SPEC.child("selector"), selector)
    if checks.is_empty_selector(selector):
        yield invalid(SPEC.child("selector"), selector, "empty selector is invalid for daemonset")
    yield from _pods(spec, "DaemonSet", bad_selector=None)
    yield from checks.non_negative_fields(SPEC, spec, ("minReadySeconds", "revisionHistoryLimit"))
    yield from _daemon_strategy(SPEC.child("updateStrategy"), spec["updateStrategy"])


def _daemon_strategy(path: Path, strategy: Struct) -> Errors:
    kind, rolling = strategy["type"], strategy.get("rollingUpdate")
    if kind == "OnDelete":
        return
    if kind != "RollingUpdate":
        yield not_supported(path, {"Type": kind, "RollingUpdate": rolling}, ("RollingUpdate", "OnDelete"))
        return
    where = path.child("rollingUpdate")
    if rolling is None:
        yield required(where)
        return
    unavailable, surge = rolling["maxUnavailable"], rolling["maxSurge"]
    for each in (checks.int_or_percent, checks.at_most_all):
        yield from each(where.child("maxUnavailable"), unavailable)
        yield from each(where.child("maxSurge"), surge)
    if checks.amount(unavailable) and checks.amount(surge):
        yield invalid(where.child("maxSurge"), surge, "may not be set when maxUnavailable is non-zero")
    if not checks.amount(unavailable) and not checks.amount(surge):
        yield required(where.child("maxUnavailable"), "cannot be 0 when maxSurge is 0")


def new_daemon_set(obj: Json) -> Json:
    """Templates of DaemonSets are counted, in an annotation since the field is gone."""
    return _counted(obj, max(_template_generation(obj), 1))


def changed_daemon_set(new: Json, old: Json) -> Json:
    count = _template_generation(old)
    return _counted(new, count + 1 if new["spec"]["template"] != old["spec"]["template"] else count)


def _template_generation(obj: Json) -> int:
    text = (obj["metadata"].get("annotations") or {}).get(GENERATION_ANNOTATION, "")
    return int(text) if text.isascii() and text.isdecimal() else 0


def _counted(obj: Json, count: int) -> Json:
    annotations = {**(obj["metadata"].get("annotations") or {}), GENERATION_ANNOTATION: str(count)}
    return {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}


def controller_revision(new: Struct, old: Struct | None) -> Errors:
    yield from common.non_negative("revision", new["revision"])
    data = new.get("data")
    if old is not None:
        yield from checks.immutable("data", data, old.get("data"))
    elif data is None:
        yield required("data", "data is mandatory")
    elif not isinstance(data, dict):
        yield required("data", "data must be a valid JSON object")


# Status


_WHOLE: Final = "cannot be greater than status.replicas"


def _counters(status: Struct, names: Iterable[str], within: Iterable[str], ready: str) -> Errors:
    """Counts are not negative, parts are not more than the whole, and what is available is ready."""
    yield from checks.non_negative_fields(STATUS, status, names)
    total = status.get("replicas", 0)
    for name in within:
        if status.get(name, 0) > total:
            yield invalid(STATUS.child(name), status[name], _WHOLE)
    available = status.get("availableReplicas", 0)
    if available > status.get("readyReplicas", 0):
        yield invalid(STATUS.child("availableReplicas"), available, f"cannot be greater than {ready}")


def _collisions(new: Struct, old: Struct) -> Errors:
    count = new["status"].get("collisionCount")
    if (old["status"].get("collisionCount") or 0) > (count or 0):
        yield field_errors.invalid(STATUS.child("collisionCount"), count or 0, "cannot be decremented")


def deployment_status(new: Struct, old: Struct | None) -> Errors:
    names = ("observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    parts = ("updatedReplicas", "readyReplicas", "availableReplicas")
    more = ("unavailableReplicas", "terminatingReplicas", "collisionCount")
    yield from _counters(new["status"], (*names, *more), parts, "readyReplicas")
    if old is not None:
        yield from _collisions(new, old)


def replica_set_status(new: Struct, old: Struct | None) -> Errors:
    parts = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
    names = ("replicas", *parts, "observedGeneration", "terminatingReplicas")
    yield from _counters(new["status"], names, parts, "readyReplicas")


def stateful_set_status(new: Struct, old: Struct | None) -> Errors:
    parts = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
    names = ("replicas", *parts, "observedGeneration", "collisionCount")
    yield from _counters(new["status"], names, parts, "status.readyReplicas")
    if old is not None:
        yield from _collisions(new, old)


def daemon_set_status(new: Struct, old: Struct | None) -> Errors:
    names = (
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    )
    yield from checks.non_negative_fields(STATUS, new["status"], names)
    if old is not None:
        yield from _collisions(new, old)
