"""Objects that were let pass a moment ago, and that the watch may not show yet.

Whoever writes an object and then makes pods expects it to count for them (SCS-66). A watch is a little late, and more
so on a busy machine. A server that has let an object pass knows that it is coming: until its store shows it, pods that
it may concern have it read. Other replicas of the server know only what their watches tell.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from kruise.admission.review import AdmissionRequest
from kruise.api.resource import Resource
from kruise.machinery.plan import Target
from kruise.machinery.store import Store, VersionError, parse_version

LONGEST = timedelta(seconds=10)
"""After that, whoever wrote it has had an answer; if it was stored at all, the watch shows it by now."""
_COUNTS = ("labels", "annotations")


@dataclasses.dataclass(frozen=True, slots=True)
class Expected:
    """An object that the store may not show yet."""

    target: Target
    body: Mapping[str, Any] = dataclasses.field(compare=False, hash=False)
    """As it was let pass, in the version of the request."""
    until: datetime
    before: int = 0
    """Its version until then; 0: there was none."""
    uid: str = ""
    """Empty: the request did not say."""

    def is_shown_as(self, known: Any) -> bool:
        """`known`: what the store has of that name; one that was deleted may still be there."""
        metadata = known.metadata
        return self.uid in ("", metadata.uid) and parse_version(metadata.resource_version, known) > self.before


class Coming:
    def __init__(self) -> None:
        self._noted: dict[Target, Expected] = {}

    def __bool__(self) -> bool:
        return bool(self._noted)

    def note(self, resource: Resource[Any], request: AdmissionRequest, now: datetime) -> None:
        """The request was allowed. What changes nothing that counts gets no new version, and is not waited for."""
        self._noted = {target: one for target, one in self._noted.items() if now < one.until}
        if request.operation not in ("CREATE", "UPDATE") or request.sub_resource or request.is_dry_run:
            return
        body, old = request.body(), request.old_body() if request.has_old_object else {}
        metadata = body.get("metadata") or {}
        if not metadata.get("name") or (old and _counting(body) == _counting(old)):
            return
        target = Target(resource, request.namespace or "", str(metadata["name"]))
        try:
            before = parse_version(str((old.get("metadata") or {}).get("resourceVersion") or 0), target)
        except VersionError:
            return
        uid = str(metadata.get("uid") or "")
        self._noted[target] = Expected(target=target, body=body, until=now + LONGEST, before=before, uid=uid)

    def awaited(self, store: Store[Any], now: datetime) -> tuple[Expected, ...]:
        """Those of the store's kind that it may not show yet."""
        found = []
        for target, one in tuple(self._noted.items()):
            if target.resource != store.resource:
                continue
            known = store.get(target.namespace, target.name)
            if now >= one.until or (known is not None and one.is_shown_as(known)):
                del self._noted[target]
            else:
                found.append(one)
        return tuple(found)


def _counting(body: Mapping[str, Any]) -> tuple[Any, ...]:
    metadata = body.get("metadata") or {}
    return body.get("spec"), *(metadata.get(name) or {} for name in _COUNTS)
