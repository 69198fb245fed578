"""How a verb says no."""

from __future__ import annotations


class VerbError(Exception):
    """The verb cannot be carried out; the text names the object and the remedy."""


class UsageError(VerbError):
    """What was asked for makes no sense, whatever the cluster holds."""
