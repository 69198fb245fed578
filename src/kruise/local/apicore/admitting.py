"""The seam for admission: callables that may change or refuse a write before it is stored.

First every mutating one in order, each seeing what those before it made; later, when the object is complete and
valid, every validating one. A refusal is a raised `StatusError`.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Awaitable, Callable

from kruise.local.apicore.errors import Json
from kruise.local.apicore.kinds import KindDescription


class Operation(enum.StrEnum):
    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionRequest:
    """What is about to be written. Objects are in the request's version and must not be changed in place."""

    operation: Operation
    kind: KindDescription
    version: str
    namespace: str
    name: str
    subresource: str = ""
    object: Json | None = None
    """None for a delete."""
    old_object: Json | None = None
    """None for a create."""
    dry_run: bool = False
    user: str = ""
    options: Json = dataclasses.field(default_factory=dict)
    """The request's own options, as admission webhooks are shown them."""


Mutate = Callable[[AdmissionRequest], Awaitable[Json | None]]
"""Returns the changed object, or None to leave it as it is."""
Validate = Callable[[AdmissionRequest], Awaitable[None]]


class Admission:
    """The admission chain of a core. The lists may be changed while it runs."""

    def __init__(self) -> None:
        self.mutating: list[Mutate] = []
        self.validating: list[Validate] = []

    async def mutate(self, request: AdmissionRequest) -> AdmissionRequest:
        for step in tuple(self.mutating):
            changed = await step(request)
            if changed is not None and request.operation is not Operation.DELETE:
                request = dataclasses.replace(request, object=changed)
        return request

    async def validate(self, request: AdmissionRequest) -> None:
        for step in tuple(self.validating):
            await step(request)
