"""AdmissionReview from the API server's side: questions in bytes, and what is wrong with answers. Pure."""

from __future__ import annotations

import base64
import binascii
import dataclasses
from collections.abc import Mapping
from typing import Any

from kruise.api.core.field_errors import go_quote
from kruise.local.apicore import errors
from kruise.local.apicore.admitting import AdmissionRequest
from kruise.local.apicore.errors import Json, StatusError
from kruise.local.webhooks.calling import CallError
from kruise.machinery.codec import DecodeError, decode, encode

GROUP = "admission.k8s.io"
VERSIONS = ("v1", "v1beta1")


@dataclasses.dataclass(frozen=True, slots=True)
class User:
    """Who a review names as the asker."""

    name: str = ""
    groups: tuple[str, ...] = ()
    uid: str = ""

    def as_json(self) -> Json:
        shown: Json = {}
        if self.name:
            shown["username"] = self.name
        if self.uid:
            shown["uid"] = self.uid
        if self.groups:
            shown["groups"] = list(self.groups)
        return shown


def namespace_of(request: AdmissionRequest) -> str:
    """A namespace is in itself, as admission sees it."""
    if request.kind.group_resource == "namespaces":
        return request.name
    return request.namespace


def question(request: AdmissionRequest, version: str, objects: tuple[Json | None, Json | None], user: User) -> Json:
    """The `request` of a review without its uid. `objects` are object and oldObject in `version`."""
    new, old = objects
    asked: Json = {
        "kind": _kind(request, version, new if new is not None else old),
        "resource": {"group": request.kind.group, "version": version, "resource": request.kind.plural},
    }
    if request.subresource:
        asked["subResource"] = request.subresource
    sent = request.object if request.object is not None else request.old_object
    asked["requestKind"] = _kind(request, request.version, sent)
    asked["requestResource"] = {**asked["resource"], "version": request.version}
    if request.subresource:
        asked["requestSubResource"] = request.subresource
    if request.name:
        asked["name"] = request.name
    if namespace_of(request):
        asked["namespace"] = namespace_of(request)
    asked["operation"] = str(request.operation)
    asked["userInfo"] = user.as_json()
    asked["object"] = new
    asked["oldObject"] = old
    asked["dryRun"] = request.dry_run
    asked["options"] = request.options or None
    return asked


def _kind(request: AdmissionRequest, version: str, obj: Json | None) -> Json:
    """Subresources such as eviction and scale have objects of a kind of their own."""
    if request.subresource and obj is not None and obj.get("kind", request.kind.kind) != request.kind.kind:
        group, _, own = str(obj.get("apiVersion", "")).rpartition("/")
        return {"group": group, "version": own, "kind": obj["kind"]}
    return {"group": request.kind.group, "version": version, "kind": request.kind.kind}


def review_version(wanted: tuple[str, ...]) -> str:
    """The first version that we speak; raises `CallError` where there is none."""
    for version in wanted:
        if version in VERSIONS:
            return version
    raise CallError(
        "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)"
    )


def encoded(version: str, uid: str, asked: Json) -> bytes:
    return encode({"kind": "AdmissionReview", "apiVersion": f"{GROUP}/{version}", "request": {"uid": uid, **asked}})


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    allowed: bool
    patch: list[Json]
    status: Json
    warnings: tuple[str, ...]


def read_answer(body: bytes, version: str, uid: str, *, mutating: bool) -> Answer:
    """The verdict in an answer; raises `CallError` for one that a real server would not accept."""
    review = _decoded(body)
    response = review.get("response")
    if not isinstance(response, dict):
        raise _invalid("webhook response was absent")
    patch, patch_type = response.get("patch") or "", response.get("patchType")
    if version == "v1":
        if response.get("uid", "") != uid:
            raise _invalid(f"expected response.uid={go_quote(uid)}, got {go_quote(response.get('uid', ''))}")
        _check_patch(patch, patch_type, mutating=mutating)
    return Answer(
        allowed=bool(response.get("allowed")),
        patch=_operations(patch, patch_type if version == "v1" else "JSONPatch") if mutating and patch else [],
        status=response.get("status") or {},
        warnings=tuple(str(text) for text in response.get("warnings") or ()),
    )


def _decoded(body: bytes) -> Mapping[str, Any]:
    try:
        review = decode(body, object)
    except DecodeError as error:
        raise CallError(f"failed to call webhook: couldn't get version/kind; json parse error: {error}") from error
    if not isinstance(review, dict):
        raise CallError("failed to call webhook: couldn't get version/kind; json parse error: the answer is no object")
    api_version, kind = review.get("apiVersion", ""), review.get("kind", "")
    if not kind:
        raise CallError(f"failed to call webhook: Object 'Kind' is missing in '{body.decode('utf-8', 'replace')}'")
    group, _, short = str(api_version).rpartition("/")
    if kind != "AdmissionReview" or group != GROUP or short not in VERSIONS:
        raise CallError(
            f"failed to call webhook: no kind {go_quote(kind)} is registered for version {go_quote(api_version)} "
            'in scheme "pkg/runtime/scheme.go:110"'
        )
    return review


def _check_patch(patch: str, patch_type: str | None, *, mutating: bool) -> None:
    if not mutating:
        if patch:
            raise _invalid("validating webhook may not return response.patch")
        if patch_type is not None:
            raise _invalid("validating webhook may not return response.patchType")
        return
    if patch and patch_type is None:
        raise _invalid("webhook returned response.patch but not response.patchType")
    if not patch and patch_type is not None:
        raise _invalid("webhook returned response.patchType but not response.patch")
    if patch_type == "":
        raise _invalid('webhook returned invalid response.patchType of ""')


def _operations(patch: str, patch_type: str | None) -> list[Json]:
    try:
        operations = decode(base64.b64decode(patch, validate=True), object)
        if not isinstance(operations, list) or not all(isinstance(item, dict) for item in operations):
            raise ValueError("a JSON patch is a list of operations")
    except (binascii.Error, ValueError) as error:
        raise CallError(f"received undecodable patch in webhook response: {error}") from error
    if operations and patch_type != "JSONPatch":
        raise CallError(f"unsupported patch type {go_quote(patch_type or '')}")
    return operations


def _invalid(why: str) -> CallError:
    return CallError(f"received invalid webhook response: {why}")


def denial(webhook: str, status: Json) -> StatusError:
    """The webhook said no: its own status, with words before it."""
    code = status.get("code") or 0
    message = f"admission webhook {go_quote(webhook)} denied the request"
    if status.get("message") or status.get("reason"):
        message += f": {status.get('message') or status['reason']}"
    else:
        message += " without explanation"
    details = status.get("details")
    error = errors.failure(max(code, 400), status.get("reason") or "", message, details or None)
    if status.get("status") not in (None, "", "Success"):
        error.status["status"] = status["status"]
    error.retry_after = (details or {}).get("retryAfterSeconds") or None
    return error


def unanswered(webhook: str, why: CallError) -> StatusError:
    """The webhook gave no proper answer and may not be passed over."""
    return internal(f"failed calling webhook {go_quote(webhook)}: {why}")


def internal(text: str) -> StatusError:
    details = {"causes": [{"message": text}]}
    return errors.failure(500, "InternalError", f"Internal error occurred: {text}", details)


def no_dry_run(webhook: str) -> StatusError:
    return errors.bad_request(f"admission webhook {go_quote(webhook)} does not support dry run")
