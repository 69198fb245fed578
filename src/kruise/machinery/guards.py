"""The pure part of writing: what goes out for an action, and what the server's answer means for it.

Guards make a write apply only to the object that was decided about. How they look depends on the kind of write:

* merge, strategic merge and apply patches name the uid (and resourceVersion) in `metadata`,
* JSON patches `test` them first,
* deletes and evictions carry preconditions.

A guard that fails means "the object is another one by now": read again, never a failure that users see. The server
says it in several ways (checked on 1.34): 409 for a resourceVersion, for the preconditions of a delete or eviction and
for apply; 422 with a cause on `metadata.uid` for a uid in a merge patch; for a `test` 422 with a general sentence and
no cause at all. A JSON patch that does not fit the object (a path that is not there) gets the same answer, and means
the same: the object is not as it was. Every other 422 names causes and is a genuine refusal.

One hole is the server's: a merge patch of a *custom resource's* status has its metadata thrown away before anyone
compares the uid. `plan.status_patch` makes a status write that is guarded for every kind.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from typing import Any

from kruise.machinery.client.errors import (
    AlreadyExistsError,
    ApiError,
    BadAnswerError,
    ClientError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    ServerTimeoutError,
    TooManyRequestsError,
    TransportError,
    UnavailableError,
)
from kruise.machinery.client.requests import PatchType, Verb
from kruise.machinery.codec import decode, encode, is_struct
from kruise.machinery.plan import Action, Result

EVICTION = "eviction"
_DOES_NOT_FIT = "the server rejected our request due to an error in our request"
_BUDGET_CAUSE = "DisruptionBudget"
UNAVAILABLE_BUDGET = "UnavailableBudget"
"""The cause by which a PodUnavailableBudget refuses a deletion or an update."""


class Load(enum.Enum):
    """What an answer says about the server's load."""

    FINE = "fine"
    OVERLOADED = "overloaded"
    """429, 503 or a time-out: fewer writes are wanted."""
    SILENT = "silent"
    """Says nothing about load, such as a connection that could not be opened."""


def guarded_body(action: Action) -> bytes:
    """The body as it is sent, guards included; empty where the client makes it from parameters (delete, evict)."""
    if is_delete(action):
        return b""
    if action.body is None:
        raise ValueError(f"{action.verb} of {action.target} has no body")
    body = action.body
    if action.verb is not Verb.PATCH or not (action.uid or action.resource_version):
        return encode(body)
    wanted = {"uid": action.uid, "resourceVersion": action.resource_version}
    guards = {name: value for name, value in wanted.items() if value}
    if action.patch_type is PatchType.JSON:
        tests = [{"op": "test", "path": f"/metadata/{name}", "value": value} for name, value in guards.items()]
        return encode([*tests, *body])
    if is_struct(body):
        body = decode(encode(body), dict[str, Any])
    if not isinstance(body, Mapping):
        raise ValueError(f"{action.target}: a {action.patch_type} needs an object as its body, got {type(body)}")
    return encode({**body, "metadata": {**body.get("metadata", {}), **guards}})


def is_delete(action: Action) -> bool:
    return action.verb is Verb.DELETE or action.subresource == EVICTION


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What an error means for an action."""

    result: Result | None
    """The result, or None: try again."""
    may_have_acted: bool = False
    """The server may have done it, or may still do it."""
    load: Load = Load.FINE
    retry_after: float = 0.0
    cause: str = ""
    """For metrics: why it is tried again."""


_MOVED = Verdict(result=Result.MOVED)
_FAILED = Verdict(result=Result.FAILED)


def judge(action: Action, error: ClientError) -> Verdict:
    """What to make of an error. AlreadyExists is left to the caller, who can look at what exists."""
    match error:
        case TransportError():
            # A time-out is the server's load, a refused connection is its absence.
            load = Load.OVERLOADED if error.sent else Load.SILENT
            cause = "no-answer" if error.sent else "not-sent"
            return Verdict(result=None, may_have_acted=error.sent, load=load, cause=cause)
        case BadAnswerError():
            return Verdict(result=None, may_have_acted=True, load=Load.SILENT, cause="bad-answer")
        case AlreadyExistsError():
            return _FAILED
        case ConflictError():
            return _MOVED
        case ForbiddenError() if any(cause.reason == UNAVAILABLE_BUDGET for cause in error.causes):
            return _MOVED  # whoever took from the budget was faster: decide again on what is left of it
        case NotFoundError():
            return _not_found(action, error)
        case InvalidError():
            return _MOVED if _is_guard(action, error) else _FAILED
        case TooManyRequestsError():
            if action.subresource == EVICTION and any(cause.reason == _BUDGET_CAUSE for cause in error.causes):
                return _FAILED  # a disruption budget refuses: an answer, not overload
            return _overloaded(error, "too-many-requests")
        case UnavailableError():
            return _overloaded(error, "unavailable")
        case ServerTimeoutError():
            return _overloaded(error, "timeout", may_have_acted=True)
        case ApiError() if error.code == 502 or _lost_in_storage(error):
            return _overloaded(error, "timeout", may_have_acted=True)
        case _:
            return _FAILED


def _overloaded(error: ApiError, cause: str, *, may_have_acted: bool = False) -> Verdict:
    return Verdict(
        result=None,
        may_have_acted=may_have_acted,
        load=Load.OVERLOADED,
        retry_after=error.retry_after or 0.0,
        cause=cause,
    )


def _not_found(action: Action, error: NotFoundError) -> Verdict:
    # Only a 404 about the object itself says that it is gone; one about its namespace, its kind or the path does not.
    about = error.status.details
    named = about.name == action.target.name and about.kind in ("", action.target.resource.plural)
    if is_delete(action):
        return Verdict(result=Result.DONE) if named else _FAILED
    if action.verb is Verb.PATCH and named:
        return Verdict(result=Result.GONE)
    return _FAILED


def _is_guard(action: Action, error: InvalidError) -> bool:
    if action.verb is not Verb.PATCH:
        return False
    if action.patch_type is PatchType.JSON:
        return not error.causes and error.message.startswith(_DOES_NOT_FIT)
    return bool(action.uid) and any(cause.field == "metadata.uid" for cause in error.causes)


def _lost_in_storage(error: ApiError) -> bool:
    """etcd did not answer in time, or changed its leader: the write may be in its log all the same. A webhook's
    failure may quote such words, but then nothing was written."""
    if error.code != 500 or "failed calling webhook" in error.message:
        return False
    return "etcdserver:" in error.message or "rpc error:" in error.message
