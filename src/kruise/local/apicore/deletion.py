"""What a delete does to an object: pure decisions over finalizers, grace periods and propagation.

An object goes at once, or it is marked (`deletionTimestamp`) and stays until its finalizers are gone and its grace
period is over, or nothing happens because an earlier delete is still at work.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from kruise.api.core import field_errors
from kruise.api.core.field_errors import FieldError
from kruise.local.apicore import errors
from kruise.local.apicore.errors import Json
from kruise.local.apicore.kinds import KindDescription
from kruise.local.apicore.metadata import FOREGROUND, ORPHAN, parse_timestamp, timestamp

_POLICIES = ("Foreground", "Background", "Orphan")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    grace_period_seconds: int | None = None
    propagation: str | None = None
    orphan_dependents: bool | None = None
    uid: str | None = None
    resource_version: str | None = None
    dry_run: bool = False

    @classmethod
    def parse(cls, body: Mapping[str, Any], dry_run: tuple[str, ...] = ()) -> DeleteOptions:
        """From the JSON of a `DeleteOptions` (or a query put in that form); raises `StatusError` when it is refused."""
        preconditions = body.get("preconditions") or {}
        dry_run = tuple(body.get("dryRun") or dry_run)
        propagation = body.get("propagationPolicy")
        orphan = body.get("orphanDependents")
        problems: list[FieldError] = []
        if orphan is not None and propagation is not None:
            text = "orphanDependents and deletionPropagation cannot be both set"
            problems.append(field_errors.invalid("propagationPolicy", propagation, text))
        if propagation is not None and propagation not in _POLICIES:
            problems.append(field_errors.not_supported("propagationPolicy", propagation, (*_POLICIES, "nil")))
        problems.extend(dry_run_problems(dry_run))
        if problems:
            raise errors.invalid_object("meta.k8s.io", "DeleteOptions", "", problems)
        return cls(
            grace_period_seconds=body.get("gracePeriodSeconds"),
            propagation=propagation,
            orphan_dependents=orphan,
            uid=preconditions.get("uid"),
            resource_version=preconditions.get("resourceVersion"),
            dry_run=bool(dry_run),
        )

    def as_json(self) -> Json:
        """As they were asked for, in the form that admission shows."""
        asked: Json = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}
        guards = {"uid": self.uid, "resourceVersion": self.resource_version}
        fields: dict[str, Any] = {
            "gracePeriodSeconds": self.grace_period_seconds,
            "preconditions": {name: value for name, value in guards.items() if value is not None} or None,
            "orphanDependents": self.orphan_dependents,
            "propagationPolicy": self.propagation,
            "dryRun": ["All"] if self.dry_run else None,
        }
        asked.update((name, value) for name, value in fields.items() if value is not None)
        return asked


def dry_run_problems(values: tuple[str, ...]) -> list[FieldError]:
    if all(value == "All" for value in values):
        return []
    return [field_errors.not_supported("dryRun", list(values), ("All",))]


class Fate(enum.Enum):
    REMOVE = "remove"
    """The object is removed now; where it changed before, watchers see that state first."""
    MARK = "mark"
    """The object stays, marked as being deleted."""
    PENDING = "pending"
    """An earlier delete is at work and this one does not shorten it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Deletion:
    fate: Fate
    object: Json
    """The object as it is to be stored. The object itself, unchanged, where nothing is to be stored."""


def check_preconditions(kind: KindDescription, obj: Json, options: DeleteOptions) -> None:
    metadata = obj["metadata"]
    if options.uid is not None and options.uid != metadata["uid"]:
        text = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({metadata['uid']}). "
            "The object might have been deleted and then recreated"
        )
        raise errors.conflict(kind.group, kind.kind, metadata["name"], text)
    if options.resource_version is not None and options.resource_version != metadata["resourceVersion"]:
        text = (
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the ResourceVersion "
            f"in record ({metadata['resourceVersion']}). The object might have been modified"
        )
        raise errors.conflict(kind.group, kind.kind, metadata["name"], text)


def decide(kind: KindDescription, obj: Json, options: DeleteOptions, now: datetime) -> Deletion:
    """What a delete with these options does to the object."""
    asked = options.grace_period_seconds
    if asked is not None and asked < 0:
        asked = 1
    graceful = False
    if kind.grace_period is not None:
        if "deletionTimestamp" in obj["metadata"]:
            left = obj["metadata"].get("deletionGracePeriodSeconds")
            if left:
                if asked is None or asked >= left:
                    return Deletion(Fate.PENDING, obj)
                obj = _shortened(obj, left, asked, now)
                graceful = True
        else:
            asked = kind.grace_period(obj, asked)
            obj = _marked(obj, now + timedelta(seconds=asked), asked)
            graceful = True
    finalizers = _finalizers(kind, obj, options)
    before = obj["metadata"].get("finalizers", [])
    if set(finalizers) != set(before):
        obj = _with_metadata(obj, finalizers=finalizers or None)
        before = finalizers
    if before or kind.held(obj):
        return Deletion(Fate.MARK, kind.marked(obj if graceful else _marked(obj, now, 0)))
    if graceful and obj["metadata"]["deletionGracePeriodSeconds"] > 0:
        return Deletion(Fate.MARK, obj)
    return Deletion(Fate.REMOVE, obj)


def is_over(kind: KindDescription, new: Json, old: Json) -> bool:
    """Whether an update takes away the last thing that kept a deleted object."""
    before = old["metadata"]
    if kind.held(new):
        return False
    if new["metadata"].get("finalizers") or "deletionTimestamp" not in before:
        return False
    return not before.get("deletionGracePeriodSeconds")


def _shortened(obj: Json, left: int, asked: int, now: datetime) -> Json:
    moment = parse_timestamp(obj["metadata"]["deletionTimestamp"]) + timedelta(seconds=asked - left)
    if moment < now:
        moment = now
        # The whole period has passed already. It stays a graceful delete: whoever works on it ends it.
        asked = min(asked, 1)
    return _with_metadata(obj, deletionTimestamp=timestamp(moment), deletionGracePeriodSeconds=asked)


def _marked(obj: Json, moment: datetime, grace: int) -> Json:
    metadata = obj["metadata"]
    changes: dict[str, Any] = {"deletionGracePeriodSeconds": grace}
    known = metadata.get("deletionTimestamp")
    if known is None and "generation" in metadata:
        changes["generation"] = metadata["generation"] + 1
    if known is None or parse_timestamp(known) > moment:
        changes["deletionTimestamp"] = timestamp(moment)
    return _with_metadata(obj, **changes)


def _with_metadata(obj: Json, **changes: Any) -> Json:
    metadata = {**obj["metadata"], **changes}
    return {**obj, "metadata": {name: value for name, value in metadata.items() if value is not None}}


def _finalizers(kind: KindDescription, obj: Json, options: DeleteOptions) -> list[str]:
    """The finalizers after the garbage collector's were set as the options say."""
    present: list[str] = obj["metadata"].get("finalizers", [])
    if options.orphan_dependents is not None:
        orphan, foreground = options.orphan_dependents, False
    elif options.propagation is not None:
        orphan, foreground = options.propagation == "Orphan", options.propagation == "Foreground"
    elif ORPHAN in present or FOREGROUND in present:
        orphan, foreground = ORPHAN in present, FOREGROUND in present
    else:
        orphan, foreground = kind.orphans_by_default, False
    others = [item for item in present if item not in (ORPHAN, FOREGROUND)]
    return others + ([ORPHAN] if orphan else []) + ([FOREGROUND] if foreground else [])
