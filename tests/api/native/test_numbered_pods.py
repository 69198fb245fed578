"""Numbered pods: their names, and who owns their claims."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.api.native.claim_retention import DELETE, RETAIN, RetentionPolicy, claim_owners
from kruise.api.native.ordinals import claim_name, ordinal_of, parent_and_ordinal, pod_name

names = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)


@given(name=names, template=names, ordinal=st.integers(0, 2**31 - 1))
def test_names_are_read_back(name: str, template: str, ordinal: int) -> None:
    assert parent_and_ordinal(pod_name(name, ordinal)) == (name, ordinal)
    assert ordinal_of(claim_name(template, name, ordinal)) == ordinal


@pytest.mark.parametrize("name", ["web", "web-", "web-x", "web-1x", "web-٣"])
def test_other_names_have_no_parent(name: str) -> None:
    assert parent_and_ordinal(name) == ("", None)


@pytest.mark.parametrize("name", ["web-01", "web-2147483648", "web-" + "9" * 40])
def test_an_ordinal_is_written_in_one_way(name: str) -> None:
    """Two pods must never stand for one ordinal."""
    assert parent_and_ordinal(name) == ("web", None)


@pytest.mark.parametrize(
    ("deleted", "scaled", "kept", "condemned"),
    [
        (RETAIN, RETAIN, (False, False), (False, False)),
        (DELETE, RETAIN, (True, False), (True, False)),
        (RETAIN, DELETE, (False, False), (False, True)),
        (DELETE, DELETE, (True, False), (False, True)),
    ],
)
def test_owners_of_claims(
    deleted: str, scaled: str, kept: tuple[bool, bool], condemned: tuple[bool, bool]
) -> None:  # ST-82
    policy = RetentionPolicy(when_deleted=deleted, when_scaled=scaled)
    assert claim_owners(policy, is_condemned=False) == kept
    assert claim_owners(policy, is_condemned=True) == condemned
    assert policy.retains_all == (kept == condemned == (False, False))
