"""Every transition of a watch, without a server."""

from __future__ import annotations

import pytest

from kruise.api.native.config import CONFIG_MAPS
from kruise.machinery.client.errors import (
    BadAnswerError,
    RequestTimeoutError,
    Status,
    StatusCause,
    StatusDetails,
    TransportError,
    from_status,
)
from kruise.machinery.codec import DecodeError
from kruise.machinery.store import StaleListError, VersionError
from kruise.machinery.watch_states import (
    DEFAULT_BACKOFF,
    Cause,
    Ending,
    LateEventError,
    State,
    Task,
    advance,
    ending_of,
    opened,
)

LISTING = State()
WATCHING = State(Task.WATCH)
STEADY = DEFAULT_BACKOFF.steady


def after(state: State, *ending: Ending, jitter: float = 0.999999) -> State:
    for item in ending:
        state = advance(state, item, jitter=jitter, backoff=DEFAULT_BACKOFF)
    return state


def test_it_begins_with_a_list_at_once() -> None:
    assert LISTING.task is Task.LIST
    assert LISTING.delay == 0


def test_a_list_leads_to_a_watch_at_once() -> None:
    assert after(LISTING, Ending(Cause.LISTED)) == WATCHING


@pytest.mark.parametrize("cause", [Cause.ENDED, Cause.TORN, Cause.REFUSED])
def test_a_watch_that_stopped_goes_on_without_a_list(cause: Cause) -> None:
    for ending in (Ending(cause), Ending(cause, lived=100), Ending(cause, delivered=True)):
        assert after(WATCHING, ending).task is Task.WATCH


@pytest.mark.parametrize(
    "cause",
    [
        Cause.ASKED,
        Cause.EXPIRED,
        Cause.MISSING,
        Cause.INVALID,
        Cause.AHEAD,
        Cause.UNREADABLE,
        Cause.DISORDER,
        Cause.FAULT,
    ],
)
def test_what_a_watch_cannot_go_on_from_takes_a_list(cause: Cause) -> None:
    assert after(WATCHING, Ending(cause)).task is Task.LIST


@pytest.mark.parametrize("cause", [cause for cause in Cause if cause not in (Cause.LISTED, Cause.ASKED)])
def test_a_list_that_failed_is_tried_again(cause: Cause) -> None:
    state = after(LISTING, Ending(cause))
    assert state.task is Task.LIST
    assert state.failures == 1


def test_a_watch_that_ended_in_order_goes_on_at_once_if_it_worked() -> None:
    assert after(WATCHING, Ending(Cause.ENDED, delivered=True)) == WATCHING
    assert after(WATCHING, Ending(Cause.ENDED, lived=STEADY)) == WATCHING
    assert after(WATCHING, Ending(Cause.ENDED)).delay > 0, "a server that closes every watch at once is not stormed"


def test_delays_double_up_to_a_limit_and_are_spread() -> None:
    state = WATCHING
    longest, shortest = [], []
    for _ in range(12):
        longest.append(round(after(state, Ending(Cause.TORN)).delay, 2))
        shortest.append(round(after(state, Ending(Cause.TORN), jitter=0.0).delay, 2))
        state = after(state, Ending(Cause.TORN))
    assert longest[:5] == [0.2, 0.4, 0.8, 1.6, 3.2]
    assert longest[-1] == 30
    assert shortest == [pytest.approx(value / 2, abs=0.01) for value in longest]


def test_a_watch_that_worked_makes_the_delays_short_again() -> None:
    troubled = after(WATCHING, *[Ending(Cause.TORN)] * 6)
    assert troubled.delay > 6
    assert after(troubled, Ending(Cause.TORN, lived=STEADY)).delay < 0.21
    assert after(troubled, Ending(Cause.TORN, delivered=True)).delay < 0.21
    assert after(troubled, Ending(Cause.ENDED, delivered=True)).failures == 0


def test_the_first_expiry_is_no_trouble_but_a_row_of_them_is() -> None:
    """A server that lists well and answers every watch with 410 must not be listed without a pause."""
    state = after(WATCHING, Ending(Cause.EXPIRED, lived=STEADY))
    assert state.delay == 0
    state = after(state, Ending(Cause.LISTED), Ending(Cause.EXPIRED, delivered=True))
    assert state.task is Task.LIST
    assert state.delay > 0
    state = after(state, Ending(Cause.LISTED), Ending(Cause.EXPIRED))
    assert state.delay > 0.5


@pytest.mark.parametrize("cause", [Cause.UNREADABLE, Cause.DISORDER, Cause.FAULT])
def test_events_before_the_trouble_do_not_shorten_the_pause_before_a_list(cause: Cause) -> None:
    """Lists are dear: a watch that breaks after each few events must not cause one each time."""
    state = WATCHING
    for _ in range(6):
        state = after(state, Ending(cause, delivered=True), Ending(Cause.LISTED))
    assert after(state, Ending(cause, delivered=True)).delay > 10


def test_pages_that_expire_lead_to_one_whole_list() -> None:
    state = after(LISTING, Ending(Cause.EXPIRED))
    assert not state.whole_list
    state = after(state, Ending(Cause.TORN), Ending(Cause.EXPIRED))
    assert not after(LISTING, Ending(Cause.LISTED)).whole_list
    assert state.whole_list
    assert not after(state, Ending(Cause.LISTED)).whole_list


def test_a_missing_kind_is_asked_for_often_and_shown() -> None:
    """MGR-22: it is waited for; whoever installs it is watching."""
    state = LISTING
    for _ in range(20):
        state = after(state, Ending(Cause.MISSING, "not installed"))
    assert 9 < state.delay <= 10
    assert state.missing
    assert state.trouble == "not installed"
    assert not after(state, Ending(Cause.LISTED)).missing


def test_the_server_says_how_long_to_wait() -> None:
    assert after(WATCHING, Ending(Cause.REFUSED, retry_after=7)).delay == 7


def test_a_fresh_list_asked_for_comes_at_once_and_changes_nothing_else() -> None:
    troubled = after(WATCHING, *[Ending(Cause.TORN, "reset")] * 3)
    state = after(troubled, Ending(Cause.ASKED))
    assert (state.task, state.delay, state.failures) == (Task.LIST, 0, 3)
    assert after(troubled, Ending(Cause.ASKED, lived=STEADY)).failures == 0


def test_stale_lists_are_refused_for_ever_but_said_to_be_final() -> None:
    state = LISTING
    for count in range(1, 12):
        state = after(state, Ending(Cause.STALE, "older"))
        assert state.task is Task.LIST
        assert state.history_lost == (count >= DEFAULT_BACKOFF.refusals)
    assert state.delay > 20
    assert after(state, Ending(Cause.TORN)).history_lost, "a torn connection proves nothing"
    assert not after(state, Ending(Cause.LISTED)).history_lost


def test_an_open_watch_clears_the_trouble_but_not_the_failures() -> None:
    state = opened(after(WATCHING, Ending(Cause.TORN, "reset")))
    assert state.trouble == ""
    assert state.failures == 1
    assert opened(WATCHING) is WATCHING


def refusal(code: int, reason: str = "", cause: str = "") -> Exception:
    causes = (StatusCause(reason=cause),) if cause else ()
    return from_status(Status(code=code, reason=reason, message="no", details=StatusDetails(causes=causes)))


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (TransportError("reset", sent=True), Cause.TORN),
        (RequestTimeoutError("late", sent=True), Cause.TORN),
        (refusal(410, "Expired"), Cause.EXPIRED),
        (refusal(404, "NotFound"), Cause.MISSING),
        (refusal(400, "BadRequest"), Cause.INVALID),
        (refusal(401), Cause.REFUSED),
        (refusal(403), Cause.REFUSED),
        (refusal(429), Cause.REFUSED),
        (refusal(500), Cause.REFUSED),
        (refusal(504, "Timeout"), Cause.REFUSED),
        (refusal(504, "Timeout", "ResourceVersionTooLarge"), Cause.AHEAD),
        (BadAnswerError("HTML"), Cause.UNREADABLE),
        (DecodeError("no JSON"), Cause.UNREADABLE),
        (VersionError("x"), Cause.UNREADABLE),
        (LateEventError("late"), Cause.DISORDER),
        (StaleListError(CONFIG_MAPS, 3, 5), Cause.STALE),
        (ZeroDivisionError(), Cause.FAULT),
    ],
)
def test_what_each_error_means(error: Exception, cause: Cause) -> None:
    ending = ending_of(error, CONFIG_MAPS, lived=3, delivered=True)
    assert ending.cause is cause
    assert ending.message
    assert (ending.lived, ending.delivered) == (3, True)


def test_messages_name_the_kind_and_what_happened() -> None:
    assert ending_of(refusal(404), "clonesets.apps.kruise.io").message == (
        "clonesets.apps.kruise.io is not installed in this cluster (no)"
    )
    assert "configmaps cannot be read: HTML" in ending_of(BadAnswerError("HTML"), "configmaps").message
    assert "restored from a backup" in ending_of(StaleListError(CONFIG_MAPS, 3, 5), "configmaps").message
    assert ending_of(ZeroDivisionError("by zero"), "configmaps").message == "ZeroDivisionError: by zero"


def test_the_pause_that_the_server_asks_for_is_read() -> None:
    error = from_status(Status(code=429, details=StatusDetails(retry_after_seconds=4)))
    assert ending_of(error, CONFIG_MAPS).retry_after == 4
