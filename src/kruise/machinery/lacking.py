"""Writes that a role does not allow: whoever runs the manager reads it in the log, once for each right in a while."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping

from kruise.machinery.client.errors import ClientError, ForbiddenError
from kruise.machinery.clock import Clock
from kruise.machinery.plan import Action

log = logging.getLogger(__name__)

AGAIN_SECONDS = 600.0
_RIGHT = re.compile(r'cannot (\w+) resource "([^"/]+)(/[^"]+)?"(?: in API group "([^"]*)")?')
"""How the API server names the right that lacks. It need not be that of the write: to apply may mean to create."""
_OWNER = "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on"
_ADMISSION = re.compile(r" denied (the )?request")
"""Of webhooks and policies, whatever they say then: they mean one object."""


class LackingRights:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told: dict[tuple[str, str], float] = {}
        """When each right was last told of. There are no more of them than kinds and verbs."""

    def tell(self, action: Action, error: ClientError) -> None:
        right = _right(action, str(error)) if isinstance(error, ForbiddenError) else None
        if right is None:
            return
        now, last = self._clock.monotonic(), self._told.get(right)
        if last is not None and now - last < AGAIN_SECONDS:
            return
        self._told[right] = now
        verb, resource = right
        log.warning(
            "write refused: the role lacks a right (kruise doctor --fix gives it back)",
            extra={"verb": verb, "resource": resource, "target": str(action.target), "error": str(error)},
        )


def _right(action: Action, text: str) -> tuple[str, str] | None:
    """Verb and resource. None: it is something else that forbids the write, as a quota."""
    if _ADMISSION.search(text):
        return None
    if found := _RIGHT.search(text):
        verb, plural, subresource, group = found.groups(default="")
        return verb, f"{plural}.{group}{subresource}" if group else f"{plural}{subresource}"
    if _OWNER in text:
        return "update", f"{_owner_kind(action)}/finalizers"
    return None


def _owner_kind(action: Action) -> str:
    """The server does not say whose finalizers they are."""
    metadata = action.body.get("metadata") if isinstance(action.body, Mapping) else None
    owners = metadata.get("ownerReferences") or () if isinstance(metadata, Mapping) else ()
    kinds = {str(owner.get("kind")) for owner in owners if owner.get("blockOwnerDeletion")}
    return ", ".join(sorted(kinds)) or "owners"
