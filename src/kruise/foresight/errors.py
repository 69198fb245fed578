"""What stands in the way of a forecast."""

from __future__ import annotations

from typing import Any

from kruise.api.resource import Resource


class ForesightError(ValueError):
    """A forecast cannot be made; the text says why."""


class RefusedError(ForesightError):
    """Admission would refuse the change. The text is what the API server would answer."""

    def __init__(self, message: str, *, messages: tuple[str, ...] = (), code: int = 422) -> None:
        super().__init__(message)
        self.messages = messages or (message,)
        """One for each field that is wrong."""
        self.code = code


class UnknownKindError(ForesightError):
    """Nobody has described this kind to the forecast."""

    def __init__(self, resource: Resource[Any]) -> None:
        super().__init__(f"no forecast can be made for {resource}: the face of its kind says nothing about forecasts")
