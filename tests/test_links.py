"""Links between documents lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
_LINK = re.compile(r"\]\((?!https?://|mailto:)([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    targets = {found[1] for found in _LINK.finditer(document.read_text())}
    lost = sorted(target for target in targets if not (document.parent / target).exists())
    assert not lost, f"{document.name} links to what is not there: {', '.join(lost)}"


def test_every_page_is_found_from_the_readme() -> None:
    found = set(_LINK.findall((ROOT / "README.md").read_text()))
    assert [f"docs/{path.name}" for path in DOCUMENTS if path.parent != ROOT and f"docs/{path.name}" not in found] == []


def test_the_map_of_the_tree_knows_every_room() -> None:
    map_of_the_tree = (ROOT / "CONTRIBUTING.md").read_text().partition("## The one rule")[0]
    rooms = [path for path in (ROOT / "src" / "kruise").iterdir() if path.name[0] not in "_."]
    names = [path.name if path.suffix else f"{path.name}/" for path in rooms if path.suffix in ("", ".py")]
    assert [name for name in sorted(names) if f" {name}" not in map_of_the_tree] == []
