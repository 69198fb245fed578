"""How the API says no: `metav1.Status` values with the words of a real API server.

Everything below the transport raises `StatusError`; the transport writes its `status` as the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kruise.api.core.field_errors import FieldError, describe, go_quote

Json = dict[str, Any]
"""A JSON object. Values that are stored or handed out are never changed afterwards; a change makes a new one."""

OPTIMISTIC_LOCK: Final = "the object has been modified; please apply your changes to the latest version and try again"


class StatusError(Exception):
    """The API's answer is an error."""

    def __init__(self, status: Json, *, retry_after: int | None = None) -> None:
        super().__init__(status.get("message", ""))
        self.status = status
        self.retry_after = retry_after

    @property
    def code(self) -> int:
        return int(self.status["code"])

    @property
    def reason(self) -> str:
        return str(self.status.get("reason", ""))

    @property
    def message(self) -> str:
        return str(self)


def failure(code: int, reason: str, message: str, details: Json | None = None) -> StatusError:
    status: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    if reason:
        status["reason"] = reason
    if details is not None:
        status["details"] = details
    status["code"] = code
    return StatusError(status)


def success(details: Json | None = None, code: int | None = None) -> Json:
    """The Status that answers a delete, an eviction or a binding."""
    status: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details is not None:
        status["details"] = details
    if code is not None:
        status["code"] = code
    return status


def details_of(name: str, group: str, kind: str, **more: Any) -> Json:
    details: Json = {}
    if name:
        details["name"] = name
    if group:
        details["group"] = group
    if kind:
        details["kind"] = kind
    details.update(more)
    return details


def qualified(resource: str, group: str) -> str:
    return f"{resource}.{group}" if group else resource


def not_found(group: str, resource: str, name: str) -> StatusError:
    text = f"{qualified(resource, group)} {go_quote(name)} not found"
    return failure(404, "NotFound", text, details_of(name, group, resource))


def no_such_resource() -> StatusError:
    return failure(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(
    group: str, resource: str, name: str, *, generated: bool = False, deleting: bool = False
) -> StatusError:
    """`generated`: the server chose the name itself. `deleting`: the object of that name is on its way out."""
    text = f"{qualified(resource, group)} {go_quote(name)} already exists"
    details = details_of(name, group, resource)
    if generated:
        text += ", the server was not able to generate a unique name for the object"
        details["retryAfterSeconds"] = 1
    if deleting:
        text = f"object is being deleted: {text}"
    return failure(409, "AlreadyExists", text, details)


def conflict(group: str, resource: str, name: str, text: str) -> StatusError:
    message = f"Operation cannot be fulfilled on {qualified(resource, group)} {go_quote(name)}: {text}"
    return failure(409, "Conflict", message, details_of(name, group, resource))


def forbidden(group: str, resource: str, name: str, text: str) -> StatusError:
    subject = f"{qualified(resource, group)} {go_quote(name)}" if name else qualified(resource, group)
    return failure(403, "Forbidden", f"{subject} is forbidden: {text}", details_of(name, group, resource))


def invalid_object(group: str, kind: str, name: str, problems: Sequence[FieldError]) -> StatusError:
    causes = [{"reason": item.type, "message": item.message, "field": str(item.path)} for item in problems]
    message = f"{qualified(kind, group)} {go_quote(name)} is invalid: {describe(problems)}"
    return failure(422, "Invalid", message, details_of(name, group, kind, causes=causes))


def bad_request(message: str) -> StatusError:
    return failure(400, "BadRequest", message)


def unprocessable() -> StatusError:
    """A JSON patch that cannot be carried out on the object as it is. Kubernetes does not say what failed."""
    return failure(422, "Invalid", "the server rejected our request due to an error in our request", {})


def expired(message: str) -> StatusError:
    return failure(410, "Expired", message)


def plain_failure(message: str) -> StatusError:
    """An error inside the server that has no reason of its own."""
    return failure(500, "", message)


def method_not_allowed() -> StatusError:
    return failure(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def unsupported_media_type(accepted: Sequence[str]) -> StatusError:
    text = "the body of the request was in an unknown format - accepted media types include: " + ", ".join(accepted)
    return failure(415, "UnsupportedMediaType", text)


def too_large(limit: int) -> StatusError:
    return failure(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}")


def too_many_requests(message: str, retry_after: int, causes: Sequence[Json] = ()) -> StatusError:
    details: Json = {}
    if causes:
        details["causes"] = list(causes)
    if retry_after:
        details["retryAfterSeconds"] = retry_after
    error = failure(429, "TooManyRequests", message, details)
    error.retry_after = retry_after or None
    return error


def version_too_large(asked: int, current: int) -> StatusError:
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    text = f"Timeout: Too large resource version: {asked}, current: {current}"
    return failure(504, "Timeout", text, details)
