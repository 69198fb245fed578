"""Conversion for code that cannot wait, where it may take a webhook.

Who owns which field is decided by pure functions, and on the way they look at an object in several versions. Such a
function asks here. What is not known yet is fetched while the function is abandoned, and then it runs again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kruise.local.apicore.errors import Json, StatusError
from kruise.local.apicore.kinds import KindDescription
from kruise.machinery.codec import encode

Result = TypeVar("Result")
Convert = Callable[[Json, str], Json]
"""(object, `apiVersion`) -> the object in that version; raises `ConversionFailedError`."""


class ConversionFailedError(Exception):
    """An object cannot be had in a version, in the words of the webhook's caller."""


class _MissingError(Exception):
    """No failure: a conversion is to be fetched first."""

    def __init__(self, key: tuple[str, bytes], obj: Json) -> None:
        self.key = key
        self.object = obj


class Conversions:
    """The conversions of one request."""

    def __init__(self, kind: KindDescription) -> None:
        self._kind = kind
        self._known: dict[tuple[str, bytes], Json | StatusError] = {}

    @property
    def take_time(self) -> bool:
        """Whether they may take a webhook."""
        return self._kind.field_converter is not None

    def convert(self, obj: Json, api_version: str) -> Json:
        """To be called by what `run` runs, and by nobody else where conversions take time."""
        if obj.get("apiVersion") == api_version:
            return obj
        if not self.take_time:
            return self._kind.in_version(obj, _version(api_version))
        key = (api_version, encode(obj))
        found = self._known.get(key)
        if found is None:
            raise _MissingError(key, obj)
        if isinstance(found, StatusError):
            raise ConversionFailedError(str(found.status["message"]))
        return found

    async def run(self, work: Callable[[], Result]) -> Result:
        """The result of a function that may be begun several times."""
        while True:
            try:
                return work()
            except _MissingError as wanted:
                self._known[wanted.key] = await self._fetched(wanted.object, _version(wanted.key[0]))

    async def _fetched(self, obj: Json, version: str) -> Json | StatusError:
        assert self._kind.field_converter is not None
        try:
            # The object that a create begins with says nothing, not even of itself.
            (found,) = await self._kind.field_converter([{"metadata": {}, **obj}], version)
        except StatusError as error:
            return error
        return found


def _version(api_version: str) -> str:
    return api_version.rpartition("/")[2]
