"""Names: the safe alphabet, truncation, and choosing without chance."""

from __future__ import annotations

import random
import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.machinery import names
from kruise.machinery.names import ALPHABET, NameSource


def test_safe_encoding_is_kubernetes_own() -> None:
    """Decimal digits, which is what hashes are written in (IPU-12)."""
    assert names.safe_encode("0123456789") == "456789bcdf"
    assert names.safe_encode("") == ""


def test_a_generated_name_fits_into_a_label() -> None:
    source = NameSource(1)
    name = source.generate("x" * 80)
    assert len(name) == 63
    assert name.startswith("x" * 58)
    assert set(name[58:]) <= set(ALPHABET)
    assert source.generate("web-").startswith("web-")


def test_a_child_name_is_cut_in_the_base_never_in_the_suffix() -> None:
    assert names.child_name("web", "-abc") == "web-abc"
    assert names.child_name("w" * 300, "-abc", limit=names.SUBDOMAIN_MAX) == "w" * 249 + "-abc"
    with pytest.raises(ValueError, match="longer than 3"):
        names.child_name("web", "abcd", limit=3)


def test_the_same_seed_gives_the_same_names() -> None:
    one, other, third = NameSource(7), NameSource(7), NameSource(8)
    first = [one.generate("a-") for _ in range(20)]
    assert first == [other.generate("a-") for _ in range(20)]
    assert first != [third.generate("a-") for _ in range(20)]


def test_uids_are_random_uuids() -> None:
    source = NameSource("seed")
    found = {source.uid() for _ in range(100)}
    assert len(found) == 100
    assert all(uuid.UUID(uid).version == 4 and uuid.UUID(uid).variant == uuid.RFC_4122 for uid in found)


def test_a_random_suffix_comes_from_the_given_source() -> None:
    assert names.random_suffix(random.Random(3)) == names.random_suffix(random.Random(3))
    assert len(names.random_suffix(random.Random(3), 9)) == 9


@settings(max_examples=50, deadline=None)
@given(st.uuids(), st.integers(0, 2**32), st.integers(0, 50))
def test_chosen_names_are_different_valid_and_repeatable(uid: uuid.UUID, seed: int, count: int) -> None:
    chosen = names.choose_names("web-", count, owner_uid=str(uid), seed=seed)
    assert len(set(chosen)) == count
    assert chosen == names.choose_names("web-", count, owner_uid=str(uid), seed=seed)
    assert all(name.startswith("web-") and not names.dns_subdomain_problems(name) for name in chosen)


@settings(max_examples=50, deadline=None)
@given(st.uuids(), st.integers(0, 2**32), st.integers(1, 20))
def test_taken_names_are_passed_over_and_do_not_move_the_others(uid: uuid.UUID, seed: int, count: int) -> None:
    """A name that has meanwhile been used changes no other name of the plan."""
    chosen = names.choose_names("web-", count, owner_uid=str(uid), seed=seed)
    again = names.choose_names("web-", count, owner_uid=str(uid), seed=seed, taken={chosen[0]})
    assert again[0] != chosen[0]
    assert again[1:] == chosen[1:]


def test_owners_and_seeds_choose_differently() -> None:
    def one(uid: str, seed: int) -> str:
        return names.choose_suffixes(1, owner_uid=uid, seed=seed)[0]

    assert len({one("a", 1), one("b", 1), one("a", 2), one("1", 1)}) == 4


def test_the_parts_of_a_derived_suffix_do_not_run_together() -> None:
    assert names.derived_suffix("a", "bc") != names.derived_suffix("ab", "c")
    assert names.derived_suffix("a", 1) == names.derived_suffix("a", 1)


def test_long_bases_leave_room_for_the_suffix() -> None:
    chosen = names.choose_names("w" * 70 + "-", 2, owner_uid="u", seed=1)
    assert [len(name) for name in chosen] == [63, 63]
    assert names.choose_names("w" * 70 + "-", 1, owner_uid="u", seed=1, taken=chosen) != chosen[:1]


def test_service_names_are_stricter() -> None:
    assert names.dns_1035_label_problems("web-1") == []
    assert "start with an alphabetic character" in names.dns_1035_label_problems("1web")[0]
    assert names.dns_1035_label_problems("w" * 64) == ["must be no more than 63 characters"]
