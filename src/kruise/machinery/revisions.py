"""Revisions of a workload's template, kept as ControllerRevisions (pure decisions).

A revision holds a patch with the whole template. Its name ends in a hash of that data, so the same template always has
the same name; its number says how new it is. Going back to an older template raises the number of the revision that is
there already.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from kruise.api.core.field_errors import TemplateTypeError
from kruise.api.core.go_json import go_json
from kruise.api.core.schema import POD_TEMPLATE_SPEC
from kruise.api.core.values import CLIENT_FORM, Form, equal_templates, normalise
from kruise.api.meta import ObjectMeta, OwnerReference, controller_of
from kruise.api.native.apps import CONTROLLER_REVISIONS, ControllerRevision
from kruise.machinery import codec, plan
from kruise.machinery.fnv import fnv32
from kruise.machinery.names import safe_encode
from kruise.machinery.ownership import Owner
from kruise.machinery.patches.values import same
from kruise.machinery.revision_names import revision_name, short_hash
from kruise.machinery.selectors import Selector

HASH_LABEL = "controller.kubernetes.io/hash"
"""On a revision: the hash that its name ends in."""

DEFAULT_HISTORY_LIMIT = 10
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def template_data(template: Any, *, form: Form = CLIENT_FORM) -> bytes:
    """The data of a template's revision (IPU-10): a patch that replaces the template by its canonical form (IPU-11).

    Names of revisions depend on every byte, so `form` must stay what it is for a kind.
    """
    return go_json({"spec": {"template": {**normalise(template, POD_TEMPLATE_SPEC, form=form), "$patch": "replace"}}})


def template_of(revision: ControllerRevision) -> dict[str, Any] | None:
    """The template that a revision holds; None where its data has another shape."""
    return _template(_parsed(bytes(revision.data)))


def template_labels(template: Any) -> Mapping[str, str]:
    """The labels of a template as somebody wrote it; what is no map is the template's own complaint."""
    metadata = template.get("metadata") if isinstance(template, Mapping) else None
    labels = metadata.get("labels") if isinstance(metadata, Mapping) else None
    return labels if isinstance(labels, Mapping) else {}


def _parsed(data: bytes) -> Any:
    return codec.decode(data, object)


def _template(data: Any) -> dict[str, Any] | None:
    spec = data.get("spec") if isinstance(data, dict) else None
    template = spec.get("template") if isinstance(spec, dict) else None
    if not isinstance(template, dict):
        return None
    return {name: value for name, value in template.items() if name != "$patch"}


def same_data(left: bytes, right: bytes) -> bool:
    """Whether two revisions hold the same (IPU-11): templates by what they mean, other data by its values.

    Nulls and empty objects count as absent in other data: clients write them or leave them out as they like.
    """
    if left == right:
        return True
    one, other = _parsed(left), _parsed(right)
    template, other_template = _template(one), _template(other)
    if template is not None and other_template is not None and _only_template(one) and _only_template(other):
        try:
            return equal_templates(template, other_template)
        except TemplateTypeError:
            # Data that is no pod template is compared as it stands.
            pass
    return same(_tidy(one), _tidy(other))


def _only_template(data: dict[str, Any]) -> bool:
    """Whether it is a pod template: that of a UnitedDeployment, say, is one of a whole workload."""
    is_alone = data.keys() == {"spec"} and data["spec"].keys() == {"template"}
    return is_alone and data["spec"]["template"].keys() <= {"metadata", "spec", "$patch"}


def _tidy(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {name: _tidy(item) for name, item in value.items()}
        return {name: item for name, item in kept.items() if item is not None and item != {}}
    if isinstance(value, list):
        return [_tidy(item) for item in value]
    return value


def data_hash(data: bytes, collision_count: int = 0) -> str:
    """The hash of a revision's data (IPU-12): 1 to 10 characters of the safe alphabet, never a dash."""
    return safe_encode(str(fnv32(data + str(collision_count).encode())))


def _age(revision: ControllerRevision) -> tuple[int, datetime, str]:
    metadata = revision.metadata
    return revision.revision, metadata.creation_timestamp or _LONG_AGO, metadata.name


def in_order(revisions: Iterable[ControllerRevision]) -> list[ControllerRevision]:
    """Oldest first: by number, then by creation, then by name (IPU-16, ST-52)."""
    return sorted(revisions, key=_age)


def belonging_to(owner: Owner, revisions: Iterable[ControllerRevision], selector: Selector) -> list[ControllerRevision]:
    """The owner's revisions, oldest first (IPU-16): its own and those that nobody manages, if the selector matches."""
    found = []
    for revision in revisions:
        metadata = revision.metadata
        reference = controller_of(revision)
        ours = reference is None or reference.uid == owner.uid
        if ours and metadata.namespace == owner.namespace and selector.matches(metadata.labels):
            found.append(revision)
    return in_order(found)


def equal_to(data: bytes, revisions: Iterable[ControllerRevision]) -> list[ControllerRevision]:
    """The revisions that hold this data, oldest first."""
    return [revision for revision in in_order(revisions) if same_data(bytes(revision.data), data)]


def current_revision(
    revisions: Iterable[ControllerRevision], name: str, update: ControllerRevision
) -> ControllerRevision:
    """The revision that the status names as current; the update revision where there is no such one (IPU-18)."""
    return next((revision for revision in revisions if name and revision.metadata.name == name), update)


class Step(enum.Enum):
    """What has to be done for a template to have its revision."""

    NOTHING = "nothing"
    RAISE = "raise"
    """Raise the number of an older revision: the template went back to it."""
    CREATE = "create"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The update revision, and the write that makes it so."""

    step: Step
    revision: ControllerRevision
    """As it is after the action."""
    action: plan.Action | None
    collision_count: int
    """What the status has to carry from now on."""


def choose(
    owner: Owner,
    existing: Sequence[ControllerRevision],
    data: bytes,
    *,
    labels: Mapping[str, str],
    annotations: Mapping[str, str] | None = None,
    refreshed: Mapping[str, str] | None = None,
    collision_count: int | None = None,
    others: Iterable[ControllerRevision] = (),
    hash_label: str = HASH_LABEL,
) -> Choice:
    """Choose the revision for a template's data among the `existing` ones of the owner (IPU-17).

    `labels` are those of the template. `annotations` go onto a new revision; `refreshed` ones also onto an older one
    that is used again, where they are missing or different. `others` are further revisions of the namespace: a name
    that one of them has is not free. A create that finds its name taken nonetheless is decided anew from a store that
    shows the other one.
    """
    ordered = in_order(existing)
    number = ordered[-1].revision + 1 if ordered else 1
    count = collision_count or 0
    # From the newest on: in a settled workload the first comparison is the only one.
    found = next((revision for revision in reversed(ordered) if same_data(bytes(revision.data), data)), None)
    if found is not None and found is ordered[-1]:
        return Choice(step=Step.NOTHING, revision=found, action=None, collision_count=count)
    if found is not None:
        return _raise(found, number, refreshed or {}, count)
    taken = {revision.metadata.name: revision for revision in [*others, *ordered]}
    while (clash := taken.get(revision_name(owner.name, data_hash(data, count)))) is not None:
        if same_data(bytes(clash.data), data) and _may_use(owner, clash):
            return Choice(step=Step.NOTHING, revision=clash, action=None, collision_count=count)
        count += 1
    return _create(owner, data, number, count, labels, {**(annotations or {}), **(refreshed or {})}, hash_label)


def _may_use(owner: Owner, revision: ControllerRevision) -> bool:
    reference = controller_of(revision)
    return reference is None or reference.uid == owner.uid


def _raise(revision: ControllerRevision, number: int, refreshed: Mapping[str, str], count: int) -> Choice:
    metadata = revision.metadata
    body: dict[str, Any] = {"revision": number}
    stale = {name: value for name, value in refreshed.items() if metadata.annotations.get(name) != value}
    if stale:
        body["metadata"] = {"annotations": stale}
        metadata = codec.evolve(metadata, annotations={**metadata.annotations, **stale})
    action = plan.patch(
        plan.Target(CONTROLLER_REVISIONS, metadata.namespace, metadata.name),
        body,
        uid=metadata.uid,
        reason=f"the template is the one of revision {metadata.name} again",
    )
    raised = codec.evolve(revision, revision=number, metadata=metadata)
    return Choice(step=Step.RAISE, revision=raised, action=action, collision_count=count)


def _create(
    owner: Owner,
    data: bytes,
    number: int,
    count: int,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    hash_label: str,
) -> Choice:
    hashed = data_hash(data, count)
    name = revision_name(owner.name, hashed)
    all_labels = {**labels, hash_label: hashed}
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": owner.namespace,
        "labels": all_labels,
        "ownerReferences": [owner.reference()],
    }
    if annotations:
        metadata["annotations"] = dict(annotations)
    body = {
        "apiVersion": CONTROLLER_REVISIONS.api_version,
        "kind": CONTROLLER_REVISIONS.kind,
        "metadata": metadata,
        "data": _parsed(data),
        "revision": number,
    }
    revision = ControllerRevision(
        api_version=CONTROLLER_REVISIONS.api_version,
        kind=CONTROLLER_REVISIONS.kind,
        metadata=ObjectMeta(
            name=name,
            namespace=owner.namespace,
            labels=all_labels,
            annotations=dict(annotations),
            owner_references=(codec.convert(owner.reference(), OwnerReference),),
        ),
        data=codec.Raw(data),
        revision=number,
    )
    action = plan.create(CONTROLLER_REVISIONS, body, reason="the template is new", owner_uid=owner.uid)
    return Choice(step=Step.CREATE, revision=revision, action=action, collision_count=count)


def truncate(
    revisions: Iterable[ControllerRevision],
    *,
    keep: Collection[str],
    pod_labels: Iterable[str],
    limit: int | None,
) -> list[plan.Action]:
    """Delete the oldest revisions that nothing uses until at most `limit` such ones remain (IPU-19).

    `keep` names the current and the update revision; `pod_labels` are the revision labels of the pods, in full or
    short. Revisions that are being deleted already count as gone.
    """
    carried = {short_hash(label) for label in set(pod_labels) if label}
    idle = [
        revision
        for revision in in_order(revisions)
        if revision.metadata.deletion_timestamp is None
        and revision.metadata.name not in keep
        and short_hash(revision.metadata.name) not in carried
    ]
    surplus = len(idle) - max(DEFAULT_HISTORY_LIMIT if limit is None else limit, 0)
    return [
        plan.delete(
            plan.Target(CONTROLLER_REVISIONS, revision.metadata.namespace, revision.metadata.name),
            uid=revision.metadata.uid,
            reason="more revisions than revisionHistoryLimit keeps",
        )
        for revision in idle[: max(surplus, 0)]
    ]
