"""The page of rules and tests is made of what tests cite, and is up to date."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("rules_script", ROOT / "hack" / "rules.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


script = _script()
RULES = script.Rules({"CS": "CloneSet"}, {f"CS-{number}": "x" for number in ("1", "2", "3", "3a", "9")}, {})


def test_every_rule_has_a_test_or_a_reason_and_the_page_says_so() -> None:
    rules = script.read_rules()
    places = script.collect(ROOT, rules)
    assert script.mistakes(rules, places) == []
    assert (ROOT / "docs" / "rules.md").read_text() == script.page(rules, places), f"run {script.COMMAND}"


# Not in the decorator, where they would be citations.
CASES = [
    ("as CS-1 says", ["CS-1"]),
    ("CS-1, CS-9", ["CS-1", "CS-9"]),
    ("CS-2 to CS-9", ["CS-2", "CS-3", "CS-3a", "CS-9"]),
    ("CS-2 to 3", ["CS-2", "CS-3", "CS-3a"]),
    ("CS-3a", ["CS-3a"]),
    ("CS-9b is a part of it", ["CS-9"]),
    ("CS-9.4", ["CS-9"]),
    ("MGR-1, XCS-1, CS-x", []),
]


@pytest.mark.parametrize(("text", "found"), CASES)
def test_how_rules_are_cited(text: str, found: list[str]) -> None:
    assert list(script.cited_in(text, RULES)) == found


SOURCE = '''
"""Head of the file: CS-1."""

def helper():
    pass  # CS-9: told by the test that follows

# Before the test: CS-2
@decorated("CS-3")
def test_one():
    """CS-3a"""
    x = "CS-2 in a value is no citation"

class TestMore:
    def test_two(self):  # CS-9
        pass
'''.lstrip()


def test_where_a_citation_belongs() -> None:
    found = set(script.citations(SOURCE, RULES))
    assert found == {
        ("CS-1", ""),
        ("CS-9", "test_one"),
        ("CS-2", "test_one"),
        ("CS-3", "test_one"),
        ("CS-3a", "test_one"),
        ("CS-9", "TestMore::test_two"),
    }


def test_scenarios_have_names_of_their_own() -> None:
    source = 'def half_of_them_move():\n    """CS-2."""\n'
    assert list(script.citations(source, RULES, only_tests=False)) == [("CS-2", "half_of_them_move")]
    assert list(script.citations(source, RULES)) == [("CS-2", "")]


def test_mistakes_are_told() -> None:
    rules = script.Rules({"CS": ""}, {"CS-1": "one", "CS-2": "two", "CS-3": "three"}, {"CS-2": "no", "CS-4": "no"})
    place = script.Place("tests/test_x.py", "test_y")
    told = script.mistakes(rules, {"CS-2": [place], "CS-7": [place]})
    assert [line.split()[0] for line in told if line.startswith("CS")] == ["CS-7", "CS-2", "CS-4"]
    assert [line for line in told if line.startswith("no test")] == [
        "no test cites CS-1 (one): add one, or say why not in hack/rules.toml",
        "no test cites CS-3 (three): add one, or say why not in hack/rules.toml",
    ]
