"""When a failed request may be sent again without asking anyone. Pure.

A read may always be repeated. A write only where it is certain that the server did nothing: the request never left,
or the server turned it away for overload and said when to come back. An eviction's 429 is an answer, not overload.
"""

from __future__ import annotations

import dataclasses
import random

from kruise.machinery.client.config import CertificateError
from kruise.machinery.client.errors import (
    ApiError,
    ClientError,
    ServerTimeoutError,
    TooManyRequestsError,
    TransportError,
    UnavailableError,
)
from kruise.machinery.client.requests import Request


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often and how patiently. `attempts` counts the first one: 1 means never again."""

    attempts: int = 5
    first_delay: float = 0.1
    factor: float = 3.0
    longest_delay: float = 5.0
    jitter: float = 0.2
    longest_retry_after: float = 30.0
    """A server that wants us to stay away for longer gets its answer passed on to the caller, who may know better."""

    def delay(self, request: Request, error: ClientError, attempt: int, rng: random.Random) -> float | None:
        """Seconds to wait before attempt number `attempt + 1`, or None if `error` is final."""
        if attempt >= self.attempts or not is_safe(request, error):
            return None
        asked = error.retry_after if isinstance(error, ApiError) else None
        if asked is not None and asked > self.longest_retry_after:
            return None
        own = min(self.first_delay * self.factor ** (attempt - 1), self.longest_delay)
        # Only ever longer: what the server asked for is a minimum, and spreading keeps clients from coming in step.
        return max(own, asked or 0.0) * (1 + self.jitter * rng.random())


NEVER = RetryPolicy(attempts=1)


def is_safe(request: Request, error: ClientError) -> bool:
    """Whether sending `request` again cannot do anything twice, and may help."""
    if isinstance(error, TransportError):
        if isinstance(error, CertificateError):
            return False
        return not error.sent or not _acts(request)
    if isinstance(error, TooManyRequestsError):
        if _acts(request):
            return request.subresource != "eviction" and error.retry_after is not None
        return True
    if _acts(request) or not isinstance(error, ApiError):
        return False
    return isinstance(error, ServerTimeoutError | UnavailableError) or (
        error.code >= 500 and error.retry_after is not None
    )


def _acts(request: Request) -> bool:
    return request.verb.writes and not request.parameter("dryRun")
