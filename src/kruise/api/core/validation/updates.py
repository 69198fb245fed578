"""What may change in a pod after it was created."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kruise.api.core import formats, schema, values
from kruise.api.core.field_errors import Path, forbidden, invalid, required
from kruise.api.core.validation import containers, metadata, scheduling
from kruise.api.core.validation.common import Errors, Struct, as_go_shows

_UPDATABLE = (
    "`spec.containers[*].image`,"
    "`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_TERMS = (scheduling.REQUIRED, "nodeSelectorTerms")


def pod_update(new: Struct, old: Struct) -> Errors:
    """The rules for an ordinary update, beyond those that every pod must meet. Values are in canonical form."""
    annotations = Path("metadata").child("annotations")
    new_annotations, old_annotations = new["metadata"].get("annotations"), old["metadata"].get("annotations")
    yield from metadata.pod_annotation_updates(annotations, new_annotations, old_annotations)
    yield from metadata.pod_annotations(annotations, new_annotations, new["spec"])
    yield from _spec(Path("spec"), new["spec"], old["spec"])


def _spec(path: Path, new: Struct, old: Struct) -> Errors:
    for kind in ("containers", "initContainers"):
        after, before = new.get(kind) or (), old.get(kind) or ()
        if len(after) != len(before):
            yield forbidden(path.child(kind), "pod updates may not add or remove containers")
            return
        yield from _images(path.child(kind), after)
    deadline_errors = tuple(_deadline(path.child("activeDeadlineSeconds"), new, old))
    yield from deadline_errors
    if deadline_errors and new.get("activeDeadlineSeconds") is not None:
        return
    yield from _tolerations(path.child("tolerations"), new.get("tolerations") or (), old.get("tolerations") or ())
    yield from _gates(path.child("schedulingGates"), new.get("schedulingGates") or (), old.get("schedulingGates") or ())
    if values.equal(new, old, schema.POD_SPEC):
        return
    expected = _with_updatable_fields_of(old, new)
    if old.get("schedulingGates"):
        yield from _gated(path, expected, old)
    if not values.equal(expected, old, schema.POD_SPEC):
        changed = "\n".join(f"  {path.child(name)}" for name in _changed_fields(expected, old))
        yield forbidden(path, f"pod updates may not change fields other than {_UPDATABLE}\n{changed}\n")


def _images(path: Path, after: Sequence[Struct]) -> Errors:
    for position, container in enumerate(after):
        if not container.get("image"):
            yield required(path.at(position).child("image"))
        yield from containers.image_whitespace(path.at(position), container)


def _deadline(path: Path, new: Struct, old: Struct) -> Errors:
    after, before = new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds")
    if after is None:
        if before is not None:
            yield invalid(path, None, "must not update from a positive integer to nil value")
    elif not 0 <= after <= formats.MAX_INT32:
        yield invalid(path, after, formats.range_words(0, formats.MAX_INT32))
    elif before is not None and before < after:
        yield invalid(path, after, "must be less than or equal to previous value")


def _tolerations(path: Path, new: Sequence[Struct], old: Sequence[Struct]) -> Errors:
    """Old ones must stay; only how long they hold may change."""
    kept = [_without_seconds(toleration) for toleration in new]
    if any(_without_seconds(toleration) not in kept for toleration in old):
        yield forbidden(path, "existing toleration can not be modified except its tolerationSeconds")
        return
    yield from scheduling.tolerations(path, new)


def _without_seconds(toleration: Struct) -> dict[str, Any]:
    return {name: value for name, value in toleration.items() if name != "tolerationSeconds"}


def _gates(path: Path, new: Sequence[Struct], old: Sequence[Struct]) -> Errors:
    known = {gate["name"] for gate in old}
    for position, gate in enumerate(new):
        if gate["name"] not in known:
            words = f"only deletion is allowed, but found new scheduling gate '{gate['name']}'"
            yield forbidden(path.at(position).child("name"), words)


def _with_updatable_fields_of(old: Struct, new: Struct) -> dict[str, Any]:
    """The new spec, with everything that may change put back to what it was."""
    expected = dict(new)
    for kind in ("containers", "initContainers"):
        if new.get(kind):
            pairs = zip(new[kind], old[kind], strict=True)
            expected[kind] = [{**after, "image": before.get("image", "")} for after, before in pairs]
    for field in ("activeDeadlineSeconds", "tolerations", "schedulingGates"):
        expected[field] = old.get(field)
    grace_period = old.get("terminationGracePeriodSeconds")
    if grace_period is not None and grace_period < 0 and new.get("terminationGracePeriodSeconds") == 1:
        expected["terminationGracePeriodSeconds"] = grace_period
    return expected


def _gated(path: Path, expected: dict[str, Any], old: Struct) -> Errors:
    """A pod that is held back from scheduling may still be told more closely where to run."""
    before, after = old.get("nodeSelector") or {}, expected.get("nodeSelector") or {}
    if any(after.get(key) != value for key, value in before.items()):
        words = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        yield invalid(path.child("nodeSelector"), expected.get("nodeSelector"), words)
    expected["nodeSelector"] = old.get("nodeSelector")

    old_affinity, new_affinity = old.get("affinity"), expected.get("affinity")
    old_node, new_node = (old_affinity or {}).get("nodeAffinity"), (new_affinity or {}).get("nodeAffinity")
    if old_node == new_node:
        return
    yield from _node_affinity(path.child("affinity", "nodeAffinity"), new_node, old_node)
    rest = {name: value for name, value in (new_affinity or {}).items() if name != "nodeAffinity"}
    if old_node is not None:
        rest["nodeAffinity"] = old_node
    expected["affinity"] = rest if rest or old_affinity is not None else None


def _node_affinity(path: Path, new: Struct | None, old: Struct | None) -> Errors:
    before, after = _terms(old), _terms(new)
    where = path.child(*_TERMS)
    if before and len(before) != len(after):
        shown = as_go_shows(after, "[]core.NodeSelectorTerm")
        yield invalid(where, shown, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")
        return
    for position, (old_term, new_term) in enumerate(zip(before, after, strict=False)):
        if not _only_additions(new_term, old_term):
            shown = as_go_shows(new_term, "core.NodeSelectorTerm")
            yield invalid(where.at(position), shown, "only additions are allowed (no mutations or deletions)")


def _terms(affinity: Struct | None) -> Sequence[Struct]:
    wanted = (affinity or {}).get(scheduling.REQUIRED) or {}
    return wanted.get("nodeSelectorTerms") or ()


def _only_additions(new: Struct, old: Struct) -> bool:
    members = ("matchExpressions", "matchFields")
    if not any(old.get(member) for member in members):
        # A term without requirements selects nothing; adding one would make it select something.
        return not any(new.get(member) for member in members)
    return all((new.get(member) or [])[: len(old.get(member) or ())] == (old.get(member) or []) for member in members)


def _changed_fields(new: Struct, old: Struct) -> list[str]:
    fields = schema.struct_type(schema.POD_SPEC).fields
    return [field.name for field in fields if (new.get(field.name) or None) != (old.get(field.name) or None)]
