"""Objects that were let pass a moment ago, and that the watch may not show yet.

Whoever writes an object and then makes pods expects it to count for them (SCS-66). A watch is a little late, and more
so on a busy machine. A server that has let an object pass knows that it is coming: until its store shows it, pods that
are made have it read. Other replicas of the server know only what their watches tell.
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
class _Noted:
    before: int
    """Its version until then; 0: there was none."""
    until: datetime


class Coming:
    def __init__(self) -> None:
        self._noted: dict[Target, _Noted] = {}

    def __bool__(self) -> bool:
        return bool(self._noted)

    def note(self, resource: Resource[Any], request: AdmissionRequest, now: datetime) -> None:
        """The request was allowed. What changes nothing that counts gets no new version, and is not waited for."""
        self._noted = {target: noted for target, noted in self._noted.items() if now < noted.until}
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
        self._noted[target] = _Noted(before, now + LONGEST)

    def awaited(self, store: Store[Any], now: datetime) -> tuple[Target, ...]:
        """Those of the store's kind that it may not show yet."""
        found = []
        for target, noted in tuple(self._noted.items()):
            if target.resource != store.resource:
                continue
            known = store.get(target.namespace, target.name)
            if now >= noted.until or (known is not None and _version(known) > noted.before):
                del self._noted[target]
            else:
                found.append(target)
        return tuple(found)


def _counting(body: Mapping[str, Any]) -> tuple[Any, ...]:
    metadata = body.get("metadata") or {}
    return body.get("spec"), *(metadata.get(name) or {} for name in _COUNTS)


def _version(obj: Any) -> int:
    return parse_version(obj.metadata.resource_version, obj)
