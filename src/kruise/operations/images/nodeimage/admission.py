"""Admission of NodeImages (NI-10 to NI-12). Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kruise.admission.decisions import Allow, Change, HandlerView, Mutation, Verdict
from kruise.admission.registry import Handler, MutatingHandler, ValidatingHandler
from kruise.admission.review import AdmissionRequest
from kruise.api.apps.images import DEFAULT_BACKOFF_LIMIT, DEFAULT_TIMEOUT, MOST_IMAGES, NodeImage, NodeImageSpec
from kruise.api.core.images import ImageReference, reference_problem
from kruise.machinery import codec
from kruise.machinery.times import format_time, next_second
from kruise.operations.images.templates import DAEMON_GATE, gate_off, is_leaving, refused, verdict

PATH = "apps-kruise-io-nodeimage"


def default(request: AdmissionRequest, view: HandlerView) -> Mutation:
    """NI-10, NI-11. A value of a wrong type is left for the schema to refuse."""
    body = request.body()
    images = _mapping(_mapping(body.get("spec")).get("images"))
    if request.sub_resource or not images:
        return Allow()
    now = format_time(next_second(view.now))
    began = _beginnings(request.old_body()) if request.has_old_object else {}
    changed = {name: _entry(name, entry, began, now) for name, entry in images.items()}
    return Change(object={**body, "spec": {**body["spec"], "images": changed}})


_Task = tuple[str, str, str]
"""Name of the image, tag, version."""


def _beginnings(body: dict[str, Any]) -> dict[_Task, str]:
    """When the tasks that are there already began: a manifest that does not say it, applied again, changes nothing."""
    images = _mapping(_mapping(body.get("spec")).get("images"))
    return {
        _task_of(name, tag): tag["createdAt"]
        for name, entry in images.items()
        for tag in _mapping(entry).get("tags") or ()
        if tag.get("createdAt") is not None
    }


def _task_of(name: str, tag: dict[str, Any]) -> _Task:
    return name, str(tag.get("tag")), str(tag.get("version") or 0)


def _entry(name: str, entry: Any, began: dict[_Task, str], now: str) -> Any:
    tags = entry.get("tags") if isinstance(entry, dict) else None
    if not isinstance(tags, list) or not all(isinstance(tag, dict) for tag in tags):
        return entry
    filled = (_task(tag, began.get(_task_of(name, tag), now)) for tag in tags)
    return {**entry, "tags": sorted(filled, key=lambda tag: str(tag.get("tag", "")))}


def _task(tag: dict[str, Any], now: str) -> dict[str, Any]:
    policy = tag.get("pullPolicy")
    if policy is None or isinstance(policy, dict):
        given = {name: value for name, value in (policy or {}).items() if value is not None}
        policy = {"timeoutSeconds": DEFAULT_TIMEOUT, "backoffLimit": DEFAULT_BACKOFF_LIMIT, **given}
    created = tag.get("createdAt")
    return {**tag, "createdAt": now if created is None else created, "pullPolicy": policy}


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def judge(request: AdmissionRequest, view: HandlerView) -> Verdict:
    if request.sub_resource:
        return Allow()
    if (off := gate_off(view, DAEMON_GATE)) is not None:
        return Allow() if is_leaving(request) else off
    try:
        node_image = codec.decode(request.object, NodeImage)
    except codec.DecodeError as error:
        return refused(str(error))
    return verdict(problem(node_image.spec), tuple(warnings_of(node_image.spec)))


def problem(spec: NodeImageSpec) -> str:
    """NI-12."""
    if len(spec.images) > MOST_IMAGES:
        return f"spec images length {len(spec.images)} can not be more than {MOST_IMAGES}"
    for name, entry in spec.images.items():
        if not name:
            return "image name can not be empty"
        known: set[str] = set()
        for task in entry.tags:
            where = f"{name}/{task.tag}"
            if not task.tag:
                return f"tag for image {name} can not be empty"
            if task.tag in known:
                return f"duplicated tag {task.tag} for image {name}"
            known.add(task.tag)
            if task.version < 0:
                return f"version for {where} can not be less than 0"
            if task.created_at is None:
                return f"createdAt for {where} must set"
            if task.pull_policy is None or task.pull_policy.ttl_seconds_after_finished is None:
                return f"pullPolicy.ttlSecondsAfterFinished for {where} must set"
    return ""


def warnings_of(spec: NodeImageSpec) -> Iterator[str]:
    """Names that no registry can be asked for. NI-12 lets them pass: each node would try, and fail."""
    for name, entry in spec.images.items():
        for task in entry.tags:
            image = str(ImageReference(name, task.tag))
            if reason := reference_problem(image):
                yield (
                    f"spec.images[{name}]: no node can pull {image}: {reason}. "
                    "The key is the name without tag and digest, which stand in tags[].tag"
                )


def handlers() -> tuple[Handler, ...]:
    return MutatingHandler(f"/mutate-{PATH}", default), ValidatingHandler(f"/validate-{PATH}", judge)
