"""What the API server refuses about Jobs and CronJobs, and the labels that it gives to a Job's pods."""

from __future__ import annotations

import re
import zoneinfo
from typing import Any, Final

from kruise.api.core import formats
from kruise.api.core.field_errors import OMITTED, Path, duplicate, invalid, not_supported, required
from kruise.api.core.validation import common
from kruise.api.core.validation.common import Errors, Struct
from kruise.local.apicore.errors import Json
from kruise.local.kinds import checks, cron
from kruise.local.kinds.checks import METADATA, SPEC, STATUS

_JOB_NAME_LABELS: Final = ("job-name", "batch.kubernetes.io/job-name")
_UID_LABELS: Final = ("controller-uid", "batch.kubernetes.io/controller-uid")
_UID_LABEL: Final = "batch.kubernetes.io/controller-uid"
_MAX_INDEXED: Final = 100_000
_MANY: Final = 100_000
_MANY_PARALLEL: Final = 10_000
_REPLACEMENTS: Final = ("Failed", "TerminatingOrFailed")
_ACTIONS: Final = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS: Final = ("In", "NotIn")
_CONDITION_STATUSES: Final = ("False", "True", "Unknown")


def new_job(obj: Json) -> Json:
    """The pods of a job are selected by its uid, unless the user insists on a selector of their own."""
    spec = obj["spec"]
    if spec["manualSelector"]:
        return _labelled(obj)
    template, about = spec["template"], obj["metadata"]
    generated = dict.fromkeys(_JOB_NAME_LABELS, about.get("name", "")) | dict.fromkeys(_UID_LABELS, about["uid"])
    labels = {**generated, **(template["metadata"].get("labels") or {})}
    template = {**template, "metadata": {**template["metadata"], "labels": dict(sorted(labels.items()))}}
    selector = dict(spec.get("selector") or {})
    wanted = {_UID_LABEL: about["uid"], **(selector.get("matchLabels") or {})}
    selector["matchLabels"] = dict(sorted(wanted.items()))
    return _labelled({**obj, "spec": {**spec, "template": template, "selector": selector}})


def changed_job(new: Json, old: Json) -> Json:
    return _labelled(new)


def _labelled(obj: Json) -> Json:
    """A job without labels takes those of its pods."""
    labels = obj["spec"]["template"]["metadata"].get("labels")
    if not labels or obj["metadata"].get("labels"):
        return obj
    return {**obj, "metadata": {**obj["metadata"], "labels": labels}}


def job(new: Struct, old: Struct | None) -> Errors:
    spec = new["spec"]
    if old is None:
        yield from _generated_selector(new)
    yield from _job_spec(SPEC, spec)
    selector = spec.get("selector")
    if selector is None:
        yield required(SPEC.child("selector"))
    else:
        yield from common.label_selector(SPEC.child("selector"), selector)
    labels = spec["template"]["metadata"].get("labels")
    if checks.matches(selector, labels) is False:
        where = SPEC.child("template", "metadata", "labels")
        yield invalid(where, labels, "`selector` does not match template `labels`")
    if old is None:
        yield from _pod_names(new)
    else:
        yield from _job_changes(spec, old)


def _generated_selector(obj: Struct) -> Errors:
    spec, about = obj["spec"], obj["metadata"]
    if spec["manualSelector"] or spec.get("selector") is None:
        return
    labels = spec["template"]["metadata"].get("labels") or {}
    expected = dict.fromkeys(_UID_LABELS, about["uid"]) | dict.fromkeys(_JOB_NAME_LABELS, about.get("name", ""))
    path = SPEC.child("template", "metadata", "labels")
    for key in ("controller-uid", "job-name", _UID_LABEL, "batch.kubernetes.io/job-name"):
        if key not in labels:
            yield required(path.key(key), f"must be '{expected[key]}'")
        elif labels[key] != expected[key]:
            yield invalid(path.key(key), labels, f"must be '{expected[key]}'")
    if checks.matches(spec["selector"], expected) is False:
        yield invalid(SPEC.child("selector"), spec["selector"], "`selector` not auto-generated")


def _pod_names(obj: Struct) -> Errors:
    """Pods of an indexed job get its name and their index as their host name."""
    spec, name = obj["spec"], obj["metadata"].get("name", "")
    completions = spec.get("completions") or 0
    if spec["completionMode"] == "Indexed" and completions > 0:
        longest = f"{name}-{completions - 1}"
        if formats.dns_label(longest):
            text = f"will not able to create pod with invalid DNS label: {longest}"
            yield invalid(METADATA.child("name"), name, text)


def _job_spec(path: Path, spec: Struct) -> Errors:
    for name in (
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ):
        yield from common.non_negative(path.child(name), spec.get(name) or 0)
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        yield required(path.child("backoffLimitPerIndex"), "when maxFailedIndexes is specified")
    yield from _completion_mode(path, spec)
    policy = spec.get("podFailurePolicy")
    if policy is not None:
        yield from _failure_policy(path.child("podFailurePolicy"), policy, spec)
    if spec.get("successPolicy") is not None and spec.get("completionMode") != "Indexed":
        yield invalid(path.child("successPolicy"), spec["successPolicy"], "requires indexed completion mode")
    replacement = spec.get("podReplacementPolicy")
    supported = _REPLACEMENTS if policy is None else _REPLACEMENTS[:1]
    yield from checks.one_of(path.child("podReplacementPolicy"), replacement, supported)
    yield from checks.template(path.child("template"), spec["template"], ("Always", "OnFailure", "Never"))
    yield from _restart_policy(path.child("template", "spec", "restartPolicy"), spec, policy)


def _restart_policy(path: Path, spec: Struct, failure_policy: Any) -> Errors:
    restarts = spec["template"]["spec"].get("restartPolicy", "")
    if restarts in ("Always", ""):
        yield required(path, 'valid values: "OnFailure", "Never"')
    elif restarts not in ("OnFailure", "Never"):
        yield not_supported(path, restarts, ("OnFailure", "Never"))
    elif failure_policy is not None and restarts != "Never":
        yield invalid(path, restarts, 'only "Never" is supported when podFailurePolicy is specified')


def _completion_mode(path: Path, spec: Struct) -> Errors:
    mode = spec.get("completionMode")
    per_index, failed = spec.get("backoffLimitPerIndex"), spec.get("maxFailedIndexes")
    yield from checks.one_of(path.child("completionMode"), mode, ("NonIndexed", "Indexed"))
    if mode in (None, "NonIndexed"):
        for name, value in (("backoffLimitPerIndex", per_index), ("maxFailedIndexes", failed)):
            if value is not None:
                yield invalid(path.child(name), value, "requires indexed completion mode")
    if mode != "Indexed":
        return
    completions, parallelism = spec.get("completions"), spec.get("parallelism") or 0
    if completions is None:
        yield required(path.child("completions"), "when completion mode is Indexed")
    if parallelism > _MAX_INDEXED:
        text = f"must be less than or equal to {_MAX_INDEXED} when completion mode is Indexed"
        yield invalid(path.child("parallelism"), parallelism, text)
    where = path.child("maxFailedIndexes")
    if completions is not None and failed is not None and failed > completions:
        yield invalid(where, failed, "must be less than or equal to completions")
    if failed is not None and failed > _MAX_INDEXED:
        yield invalid(where, failed, f"must be less than or equal to {_MAX_INDEXED}")
    if (completions or 0) > _MANY and per_index is not None:
        limit = (
            f"must be less than or equal to {_MANY_PARALLEL} when completions are above {_MANY} and used with "
            "backoff limit per index"
        )
        if failed is None:
            yield required(where, f"must be specified when completions is above {_MANY}")
        if parallelism > _MANY_PARALLEL:
            yield invalid(path.child("parallelism"), parallelism, limit)
        if failed is not None and failed > _MANY_PARALLEL:
            yield invalid(where, failed, limit)


def _failure_policy(path: Path, policy: Struct, spec: Struct) -> Errors:
    pods = spec["template"]["spec"]
    names = {one["name"] for kind in ("containers", "initContainers") for one in pods.get(kind) or ()}
    for position, rule in enumerate(policy.get("rules") or ()):
        where = path.child("rules").at(position)
        action, codes, conditions = rule["action"], rule.get("onExitCodes"), rule.get("onPodConditions") or ()
        if not action:
            yield required(where.child("action"), _valid(_ACTIONS))
        elif action == "FailIndex":
            if spec.get("backoffLimitPerIndex") is None:
                yield invalid(where.child("action"), action, "requires the backoffLimitPerIndex to be set")
        else:
            yield from checks.one_of(where.child("action"), action, _ACTIONS)
        if codes is not None:
            yield from _exit_codes(where.child("onExitCodes"), codes, names)
        for number, pattern in enumerate(conditions):
            yield from _pod_condition(where.child("onPodConditions").at(number), pattern)
        if codes is not None and conditions:
            yield invalid(where, OMITTED, "specifying both OnExitCodes and OnPodConditions is not supported")
        if codes is None and not conditions:
            yield invalid(where, OMITTED, "specifying one of OnExitCodes and OnPodConditions is required")


def _valid(words: tuple[str, ...]) -> str:
    return "valid values: [" + " ".join(f'"{word}"' for word in words) + "]"


def _pod_condition(path: Path, pattern: Struct) -> Errors:
    yield from common.complaints(path.child("type"), pattern["type"], formats.qualified_name(pattern["type"]))
    yield from checks.one_of(path.child("status"), pattern["status"], _CONDITION_STATUSES)


def _exit_codes(path: Path, codes: Struct, names: set[str]) -> Errors:
    operator, given = codes["operator"], codes.get("values") or ()
    if not operator:
        yield required(path.child("operator"), _valid(_OPERATORS))
    else:
        yield from checks.one_of(path.child("operator"), operator, _OPERATORS)
    container = codes.get("containerName")
    if container is not None and container not in names:
        text = "must be one of the container or initContainer names in the pod template"
        yield invalid(path.child("containerName"), container, text)
    where = path.child("values")
    if not given:
        yield invalid(where, list(given), "at least one value is required")
    for position, value in enumerate(given):
        if value == 0 and operator == "In":
            yield invalid(where.at(position), value, "must not be 0 for the In operator")
        if value in given[:position]:
            yield duplicate(where.at(position), value)
    if list(given) != sorted(given):
        yield invalid(where, list(given), "must be ordered")


_SCHEDULING: Final = ("nodeSelector", "tolerations", "schedulingGates")


def _job_changes(spec: Struct, old: Struct) -> Errors:
    before = old["spec"]
    if spec["completionMode"] != "Indexed":
        yield from checks.immutable_fields(SPEC, spec, before, ("completions",))
    else:
        completions = spec.get("completions")
        if completions != before.get("completions") and completions is not None and completions != spec["parallelism"]:
            text = "can only be modified in tandem with spec.parallelism"
            yield invalid(SPEC.child("completions"), completions, text)
    yield from checks.immutable_fields(SPEC, spec, before, ("selector",))
    may_move = bool(before["suspend"]) and "startTime" not in (old.get("status") or {})
    kept = _without_scheduling if may_move else _whole
    if kept(spec["template"]) != kept(before["template"]):
        shown = {**spec["template"]["metadata"], "Spec": checks.shown(spec["template"]["spec"], "core.PodSpec")}
        yield invalid(SPEC.child("template"), shown, checks.IMMUTABLE)
    names = ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
    yield from checks.immutable_fields(SPEC, spec, before, names)


def _whole(template: Struct) -> Struct:
    return template


def _without_scheduling(template: Struct) -> Struct:
    """Before a suspended job has begun, it may still be moved elsewhere."""
    meta = {key: value for key, value in template["metadata"].items() if key not in ("labels", "annotations")}
    pods = {key: value for key, value in template["spec"].items() if key not in _SCHEDULING}
    affinity = {key: value for key, value in (pods.pop("affinity", None) or {}).items() if key != "nodeAffinity"}
    return {"metadata": meta, "spec": {**pods, "affinity": affinity}}


def job_status(new: Struct, old: Struct | None) -> Errors:
    """Counters do not run backwards, and a job that is over says so consistently."""
    status = new["status"]
    names = ("active", "succeeded", "failed", "ready", "terminating")
    yield from checks.non_negative_fields(STATUS, status, names)
    facts = {item["type"] for item in status.get("conditions") or () if item.get("status") == "True"}
    conditions, omitted = STATUS.child("conditions"), OMITTED
    for one, other in (("Complete", "Failed"), ("Complete", "FailureTarget")):
        if {one, other} <= facts:
            yield invalid(conditions, omitted, f"cannot set {one}=True and {other}=true conditions")
    done = status.get("completionTime")
    if done is not None and "Complete" not in facts:
        text = "cannot set completionTime when there is no Complete=True condition"
        yield invalid(STATUS.child("completionTime"), done, text)
    if done is None and "Complete" in facts:
        yield required(STATUS.child("completionTime"), "completionTime is required for Complete jobs")
    if done is not None and status.get("startTime") is not None and done < status["startTime"]:
        yield invalid(STATUS.child("completionTime"), done, "must be equal to or after `startTime`")
    if "Failed" in facts and "FailureTarget" not in facts:
        yield invalid(conditions, omitted, "cannot set Failed=True condition without the FailureTarget=true condition")
    if "Complete" in facts and "SuccessCriteriaMet" not in facts:
        text = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
        yield invalid(conditions, omitted, text)
    if facts & {"Complete", "Failed"}:
        yield from _finished(status)
    if status.get("ready", 0) > status.get("active", 0):
        yield invalid(STATUS.child("ready"), status["ready"], "cannot set more ready pods than active")
    for one, other in (("SuccessCriteriaMet", "Failed"), ("SuccessCriteriaMet", "FailureTarget")):
        if {one, other} <= facts:
            yield invalid(conditions, omitted, f"cannot set {one}=True and {other}=true conditions")
    if old is not None:
        yield from _status_changes(new, old, facts)


def _finished(status: Struct) -> Errors:
    if status.get("active", 0) > 0:
        yield invalid(STATUS.child("active"), status["active"], "active>0 is invalid for finished job")
    if status.get("startTime") is None:
        yield required(STATUS.child("startTime"), "startTime is required for finished job")
    uncounted = status.get("uncountedTerminatedPods") or {}
    if uncounted.get("failed") or uncounted.get("succeeded"):
        yield invalid(STATUS.child("uncountedTerminatedPods"), uncounted, "must be empty for finished job")
    if status.get("terminating"):
        text = "terminating>0 is invalid for finished job"
        yield invalid(STATUS.child("terminating"), status["terminating"], text)


def _status_changes(new: Struct, old: Struct, facts: set[str]) -> Errors:
    status, before = new["status"], old.get("status") or {}
    known = {item["type"] for item in before.get("conditions") or () if item.get("status") == "True"}
    for kind in ("Failed", "Complete", "FailureTarget"):
        if kind in known - facts:
            text = f"cannot disable the terminal {kind}=True condition"
            yield invalid(STATUS.child("conditions"), OMITTED, text)
    for name in ("failed", "succeeded"):
        if status.get(name, 0) < before.get(name, 0):
            yield invalid(STATUS.child(name), status.get(name, 0), f"cannot decrease the {name} counter")
    done, was_done = status.get("completionTime"), before.get("completionTime")
    if done is not None and was_done is not None and done != was_done:
        yield invalid(STATUS.child("completionTime"), done, checks.IMMUTABLE)
    began = before.get("startTime")
    is_resuming = "Suspended" in known and "Suspended" not in facts
    if began is not None and status.get("startTime") != began and not new["spec"].get("suspend") and not is_resuming:
        yield required(STATUS.child("startTime"), "startTime cannot be removed for unsuspended job")
    if "SuccessCriteriaMet" in known - facts:
        text = "cannot disable the SuccessCriteriaMet=True condition"
        yield invalid(STATUS.child("conditions"), OMITTED, text)


def cron_job(new: Struct, old: Struct | None) -> Errors:
    spec, name = new["spec"], new["metadata"].get("name", "")
    schedule, zone = spec["schedule"], spec.get("timeZone")
    if not schedule:
        yield required(SPEC.child("schedule"))
    else:
        yield from _schedule(SPEC.child("schedule"), schedule, zone, old)
    yield from checks.non_negative_fields(SPEC, spec, ("startingDeadlineSeconds",))
    if zone is not None and (old is None or old["spec"].get("timeZone") != zone):
        yield from _time_zone(SPEC.child("timeZone"), zone)
    yield from checks.one_of(SPEC.child("concurrencyPolicy"), spec["concurrencyPolicy"], ("Allow", "Forbid", "Replace"))
    inner, path = spec["jobTemplate"]["spec"], SPEC.child("jobTemplate", "spec")
    yield from _job_spec(path, inner)
    if inner.get("selector") is not None:
        yield invalid(path.child("selector"), inner["selector"], "`selector` will be auto-generated")
    if inner.get("manualSelector"):
        yield not_supported(path.child("manualSelector"), True, ("nil", "false"))
    yield from checks.non_negative_fields(SPEC, spec, ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"))
    if old is None and len(name) > 52:
        yield invalid(METADATA.child("name"), name, "must be no more than 52 characters")


def _schedule(path: Path, schedule: str, zone: str | None, old: Struct | None) -> Errors:
    problem = cron.problem(schedule)
    if problem:
        yield invalid(path, schedule, problem)
    if "TZ" not in schedule:
        return
    if old is None or "TZ" not in old["spec"]["schedule"]:
        yield invalid(path, schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
    elif zone is not None:
        yield invalid(path, schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule")


_ZONE_PART: Final = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")


def _time_zone(path: Path, zone: str) -> Errors:
    if not zone:
        yield invalid(path, zone, "timeZone must be nil or non-empty string")
        return
    parts = zone.split("/")
    if any(part in (".", "..") or part.startswith("-") or not _ZONE_PART.fullmatch(part) for part in parts):
        yield invalid(path, zone, f"unknown time zone {zone}")
        return
    if zone.lower() == "local":
        text = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        yield invalid(path, zone, text)
    elif zone not in ("UTC", "GMT") and zone not in zoneinfo.available_timezones():
        yield invalid(path, zone, f"unknown time zone {zone}")
