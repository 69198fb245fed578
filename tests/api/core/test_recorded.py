"""The model against answers of a real API server that were written down."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.machinery.patches import merge
from tests.api.core import comparison, recorded
from tests.api.core.accepted_cases import accepted_cases
from tests.api.core.refused_cases import refused_cases
from tests.api.core.update_cases import UPDATES

ACCEPTED, REFUSED, GENERATED = (recorded.read(kind) for kind in ("accepted", "refused", "generated"))
UPDATE, BASE = recorded.read("update"), recorded.read("base")


def _agree(template: Any, case: dict[str, Any]) -> None:
    assert comparison.difference(comparison.template_answer(template), case["template"]) == ""
    if "pod" in case:
        assert comparison.difference(comparison.pod_answer(template), case["pod"]) == ""


def test_the_record_is_complete() -> None:
    """Every case in the code was recorded, so that none goes untested."""
    assert set(ACCEPTED) == set(accepted_cases())
    assert set(REFUSED) == set(refused_cases())
    assert set(UPDATE) == set(UPDATES)
    assert len(GENERATED) == recorded.GENERATED


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted_templates(name: str) -> None:
    _agree(accepted_cases()[name], ACCEPTED[name])


@pytest.mark.parametrize("name", REFUSED)
def test_refused_templates(name: str) -> None:
    _agree(refused_cases()[name], REFUSED[name])


@pytest.mark.parametrize("name", GENERATED)
def test_generated_templates(name: str) -> None:
    _agree(GENERATED[name]["sent"], GENERATED[name])


@pytest.mark.parametrize("name", UPDATE)
def test_updates_of_pods(name: str) -> None:
    base, subresource, patch = UPDATES[name]
    old = BASE[base]["pod"]
    ours = comparison.update_answer(merge.apply(old, patch), old, subresource)
    assert comparison.difference(ours, UPDATE[name]["update"]) == ""
    assert comparison.same_messages(ours, UPDATE[name]["update"])


def test_refusals_have_the_words_of_the_server() -> None:
    """All messages are equal to the letter but two: one quotes a control character, one has the words of Go's JSON."""
    cases = refused_cases()
    other = [
        name
        for name, case in REFUSED.items()
        if not comparison.same_messages(comparison.template_answer(cases[name]), case["template"])
    ]
    assert sorted(other) == ["annotation: tolerations not JSON", "container security: windows control"]
