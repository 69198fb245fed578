"""Names of claim templates, and how templates may change while claims follow them (ST-33): they may grow where the
storage class lets them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from kruise.api.core import formats
from kruise.api.core.field_errors import FieldError, Path, forbidden, not_found
from kruise.api.core.validation import common
from kruise.api.native.storage import PersistentVolumeClaim, StorageClass
from kruise.machinery import codec
from kruise.machinery.quantity import Quantity, QuantityError, parse_quantity
from kruise.machinery.wording import listed
from kruise.workloads.shared.wire import CLAIM_TEMPLATES

GROWTH_GATE = "StatefulSetAutoResizePVCGate"
"""With it, claims follow their templates where the StatefulSet says so."""

Errors = Iterator[FieldError]

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_REMEDY = "set volumeClaimUpdateStrategy to OnDelete for such a change, and delete old claims by hand"


def names(given: Sequence[str]) -> Errors:
    """A claim bears the name of its template, and so does the volume of the pod."""
    for position, name in enumerate(given):
        if name:
            yield from common.complaints(
                CLAIM_TEMPLATES.at(position).child("metadata", "name"), name, formats.dns_label(name)
            )


def volumes(given: Sequence[str]) -> tuple[str, ...]:
    """What pods get: one volume for templates of the same name."""
    return tuple(dict.fromkeys(name for name in given if not formats.dns_label(name)))


def growth(new: Mapping[str, Any], old: Mapping[str, Any], classes: Sequence[StorageClass]) -> Errors:
    """What is wrong with a change from one spec to another. Members but class, access modes and size are free."""
    before, after = _templates(old), _templates(new)
    if before is None or after is None:
        return  # judged elsewhere; what was stored before anybody looked at it has nothing to be compared with
    had, has = ([claim.metadata.name for claim in claims] for claims in (before, after))
    if sorted(had) != sorted(has):
        was, becomes = listed(had) or "none", listed(has) or "none"
        complaint = f"templates cannot change from {was} to {becomes} while claims grow: {_REMEDY}"
        yield forbidden(CLAIM_TEMPLATES, complaint)
        return
    known = {claim.metadata.name: claim for claim in before}
    for position, claim in enumerate(after):
        path = CLAIM_TEMPLATES.at(position).child("spec")
        yield from _claim(path, claim, known[claim.metadata.name], classes)


def _templates(spec: Mapping[str, Any]) -> list[PersistentVolumeClaim] | None:
    try:
        return [codec.convert(claim, PersistentVolumeClaim) for claim in spec.get("volumeClaimTemplates") or ()]
    except codec.DecodeError:
        return None


def _claim(
    path: Path, new: PersistentVolumeClaim, old: PersistentVolumeClaim, classes: Sequence[StorageClass]
) -> Errors:
    wanted, known = new.spec.storage_class_name, old.spec.storage_class_name
    if wanted is not None and known is not None and wanted != known:
        yield forbidden(
            path.child("storageClassName"), f"cannot change from {known} to {wanted} while claims grow: {_REMEDY}"
        )
    if new.spec.access_modes != old.spec.access_modes:
        yield forbidden(path.child("accessModes"), f"cannot change while claims grow: {_REMEDY}")
    if _size(new) == _size(old):
        return
    name = wanted or known
    found = _named(name, classes) if name else _default(classes)
    if name and found is None:
        yield not_found(path.child("storageClassName"), name)
    elif found is not None and found.allow_volume_expansion is False:
        complaint = (
            f"storage class {found.metadata.name} does not allow volumes to grow (allowVolumeExpansion): {_REMEDY}"
        )
        yield forbidden(path.child("resources"), complaint)


def _size(claim: PersistentVolumeClaim) -> tuple[Quantity | str, ...]:
    resources = claim.spec.resources
    return tuple(_amount(amounts.get("storage", "")) for amounts in (resources.requests, resources.limits))


def _amount(given: str | int | float) -> Quantity | str:
    try:
        return parse_quantity(given)
    except QuantityError:
        return str(given)


def _named(name: str, classes: Sequence[StorageClass]) -> StorageClass | None:
    return next((one for one in classes if one.metadata.name == name), None)


def _default(classes: Sequence[StorageClass]) -> StorageClass | None:
    """The newest, where several say that they are it."""
    marked = [one for one in classes if one.metadata.annotations.get(DEFAULT_CLASS) == "true"]
    return max(marked, key=lambda one: (one.metadata.creation_timestamp or _LONG_AGO, one.metadata.name), default=None)
