"""The documents as a site: every page is found in it, and links that lead to sources are not there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack import pages

DOCUMENTS = pages.ROOT / "docs"
SETTINGS = yaml.safe_load((pages.ROOT / "mkdocs.yml").read_text())


def listed(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    else:
        for inner in nav.values() if isinstance(nav, dict) else nav:
            yield from listed(inner)


def test_every_page_is_in_the_navigation_once() -> None:
    found = sorted(listed(SETTINGS["nav"]))
    assert found == sorted([*(path.name for path in DOCUMENTS.glob("*.md")), *pages.ADDED.values()])


def test_the_start_page_leads_to_every_part_and_kind() -> None:
    text = (DOCUMENTS / "index.md").read_text()
    linked = set(re.findall(r"\]\(([a-z-]+\.md)", text))
    parts = [set(listed(part)) for part in SETTINGS["nav"]]
    assert [part for part in parts if not part & linked] == []
    kinds = {path.name.replace("-differences", "") for path in DOCUMENTS.glob("*-differences.md")} - {
        "known.md",
        "images.md",
    }
    assert kinds - linked == set()


def test_whatever_is_wrong_in_it_ends_the_build() -> None:
    assert all(level == "warn" for part in SETTINGS["validation"].values() for level in part.values())
    [command] = re.findall(r"mkdocs build.*", (pages.ROOT / "Makefile").read_text())
    assert command == "mkdocs build --strict"  # with --quiet it would not count warnings


def test_readers_are_not_told_to_anybody() -> None:
    """No fonts, scripts or figures from elsewhere. The build fails for those."""
    assert SETTINGS["theme"]["font"] is False
    assert pages.fetched('<a href="https://example.com/">x</a><script src="assets/x.js"><link href="y.css">') == []
    html = '<link rel="x" href="https://fonts.example/x.css"><script src=//cdn.example/y.js></script>'
    assert pages.fetched(html) == ["https://fonts.example/x.css", "//cdn.example/y.js"]


@pytest.mark.parametrize(
    ("folder", "text", "shown"),
    [
        ("docs", "[a](why.md#b) and [c](manifests/x.yaml)", "[a](why.md#b) and [c](manifests/x.yaml)"),
        ("docs", "[`t.py`](../tests/t.py): shows", "`t.py`: shows"),
        ("docs", "[log](../CHANGELOG.md#x), [top](../README.md)", "[log](changelog.md#x), [top](index.md)"),
        ("docs", "[here](#b), [there](https://example.com/a)", "[here](#b), [there](https://example.com/a)"),
        ("docs", "[two\nlines](../src/x.py)", "two\nlines"),
        ("", "[w](docs/why.md#a), [r](README.md), [s](hack/rules.py)", "[w](why.md#a), [r](index.md), s"),
        ("docs", "```\n[a](../src/x.py)\n```\n[a](../src/x.py)", "```\n[a](../src/x.py)\n```\na"),
    ],
)
def test_links_of_the_site(folder: str, text: str, shown: str) -> None:
    assert pages.for_site(text, folder) == shown


def test_no_link_leaves_the_site() -> None:
    made = {page: pages.for_site((pages.ROOT / source).read_text(), "") for source, page in pages.ADDED.items()}
    made |= {path.name: pages.for_site(path.read_text(), "docs") for path in DOCUMENTS.glob("*.md")}
    found = [(page, target) for page, text in made.items() for target in re.findall(r"\]\(([^)#\s]+)", text)]
    inside = [(page, target) for page, target in found if not target.startswith(("https://", "http://"))]
    assert len(inside) > 200
    lost = [(page, target) for page, target in inside if target not in made and not (DOCUMENTS / target).is_file()]
    assert lost == []


def test_a_table_begins_a_paragraph() -> None:
    """Otherwise only some readers see it as a table."""
    paths: list[Path] = [*DOCUMENTS.glob("*.md"), *(pages.ROOT / source for source in pages.ADDED)]
    wrong = []
    for path in paths:
        before = ""
        for line in re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.MULTILINE | re.DOTALL).splitlines():
            if line.startswith(("|", "- ")) and before and not before.startswith(("|", "- ", "  ", "#")):
                wrong.append(f"{path.name}: {line}")
            before = line
    assert wrong == []
