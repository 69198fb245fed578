"""Which path is answered by which handler. Kinds register here; the server and the configurations read it."""

from __future__ import annotations

import dataclasses
from typing import Any

from kruise.admission.decisions import Decide, Judge
from kruise.api.resource import Resource
from kruise.machinery.watched import Kinds

RESERVED = frozenset({"/convert", "/healthz"})


@dataclasses.dataclass(frozen=True, slots=True)
class MutatingHandler:
    path: str
    decide: Decide
    needs: Kinds = ()
    """Kinds whose stores must be filled before the first question, with the indexes that it looks by. Until then calls
    wait, and fail closed; they do not wait for optional ones."""


@dataclasses.dataclass(frozen=True, slots=True)
class ValidatingHandler:
    path: str
    decide: Judge
    needs: Kinds = ()
    awaited: Resource[Any] | None = None
    """The kind of what it lets pass, where other handlers are to know of it before the watch tells
    (`HandlerView.coming`)."""


Handler = MutatingHandler | ValidatingHandler


class Registry:
    def __init__(self, *handlers: Handler) -> None:
        self._handlers: dict[str, Handler] = {}
        for handler in handlers:
            self.add(handler)

    def add(self, handler: Handler) -> None:
        if not handler.path.startswith("/") or handler.path in RESERVED:
            raise ValueError(f"{handler.path!r} cannot be a webhook path: it must begin with / and not be reserved")
        if handler.path in self._handlers:
            raise ValueError(f"two handlers for {handler.path}: each path has one")
        self._handlers[handler.path] = handler

    def get(self, path: str) -> Handler | None:
        return self._handlers.get(path)

    @property
    def paths(self) -> frozenset[str]:
        """The active paths: only entries for these stay in the webhook configurations (MGR-37)."""
        return frozenset(self._handlers)
