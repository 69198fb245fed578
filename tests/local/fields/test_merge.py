"""Who owns what after updates and applies: the rules by themselves, without a server."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.local.fields import managers, merge, schema, sets
from kruise.local.fields.managers import NOBODY, Managed, Owner
from kruise.local.fields.merge import ConflictsError, Rules
from tests.support.examples import EXAMPLES

TEXT = {"type": "string"}
SPEC = {
    "type": "object",
    "properties": {
        "size": {"type": "integer"},
        "tags": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
        "options": {"type": "object", "additionalProperties": TEXT},
    },
}
KIND = schema.custom({"type": "object", "properties": {"spec": SPEC, "status": {"type": "object"}}})
V1 = "x/v1"
EMPTY = {"apiVersion": V1, "kind": "X"}
RULES = Rules(V1, {V1: KIND}.get, lambda obj, version: {**obj, "apiVersion": version}, reset=sets.of_paths(("status",)))


def obj(**spec: Any) -> dict[str, Any]:
    return {**EMPTY, "metadata": {"name": "a", "uid": "u"}, "spec": spec}


class Play:
    """An object and its owners, through a few writes."""

    def __init__(self) -> None:
        self.object: dict[str, Any] = EMPTY
        self.managed: Managed = NOBODY
        self.moment = 0

    def apply(self, manager: str, *, force: bool = False, **spec: Any) -> Play:
        self.moment += 1
        config = {**EMPTY, "metadata": {"name": "a"}, "spec": spec}
        done = merge.apply(RULES, EMPTY, self.object, config, self.managed, manager, f"t{self.moment}", force=force)
        self.object, self.managed = done.object or self.object, done.managed
        return self

    def update(self, manager: str, **spec: Any) -> Play:
        self.moment += 1
        new = obj(**spec)
        self.managed = merge.update(RULES, self.object, new, self.managed, manager, f"t{self.moment}")
        self.object = new
        return self

    @property
    def said(self) -> dict[str, Any]:
        """The content, without what is empty: where the last field goes, the server leaves nothing, null or `{}`."""
        content = self.object.get("spec") or {}
        return {name: value for name, value in content.items() if value not in (None, {}, [])}

    @property
    def owners(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for owner, owned in self.managed.owned.items():
            found.setdefault(owner.manager, []).extend(sets.path_text(path) for path in sets.paths(owned.fields))
        return found


def test_an_update_takes_what_it_changes() -> None:
    play = Play().update("one", size=1, options={"a": "1"}).update("two", size=2, options={"a": "1"})
    assert play.owners == {"one": [".spec", ".spec.options", ".spec.options.a"], "two": [".spec.size"]}


def test_what_is_gone_has_no_owner() -> None:
    play = Play().update("one", size=1, options={"a": "1"}).update("two", size=1)
    assert play.owners == {"one": [".spec", ".spec.size"]}


def test_an_update_that_changes_nothing_gives_nothing() -> None:
    play = Play().update("one", size=1)
    before = play.managed
    assert play.update("two", size=1).managed.owned == before.owned


def test_equal_wishes_share_a_field_and_the_last_takes_it_along() -> None:
    play = Play().apply("one", size=1).apply("two", size=1)
    assert play.owners == {"one": [".spec.size"], "two": [".spec.size"]}
    play.apply("one")
    assert play.said == {"size": 1}
    play.apply("two")
    assert play.said == {}


def test_conflicts_name_owner_and_field() -> None:
    play = Play().update("updater", size=1).apply("one", tags=["a"])
    with pytest.raises(ConflictsError) as caught:
        play.apply("two", size=2)
    assert str(caught.value) == 'Apply failed with 1 conflict: conflict with "updater" using x/v1: .spec.size'
    play.apply("two", size=2, force=True)
    assert play.owners["two"] == [".spec.size"]
    with pytest.raises(ConflictsError) as caught:
        play.apply("three", size=3, tags=["b"], options={})
    assert str(caught.value) == 'Apply failed with 1 conflict: conflict with "two": .spec.size'


def test_several_conflicts_are_listed_by_owner() -> None:
    play = Play().update("b", size=1).update("a", size=1, options={"x": "1", "y": "1"})
    with pytest.raises(ConflictsError) as caught:
        play.apply("three", size=2, options={"x": "2", "y": "2"})
    assert str(caught.value) == (
        'Apply failed with 3 conflicts: conflicts with "a" using x/v1:\n'
        '- .spec.options.x\n- .spec.options.y\nconflicts with "b" using x/v1:\n- .spec.size'
    )


def test_elements_of_a_set_go_with_their_last_owner() -> None:
    play = Play().apply("one", tags=["a", "b"]).apply("two", tags=["b", "c"]).apply("one", tags=[])
    assert play.object["spec"]["tags"] == ["b", "c"]


def test_the_first_apply_finds_an_owner_for_what_is_there() -> None:
    play = Play()
    play.object = obj(size=1)
    play.apply("one", options={"a": "1"})
    assert play.owners["before-first-apply"] == [".spec", ".spec.size"]
    with pytest.raises(ConflictsError, match="before-first-apply"):
        play.apply("one", size=2)


def test_status_is_not_owned_through_the_object() -> None:
    managed = merge.update(RULES, EMPTY, {**obj(size=1), "status": {"phase": "x"}}, NOBODY, "one", "t1")
    (owned,) = managed.owned.values()
    assert owned.fields == {"f:spec": {".": {}, "f:size": {}}}


def test_an_owner_in_a_version_that_is_gone_is_forgotten() -> None:
    old = Owner.of("old", managers.UPDATE, "x/v0", "")
    held = Managed({old: managers.Owned(sets.of_paths(("spec", "size")), "x/v0", False)}, {old: "t0"})
    managed = merge.update(RULES, obj(size=1), obj(size=2), held, "one", "t1")
    assert [owner.manager for owner in managed.owned] == ["one"]


def test_updaters_beyond_ten_are_put_together() -> None:
    play = Play()
    options: dict[str, str] = {}
    for number in range(14):
        options = {**options, f"k{number:02}": "1"}
        play.update(f"u{number:02}", options=options)
    updaters = {owner.manager for owner in play.managed.owned}
    assert len(updaters) == managers.MAX_UPDATERS
    assert ".spec.options.k00" in play.owners["ancient-changes"]
    assert "u13" in updaters


# Never empty: a part of which nothing is left is owned in ways that only the server's own suite can tell.
SPECS = st.fixed_dictionaries(
    {"size": st.integers(0, 2)},
    optional={
        "tags": st.lists(st.sampled_from("abc"), unique=True, min_size=1, max_size=3),
        "options": st.dictionaries(st.sampled_from("xy"), st.sampled_from("12"), min_size=1, max_size=2),
    },
)
STEPS = st.lists(st.tuples(st.sampled_from(["one", "two", "three"]), st.booleans(), SPECS), min_size=1, max_size=6)


@given(STEPS)
@settings(max_examples=40 * EXAMPLES)
def test_whatever_happens_an_applier_has_what_it_asked_for(steps: list[Any]) -> None:
    """After a forced apply the object says all that was applied, the applier owns it, and applying again is nothing."""
    play = Play()
    for manager, is_apply, spec in steps:
        if not is_apply:
            play.update(manager, **spec)
            continue
        play.apply(manager, force=True, **spec)
        current = play.said
        assert current.get("size") == spec.get("size", current.get("size"))
        assert set(spec.get("tags", ())) <= set(current.get("tags", ()))
        assert spec.get("options", {}).items() <= current.get("options", {}).items()
        owned = play.managed.owned
        play.apply(manager, **spec)
        assert (play.said, play.managed.owned) == (current, owned)


@given(STEPS)
@settings(max_examples=80)
def test_owners_own_only_what_is_there(steps: list[Any]) -> None:
    play = Play()
    for manager, is_apply, spec in steps:
        _ = play.apply(manager, force=True, **spec) if is_apply else play.update(manager, **spec)
    spec = play.said
    for owned in play.managed.owned.values():
        if not owned.applied:
            for path in sets.paths(owned.fields):
                if path[:2] == ("f:spec", "f:options") and len(path) == 3:
                    assert path[2][2:] in spec["options"]


def test_entries_survive_being_written_and_read() -> None:
    play = Play().apply("one", size=1).update("two", size=1, tags=["a"])
    entries = managers.packed(play.managed)
    shown = [{**entry.shown(), "fieldsV1": sets.from_json(entry.fields)} for entry in entries]
    assert managers.read(shown) == entries
    assert [entry["operation"] for entry in shown] == ["Apply", "Update"]
    assert managers.unpacked(entries).owned == play.managed.owned


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({"operation": "Dance", "apiVersion": "v1"}, "operation must be `Apply` or `Update`"),
        ({"operation": "Apply"}, "apiVersion must not be empty"),
        ({"operation": "Apply", "apiVersion": "v1"}, "missing fieldsType"),
        ({"operation": "Apply", "apiVersion": "v1", "fieldsType": "X"}, "invalid fieldsType"),
        ("x", "must be an object"),
    ],
)
def test_entries_that_make_no_sense(entry: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        managers.read([entry])
