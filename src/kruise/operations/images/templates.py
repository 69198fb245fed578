"""What both kinds of jobs share at admission: defaults, refusals, warnings (IPJ-10 to IPJ-19, ILPJ-1, ILPJ-2). Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from kruise.admission.decisions import Allow, Deny, HandlerView, gate_is_off
from kruise.admission.review import AdmissionRequest
from kruise.api.apps.images import (
    ALWAYS,
    DEFAULT_BACKOFF_LIMIT,
    DEFAULT_TIMEOUT,
    NODE_IMAGES,
    PULL_ALWAYS,
    PULL_IF_NOT_PRESENT,
    NodeSelector,
    PullTemplate,
)
from kruise.api.core.images import reference_problem
from kruise.api.meta import LabelSelector
from kruise.machinery.selectors import SelectorError, from_label_selector
from kruise.machinery.wording import listed

Json = Mapping[str, Any]
DAEMON_GATE, JOBS_GATE = "KruiseDaemon", "ImagePullJobGate"


def is_leaving(request: AdmissionRequest) -> bool:
    """Who goes must be let go: a finalizer is taken off by an update."""
    metadata = request.body().get("metadata")
    return isinstance(metadata, dict) and bool(metadata.get("deletionTimestamp"))


def gate_off(view: HandlerView, *gates: str) -> Deny | None:
    """IMG-3."""
    return next((gate_is_off(gate) for gate in gates if not view.gates.get(gate, False)), None)


def refused(message: str) -> Deny:
    """IMG-8."""
    return Deny(message=message, code=400, reason="BadRequest")


def verdict(problem: str, warnings: tuple[str, ...] = ()) -> Allow | Deny:
    return refused(problem) if problem else Allow(warnings=warnings)


def with_defaults(spec: Json) -> dict[str, Any]:
    """What both kinds get. A value of a wrong type is left for the schema to refuse."""
    completion = spec.get("completionPolicy")
    completion = {} if completion is None else completion
    if isinstance(completion, Mapping) and not completion.get("type"):
        completion = {**completion, "type": ALWAYS}
    policy = spec.get("pullPolicy")
    policy = {} if policy is None else policy
    if isinstance(policy, Mapping):
        given = {name: value for name, value in policy.items() if value is not None}
        policy = {"timeoutSeconds": DEFAULT_TIMEOUT, "backoffLimit": DEFAULT_BACKOFF_LIMIT, **given}
    return {**spec, "completionPolicy": completion, "pullPolicy": policy}


# What is refused, the first of it


def selector_problem(spec: PullTemplate) -> str:
    selector, by_pods = spec.selector, spec.pod_selector
    if selector is not None:
        if by_pods is not None:
            return "can not set both selector and podSelector"
        if selector.names and (selector.match_labels or selector.match_expressions):
            return "can not set both names and labelSelector in this spec.selector"
        if problem := _not_a_selector(selector):
            return f"invalid selector: {problem}"
        if selector.names and len(set(selector.names)) < len(selector.names):
            return "duplicated name in selector names"
    if by_pods is not None and (problem := _not_a_selector(by_pods)):
        return f"invalid podSelector: {problem}"
    return ""


def _not_a_selector(selector: LabelSelector) -> str:
    try:
        from_label_selector(selector)
    except SelectorError as error:
        return str(error)
    return ""


def image_problem(image: str) -> str:
    problem = reference_problem(image)
    return f"invalid image {image}: {problem}" if problem else ""


# What is worth a warning


def warnings_of(spec: PullTemplate, view: HandlerView) -> Iterator[str]:
    if spec.selector is not None:
        yield from _about_nodes(spec.selector, view)
    if spec.pod_selector is not None and _is_empty(spec.pod_selector):
        yield "spec.podSelector: is empty, so the nodes of all pods of the namespace pull"
    if spec.image_pull_policy not in ("", PULL_ALWAYS, PULL_IF_NOT_PRESENT):
        given = json.dumps(spec.image_pull_policy)
        yield f"spec.imagePullPolicy: {given} is neither Always nor IfNotPresent, so nodes pull in any case"
    timeout = spec.pull_policy.timeout_seconds if spec.pull_policy is not None else None
    if timeout is not None and timeout <= 0:
        yield f"spec.pullPolicy.timeoutSeconds: {timeout} leaves no time, so every attempt fails"


def _about_nodes(selector: NodeSelector, view: HandlerView) -> Iterator[str]:
    store = view.store(NODE_IMAGES)
    if selector.names is not None:
        unknown = [name for name in selector.names if store.get("", name) is None]
        if unknown:
            yield f"spec.selector.names: there is no NodeImage of {listed(unknown)}: they are left out until there is"
        if not selector.names:
            yield "spec.selector.names: is empty, so no node pulls"
    elif _is_empty(selector):
        yield "spec.selector: is empty, so all nodes pull"
    else:
        found = from_label_selector(selector)
        if not any(found.matches(one.metadata.labels) for one in store.list()):
            yield f"spec.selector: no node has such labels now ({found})"


def _is_empty(selector: LabelSelector) -> bool:
    return not selector.match_labels and not selector.match_expressions
