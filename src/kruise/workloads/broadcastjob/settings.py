"""Policies and limits of a BroadcastJob, each with a title, as `kruise describe rollout` shows them."""

from __future__ import annotations

from kruise.api.apps.broadcastjob import ALWAYS, FAIL_FAST, BroadcastJobSpec
from kruise.faces.face import Setting
from kruise.machinery import codec
from kruise.machinery.documents import Json
from kruise.workloads.broadcastjob.numbers import UNLIMITED


def settings(document: Json) -> list[Setting]:
    spec = codec.convert(document["spec"], BroadcastJobSpec)
    completion, failure = spec.completion_policy, spec.failure_policy
    limit = "no limit" if spec.parallelism in (None, UNLIMITED) else str(spec.parallelism)
    found = [
        ("Parallelism", limit),
        ("Completion", completion.type or ALWAYS),
        ("Failure Policy", failure.type or FAIL_FAST),
        ("Restart Limit", str(failure.restart_limit)),
    ]
    if completion.active_deadline_seconds is not None:
        found.append(("Deadline", f"{completion.active_deadline_seconds}s"))
    if completion.ttl_seconds_after_finished is not None:
        found.append(("Deleted After", f"{completion.ttl_seconds_after_finished}s"))
    return found
