"""Apply and update by the rules of Kubernetes' structured merge: pure functions over objects and their owners.

An update takes what it changes from whoever owned it. An apply states all that its manager wants: it takes its fields,
together with others who want the same, refuses where others want something else (unless forced), and removes what the
manager wanted before and nobody else owns.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from kruise.local.apicore.conversions import Convert
from kruise.local.fields import sets, typed
from kruise.local.fields.managers import APPLY, NOBODY, UPDATE, Managed, Owned, Owner, capped
from kruise.local.fields.schema import Type
from kruise.local.fields.sets import FieldSet, Path
from kruise.local.fields.typed import Comparison
from kruise.machinery.patches.values import same

Json = dict[str, Any]

_NEVER_OWNED: Final = sets.union(
    sets.of_paths(("apiVersion",), ("kind",), ("metadata",)),
    sets.of_paths(
        *(
            ("metadata", name)
            for name in (
                "name",
                "namespace",
                "creationTimestamp",
                "selfLink",
                "uid",
                "clusterName",
                "generation",
                "managedFields",
                "resourceVersion",
            )
        )
    ),
)
_CURRENT: Final = Owner("current-operation", UPDATE, "", "")
BEFORE_FIRST_APPLY: Final = "before-first-apply"


@dataclasses.dataclass(frozen=True, slots=True)
class Rules:
    """What has to be known of a kind, one of its versions and the part of it that is written."""

    api_version: str
    type_in: Callable[[str], Type | None]
    """The type in an API version; None for versions that are not served any more."""
    convert: Convert
    reset: FieldSet = dataclasses.field(default_factory=dict)
    """Fields that a write of this part does not change: nobody becomes their owner by it."""
    only: FieldSet | None = None
    """The fields that a write of this part changes alone, where it is told so."""
    subresource: str = ""

    @property
    def type(self) -> Type:
        found = self.type_in(self.api_version)
        if found is None:
            raise ValueError(f"there is no type for {self.api_version}")
        return found

    def kept(self, fields: FieldSet) -> FieldSet:
        return sets.recursive_difference(fields, self.reset) if self.only is None else sets.only(fields, self.only)

    def compared(self, before: Json, after: Json, api_version: str) -> Comparison:
        """What differs, in one of the kind's versions."""
        kind = self.type_in(api_version)
        assert kind is not None
        if api_version != self.api_version:
            return typed.compare(self.convert(before, api_version), self.convert(after, api_version), kind)
        found = typed.compare(before, after, kind)
        return found.without(self.reset) if self.only is None else found.only(self.only)


class Conflict(NamedTuple):
    owner: Owner
    path: Path


class ConflictsError(Exception):
    """An apply would change what others own."""

    def __init__(self, conflicts: list[Conflict]) -> None:
        super().__init__(message(conflicts))
        self.conflicts = conflicts


def message(conflicts: list[Conflict]) -> str:
    if len(conflicts) == 1:
        only = conflicts[0]
        return f"Apply failed with 1 conflict: conflict with {described(only.owner)}: {sets.path_text(only.path)}"
    lines: list[str] = []
    by_owner: dict[Owner, list[Path]] = {}
    for conflict in conflicts:
        by_owner.setdefault(conflict.owner, []).append(conflict.path)
    for owner in sorted(by_owner, key=lambda owner: owner.identifier):
        lines.append(f"conflicts with {described(owner)}:")
        lines.extend(f"- {sets.path_text(path)}" for path in by_owner[owner])
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)


def described(owner: Owner) -> str:
    text = sets.element_text(sets.value_element(owner.manager))[2:-1]
    if owner.subresource:
        text += f' with subresource "{owner.subresource}"'
    return f"{text} using {owner.api_version}" if owner.operation == UPDATE else text


# What both have in common


def _fitted(rules: Rules, owned: Mapping[Owner, Owned]) -> dict[Owner, Owned]:
    """By today's schema, and without versions that are gone."""
    result: dict[Owner, Owned] = {}
    for owner, mine in owned.items():
        kind = rules.type_in(mine.api_version)
        if kind is not None:
            result[owner] = mine._replace(fields=typed.fitted(mine.fields, kind))
    return result


def _taken(
    rules: Rules, before: Json, after: Json, owned: Mapping[Owner, Owned], taker: Owner, *, force: bool
) -> tuple[dict[Owner, Owned], Comparison]:
    """Take what changed from everybody but the taker; what is gone has no owner any more."""
    comparisons = {rules.api_version: rules.compared(before, after, rules.api_version)}
    conflicts: list[Conflict] = []
    result: dict[Owner, Owned] = {}
    for owner, mine in owned.items():
        if owner == taker:
            result[owner] = mine
            continue
        if mine.api_version not in comparisons:
            comparisons[mine.api_version] = rules.compared(before, after, mine.api_version)
        change = comparisons[mine.api_version]
        contested = sets.intersection(mine.fields, sets.union(change.modified, change.added))
        if contested and not force:
            conflicts.extend(Conflict(owner, path) for path in sets.paths(contested))
        left = sets.difference(sets.difference(mine.fields, contested), change.removed)
        if left:
            result[owner] = mine._replace(fields=left)
    if conflicts:
        raise ConflictsError(sorted(conflicts, key=lambda conflict: conflict.owner.identifier))
    return result, comparisons[rules.api_version]


# Update


def update(
    rules: Rules, before: Json, after: Json, managed: Managed, manager: str, moment: str | None, *, fit: bool = True
) -> Managed:
    """The owners after a create, update or patch. `after` is what was asked for, before the server changed it.

    `fit`: the schema may have changed since `managed` was made. Raises `TypedError` where an object has elements that
    cannot be known.
    """
    owner = Owner.of(manager or "unknown", UPDATE, rules.api_version, rules.subresource)
    known = _fitted(rules, managed.owned) if fit else managed.owned
    owned, change = _taken(rules, before, after, known, _CURRENT, force=True)
    gained = sets.difference(rules.kept(sets.union(change.modified, change.added)), _NEVER_OWNED)
    times = dict(managed.times)
    if gained:
        previous = owned.get(owner)
        fields = gained if previous is None else sets.union(gained, previous.fields)
        owned[owner] = Owned(fields, rules.api_version, False)
        times[owner] = moment
    return capped(Managed(owned, times))


# Apply


class Applied(NamedTuple):
    object: Json | None
    """The merged object, None where it does not differ from the one before."""
    managed: Managed


def apply(
    rules: Rules, empty: Json, live: Json, config: Json, managed: Managed, manager: str, moment: str, *, force: bool
) -> Applied:
    """Merge what a manager wants into the live object.

    Raises `ConflictsError`, `TypedError` for a configuration that does not fit the kind, and what a conversion raises.
    """
    if not managed.owned:
        managed = update(rules, empty, live, NOBODY, BEFORE_FIRST_APPLY, moment)
    kind = rules.type
    owner = Owner.of(manager, APPLY, rules.api_version, rules.subresource)
    owned = _fitted(rules, managed.owned)
    merged = typed.merge(live, config, kind)
    last = owned.get(owner)
    owned[owner] = Owned(rules.kept(typed.field_set(config, kind)), rules.api_version, True)
    result = _pruned(rules, merged, owned, owner, last)
    owned, _ = _taken(rules, live, result, owned, owner, force=force)
    mine = owned.get(owner)
    if mine is not None:
        fields = sets.difference(mine.fields, _NEVER_OWNED)
        if fields:
            owned[owner] = mine._replace(fields=fields)
        else:
            del owned[owner]
    times = dict(managed.times)
    if same(live, result):
        return Applied(None, Managed(owned, times))
    times[owner] = moment
    return Applied(result, Managed(owned, times))


def _pruned(rules: Rules, merged: Json, owned: dict[Owner, Owned], owner: Owner, last: Owned | None) -> Json:
    """Without what the manager applied before, does not apply now, and nobody else owns."""
    if last is None or not last.fields:
        return merged
    kind = rules.type_in(last.api_version)
    if kind is None:
        return merged
    merged = rules.convert(merged, last.api_version)
    lasting = typed.with_named_fields(last.fields, kind)
    pruned = typed.remove(merged, lasting, kind)
    pruned = _with_owned(rules, merged, pruned, owned.values(), last.api_version)
    whole = typed.with_named_fields(typed.field_set(merged, kind), kind)
    left = typed.with_named_fields(typed.field_set(pruned, kind), kind)
    gone = sets.intersection(sets.difference(whole, left), lasting)
    return rules.convert(typed.remove(merged, gone, kind), owned[owner].api_version)


def _with_owned(rules: Rules, merged: Json, pruned: Json, owned: Iterable[Owned], first: str) -> Json:
    """`pruned` with what somebody owns put back from `merged`, version by version."""
    by_version: dict[str, FieldSet] = {first: {}}
    for mine in owned:
        by_version[mine.api_version] = sets.union(by_version.get(mine.api_version, {}), mine.fields)
    for version, fields in by_version.items():
        kind = rules.type_in(version)
        if kind is None:
            continue
        whole, left = rules.convert(merged, version), rules.convert(pruned, version)
        everything = typed.with_named_fields(typed.field_set(whole, kind), kind)
        staying = sets.union(
            typed.with_named_fields(typed.field_set(left, kind), kind), typed.with_named_fields(fields, kind)
        )
        pruned = typed.remove(whole, sets.difference(everything, staying), kind)
    return rules.convert(pruned, first)
