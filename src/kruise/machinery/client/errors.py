"""What can go wrong between us and the API server, as types that callers can tell apart."""

from __future__ import annotations

from collections.abc import Mapping

from kruise.machinery.codec import DecodeError, Struct, decode


class StatusCause(Struct):
    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(Struct):
    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: int = 0


class Status(Struct):
    """`metav1.Status`: how the API server says no."""

    kind: str = ""
    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: StatusDetails = StatusDetails()


class ClientError(Exception):
    """Base of everything that the client raises."""


class TransportError(ClientError):
    """No answer came: refused, reset, cut off, timed out.

    `sent` says whether the request may have reached the server. If it may have, a write's outcome is unknown; if not,
    trying again is always safe.
    """

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class RequestTimeoutError(TransportError):
    """We stopped waiting for the answer."""


class BadAnswerError(ClientError):
    """The server, or something in front of it, gave what is no Kubernetes answer (an HTML page, half a JSON)."""


class ApiError(ClientError):
    """The API server answered with an error."""

    def __init__(self, status: Status, *, retry_after: float | None = None) -> None:
        super().__init__(status.message or status.reason or f"HTTP {status.code}")
        self.status = status
        self.retry_after = retry_after

    @property
    def code(self) -> int:
        return self.status.code

    @property
    def reason(self) -> str:
        return self.status.reason

    @property
    def message(self) -> str:
        return str(self)

    @property
    def causes(self) -> tuple[StatusCause, ...]:
        return self.status.details.causes


class BadRequestError(ApiError): ...


class UnauthorizedError(ApiError): ...


class ForbiddenError(ApiError): ...


class NotFoundError(ApiError): ...


class ConflictError(ApiError):
    """The object is not as the request assumed (409 Conflict)."""


class AlreadyExistsError(ApiError): ...


class GoneError(ApiError):
    """The asked-for resourceVersion or continue token is too old (410)."""


class InvalidError(ApiError):
    """Refused by validation (422); `causes` name the fields. Failed JSON patch tests and uid guards end here, too."""


class TooManyRequestsError(ApiError):
    """Overload, or an eviction that a budget forbids (429); `retry_after` in seconds where the server says it."""


class ServerTimeoutError(ApiError):
    """The server gave up (504, or reason Timeout or ServerTimeout); a write's outcome is unknown."""


class UnavailableError(ApiError):
    """The server cannot serve right now (503)."""


class InternalError(ApiError):
    """500, webhook failures among them."""


_BY_REASON: Mapping[str, type[ApiError]] = {
    "AlreadyExists": AlreadyExistsError,
    "Conflict": ConflictError,
    "Expired": GoneError,
    "Gone": GoneError,
    "ServerTimeout": ServerTimeoutError,
    "Timeout": ServerTimeoutError,
    "TooManyRequests": TooManyRequestsError,
}
_BY_CODE: Mapping[int, type[ApiError]] = {
    400: BadRequestError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    422: InvalidError,
    429: TooManyRequestsError,
    500: InternalError,
    503: UnavailableError,
    504: ServerTimeoutError,
}


def from_status(status: Status, *, retry_after: float | None = None) -> ApiError:
    if retry_after is None and status.details.retry_after_seconds:
        retry_after = float(status.details.retry_after_seconds)
    kind = _BY_REASON.get(status.reason) or _BY_CODE.get(status.code, ApiError)
    return kind(status, retry_after=retry_after)


def from_response(code: int, body: bytes, headers: Mapping[str, str]) -> ApiError:
    """The typed error of an answer with a status of 400 or more, whoever wrote it."""
    try:
        status = decode(body, Status)
    except DecodeError:
        status = Status()
    if status.kind != "Status":
        text = body[:200].decode("utf-8", "replace").strip()
        status = Status(
            code=code, message=f"the server answered {code} without a Kubernetes status: {text or '(empty)'}"
        )
    elif status.code != code:
        status = Status(message=status.message, reason=status.reason, code=code, details=status.details)
    return from_status(status, retry_after=_seconds(headers.get("retry-after")))


def _seconds(text: str | None) -> float | None:
    try:
        return float(text) if text is not None else None
    except ValueError:
        return None  # an HTTP date: the API server sends seconds, proxies may not
