"""Each rule of the store by example. Their combinations are in test_interleavings.py."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.api.native.config import CONFIG_MAPS, ConfigMap
from kruise.machinery import store as store_module
from kruise.machinery.codec import evolve
from kruise.machinery.store import StaleListError, Store, VersionError
from kruise.machinery.watched import Watched
from tests.support.store_model import config_map

Call = tuple[str | None, str | None]


def listed(*objects: ConfigMap, version: int = 10, **options: Any) -> tuple[Store[ConfigMap], list[Call]]:
    """A store after its first list, and the versions that its handler is called with from then on."""
    own = {name: options.pop(name) for name in ("accepts", "report") if name in options}
    store: Store[ConfigMap] = Store(Watched(CONFIG_MAPS, **options), **own)
    store.replace(objects, version)
    calls: list[Call] = []
    store.subscribe(lambda old, new: calls.append((_version(old), _version(new))))
    calls.clear()
    return store, calls


def _version(obj: ConfigMap | None) -> str | None:
    return obj.metadata.resource_version if obj is not None else None


def version(store: Store[ConfigMap], name: str = "a") -> str | None:
    return _version(store.get("ns", name))


class TestEvents:
    def test_come_change_and_go(self) -> None:
        store, calls = listed()
        assert store.event("ADDED", config_map("a", 11))
        assert store.event("MODIFIED", config_map("a", 12))
        assert version(store) == "12"
        assert store.event("DELETED", config_map("a", 13))
        assert version(store) is None
        assert calls == [(None, "11"), ("11", "12"), ("12", None)]
        assert store.watermark == 13

    def test_repeated_and_older_events_are_silent(self) -> None:
        store, calls = listed(config_map("a", 5))
        store.event("MODIFIED", config_map("a", 12))
        calls.clear()
        assert store.event("MODIFIED", config_map("a", 12))
        assert store.event("MODIFIED", config_map("a", 7))
        assert store.event("DELETED", config_map("a", 8))
        assert version(store) == "12"
        assert calls == []

    def test_versions_compare_as_numbers_not_as_text(self) -> None:
        store, _ = listed(config_map("a", 9), version=9)
        store.event("MODIFIED", config_map("a", 10))
        assert version(store) == "10"

    def test_a_late_event_about_an_unknown_object_is_not_applied_and_asks_for_a_list(self) -> None:
        """It may repeat what was deleted since."""
        store, calls = listed()
        store.event("ADDED", config_map("a", 11))
        store.event("DELETED", config_map("a", 12))
        calls.clear()
        assert not store.event("ADDED", config_map("a", 11))
        assert len(store) == 0
        assert calls == []

    def test_a_late_event_newer_than_the_stored_object_is_applied(self) -> None:
        """Out of order, but nothing is lost."""
        store, _ = listed(config_map("a", 5), config_map("b", 6))
        store.event("MODIFIED", config_map("b", 20))
        assert store.event("MODIFIED", config_map("a", 15))
        assert version(store) == "15"
        assert store.watermark == 20

    def test_recreated_under_the_same_name_goes_and_comes(self) -> None:
        store, calls = listed(config_map("a", 5, "one"))
        store.event("ADDED", config_map("a", 15, "two"))
        assert calls == [("5", None), (None, "15")]
        assert len(store) == 1

    def test_a_bookmark_moves_the_watermark_but_never_back(self) -> None:
        store, _ = listed()
        store.bookmark(20)
        store.bookmark(15)
        assert store.watermark == 20

    def test_a_version_that_is_no_number_is_named(self) -> None:
        store, _ = listed()
        strange = config_map("a", 1)
        strange = evolve(strange, metadata=evolve(strange.metadata, resource_version="x1"))
        with pytest.raises(VersionError, match=r"configmaps ns/a has resourceVersion 'x1'"):
            store.event("ADDED", strange)
        with pytest.raises(VersionError, match="no number"):
            store.written(strange)
        with pytest.raises(VersionError, match="no number"):
            store.replace([config_map("b", 11), strange], 12)
        assert len(store) == 0, "a list is taken as a whole or not at all"
        assert store.watermark == 10


class TestAnswers:
    def test_above_the_watermark_is_stored_and_its_echo_is_silent(self) -> None:
        store, calls = listed(config_map("a", 5))
        store.written(config_map("a", 12))
        assert version(store) == "12"
        assert store.watermark == 10
        store.event("MODIFIED", config_map("a", 12))
        assert calls == [("5", "12")]
        assert store.watermark == 12

    def test_at_or_below_the_watermark_is_dropped(self) -> None:
        store, calls = listed(config_map("a", 5))
        store.written(config_map("a", 10))
        store.written(config_map("b", 9))
        assert version(store) == "5"
        assert version(store, "b") is None
        assert calls == []

    def test_does_not_bring_back_what_was_deleted(self) -> None:
        store, _ = listed(config_map("a", 5))
        store.event("MODIFIED", config_map("a", 11))
        store.event("DELETED", config_map("a", 12))
        store.written(config_map("a", 11))
        assert len(store) == 0

    def test_older_than_another_answer_is_dropped(self) -> None:
        store, _ = listed()
        store.written(config_map("a", 15))
        store.written(config_map("a", 14))
        assert version(store) == "15"

    def test_of_a_recreated_object_before_the_end_of_its_predecessor(self) -> None:
        """The late DELETED of the old one is older than the new one."""
        store, calls = listed(config_map("a", 5, "one"))
        store.written(config_map("a", 13, "two"))
        store.event("DELETED", config_map("a", 12, "one"))
        found = store.get("ns", "a")
        assert found is not None
        assert found.metadata.uid == "two"
        assert calls == [("5", None), (None, "13")]

    def test_before_the_first_list_is_visible(self) -> None:
        store: Store[ConfigMap] = Store(CONFIG_MAPS)
        store.written(config_map("a", 12))
        assert version(store) == "12"
        assert not store.synced
        store.replace([], 11)
        assert version(store) == "12"
        store.replace([], 12)
        assert version(store) is None

    def test_outside_the_watched_part_is_dropped(self) -> None:
        """No event would ever correct it."""
        store, calls = listed(accepts=lambda obj: obj.metadata.labels.get("app") == "x")
        store.written(config_map("a", 11))
        store.written(config_map("b", 12, app="x"))
        assert [obj.metadata.name for obj in store.list()] == ["b"]
        assert calls == [(None, "12")]


class TestDeletes:
    def test_the_answer_marks_the_object_until_it_goes(self) -> None:
        store, calls = listed(config_map("a", 5))
        store.delete_answered("uid-a")
        found = store.get("ns", "a")
        assert found is not None
        assert store.is_terminating(found)
        assert calls == [], "the event that tells all others follows"
        store.event("MODIFIED", config_map("a", 11))
        assert store.is_terminating(config_map("a", 11))
        store.event("DELETED", config_map("a", 12))
        assert not store.is_terminating(found)

    def test_the_object_in_the_answer_is_stored(self) -> None:
        store, calls = listed(config_map("a", 5))
        store.delete_answered(obj=config_map("a", 11, terminating=True))
        found = store.get("ns", "a")
        assert found is not None
        assert found.metadata.deletion_timestamp is not None
        assert calls == [("5", "11")]

    def test_the_event_of_the_same_version_applies(self) -> None:
        store, _ = listed(config_map("a", 5))
        store.delete_answered(obj=config_map("a", 11))
        store.event("DELETED", config_map("a", 11))
        assert len(store) == 0

    def test_a_deletion_timestamp_alone_is_enough(self) -> None:
        store, _ = listed(config_map("a", 5, terminating=True), config_map("b", 6))
        a, b = store.list()
        assert store.is_terminating(a)
        assert not store.is_terminating(b)

    def test_an_answer_before_the_object_is_known_is_remembered(self) -> None:
        store, _ = listed()
        store.delete_answered("uid-a")
        store.event("ADDED", config_map("a", 11))
        assert store.is_terminating(config_map("a", 11))

    def test_an_answer_after_the_end_leaves_nothing_behind(self) -> None:
        store, _ = listed(config_map("a", 5))
        store.event("DELETED", config_map("a", 12))
        store.delete_answered(obj=config_map("a", 12))
        assert len(store) == 0
        assert not store.is_terminating(config_map("a", 12))
        assert not store._marked_early

    def test_what_is_remembered_for_nothing_is_bounded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(store_module, "EARLY_MARKS", 3)
        store, _ = listed()
        for number in range(5):
            store.delete_answered(f"uid-{number}")
        store.event("ADDED", config_map("0", 11))
        store.event("ADDED", config_map("4", 12))
        assert not store.is_terminating(config_map("0", 11))
        assert store.is_terminating(config_map("4", 12))

    def test_a_successor_of_the_same_name_is_not_marked(self) -> None:
        store, _ = listed(config_map("a", 5, "one"))
        store.delete_answered("one")
        store.written(config_map("a", 13, "two"))
        assert not store.is_terminating(config_map("a", 13, "two"))


class TestLists:
    def test_swap_tells_only_the_differences(self) -> None:
        store, calls = listed(config_map("a", 5), config_map("b", 6), config_map("c", 7, "c1"), config_map("d", 8))
        store.replace([config_map("a", 5), config_map("b", 11), config_map("c", 12, "c2"), config_map("e", 13)], 20)
        assert sorted(map(repr, calls)) == sorted(
            map(repr, [("6", "11"), ("7", None), (None, "12"), (None, "13"), ("8", None)])
        )
        assert [obj.metadata.name for obj in store.list()] == ["a", "b", "c", "e"]

    def test_handlers_see_the_whole_swap(self) -> None:
        store, _ = listed(config_map("a", 5), config_map("b", 6))
        seen: list[tuple[str, ...]] = []
        store.subscribe(lambda old, new: seen.append(tuple(obj.metadata.name for obj in store.list())))
        seen.clear()
        store.replace([config_map("c", 11), config_map("d", 12)], 15)
        assert seen == [("c", "d")] * 4

    def test_a_list_older_than_the_watermark_is_refused(self) -> None:
        store, calls = listed(config_map("a", 5))
        with pytest.raises(StaleListError, match="version 9, its watch has delivered 10"):
            store.replace([], 9)
        assert version(store) == "5"
        assert calls == []

    def test_a_list_of_the_same_version_is_taken(self) -> None:
        store, _ = listed(config_map("a", 5))
        store.replace([], 10)
        assert len(store) == 0

    def test_written_objects_newer_than_the_list_survive(self) -> None:
        store, calls = listed(config_map("a", 5), config_map("b", 6, "b1"))
        store.written(config_map("a", 21))
        store.written(config_map("b", 23, "b2"))
        store.written(config_map("c", 22))
        calls.clear()
        store.replace([config_map("a", 15), config_map("b", 6, "b1")], 20)
        assert [_version(obj) for obj in store.list()] == ["21", "23", "22"]
        assert calls == []
        assert store.watermark == 20

    def test_written_objects_that_the_list_must_know_go_with_it(self) -> None:
        store, calls = listed()
        store.written(config_map("a", 15))
        store.replace([], 20)
        assert len(store) == 0
        assert calls == [(None, "15"), ("15", None)]

    def test_marks_survive_and_go_with_their_objects(self) -> None:
        store, _ = listed(config_map("a", 5), config_map("b", 6))
        store.delete_answered("uid-a")
        store.delete_answered("uid-b")
        store.replace([config_map("a", 5)], 20)
        assert store.is_terminating(config_map("a", 5))
        assert not store.is_terminating(config_map("b", 6))

    def test_a_server_that_lost_history_is_healed_by_its_list(self) -> None:
        store, calls = listed(config_map("a", 8))
        store.replace([config_map("a", 7)], 10)
        assert version(store) == "7"
        assert calls == [("8", "7")]

    def test_prepared_pages_reuse_what_is_stored(self) -> None:
        """A list of what is known already must not double the memory."""
        trims: list[str] = []

        def trim(obj: ConfigMap) -> ConfigMap:
            trims.append(obj.metadata.name)
            return evolve(obj, data={})

        store, _ = listed(config_map("a", 5), config_map("b", 6), trim=trim)
        trims.clear()
        stored = store.get("ns", "a")
        page = store.prepare([config_map("a", 5), config_map("b", 11)])
        assert page[0] is stored
        store.replace(page, 20, prepared=True)
        assert store.get("ns", "a") is stored
        assert trims == ["b"]


def by_app(obj: ConfigMap) -> list[str]:
    app = obj.metadata.labels.get("app", "")
    return app.split("-") if app else []


class TestReads:
    def test_lists_are_ordered_by_namespace_and_name(self) -> None:
        objects = [config_map(name, 5, name + space) for space in "yx" for name in "cab"]
        objects = [evolve(obj, metadata=evolve(obj.metadata, namespace=obj.metadata.uid[-1])) for obj in objects]
        store, _ = listed(*objects)
        assert [obj.metadata.uid for obj in store.list()] == ["ax", "bx", "cx", "ay", "by", "cy"]
        assert [obj.metadata.uid for obj in store.list("y")] == ["ay", "by", "cy"]
        assert store.list("none") == ()
        assert len(store) == 6

    def test_indexes_follow_every_change(self) -> None:
        store, _ = listed(config_map("b", 5, app="x"), config_map("a", 6, app="x-y"), indexes={"app": by_app})

        def names(value: str) -> str:
            return "".join(obj.metadata.name for obj in store.by_index("app", value))

        assert (names("x"), names("y")) == ("ab", "a")
        store.event("MODIFIED", config_map("a", 11, app="y"))
        assert (names("x"), names("y")) == ("b", "a")
        store.written(config_map("c", 12, app="x-x"))
        assert (names("x"), names("y")) == ("bc", "a")
        store.event("DELETED", config_map("b", 13, app="x"))
        assert (names("x"), names("y")) == ("c", "a")
        store.replace([config_map("a", 20, "other", app="x")], 20)
        assert (names("x"), names("y")) == ("a", "")

    def test_an_index_shows_the_newest_object(self) -> None:
        store, _ = listed(config_map("a", 5, app="x"), indexes={"app": by_app})
        store.event("MODIFIED", config_map("a", 11, app="x"))
        assert [_version(obj) for obj in store.by_index("app", "x")] == ["11"]

    def test_an_index_added_later_covers_what_is_there(self) -> None:
        store, _ = listed(config_map("a", 5, app="x"))
        store.add_indexes(Watched(CONFIG_MAPS, indexes={"app": by_app}))
        store.add_indexes(Watched(CONFIG_MAPS, indexes={"app": by_app}))
        store.event("ADDED", config_map("b", 11, app="x"))
        assert [obj.metadata.name for obj in store.by_index("app", "x")] == ["a", "b"]
        with pytest.raises(ValueError, match="'app' of configmaps exists with another function"):
            store.add_indexes(Watched(CONFIG_MAPS, indexes={"app": lambda obj: []}))

    def test_an_unknown_index_is_named(self) -> None:
        store, _ = listed(indexes={"app": by_app})
        with pytest.raises(LookupError, match=r"configmaps has no index 'node' \(it has: app\)"):
            store.by_index("node", "x")

    def test_only_the_trimmed_object_is_kept_and_shown(self) -> None:
        store, _ = listed(trim=lambda obj: evolve(obj, data={}))
        seen: list[ConfigMap | None] = []
        store.subscribe(lambda old, new: seen.append(new))
        store.event("ADDED", evolve(config_map("a", 11), data={"large": "text"}))
        assert store.list()[0].data == {}
        assert seen == [store.list()[0]]


class TestHandlers:
    def test_a_new_handler_is_told_of_what_is_there(self) -> None:
        store, _ = listed(config_map("a", 5), config_map("b", 6))
        calls: list[Call] = []
        end = store.subscribe(lambda old, new: calls.append((_version(old), _version(new))))
        assert calls == [(None, "5"), (None, "6")]
        end()
        store.event("ADDED", config_map("c", 11))
        assert len(calls) == 2

    def test_what_callbacks_raise_is_reported_and_stops_nothing(self) -> None:
        reports: list[str] = []

        def fails(obj: ConfigMap) -> list[str]:
            raise RuntimeError("index")

        def trim(obj: ConfigMap) -> ConfigMap:
            raise RuntimeError("trim")

        store, calls = listed(
            indexes={"bad": fails, "app": by_app}, trim=trim, report=lambda what, _: reports.append(what)
        )

        def handler(old: ConfigMap | None, new: ConfigMap | None) -> None:
            raise RuntimeError("handler")

        store.subscribe(handler)
        store.event("ADDED", config_map("a", 11, app="x"))
        assert [obj.metadata.name for obj in store.by_index("app", "x")] == ["a"]
        assert calls == [(None, "11")]
        assert [text.split()[0] for text in reports] == ["trim", "index", "handler"]
        assert all("configmaps ns/a" in text for text in reports)

    def test_without_a_report_they_raise(self) -> None:
        store, _ = listed(indexes={"bad": lambda obj: [obj.missing]})
        with pytest.raises(AttributeError, match="missing"):
            store.event("ADDED", config_map("a", 11))
