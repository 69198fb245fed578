"""The hashes of Fowler, Noll and Vo in 32 bits. Kubernetes uses both forms, and they give different numbers."""

from __future__ import annotations

_OFFSET = 2166136261
_PRIME = 16777619
_MASK = 0xFFFFFFFF


def fnv32(data: bytes) -> int:
    """FNV-1: names of revisions end in it."""
    number = _OFFSET
    for byte in data:
        number = number * _PRIME & _MASK ^ byte
    return number


def fnv32a(data: bytes) -> int:
    """FNV-1a: of containers and of templates."""
    number = _OFFSET
    for byte in data:
        number = (number ^ byte) * _PRIME & _MASK
    return number
