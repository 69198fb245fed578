"""Makes docs/rules.md: which test shows which rule of behaviour.

Tests cite rules in comments, docstrings and decorators, singly (CS-57) or as a range (IPU-70 to IPU-73). A citation
belongs to the test it stands in; one between tests to the test that follows; one at the head of a file to the whole
file. The rules themselves, each in a few words, are listed in hack/rules.toml, with the few that have no test and why.

    python hack/rules.py            write docs/rules.md
    python hack/rules.py --check    only say whether it is up to date
"""

from __future__ import annotations

import ast
import dataclasses
import io
import re
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "rules.md"
LIST = ROOT / "hack" / "rules.toml"
COMMAND = "python hack/rules.py"

_SHOWN = 6
"""Tests named for a rule. Those that cite the fewest rules come first: they are about this one."""
_CITATION = re.compile(r"\b([A-Z]{2,5})-(\d+[a-z]?)(?: to (?:\1-)?(\d+))?")
"""Of any prefix; those that hack/rules.toml has a table for count."""
_HEAD = """\
# Rules and the tests that show them

Behaviour is stated in numbered rules. Tests cite the rule they show; this page is made of these citations by
`{command}` and is checked to be up to date. It names the tests that are most about a rule;
`grep -rn IPU-72 tests` finds them all. Tests under `tests/real` run on a real Kubernetes.
"""


@dataclasses.dataclass(frozen=True)
class Rules:
    titles: dict[str, str]
    """By prefix."""
    says: dict[str, str]
    """By rule, in the order of the list."""
    untested: dict[str, str]
    """Why a rule has no test."""

    def between(self, first: str, last: str) -> Iterator[str]:
        """Every known rule from one to another of the same prefix."""
        prefix, low, high = prefix_of(first), number_of(first), number_of(last)
        return (rule for rule in self.says if prefix_of(rule) == prefix and low <= number_of(rule) <= high)


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a rule is cited: a test, or a whole file."""

    path: str
    test: str = ""
    """Empty: the whole file."""


def prefix_of(rule: str) -> str:
    return rule.partition("-")[0]


def number_of(rule: str) -> int:
    return int(re.sub(r"\D", "", rule))


def read_rules(path: Path = LIST) -> Rules:
    tables = tomllib.loads(path.read_text())
    untested = tables.pop("untested")
    titles = {prefix: table.pop("title") for prefix, table in tables.items()}
    says = {f"{prefix}-{number}": text for prefix, table in tables.items() for number, text in table.items()}
    return Rules(titles, says, untested)


def cited_in(text: str, rules: Rules) -> Iterator[str]:
    """The rules that a text names. A letter behind the number is a rule of its own or a part of one."""
    for found in _CITATION.finditer(text):
        if found[1] not in rules.titles:
            continue
        rule = f"{found[1]}-{found[2]}"
        if rule not in rules.says:
            rule = rule.rstrip("abcdefghijklmnopqrstuvwxyz")
        yield from rules.between(rule, f"{found[1]}-{found[3]}") if found[3] else (rule,)


def citations(source: str, rules: Rules, *, only_tests: bool = True) -> Iterator[tuple[str, str]]:
    """Rules cited in a file, each with the name of the test; empty: the whole file.

    Files of scenarios (not `only_tests`) hold functions of any name, which tests elsewhere run.
    """
    if not _CITATION.search(source):
        return
    module = ast.parse(source)
    tests = [test for test in _functions(module) if not only_tests or test[1].rpartition("::")[2].startswith("test")]
    for line, text in _words(module, source):
        name = next((name for last, name in tests if line <= last), "") if line > _head(module) else ""
        yield from ((rule, name) for rule in cited_in(text, rules))


def _head(module: ast.Module) -> int:
    """The last line of the file's own docstring."""
    return (module.body[0].end_lineno or 0) if ast.get_docstring(module) is not None else 0


def _functions(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Last line and name, in order, of every function at the top and every method of a class of tests."""
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            yield node.end_lineno or node.lineno, node.name
        elif isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield inner.end_lineno or inner.lineno, f"{node.name}::{inner.name}"


def _words(module: ast.Module, source: str) -> Iterator[tuple[int, str]]:
    """Comments, docstrings and texts in decorators, each with its line."""
    for node in ast.walk(module):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text is not None:
                yield node.body[0].lineno, text
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for inner in (inner for decorator in node.decorator_list for inner in ast.walk(decorator)):
                if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                    yield inner.lineno, inner.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def collect(root: Path, rules: Rules) -> dict[str, list[Place]]:
    """Every rule that tests cite, with its places, those most about it first."""
    found: dict[str, set[Place]] = {}
    for path in sorted((root / "tests").rglob("*.py")):
        if "support" in path.parts:
            continue
        for rule, test in citations(path.read_text(), rules, only_tests=path.name.startswith("test_")):
            found.setdefault(rule, set()).add(Place(str(path.relative_to(root)), test))
    weight: dict[Place, int] = {}
    for places in found.values():
        for place in places:
            weight[place] = weight.get(place, 0) + 1
    order = sorted(found, key=lambda rule: (prefix_of(rule), number_of(rule), rule))
    return {
        rule: sorted(found[rule], key=lambda place: (place.test == "", weight[place], place.path, place.test))
        for rule in order
    }


def mistakes(rules: Rules, places: dict[str, list[Place]]) -> list[str]:
    """What is wrong with the list or the citations, in words."""
    lost = [rule for rule in places if rule not in rules.says]
    bare = [rule for rule in rules.says if rule not in places and rule not in rules.untested]
    return [
        *(f"{rule} is cited in {places[rule][0].path}, but hack/rules.toml does not list it" for rule in lost),
        *(f"no test cites {rule} ({rules.says[rule]}): add one, or say why not in hack/rules.toml" for rule in bare),
        *(f"{rule} has a test by now: take it out of [untested]" for rule in rules.untested if rule in places),
        *(f"{rule} of [untested] is not a rule of the list" for rule in rules.untested if rule not in rules.says),
    ]


def page(rules: Rules, places: dict[str, list[Place]]) -> str:
    parts = [_HEAD.format(command=COMMAND)]
    for prefix, title in rules.titles.items():
        mine = [rule for rule in rules.says if prefix_of(rule) == prefix]
        shown = sum(rule in places for rule in mine)
        parts.append(f"\n## {title}: {shown} of {len(mine)}\n\n| rule | says | tests |\n|---|---|---|\n")
        parts.extend(f"| {rule} | {rules.says[rule]} | {_cell(places.get(rule, []))} |\n" for rule in mine)
    parts.append("\n## Without a test\n\n| rule | says | why |\n|---|---|---|\n")
    parts.extend(f"| {rule} | {rules.says[rule]} | {why} |\n" for rule, why in rules.untested.items())
    return "".join(parts)


def _cell(places: list[Place]) -> str:
    by_file: dict[str, list[str]] = {}
    for place in places[:_SHOWN]:
        by_file.setdefault(place.path, []).extend([place.test] if place.test else [])
    parts = [_of_file(path, tests) for path, tests in by_file.items()]
    if len(places) > _SHOWN:
        parts.append("and more")
    return "<br>".join(parts) or "none, see below"


def _of_file(path: str, tests: list[str]) -> str:
    link = f"[{path.removeprefix('tests/')}](../{path})"
    return f"{link}: {', '.join(f'`{test}`' for test in tests)}" if tests else link


def main(arguments: list[str]) -> int:
    rules = read_rules()
    places = collect(ROOT, rules)
    wrong = mistakes(rules, places)
    made = page(rules, places) if not wrong else ""
    if "--check" in arguments and not wrong:
        if not PAGE.exists() or PAGE.read_text() != made:
            wrong.append(f"docs/rules.md is not up to date: run {COMMAND}")
    elif not wrong:
        PAGE.write_text(made)
    for line in wrong:
        sys.stderr.write(f"{line}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
