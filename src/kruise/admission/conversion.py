"""Conversion between the versions of a kind. Pure; it needs no cache, so it answers from the first moment.

The API server sends whole pages of lists here, of mixed kinds and versions, and cannot serve an object that fails to
convert. So conversion is total for everything that validation lets through, keeps the order, and may touch nothing of
the metadata but labels and annotations (MGR-53).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kruise.machinery.codec import DecodeError, Raw, Struct, decode, encode

Convert = Callable[[dict[str, Any], str], dict[str, Any]]
"""`convert(object, version)`: the object in that version of its group (`v1beta1`). It may change its argument."""

_FREE_METADATA = ("labels", "annotations")


class ConversionError(ValueError):
    """An object cannot be converted; the text names it."""


class _Named(Struct):
    name: str = ""
    namespace: str = ""


class _Head(Struct):
    api_version: str = ""
    kind: str = ""
    metadata: _Named | None = None


class Converters:
    def __init__(self) -> None:
        self._by_kind: dict[tuple[str, str], Convert] = {}

    def register(self, group: str, kind: str, convert: Convert) -> None:
        if (group, kind) in self._by_kind:
            raise ValueError(f"two converters for {kind}.{group}")
        self._by_kind[group, kind] = convert

    def convert(self, raw: Raw, desired: str) -> Raw:
        """One object in the apiVersion `desired`. One that has it already passes byte for byte."""
        try:
            head = decode(raw, _Head)
        except DecodeError as error:
            raise ConversionError(f"an object to convert has no readable apiVersion, kind and name: {error}") from error
        named = head.metadata or _Named()
        name = f"{head.kind} {named.namespace}/{named.name}" if named.namespace else f"{head.kind} {named.name}"
        if head.api_version == desired:
            return raw
        group, _, _ = head.api_version.rpartition("/")
        desired_group, _, version = desired.rpartition("/")
        if group != desired_group:
            raise ConversionError(f"{name}: cannot go from {head.api_version} to {desired}: another API group")
        convert = self._by_kind.get((group, head.kind))
        if convert is None:
            raise ConversionError(f"{name}: there is no conversion for kind {head.kind} of group {group}")
        try:
            before = decode(raw, dict)
            after = dict(convert(decode(raw, dict), version))
            after["apiVersion"] = desired
            after["kind"] = head.kind
            after["metadata"] = _kept(before.get("metadata"), after.get("metadata"))
            return Raw(encode(after))
        except Exception as error:
            # Whatever a converter trips over, the API server must learn which object it was.
            raise ConversionError(
                f"{name}: conversion from {head.api_version} to {desired} failed: {type(error).__name__}: {error}"
            ) from error

    def convert_all(self, objects: tuple[Raw, ...], desired: str) -> Iterator[Raw]:
        """In order, one at a time, so that the caller can let others run in between."""
        return (self.convert(raw, desired) for raw in objects)


def _kept(before: Any, after: Any) -> dict[str, Any]:
    """The metadata as it came, with the converted labels and annotations. The API server refuses other changes; here
    they are undone, since a refused conversion would make the object unreadable."""
    result = dict(before) if isinstance(before, dict) else {}
    converted = after if isinstance(after, dict) else {}
    for key in _FREE_METADATA:
        if key in converted:
            result[key] = converted[key]
        else:
            result.pop(key, None)
    return result
