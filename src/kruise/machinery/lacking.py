"""Writes that a role does not allow: whoever runs the manager reads it in the log, once for each right in a while."""

from __future__ import annotations

import logging

from kruise.machinery.client.errors import ClientError, ForbiddenError
from kruise.machinery.clock import Clock
from kruise.machinery.plan import Action

log = logging.getLogger(__name__)

AGAIN_SECONDS = 600.0
_WORDS = "cannot {verb} resource"
"""How the API server says it; quotas and webhooks refuse with the same code, and mean one object."""


class LackingRights:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told: dict[tuple[str, str], float] = {}
        """When each right was last told of. There are no more of them than kinds and verbs."""

    def tell(self, action: Action, error: ClientError) -> None:
        verb = action.verb.value
        if not isinstance(error, ForbiddenError) or _WORDS.format(verb=verb) not in str(error):
            return
        kind = action.target.resource.group_resource
        right = verb, f"{kind}/{action.subresource}" if action.subresource else kind
        now, last = self._clock.monotonic(), self._told.get(right)
        if last is not None and now - last < AGAIN_SECONDS:
            return
        self._told[right] = now
        log.warning(
            "write refused: the role lacks a right (kruise doctor --fix gives it back)",
            extra={"verb": verb, "resource": right[1], "target": str(action.target), "error": str(error)},
        )
