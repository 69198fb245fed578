"""Who asks the manager, and what they may see: the API server's own answers, remembered for a short while.

A caller is known by a bearer token (TokenReview) that was made for the journal and is of no use anywhere else: nobody
has to hand a credential of the API server to the manager. What they may read is for the cluster's authorisation to say
(SubjectAccessReview), but for one account: whoever gets a token of it may read everything here, and the account itself
has no rights in the cluster. Whatever cannot be found out counts as a no.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any, Final, Generic, Protocol, TypeVar

from kruise.api.meta import PartialObject
from kruise.api.resource import Resource
from kruise.machinery.client.client import Client
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.clock import Clock
from kruise.machinery.codec import Struct, decode, encode, field
from kruise.machinery.journal import AUDIENCE
from kruise.manager.installation.rbac import JOURNAL

TOKEN_REVIEWS: Final = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", False, PartialObject)
ACCESS_REVIEWS: Final = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", False, PartialObject
)
REMEMBERED_SECONDS: Final = 10.0
REMEMBERED: Final = 2048
LONGEST_TOKEN: Final = 16 * 1024
_AT_ONCE: Final = 16
_WAITING: Final = 256
_REVIEW_SECONDS: Final = 10.0

V = TypeVar("V")


class CrowdError(RuntimeError):
    """So many ask at once that the API server would suffer."""


class Caller(Struct):
    """As the API server knows somebody, and as it wants to hear it back."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = field(default_factory=dict)


class Rights(Protocol):
    """What one caller may do."""

    @property
    def name(self) -> str:
        """Whom a refusal speaks of."""

    async def may(self, verb: str, resource: Resource[Any], namespace: str, name: str = "") -> bool:
        """No name: every one there; no namespace: in all of them."""


class Everything:
    """The rights of those whom somebody else has let in already."""

    name = "admin"

    async def may(self, verb: str, resource: Resource[Any], namespace: str, name: str = "") -> bool:
        return True


class _TokenStatus(Struct):
    authenticated: bool = False
    user: Caller = Caller()
    audiences: tuple[str, ...] = ()


class _TokenAnswer(Struct):
    status: _TokenStatus = _TokenStatus()


class _AccessStatus(Struct):
    allowed: bool = False
    denied: bool = False


class _AccessAnswer(Struct):
    status: _AccessStatus = _AccessStatus()


class _Remembered(Generic[V]):
    """Answers that are good for a few seconds; those that were given first go first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._answers: OrderedDict[Hashable, tuple[float, V]] = OrderedDict()

    def get(self, question: Hashable) -> tuple[V] | None:
        found = self._answers.get(question)
        if found is None or found[0] <= self._clock.monotonic():
            return None
        return (found[1],)

    def put(self, question: Hashable, answer: V) -> None:
        self._answers.pop(question, None)
        self._answers[question] = (self._clock.monotonic() + REMEMBERED_SECONDS, answer)
        if len(self._answers) > REMEMBERED:
            self._answers.popitem(last=False)

    def __len__(self) -> int:
        return len(self._answers)


class Reviewer:
    """Asks the API server, never more than a few questions at a time. Raises `ClientError` where it does not answer."""

    def __init__(self, client: Client, *, clock: Clock, namespace: str) -> None:
        """`namespace`: where the manager is installed, and the account of those who may read everything."""
        self._client = client
        self._full_reader = f"system:serviceaccount:{namespace}:{JOURNAL}"
        self._callers: _Remembered[Caller | None] = _Remembered(clock)
        self._rights: _Remembered[bool] = _Remembered(clock)
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._waiting = 0

    async def rights_of(self, token: str) -> Rights | None:
        """What the owner of a token may do; None: nobody's token."""
        caller = await self._caller(token)
        if caller is None:
            return None
        return Everything() if caller.username == self._full_reader else CallersRights(caller, self)

    async def _caller(self, token: str) -> Caller | None:
        if not token or len(token) > LONGEST_TOKEN:
            return None
        question = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        known = self._callers.get(question)
        if known is not None:
            return known[0]
        status = decode(await self._post(TOKEN_REVIEWS, {"token": token, "audiences": [AUDIENCE]}), _TokenAnswer).status
        # A server that names no audience has checked the token for itself alone.
        good = status.authenticated and AUDIENCE in status.audiences and status.user.username
        found = status.user if good else None
        self._callers.put(question, found)
        return found

    async def may(self, caller: Caller, verb: str, resource: Resource[Any], namespace: str, name: str) -> bool:
        question = (encode(caller), verb, resource.group_resource, namespace, name)
        known = self._rights.get(question)
        if known is not None:
            return known[0]
        attributes = {
            "verb": verb,
            "group": resource.group,
            "version": resource.version,
            "resource": resource.plural,
            "namespace": namespace,
            "name": name,
        }
        spec: dict[str, Any] = {"user": caller.username, "resourceAttributes": attributes}
        if caller.uid:
            spec["uid"] = caller.uid
        if caller.groups:
            spec["groups"] = caller.groups
        if caller.extra:
            spec["extra"] = caller.extra
        status = decode(await self._post(ACCESS_REVIEWS, spec), _AccessAnswer).status
        allowed = status.allowed and not status.denied
        self._rights.put(question, allowed)
        return allowed

    async def _post(self, resource: Resource[Any], spec: dict[str, Any]) -> bytes:
        if self._waiting >= _WAITING:
            raise CrowdError("too many callers at once, try again in a few seconds")
        body = encode({"apiVersion": resource.api_version, "kind": resource.kind, "spec": spec})
        self._waiting += 1
        try:
            async with self._turns:
                request = Request(Verb.CREATE, resource, body=body, timeout=_REVIEW_SECONDS)
                return (await self._client.send(request)).body
        finally:
            self._waiting -= 1


@dataclasses.dataclass(frozen=True, slots=True)
class CallersRights:
    caller: Caller
    reviewer: Reviewer

    @property
    def name(self) -> str:
        return self.caller.username

    async def may(self, verb: str, resource: Resource[Any], namespace: str, name: str = "") -> bool:
        return await self.reviewer.may(self.caller, verb, resource, namespace, name)
