"""What is accepted in a BroadcastJob although it will not do what its author may expect (BJ-19): warnings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kruise.api.apps.broadcastjob import ALWAYS, CONTINUE, FAIL_FAST, NEVER, PAUSE, BroadcastJobSpec
from kruise.workloads.broadcastjob.numbers import limit_of
from kruise.workloads.shared import advice
from kruise.workloads.shared.validation import Candidate
from kruise.workloads.shared.wire import SPEC

_COMPLETION = (ALWAYS, NEVER)
_FAILURE = (FAIL_FAST, CONTINUE, PAUSE)


def warnings_of(
    candidate: Candidate[BroadcastJobSpec], annotations: Mapping[str, str], gates: Mapping[str, bool]
) -> Iterator[str]:
    """About an object as it was sent, before defaults."""
    spec = candidate.reading
    yield _parallelism(spec)
    completion, failure = spec.completion_policy, spec.failure_policy
    if completion.type and completion.type not in _COMPLETION:
        yield _unknown("completionPolicy", completion.type, _COMPLETION, ALWAYS)
    if failure.type and failure.type not in _FAILURE:
        yield _unknown("failurePolicy", failure.type, _FAILURE, CONTINUE)
    if completion.active_deadline_seconds is not None and completion.active_deadline_seconds <= 0:
        where = SPEC.child("completionPolicy", "activeDeadlineSeconds")
        yield f"{where}: {completion.active_deadline_seconds} lets the job fail at once: use a positive number"
    if (completion.ttl_seconds_after_finished or 0) < 0:
        where = SPEC.child("completionPolicy", "ttlSecondsAfterFinished")
        yield f"{where}: {completion.ttl_seconds_after_finished} deletes the job as soon as it ends: use 0 or more"
    if failure.restart_limit < 0:
        where = SPEC.child("failurePolicy", "restartLimit")
        yield f"{where}: {failure.restart_limit} lets pods that may restart fail before they begin: use 0 or more"


def _parallelism(spec: BroadcastJobSpec) -> str:
    value = spec.parallelism
    if value is None:
        return ""
    limit = limit_of(value, 100)
    where = SPEC.child("parallelism")
    if limit.problem or limit.pods <= 0:
        return (
            f"{where}: {advice.shown(value)} lets no pod be created: use a positive number or percentage, such as 5 or "
            '"10%", or leave it out'
        )
    if isinstance(value, str) and not value.endswith("%"):
        return (
            f"{where}: {advice.shown(value)} is a text, and means {limit.pods}% of the nodes: for pods, write a number"
        )
    return ""


def _unknown(name: str, given: str, known: tuple[str, ...], taken_for: str) -> str:
    where = SPEC.child(name, "type")
    return f"{where}: {advice.shown(given)} is not known, and counts as {taken_for}: use one of {', '.join(known)}"
