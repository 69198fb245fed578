"""What may be sent again."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.api.native.pod import PODS
from kruise.machinery.client.config import CertificateError
from kruise.machinery.client.errors import (
    BadAnswerError,
    ClientError,
    RequestTimeoutError,
    Status,
    TransportError,
    from_status,
)
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.client.retry import NEVER, RetryPolicy, is_safe

READ = Request(Verb.GET, PODS, "n", "a")
WRITE = Request(Verb.PATCH, PODS, "n", "a")
TRIAL = Request(Verb.CREATE, PODS, "n", query=(("dryRun", "All"),))
EVICTION = Request(Verb.CREATE, PODS, "n", "a", "eviction")
POLICY = RetryPolicy()


def api(code: int, reason: str = "", retry_after: float | None = None) -> ClientError:
    return from_status(Status(kind="Status", code=code, reason=reason), retry_after=retry_after)


@pytest.mark.parametrize(
    ("error", "read", "write"),
    [
        (TransportError("refused", sent=False), True, True),
        (TransportError("reset", sent=True), True, False),
        (RequestTimeoutError("no answer", sent=True), True, False),
        (RequestTimeoutError("no connection", sent=False), True, True),
        (CertificateError("expired"), False, False),
        (BadAnswerError("html"), False, False),
        (api(429), True, False),
        (api(429, retry_after=1), True, True),
        (api(503), True, False),
        (api(503, retry_after=1), True, False),
        (api(504), True, False),
        (api(500, "ServerTimeout"), True, False),
        (api(500, "InternalError"), False, False),
        (api(500, "InternalError", retry_after=1), True, False),
        (api(404), False, False),
        (api(409, "Conflict"), False, False),
        (api(422), False, False),
        (api(410), False, False),
        (api(401), False, False),
    ],
)
def test_safe_or_not(error: ClientError, read: bool, write: bool) -> None:
    """Writes only where the server certainly did nothing. A dry run is like a read."""
    assert is_safe(READ, error) is read
    assert is_safe(WRITE, error) is write
    assert is_safe(TRIAL, error) is read


def test_an_eviction_that_a_budget_refuses_is_an_answer() -> None:
    """Its 429 carries Retry-After, too."""
    assert not is_safe(EVICTION, api(429, retry_after=10))
    assert is_safe(EVICTION, TransportError("refused", sent=False))


def test_delays_grow_and_end() -> None:
    policy = RetryPolicy(attempts=5, first_delay=1, factor=2, longest_delay=3, jitter=0)
    error = TransportError("x", sent=False)
    delays = [policy.delay(READ, error, attempt, random.Random(0)) for attempt in range(1, 7)]
    assert delays == [1, 2, 3, 3, None, None]
    assert NEVER.delay(READ, error, 1, random.Random(0)) is None


def test_retry_after_is_a_minimum_up_to_a_limit() -> None:
    """A server that wants minutes is for the caller to decide about."""
    delay = POLICY.delay(WRITE, api(429, retry_after=7), 1, random.Random(0))
    assert delay is not None
    assert delay >= 7
    assert POLICY.delay(WRITE, api(429, retry_after=31), 1, random.Random(0)) is None


@given(st.integers(1, 10), st.integers(), st.floats(0, 30))
def test_delays_are_bounded(attempt: int, seed: int, asked: float) -> None:
    delay = POLICY.delay(READ, api(429, retry_after=asked), attempt, random.Random(seed))
    if attempt >= POLICY.attempts:
        assert delay is None
    else:
        assert delay is not None
        assert asked <= delay <= max(asked, POLICY.longest_delay) * (1 + POLICY.jitter)
