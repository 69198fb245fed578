"""AdmissionReview and ConversionReview on the wire, versions v1 and v1beta1: bytes in, slim requests out, and back.

Both versions have the same shape here; an answer names the version and the uid of its question (MGR-39). Objects stay
raw bytes until a handler asks for them, and they are never written back from a struct: what a handler does not know
survives (PW-3).
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from kruise.machinery.client.errors import StatusCause
from kruise.machinery.codec import DecodeError, Raw, Struct, decode, decoder, encode, field

T = TypeVar("T")

ADMISSION_VERSIONS = ("admission.k8s.io/v1", "admission.k8s.io/v1beta1")
CONVERSION_VERSIONS = ("apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1")
REVIEW_VERSIONS = ("v1", "v1beta1")
"""As webhook configurations and conversion stanzas list them."""


class ReviewError(ValueError):
    """The body is no review that can be answered: there is no uid to answer to, so the whole call is refused."""


class UndecodableError(ValueError):
    """The object inside a review is not what the handler expects (PW-4: code 400)."""


class GroupVersionKind(Struct):
    group: str = ""
    version: str = ""
    kind: str = ""

    @property
    def group_kind(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


class GroupVersionResource(Struct):
    group: str = ""
    version: str = ""
    resource: str = ""


class UserInfo(Struct):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] | None = ()
    extra: dict[str, tuple[str, ...] | None] | None = field(default_factory=dict)


class _DeleteOptions(Struct):
    dry_run: tuple[str, ...] | None = ()


class _Eviction(Struct):
    delete_options: _DeleteOptions | None = None


class AdmissionRequest(Struct):
    """What is asked. Every getter decodes anew, so a caller may change what it gets without harm to anyone else."""

    uid: str = ""
    kind: GroupVersionKind = GroupVersionKind()
    resource: GroupVersionResource = GroupVersionResource()
    sub_resource: str | None = ""
    request_kind: GroupVersionKind | None = None
    request_resource: GroupVersionResource | None = None
    request_sub_resource: str | None = ""
    name: str | None = ""
    namespace: str | None = ""
    operation: str = ""
    user_info: UserInfo = UserInfo()
    object: Raw = Raw()
    old_object: Raw = Raw()
    options: Raw = Raw()
    dry_run: bool | None = False

    @property
    def has_object(self) -> bool:
        return _is_present(self.object)

    @property
    def has_old_object(self) -> bool:
        return _is_present(self.old_object)

    def body(self) -> dict[str, Any]:
        """The object as plain JSON."""
        return _mapping(self.object, "object", self)

    def old_body(self) -> dict[str, Any]:
        return _mapping(self.old_object, "oldObject", self)

    def decoded(self, kind: type[T]) -> T:
        """The object as a slim struct."""
        return _decoded(self.object, kind, "object", self)

    def old_decoded(self, kind: type[T]) -> T:
        return _decoded(self.old_object, kind, "oldObject", self)

    @property
    def is_dry_run(self) -> bool:
        """Also for an eviction whose delete options ask for a dry run: the API server leaves `dryRun` unset there."""
        if self.dry_run:
            return True
        if self.sub_resource != "eviction" or not self.has_object:
            return False
        try:
            options = decode(self.object, _Eviction).delete_options
        except DecodeError:
            return False
        return options is not None and "All" in (options.dry_run or ())

    def __str__(self) -> str:
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name or "(no name yet)"
        sub = f"/{self.sub_resource}" if self.sub_resource else ""
        return f"{self.operation} {self.kind.group_kind}{sub} {where}"


def _is_present(raw: Raw) -> bool:
    return bytes(raw) not in (b"", b"null")


def _mapping(raw: Raw, what: str, request: AdmissionRequest) -> dict[str, Any]:
    return _decoded(raw, dict[str, Any], what, request)


def _decoded(raw: Raw, kind: type[T], what: str, request: AdmissionRequest) -> T:
    if not _is_present(raw):
        raise UndecodableError(f"{request}: the review has no {what}")
    try:
        return decode(raw, kind)
    except DecodeError as error:
        raise UndecodableError(f"{request}: cannot decode {what}: {error}") from error


class AdmissionReview(Struct):
    api_version: str = ""
    kind: str = ""
    request: AdmissionRequest | None = None


class ConversionRequest(Struct):
    uid: str = ""
    desired_api_version: str = field(default="", name="desiredAPIVersion")
    objects: tuple[Raw, ...] | None = ()


class ConversionReview(Struct):
    api_version: str = ""
    kind: str = ""
    request: ConversionRequest | None = None


_decode_admission = decoder(AdmissionReview)
_decode_conversion = decoder(ConversionReview)


def decode_admission(data: bytes) -> tuple[str, AdmissionRequest]:
    """The review's version and its request."""
    try:
        review = _decode_admission(data)
    except DecodeError as error:
        raise ReviewError(f"the body is no AdmissionReview: {error}") from error
    if review.kind != "AdmissionReview" or review.api_version not in ADMISSION_VERSIONS:
        raise ReviewError(
            f"expected an AdmissionReview of {' or '.join(ADMISSION_VERSIONS)}, "
            f"got kind {review.kind!r} of {review.api_version!r}"
        )
    if review.request is None or not review.request.uid:
        raise ReviewError("the AdmissionReview has no request with a uid")
    return review.api_version, review.request


def decode_conversion(data: bytes) -> tuple[str, ConversionRequest]:
    try:
        review = _decode_conversion(data)
    except DecodeError as error:
        raise ReviewError(f"the body is no ConversionReview: {error}") from error
    if review.kind != "ConversionReview" or review.api_version not in CONVERSION_VERSIONS:
        raise ReviewError(
            f"expected a ConversionReview of {' or '.join(CONVERSION_VERSIONS)}, "
            f"got kind {review.kind!r} of {review.api_version!r}"
        )
    if review.request is None or not review.request.uid:
        raise ReviewError("the ConversionReview has no request with a uid")
    if not review.request.desired_api_version:
        raise ReviewError("the ConversionReview has no desiredAPIVersion")
    return review.api_version, review.request


def status(
    code: int,
    reason: str,
    message: str,
    *,
    details: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """`metav1.Status` of a refusal."""
    result: dict[str, Any] = {"status": "Failure", "message": message, "code": code}
    if reason:
        result["reason"] = reason
    if details:
        result["details"] = details
    return result


def http_error(code: int, reason: str, message: str) -> bytes:
    """The body of an answer to a call that is no review."""
    return encode({"apiVersion": "v1", "kind": "Status", "metadata": {}, **status(code, reason, message)})


def invalid_status(request: AdmissionRequest, causes: Sequence[StatusCause]) -> dict[str, Any]:
    """How Kubernetes says that fields are wrong: 422, every field named in the text and in the causes."""
    texts = [f"{cause.field}: {cause.message}" if cause.field else cause.message for cause in causes]
    message = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details: dict[str, Any] = {
        "kind": request.kind.kind,
        "causes": [
            {"reason": cause.reason or "FieldValueInvalid", "message": cause.message, "field": cause.field}
            for cause in causes
        ],
    }
    if request.name:
        details["name"] = request.name
    if request.kind.group:
        details["group"] = request.kind.group
    return status(422, "Invalid", message, details=details)


def encode_admission(
    version: str,
    uid: str,
    *,
    allowed: bool,
    status: Mapping[str, Any] | None = None,
    patch: Sequence[Mapping[str, Any]] = (),
    warnings: Sequence[str] = (),
    audit_annotations: Mapping[str, str] | None = None,
) -> bytes:
    response: dict[str, Any] = {"uid": uid, "allowed": allowed}
    if status:
        response["status"] = status
    if patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(encode(patch)).decode("ascii")
    if warnings:
        response["warnings"] = list(warnings)
    if audit_annotations:
        response["auditAnnotations"] = dict(audit_annotations)
    return encode({"apiVersion": version, "kind": "AdmissionReview", "response": response})


def encode_conversion(version: str, uid: str, objects: Sequence[Raw | Mapping[str, Any]]) -> bytes:
    response = {"uid": uid, "convertedObjects": objects, "result": {"status": "Success"}}
    return encode({"apiVersion": version, "kind": "ConversionReview", "response": response})


def encode_conversion_failure(version: str, uid: str, message: str) -> bytes:
    response = {"uid": uid, "convertedObjects": [], "result": {"status": "Failure", "message": message}}
    return encode({"apiVersion": version, "kind": "ConversionReview", "response": response})
