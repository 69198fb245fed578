"""Reading objects into their types."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.local.apicore import KindDescription, StatusError
from kruise.local.kinds import NATIVE_KINDS
from tests.local.kinds.cases import CREATES

KINDS = {kind.plural: kind for kind in NATIVE_KINDS}
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


def _read(kind: KindDescription, body: dict[str, Any]) -> dict[str, Any] | None:
    """The object, or None where it is refused as unreadable."""
    try:
        return kind.default(body)
    except StatusError as error:
        if error.code != 400:
            raise
        return None


@pytest.mark.parametrize("case", CREATES, ids=lambda case: f"{case.plural}: {case.title}")
def test_reading_twice_changes_nothing(case: Any) -> None:
    """What is stored is read again with each patch, so defaults must be stable."""
    kind = KINDS[case.plural]
    body = {"metadata": {"name": "x", "namespace": "n"}, **case.body}
    body["metadata"] = {"name": "x", "namespace": "n", **(case.body.get("metadata") or {})}
    once = _read(kind, body)
    assert once is None or kind.default(once) == once


@given(st.sampled_from(sorted(KINDS)), st.sampled_from(["spec", "status", "webhooks", "data", "rules"]), _JSON)
def test_any_json_is_read_or_refused(plural: str, field: str, value: Any) -> None:
    """Nothing that a client can send makes reading or validation fail in another way."""
    kind = KINDS[plural]
    body = {"metadata": {"name": "x", "namespace": "n", "uid": "u", "creationTimestamp": "2024-01-01T00:00:00Z"}}
    obj = _read(kind, {**body, field: value})
    if obj is not None:
        assert all(error.path for error in kind.validate(kind.prepare_create(obj), None))


def test_owners_of_fields_are_left_alone() -> None:
    """Whoever tracks them may keep them in any form."""
    owners = object()
    for plural in ("pods", "configmaps", "deployments"):
        obj = KINDS[plural].default({"metadata": {"name": "x", "managedFields": owners}})
        assert obj["metadata"]["managedFields"] is owners
