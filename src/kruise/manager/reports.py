"""What a manager tells about objects, to those who may see them: its last decisions, dumps of them, and what it waits
for.

A decision is shown to whoever may get the object that it is about. Values that people keep secret are in pods, and so
in what is decided about them: they are shown to whoever may get and list the pods of the namespace, and are masked for
everybody else. Whether something exists is told to nobody who may not see it.
"""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kruise.api.meta import Key
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.machinery.codec import decode, encode
from kruise.machinery.journal import NO_CONTROLLER, NOT_ALLOWED, NOT_KEPT, Journal
from kruise.machinery.redaction import mask_dump, mask_entry
from kruise.manager.callers import Rights

Subjects = Mapping[str, Resource[Any]]
"""What each controller decides about."""

_DEFAULT_LIMIT: Final = "50"
_LONGEST_LIMIT: Final = 9
"""Digits: a number without end takes long to read, and Python refuses to."""


@dataclasses.dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: bytes
    content_type: str = "application/json"


def failure(code: int, reason: str, message: str) -> Reply:
    """In the form of the API server, which may stand in between."""
    status = {"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason}
    return Reply(code, encode({**status, "message": message}))


class Reports:
    """`/journal` with the last decisions of every controller, `/journal/CONTROLLER/NAMESPACE/NAME` with the latest
    snapshot of an object (`?causes=once`: shorter, for programs), and `/waiting` with what the controllers wait for."""

    def __init__(
        self, journal: Journal, subjects: Callable[[], Subjects], waiting: Callable[[], Sequence[Mapping[str, Any]]]
    ) -> None:
        self._journal = journal
        self._subjects = subjects
        self._waiting = waiting

    async def answer(self, path: str, query: Mapping[str, str], rights: Rights) -> Reply:
        sight = _Sight(rights, self._subjects())
        match path.strip("/").split("/"):
            case ["waiting"]:
                return await self._waits(sight, query)
            case ["journal"]:
                return await self._entries(sight, query)
            case ["journal", controller, *namespace, name]:
                key = Key("/".join(namespace), name)
                return await self._dump(sight, controller, key, causes_once=query.get("causes") == "once")
            case _:
                return failure(404, "NotFound", f"nothing is served at /{path.strip('/')}: try /journal")

    async def _entries(self, sight: _Sight, query: Mapping[str, str]) -> Reply:
        limit = query.get("limit", _DEFAULT_LIMIT)
        if not limit.isdecimal() or len(limit) > _LONGEST_LIMIT:
            shown = limit if len(limit) <= _LONGEST_LIMIT else f"{limit[:_LONGEST_LIMIT]}..."
            return failure(400, "BadRequest", f"limit={shown}: not a number of at most {_LONGEST_LIMIT} digits")
        asked = _Asked.by(query)
        places = {(controller, key.namespace) for controller, key in self._journal.subjects()}
        seen = await sight.among(asked, places)
        if seen is None:
            return sight.refusal(asked)
        found = self._journal.entries(
            controller=asked.controller or None,
            key=asked.key,
            limit=int(limit),
            only=lambda controller, key: (controller, key.namespace) in seen,
        )
        whole = {where: await sight.values(where) for where in {entry["key"]["namespace"] for entry in found}}
        return Reply(200, encode([entry if whole[entry["key"]["namespace"]] else mask_entry(entry) for entry in found]))

    async def _waits(self, sight: _Sight, query: Mapping[str, str]) -> Reply:
        asked = _Asked.by(query)
        waits = [(str(wait["controller"]), _key(str(wait["key"])), wait) for wait in self._waiting()]
        seen = await sight.among(asked, {(controller, key.namespace) for controller, key, _ in waits})
        if seen is None:
            return sight.refusal(asked)
        found = [
            wait for controller, key, wait in waits if (controller, key.namespace) in seen and asked.key in (None, key)
        ]
        return Reply(200, encode(found))

    async def _dump(self, sight: _Sight, controller: str, key: Key, *, causes_once: bool) -> Reply:
        asked = _Asked(controller=controller, namespace=key.namespace, key=key)
        if await sight.among(asked, set()) is None:
            return sight.refusal(asked)
        try:
            body = self._journal.dump(controller, key, causes_once=causes_once)
        except LookupError as error:
            return failure(404, NOT_KEPT, str(error))
        if not await sight.values(key.namespace):
            # Another key each time: who can have values of their own masked learns nothing about those of others.
            body = encode(mask_dump(decode(body, dict), key=secrets.token_bytes(32)))
        return Reply(200, body)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """Whose decisions are wanted. Empty: of all controllers, of all namespaces; no key: of all objects there."""

    controller: str = ""
    namespace: str = ""
    key: Key | None = None

    @classmethod
    def by(cls, query: Mapping[str, str]) -> _Asked:
        key = _key(query["key"]) if query.get("key") else None
        namespace = key.namespace if key is not None else query.get("namespace", "")
        return cls(controller=query.get("controller", ""), namespace=namespace, key=key)

    def __str__(self) -> str:
        if self.key is not None:
            return f" {self.key.name!r}" + (f" in namespace {self.namespace!r}" if self.namespace else "")
        return f" in namespace {self.namespace!r}" if self.namespace else " in any namespace"


class _Sight:
    """What one caller may see, asked for as seldom as possible: everywhere first, then place by place."""

    def __init__(self, rights: Rights, subjects: Subjects) -> None:
        self._rights = rights
        self._subjects = subjects

    async def among(self, asked: _Asked, places: set[tuple[str, str]]) -> set[tuple[str, str]] | None:
        """The controllers and namespaces whose decisions may be shown, of those that are asked about and of `places`;
        None: the caller may see nothing of what is asked for, whether there is something or not."""
        found: set[tuple[str, str]] = set()
        allowed = False
        name = asked.key.name if asked.key is not None else ""
        for controller, subject in self._subjects.items():
            if asked.controller not in ("", controller):
                continue
            if await self._may_get(subject, "", "" if subject.namespaced else name):
                allowed = True
                found |= {place for place in places if place[0] == controller}
                found.add((controller, asked.namespace))
                continue
            wanted = {asked.namespace} if asked.namespace else {where for name, where in places if name == controller}
            for where in sorted(wanted - {""}):
                if await self._may_get(subject, where, name):
                    allowed = True
                    found.add((controller, where))
        if asked.namespace:
            found = {place for place in found if place[1] == asked.namespace}
        return found if allowed else None

    async def _may_get(self, subject: Resource[Any], namespace: str, name: str = "") -> bool:
        return await self._rights.may("get", subject, namespace, name)

    async def values(self, namespace: str) -> bool:
        """Whether the caller may read the pods there, and so the values in them."""
        for where in dict.fromkeys(("", namespace)):
            if await self._rights.may("get", PODS, where) and await self._rights.may("list", PODS, where):
                return True
        return False

    def refusal(self, asked: _Asked) -> Reply:
        known = sorted(str(one) for name, one in self._subjects.items() if asked.controller in ("", name))
        if not known:
            names = ", ".join(sorted(self._subjects))
            # Its gate may be off here: whoever asks for it has to know that the manager answered.
            return failure(404, NO_CONTROLLER, f"no controller is called {asked.controller!r}; there are {names}")
        what = " or ".join(dict.fromkeys(known))
        return failure(403, NOT_ALLOWED, f"User {self._rights.name!r} may not get {what}{asked}")


def _key(text: str) -> Key:
    namespace, _, name = text.rpartition("/")
    return Key(namespace, name)
