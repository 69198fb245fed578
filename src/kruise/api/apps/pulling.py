"""What a job that pulls images may not say, whoever makes it: its author, or a controller of a template. Pure."""

from __future__ import annotations

import json
import re

from kruise.api.apps.images import ALWAYS, DEFAULT_TIMEOUT, NEVER, PullTemplate

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)


def parallelism_problem(spec: PullTemplate) -> str:
    given = spec.parallelism
    if given is None:
        return ""
    if isinstance(given, str):
        if given.endswith("%"):
            return "parallelism does not support percentage value: write how many nodes"
        if not _INTEGER.fullmatch(given):
            return f"parallelism must be a valid integer: {json.dumps(given)} is none"
        given = int(given)
    return "parallelism must be non-negative" if given < 0 else ""


def completion_problem(spec: PullTemplate) -> str:
    policy = spec.completion_policy
    if policy.type == NEVER:
        if policy.active_deadline_seconds is not None or policy.ttl_seconds_after_finished is not None:
            return "activeDeadlineSeconds and ttlSecondsAfterFinished can only work with Always CompletionPolicyType"
        return ""
    if policy.type != ALWAYS:
        return f"unknown type of completionPolicy: {policy.type}"
    timeout = spec.pull_policy.timeout_seconds if spec.pull_policy is not None else None
    timeout = DEFAULT_TIMEOUT if timeout is None else timeout
    deadline = policy.active_deadline_seconds
    if deadline is not None and deadline < timeout:
        return (
            "completionPolicy.activeDeadlineSeconds must be greater than pullPolicy.timeoutSeconds"
            f"(default {DEFAULT_TIMEOUT})"
        )
    return ""
