"""What a BroadcastJob may not be (BJ-18, BJ-19). Pure. Nothing of it is immutable."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from kruise.api.apps.broadcastjob import NAME_LABEL, NEVER, UID_LABEL, BroadcastJobSpec
from kruise.api.core.defaults import default_template
from kruise.api.core.field_errors import FieldError, invalid
from kruise.api.core.validation import validate_pod_template
from kruise.machinery.revisions import template_labels
from kruise.workloads.shared import validation
from kruise.workloads.shared.names import job_name
from kruise.workloads.shared.validation import Candidate
from kruise.workloads.shared.wire import SPEC, TEMPLATE

Errors = Iterator[FieldError]
JobCandidate = Candidate[BroadcastJobSpec]

KIND = "BroadcastJob"
_RESTART_POLICIES = ("Never", "OnFailure")


def problems(
    new: JobCandidate, old: JobCandidate | None = None, *, allow_privileged: bool = True
) -> tuple[FieldError, ...]:
    """Everything that is wrong with a new BroadcastJob, or with the change of one."""
    spec = functools.partial(_spec, allow_privileged=allow_privileged)
    return validation.problems(new, old, spec, name=functools.partial(job_name, kind=KIND))


def _spec(new: JobCandidate, old: JobCandidate | None, *, allow_privileged: bool) -> Errors:
    yield from _completion(new.reading)
    if old is not None and new.template == old.template:
        return
    wanted = default_template(new.template, path=TEMPLATE)
    policy = wanted["spec"].get("restartPolicy", "")
    if policy not in _RESTART_POLICIES:
        where = TEMPLATE.child("spec", "restartPolicy")
        yield invalid(where, policy, "pod restartPolicy can only be Never or OnFailure")
    labels = template_labels(new.template)
    if labels.get(NAME_LABEL) or labels.get(UID_LABEL):
        complaint = f'"{NAME_LABEL}" and "{UID_LABEL}" are not allowed to preset in pod labels'
        yield invalid(TEMPLATE.child("metadata", "labels"), dict(labels), complaint)
    yield from validate_pod_template(wanted, TEMPLATE, allow_privileged=allow_privileged)


def _completion(spec: BroadcastJobSpec) -> Errors:
    policy = spec.completion_policy
    if policy.type != NEVER:
        return
    fields = {
        "ttlSecondsAfterFinished": policy.ttl_seconds_after_finished,
        "activeDeadlineSeconds": policy.active_deadline_seconds,
    }
    for name, value in fields.items():
        if value is not None:
            complaint = f"{name} can just work with Always CompletionPolicyType"
            yield invalid(SPEC.child("completionPolicy", name), value, complaint)
